//! RCountDownLatch: opens when its count reaches zero.
//!
//! | | |
//! |---|---|
//! | state | a string with the count; missing when the latch is open |
//! | try set | if there is no count: sets it, sends a message, 1. Else 0 |
//! | count down | reduces the count by one; at zero deletes the key and sends a message |

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
    sites: roles::SITES,
    plain: &[],
    class: None,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(CountDownLatch::new(scripts)),
};
