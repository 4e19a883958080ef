//! What a node keeps: databases, value types and the encodings that `OBJECT ENCODING` reports.

pub mod db;
pub mod hash;
pub mod limits;
mod packed;
pub mod slab_map;
pub mod string;
mod stubs;
pub mod value;

pub use db::{Db, Entry, Now, Store};
pub use hash::Hash;
pub use limits::Limits;
pub use slab_map::SlabMap;
pub use string::StringValue;
pub use stubs::{List, Set, SortedSet};
pub use value::{Kind, Value};
