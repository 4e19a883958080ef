//! Which argument of a lock script is what.
//!
//! The same operation takes other arguments in other releases. The text of a script tells: what `hincrby` counts under is the
//! owner, what `pexpire` gets is the lease.

use super::role::{Role, contains, digit_after, owner_index, time_index};

/// The meaning of a key or an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The object itself.
    Lock,
    /// Where waiters are told; for fair locks the beginning of it.
    Channel,
    /// What remembers the reply to a request.
    Latch,
    /// A fair lock's list of waiters.
    Queue,
    /// A fair lock's deadlines of waiters, or a semaphore's of permits.
    Timeouts,
    /// The beginning of the keys of one reader's holds.
    Holds,
    /// The beginning of the keys of all readers' holds.
    AllHolds,
    /// A fenced lock's counter.
    Token,
    /// A fair lock's sign of life of one waiter, in releases before they had deadlines.
    Waiter,
    /// A rate limiter's permits that are left: those that all clients share, and those of one client.
    Left,
    ClientLeft,
    /// A rate limiter's permits that were handed out, likewise.
    Taken,
    ClientTaken,

    Owner,
    /// The owner as a writer.
    Writer,
    LeaseMs,
    WaitMs,
    /// The client's clock, Unix time in ms.
    Now,
    /// The client's clock and the wait together.
    WaitDeadline,
    /// The client's clock and the lease together.
    LeaseDeadline,
    /// The deadline of a permit that has none.
    Never,
    /// What waiters are told.
    Message,
    /// `PUBLISH` or `SPUBLISH`.
    Publish,
    LatchTtlMs,
    /// How many permits, or how often to count down.
    Count,
    /// How many owners follow.
    Owners,
    /// The id of a permit.
    Permit,
    /// All ids of permits; takes up the rest.
    Permits,
    /// A word of an error.
    Word,
    /// All members of a group; takes up the rest.
    Members,

    /// A rate limiter's permits in each interval.
    Rate,
    IntervalMs,
    /// Whether clients share the permits, 0, or have their own, 1.
    Scope,
    /// How long an unused rate limiter lives.
    KeepAliveMs,
    /// What tells two grants of the same instant apart: a number, or 16 bytes.
    RandomNumber,
    Random,
    /// Whether a new rate leaves the permits that were handed out as they are.
    KeepsTaken,
    /// Whether a rate is set only where there is one.
    OnlyExisting,
}

/// What a script takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub keys: Vec<Slot>,
    pub args: Vec<Slot>,
}

impl Binding {
    /// Reads the arguments of a script with a known role out of its text. The error says which is not understood.
    pub fn of(role: Role, script: &[u8]) -> Result<Binding, String> {
        if let Some(binding) = Binding::in_order(role, script) {
            return Ok(binding);
        }
        let batch = contains(script, b"#KEYS");
        let mut keys = vec![None; count(script, b"KEYS[")];
        let mut args = vec![None; count(script, b"ARGV[")];
        let set = |slots: &mut Vec<Option<Slot>>, index: Option<usize>, slot: Slot| {
            if let Some(place) = index.and_then(|index| slots.get_mut(index.checked_sub(1)?)) {
                place.get_or_insert(slot);
            }
        };
        if batch {
            // One object at a time.
            keys = vec![Some(Slot::Lock)];
            if contains(script, b"#KEYS,2do") {
                keys.push(Some(Slot::AllHolds));
            }
            let owner = owner_index(script).unwrap_or(2);
            args = vec![None; owner];
            set(&mut args, Some(1), Slot::LeaseMs);
            set(&mut args, Some(owner), Slot::Owner);
            set(&mut args, Some(2), Slot::Owners);
        }
        let at = |words: &str| digit_after(script, words.as_bytes());
        if role != Role::FairAbandon {
            set(&mut keys, Some(1), Slot::Lock);
        }
        for (words, slot) in KEYS {
            set(&mut keys, at(words), *slot);
        }
        if contains(script, b"redis.call(ARGV[") {
            set(&mut keys, at("],KEYS["), Slot::Channel);
        }
        set(&mut args, owner_index(script), Slot::Owner);
        set(&mut args, time_index(script), Slot::Now);
        for (of, words, slot) in ARGS_OF {
            if role == *of {
                set(&mut args, at(words), *slot);
            }
        }
        for (words, slot) in ARGS {
            set(&mut args, at(words), *slot);
        }
        match role {
            Role::ReadRenew => set(&mut keys, Some(2), Slot::AllHolds),
            Role::PermitReleaseAll => set(&mut args, Some(1), Slot::Count),
            _ => {}
        }
        if matches!(role, Role::FairAcquire | Role::FairNonReentrantAcquire) {
            // Older clients add their clock themselves.
            let slot = match contains(script, b"=ttl+tonumber(ARGV[3])+") {
                true => Slot::WaitMs,
                false => Slot::WaitDeadline,
            };
            set(&mut args, at("localtimeout=ttl+tonumber(ARGV["), slot);
        }
        let whole = |slots: Vec<Option<Slot>>, name: &str| -> Result<Vec<Slot>, String> {
            let slots = slots.into_iter().enumerate();
            slots
                .map(|(index, slot)| slot.ok_or_else(|| format!("{name}[{}] is not understood", index + 1)))
                .collect()
        };
        let mut args: Vec<Slot> = whole(args, "ARGV")?;
        if contains(script, b"#ARGV") {
            args.truncate(at("fori=").map_or(args.len(), |first| first - 1));
            args.push(Slot::Permits);
        }
        Ok(Binding { keys: whole(keys, "KEYS")?, args })
    }

    /// The arguments of a script that kept their order through all releases and at most got more of them.
    fn in_order(role: Role, script: &[u8]) -> Option<Binding> {
        let (_, keys, args) = IN_ORDER.iter().find(|(of, ..)| *of == role)?;
        let (mut keys, mut args) = (keys.to_vec(), args.to_vec());
        keys.truncate(count(script, b"KEYS["));
        if args.last() != Some(&Slot::Members) {
            args.truncate(count(script, b"ARGV["));
        }
        // Some releases passed two of the keys only, and had no clients' own.
        if role == Role::RateSet && contains(script, b"'del',KEYS[2],KEYS[3])") {
            keys[2] = Slot::Taken;
        }
        if contains(script, b"struct.pack('fI'") {
            args[2] = Slot::RandomNumber;
        }
        Some(Binding { keys, args })
    }

    /// Whether a request carries an id of its own, so that a second execution can be told from a second request.
    pub fn has_latch(&self) -> bool {
        self.keys.contains(&Slot::Latch)
    }
}

/// Keys and arguments by their place.
const IN_ORDER: &[(Role, &[Slot], &[Slot])] = {
    use Slot::*;
    const RATE: &[Slot] = &[Lock, Left, ClientLeft, Taken, ClientTaken];
    const SET: &[Slot] = &[Rate, IntervalMs, Scope, KeepAliveMs, Now, KeepsTaken, OnlyExisting];
    &[
        (Role::RateTrySet, RATE, SET),
        (Role::RateSet, RATE, SET),
        (Role::RateUpdate, RATE, SET),
        (Role::RateAcquire, RATE, &[Count, Now, Random]),
        (Role::RateAvailable, RATE, &[Now]),
        (Role::RateRelease, RATE, &[Count]),
        (Role::FasterAcquire, &[Lock], &[LeaseMs, Now, Owner, Members]),
        (Role::FasterTryAcquire, &[Lock], &[Now, LeaseMs, Owner, Members]),
        (
            Role::FasterUnlock,
            &[Lock, Channel, Latch],
            &[Owner, Message, LeaseMs, Publish, LatchTtlMs, Now, Members],
        ),
        (Role::FasterRenew, &[Lock], &[LeaseMs, Now, Owner, Members]),
        (Role::FasterForceUnlock, &[Lock, Channel], &[Message, Publish, Members]),
        (Role::FasterIsHeld, &[Lock], &[Now, Owner, Members]),
        (Role::FasterIsLocked, &[Lock], &[Now, Members]),
    ]
};

/// Words before the index of a key. The first that fits counts.
const KEYS: &[(&str, Slot)] = &[
    ("localval=redis.call('get',KEYS[", Slot::Latch),
    ("'publish',KEYS[", Slot::Channel),
    ("localnextThreadId=redis.call('lindex',KEYS[", Slot::Queue),
    ("'lindex',KEYS[", Slot::Queue),
    ("'exists',KEYS[3])==0thenredis.call('rpush',KEYS[2],ARGV[2]);redis.call('set',KEYS[", Slot::Waiter),
    ("redis.call('lpop',KEYS[2]);redis.call('del',KEYS[", Slot::Waiter),
    ("'hincrby',KEYS[1],KEYS[", Slot::Owner),
    ("'hdel',KEYS[1],KEYS[", Slot::Owner),
    ("'lrem',KEYS[", Slot::Queue),
    ("'lrange',KEYS[", Slot::Queue),
    ("'zscore',KEYS[", Slot::Timeouts),
    ("'zrangebyscore',KEYS[", Slot::Timeouts),
    ("'zrem',KEYS[", Slot::Timeouts),
    ("'zcount',KEYS[", Slot::Timeouts),
    ("'set',KEYS[2]..':1',", Slot::Holds),
    ("'set',KEYS[", Slot::Holds),
    ("'del',KEYS[", Slot::Holds),
    ("'pttl',KEYS[", Slot::AllHolds),
    ("key..':rwlock_timeout", Slot::AllHolds),
    ("'incr',KEYS[", Slot::Token),
];

/// Words before the index of an argument.
const ARGS: &[(&str, Slot)] = &[
    ("'publish',KEYS[2],ARGV[", Slot::Message),
    ("'publish',KEYS[3],ARGV[", Slot::Message),
    ("'publish',KEYS[2]..':'..nextThreadId,ARGV[", Slot::Message),
    ("'publish',KEYS[3]..':'..nextThreadId,ARGV[", Slot::Message),
    ("'publish',KEYS[4]..':'..nextThreadId,ARGV[", Slot::Message),
    ("redis.call(ARGV[", Slot::Publish),
    ("],KEYS[2],ARGV[", Slot::Message),
    ("],KEYS[4]..':'..nextThreadId,ARGV[", Slot::Message),
    (",1,'px',ARGV[", Slot::LatchTtlMs),
    ("'pexpire',KEYS[1],ARGV[", Slot::LeaseMs),
    ("currentExpire+ARGV[", Slot::LeaseMs),
    ("cjson.encode(o),'px',ARGV[", Slot::LeaseMs),
    ("error_reply(ARGV[", Slot::Word),
];

/// The same for one role.
const ARGS_OF: &[(Role, &str, Slot)] = &[
    (Role::ReadAcquire, "'hexists',KEYS[1],ARGV[", Slot::Writer),
    (Role::FairTryAcquire, "-tonumber(ARGV[", Slot::WaitMs),
    (Role::FairNonReentrantTryAcquire, "-tonumber(ARGV[", Slot::WaitMs),
    (Role::FairAcquire, "KEYS[3],ttl+tonumber(ARGV[", Slot::WaitMs),
    (Role::FairAbandon, "-tonumber(ARGV[", Slot::WaitMs),
    (Role::SemaphoreAcquire, "'decrby',KEYS[1],ARGV[", Slot::Count),
    (Role::SemaphoreRelease, "'incrby',KEYS[1],ARGV[", Slot::Count),
    (Role::SemaphoreReleaseIfExists, "'incrby',KEYS[1],ARGV[", Slot::Count),
    (Role::SemaphoreTrySet, "'set',KEYS[1],ARGV[", Slot::Count),
    (Role::SemaphoreSet, "'set',KEYS[1],ARGV[", Slot::Count),
    (Role::SemaphoreAdd, "value+ARGV[", Slot::Count),
    (Role::SemaphoreReduce, "value-ARGV[", Slot::Count),
    (Role::PermitTrySet, "'set',KEYS[1],ARGV[", Slot::Count),
    (Role::PermitSet, "'set',KEYS[1],ARGV[", Slot::Count),
    (Role::PermitAdd, "tonumber(value)+tonumber(ARGV[", Slot::Count),
    (Role::PermitAcquire, "'limit',0,ARGV[", Slot::Count),
    (Role::PermitAcquire, "'zadd',KEYS[2],ARGV[", Slot::LeaseDeadline),
    (Role::PermitAcquire, "'zadd',KEYS[2],ARGV[2],ARGV[", Slot::Permit),
    (Role::PermitAcquire, "v[2]~=ARGV[", Slot::Never),
    (Role::PermitRelease, "'zrem',KEYS[3],ARGV[", Slot::Permit),
    (Role::PermitRelease, "'incrby',KEYS[1],ARGV[", Slot::Count),
    (Role::PermitUpdateLease, "'zscore',KEYS[2],ARGV[", Slot::Permit),
    (Role::PermitUpdateLease, "'zadd',KEYS[2],ARGV[", Slot::LeaseDeadline),
    (Role::PermitLease, "'zscore',KEYS[2],ARGV[", Slot::Permit),
    (Role::PermitLease, "tonumber(value)==tonumber(ARGV[", Slot::Never),
    (Role::SemaphoreTrySetFor, "'set',KEYS[1],ARGV[", Slot::Count),
    (Role::SemaphoreTrySetFor, "'px',ARGV[", Slot::LeaseMs),
    (Role::LatchTrySet, "'set',KEYS[1],ARGV[", Slot::Count),
];

/// The highest index that a script uses.
fn count(script: &[u8], words: &[u8]) -> usize {
    let digits = memchr::memmem::find_iter(script, words).filter_map(|at| script.get(at + words.len()));
    digits.filter_map(|digit| char::from(*digit).to_digit(10)).max().unwrap_or(0) as usize
}
