//! The roles of a semaphore's scripts, and the shapes by which they are recognised.

use crate::role::{Role, Shape, Site};

pub const ACQUIRE: Role = Role::new("semaphore.acquire");
pub const RELEASE: Role = Role::new("semaphore.release");
pub const RELEASE_IF_EXISTS: Role = Role::new("semaphore.release_if_exists");
pub const TRY_SET: Role = Role::new("semaphore.try_set");
pub const TRY_SET_FOR: Role = Role::new("semaphore.try_set_for");
pub const SET: Role = Role::new("semaphore.set");
pub const ADD: Role = Role::new("semaphore.add");
pub const REDUCE: Role = Role::new("semaphore.reduce");
pub const DRAIN: Role = Role::new("semaphore.drain");

pub const ROLES: &[Role] =
    &[ACQUIRE, RELEASE, RELEASE_IF_EXISTS, TRY_SET, TRY_SET_FOR, SET, ADD, REDUCE, DRAIN];

pub const SITES: &[Site] = &[
    ("RedissonSemaphore.tryAcquireAsync", &[ACQUIRE]),
    ("RedissonSemaphore.tryAcquireAsync0", &[ACQUIRE]),
    ("RedissonSemaphore.releaseAsync", &[RELEASE]),
    ("RedissonSemaphore.releaseIfExistsAsync", &[RELEASE_IF_EXISTS]),
    ("RedissonSemaphore.trySetPermitsAsync", &[TRY_SET, TRY_SET_FOR]),
    ("RedissonSemaphore.setPermitsAsync", &[SET]),
    ("RedissonSemaphore.addPermitsAsync", &[ADD]),
    ("RedissonSemaphore.reducePermitsAsync", &[REDUCE]),
    ("RedissonSemaphore.drainPermits", &[DRAIN]),
    ("RedissonSemaphore.drainPermitsAsync", &[DRAIN]),
    // The parts of a queue.
    ("RedissonQueueSemaphore.tryAcquireAsync", &[]),
    ("RedissonBoundedBlockingQueue.trySetCapacityAsync", &[]),
];

pub const SHAPES: &[Shape] = &[
    Shape::new(ACQUIRE, "get decrby", "value~=false & >=tonumber(ARGV[1])"),
    Shape::new(RELEASE, "incrby publish", "'incrby',KEYS[1],ARGV[1] & KEYS[2],value"),
    Shape::new(RELEASE_IF_EXISTS, "exists incrby publish", "'incrby',KEYS[1],ARGV[1] & KEYS[2],value"),
    Shape::new(TRY_SET_FOR, "get set publish", "value==false & return1;end;return0 & 'px',ARGV["),
    Shape::new(TRY_SET, "get set publish", "value==false & return1;end;return0"),
    Shape::new(ADD, "get set publish?", "value=0;end & value+ARGV[1]"),
    Shape::new(SET, "get set publish", "value==falseorvalue==0"),
    Shape::new(REDUCE, "get set", "value-ARGV[1]"),
    Shape::new(DRAIN, "get set", "redis.call('set',KEYS[1],0);returnvalue"),
];
