//! The roles of fair locks' scripts, and the shapes by which they are recognised.

use crate::role::{Role, Shape, Site};

pub const TRY_ACQUIRE: Role = Role::new("fair.try_acquire");
pub const ACQUIRE: Role = Role::new("fair.acquire");
pub const UNLOCK: Role = Role::new("fair.unlock");
pub const FORCE_UNLOCK: Role = Role::new("fair.force_unlock");
pub const ABANDON: Role = Role::new("fair.abandon");
pub const NONREENTRANT_TRY_ACQUIRE: Role = Role::new("fair.nonreentrant.try_acquire");
pub const NONREENTRANT_ACQUIRE: Role = Role::new("fair.nonreentrant.acquire");

pub const FAIR_ROLES: &[Role] = &[TRY_ACQUIRE, ACQUIRE, UNLOCK, FORCE_UNLOCK, ABANDON];

pub const FAIR_SITES: &[Site] = &[
    ("RedissonFairLock.tryLockInnerAsync", &[TRY_ACQUIRE, ACQUIRE]),
    ("RedissonFairLock.unlock", &[UNLOCK]),
    ("RedissonFairLock.unlockInnerAsync", &[UNLOCK]),
    ("RedissonFairLock.forceUnlockAsync", &[FORCE_UNLOCK]),
    ("RedissonFairLock.acquireFailedAsync", &[ABANDON]),
    ("RedissonFairLock.expireAsync", &[]),
    ("RedissonFairLock.expireAtAsync", &[]),
    ("RedissonFairLock.clearExpireAsync", &[]),
];

pub const FAIR_SHAPES: &[Shape] = &[
    Shape::new(
        TRY_ACQUIRE,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange? zincrby? hset pexpire hexists hincrby pexpire",
        "",
    ),
    Shape::new(
        TRY_ACQUIRE,
        "lindex exists lpop exists exists lindex lpop del hset pexpire hexists hincrby pexpire",
        "",
    ),
    Shape::new(
        ACQUIRE,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange? zincrby? hset pexpire hexists hincrby pexpire zscore? pttl? lindex zscore zscore? pttl zadd rpush",
        "",
    ),
    Shape::new(
        ACQUIRE,
        "lindex exists lpop exists exists lindex lpop del hset pexpire hexists hincrby pexpire lindex pttl pttl exists rpush set pexpire",
        "",
    ),
    Shape::new(
        UNLOCK,
        "get? lindex zscore zrem lpop exists lindex publish set? hexists hincrby pexpire set? del set? lindex publish",
        "",
    ),
    Shape::new(
        UNLOCK,
        "lindex exists lpop exists lindex publish hexists hincrby pexpire del lindex publish",
        "",
    ),
    Shape::new(FORCE_UNLOCK, "lindex zscore zrem lpop del lindex publish", ""),
    Shape::new(FORCE_UNLOCK, "lindex exists lpop del lindex publish", ""),
    Shape::new(ABANDON, "lindex? lrange? zrange? zincrby? zrem lrem", "'lrem',KEYS[1],0,ARGV[1]"),
];

pub const NON_REENTRANT_ROLES: &[Role] = &[NONREENTRANT_TRY_ACQUIRE, NONREENTRANT_ACQUIRE];

pub const NON_REENTRANT_SITES: &[Site] =
    &[("RedissonNonReentrantFairLock.tryLockInnerAsync", &[NONREENTRANT_TRY_ACQUIRE, NONREENTRANT_ACQUIRE])];

pub const NON_REENTRANT_SHAPES: &[Shape] = &[
    Shape::new(
        NONREENTRANT_TRY_ACQUIRE,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange zincrby hset pexpire hexists",
        "",
    ),
    Shape::new(
        NONREENTRANT_ACQUIRE,
        "lindex zscore zrem lpop exists exists lindex lpop zrem zrange zincrby hset pexpire hexists zscore pttl lindex zscore zscore pttl zadd rpush",
        "",
    ),
];
