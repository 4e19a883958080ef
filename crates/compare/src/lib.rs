//! Two servers side by side: the same commands, the same trace, the same work.
//!
//! - [`diff`]: random commands, and the shortest sequence for every difference.
//! - [`against`]: a recorded trace against a real server.
//! - [`bench`](mod@bench): the speed of both.

pub mod against;
pub mod bench;
pub mod diff;
