//! RFairLock: who waits first is served first.
//!
//! | | |
//! |---|---|
//! | state | a hash as for RLock; a list of waiters; a sorted set, waiter → when it is taken for dead, by the clients' clocks |
//! | every operation | first drops waiters from the head of the list whose deadline has passed |
//! | acquire | free and nobody before: granted, and the waiters behind come that much earlier. Else it queues, and is told when to ask again |
//! | try acquire | the same without queueing |
//! | unlock | as for RLock, and the head of the queue is told on a channel of its own. Of a free lock: 1, by Redisson's design |
//! | give up | the waiter leaves, and those behind come that much earlier |
//!
//! One that is not re-entrant refuses its owner with an error. Until 2.6 a waiter had no deadline in a sorted set but a key of its own that
//! lived for as long.

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
    shapes: roles::FAIR_SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(Fair::new(scripts, true)),
};

pub const NON_REENTRANT: Object = Object {
    name: "fair-nonreentrant",
    roles: roles::NON_REENTRANT_ROLES,
    shapes: roles::NON_REENTRANT_SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(Fair::new(scripts, false)),
};
