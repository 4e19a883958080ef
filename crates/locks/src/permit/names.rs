//! The keys and arguments of a semaphore whose permits have leases.

use super::roles::*;
use crate::binding::{Arguments, COUNT, Draft, Parameter};
use crate::role::Role;
use crate::text::{contains, digit_after};

/// The sorted set of held permits with the ends of their leases.
pub const TIMEOUTS: Parameter = Parameter::data_key("permit_timeouts");
/// The id of a permit.
pub const PERMIT: Parameter = Parameter::argument("permit");
/// All ids of permits.
pub const PERMITS: Parameter = Parameter::rest("permits");
/// The sum of the client's clock and the lease.
pub const LEASE_DEADLINE: Parameter = Parameter::argument("lease_deadline");
/// The deadline of a permit that has none.
pub const NEVER: Parameter = Parameter::argument("never");

/// The deadline that Redisson gives to a permit without a lease.
pub const NEVER_MS: i64 = 922_337_203_685_477;

pub const ARGUMENTS: Arguments = Arguments {
    passed_keys: &[("timeoutName", TIMEOUTS)],
    passed_args: &[
        ("permitId", PERMIT),
        ("decodeHexDump(permitId)", PERMIT),
        ("generateId()", PERMIT),
        ("id", PERMIT),
        ("decodeHexDump(next())", PERMITS),
        ("timeoutDate", LEASE_DEADLINE),
        ("calcTimeout(", LEASE_DEADLINE),
        ("922337203685477", NEVER),
        ("1", COUNT),
        ("size()", COUNT),
    ],
    keys: &[
        ("'zscore',KEYS[", TIMEOUTS),
        ("'zrangebyscore',KEYS[", TIMEOUTS),
        ("'zrem',KEYS[", TIMEOUTS),
        ("'zcount',KEYS[", TIMEOUTS),
    ],
    args_of: &[
        (TRY_SET, "'set',KEYS[1],ARGV[", COUNT),
        (SET, "'set',KEYS[1],ARGV[", COUNT),
        (ADD, "tonumber(value)+tonumber(ARGV[", COUNT),
        (ACQUIRE, "'limit',0,ARGV[", COUNT),
        (ACQUIRE, "'zadd',KEYS[2],ARGV[", LEASE_DEADLINE),
        (ACQUIRE, "'zadd',KEYS[2],ARGV[2],ARGV[", PERMIT),
        (ACQUIRE, "v[2]~=ARGV[", NEVER),
        (RELEASE, "'zrem',KEYS[3],ARGV[", PERMIT),
        (RELEASE, "'incrby',KEYS[1],ARGV[", COUNT),
        (UPDATE_LEASE, "'zscore',KEYS[2],ARGV[", PERMIT),
        (UPDATE_LEASE, "'zadd',KEYS[2],ARGV[", LEASE_DEADLINE),
        (LEASE, "'zscore',KEYS[2],ARGV[", PERMIT),
        (LEASE, "tonumber(value)==tonumber(ARGV[", NEVER),
    ],
    adjust,
    readable: &[PERMIT, PERMITS, LEASE_DEADLINE, NEVER],
    ..Arguments::COMMON
};

fn adjust(role: Role, script: &[u8], draft: &mut Draft) {
    if role == RELEASE_ALL {
        draft.set_arg(Some(1), COUNT);
    }
    if contains(script, b"#ARGV") {
        let first = digit_after(script, "fori=");
        draft.args.truncate(first.map_or(draft.args.len(), |first| first.saturating_sub(1)));
        draft.args.push(Some(PERMITS));
    }
}

/// Returns the id of a permit, 16 bytes long.
pub fn permit_id(number: u64) -> [u8; 16] {
    let mut id = *b"p000000000000000";
    let mut rest = number;
    for digit in id[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    id
}

/// Returns the number of the permit for which [`permit_id`] returned this id, or `None` if it has another form.
pub fn permit_number(id: &[u8]) -> Option<u64> {
    std::str::from_utf8(id.strip_prefix(b"p")?).ok()?.parse().ok()
}
