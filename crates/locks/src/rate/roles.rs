//! The roles of a rate limiter's scripts, and the shapes by which they are recognised.

use crate::role::{Role, Shape, Site};

pub const TRY_SET: Role = Role::new("rate.try_set");
pub const SET: Role = Role::new("rate.set");
pub const UPDATE: Role = Role::new("rate.update");
pub const ACQUIRE: Role = Role::new("rate.acquire");
pub const AVAILABLE: Role = Role::new("rate.available");
pub const RELEASE: Role = Role::new("rate.release");

pub const ROLES: &[Role] = &[TRY_SET, SET, UPDATE, ACQUIRE, AVAILABLE, RELEASE];

pub const SITES: &[Site] = &[
    ("RedissonRateLimiter.trySetRateAsync", &[TRY_SET]),
    ("RedissonRateLimiter.setRateAsync", &[SET]),
    ("RedissonRateLimiter.setOrUpdateAsync", &[UPDATE]),
    ("RedissonRateLimiter.tryAcquireAsync", &[ACQUIRE]),
    ("RedissonRateLimiter.availablePermitsAsync", &[AVAILABLE]),
    ("RedissonRateLimiter.releaseAsync", &[RELEASE]),
];

pub const SHAPES: &[Shape] = &[
    Shape::new(TRY_SET, "hsetnx hsetnx hsetnx hsetnx? pexpire?", "'type'"),
    Shape::new(SET, "hset hset hset hset? pexpire? del", "'rate' & 'interval'"),
    Shape::new(
        UPDATE,
        "exists hget hset hset hset hset pexpire del del get zremrangebyscore zrange set hget pexpire pexpire pexpire pttl pexpire pexpire",
        "",
    ),
    Shape::new(AVAILABLE, "hget hget hget get set zrangebyscore? zrem|zremrangebyscore? set?", "'rate'"),
    Shape::new(RELEASE, "hget hget hget get set hget pexpire pexpire pexpire pttl pexpire pexpire", "'rate'"),
    Shape::new(ACQUIRE, "hget hget hget get pttl decrby set decrby", "'rate'"),
    Shape::new(
        ACQUIRE,
        "hget hget hget get zrangebyscore zrem|zremrangebyscore zcard|zrange? set zrangebyscore|zrange zadd decrby set zadd decrby hget? pexpire? pexpire? pexpire? pttl? pexpire? pexpire?",
        "'rate'",
    ),
];
