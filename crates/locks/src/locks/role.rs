//! What a lock script does, told by its text alone.
//!
//! A script is known by the commands that it names, in their order, and where that is not enough by a few words of its
//! text. Spaces do not count. The table covers Redisson from 2.2 to 4.7; a script that was changed so that it calls something
//! else is not recognised, one with other words around the same calls is.
//!
//! ```
//! use redlatch_locks::locks::role::{Role, recognise};
//!
//! let script = b"if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
//!     redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;";
//! let found = recognise(script).unwrap();
//! assert_eq!((found.role, found.owner), (Role::RlockRenew, Some(2)));
//! assert_eq!(found.role.name(), "rlock.renew");
//! ```

use smallvec::SmallVec;

/// An operation of a lock object. Its name says which object and which operation.
macro_rules! roles {
    ($($role:ident $name:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role { $($role),* }

        impl Role {
            pub const ALL: &[Role] = &[$(Role::$role),*];

            /// `object.operation`: `rlock.acquire`, `rw.read.unlock`.
            pub fn name(self) -> &'static str {
                match self { $(Role::$role => $name),* }
            }
        }
    };
}

roles! {
    RlockAcquire "rlock.acquire"
    RlockUnlock "rlock.unlock"
    RlockRenew "rlock.renew"
    RlockForceUnlock "rlock.force_unlock"
    RlockHoldCount "rlock.hold_count"
    RlockIsHeld "rlock.is_held"
    NonReentrantAcquire "nonreentrant.acquire"
    SpinAcquire "spin.acquire"
    SpinUnlock "spin.unlock"
    SpinForceUnlock "spin.force_unlock"
    FencedAcquire "fenced.acquire"
    FencedAcquireToken "fenced.acquire_token"
    FairTryAcquire "fair.try_acquire"
    FairAcquire "fair.acquire"
    FairUnlock "fair.unlock"
    FairForceUnlock "fair.force_unlock"
    FairAbandon "fair.abandon"
    FairNonReentrantTryAcquire "fair.nonreentrant.try_acquire"
    FairNonReentrantAcquire "fair.nonreentrant.acquire"
    ReadAcquire "rw.read.acquire"
    ReadUnlock "rw.read.unlock"
    ReadRenew "rw.read.renew"
    ReadForceUnlock "rw.read.force_unlock"
    ReadIsLocked "rw.read.is_locked"
    WriteAcquire "rw.write.acquire"
    WriteUnlock "rw.write.unlock"
    WriteForceUnlock "rw.write.force_unlock"
    RwForceUnlock "rw.force_unlock"
    SemaphoreAcquire "semaphore.acquire"
    SemaphoreRelease "semaphore.release"
    SemaphoreReleaseIfExists "semaphore.release_if_exists"
    SemaphoreTrySet "semaphore.try_set"
    SemaphoreTrySetFor "semaphore.try_set_for"
    SemaphoreSet "semaphore.set"
    SemaphoreAdd "semaphore.add"
    SemaphoreReduce "semaphore.reduce"
    SemaphoreDrain "semaphore.drain"
    PermitAcquire "permit.acquire"
    PermitRelease "permit.release"
    PermitReleaseAll "permit.release_all"
    PermitAvailable "permit.available"
    PermitAcquired "permit.acquired"
    PermitTotal "permit.total"
    PermitTrySet "permit.try_set"
    PermitSet "permit.set"
    PermitAdd "permit.add"
    PermitUpdateLease "permit.update_lease"
    PermitLease "permit.lease"
    LatchTrySet "latch.try_set"
    LatchCountDown "latch.count_down"
    LatchDelete "latch.delete"
    RateTrySet "rate.try_set"
    RateSet "rate.set"
    RateUpdate "rate.update"
    RateAcquire "rate.acquire"
    RateAvailable "rate.available"
    RateRelease "rate.release"
    FasterAcquire "faster.acquire"
    FasterTryAcquire "faster.try_acquire"
    FasterUnlock "faster.unlock"
    FasterRenew "faster.renew"
    FasterForceUnlock "faster.force_unlock"
    FasterIsHeld "faster.is_held"
    FasterIsLocked "faster.is_locked"
    OwnAcquire "own.acquire"
    OwnRelease "own.release"
}

impl Role {
    /// The object: `rlock`, `rw.read`.
    pub fn object(self) -> &'static str {
        self.name().rsplit_once('.').map_or(self.name(), |(object, _)| object)
    }

    /// Texts that objects have in common are told apart by the class they come from.
    pub fn of_class(self, class: &str) -> Role {
        match (self, class) {
            (Role::RlockAcquire, "RedissonSpinLock") => Role::SpinAcquire,
            (Role::SemaphoreTrySet, "RedissonPermitExpirableSemaphore") => Role::PermitTrySet,
            _ => self,
        }
    }
}

/// A recognised script. Indexes count from 1, as in Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognised {
    pub role: Role,
    /// The index in `ARGV` of who calls, `uuid:thread`; of the first one, if the script takes several.
    pub owner: Option<usize>,
    /// The index in `ARGV` of the client's clock, Unix time in ms.
    pub time: Option<usize>,
    /// The index in `KEYS` of the object itself; of the first one, if the script takes several.
    pub lock: Option<usize>,
}

/// What a script does, if it is one of the known lock scripts.
pub fn role(script: &[u8]) -> Option<Role> {
    let commands = commands(script)?;
    let row = TABLE.iter().find(|(_, shape, words)| {
        matches(shape, &commands) && words.split(" & ").all(|word| contains(script, word.as_bytes()))
    })?;
    Some(row.0)
}

/// What a script does and which of its arguments are what.
pub fn recognise(script: &[u8]) -> Option<Recognised> {
    let role = role(script)?;
    let lock = (role != Role::FairAbandon).then_some(1);
    Some(Recognised { role, owner: owner_index(script), time: time_index(script), lock })
}

/// The index in `ARGV` of the owner.
pub(super) fn owner_index(script: &[u8]) -> Option<usize> {
    OWNER.iter().find_map(|(words, add)| Some(digit_after(script, words.as_bytes())? + add))
}

/// The index in `ARGV` of the client's clock.
pub(super) fn time_index(script: &[u8]) -> Option<usize> {
    TIME.iter().find_map(|words| digit_after(script, words.as_bytes()))
}

/// Words before the index of the owner: as a field, as a member, by the name of a variable; and what to add to that index.
const OWNER: &[(&str, usize)] = &[
    ("'hincrby',KEYS[1],ARGV[", 0),
    ("'hexists',KEYS[1],ARGV[", 0),
    ("'hexists',KEYS[i],ARGV[i+", 1),
    ("'lrem',KEYS[1],0,ARGV[", 0),
    ("localcounter=redis.call('hget',KEYS[1],ARGV[", 0),
    ("localj=", 1),
    ("localargIdx=", 1),
    ("currentThread=ARGV[", 0),
    ("lockName=ARGV[", 0),
    ("o['o']==ARGV[", 0),
];

/// Words before the index of the client's clock: what deadlines are compared with.
const TIME: &[&str] = &[
    "timeout<=tonumber(ARGV[",
    "tonumber(timeout)<=tonumber(ARGV[",
    "currentTime=tonumber(ARGV[",
    "tonumber(ARGV[3])+tonumber(ARGV[",
    "'zrangebyscore',KEYS[2],0,ARGV[",
    "'zrangebyscore',KEYS[3],0,ARGV[",
    "tonumber(expire)<=tonumber(ARGV[",
    "permitsName,0,tonumber(ARGV[",
    "now=tonumber(ARGV[",
];

/// Each role with the commands of its scripts and words of their text that tell them from others with the same commands. `x?`
/// may be missing, `x|y` is one of both; `publish` stands for a command that comes from `ARGV` too. The first row that fits counts.
const TABLE: &[(Role, &str, &str)] = &[
    (Role::RlockAcquire, "exists hset|hincrby pexpire hexists hincrby pexpire pttl", ""),
    (Role::RlockAcquire, "exists hexists hincrby pexpire pttl", ""),
    (Role::RlockAcquire, "get set set pttl", "cjson.encode & 'px',ARGV[2]"),
    (Role::NonReentrantAcquire, "exists hincrby pexpire hexists pttl", "error_reply"),
    (Role::RlockUnlock, "exists publish hexists hincrby pexpire del publish", ""),
    (Role::RlockUnlock, "get? hexists hincrby pexpire set? del publish set?", ""),
    (Role::RlockUnlock, "get publish set del publish", "cjson.decode"),
    (Role::RlockHoldCount, "get", "cjson.decode & returno['c']"),
    (Role::RlockIsHeld, "get", "cjson.decode & o['o']==ARGV[1]"),
    (Role::RlockRenew, "hexists pexpire", "==1)then & ARGV[1])"),
    (Role::SpinUnlock, "get? hexists hincrby pexpire set? del set?", ""),
    (Role::SpinForceUnlock, "del", "if(redis.call('del',KEYS[1])==1)thenreturn1elsereturn0end"),
    (Role::FencedAcquireToken, "exists hexists incr hincrby pexpire pttl", "return{-1,token}"),
    (Role::FencedAcquire, "exists hexists incr hincrby pexpire pttl", ""),
    (
        Role::FairTryAcquire,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange? zincrby? hset pexpire hexists hincrby pexpire",
        "",
    ),
    (
        Role::FairTryAcquire,
        "lindex exists lpop exists exists lindex lpop del hset pexpire hexists hincrby pexpire",
        "",
    ),
    (
        Role::FairAcquire,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange? zincrby? hset pexpire hexists hincrby pexpire zscore? pttl? lindex zscore zscore? pttl zadd rpush",
        "",
    ),
    (
        Role::FairAcquire,
        "lindex exists lpop exists exists lindex lpop del hset pexpire hexists hincrby pexpire lindex pttl pttl exists rpush set pexpire",
        "",
    ),
    (
        Role::FairNonReentrantTryAcquire,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange zincrby hset pexpire hexists",
        "",
    ),
    (
        Role::FairNonReentrantAcquire,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange zincrby hset pexpire hexists zscore pttl lindex zscore zscore pttl zadd rpush",
        "",
    ),
    (
        Role::FairUnlock,
        "get? lindex zscore zrem lpop exists lindex publish set? hexists hincrby pexpire set? del set? lindex publish",
        "",
    ),
    (
        Role::FairUnlock,
        "lindex exists lpop exists lindex publish hexists hincrby pexpire del lindex publish",
        "",
    ),
    (Role::FairForceUnlock, "lindex zscore zrem lpop del lindex publish", ""),
    (Role::FairForceUnlock, "lindex exists lpop del lindex publish", ""),
    (Role::FairAbandon, "lindex? lrange? zrange? zincrby? zrem lrem", "'lrem',KEYS[1],0,ARGV[1]"),
    (Role::ReadAcquire, "hget hset hset pexpire hincrby pexpire pttl", "'mode','read'"),
    (
        Role::ReadAcquire,
        "hget hset hset set? pexpire? pexpire hexists hincrby set? pexpire? pttl? pexpire pttl",
        "'mode','read'",
    ),
    (Role::WriteAcquire, "hget hset hset pexpire hexists hincrby pttl? pexpire pttl", "'mode','write'"),
    (
        Role::ReadUnlock,
        "hget publish hexists hincrby pexpire hdel hlen del publish",
        "lockExists & KEYS[3] & mode=='read'",
    ),
    (Role::ReadUnlock, "hget publish hexists hincrby pexpire hdel hlen del publish", "mode=='read'"),
    (
        Role::ReadUnlock,
        "hget publish hexists hincrby del pttl pexpire hdel hlen del publish hdel hlen del publish",
        "",
    ),
    (
        Role::ReadUnlock,
        "get? hget publish set? hexists hincrby hdel del hlen hkeys hget pttl pexpire set? set? del publish set?",
        "",
    ),
    (
        Role::WriteUnlock,
        "get? hget publish set? hexists hincrby pexpire set? hdel hlen del publish hset? set?",
        "mode=='write'",
    ),
    (Role::ReadUnlock, "hget publish hexists hincrby pexpire hdel hlen del publish", "locallockExists"),
    (Role::ReadRenew, "hget pexpire hlen hkeys hget pexpire", ""),
    (Role::ReadRenew, "hget pexpire pexpire", ""),
    (Role::ReadForceUnlock, "hget del publish", "=='read'"),
    (Role::WriteForceUnlock, "hget del publish", "=='write'"),
    (Role::RwForceUnlock, "hdel hlen del publish", "'hdel',KEYS[1],KEYS[2]"),
    (Role::ReadIsLocked, "hget hlen", "mode=='read'"),
    (Role::SemaphoreAcquire, "get decrby", "value~=false & >=tonumber(ARGV[1])"),
    (Role::SemaphoreRelease, "incrby publish", "'incrby',KEYS[1],ARGV[1] & KEYS[2],value"),
    (Role::SemaphoreReleaseIfExists, "exists incrby publish", "'incrby',KEYS[1],ARGV[1] & KEYS[2],value"),
    (Role::SemaphoreTrySetFor, "get set publish", "value==false & return1;end;return0 & 'px',ARGV["),
    (Role::SemaphoreTrySet, "get set publish", "value==false & return1;end;return0"),
    (Role::SemaphoreAdd, "get set publish?", "value=0;end & value+ARGV[1]"),
    (Role::PermitAdd, "get set publish", "value=0;end & tonumber(value)+tonumber(ARGV[1])"),
    (Role::SemaphoreSet, "get set publish", "value==falseorvalue==0"),
    (Role::SemaphoreReduce, "get set", "value-ARGV[1]"),
    (Role::SemaphoreDrain, "get set", "redis.call('set',KEYS[1],0);returnvalue"),
    (Role::PermitAcquire, "zrangebyscore zrem incrby publish get decrby zadd pttl? pexpire? zrange", ""),
    (Role::PermitRelease, "zscore? zrem incrby publish", "zrem',KEYS[3],ARGV[1]"),
    (Role::PermitReleaseAll, "zscore? zrangebyscore zrem incrby publish zrem incrby publish", ""),
    (Role::PermitAcquired, "zrangebyscore zrem incrby publish zcount", ""),
    (Role::PermitTotal, "zrangebyscore zrem incrby publish get zcount", ""),
    (Role::PermitAvailable, "zrangebyscore zrem incrby publish get", ""),
    (Role::PermitLease, "zrangebyscore zrem incrby publish zscore", ""),
    (Role::PermitUpdateLease, "zrangebyscore zrem incrby publish zscore zadd", ""),
    (Role::PermitSet, "get set publish zcount incrby publish", ""),
    (Role::LatchTrySet, "exists set publish", "return1elsereturn0end"),
    (Role::LatchCountDown, "decr del publish", ""),
    (Role::LatchDelete, "del publish", "ifredis.call('del',KEYS[1])==1then"),
    (Role::RlockForceUnlock, "del publish", "if(redis.call('del',KEYS[1])==1)"),
    (Role::RateTrySet, "hsetnx hsetnx hsetnx hsetnx? pexpire?", "'type'"),
    (Role::RateSet, "hset hset hset hset? pexpire? del", "'rate' & 'interval'"),
    (
        Role::RateUpdate,
        "exists hget hset hset hset hset pexpire del del get zremrangebyscore zrange set hget pexpire pexpire pexpire pttl pexpire pexpire",
        "",
    ),
    (Role::RateAvailable, "hget hget hget get set zrangebyscore? zrem|zremrangebyscore? set?", "'rate'"),
    (Role::RateRelease, "hget hget hget get set hget pexpire pexpire pexpire pttl pexpire pexpire", "'rate'"),
    (Role::RateAcquire, "hget hget hget get pttl decrby set decrby", "'rate'"),
    (
        Role::RateAcquire,
        "hget hget hget get zrangebyscore zrem|zremrangebyscore zcard|zrange? set zrangebyscore|zrange zadd decrby set zadd decrby hget? pexpire? pexpire? pexpire? pttl? pexpire? pexpire?",
        "'rate'",
    ),
    (Role::FasterTryAcquire, "exists hget hget hset hget hset hincrby pttl pexpire pexpire", "return1;"),
    (Role::FasterAcquire, "exists hget hget hset hget hset hincrby pttl pexpire pexpire", ""),
    (
        Role::FasterUnlock,
        "get exists publish hget hincrby hdel hdel hdel hset publish set set pttl pexpire",
        "",
    ),
    (Role::FasterRenew, "exists hget hget hset pttl pexpire", ""),
    (Role::FasterForceUnlock, "hget hdel hdel hdel publish", ""),
    (Role::FasterIsHeld, "exists hget", "currentThread"),
    (Role::FasterIsLocked, "hget hget", "localThread"),
];

type Commands<'a> = SmallVec<[&'a [u8]; 32]>;

/// The commands that a script names, in the order of its text. `None`: more than any known script has.
fn commands(script: &[u8]) -> Option<Commands<'_>> {
    let mut commands = Commands::new();
    let mut rest = script;
    while let Some(at) = memchr::memmem::find(rest, b"call(") {
        rest = rest[at + 5..].trim_ascii_start();
        let command = match rest.split_first()? {
            (quote @ (b'\'' | b'"'), rest) => &rest[..memchr::memchr(*quote, rest)?],
            _ if rest.starts_with(b"ARGV[") => b"publish",
            _ => return None,
        };
        if commands.len() == commands.inline_size() {
            return None;
        }
        commands.push(command);
    }
    Some(commands)
}

/// Whether commands have the shape of a row.
fn matches(shape: &str, commands: &[&[u8]]) -> bool {
    let (step, rest) = shape.split_once(' ').unwrap_or((shape, ""));
    if step.is_empty() {
        return commands.is_empty();
    }
    let (names, optional) = step.strip_suffix('?').map_or((step, false), |names| (names, true));
    let takes = commands
        .first()
        .is_some_and(|command| names.split('|').any(|name| name.as_bytes().eq_ignore_ascii_case(command)));
    takes && matches(rest, &commands[1..]) || optional && matches(rest, commands)
}

/// Whether a text contains words; spaces do not count.
pub(super) fn contains(text: &[u8], words: &[u8]) -> bool {
    end_of(text, words).is_some()
}

/// The digit that follows words in a text.
pub(super) fn digit_after(text: &[u8], words: &[u8]) -> Option<usize> {
    let digit = text[end_of(text, words)?..].trim_ascii_start().first()?;
    char::from(*digit).to_digit(10).map(|digit| digit as usize)
}

/// Where in a text the words end that it contains; spaces do not count.
fn end_of(text: &[u8], words: &[u8]) -> Option<usize> {
    let Some((first, words)) = words.split_first() else { return Some(0) };
    memchr::memchr_iter(*first, text).find_map(|start| {
        let mut words = words.iter();
        let mut at = start + 1;
        for byte in &text[at..] {
            match words.as_slice().first() {
                None => break,
                Some(word) if word == byte => drop(words.next()),
                Some(_) if byte.is_ascii_whitespace() => {}
                Some(_) => return None,
            }
            at += 1;
        }
        words.as_slice().is_empty().then_some(at)
    })
}
