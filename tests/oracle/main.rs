//! Tests that need programs that `tests/install` installs: real servers, faketime. Without them, a test prints a line and is skipped.

#[path = "../support/mod.rs"]
mod support;

mod acl_file;
mod cluster;
mod commands;
mod config_file;
mod drop_in;
mod dump;
mod families;
mod late_script;
mod linearize;
mod migrate;
mod patterns;
mod random_differential;
mod run;
mod script_differential;
mod security;
mod sentinel;
mod tls;
mod unblock;
