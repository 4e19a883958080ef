//! The keys and arguments of a rate limiter.

use super::roles::*;
use crate::binding::{Arguments, CLIENT, CLOCK_MS, COUNT, Draft, LOCK, Parameter};
use crate::model::{OWNER_IDS, OWNERS};
use crate::names::client_of;
use crate::role::Role;
use crate::text::contains;

/// The permits left: those that all clients share, and those of one client.
pub const LEFT: Parameter = Parameter::data_key("left");
pub const CLIENT_LEFT: Parameter = Parameter::data_key("client_left");
/// The granted permits: of all clients, and of one client.
pub const TAKEN: Parameter = Parameter::data_key("taken");
pub const CLIENT_TAKEN: Parameter = Parameter::data_key("client_taken");
/// The number of permits in each interval.
pub const RATE: Parameter = Parameter::argument("rate");
pub const INTERVAL_MS: Parameter = Parameter::argument("interval_ms");
/// Whether all clients share the permits (0), or each has its own (1).
pub const SCOPE: Parameter = Parameter::argument("scope");
/// How long an unused rate limiter lives, in ms.
pub const KEEP_ALIVE_MS: Parameter = Parameter::argument("keep_alive_ms");
/// A value that distinguishes two grants at the same time: a number, or 16 bytes.
pub const RANDOM_NUMBER: Parameter = Parameter::argument("random_number");
pub const RANDOM: Parameter = Parameter::argument("random");
/// Whether granted permits still count after the rate is set anew.
pub const KEEPS_TAKEN: Parameter = Parameter::argument("keeps_taken");
/// Whether a rate is set only if there is one already.
pub const ONLY_EXISTING: Parameter = Parameter::argument("only_existing");

const KEYS: &[Parameter] = &[LOCK, LEFT, CLIENT_LEFT, TAKEN, CLIENT_TAKEN];
const SETS: &[Parameter] = &[RATE, INTERVAL_MS, SCOPE, KEEP_ALIVE_MS, CLOCK_MS, KEEPS_TAKEN, ONLY_EXISTING];

pub const ARGUMENTS: Arguments = Arguments {
    passed_keys: &[
        ("getValueName()", LEFT),
        ("getClientValueName()", CLIENT_LEFT),
        ("getPermitsName()", TAKEN),
        ("getClientPermitsName()", CLIENT_TAKEN),
    ],
    passed_args: &[
        ("rate", RATE),
        ("getRate()", RATE),
        ("rateInterval", INTERVAL_MS),
        ("getRateInterval()", INTERVAL_MS),
        ("ordinal()", SCOPE),
        ("keepAliveTime", KEEP_ALIVE_MS),
        ("getKeepAliveTime()", KEEP_ALIVE_MS),
        ("timeToLive", KEEP_ALIVE_MS),
        ("value", COUNT),
        ("nextLong()", RANDOM_NUMBER),
        ("generateIdArray()", RANDOM),
        ("new array", RANDOM),
        ("getId()", CLIENT),
        ("1", KEEPS_TAKEN),
        ("1", ONLY_EXISTING),
    ],
    in_order: &[
        (TRY_SET, KEYS, SETS),
        (SET, KEYS, SETS),
        (UPDATE, KEYS, SETS),
        (ACQUIRE, KEYS, &[COUNT, CLOCK_MS, RANDOM]),
        (AVAILABLE, KEYS, &[CLOCK_MS]),
        (RELEASE, KEYS, &[COUNT]),
    ],
    adjust,
    ..Arguments::COMMON
};

fn adjust(role: Role, script: &[u8], draft: &mut Draft) {
    // In some releases clients had no keys of their own, and this script took only two of the keys.
    if role == SET && contains(script, b"'del',KEYS[2],KEYS[3])") {
        draft.keys[2] = Some(TAKEN);
    }
    if contains(script, b"struct.pack('fI'")
        && let Some(random) = draft.args.get_mut(2)
    {
        *random = Some(RANDOM_NUMBER);
    }
}

/// The names that only rate limiters have: permits left and granted, for all clients and for each.
#[derive(Clone)]
pub struct PermitNames {
    pub left: String,
    pub taken: String,
    pub client_left: [String; OWNERS],
    pub client_taken: [String; OWNERS],
}

impl PermitNames {
    /// Returns the names that belong to the limiter `lock`.
    pub fn new(lock: &str) -> PermitNames {
        PermitNames {
            left: format!("{{{lock}}}:value"),
            taken: format!("{{{lock}}}:permits"),
            client_left: OWNER_IDS.map(|owner| format!("{{{lock}}}:value:{}", client_of(owner))),
            client_taken: OWNER_IDS.map(|owner| format!("{{{lock}}}:permits:{}", client_of(owner))),
        }
    }
}
