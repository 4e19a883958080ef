//! Redlatch: a Redis-protocol server in memory, made to test distributed locks.

pub mod error;
pub mod num;
pub mod script;
pub mod version;
pub mod wire;

pub use version::Version;
