//! What lock scripts promise, and how to tell that a promise was broken.
//!
//! - [`locks`]: a model of each lock object, and what the scripts of clients are called.
//! - [`check`]: the models on what real clients do.
//! - [`jar`]: the scripts of a Redisson release.
//! - [`fuzz`]: random schedules against the models.

pub mod check;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod jar;
pub mod locks;
