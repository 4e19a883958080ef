//! A user's own lock: a file describes its requests, what their replies mean, and what the lock guarantees.
//!
//! docs/own-locks.md explains the file, docs/locks has examples.
//!
//! | file | concept |
//! |---|---|
//! | `lock` | what a file says about a lock |
//! | `description` | the parser of the file |
//! | `template` | the words of a request, with slots |
//! | `answer` | what a reply means |
//! | `model` | the operations: what requests contain, and who judges them |
//! | `holders`, `latch`, `limiter` | the guarantees of locks, queues and semaphores; of latches; of rate limiters |

pub mod answer;
#[cfg(feature = "own")]
pub mod description;
mod holders;
mod latch;
mod limiter;
pub mod lock;
pub mod model;
pub mod roles;
pub mod template;
#[cfg(test)]
mod tests;

use super::binding::Arguments;
use super::catalogue::Object;
use model::OwnLock;

pub const OWN: Object = Object {
    name: "own",
    roles: roles::ROLES,
    sites: &[],
    plain: &[],
    class: None,
    shapes: &[],
    shared: &[],
    arguments: &Arguments::COMMON,
    model: |scripts| Box::new(scripts.own().map_or_else(OwnLock::default, |lock| OwnLock::new(lock.clone()))),
};
