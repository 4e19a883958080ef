//! The members and arguments of a group lock.

use super::roles::*;
use crate::binding::{
    Arguments, CHANNEL, CLOCK_MS, Draft, LATCH, LATCH_TTL, LEASE_MS, LOCK, MESSAGE, OWNER, PUBLISH, Parameter,
};
use crate::role::Role;
use crate::text::contains;

/// All members of a group.
pub const ALL_MEMBERS: Parameter = Parameter::rest("members");

pub const ARGUMENTS: Arguments = Arguments {
    passed_args: &[("*fields", ALL_MEMBERS), ("*getFields()", ALL_MEMBERS)],
    in_order: &[
        (ACQUIRE, &[LOCK], &[LEASE_MS, CLOCK_MS, OWNER, ALL_MEMBERS]),
        (TRY_ACQUIRE, &[LOCK], &[CLOCK_MS, LEASE_MS, OWNER, ALL_MEMBERS]),
        (
            UNLOCK,
            &[LOCK, CHANNEL, LATCH],
            &[OWNER, MESSAGE, LEASE_MS, PUBLISH, LATCH_TTL, CLOCK_MS, ALL_MEMBERS],
        ),
        (RENEW, &[LOCK], &[LEASE_MS, CLOCK_MS, OWNER, ALL_MEMBERS]),
        (FORCE_UNLOCK, &[LOCK, CHANNEL], &[MESSAGE, PUBLISH, ALL_MEMBERS]),
        (IS_HELD, &[LOCK], &[CLOCK_MS, OWNER, ALL_MEMBERS]),
        (IS_LOCKED, &[LOCK], &[CLOCK_MS, ALL_MEMBERS]),
    ],
    adjust,
    ..Arguments::COMMON
};

fn adjust(role: Role, script: &[u8], draft: &mut Draft) {
    // Until 3.43 the owner came first.
    if role == RENEW && contains(script, b"currentThread=ARGV[1]") {
        draft.args[..3].rotate_right(1);
    }
}

/// The members of the group in the model.
pub const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];

/// Iterates over the members in a bit set.
pub fn members(mask: u8) -> impl Iterator<Item = usize> {
    (0..MEMBERS.len()).filter(move |member| mask & 1 << member != 0)
}
