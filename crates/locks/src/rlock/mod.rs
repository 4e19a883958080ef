//! RLock and its variants: one owner, who may hold the lock several times.
//!
//! | | |
//! |---|---|
//! | state | a hash, owner → number of holds; its time to live is the lease |
//! | acquire | if free or the owner's: one more hold, restarts the lease, nil. If held by another: returns the rest of the lease |
//! | unlock | if not held by the owner: nil. If holds are left: restarts the lease, 0. After the last hold: deletes the lock, sends one message, 1 |
//! | renew | if the owner's: restarts the lease, 1. Else 0 |
//! | force unlock | deletes the lock, sends one message, 1. If free: 0 |
//!
//! Until 2.2 the state was a string, `{"o": owner, "c": holds}`. A spin lock sends no messages. A fenced lock
//! increments a token at each grant. A non-reentrant lock refuses its owner with an error.

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::binding::Arguments;
use super::catalogue::Object;
use super::role::{Plain, Shared};
use model::{RLock, Variant};

pub const RLOCK: Object = Object {
    name: "rlock",
    roles: roles::RLOCK_ROLES,
    sites: roles::RLOCK_SITES,
    plain: &[Plain { role: roles::RENEW, site: "RedissonLock.run", uses: "expireAsync" }],
    class: None,
    shapes: roles::RLOCK_SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |_| Box::new(RLock::new(Variant::RLock)),
};

pub const SPIN: Object = Object {
    name: "spin",
    roles: roles::SPIN_ROLES,
    sites: roles::SPIN_SITES,
    plain: &[],
    class: None,
    shapes: roles::SPIN_SHAPES,
    shared: &[Shared { of: roles::ACQUIRE, class: "RedissonSpinLock", role: roles::SPIN_ACQUIRE }],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(RLock::new(Variant::Spin)),
};

pub const FENCED: Object = Object {
    name: "fenced",
    roles: roles::FENCED_ROLES,
    sites: roles::FENCED_SITES,
    plain: &[],
    class: None,
    shapes: roles::FENCED_SHAPES,
    shared: &[],
    arguments: &names::FENCED_ARGUMENTS,
    model: |_| Box::new(RLock::new(Variant::Fenced)),
};

pub const NON_REENTRANT: Object = Object {
    name: "nonreentrant",
    roles: roles::NON_REENTRANT_ROLES,
    sites: roles::NON_REENTRANT_SITES,
    plain: &[],
    class: None,
    shapes: roles::NON_REENTRANT_SHAPES,
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(RLock::new(Variant::NonReentrant)),
};
