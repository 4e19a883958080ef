//! A user's own lock: one owner at a time, not re-entrant, with scripts that a file describes.
//!
//! | | |
//! |---|---|
//! | acquire | 1 or OK: granted for the requested lease. Anything else: refused |
//! | release | 1: the lock was held and is now free. Anything else: it was not held, and nothing has changed |
//!
//! ```toml
//! [acquire]
//! script = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0"
//! keys = ["lock"]
//! args = ["owner", "lease_ms"]
//!
//! [release]
//! script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
//! keys = ["lock"]
//! args = ["owner"]
//! ```

#[cfg(feature = "own")]
pub mod description;
pub mod model;
pub mod roles;
#[cfg(test)]
mod tests;

use super::binding::Arguments;
use super::catalogue::Object;
use model::OwnLock;

pub const OWN: Object = Object {
    name: "own",
    roles: roles::ROLES,
    sites: &[],
    plain: &[],
    class: None,
    shapes: &[],
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |_| Box::<OwnLock>::default(),
};
