//! The control plane: what Redis leaves to luck, staged by a few commands (`docs/control-plane.md`).
//!
//! A [`SimCommand`] is a SIM.* command that was understood. Clients send them as words; tests in Rust make them of typed
//! parts. The lab [applies](Lab::apply) them between two events.
//!
//! Faults are *match* × *stage* × *action*: [`matching`] tells what is meant, [`action`] what becomes of it. [`gates`]
//! hold instead. To both, requests, replies and messages show in [`staging`].

pub mod action;
pub mod commands;
mod cost;
pub mod gates;
mod lab;
pub mod matching;
mod recording;
pub mod rules;
mod skew;
pub mod staging;
pub mod words;

use std::collections::BTreeMap;

use action::{Action, Stage};
use gates::{At, Gates};
use matching::Subject;
use rules::Rules;

pub use action::{Keep, Place, Rewrite};
pub use commands::{Answer, SimCommand};
pub use gates::Gate;
pub use lab::Lab;
pub use matching::{Clause, Match};
pub use rules::Rule;
pub use staging::Staging;
pub use words::SimError;

use redlatch_core::rng::Rng;
use redlatch_core::stages::{PushFate, Until};
use redlatch_core::world::ConnId;

/// What happens at a time of the world's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The delay of a ticket is over.
    Release(u64),
    /// A stopped node starts.
    Start(usize),
}

/// A control connection that waits for tickets.
#[derive(Clone, Debug)]
pub struct Await {
    pub conn: ConnId,
    pub gate: u64,
    pub count: usize,
    /// The driver's time at which it has waited long enough.
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

/// Rules, gates and what they hold. One for a world and its nodes.
pub struct Control {
    pub rules: Rules,
    pub gates: Gates,
    /// Gates whose guards were dropped, still to be taken away.
    pub(crate) abandoned: Vec<u64>,
    /// By time (monotonic, in ms) and order of arming.
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

    /// Whether requests and messages have to be looked at.
    pub fn is_active(&self) -> bool {
        self.rules.are_active() || !self.gates.is_empty()
    }

    /// Whether guards were dropped whose gates are still there.
    pub fn has_abandoned(&self) -> bool {
        !self.abandoned.is_empty()
    }

    /// Something is withheld; its ticket.
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

    /// What rules and gates do to a message.
    pub fn decide_push(&mut self, subject: &Subject, now_ms: u64) -> PushFate {
        let channel = || match subject.what {
            matching::What::Push { channel } => words::quoted(channel),
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

    /// Something is to happen at `due_ms`, monotonic.
    pub fn arm(&mut self, due_ms: u64, due: Due) {
        self.armed += 1;
        self.due.insert((due_ms, self.armed), due);
    }

    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.keys().next().map(|&(due_ms, _)| due_ms)
    }

    /// What is due at `now_ms`, in order.
    pub fn pop_due(&mut self, now_ms: u64) -> Option<Due> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now_ms)?;
        Some(entry.remove())
    }

    /// All that is to come.
    pub fn due(&self) -> impl Iterator<Item = (u64, Due)> {
        self.due.iter().map(|(&(due_ms, _), &due)| (due_ms, due))
    }
}
