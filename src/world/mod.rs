//! The world: nodes, one clock, one order of events.
//!
//! Everything that can happen comes in here: connections that open and close, requests, time. Each input is an *event*
//! with a number, and the same events with the same seed give the same outputs, always. The drivers (sockets,
//! [`Sim`](crate::Sim)) only carry bytes and time.

pub mod clock;

use sha1::{Digest, Sha1};

use crate::node::{Config, Node, Request, SessionId};
use crate::rng::Rng;
use crate::wire::{ProtocolError, RequestLimits};

pub use clock::{Clock, ClockMode};

/// How a world begins.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// Where all random choices come from.
    pub seed: u64,
    pub clock: ClockMode,
    /// Unix time in ms at the beginning.
    pub wall_start_ms: i64,
    /// One node for each.
    pub nodes: Vec<Config>,
}

/// Names a connection to one of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    pub node: usize,
    pub session: SessionId,
}

/// Nodes under one clock.
pub struct World {
    nodes: Vec<Node>,
    clock: Clock,
    events: u64,
    sessions: Vec<SessionId>,
}

impl World {
    pub fn new(options: WorldOptions) -> World {
        let mut rng = Rng::new(options.seed);
        let clock = Clock::new(options.clock, options.wall_start_ms);
        let nodes = options
            .nodes
            .into_iter()
            .map(|config| Node::new(config, Rng::new(rng.next_u64()), clock.now()))
            .collect();
        World { nodes, clock, events: 0, sessions: Vec::new() }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Gives the next event its number and its time.
    fn begin(&mut self, node: usize) -> &mut Node {
        self.events += 1;
        let node = &mut self.nodes[node];
        node.store.now = self.clock.now();
        node
    }

    // ---- inputs --------------------------------------------------------------------------------------------------

    /// A client connects to a node from `addr`, which it reached at `laddr`.
    pub fn open(&mut self, node: usize, addr: String, laddr: String) -> ConnId {
        ConnId { node, session: self.begin(node).open(addr, laddr) }
    }

    /// A client sends a request. It has to be [ready](Self::is_ready).
    pub fn request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        if !argv.is_empty() {
            self.begin(conn.node).execute(conn.session, argv);
        }
    }

    /// What a client sent is no request.
    pub fn protocol_error(&mut self, conn: ConnId, error: &ProtocolError) {
        self.begin(conn.node).protocol_error(conn.session, error);
    }

    /// A client is gone.
    pub fn close(&mut self, conn: ConnId) {
        self.begin(conn.node).close(conn.session);
    }

    /// The driver's own clock has come to `elapsed_us` since the world began. Timers fire on the way, each at its
    /// own instant. Without effect on a manual clock.
    pub fn tick(&mut self, elapsed_us: u64) {
        if let Some(target_us) = self.clock.target_us(elapsed_us) {
            self.advance_to(target_us);
        }
    }

    /// Moves a manual clock on; timers fire on the way, each at its own instant. Returns how many did.
    pub fn advance(&mut self, ms: u64) -> u64 {
        self.advance_to(self.clock.now().mono_us.saturating_add(ms.saturating_mul(1000)))
    }

    fn advance_to(&mut self, target_us: u64) -> u64 {
        let mut fired = 0;
        while let Some((due_ms, node)) = self.next_timer() {
            if due_ms > target_us / 1000 {
                break;
            }
            self.clock.move_to(due_ms * 1000);
            self.nodes[node].store.now = self.clock.now();
            while self.nodes[node].fire_next_timer() {
                self.events += 1;
                fired += 1;
            }
        }
        self.clock.move_to(target_us);
        fired
    }

    /// When the next timer may be due, and on which node.
    fn next_timer(&self) -> Option<(u64, usize)> {
        let timers = self.nodes.iter().enumerate();
        timers.filter_map(|(index, node)| Some((node.next_wakeup_ms()?, index))).min()
    }

    /// Lets the script that is running on a node go on for a slice. False: none is running (any more).
    pub fn run_slice(&mut self, node: usize) -> bool {
        let Some((started, slices)) = self.nodes[node].scripts.progress() else { return false };
        // On a clock that stands still a slice counts as a millisecond.
        let ran_ms = match self.clock.mode() {
            ClockMode::Manual => slices,
            _ => self.clock.now().mono_ms() - started.mono_ms(),
        };
        self.begin(node).resume_script(ran_ms);
        self.nodes[node].scripts.is_running()
    }

    // ---- outputs -------------------------------------------------------------------------------------------------

    /// The connections that have output, were closed, or may send again since the last call.
    pub fn take_dirty(&mut self, into: &mut Vec<ConnId>) {
        into.clear();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.sessions.take_dirty(&mut self.sessions);
            into.extend(self.sessions.iter().map(|&session| ConnId { node: index, session }));
        }
    }

    /// What is to be written to a connection. The driver takes away what it has written.
    pub fn output(&mut self, conn: ConnId) -> Option<&mut Vec<u8>> {
        Some(self.nodes[conn.node].sessions.get_mut(conn.session)?.out.buffer_mut())
    }

    /// Whether a connection may send its next request: it neither waits nor ends.
    pub fn is_ready(&self, conn: ConnId) -> bool {
        self.nodes[conn.node].sessions.get(conn.session).is_some_and(|session| session.is_ready())
    }

    /// Whether a connection ends once its output is written.
    pub fn is_closing(&self, conn: ConnId) -> bool {
        self.nodes[conn.node].sessions.get(conn.session).is_none_or(|session| session.closing)
    }

    /// Whether a connection ends at once, written or not.
    pub fn is_killed(&self, conn: ConnId) -> bool {
        self.nodes[conn.node].sessions.get(conn.session).is_none_or(|session| session.killed)
    }

    /// What a request of this connection may hold.
    pub fn request_limits(&self, conn: ConnId) -> RequestLimits {
        let node = &self.nodes[conn.node];
        RequestLimits {
            max_bulk_len: node.config.proto_max_bulk_len,
            authenticated: node.sessions.get(conn.session).is_none_or(|session| session.authenticated),
        }
    }

    /// The driver's time, in µs since the world began, before which no timer is due. `None`: nothing to wait for.
    pub fn next_wakeup_us(&self) -> Option<u64> {
        self.next_timer().and_then(|(due_ms, _)| self.clock.elapsed_us_at(due_ms.saturating_mul(1000)))
    }

    /// Whether a script is in the middle of its work on a node.
    pub fn is_running_script(&self, node: usize) -> bool {
        self.nodes[node].scripts.is_running()
    }

    /// Whether that script has run so long that others are told so.
    pub fn is_busy(&self, node: usize) -> bool {
        self.nodes[node].scripts.is_busy()
    }

    /// Whether a client asked for the end.
    pub fn shutdown_requested(&self) -> bool {
        self.nodes.iter().any(|node| node.request == Some(Request::Shutdown))
    }

    /// A hash over the state of all nodes: equal states have equal digests on every machine.
    pub fn digest(&self) -> String {
        let mut hasher = Sha1::new();
        hasher.update(self.clock.now().mono_us.to_le_bytes());
        for node in &self.nodes {
            node.digest(&mut |bytes| hasher.update(bytes));
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
