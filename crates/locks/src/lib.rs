//! The guarantees of lock objects' scripts, and how to detect that a guarantee is broken.
//!
//! Models read a [`Store`](redlatch_core::store::Store) and know nothing of nodes, worlds or sockets; only [`fuzz`] drives a
//! [`World`](redlatch_core::world::World).
//!
//! Each lock object has a folder with everything about it:
//!
//! | file | concept |
//! |---|---|
//! | `mod` | what the object does, and its entry for the catalogue |
//! | `roles` | the roles of its scripts, and the shapes by which they are recognised |
//! | `names` | its keys, channels and arguments |
//! | `model` | its operations, and the invariants after each |
//! | `tests` | tests of these |
//!
//! The files that all objects share:
//!
//! | file | concept |
//! |---|---|
//! | `catalogue` | the ordered list of all objects |
//! | `sites` | the roles of a jar's scripts, by class and method first |
//! | `role`, `text` | the role of a script, recognised by its text |
//! | `binding` | the meaning of a script's keys and arguments |
//! | `names`, `args` | the names that objects share, and the arguments of a request |
//! | `script_set` | the lock scripts of one release |
//! | `invariant`, `violation` | the invariants, each with an id, and their violations |
//! | `model`, `operation`, `reply` | the parts that all models share |
//! | `view`, `show` | the keyspace as models read it, and as reports show it |
//! | `promises` | what locks of Redisson and of other libraries promise, and which checks hold them to it |
//! | `datum` | values as histories are written with them, in EDN or in JSON |
//!
//! Built on the models: [`check`] applies them to the requests of real clients, [`fuzz`] runs random schedules against
//! them, and
//! [`jar`] reads the scripts of a Redisson release, and [`mutate`] changes them to see what the models notice. [`history`] judges who was told that he holds a lock, across nodes, and
//! [`linearize`] whether such a history is linearizable.

pub mod args;
pub mod binding;
pub mod catalogue;
pub mod check;
pub mod datum;
pub mod fair;
pub mod faster;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod history;
pub mod invariant;
pub mod jar;
pub mod latch;
pub mod linearize;
pub mod model;
pub mod multi;
#[cfg(feature = "fuzz")]
pub mod mutate;
pub mod names;
pub mod operation;
pub mod own;
pub mod permit;
pub mod promises;
pub mod rate;
pub mod reply;
pub mod rlock;
pub mod role;
pub mod rw;
pub mod script_set;
pub mod semaphore;
pub mod show;
pub mod sites;
#[cfg(test)]
mod testing;
pub mod text;
pub mod view;
pub mod violation;
