//! RedissonMultiLock and RedissonRedLock: one lock that consists of an RLock on each of several nodes.
//!
//! No script implements this. The model does what the client of Redisson 4.7 does, one request per step, so that other
//! clients' requests and faults can come in between.
//!
//! | | |
//! |---|---|
//! | acquire | asks node after node, with a lease of twice the waiting time; each node until its share of the waiting time is over |
//! | | if a node refuses: a multi lock releases all nodes and begins again; a RedLock continues while a majority is possible |
//! | | if the waiting time is over: releases all nodes and gives up |
//! | extend | starts the requested lease at each node that was acquired; after the last one the client has the lock |
//! | unlock | unlocks every node |
//!
//! A client *believes* that it has the lock once it has the last reply. Under the documented rules its belief ends when
//! the lease has passed since its first request, less a hundredth for drifting clocks, as in the algorithm that RedLock
//! is named after; if its waiting time was over before, it never believes so; and nodes must keep their data and their
//! clocks. Under strict rules it believes what Redisson tells it: the lease begins when the call returns.

pub mod model;
#[cfg(test)]
mod tests;

use super::binding::Arguments;
use super::catalogue::Object;
use model::MultiLock;

pub const MULTI: Object = Object {
    name: "multi",
    roles: &[],
    sites: &[],
    plain: &[],
    class: Some("RedissonMultiLock"),
    shapes: &[],
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(MultiLock::of_all()),
};

pub const RED_LOCK: Object = Object {
    name: "redlock",
    roles: &[],
    sites: &[],
    plain: &[],
    class: Some("RedissonRedLock"),
    shapes: &[],
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |_| Box::new(MultiLock::of_majority()),
};
