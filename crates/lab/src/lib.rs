//! What a test does to an emulated Redis server.
//!
//! - [`control`]: faults, gates, the clock, nodes: the commands of the control plane, and [`Lab`], a world with all that.
//! - [`trace`]: runs written down and replayed.
//! - [`sim`]: the same machine in process, for tests in Rust.
//! - [`demo`]: schedules that tell how distributed locks fail.

pub mod control;
pub mod demo;
pub mod sim;
pub mod trace;

pub use control::Lab;
