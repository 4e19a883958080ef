//! What a node keeps: value types and the encodings that `OBJECT ENCODING` reports.

pub mod hash;
pub mod limits;
mod packed;
pub mod slab_map;

pub use hash::Hash;
pub use limits::Limits;
pub use slab_map::SlabMap;
