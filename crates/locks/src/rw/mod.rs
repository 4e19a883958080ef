//! RReadWriteLock: many readers or one writer, who may read too.
//!
//! | | |
//! |---|---|
//! | state | a hash: `mode`, reader → holds, writer → holds; one key for each hold of a reader, with its lease |
//! | read acquire | free, read mode, or the writer itself: one more hold, nil. Else how long it is still held |
//! | write acquire | free, or the writer itself: one more hold, nil. Leases of a writer add up, by Redisson's design |
//! | read unlock | not held: nil. The key lives on for the longest hold that is left, 0; the last hold: gone, a message, 1 |
//! | write unlock | not held: nil. Holds left: 0. The last: the owner's reads go on in read mode, or gone and a message; 1 |
//! | renew | own holds only |
//! | force unlock | in its mode: gone, a message, 1. Else 0 |
//! | read is locked | whether anybody reads, the writer included |

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use model::ReadWriteLock;

pub const READ_WRITE: Object = Object {
    name: "rw",
    roles: roles::ROLES,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(ReadWriteLock::new(scripts)),
};
