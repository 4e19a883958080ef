//! What the methods of [`Control`](super::Control) return.

use crate::control::args::{SimError, unknown};
use crate::control::gates::At;
use crate::control::matching::{Clause, Match};
use crate::control::{Lab, Rule};
use redlatch_core::node::replication::{Link, Role};
use redlatch_core::world::ClockMode;

/// The number of a fault rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaultId(pub(crate) u64);

/// The number of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GateId(pub(crate) u64);

/// Something that a gate or a delay holds, to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// What the clock shows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClockReading {
    /// The number of the last event.
    pub event: u64,
    /// Unix time in ms.
    pub wall_ms: i64,
    /// Time since the beginning in ms.
    pub mono_ms: u64,
    /// How the clock goes.
    pub mode: ClockMode,
}

/// What happened while the clock was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advanced {
    /// The number of the last event.
    pub event: u64,
    /// Unix time in ms.
    pub wall_ms: i64,
    /// How many timers fired.
    pub fired: u64,
    /// How many keys expired.
    pub expired: u64,
}

/// A timer that has not fired yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PendingTimer {
    /// When it fires, in ms since the beginning.
    pub due_ms: u64,
    /// What it is for: `key`, `blocked`, `unpause`, `ticket` or `start`.
    pub kind: &'static str,
    /// Which key, client, ticket or node.
    pub what: Vec<u8>,
}

/// How far the clock of a client is from its node's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkewInfo {
    /// The client's name, or its address if it has no name.
    pub client: Vec<u8>,
    /// The client's time minus the node's when its last script came, in ms.
    pub last_ms: i64,
    /// How many scripts showed the client's time.
    pub samples: u64,
}

/// A fault rule and how often it has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultInfo {
    /// Its number.
    pub id: FaultId,
    /// The rule.
    pub rule: Rule,
    /// How often it has applied.
    pub hits: u64,
}

/// One application of a fault rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultHit {
    /// The number of the event.
    pub event: u64,
    /// The client, as CLIENT ID numbers it.
    pub client: u64,
    /// The request or message that it applied to.
    pub summary: String,
    /// What it did.
    pub outcome: String,
}

/// A request, reply or message that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// What releases it.
    pub ticket: Ticket,
    /// The gate that holds it; `None` for a delay.
    pub gate: Option<GateId>,
    /// The client, as CLIENT ID numbers it.
    pub client: u64,
    /// The point at which it is held.
    pub at: At,
    /// The request, the bytes of the reply, or the channel of the message.
    pub summary: String,
}

/// A key with its value in the format of DUMP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct DumpedKey {
    /// Its name.
    pub key: Vec<u8>,
    /// Its type, as TYPE gives it.
    pub kind: &'static str,
    /// In how many ms it expires; `None`: never.
    pub ttl_ms: Option<i64>,
    /// Its value, for RESTORE.
    pub dump: Vec<u8>,
}

/// A node of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Its number.
    pub node: usize,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Whether it is stopped.
    pub is_stopped: bool,
    /// Of a replica, its master and how writes reach it.
    pub replica_of: Option<(usize, Link)>,
    /// The states that are on, as SIM.NODE LIST names them.
    pub states: String,
}

/// What the runs of a script have cost together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptCost {
    /// The script's SHA-1 in hexadecimal digits.
    pub sha: String,
    /// What the script does, if it is a known lock script: `rlock.acquire`.
    pub role: Option<&'static str>,
    /// How often it ran.
    pub runs: u64,
    /// Lua instructions.
    pub instructions: u64,
    /// Calls of `redis.call` and `redis.pcall`.
    pub calls: u64,
    /// Different keys that the calls of a run named.
    pub keys: u64,
    /// Bytes of the arguments of the calls.
    pub bytes_in: u64,
    /// Bytes of the replies to the calls.
    pub bytes_out: u64,
}

impl Lab {
    pub(super) fn clock_reading(&self) -> ClockReading {
        let clock = self.world.clock();
        let now = clock.now();
        ClockReading {
            event: self.world.events(),
            wall_ms: now.wall_ms(),
            mono_ms: now.mono_ms(),
            mode: clock.mode(),
        }
    }

    pub(super) fn skew_infos(&self) -> Vec<SkewInfo> {
        let watches = self.staging.watches.borrow();
        let skews = watches.iter().flat_map(|watch| watch.skews.iter());
        skews
            .map(|(client, skew)| SkewInfo {
                client: client.to_vec(),
                last_ms: skew.last_ms,
                samples: skew.samples,
            })
            .collect()
    }

    pub(super) fn fault_infos(&self) -> Vec<FaultInfo> {
        let control = self.staging.control.borrow();
        let info = |active: &crate::control::rules::Active| FaultInfo {
            id: FaultId(active.id),
            rule: active.rule.clone(),
            hits: active.hits,
        };
        control.rules.iter().map(info).collect()
    }

    pub(super) fn fault_hits(&self, fault: FaultId) -> Option<Vec<FaultHit>> {
        let control = self.staging.control.borrow();
        let active = control.rules.iter().find(|active| active.id == fault.0)?;
        let hits = active.recent.iter().map(|hit| FaultHit {
            event: hit.event,
            client: hit.client,
            summary: hit.summary.clone(),
            outcome: hit.outcome.clone(),
        });
        Some(hits.collect())
    }

    pub(super) fn held_infos(&self) -> Vec<Held> {
        let control = self.staging.control.borrow();
        let held = control.gates.tickets().map(|ticket| Held {
            ticket: Ticket(ticket.id),
            gate: ticket.gate.map(GateId),
            client: ticket.conn.session.number,
            at: ticket.at,
            summary: ticket.summary.clone(),
        });
        held.collect()
    }

    /// Returns the tickets of a gate, the oldest first.
    pub(super) fn tickets_of(&self, gate: GateId) -> Result<Vec<Ticket>, SimError> {
        let control = self.staging.control.borrow();
        if !control.gates.iter().any(|active| active.id == gate.0) {
            return Err(unknown(format!("there is no gate {}", gate.0)));
        }
        Ok(control.gates.held_by(gate.0).map(Ticket).collect())
    }

    pub(super) fn node_infos(&self) -> Vec<NodeInfo> {
        let nodes = self.world.nodes().iter().enumerate();
        nodes
            .map(|(index, node)| NodeInfo {
                node: index,
                is_paused: node.paused,
                is_stopped: node.stopped,
                replica_of: match node.replication.role {
                    Role::Master | Role::Stray => None,
                    Role::Replica { of } => Some((of, node.replication.link)),
                },
                states: node.states.to_string(),
            })
            .collect()
    }

    pub(super) fn script_costs(&self) -> Vec<ScriptCost> {
        let watches = self.staging.watches.borrow();
        let costs = watches.iter().flat_map(|watch| watch.costs.iter());
        costs
            .map(|(sha, cost)| ScriptCost {
                sha: String::from_utf8_lossy(sha).into_owned(),
                role: cost.role.map(|role| role.name()),
                runs: cost.runs,
                instructions: cost.instructions,
                calls: cost.calls,
                keys: cost.keys,
                bytes_in: cost.bytes_in,
                bytes_out: cost.bytes_out,
            })
            .collect()
    }

    /// Fails if a clause names a node that does not exist.
    pub(super) fn check_match(&self, matching: &Match) -> Result<(), SimError> {
        for clause in &matching.clauses {
            if let Clause::Node(node) = clause {
                self.check_node(*node)?;
            }
        }
        Ok(())
    }
}
