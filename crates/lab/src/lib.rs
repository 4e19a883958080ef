//! Everything that a test can do to an emulated Redis server.
//!
//! - [`control`]: the control plane: SIM.* commands for faults, gates, the clock and nodes; and [`Lab`], a world that applies them.
//! - [`trace`]: records runs and replays them.
//! - `travel`: any moment of a recorded run, the first bad one, and other futures.
//! - [`handle`]: the SIM.* commands as methods, for tests in Rust.
//! - [`sim`]: the same server in process, without sockets, for tests in Rust.
//! - [`demo`]: schedules that show how distributed locks fail.
//!
//! May use `redlatch-core` and `redlatch-locks`; the program and `redlatch-compare` use it.

pub mod control;
pub mod demo;
pub mod handle;
pub mod sim;
pub mod trace;
#[cfg(feature = "replay")]
pub mod travel;

pub use control::{Lab, SimError};
pub use handle::Control;
pub use sim::{CallError, Client, OptionsError, Sim, SimOptions};
