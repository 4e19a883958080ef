//! What a node keeps: value types and the encodings that `OBJECT ENCODING` reports.

pub mod slab_map;
