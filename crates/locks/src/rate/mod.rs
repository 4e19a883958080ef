//! RRateLimiter: so many permits in each interval.
//!
//! | | |
//! |---|---|
//! | state | a hash with rate, interval and scope; a string with the permits left; a sorted set of grants → when, by the clients' clocks |
//! | scope | all clients share the permits, or each has its own, under keys of its own |
//! | set | try set: only where there is none, 1, else 0. Set: all begin anew. Update: what was handed out still counts |
//! | most operations | first put grants back that are an interval old |
//! | acquire | enough: that many less, nil. Else when to ask again |
//! | release | that many more, up to the rate |
//! | available | how many there are |
//!
//! Until 3.13.2 the permits left were a string that ended with the interval, and there were no grants.

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use model::RateLimiter;

pub const RATE_LIMITER: Object = Object {
    name: "rate",
    roles: roles::ROLES,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(RateLimiter::new(scripts)),
};
