//! Runs written down: everything that entered the world, in order, and what came out of it.
//!
//! A trace is lines of JSON (`docs/control-plane.md` has the format). Inputs make a replay go; outputs and digests are
//! there to be compared. Bytes are written as characters of the same number (Latin-1), so that every reply has one form.
//! Any build writes traces; the feature `replay` reads them.

#[cfg(feature = "replay")]
pub mod cost;
#[cfg(feature = "replay")]
pub mod line;
pub mod record;
#[cfg(feature = "replay")]
pub mod replay;
#[cfg(feature = "replay")]
pub mod show;
#[cfg(feature = "replay")]
pub mod svg;

#[cfg(feature = "replay")]
pub use line::{Conn, Header, Line, NodeHeader};
pub use record::Recorder;
#[cfg(feature = "replay")]
pub use replay::{Replay, ReplayError};

use redlatch_core::world::ClockMode;

/// The format that this release writes and reads.
pub const FORMAT: u32 = 1;

/// A clock as the head of a trace names it.
fn clock_name(mode: ClockMode) -> String {
    match mode {
        ClockMode::Real => "real".to_owned(),
        ClockMode::Manual => "manual".to_owned(),
        ClockMode::Rate(rate) => format!("rate {rate}"),
    }
}
