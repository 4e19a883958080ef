//! What the integration tests share: servers to ask and a client to ask them with.

// Each test binary uses its own part.
#![allow(dead_code)]
// Tests have clocks and threads; the core has none.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod case;
pub mod client;
pub mod oracle;
pub mod server;
