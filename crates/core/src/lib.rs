//! One emulated Redis server, or several under one clock.
//!
//! Everything behind the socket is a deterministic state machine: connections, requests and time go in as one ordered
//! sequence, and bytes come out. The modules, from the outside in:
//!
//! - [`world`]: several nodes that share one clock and one sequence of events.
//! - [`stages`]: the interface through which a test observes the core and interferes with it.
//! - [`node`]: one server: sessions, dispatch, blocking, pub/sub, settings.
//! - [`acl`]: users and what they may run.
//! - [`commands`]: one table row and one handler function for each command.
//! - [`script`]: the Lua engine.
//! - [`slots`]: the hash slots of a cluster.
//! - [`topology`]: the shapes of a world: masters, replicas, clusters, sentinels.
//! - [`store`] and [`wheel`]: values and timers.
//! - [`wire`]: the Redis protocol.
//!
//! This crate knows nothing of locks, rules, traces or checkers. Crates that add them plug in through [`stages`].

pub mod acl;
pub mod commands;
mod conn;
pub mod error;
pub mod geohash;
pub mod glob;
mod grisu;
pub mod image;
pub mod long_double;
pub mod node;
pub mod num;
mod partial_sort;
pub mod rng;
pub mod script;
pub mod slots;
pub mod stages;
pub mod store;
pub mod topology;
pub mod version;
pub mod wheel;
pub mod wire;
pub mod world;

pub use conn::{ConnId, SessionId};
pub use version::Version;
