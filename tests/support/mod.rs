//! Shared by the integration tests: servers and a client.

// Each test binary uses a part of this module.
#![allow(dead_code)]
// Tests may use clocks and threads; the core may not.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod case;
pub mod client;
pub mod oracle;
pub mod server;
