//! RFairLock: waiters get the lock in the order in which they began to wait.
//!
//! | | |
//! |---|---|
//! | state | a hash as for RLock; a list of waiters; a sorted set, waiter → deadline after which it counts as dead, by the clients' clocks |
//! | every operation | first removes waiters with passed deadlines from the head of the list |
//! | acquire | if the lock is free and nobody waits before the caller: grants it, and moves the deadlines of the waiters behind forward. Else queues the caller, and returns when to ask again |
//! | try acquire | like acquire, but does not queue |
//! | unlock | like RLock's, and notifies the head of the queue on its own channel. Returns 1 for a free lock, by Redisson's design |
//! | give up | removes the waiter, and moves the deadlines of those behind forward |
//!
//! The variant that is not re-entrant refuses its owner with an error. Until 2.6, each waiter had a key with a time to
//! live instead of a deadline in a sorted set.

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use model::Fair;

pub const FAIR: Object = Object {
    name: "fair",
    roles: roles::FAIR_ROLES,
    sites: roles::FAIR_SITES,
    plain: &[],
    class: None,
    shapes: roles::FAIR_SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(Fair::new(scripts, true)),
};

pub const NON_REENTRANT: Object = Object {
    name: "fair-nonreentrant",
    roles: roles::NON_REENTRANT_ROLES,
    sites: roles::NON_REENTRANT_SITES,
    plain: &[],
    class: None,
    shapes: roles::NON_REENTRANT_SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(Fair::new(scripts, false)),
};
