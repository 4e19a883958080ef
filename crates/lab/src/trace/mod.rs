//! Recorded runs: every input of the world in order, and every output.
//!
//! A trace is lines of JSON (`docs/control-plane.md` has the format). A replay feeds the inputs in and compares outputs and
//! digests. Bytes are written as the characters with the same number (Latin-1), so that every reply has exactly one form.
//! Any build writes traces; the feature `replay` reads them.

#[cfg(feature = "replay")]
pub mod cost;
#[cfg(feature = "replay")]
pub mod line;
#[cfg(feature = "replay")]
pub mod player;
pub mod record;
#[cfg(feature = "replay")]
pub mod replay;
mod secrets;
#[cfg(feature = "replay")]
pub mod show;
#[cfg(feature = "replay")]
pub mod svg;
#[cfg(feature = "replay")]
pub mod tape;

#[cfg(feature = "replay")]
pub use line::{Conn, Header, Line, LineError, NodeHeader};
#[cfg(feature = "replay")]
pub use player::Player;
pub use record::Recorder;
#[cfg(feature = "replay")]
pub use replay::{Replay, ReplayError, TraceError};
#[cfg(feature = "replay")]
pub use tape::Tape;

use redlatch_core::world::ClockMode;

/// The version of the format that this release writes and reads.
pub const FORMAT: u32 = 1;

/// Returns the name of a clock mode in a header.
pub(crate) fn clock_name(mode: ClockMode) -> String {
    match mode {
        ClockMode::Real => "real".to_owned(),
        ClockMode::Manual => "manual".to_owned(),
        ClockMode::Rate(rate) => format!("rate {rate}"),
    }
}
