//! Whether a history of operations is linearizable: whether each operation can have taken effect at one moment between its call
//! and its return, so that a sequential model gives the same results.
//!
//! | file | concept |
//! |---|---|
//! | `search` | the search for such an order, by Wing and Gong with Lowe's memoisation |
//! | `locks` | mutex, re-entrant mutex, semaphore, fenced mutex, read/write lock, with leases |
//! | `register` | a register with compare-and-set: the model of published histories |
//! | `read` | the operations of a history, as Jepsen and Porcupine write it |
//! | `judge` | one verdict for each lock of a history, with the shortest prefix that is not linearizable |
//!
//! Linearizability is local: a history is linearizable if its operations on each lock are, so each lock is judged alone.
//! It uses [`datum`](crate::datum) and [`promises`](crate::promises); [`history`](crate::history) exports what it reads.

pub mod judge;
pub mod locks;
pub mod read;
pub mod register;
pub mod search;
#[cfg(test)]
mod tests;

pub use judge::{Judgement, ModelName, Report, judge};
pub use read::{Entry, Outcome, read};
pub use search::{Call, Limit, Model, Verdict, check};
