//! The roles of the scripts of a semaphore whose permits have leases, and the shapes by which they are recognised.

use crate::role::{Role, Shape, Site};

pub const ACQUIRE: Role = Role::new("permit.acquire");
pub const RELEASE: Role = Role::new("permit.release");
pub const RELEASE_ALL: Role = Role::new("permit.release_all");
pub const AVAILABLE: Role = Role::new("permit.available");
pub const ACQUIRED: Role = Role::new("permit.acquired");
pub const TOTAL: Role = Role::new("permit.total");
pub const TRY_SET: Role = Role::new("permit.try_set");
pub const SET: Role = Role::new("permit.set");
pub const ADD: Role = Role::new("permit.add");
pub const UPDATE_LEASE: Role = Role::new("permit.update_lease");
pub const LEASE: Role = Role::new("permit.lease");

pub const ROLES: &[Role] =
    &[ACQUIRE, RELEASE, RELEASE_ALL, AVAILABLE, ACQUIRED, TOTAL, TRY_SET, SET, ADD, UPDATE_LEASE, LEASE];

pub const SITES: &[Site] = &[
    ("RedissonPermitExpirableSemaphore.tryAcquireAsync", &[ACQUIRE]),
    ("RedissonPermitExpirableSemaphore.tryReleaseAsync", &[RELEASE, RELEASE_ALL]),
    ("RedissonPermitExpirableSemaphore.availablePermitsAsync", &[AVAILABLE]),
    ("RedissonPermitExpirableSemaphore.acquiredPermitsAsync", &[ACQUIRED]),
    ("RedissonPermitExpirableSemaphore.getPermitsAsync", &[TOTAL]),
    ("RedissonPermitExpirableSemaphore.trySetPermitsAsync", &[TRY_SET]),
    ("RedissonPermitExpirableSemaphore.setPermitsAsync", &[SET]),
    ("RedissonPermitExpirableSemaphore.addPermitsAsync", &[ADD]),
    ("RedissonPermitExpirableSemaphore.updateLeaseTimeAsync", &[UPDATE_LEASE]),
    ("RedissonPermitExpirableSemaphore.getLeaseTimeAsync", &[LEASE]),
    ("RedissonPermitExpirableSemaphore.expireAsync", &[]),
    ("RedissonPermitExpirableSemaphore.expireAtAsync", &[]),
    ("RedissonPermitExpirableSemaphore.clearExpireAsync", &[]),
];

pub const SHAPES: &[Shape] = &[
    Shape::new(ADD, "get set publish", "value=0;end & tonumber(value)+tonumber(ARGV[1])"),
    Shape::new(ACQUIRE, "zrangebyscore zrem incrby publish get decrby zadd pttl? pexpire? zrange", ""),
    Shape::new(RELEASE, "zscore? zrem incrby publish", "zrem',KEYS[3],ARGV[1]"),
    Shape::new(RELEASE_ALL, "zscore? zrangebyscore zrem incrby publish zrem incrby publish", ""),
    Shape::new(ACQUIRED, "zrangebyscore zrem incrby publish zcount", ""),
    Shape::new(TOTAL, "zrangebyscore zrem incrby publish get zcount", ""),
    Shape::new(AVAILABLE, "zrangebyscore zrem incrby publish get", ""),
    Shape::new(LEASE, "zrangebyscore zrem incrby publish zscore", ""),
    Shape::new(UPDATE_LEASE, "zrangebyscore zrem incrby publish zscore zadd", ""),
    Shape::new(SET, "get set publish zcount incrby publish", ""),
];
