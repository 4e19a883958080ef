//! The keys and arguments of a read/write lock.

use super::roles::{READ_ACQUIRE, READ_RENEW};
use crate::binding::{Arguments, Draft, LEASE_MS, MESSAGE, OWNER, OWNER_COUNT, Parameter};
use crate::model::{OWNER_IDS, OWNERS};
use crate::role::Role;

/// The prefix of the keys of one reader's holds.
pub const HOLDS: Parameter = Parameter::name("holds");
/// The prefix of the keys of all readers' holds.
pub const ALL_HOLDS: Parameter = Parameter::name("all_holds");
/// The owner's id as a writer.
pub const WRITER: Parameter = Parameter::argument("writer");
/// An owner that is passed as a key, as in the first releases.
pub const OWNER_KEY: Parameter = Parameter::data_key("owner_key");

pub const ARGUMENTS: Arguments = Arguments {
    passed_keys: &[
        ("getReadWriteTimeoutNamePrefix(", HOLDS),
        ("getKeyPrefix(", ALL_HOLDS),
        ("split(", ALL_HOLDS),
        ("getLockName()", OWNER_KEY),
    ],
    // A renewal passes the ids of all threads that read.
    passed_args: &[
        ("getWriteLockName(", WRITER),
        ("size()", OWNER_COUNT),
        ("*values()", OWNER),
        ("readUnlockMessage", MESSAGE),
        ("READ_UNLOCK_MESSAGE", MESSAGE),
    ],
    keys: &[
        ("'hincrby',KEYS[1],KEYS[", OWNER_KEY),
        ("'hdel',KEYS[1],KEYS[", OWNER_KEY),
        ("'set',KEYS[2]..':1',", HOLDS),
        ("'set',KEYS[", HOLDS),
        ("'del',KEYS[", HOLDS),
        ("'pttl',KEYS[", ALL_HOLDS),
        ("key..':rwlock_timeout", ALL_HOLDS),
    ],
    args_of: &[(READ_ACQUIRE, "'hexists',KEYS[1],ARGV[", WRITER)],
    args: &[("currentExpire+ARGV[", LEASE_MS)],
    adjust,
    readable: &[WRITER],
    ..Arguments::COMMON
};

fn adjust(role: Role, _: &[u8], draft: &mut Draft) {
    if role == READ_RENEW {
        draft.set_key(Some(2), ALL_HOLDS);
    }
}

/// The names that only read/write locks have.
#[derive(Clone)]
pub struct HoldNames {
    pub holds: [String; OWNERS],
    pub all_holds: String,
    pub writers: [String; OWNERS],
}

impl HoldNames {
    /// Returns the names that belong to the lock `lock`.
    pub fn new(lock: &str) -> HoldNames {
        HoldNames {
            holds: OWNER_IDS.map(|owner| format!("{{{lock}}}:{owner}:rwlock_timeout")),
            all_holds: format!("{{{lock}}}"),
            writers: OWNER_IDS.map(|owner| format!("{owner}:write")),
        }
    }
}

/// The number of holds of one reader that models examine one by one.
pub const HOLD_DEPTH: usize = 4;

/// The field that says whether readers or a writer hold the lock.
pub const MODE: &[u8] = b"mode";

/// Returns the prefixes that the keys of an owner's holds can have. `seen` is the text before and after the owner in a
/// key that a client has used.
pub fn hold_prefixes(lock: &[u8], owner: &[u8], seen: Option<&(Vec<u8>, Vec<u8>)>) -> [Vec<u8>; 2] {
    let current = match seen {
        Some((front, back)) => [front, owner, back].concat(),
        None if lock.contains(&b'{') => [lock, b":", owner, b":rwlock_timeout"].concat(),
        None => [b"{", lock, b"}:", owner, b":rwlock_timeout"].concat(),
    };
    // Older releases put the lock's plain name before the owner.
    let old = [lock, b":", owner, b":rwlock_timeout"].concat();
    [current, old]
}

/// Returns the prefix of the keys of an owner's holds in releases up to 3.5.4.
pub fn old_holds(lock: &str, owner: usize) -> String {
    format!("{lock}:{}:rwlock_timeout", OWNER_IDS[owner])
}
