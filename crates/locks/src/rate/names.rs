//! The keys and arguments of a rate limiter.

use super::roles::*;
use crate::binding::{Arguments, CLOCK_MS, COUNT, Draft, LOCK, Parameter};
use crate::model::{OWNER_IDS, OWNERS};
use crate::role::Role;
use crate::text::contains;

/// The permits that are left: those that all clients share, and those of one client.
pub const LEFT: Parameter = Parameter::data_key("left");
pub const CLIENT_LEFT: Parameter = Parameter::data_key("client_left");
/// The permits that were handed out, likewise.
pub const TAKEN: Parameter = Parameter::data_key("taken");
pub const CLIENT_TAKEN: Parameter = Parameter::data_key("client_taken");
/// The permits in each interval.
pub const RATE: Parameter = Parameter::argument("rate");
pub const INTERVAL_MS: Parameter = Parameter::argument("interval_ms");
/// Whether clients share the permits, 0, or have their own, 1.
pub const SCOPE: Parameter = Parameter::argument("scope");
/// How long an unused rate limiter lives.
pub const KEEP_ALIVE_MS: Parameter = Parameter::argument("keep_alive_ms");
/// What tells two grants of the same instant apart: a number, or 16 bytes.
pub const RANDOM_NUMBER: Parameter = Parameter::argument("random_number");
pub const RANDOM: Parameter = Parameter::argument("random");
/// Whether a new rate leaves the permits that were handed out as they are.
pub const KEEPS_TAKEN: Parameter = Parameter::argument("keeps_taken");
/// Whether a rate is set only where there is one.
pub const ONLY_EXISTING: Parameter = Parameter::argument("only_existing");

const KEYS: &[Parameter] = &[LOCK, LEFT, CLIENT_LEFT, TAKEN, CLIENT_TAKEN];
const SETS: &[Parameter] = &[RATE, INTERVAL_MS, SCOPE, KEEP_ALIVE_MS, CLOCK_MS, KEEPS_TAKEN, ONLY_EXISTING];

pub const ARGUMENTS: Arguments = Arguments {
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
    // Some releases passed two of the keys only, and clients had none of their own.
    if role == SET && contains(script, b"'del',KEYS[2],KEYS[3])") {
        draft.keys[2] = Some(TAKEN);
    }
    if contains(script, b"struct.pack('fI'")
        && let Some(random) = draft.args.get_mut(2)
    {
        *random = Some(RANDOM_NUMBER);
    }
}

/// The names that only a rate limiter has: permits left and taken, for all clients and for each.
pub struct PermitNames {
    pub left: String,
    pub taken: String,
    pub client_left: [String; OWNERS],
    pub client_taken: [String; OWNERS],
}

impl PermitNames {
    pub fn new(lock: &str) -> PermitNames {
        PermitNames {
            left: format!("{{{lock}}}:value"),
            taken: format!("{{{lock}}}:permits"),
            client_left: OWNER_IDS.map(|owner| format!("{{{lock}}}:value:{}", client_of(owner))),
            client_taken: OWNER_IDS.map(|owner| format!("{{{lock}}}:permits:{}", client_of(owner))),
        }
    }
}

/// Returns the client of an owner.
fn client_of(owner: &str) -> &str {
    owner.split(':').next().unwrap_or(owner)
}
