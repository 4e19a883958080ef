//! The data of a node: databases, value types, and the encodings that `OBJECT ENCODING` reports.

pub mod bits;
mod check;
pub mod db;
pub mod hash;
pub mod hyperloglog;
pub mod limits;
pub mod list;
mod packed;
pub mod rdb;
pub mod set;
pub mod slab_map;
mod slot_index;
mod small_bytes;
pub mod sorted_set;
pub mod stream;
pub mod string;
mod timer;
pub mod usage;
pub mod value;

pub use db::{Db, Entry, Now, Store};
pub use hash::Hash;
pub use limits::Limits;
pub use list::List;
pub use set::Set;
pub use slab_map::SlabMap;
pub use slot_index::SlotIndex;
pub use sorted_set::SortedSet;
pub use stream::Stream;
pub use string::StringValue;
pub use timer::Timer;
pub use value::{Value, ValueType};
