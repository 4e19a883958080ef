//! The arguments of a semaphore.

use super::roles::*;
use crate::binding::{Arguments, COUNT, LEASE_MS};

pub const ARGUMENTS: Arguments = Arguments {
    passed_args: &[("timeToLive", LEASE_MS)],
    args_of: &[
        (ACQUIRE, "'decrby',KEYS[1],ARGV[", COUNT),
        (RELEASE, "'incrby',KEYS[1],ARGV[", COUNT),
        (RELEASE_IF_EXISTS, "'incrby',KEYS[1],ARGV[", COUNT),
        (TRY_SET, "'set',KEYS[1],ARGV[", COUNT),
        (SET, "'set',KEYS[1],ARGV[", COUNT),
        (ADD, "value+ARGV[", COUNT),
        (REDUCE, "value-ARGV[", COUNT),
        (TRY_SET_FOR, "'set',KEYS[1],ARGV[", COUNT),
        (TRY_SET_FOR, "'px',ARGV[", LEASE_MS),
    ],
    ..Arguments::COMMON
};
