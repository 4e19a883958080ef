//! The only unsafe code of the script engine: Lua's C interface, made safe for everything above it.
//!
//! Rules that hold in here, and that the rest of `script` can rely on:
//!
//! * **Lua's errors are `longjmp`s, and none of them passes over a Rust frame that owns something.** A library function
//!   is a safe Rust `fn(&mut Stack) -> Result<usize, Raise>`. [`stack::trampoline`] calls it, and raises only after it has
//!   returned and everything it owned is dropped. Inside such a function no call into Lua can raise: the memory limit
//!   is not enforced there ([`memory`]), metamethods are never consulted, and stack room is asked for beforehand.
//! * **No panic passes over a C frame.** The trampoline catches it, the machine abandons the script's stack, and the panic goes
//!   on where the driver called `start` or `resume`.
//! * **A script runs on a native stack of its own.** The count hook suspends that stack; [`machine`] goes on with it, or abandons it.
//!   Abandoning is safe since the frames on it are Lua's own and the trampoline's, and none of them owns anything
//!   when the hook runs: the hook never runs below a library function.
//! * **Host and reply are borrowed for one slice.** They are stored as pointers in [`machine::Shared`] when a slice begins, taken out
//!   when it ends, and looked up anew by every use.

mod chunk;
mod coroutines;
mod guard;
mod heap;
mod machine;
mod memory;
mod stack;
#[cfg(test)]
mod tests;

pub(super) use machine::{Loaded, Machine, Setup, Signal};
pub(super) use stack::{Function, Kind, Raise, Raised, Stack, truncate, truncate_to_i32};
