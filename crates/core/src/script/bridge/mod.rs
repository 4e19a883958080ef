//! The bridge to Lua's C interface: the only unsafe code of the script engine, safe for everything above it.
//!
//! The rules of this module, on which the rest of `script` relies:
//!
//! * **Lua's errors are `longjmp`s, and none of them passes over a Rust frame that owns something.** A library function
//!   is a safe Rust `fn(&mut Stack) -> Result<usize, Raise>`. [`stack::call_function`] calls it, and raises only after
//!   it has returned and dropped everything it owned. Inside such a function no call into Lua can raise: the memory
//!   limit is not enforced there ([`memory`]), metamethods are never consulted, and stack room is reserved beforehand.
//!   The functions that Lua calls directly ([`guard`], [`coroutines`], [`loops`], [`patterns`], the reader in [`chunk`]) may raise, and own
//!   nothing. A test, in `rules`, reads the source of this module and fails if any other code calls a function of Lua's
//!   that can raise.
//! * **No panic passes over a C frame.** [`stack::call_function`] catches it and ends the script. The panic continues
//!   where the driver called `start` or `resume`.
//! * **A script runs on its own native stack.** The count hook suspends that stack, and [`machine`] resumes it. To end
//!   a script early, the machine raises an error that the script cannot catch ([`machine::raise_end`]). So no frame is
//!   ever abandoned, neither Lua's nor ours.
//! * **Host and reply are borrowed for one slice.** They are stored as pointers in [`machine::Shared`] when a slice
//!   begins, removed when it ends, and looked up again for every use.

#![deny(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod callers;
mod chunk;
mod coroutines;
mod guard;
mod heap;
mod loops;
mod machine;
mod memory;
mod patterns;
mod proxies;
#[cfg(test)]
mod refusal;
#[cfg(test)]
mod rules;
mod stack;
#[cfg(test)]
mod tests;

pub(super) use machine::{Input, Loaded, Machine, Setup, Signal};
#[cfg(test)]
pub(super) use refusal::Refusal;
pub(super) use stack::{Function, LuaType, Raise, Raised, Stack, truncate, truncate_to_i32};
