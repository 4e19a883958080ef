//! The control plane: commands that control what Redis leaves to chance (`docs/control-plane.md`).
//!
//! A [`SimCommand`] is a parsed SIM.* command. Clients send it as a list of arguments; tests in Rust build it from typed
//! parts. The lab [applies](Lab::apply) it between two events.
//!
//! A fault rule is *match* × *stage* × *action*: [`matching`] selects requests and messages, [`action`] says what happens to
//! them. [`gates`] hold what matches instead. [`staging`] applies rules and gates to requests, replies and messages.

pub mod action;
pub mod args;
mod command;
pub mod commands;
#[cfg(feature = "replay")]
mod copy;
mod cost;
pub mod gates;
mod history;
mod image;
mod lab;
pub mod matching;
mod possible;
mod recording;
pub mod rules;
mod skew;
pub mod staging;

use std::collections::BTreeMap;

use action::{Action, Stage};
use gates::{At, Gates};
use matching::Subject;
use rules::Rules;

pub use action::{Keep, Position, Rewrite};
pub use args::SimError;
pub use commands::{Answer, SimCommand};
pub use gates::Gate;
pub use lab::Lab;
pub use matching::{Clause, Match};
pub use rules::Rule;
pub use staging::Staging;

use redlatch_core::rng::Rng;
use redlatch_core::stages::{PushFate, Until};
use redlatch_core::world::ConnId;

/// Something that the control plane does at a set time of the world's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Ends the delay of a ticket.
    Release(u64),
    /// Starts a stopped node.
    Start(usize),
}

/// A control connection that is blocked in SIM.GATE AWAIT.
#[derive(Clone, Debug)]
pub struct Await {
    pub conn: ConnId,
    pub gate: u64,
    pub count: usize,
    /// The driver's time at which the wait times out, in µs.
    pub deadline_us: Option<u64>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("rules", &self.rules)
            .field("gates", &self.gates)
            .finish_non_exhaustive()
    }
}

/// The fault rules, the gates, and everything they hold. All nodes of a world share it.
#[derive(Clone)]
pub struct Control {
    pub rules: Rules,
    pub gates: Gates,
    /// Gates whose guards were dropped and that still have to be removed.
    pub(crate) abandoned: Vec<u64>,
    /// Pending actions by due time (monotonic, in ms), then in the order in which they were set.
    due: BTreeMap<(u64, u64), Due>,
    armed: u64,
    pub rng: Rng,
}

impl Control {
    pub fn new(rng: Rng) -> Control {
        Control {
            rules: Rules::default(),
            gates: Gates::default(),
            abandoned: Vec::new(),
            due: BTreeMap::new(),
            armed: 0,
            rng,
        }
    }

    /// Returns whether requests and messages have to be checked against rules and gates.
    pub fn is_active(&self) -> bool {
        self.rules.are_active() || !self.gates.is_empty()
    }

    /// Returns whether gates remain whose guards were dropped.
    pub fn has_abandoned(&self) -> bool {
        !self.abandoned.is_empty()
    }

    /// Holds a request, a reply or a message, and returns its ticket.
    pub fn hold(&mut self, until: Until, conn: ConnId, at: At, summary: String, now_ms: u64) -> u64 {
        match until {
            Until::Released(gate) => self.gates.hold(Some(gate), conn, at, summary),
            Until::Passed(ms) => {
                let ticket = self.gates.hold(None, conn, at, summary);
                self.arm(now_ms.saturating_add(ms), Due::Release(ticket));
                ticket
            }
        }
    }

    /// Returns what rules and gates do to a message.
    pub fn decide_push(&mut self, subject: &Subject, now_ms: u64) -> PushFate {
        let channel = || match subject.what {
            matching::What::Push { channel } => args::quoted(channel),
            matching::What::Request(_) => String::new(),
        };
        if let Some(gate) = self.gates.decide(subject, At::Push) {
            let ticket = self.hold(Until::Released(gate), subject.conn, At::Push, channel(), now_ms);
            return PushFate::Hold(ticket);
        }
        match self.rules.decide(subject, true, channel, &mut self.rng) {
            Some(Action::Drop(_)) => PushFate::Deliver(0),
            Some(Action::DupPush(times)) => PushFate::Deliver(times),
            Some(Action::Delay(Stage::Push, ms)) => {
                PushFate::Hold(self.hold(Until::Passed(ms), subject.conn, At::Push, channel(), now_ms))
            }
            _ => PushFate::Deliver(1),
        }
    }

    /// Forgets all rules and gates and everything that is pending.
    pub fn restart(&mut self) {
        (self.rules, self.gates) = Default::default();
        self.due.clear();
    }

    /// Schedules an action for `due_ms`, monotonic.
    pub fn arm(&mut self, due_ms: u64, due: Due) {
        self.armed += 1;
        self.due.insert((due_ms, self.armed), due);
    }

    /// Returns when the next action is due, monotonic.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.keys().next().map(|&(due_ms, _)| due_ms)
    }

    /// Removes and returns the next action that is due at `now_ms`.
    pub fn pop_due(&mut self, now_ms: u64) -> Option<Due> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now_ms)?;
        Some(entry.remove())
    }

    /// Returns all pending actions with their due times (monotonic, in ms), earliest first.
    pub fn due(&self) -> impl Iterator<Item = (u64, Due)> {
        self.due.iter().map(|(&(due_ms, _), &due)| (due_ms, due))
    }
}
