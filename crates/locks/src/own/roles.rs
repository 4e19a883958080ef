//! What the scripts of a lock that a file describes do. They are known by the file, not by their looks.

use crate::role::Role;

pub const ACQUIRE: Role = Role::new("own.acquire");
pub const RELEASE: Role = Role::new("own.release");

pub const ROLES: &[Role] = &[ACQUIRE, RELEASE];
