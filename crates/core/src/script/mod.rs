//! Lua scripts: `EVAL`, and what scripts find inside: `redis.*`, `cjson`, `cmsgpack`, `struct` and `bit`.
//!
//! A [`Vm`] is one Lua 5.1 state. It compiles scripts, runs them, and asks a [`Host`] to execute the commands they
//! call. This module reads no clock and no other input: the `Vm` returns control to its driver after every [`SLICE`] of
//! instructions, and the driver decides whether a script has run for too long.

mod api;
mod bit;
#[allow(unsafe_code)]
mod bridge;
mod cjson;
mod cmsgpack;
mod convert;
pub(crate) mod library;
mod number;
mod random;
mod sandbox;
mod sha1;
mod shebang;
mod struct_pack;
mod tag;
#[cfg(test)]
mod tests;
mod vm;

pub use sha1::{Digest, Sha1, sha1_hex};
pub use shebang::{Flags, declared_flags};
pub use tag::ScriptTag;
pub(crate) use vm::Function;
pub use vm::{Legacy, MEMORY_LIMIT, SLICE, Script, Step, Vm};

use crate::wire::reply::Reply;

/// The services of the server for a running script.
pub trait Host {
    /// Executes one command for `redis.call` or `redis.pcall`. `argv[0]` is the command's name as the script wrote it.
    /// Appends exactly one value to `reply`, in `reply.protocol`. Every failure of the command (unknown, wrong arity,
    /// not allowed in scripts, a write in a read-only script) is an error reply.
    fn call(&mut self, argv: &[&[u8]], reply: &mut Reply);

    /// Counts an error in the script's reply. One that a command of the script has failed with `was_counted` then.
    fn count_error(&mut self, _text: &[u8], _was_counted: bool) {}

    /// Takes a line that the script logs.
    fn log(&mut self, level: LogLevel, message: &[u8]);

    /// Returns whether the script's user may run this command, for `redis.acl_check_cmd`, or `None` if the command does
    /// not exist.
    fn may_run(&mut self, argv: &[&[u8]]) -> Option<bool>;

    /// Returns whether `redis.acl_check_cmd` takes a command with so many arguments: before Redis 8.6 always.
    fn may_ask(&mut self, _argv: &[&[u8]]) -> bool {
        true
    }

    /// Sets where the script's following writes are propagated, for `redis.set_repl`.
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
