//! RRateLimiter: grants a limited number of permits in each interval.
//!
//! | | |
//! |---|---|
//! | state | a hash with rate, interval and scope; a string with the number of permits left; a sorted set, grant → time, by the clients' clocks |
//! | scope | all clients share the permits, or each client has its own, under its own keys |
//! | set | try set: sets the limit if there is none, 1, else 0. Set: starts over. Update: granted permits still count |
//! | most operations | first return permits that were granted an interval ago |
//! | acquire | if enough are left: takes them, nil. Else returns when to ask again |
//! | release | returns permits, up to the rate |
//! | available | the number of permits left |
//!
//! Until 3.13.2 the permits left were in a string that expired with the interval, and grants were not recorded.

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
    sites: roles::SITES,
    plain: &[],
    class: None,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(RateLimiter::new(scripts)),
};
