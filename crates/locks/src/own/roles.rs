//! The roles of the scripts of a lock that a file describes. The file states them; the texts are not recognised by
//! shape.

use crate::role::Role;

pub const ACQUIRE: Role = Role::new("own.acquire");
pub const RELEASE: Role = Role::new("own.release");

pub const ROLES: &[Role] = &[ACQUIRE, RELEASE];
