//! RedissonMultiLock and RedissonRedLock: one lock made of an RLock at each of several nodes.
//!
//! No script does this; what follows is what the client of Redisson 4.7 does, one request at each step, so that the requests of others
//! and faults come in between.
//!
//! | | |
//! |---|---|
//! | acquire | asks node after node with a lease of twice its patience, each until its share of the patience is over |
//! | | refused by one: a multi lock lets go of all and begins anew; a RedLock goes on for as long as a majority is possible |
//! | | its patience is over: lets go of all, refused |
//! | extend | at each node that it has, the lease that was asked for begins: with the last it has the lock |
//! | unlock | at each node |
//!
//! A client *believes* that it has the lock from the last reply on. By the rules as documented, until the lease has passed since it
//! first asked for it, less a hundredth for clocks that drift, as in the algorithm that RedLock is named after, and not at all if its
//! patience was over before; and nodes keep their data and their clocks. By strict rules it believes what Redisson tells it: that
//! the lease begins when the call returns.

pub mod model;
#[cfg(test)]
mod tests;

use super::binding::Arguments;
use super::catalogue::Object;
use model::MultiLock;

pub const MULTI: Object = Object {
    name: "multi",
    roles: &[],
    shapes: &[],
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(MultiLock::of_all()),
};

pub const RED_LOCK: Object = Object {
    name: "redlock",
    roles: &[],
    shapes: &[],
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(MultiLock::of_majority()),
};
