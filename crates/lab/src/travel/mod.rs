//! Travels through a recorded run: any moment of it, the first bad moment, and other futures (`docs/time-travel.md`).
//!
//! | file | concept |
//! |---|---|
//! | `journey` | a place in a trace, moved forwards and backwards; copies of states on the way |
//! | `state` | everything there is at one moment, as text or JSON |
//! | `predicate` | what is looked for, and whether it holds |
//! | `asker` | the script of a predicate |
//! | `fork` | other futures of one moment, and the event that made a violation inevitable |
//! | `parting` | where two runs part |
//! | `history` | all operations on locks of a run |
//!
//! Uses [`crate::trace`] and [`crate::control`]; the program uses it.

mod asker;
pub mod fork;
pub mod history;
pub mod journey;
pub mod parting;
pub mod predicate;
pub mod state;

pub use fork::{Blame, ForkOptions, Forks};
pub use journey::{Journey, TravelError};
pub use parting::Parting;

pub use predicate::Predicate;
pub use state::State;
