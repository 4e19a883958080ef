//! A Redis-protocol server in memory, made to test distributed locks.
//!
//! The test owns everything that a real server leaves to luck: time, order, randomness, the network and failure. There are three
//! ways in:
//!
//! - [`Sim`] runs one or more servers inside the test, without a socket and with a clock that moves only when told. It is the fastest and
//!   every run of it is the same.
//! - [`TestServer`] listens on real ports, for clients that need a socket.
//! - The program `redlatch` does the same for clients in other languages.
//!
//! [`Control`] is what a test does to either: it moves the clock, drops or delays replies, holds requests at gates, stops nodes, loses
//! keys, and records traces.
//!
//! ```
//! use redlatch::{Action, Clause, Match, Rule, Sim, SimOptions, Stage, Value};
//!
//! let mut sim = Sim::new(SimOptions::default());
//! let (owner, other) = (sim.connect(0), sim.connect(0));
//!
//! // The reply to an acquire is lost: the client does not know that it holds the lock.
//! let set = Match::any().and(Clause::Cmd(b"set".to_vec()));
//! let fault = sim.control().fault(Rule::new(set, Action::Drop(Stage::Reply)))?;
//! assert_eq!(sim.call(owner, &["SET", "lock", "owner", "NX", "PX", "30000"]), b"");
//! drop(fault);
//! assert_eq!(sim.query(other, &["SET", "lock", "other", "NX", "PX", "30000"])?, Value::Nil);
//!
//! // Nobody can get in until the lease has ended.
//! sim.advance(30_001);
//! assert_eq!(sim.call(other, &["SET", "lock", "other", "NX", "PX", "30000"]), b"+OK\r\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! - `cli`, on by default: the program `redlatch`. A library that only tests with this crate turns it off: `default-features = false`.
//! - `fuzz`, part of `cli`: `fuzz_lock` and `fuzz_lock_file`, random schedules against lock scripts of one's own.

#![deny(missing_docs)]

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "fuzz")]
mod fuzz;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod net;
mod test_server;

#[cfg(feature = "fuzz")]
pub use fuzz::{
    Counterexample, DescriptionError, FuzzOptions, Rules, fuzz_lock, fuzz_lock_file, replay_jar,
    replay_lock_file,
};
#[doc(inline)]
pub use redlatch_core::Version;
#[doc(inline)]
pub use redlatch_core::node::{replication::Link, states::State};
#[doc(inline)]
pub use redlatch_core::topology::{Topology, UnknownTopology};
#[doc(inline)]
pub use redlatch_core::wire::value::{DecodeError, Value};
#[doc(inline)]
pub use redlatch_core::world::ClockMode;
#[doc(inline)]
pub use redlatch_lab::control::action::{Action, Keep, Position, Rewrite, Stage};
#[doc(inline)]
pub use redlatch_lab::control::args::{Code, SimError};
#[doc(inline)]
pub use redlatch_lab::control::commands::{Answer, SimCommand, key::DbId, run::Fence};
#[doc(inline)]
pub use redlatch_lab::control::{Clause, Gate, Match, Rule, gates::At};
#[doc(inline)]
pub use redlatch_lab::handle::{
    Advanced, ClockReading, Control, DumpedKey, FaultGuard, FaultHit, FaultId, FaultInfo, GateGuard, GateId,
    Held, NodeInfo, PendingTimer, ScriptCost, SkewInfo, Ticket,
};
#[doc(inline)]
pub use redlatch_lab::sim::{CallError, Client, OptionsError, Sim, SimOptions};
#[doc(inline)]
pub use redlatch_locks::check::{Checks, Finding, Tally};
pub use test_server::{ServerOptions, StartError, TestServer};
