//! RReadWriteLock: many readers, or one writer, who may also read.
//!
//! | | |
//! |---|---|
//! | state | a hash: `mode`, reader → number of holds, writer → number of holds; and a key for each hold of a reader, whose time to live is its lease |
//! | read acquire | if free, in read mode, or the writer's: one more hold, nil. Else returns the rest of the lease |
//! | write acquire | if free, or the writer's: one more hold, nil. The leases of a writer add up, by Redisson's design |
//! | read unlock | if not held: nil. If holds are left: the key lives as long as the longest of them, 0. After the last hold: deletes the lock, sends a message, 1 |
//! | write unlock | if not held: nil. If holds are left: 0. After the last: continues in read mode if the owner also reads, else deletes the lock and sends a message; 1 |
//! | renew | renews only the owner's holds |
//! | force unlock | in the mode of the request: deletes the lock, sends a message, 1. Else 0 |
//! | read is locked | whether anybody reads, including the writer |

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use super::role::Plain;
use model::ReadWriteLock;

pub const READ_WRITE: Object = Object {
    name: "rw",
    roles: roles::ROLES,
    sites: roles::SITES,
    plain: &[Plain { role: roles::READ_IS_LOCKED, site: "RedissonReadLock.isLocked", uses: "HGET" }],
    class: None,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(ReadWriteLock::new(scripts)),
};
