//! Schedules: text files that say what clients send, what they receive, and when. `docs/schedules.md` describes the language.
//!
//! The demos, the recipes of `docs/scenarios.md` and the files of users are all schedules, and a recorded run can be made
//! into one.
//!
//! | file | concept |
//! |---|---|
//! | `text` | a file with its loops, definitions and included files, walked line by line |
//! | `step` | one line: what it means, and how it is written |
//! | `words` | quotes and variables |
//! | `shown` | a reply in one line |
//! | `run` | a server in process that carries the steps out |
//! | `failure` | what is wrong with a text, or with an outcome |
//! | `recorded` | the steps of a recorded run |
//! | `shrink` | the shortest schedule that still shows something |
//!
//! Uses [`crate::control`], [`crate::trace`] and [`crate::travel`]; [`crate::demo`] and the program use it.

mod failure;
mod recorded;
mod run;
mod shown;
mod shrink;
mod step;
mod text;
mod words;

pub use failure::{Failure, Place, ScheduleError};
pub use recorded::{Recorded, Shrunk};
pub use run::Report;
pub use shrink::fewer;
pub use text::{Files, MAX_BYTES, NoFiles, Schedule};
