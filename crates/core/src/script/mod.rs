//! Lua scripts: `EVAL` and everything that `redis.*`, `cjson`, `cmsgpack`, `struct` and `bit` are inside them.
//!
//! A [`Vm`] is one Lua 5.1 state. It compiles scripts, runs them, and asks a [`Host`] to execute the commands they call. Nothing in here
//! reads a clock or any other input: a script that runs too long is noticed by whoever drives the `Vm`, which
//! hands back control after every [`SLICE`] of instructions.

mod api;
mod bit;
#[allow(unsafe_code)]
mod bridge;
mod cjson;
mod cmsgpack;
mod convert;
mod number;
mod random;
mod sandbox;
mod shebang;
mod struct_pack;
mod vm;

pub use shebang::Flags;
pub use vm::{MEMORY_LIMIT, SLICE, Script, Step, Vm, sha1_hex};

use crate::wire::reply::Reply;

/// What a running script can ask of the server.
pub trait Host {
    /// Runs one command for `redis.call` or `redis.pcall`. `argv[0]` is the command's name as the script wrote it. Appends exactly one
    /// value to `reply`, in `reply.protocol`. Whatever is wrong with the command (unknown, wrong arity, not allowed from scripts, a write in
    /// a read-only script) is an error reply.
    fn call(&mut self, argv: &[&[u8]], reply: &mut Reply);

    /// Takes a line that the script logs.
    fn log(&mut self, level: LogLevel, message: &[u8]);

    /// Returns whether the script's user may run this command: `redis.acl_check_cmd`. Nothing if there is no such
    /// command.
    fn may_run(&mut self, argv: &[&[u8]]) -> Option<bool>;

    /// Where the script's following writes are to be propagated: `redis.set_repl`.
    fn set_propagation(&mut self, _propagation: Propagation) {}
}

/// The levels of `redis.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// The targets of `redis.set_repl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Propagation {
    pub append_only_file: bool,
    pub replicas: bool,
}
