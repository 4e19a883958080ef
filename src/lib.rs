//! Redlatch: a Redis-protocol server in memory, made to test distributed locks.
//!
//! `docs/design.md` tells how it is built.

#[cfg(feature = "cli")]
pub mod cli;
pub mod net;

pub use redlatch_core::Version;
pub use redlatch_lab::sim::{Client, Sim, SimOptions};
