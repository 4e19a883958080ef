//! The names of a lock object's keys and channels, in Redisson's format.

use super::args::Args;
use super::binding::*;
use super::model::{Call, LATCH_TTL_MS, OWNER_IDS};

/// The error with which a lock that is not re-entrant refuses its owner.
pub const REACQUIRED: &str = "NON_REENTRANT_REACQUIRE";

/// The names that all objects have. Each object's folder adds its own.
#[derive(Clone, Debug)]
pub struct Names {
    pub lock: String,
    pub channel: String,
    /// The prefix of the keys that remember requests.
    latch: String,
}

impl Names {
    /// Creates the names of an object whose channel name Redisson derives from the object's name.
    pub fn new(lock: &str, channel: &str) -> Names {
        Names::with_channel(lock, format!("{channel}:{{{lock}}}"))
    }

    /// Creates the names of an object with this channel.
    pub fn with_channel(lock: &str, channel: String) -> Names {
        Names { channel, latch: format!("redisson_unlock_latch:{{{lock}}}:"), lock: lock.to_owned() }
    }

    /// Writes a key or an argument for a shared parameter. Writes nothing for a parameter of a single object.
    pub fn write(&self, parameter: Parameter, call: &Call, out: &mut Args) {
        match parameter {
            LOCK => out.text(&self.lock),
            CHANNEL => out.text(&self.channel),
            LATCH => {
                out.text(&self.latch);
                out.extend_hex(call.request);
            }
            OWNER => out.text(OWNER_IDS[call.owner]),
            LEASE_MS => out.int(call.lease_ms),
            CLOCK_MS => out.int(call.clock_ms()),
            MESSAGE => out.text("0"),
            PUBLISH => out.text("PUBLISH"),
            LATCH_TTL => out.int(LATCH_TTL_MS),
            COUNT => out.int(call.count),
            OWNER_COUNT => out.int(1),
            REFUSAL => out.text(REACQUIRED),
            CLIENT => out.text(client_of(OWNER_IDS[call.owner])),
            _ => {}
        }
    }
}

/// Returns the client part of an owner's id.
pub fn client_of(owner: &str) -> &str {
    owner.split(':').next().unwrap_or(owner)
}
