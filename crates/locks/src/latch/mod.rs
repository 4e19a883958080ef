//! RCountDownLatch: opens at nought.
//!
//! | | |
//! |---|---|
//! | state | a string with the count; none when it is open |
//! | try set | only where there is none: 1 and a message; else 0 |
//! | count down | one less; at nought the key goes and a message is sent |

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use model::CountDownLatch;

pub const COUNT_DOWN_LATCH: Object = Object {
    name: "latch",
    roles: roles::ROLES,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |_| Box::<CountDownLatch>::default(),
};
