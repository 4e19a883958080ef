//! RedissonFasterMultiLock: locks several members of a group, all or none.
//!
//! | | |
//! |---|---|
//! | state | a hash for the group: member → owner; and for each owner of a member the end of its lease, by the clients' clocks, and its holds |
//! | acquire | if no other owner has a running lease on a member: all become the owner's, nil. Else returns the rest of the longest of these leases |
//! | try acquire | like acquire, but returns 1, else 0 |
//! | unlock | if a member is not held: nil. If holds are left: 0. If all are released: 1. Sends a message for each released member |
//! | renew | if all are the owner's: restarts their leases, 1. Else 0 |
//! | force unlock | deletes the members, sends a message, and returns how many there were |
//! | is held, is locked | whether the owner holds all; whether anybody holds any |

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
    sites: roles::SITES,
    plain: &[],
    class: None,
    shapes: roles::SHAPES,
    shared: &[],
    arguments: &names::ARGUMENTS,
    model: |_| Box::<FasterMultiLock>::default(),
};
