//! Compares two Redis servers: random commands, a recorded trace, and speed.
//!
//! - [`diff`]: sends random commands and shrinks every difference to a short sequence.
//! - [`against`]: replays a recorded trace against a real server.
//! - [`bench`](mod@bench): measures speed and memory.
//!
//! May use `redlatch-core` and `redlatch-lab`; only the program uses it.

pub mod against;
pub mod bench;
pub mod diff;
