//! Lock objects: what their scripts are called, what they promise, and how to tell that a promise was broken.
//!
//! | file | concept |
//! |---|---|
//! | `role`, `binding` | what a script does and what its arguments are, told by its text |
//! | `kit` | the lock scripts of one release |
//! | `invariant` | the promises, each with an id |
//! | `model` | what all models have in common: operations, calls, outcomes, findings |
//! | `rlock`, `rw`, `fair`, `semaphore`, `permit`, `latch`, `rate`, `faster`, `multi` | one model for each kind of object |
//! | `own` | the model of a lock whose scripts a file describes |
//! | `view`, `show` | the keyspace as models read it, and as people do |

pub mod binding;
pub mod fair;
pub mod faster;
pub mod invariant;
pub mod kit;
pub mod latch;
pub mod model;
pub mod multi;
pub mod own;
pub mod permit;
pub mod rate;
pub mod rlock;
pub mod role;
pub mod rw;
pub mod semaphore;
pub mod show;
pub mod view;
