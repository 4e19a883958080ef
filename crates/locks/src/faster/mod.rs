//! RedissonFasterMultiLock: members of a group, locked together or not at all.
//!
//! | | |
//! |---|---|
//! | state | a hash for the group: member → owner, and for each owner of a member the end of its lease, by the clients' clocks, and its holds |
//! | acquire | no other owner's lease runs: all are the owner's, nil. Else how long the longest of them still does |
//! | try acquire | the same: 1, else 0 |
//! | unlock | one is not held: nil. Holds left: 0. All gone: 1. Each that goes is told |
//! | renew | all own: their leases begin anew, 1. Else 0 |
//! | force unlock | gone, and a message; how many there were |
//! | is held, is locked | by the owner all; by anybody any |

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use model::FasterMultiLock;

pub const FASTER_MULTI_LOCK: Object = Object {
    name: "faster",
    roles: roles::ROLES,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |_| Box::<FasterMultiLock>::default(),
};
