//! What a test does to an emulated Redis server.
//!
//! - [`control`]: faults, gates, the clock, nodes: the commands of the control plane, and [`Lab`], a world with all that.
//! - [`trace`]: runs written down and replayed.
//! - [`handle`]: the same commands as methods, for tests in Rust.
//! - [`sim`]: the same machine in process, for tests in Rust.
//! - [`demo`]: schedules that tell how distributed locks fail.

pub mod control;
pub mod demo;
pub mod handle;
pub mod sim;
pub mod trace;

pub use control::{Lab, SimError};
pub use handle::Control;
pub use sim::{CallError, Client, OptionsError, Sim, SimOptions};
