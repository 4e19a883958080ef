//! RLock and its kin: one owner, who may hold it several times.
//!
//! | | |
//! |---|---|
//! | state | a hash, owner → holds; its time to live is the lease |
//! | acquire | free or own: one more hold, the lease begins anew, nil. Held: how long it still is |
//! | unlock | not held: nil. Holds left: the lease begins anew, 0. The last: gone, one message, 1 |
//! | renew | own: the lease begins anew, 1. Else nothing, 0 |
//! | force unlock | gone, one message, 1. Free: 0 |
//!
//! Until 2.2 the state was a string, `{"o": owner, "c": holds}`. A spin lock tells nobody. A fenced lock counts a token up at each grant. A non-reentrant lock refuses its owner with an error.

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::binding::Arguments;
use super::catalogue::Object;
use super::role::Shared;
use model::{RLock, Variant};

pub const RLOCK: Object = Object {
    name: "rlock",
    roles: roles::RLOCK_ROLES,
    shapes: roles::RLOCK_SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |_| Box::new(RLock::new(Variant::RLock)),
};

pub const SPIN: Object = Object {
    name: "spin",
    roles: roles::SPIN_ROLES,
    shapes: roles::SPIN_SHAPES,
    shared: &[Shared { of: roles::ACQUIRE, class: "RedissonSpinLock", role: roles::SPIN_ACQUIRE }],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(RLock::new(Variant::Spin)),
};

pub const FENCED: Object = Object {
    name: "fenced",
    roles: roles::FENCED_ROLES,
    shapes: roles::FENCED_SHAPES,
    shared: &[],
    arguments: &names::FENCED_ARGUMENTS,
    model: |_| Box::new(RLock::new(Variant::Fenced)),
};

pub const NON_REENTRANT: Object = Object {
    name: "nonreentrant",
    roles: roles::NON_REENTRANT_ROLES,
    shapes: roles::NON_REENTRANT_SHAPES,
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(RLock::new(Variant::NonReentrant)),
};
