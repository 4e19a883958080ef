//! The Redis serialization protocol (RESP): parses requests ([`request`]) and writes replies ([`reply`]). [`client`] is
//! the client's side.

pub mod client;
pub mod reply;
pub mod request;

pub use reply::{Protocol, Reply};
pub use request::{Args, ProtocolError, RequestLimits, RequestParser};
