//! Everything that a test can do to an emulated Redis server.
//!
//! - [`control`]: the control plane: SIM.* commands for faults, gates, the clock and nodes; and [`Lab`], a world that applies them.
//! - [`trace`]: records runs and replays them.
//! - `travel`: any moment of a recorded run, the first bad one, and other futures.
//! - [`handle`]: the SIM.* commands as methods, for tests in Rust.
//! - [`sim`]: the same server in process, without sockets, for tests in Rust.
//! - `schedule`: text files that say what clients send and receive, and when; `demo`: those that show how distributed locks fail.
//!
//! May use `redlatch-core` and `redlatch-locks`; the program and `redlatch-compare` use it.

pub mod control;
#[cfg(feature = "replay")]
pub mod demo;
pub mod handle;
#[cfg(feature = "replay")]
pub mod schedule;
pub mod sim;
pub mod trace;
#[cfg(feature = "replay")]
pub mod travel;

pub use control::{Lab, SimError};
pub use handle::Control;
pub use sim::{CallError, Client, OptionsError, Sim, SimOptions};
