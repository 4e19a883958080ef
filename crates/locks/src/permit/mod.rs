//! RPermitExpirableSemaphore: a semaphore whose permits have leases.
//!
//! | | |
//! |---|---|
//! | state | a string with the number of free permits; a sorted set, held permit → end of its lease, by the clients' clocks |
//! | most operations | first return expired permits to the free ones |
//! | acquire | if enough are free: takes them, and returns an id. Else nil, or when the next lease ends |
//! | release | if held: one more is free, sends a message, 1. If expired or unknown: 0 |
//! | release all | releases all of the permits or none |
//! | total, held, lease | the number of all permits; the number of held permits; the rest of a permit's lease |
//! | update lease | if held: restarts the lease, 1. Else 0 |
//! | set | sets the sum of free and held permits; sends no message if it does not change |

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use super::role::{Plain, Shared};
use super::semaphore;
use model::PermitSemaphore;

pub const PERMIT_SEMAPHORE: Object = Object {
    name: "permit",
    roles: roles::ROLES,
    sites: roles::SITES,
    plain: &[Plain {
        role: roles::AVAILABLE,
        site: "RedissonPermitExpirableSemaphore.availablePermitsAsync",
        uses: "GET_INTEGER",
    }],
    class: None,
    shapes: roles::SHAPES,
    shared: &[Shared {
        of: semaphore::roles::TRY_SET,
        class: "RedissonPermitExpirableSemaphore",
        role: roles::TRY_SET,
    }],
    arguments: &names::ARGUMENTS,
    model: |scripts| Box::new(PermitSemaphore::new(scripts)),
};
