//! Recorded runs: every input of the world in order, and every output.
//!
//! A trace is lines of JSON (`docs/control-plane.md` has the format). A replay feeds the inputs in and compares outputs and
//! digests. Bytes are written as the characters with the same number (Latin-1), so that every reply has exactly one form.

pub mod cost;
pub mod line;
pub mod record;
pub mod replay;
pub mod show;
pub mod svg;

pub use line::{Conn, Header, Line, LineError, NodeHeader};
pub use record::Recorder;
pub use replay::{Replay, ReplayError, TraceError};
