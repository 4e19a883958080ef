//! The roles of a group lock's scripts, and the shapes by which they are recognised.

use crate::role::{Role, Shape, Site};

pub const ACQUIRE: Role = Role::new("faster.acquire");
pub const TRY_ACQUIRE: Role = Role::new("faster.try_acquire");
pub const UNLOCK: Role = Role::new("faster.unlock");
pub const RENEW: Role = Role::new("faster.renew");
pub const FORCE_UNLOCK: Role = Role::new("faster.force_unlock");
pub const IS_HELD: Role = Role::new("faster.is_held");
pub const IS_LOCKED: Role = Role::new("faster.is_locked");

pub const ROLES: &[Role] = &[ACQUIRE, TRY_ACQUIRE, UNLOCK, RENEW, FORCE_UNLOCK, IS_HELD, IS_LOCKED];

pub const SITES: &[Site] = &[
    ("RedissonFasterMultiLock.tryLockInnerAsync", &[ACQUIRE]),
    ("RedissonFasterMultiLock.tryLockOnceInnerAsync", &[TRY_ACQUIRE]),
    ("RedissonFasterMultiLock.unlockInnerAsync", &[UNLOCK]),
    ("RedissonFasterMultiLock.renewExpirationAsync", &[RENEW]),
    ("renewal.FastMultilockTask.renew", &[RENEW]),
    ("renewal.FastMultilockTask.buildChunk", &[RENEW]),
    ("RedissonFasterMultiLock.forceUnlockAsync", &[FORCE_UNLOCK]),
    ("RedissonFasterMultiLock.isHeldByThreadAsync", &[IS_HELD]),
    ("RedissonFasterMultiLock.isLockedAsync", &[IS_LOCKED]),
];

pub const SHAPES: &[Shape] = &[
    Shape::new(TRY_ACQUIRE, "exists hget hget hset hget hset hincrby pttl pexpire pexpire", "return1;"),
    Shape::new(ACQUIRE, "exists hget hget hset hget hset hincrby pttl pexpire pexpire", ""),
    Shape::new(
        UNLOCK,
        "get exists publish hget hincrby hdel hdel hdel hset publish set set pttl pexpire",
        "",
    ),
    Shape::new(RENEW, "exists hget hget hset pttl pexpire", ""),
    Shape::new(FORCE_UNLOCK, "hget hdel hdel hdel publish", ""),
    Shape::new(IS_HELD, "exists hget", "currentThread"),
    Shape::new(IS_LOCKED, "hget hget", "localThread"),
];
