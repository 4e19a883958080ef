//! The keys and arguments of a fair lock.

use super::roles::*;
use crate::binding::{Arguments, Draft, MESSAGE, Parameter};
use crate::model::{OWNER_IDS, OWNERS};
use crate::role::Role;
use crate::text::{contains, digit_after};

/// The list of waiters.
pub const QUEUE: Parameter = Parameter::data_key("queue");
/// The sorted set of the waiters' deadlines.
pub const TIMEOUTS: Parameter = Parameter::data_key("timeouts");
/// A key that shows that one waiter is alive, in releases from before deadlines.
pub const WAITER: Parameter = Parameter::data_key("waiter");
pub const WAIT_MS: Parameter = Parameter::argument("wait_ms");
/// The sum of the client's clock and the wait.
pub const WAIT_DEADLINE: Parameter = Parameter::argument("wait_deadline");

pub const ARGUMENTS: Arguments = Arguments {
    passed_keys: &[
        ("threadsQueueName", QUEUE),
        ("getThreadsQueueName()", QUEUE),
        ("timeoutSetName", TIMEOUTS),
        ("getTimeoutSetName()", TIMEOUTS),
        ("getThreadElementName(", WAITER),
    ],
    // The wait was fixed at 5 s. Older clients add their clock to it themselves.
    passed_args: &[
        ("waitTime", WAIT_MS),
        ("threadWaitTime", WAIT_MS),
        ("5000", WAIT_MS),
        ("currentTimeMillis()+5000", WAIT_DEADLINE),
    ],
    keys: &[
        ("localnextThreadId=redis.call('lindex',KEYS[", QUEUE),
        ("'lindex',KEYS[", QUEUE),
        ("'exists',KEYS[3])==0thenredis.call('rpush',KEYS[2],ARGV[2]);redis.call('set',KEYS[", WAITER),
        ("redis.call('lpop',KEYS[2]);redis.call('del',KEYS[", WAITER),
        ("'lrem',KEYS[", QUEUE),
        ("'lrange',KEYS[", QUEUE),
        ("'zscore',KEYS[", TIMEOUTS),
        ("'zrem',KEYS[", TIMEOUTS),
    ],
    args_of: &[
        (TRY_ACQUIRE, "-tonumber(ARGV[", WAIT_MS),
        (NONREENTRANT_TRY_ACQUIRE, "-tonumber(ARGV[", WAIT_MS),
        (ACQUIRE, "KEYS[3],ttl+tonumber(ARGV[", WAIT_MS),
        (ABANDON, "-tonumber(ARGV[", WAIT_MS),
    ],
    args: &[
        ("'publish',KEYS[2]..':'..nextThreadId,ARGV[", MESSAGE),
        ("'publish',KEYS[3]..':'..nextThreadId,ARGV[", MESSAGE),
        ("'publish',KEYS[4]..':'..nextThreadId,ARGV[", MESSAGE),
        ("],KEYS[4]..':'..nextThreadId,ARGV[", MESSAGE),
    ],
    without_lock: &[ABANDON],
    adjust,
    readable: &[WAIT_MS, WAIT_DEADLINE],
    ..Arguments::COMMON
};

fn adjust(role: Role, script: &[u8], draft: &mut Draft) {
    if matches!(role, ACQUIRE | NONREENTRANT_ACQUIRE) {
        // Older clients add their clock to the wait themselves.
        let wait = if contains(script, b"=ttl+tonumber(ARGV[3])+") { WAIT_MS } else { WAIT_DEADLINE };
        draft.set_arg(digit_after(script, "localtimeout=ttl+tonumber(ARGV["), wait);
    }
}

/// The names that only fair locks have.
#[derive(Clone)]
pub struct QueueNames {
    pub queue: String,
    pub timeouts: String,
    /// The keys that show that waiters are alive.
    pub waiters: [String; OWNERS],
}

impl QueueNames {
    /// Returns the names that belong to the lock `lock`.
    pub fn new(lock: &str) -> QueueNames {
        QueueNames {
            queue: format!("redisson_lock_queue:{{{lock}}}"),
            timeouts: format!("redisson_lock_timeout:{{{lock}}}"),
            waiters: OWNER_IDS.map(|owner| format!("redisson_lock_thread:{{{lock}}}:{owner}")),
        }
    }
}
