//! Tests that read the lock scripts of released Redisson jars. `tests/jars/fetch` fetches the jars with Maven.

#[path = "../support/mod.rs"]
mod support;

mod check;
mod edited;
mod fuzz;
mod jars;
mod mutate;
mod roles;
mod schedules;
