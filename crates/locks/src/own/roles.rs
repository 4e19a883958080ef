//! The roles of the requests of a lock that a file describes. The file states them; texts are not recognised by shape.

use crate::role::Role;

pub const ACQUIRE: Role = Role::new("own.acquire");
pub const RELEASE: Role = Role::new("own.release");
pub const EXTEND: Role = Role::new("own.extend");
pub const TRY: Role = Role::new("own.try");
pub const FORCE: Role = Role::new("own.force");
pub const LEAVE: Role = Role::new("own.leave");
pub const RESET: Role = Role::new("own.reset");
pub const COUNT_DOWN: Role = Role::new("own.count_down");
pub const GET: Role = Role::new("own.get");

pub const ROLES: &[Role] = &[ACQUIRE, RELEASE, EXTEND, TRY, FORCE, LEAVE, RESET, COUNT_DOWN, GET];
