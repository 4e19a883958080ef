//! The only unsafe code of the script engine: Lua's C interface, made safe for everything above it.
//!
//! Rules that hold in here, and that the rest of `script` can rely on:
//!
//! * **Lua's errors are `longjmp`s, and none of them passes over a Rust frame that owns something.** A library function
//!   is a safe Rust `fn(&mut Stack) -> Result<usize, Raise>`. [`stack::call_function`] calls it, and raises only after it has
//!   returned and everything it owned is dropped. Inside such a function no call into Lua can raise: the memory limit
//!   is not enforced there ([`memory`]), metamethods are never consulted, and stack room is asked for beforehand. The functions
//!   that Lua calls directly ([`guard`], [`coroutines`], the reader in [`chunk`]) may raise, and own nothing.
//!   A test, in `rules`, reads the source of this module and fails if a function of Lua's that can raise is called anywhere else.
//! * **No panic passes over a C frame.** [`stack::call_function`] catches it and ends the script, and the panic goes
//!   on where the driver called `start` or `resume`.
//! * **A script runs on a native stack of its own.** The count hook suspends that stack, and [`machine`] goes on with it. A script is
//!   ended early by an error that it cannot catch ([`machine::raise_end`]), so no frame is ever abandoned, neither Lua's nor ours.
//! * **Host and reply are borrowed for one slice.** They are stored as pointers in [`machine::Shared`] when a slice begins, taken out
//!   when it ends, and looked up anew by every use.

#![deny(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod callers;
mod chunk;
mod coroutines;
mod guard;
mod heap;
mod machine;
mod memory;
mod proxies;
#[cfg(test)]
mod rules;
mod stack;
#[cfg(test)]
mod tests;

pub(super) use machine::{Loaded, Machine, Setup, Signal};
pub(super) use stack::{Function, Kind, Raise, Raised, Stack, truncate, truncate_to_i32};
