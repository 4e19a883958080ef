//! Redlatch: a Redis-protocol server in memory, made to test distributed locks.

pub mod cli;
pub mod commands;
pub mod diff;
pub mod error;
pub mod glob;
mod grisu;
pub mod long_double;
pub mod net;
pub mod node;
pub mod num;
pub mod rng;
pub mod script;
pub mod sim;
pub mod store;
pub mod version;
pub mod wheel;
pub mod wire;
pub mod world;

pub use sim::{Client, Sim, SimOptions};
pub use version::Version;
