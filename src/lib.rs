//! Redlatch: a Redis-protocol server in memory, made to test distributed locks.
//!
//! Everything behind the socket is a deterministic state machine; the drivers around it carry bytes and time. From the
//! outside in:
//!
//! - [`cli`], [`net`], [`sim`], [`diff`], [`bench`], [`fuzz`]: the drivers. [`Sim`] is the one for tests in Rust.
//! - [`locks`] and [`jar`]: what lock scripts promise, and the scripts of a Redisson release.
//! - [`check`]: the same promises, checked on what clients do.
//! - [`world`]: nodes, one clock, one order of events.
//! - [`node`]: one emulated Redis: sessions, dispatch, blocking, pub/sub, settings.
//! - [`commands`]: a row and a function for each command.
//! - [`script`]: the Lua engine.
//! - [`store`] and [`wheel`]: values and timers.
//! - [`wire`]: the protocol.
//!
//! `docs/design.md` tells why it is built so.

#![deny(unsafe_code)]

pub mod bench;
#[doc(hidden)]
pub mod byte_fuzz;
pub mod check;
pub mod cli;
pub mod commands;
pub mod control;
pub mod demo;
pub mod diff;
pub mod error;
pub mod fuzz;
pub mod glob;
mod grisu;
pub mod jar;
pub mod locks;
pub mod long_double;
pub mod net;
pub mod node;
pub mod num;
pub mod rng;
pub mod script;
pub mod sim;
pub mod store;
pub mod trace;
pub mod version;
pub mod wheel;
pub mod wire;
pub mod world;

pub use sim::{Client, Sim, SimOptions};
pub use version::Version;
