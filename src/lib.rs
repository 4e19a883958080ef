//! Redlatch: a Redis-protocol server in memory, made to test distributed locks.

pub mod error;
pub mod long_double;
pub mod num;
pub mod store;
pub mod version;
pub mod wheel;
pub mod wire;

pub use version::Version;
