//! The Redis serialization protocol: requests in ([`request`]), replies out ([`reply`]).

pub mod client;
pub mod reply;
pub mod request;

pub use reply::{Protocol, Reply};
pub use request::{Args, ProtocolError, RequestLimits, RequestParser};
