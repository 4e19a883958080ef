//! Tests that ask programs which `tests/install` installs: real servers, faketime. Without them a test is skipped, and says so.

#[path = "../support/mod.rs"]
mod support;

mod dump;
mod families;
mod random_differential;
mod run;
mod script_differential;
