//! The keys of RLock and its variants.

use crate::binding::{Arguments, LEASE_MS, Parameter};
use crate::model::Names;

/// The counter of a fenced lock.
pub const TOKEN: Parameter = Parameter::data_key("token");

pub const ARGUMENTS: Arguments =
    Arguments { args: &[("cjson.encode(o),'px',ARGV[", LEASE_MS)], ..Arguments::COMMON };

pub const FENCED_ARGUMENTS: Arguments =
    Arguments { passed_keys: &[("tokenName", TOKEN)], keys: &[("'incr',KEYS[", TOKEN)], ..ARGUMENTS };

/// Returns the names of the lock.
pub fn names() -> Names {
    Names::new("my:lock", "redisson_lock__channel")
}

/// Returns the key of a fenced lock's counter.
pub fn token(names: &Names) -> String {
    format!("redisson_lock_token:{{{}}}", names.lock)
}
