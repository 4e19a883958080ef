//! RSemaphore: a number of permits.
//!
//! | | |
//! |---|---|
//! | state | a string with the number of free permits |
//! | try set | only where there is none, for a time or for ever: 1 and a message; else 0 |
//! | acquire | enough: that many less, 1. Else 0 |
//! | set | until 3.5.3: as try set, without an answer |
//! | release, add | that many more, and a message with a positive number |
//! | reduce | until 3.11.6: that many less, even below nought |
//! | release if exists | the same, 1; where there is none nothing, 0 |
//! | drain | none left; how many there were |

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
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |_| Box::<Semaphore>::default(),
};
