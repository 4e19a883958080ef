//! The model of a lock that consists of several nodes.

use std::fmt::Write;

use crate::invariant::Invariant::*;
use crate::model::*;
use crate::rlock;
use crate::view::View;

const ACQUIRE: usize = 0;
const EXTEND: usize = 1;
const UNLOCK: usize = 2;

const OPERATIONS: &[Operation] = &[
    Operation::acquire("acquire", Sends::Script(rlock::roles::ACQUIRE)).defining(),
    Operation::new("extend", Sends::Pexpire),
    Operation::new("unlock", Sends::Script(rlock::roles::UNLOCK)),
    Operation::new("node.down", Sends::Event(NodeEvent::Down)),
    Operation::new("node.up", Sends::Event(NodeEvent::Up)),
    Operation::new("node.restart", Sends::Event(NodeEvent::Restart)),
    Operation::new("node.jump", Sends::Event(NodeEvent::Jump)),
];

const NODES: usize = 3;

/// How long clients wait, in ms; with 0 they ask each node once.
const WAITS_MS: [i64; 2] = [0, 3_000];
const LEASE_MS: i64 = 10_000;
const JUMP_MS: i64 = 60_000;

/// A set of nodes, one bit each.
type Nodes = u8;
const ALL: Nodes = (1 << NODES) - 1;

/// The current activity of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    /// The client has been asking `node` since `asks_since_ms`; `spare` more nodes may refuse.
    Acquiring {
        node: usize,
        asks_since_ms: i64,
        spare: usize,
    },
    /// The client starts the lease at these nodes.
    Extending {
        left: Nodes,
    },
    Held,
    /// The client releases these nodes.
    Releasing {
        left: Nodes,
        then: Then,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Retry,
    GiveUp,
    Done,
    /// A node did not answer; the client keeps the other nodes.
    GoOn {
        node: usize,
        spare: usize,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    phase: Phase,
    wait_ms: i64,
    since_ms: i64,
    acquired: Nodes,
    /// The time of its first request for the lease.
    extends_since_ms: Option<i64>,
    /// The time until which the client believes that it has the lock.
    until_ms: i64,
    /// The client's holds at each node at the beginning of the attempt.
    holds: [i64; NODES],
    /// The nodes that the client could not release because they did not answer.
    missed: Nodes,
}

impl Client {
    fn patience_is_over(&self, now_ms: i64) -> bool {
        self.wait_ms > 0 && now_ms - self.since_ms >= self.wait_ms
    }

    /// Returns the lease that Redisson requests while it is still acquiring nodes.
    fn sub_lease_ms(&self) -> i64 {
        if self.wait_ms > 0 { self.wait_ms * 2 } else { LEASE_MS }
    }
}

/// A lock that consists of several nodes.
#[derive(Clone)]
pub struct MultiLock {
    names: Names,
    /// The waiting time of the client in the last request.
    asked_wait_ms: i64,
    quorum: usize,
    clients: [Client; OWNERS],
    down: Nodes,
    /// Whether a node has lost its data or has a wrong clock.
    disturbed: bool,
}

impl MultiLock {
    /// Creates a lock that needs all nodes.
    pub fn of_all() -> MultiLock {
        MultiLock::of(NODES)
    }

    /// Creates a lock that needs more than half of the nodes.
    pub fn of_majority() -> MultiLock {
        MultiLock::of(NODES / 2 + 1)
    }

    /// Creates a lock that needs `quorum` nodes.
    pub fn of(quorum: usize) -> MultiLock {
        MultiLock {
            names: rlock::names::names(),
            asked_wait_ms: 0,
            quorum,
            clients: Default::default(),
            down: 0,
            disturbed: false,
        }
    }

    /// Returns how many nodes may refuse.
    fn spare(&self) -> usize {
        NODES - self.quorum
    }

    /// Returns how long the client keeps asking one node, in ms.
    fn share_ms(&self, client: &Client) -> i64 {
        match self.quorum {
            NODES => client.wait_ms,
            _ if client.wait_ms > 0 => (client.wait_ms / NODES as i64).max(1),
            _ => 0,
        }
    }

    fn holds(&self, owner: usize, view: View) -> [i64; NODES] {
        let mut holds = [0; NODES];
        for (holds, view) in holds.iter_mut().zip(view.all()) {
            let hash = view.hash(self.names.lock.as_bytes());
            *holds = hash.map_or(0, |hash| view.count(hash, OWNER_IDS[owner].as_bytes()));
        }
        holds
    }

    fn asked(&mut self, call: &Call, out: Outcome) {
        let (now_ms, share_ms) = (call.now_ms, self.share_ms(&self.clients[call.owner]));
        let client = &mut self.clients[call.owner];
        let Phase::Acquiring { node, asks_since_ms, spare } = client.phase else { return };
        let answered = call.fate == Fate::Answered;
        if answered && out.reply == Reply::Nil {
            client.acquired |= 1 << node;
            self.clients[call.owner].phase = self.went_on(call.owner, now_ms, node, spare);
        } else if answered && now_ms - asks_since_ms < share_ms {
            // The client waits for a message, and asks again.
        } else if !answered {
            // The client cannot know whether it has the node, so it releases the node.
            client.phase = Phase::Releasing { left: 1 << node, then: Then::GoOn { node, spare } };
        } else {
            self.clients[call.owner].phase = self.refused(call.owner, now_ms, node, spare);
        }
    }

    /// Returns the next phase after a node's refusal.
    fn refused(&mut self, owner: usize, now_ms: i64, node: usize, spare: usize) -> Phase {
        let limit = self.spare();
        let client = &self.clients[owner];
        if NODES - client.acquired.count_ones() as usize == limit {
            return Phase::Extending { left: client.acquired };
        }
        if spare == 0 {
            let then = if client.wait_ms > 0 { Then::Retry } else { Then::GiveUp };
            return self.let_go(owner, now_ms, client.acquired, then);
        }
        self.went_on(owner, now_ms, node, spare - 1)
    }

    /// Returns the phase for the next node or, after the last node, for the leases.
    fn went_on(&mut self, owner: usize, now_ms: i64, node: usize, spare: usize) -> Phase {
        let client = &self.clients[owner];
        if client.patience_is_over(now_ms) {
            return self.let_go(owner, now_ms, client.acquired, Then::GiveUp);
        }
        match node + 1 {
            NODES => Phase::Extending { left: client.acquired },
            node => Phase::Acquiring { node, asks_since_ms: now_ms, spare },
        }
    }

    /// Returns the phase that releases nodes or, if there are none, the phase that follows.
    fn let_go(&mut self, owner: usize, now_ms: i64, left: Nodes, then: Then) -> Phase {
        if left != 0 {
            return Phase::Releasing { left, then };
        }
        let limit = self.spare();
        let client = &mut self.clients[owner];
        match then {
            Then::GoOn { node, spare } => self.refused(owner, now_ms, node, spare),
            Then::Retry if !client.patience_is_over(now_ms) => {
                client.acquired = 0;
                Phase::Acquiring { node: 0, asks_since_ms: now_ms, spare: limit }
            }
            _ => {
                client.acquired = 0;
                Phase::Idle
            }
        }
    }

    fn extended(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, view, .. } = seen;
        let Call { owner, now_ms, .. } = *call;
        let strict = verdict.is_strict();
        let client = &mut self.clients[owner];
        let Phase::Extending { left } = &mut client.phase else { return };
        *left &= !(1 << call.node);
        let first_ms = *client.extends_since_ms.get_or_insert(now_ms);
        if *left != 0 {
            return;
        }
        client.phase = Phase::Held;
        let end_ms = if strict { now_ms + LEASE_MS } else { first_ms + LEASE_MS - LEASE_MS / 100 };
        // A client that checks its clock knows that the first leases may have ended before it requested the last.
        let in_time = now_ms - client.since_ms < client.sub_lease_ms();
        client.until_ms = if strict || in_time { end_ms } else { 0 };
        if client.until_ms <= now_ms || self.disturbed && !strict {
            return;
        }
        let held = self.holds(owner, view).iter().filter(|holds| **holds > 0).count();
        verdict.expect(R1, held >= self.quorum, || {
            format!("told that it has the lock, but has {held} nodes of {}", self.quorum)
        });
        for other in (0..OWNERS).filter(|&other| other != owner) {
            let left_ms = self.clients[other].until_ms - now_ms;
            verdict.expect(M1, left_ms <= 0, || {
                format!("told that it has the lock, as was {} for {left_ms} ms more", owner_name(other))
            });
        }
    }

    fn released(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, view, .. } = seen;
        let Call { owner, now_ms, node, .. } = *call;
        let client = &mut self.clients[owner];
        client.until_ms = 0;
        let (left, then) = match client.phase {
            Phase::Held => (ALL, Then::Done),
            Phase::Releasing { left, then } => (left, then),
            _ => return,
        };
        if call.fate != Fate::Answered {
            client.missed |= 1 << node;
        }
        let left = left & !(1 << node);
        self.clients[owner].phase = self.let_go(owner, now_ms, left, then);
        let client = self.clients[owner];
        if client.phase == Phase::Idle && then != Then::Done && !self.disturbed {
            let holds = self.holds(owner, view);
            let left =
                (0..NODES).find(|&node| client.missed & 1 << node == 0 && holds[node] > client.holds[node]);
            verdict.expect(R2, left.is_none(), || {
                format!("the attempt has failed, and node {} is still held", left.unwrap_or(0))
            });
        }
    }
}

/// Returns the first node of a set.
fn first(nodes: Nodes) -> usize {
    nodes.trailing_zeros() as usize
}

impl Model for MultiLock {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn nodes(&self) -> usize {
        NODES
    }

    fn describe(&self, _: &Call, text: &mut String) {
        if self.asked_wait_ms != 0 {
            let _ = write!(text, " (waits {} ms)", self.asked_wait_ms);
        }
    }

    fn reset(&mut self) {
        self.clients = Default::default();
        (self.down, self.disturbed) = (0, false);
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        let spare = self.spare();
        let client = &mut self.clients[call.owner];
        let mut wait_ms = 0;
        if !OPERATIONS[call.operation].is_fault() {
            // Continues an operation that has begun.
            call.operation = match client.phase {
                Phase::Idle | Phase::Acquiring { .. } => ACQUIRE,
                Phase::Extending { .. } => EXTEND,
                Phase::Releasing { .. } => UNLOCK,
                Phase::Held => call.operation,
            };
        }
        match (call.operation, client.phase) {
            (ACQUIRE, Phase::Idle) => {
                *client = Client {
                    phase: Phase::Acquiring { node: 0, asks_since_ms: call.now_ms, spare },
                    wait_ms: WAITS_MS[usize::from(choice) % WAITS_MS.len()],
                    since_ms: call.now_ms,
                    ..Client::default()
                };
                (call.lease_ms, wait_ms) = (client.sub_lease_ms(), client.wait_ms);
            }
            (ACQUIRE, Phase::Acquiring { node, .. }) => {
                (call.node, call.lease_ms) = (node, client.sub_lease_ms());
            }
            (EXTEND, Phase::Extending { left }) => (call.node, call.lease_ms) = (first(left), LEASE_MS),
            (UNLOCK, Phase::Held) => call.lease_ms = WATCHDOG_MS,
            (UNLOCK, Phase::Releasing { left, .. }) => {
                (call.node, call.lease_ms) = (first(left), WATCHDOG_MS)
            }
            (ACQUIRE | EXTEND | UNLOCK, _) => return false,
            (event, _) => {
                self.asked_wait_ms = 0;
                (call.node, call.lease_ms) = (usize::from(choice) % NODES, JUMP_MS);
                let is_down = self.down & 1 << call.node != 0;
                return match OPERATIONS[event].sends {
                    Sends::Event(NodeEvent::Down) => !is_down,
                    Sends::Event(NodeEvent::Up) => is_down,
                    _ => true,
                };
            }
        }
        self.asked_wait_ms = wait_ms;
        call.fate = match self.down & 1 << call.node {
            0 if call.operation == ACQUIRE && choice == 7 => Fate::ReplyLost,
            0 => Fate::Answered,
            _ => Fate::Lost,
        };
        true
    }

    fn before(&mut self, call: &Call, view: View) {
        let asks_first = matches!(self.clients[call.owner].phase, Phase::Acquiring { node: 0, .. });
        if call.operation == ACQUIRE && asks_first && self.clients[call.owner].acquired == 0 {
            let holds = self.holds(call.owner, view);
            self.clients[call.owner].holds = holds;
        }
    }

    fn after(&mut self, seen: Observation, verdict: &mut Verdict) {
        let Observation { call, out, .. } = seen;
        match OPERATIONS[call.operation].sends {
            Sends::Event(NodeEvent::Down) => self.down |= 1 << call.node,
            Sends::Event(NodeEvent::Up) => self.down &= !(1 << call.node),
            Sends::Event(_) => {
                self.down &= !(1 << call.node);
                self.disturbed = true;
            }
            _ => match call.operation {
                ACQUIRE => self.asked(call, out),
                EXTEND => self.extended(seen, verdict),
                _ => self.released(seen, verdict),
            },
        }
    }

    fn deadlines(&self, _: View, into: &mut Vec<i64>) {
        for client in &self.clients {
            into.extend([client.until_ms, client.since_ms + client.wait_ms].iter().filter(|time| **time > 0));
        }
    }
}
