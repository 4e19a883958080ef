//! Runs written down: everything that entered the world, in order, and what came out of it.
//!
//! A trace is lines of JSON (`docs/control-plane.md` has the format). Inputs make a replay go; outputs and digests are
//! there to be compared. Bytes are written as characters of the same number (Latin-1), so that every reply has one form.

pub mod cost;
pub mod line;
pub mod record;
pub mod replay;
pub mod show;
pub mod svg;

pub use line::{Conn, Header, Line, NodeHeader};
pub use record::Recorder;
pub use replay::{Replay, ReplayError};
