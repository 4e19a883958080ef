//! Tests that need only the binary. `tests/fast` runs them.

#[path = "../support/mod.rs"]
mod support;

mod byte_fuzz;
mod campaign;
mod cli;
mod closed_pipe;
mod control;
mod crowd;
mod demo;
mod determinism;
mod drop_in;
mod functions;
mod fuzz_cli;
mod histories;
mod hostile;
mod late_script;
mod own_locks;
mod owners;
mod random_replay;
mod recorded_schedules;
mod replication;
mod scenarios;
mod schedules;
mod script;
mod security;
mod sentinel;
mod sim;
mod structure;
mod topology;
mod trace;
mod traces;
mod travel;
mod wheel;
