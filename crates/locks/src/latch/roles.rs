//! The roles of a count-down latch's scripts, and the shapes by which they are recognised.

use crate::role::{Role, Shape, Site};

pub const TRY_SET: Role = Role::new("latch.try_set");
pub const COUNT_DOWN: Role = Role::new("latch.count_down");
pub const DELETE: Role = Role::new("latch.delete");

pub const ROLES: &[Role] = &[TRY_SET, COUNT_DOWN, DELETE];

pub const SITES: &[Site] = &[
    ("RedissonCountDownLatch.trySetCount", &[TRY_SET]),
    ("RedissonCountDownLatch.trySetCountAsync", &[TRY_SET]),
    ("RedissonCountDownLatch.countDown", &[COUNT_DOWN]),
    ("RedissonCountDownLatch.countDownAsync", &[COUNT_DOWN]),
    ("RedissonCountDownLatch.deleteAsync", &[DELETE]),
];

pub const SHAPES: &[Shape] = &[
    Shape::new(TRY_SET, "exists set publish", "return1elsereturn0end"),
    Shape::new(COUNT_DOWN, "decr del publish", ""),
    Shape::new(DELETE, "del publish", "ifredis.call('del',KEYS[1])==1then"),
];
