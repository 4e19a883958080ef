//! The roles of a read/write lock's scripts, and the shapes by which they are recognised.

use crate::role::{Role, Shape, Site};

pub const READ_ACQUIRE: Role = Role::new("rw.read.acquire");
pub const READ_UNLOCK: Role = Role::new("rw.read.unlock");
pub const READ_RENEW: Role = Role::new("rw.read.renew");
pub const READ_FORCE_UNLOCK: Role = Role::new("rw.read.force_unlock");
pub const READ_IS_LOCKED: Role = Role::new("rw.read.is_locked");
pub const WRITE_ACQUIRE: Role = Role::new("rw.write.acquire");
pub const WRITE_UNLOCK: Role = Role::new("rw.write.unlock");
pub const WRITE_FORCE_UNLOCK: Role = Role::new("rw.write.force_unlock");
pub const FORCE_UNLOCK: Role = Role::new("rw.force_unlock");

pub const ROLES: &[Role] = &[
    READ_ACQUIRE,
    READ_UNLOCK,
    READ_RENEW,
    READ_FORCE_UNLOCK,
    READ_IS_LOCKED,
    WRITE_ACQUIRE,
    WRITE_UNLOCK,
    WRITE_FORCE_UNLOCK,
    FORCE_UNLOCK,
];

pub const SITES: &[Site] = &[
    ("RedissonReadLock.tryLockInner", &[READ_ACQUIRE]),
    ("RedissonReadLock.tryLockInnerAsync", &[READ_ACQUIRE]),
    ("RedissonReadLock.unlock", &[READ_UNLOCK]),
    ("RedissonReadLock.unlockInnerAsync", &[READ_UNLOCK]),
    ("RedissonReadLock.renewExpirationAsync", &[READ_RENEW]),
    ("renewal.ReadLockTask.renew", &[READ_RENEW]),
    ("renewal.ReadLockTask.buildChunk", &[READ_RENEW]),
    ("RedissonReadLock.forceUnlockAsync", &[READ_FORCE_UNLOCK, FORCE_UNLOCK]),
    ("RedissonReadLock.isLocked", &[READ_IS_LOCKED]),
    ("RedissonWriteLock.tryLockInner", &[WRITE_ACQUIRE]),
    ("RedissonWriteLock.tryLockInnerAsync", &[WRITE_ACQUIRE]),
    ("RedissonWriteLock.unlock", &[WRITE_UNLOCK]),
    ("RedissonWriteLock.unlockInnerAsync", &[WRITE_UNLOCK]),
    ("RedissonWriteLock.forceUnlockAsync", &[WRITE_FORCE_UNLOCK, FORCE_UNLOCK]),
];

pub const SHAPES: &[Shape] = &[
    Shape::new(READ_ACQUIRE, "hget hset hset pexpire hincrby pexpire pttl", "'mode','read'"),
    Shape::new(
        READ_ACQUIRE,
        "hget hset hset set? pexpire? pexpire hexists hincrby set? pexpire? pttl? pexpire pttl",
        "'mode','read'",
    ),
    Shape::new(WRITE_ACQUIRE, "hget hset hset pexpire hexists hincrby pttl? pexpire pttl", "'mode','write'"),
    Shape::new(
        READ_UNLOCK,
        "hget publish hexists hincrby pexpire hdel hlen del publish",
        "lockExists & KEYS[3] & mode=='read'",
    ),
    Shape::new(READ_UNLOCK, "hget publish hexists hincrby pexpire hdel hlen del publish", "mode=='read'"),
    Shape::new(
        READ_UNLOCK,
        "hget publish hexists hincrby del pttl pexpire hdel hlen del publish hdel hlen del publish",
        "",
    ),
    Shape::new(
        READ_UNLOCK,
        "get? hget publish set? hexists hincrby hdel del hlen hkeys hget pttl pexpire set? set? del publish set?",
        "",
    ),
    Shape::new(
        WRITE_UNLOCK,
        "get? hget publish set? hexists hincrby pexpire set? hdel hlen del publish hset? set?",
        "mode=='write'",
    ),
    Shape::new(READ_UNLOCK, "hget publish hexists hincrby pexpire hdel hlen del publish", "locallockExists"),
    Shape::new(READ_RENEW, "hget pexpire hlen hkeys hget pexpire", ""),
    Shape::new(READ_RENEW, "hget pexpire pexpire", ""),
    Shape::new(READ_FORCE_UNLOCK, "hget del publish", "=='read'"),
    Shape::new(WRITE_FORCE_UNLOCK, "hget del publish", "=='write'"),
    Shape::new(FORCE_UNLOCK, "hdel hlen del publish", "'hdel',KEYS[1],KEYS[2]"),
    Shape::new(READ_IS_LOCKED, "hget hlen", "mode=='read'"),
];
