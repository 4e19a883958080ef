//! RPermitExpirableSemaphore: permits with a lease.
//!
//! | | |
//! |---|---|
//! | state | a string with the number of free permits; a sorted set, permit held → when it ends, by the clients' clocks |
//! | most operations | first put permits that have ended back |
//! | acquire | enough: one less, and an id. Else nil, or when the next one ends |
//! | release | held: one more, a message, 1. Ended or unknown: 0 |
//! | release all | all or none |
//! | total, held, lease | how many there are, how many are held, how long one still is |
//! | update lease | held: the lease begins anew, 1. Else 0 |
//! | set | so that free and held permits are that many; tells nobody if they are |

pub mod model;
pub mod names;
pub mod roles;
#[cfg(test)]
mod tests;

use super::catalogue::Object;
use super::role::Shared;
use super::semaphore;
use model::PermitSemaphore;

pub const PERMIT_SEMAPHORE: Object = Object {
    name: "permit",
    roles: roles::ROLES,
    shapes: roles::SHAPES,
    shared: &[Shared {
        of: semaphore::roles::TRY_SET,
        class: "RedissonPermitExpirableSemaphore",
        role: roles::TRY_SET,
    }],
    arguments: &names::ARGUMENTS,
    model: |_| Box::<PermitSemaphore>::default(),
};
