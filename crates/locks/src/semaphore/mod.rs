//! RSemaphore: a fixed number of permits.
//!
//! | | |
//! |---|---|
//! | state | a string with the number of free permits |
//! | try set | if there is none: sets the number, with or without an expiry, sends a message, 1. Else 0 |
//! | acquire | if enough are free: takes them, 1. Else 0 |
//! | set | until 3.5.3: like try set, without a reply |
//! | release, add | adds permits, and sends a message with a positive number |
//! | reduce | until 3.11.6: removes permits, even below zero |
//! | release if exists | if the semaphore exists: adds permits, 1. Else 0 |
//! | drain | takes all permits, and returns how many there were |

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use model::Semaphore;

pub const SEMAPHORE: Object = Object {
    name: "semaphore",
    roles: roles::ROLES,
    sites: roles::SITES,
    plain: &[],
    class: None,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |_| Box::<Semaphore>::default(),
};
