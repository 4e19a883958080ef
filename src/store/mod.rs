//! What a node keeps: value types and the encodings that `OBJECT ENCODING` reports.

pub mod hash;
pub mod limits;
pub mod list;
mod packed;
pub mod slab_map;
pub mod string;

pub use hash::Hash;
pub use limits::Limits;
pub use list::List;
pub use slab_map::SlabMap;
pub use string::StringValue;
