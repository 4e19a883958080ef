//! The Redis serialization protocol: requests in ([`request`]), replies out ([`reply`]), and the other way round
//! for clients ([`client`], [`value`]).

pub mod client;
pub mod reply;
pub mod request;
pub mod value;

pub use reply::{Protocol, Reply};
pub use request::{Args, ProtocolError, RequestLimits, RequestParser};
pub use value::Value;
