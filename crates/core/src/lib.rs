//! One emulated Redis server, or several under one clock.
//!
//! Everything behind the socket is a deterministic state machine: connections, requests and time go in, in one order, and
//! bytes come out. From the outside in:
//!
//! - [`world`]: nodes, one clock, one order of events.
//! - [`stages`]: the one door through which a test watches and interferes.
//! - [`node`]: one server: sessions, dispatch, blocking, pub/sub, settings.
//! - [`commands`]: a row and a function for each command.
//! - [`script`]: the Lua engine.
//! - [`store`] and [`wheel`]: values and timers.
//! - [`wire`]: the protocol.
//!
//! This crate knows no lock, no rule, no trace and no checker; what is built on it comes in through [`stages`].

pub mod commands;
mod conn;
pub mod error;
pub mod glob;
mod grisu;
pub mod long_double;
pub mod node;
pub mod num;
pub mod rng;
pub mod script;
pub mod stages;
pub mod store;
pub mod version;
pub mod wheel;
pub mod wire;
pub mod world;

pub use conn::{ConnId, SessionId};
pub use version::Version;
