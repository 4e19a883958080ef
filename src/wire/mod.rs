//! The Redis serialization protocol: requests in ([`request`]), replies out ([`reply`]).

pub mod reply;

pub use reply::{Protocol, Reply};
