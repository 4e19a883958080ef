//! The roles of the scripts of RLock, spin, fenced and non-reentrant locks, and the shapes by which they are
//! recognised.

use crate::role::{Role, Shape, Site};

pub const ACQUIRE: Role = Role::new("rlock.acquire");
pub const UNLOCK: Role = Role::new("rlock.unlock");
pub const RENEW: Role = Role::new("rlock.renew");
pub const FORCE_UNLOCK: Role = Role::new("rlock.force_unlock");
pub const HOLD_COUNT: Role = Role::new("rlock.hold_count");
pub const IS_HELD: Role = Role::new("rlock.is_held");
pub const NONREENTRANT_ACQUIRE: Role = Role::new("nonreentrant.acquire");
pub const SPIN_ACQUIRE: Role = Role::new("spin.acquire");
pub const SPIN_UNLOCK: Role = Role::new("spin.unlock");
pub const SPIN_FORCE_UNLOCK: Role = Role::new("spin.force_unlock");
pub const FENCED_ACQUIRE: Role = Role::new("fenced.acquire");
pub const FENCED_ACQUIRE_TOKEN: Role = Role::new("fenced.acquire_token");

pub const RLOCK_ROLES: &[Role] = &[ACQUIRE, UNLOCK, RENEW, FORCE_UNLOCK, HOLD_COUNT, IS_HELD];

pub const RLOCK_SITES: &[Site] = &[
    ("RedissonLock.tryLockInner", &[ACQUIRE]),
    ("RedissonLock.tryLockInnerAsync", &[ACQUIRE]),
    ("RedissonLock.unlock", &[UNLOCK]),
    ("RedissonLock.unlockAsync", &[UNLOCK]),
    ("RedissonLock.unlockInnerAsync", &[UNLOCK]),
    ("RedissonLock.run", &[RENEW]),
    ("RedissonLock.renewExpirationAsync", &[RENEW]),
    ("RedissonBaseLock.renewExpirationAsync", &[RENEW]),
    ("renewal.LockTask.renew", &[RENEW]),
    ("renewal.LockTask.buildChunk", &[RENEW]),
    ("RedissonLock.forceUnlockAsync", &[FORCE_UNLOCK]),
    ("RedissonLock.getHoldCount", &[HOLD_COUNT]),
    ("RedissonLock.isHeldByCurrentThread", &[IS_HELD]),
];

pub const RLOCK_SHAPES: &[Shape] = &[
    Shape::new(ACQUIRE, "exists hset|hincrby pexpire hexists hincrby pexpire pttl", ""),
    Shape::new(ACQUIRE, "exists hexists hincrby pexpire pttl", ""),
    Shape::new(ACQUIRE, "get set set pttl", "cjson.encode & 'px',ARGV[2]"),
    Shape::new(UNLOCK, "exists publish hexists hincrby pexpire del publish", ""),
    Shape::new(UNLOCK, "get? hexists hincrby pexpire set? del publish set?", ""),
    Shape::new(UNLOCK, "get publish set del publish", "cjson.decode"),
    Shape::new(HOLD_COUNT, "get", "cjson.decode & returno['c']"),
    Shape::new(IS_HELD, "get", "cjson.decode & o['o']==ARGV[1]"),
    Shape::new(RENEW, "hexists pexpire", "==1)then & ARGV[1])"),
    Shape::new(FORCE_UNLOCK, "del publish", "if(redis.call('del',KEYS[1])==1)"),
];

pub const SPIN_ROLES: &[Role] = &[SPIN_ACQUIRE, SPIN_UNLOCK, SPIN_FORCE_UNLOCK];

pub const SPIN_SITES: &[Site] = &[
    ("RedissonSpinLock.tryLockInnerAsync", &[SPIN_ACQUIRE]),
    ("RedissonSpinLock.unlockInnerAsync", &[SPIN_UNLOCK]),
    ("RedissonSpinLock.forceUnlockAsync", &[SPIN_FORCE_UNLOCK]),
];

pub const SPIN_SHAPES: &[Shape] = &[
    Shape::new(SPIN_UNLOCK, "get? hexists hincrby pexpire set? del set?", ""),
    Shape::new(SPIN_FORCE_UNLOCK, "del", "if(redis.call('del',KEYS[1])==1)thenreturn1elsereturn0end"),
];

pub const FENCED_ROLES: &[Role] = &[FENCED_ACQUIRE, FENCED_ACQUIRE_TOKEN];

pub const FENCED_SITES: &[Site] =
    &[("RedissonFencedLock.tryLockInnerAsync", &[FENCED_ACQUIRE_TOKEN, FENCED_ACQUIRE])];

pub const FENCED_SHAPES: &[Shape] = &[
    Shape::new(FENCED_ACQUIRE_TOKEN, "exists hexists incr hincrby pexpire pttl", "return{-1,token}"),
    Shape::new(FENCED_ACQUIRE, "exists hexists incr hincrby pexpire pttl", ""),
];

pub const NON_REENTRANT_ROLES: &[Role] = &[NONREENTRANT_ACQUIRE];

pub const NON_REENTRANT_SITES: &[Site] =
    &[("RedissonNonReentrantLock.tryLockInnerAsync", &[NONREENTRANT_ACQUIRE])];

pub const NON_REENTRANT_SHAPES: &[Shape] =
    &[Shape::new(NONREENTRANT_ACQUIRE, "exists hincrby pexpire hexists pttl", "error_reply")];
