//! The world: nodes, one clock, one order of events.
//!
//! Everything that can happen comes in here: connections that open and close, requests, time. Each input is an *event*
//! with a number, and the same events with the same seed give the same outputs, always. The drivers (sockets,
//! [`Sim`](crate::Sim)) only carry bytes and time.

pub mod clock;
mod record;
mod replication;
pub mod snapshot;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use sha1::{Digest, Sha1};

use crate::check::{Checks, Finding, MAX_FINDINGS};
use crate::control::orders::run::Register;
use crate::control::orders::trace::TraceFile;
use crate::control::orders::{Answer, Order, Scene, is_order};
use crate::control::{Control, Shared};
use crate::error;
use crate::node::{Config, Node, Request, SessionId};
use crate::rng::Rng;
use crate::trace::Recorder;
use crate::trace::record::When;
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

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Control,
    Node(usize),
}

/// Nodes under one clock.
pub struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) clock: Clock,
    pub(crate) events: u64,
    pub(crate) seed: u64,
    /// The driver's time at the last tick, in µs since the world began.
    pub(crate) elapsed_us: u64,
    pub(crate) control: Shared,
    /// Whether requests have to be shown to `control`.
    stages_requests: bool,
    pub(crate) snapshots: BTreeMap<String, snapshot::Snapshot>,
    /// The fenced store of SIM.RUN STORE.
    pub(crate) registers: BTreeMap<Vec<u8>, Register>,
    /// SIM.CLOCK JUMP ... COMMAND: what the driver is to do to its command's clock, in ms.
    pub(crate) command_jump_ms: Option<i64>,
    /// What SIM.CHECK looks for, and what it has found.
    pub(crate) checks: Option<Checks>,
    pub(crate) findings: Vec<Finding>,
    recorder: Option<Box<Recorder>>,
    /// What the driver is to do about the file of the trace.
    pub(crate) trace_file: Option<TraceFile>,
    sessions: Vec<SessionId>,
}

impl World {
    pub fn new(options: WorldOptions) -> World {
        let mut rng = Rng::new(options.seed);
        let clock = Clock::new(options.clock, options.wall_start_ms);
        let count = options.nodes.len();
        let streams: Vec<Rng> = (0..count).map(|_| Rng::new(rng.next_u64())).collect();
        let control = Rc::new(RefCell::new(Control::new(Rng::new(rng.next_u64()))));
        let nodes = options.nodes.into_iter().zip(streams).enumerate().map(|(index, (config, rng))| {
            Node::new((index, count), config, rng, clock.now(), control.clone())
        });
        World {
            nodes: nodes.collect(),
            clock,
            events: 0,
            seed: options.seed,
            elapsed_us: 0,
            control,
            stages_requests: false,
            snapshots: BTreeMap::new(),
            registers: BTreeMap::new(),
            command_jump_ms: None,
            checks: None,
            findings: Vec::new(),
            recorder: None,
            trace_file: None,
            sessions: Vec::new(),
        }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether it is noted from here on which lines of scripts run; [`Node::has_reached`] tells.
    pub fn note_lines(&mut self, on: bool) {
        self.nodes.iter_mut().for_each(|node| node.note_lines(on));
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Gives the next event its number and its time.
    pub(crate) fn begin(&mut self, node: usize) -> &mut Node {
        self.events += 1;
        let node = &mut self.nodes[node];
        node.event = self.events;
        node.set_now(self.clock.now());
        node
    }

    /// An event is over: what follows from it happens. `writer`: the client whose request it was.
    fn end(&mut self, node: usize, writer: Option<SessionId>) {
        self.send_writes(node, writer);
        while let Some(order) =
            (!self.nodes[node].orders.is_empty()).then(|| self.nodes[node].orders.remove(0))
        {
            if let Err(error) = self.obey(order, None) {
                tracing::warn!(node, %error, "an order of a script was refused");
            }
        }
        if !self.control.borrow().awaits.is_empty() {
            self.answer_awaits();
        }
        if self.checks.is_some() {
            self.take_findings(node);
        }
        if self.recorder.is_some() {
            self.record_outputs();
        }
    }

    /// What the checks of a node have found is kept, logged and written down.
    fn take_findings(&mut self, node: usize) {
        let Some(checker) = &mut self.nodes[node].checker else { return };
        for finding in checker.take_findings() {
            if let Some(recorder) = &mut self.recorder {
                recorder.finding(&finding);
            }
            let (key, owner) = (finding.key.escape_ascii(), finding.owner.escape_ascii());
            tracing::warn!(
                event = finding.event, node, object = finding.object, %key, %owner,
                promise = finding.promise(), "a promise is broken: {}", finding.violation.text
            );
            if self.findings.len() < MAX_FINDINGS {
                self.findings.push(finding);
            }
        }
    }

    /// Rules, gates or states have changed.
    pub(crate) fn refresh_stages(&mut self) {
        let control = self.control.borrow();
        self.stages_requests = control.is_active() || self.nodes.iter().any(|node| node.paused);
        let pushes = control.is_active();
        self.nodes.iter_mut().for_each(|node| node.stages_pushes = pushes);
        // A deaf connection stays so when its rule is gone.
        self.stages_requests |= control.has_deafened;
    }

    // ---- inputs --------------------------------------------------------------------------------------------------

    /// A client connects to a node from `addr`, which it reached at `laddr`.
    pub fn open(&mut self, node: usize, addr: String, laddr: String) -> ConnId {
        self.open_as(node, false, addr, laddr)
    }

    /// A client connects that only gives orders: it is let in, and stays, whatever becomes of the first node.
    pub fn open_control(&mut self, addr: String, laddr: String) -> ConnId {
        self.open_as(0, true, addr, laddr)
    }

    pub(crate) fn open_as(&mut self, node: usize, control: bool, addr: String, laddr: String) -> ConnId {
        let mono_us = self.clock.now().mono_us;
        let shown = self.recorder.is_some().then(|| (addr.clone(), laddr.clone()));
        let session = self.begin(node).open(addr, laddr, control);
        let (conn, when) = (ConnId { node, session }, When { event: self.events, mono_us });
        if let (Some(recorder), Some((addr, laddr))) = (&mut self.recorder, shown) {
            recorder.open(when, conn, control, &addr, &laddr);
        }
        self.end(node, None);
        conn
    }

    /// A client sends a request. It has to be [ready](Self::is_ready).
    pub fn request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let Some(name) = argv.first() else { return };
        if self.stages_requests && self.control.borrow().has_abandoned() {
            self.remove_abandoned();
        }
        if self.recorder.is_some() {
            let elapsed_us = is_order(name).then_some(self.elapsed_us);
            self.record(|recorder, when| recorder.request("req", when, conn, argv, elapsed_us));
        }
        if is_order(name) {
            self.request_order(conn, argv);
        } else if self.stages_requests {
            self.begin(conn.node);
            self.stage_request(conn, argv);
        } else {
            self.begin(conn.node).execute(conn.session, argv);
        }
        self.end(conn.node, Some(conn.session));
    }

    /// A client sends a SIM command. No rule, gate or state stands in its way, only the password.
    fn request_order(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let nodes = self.nodes.len();
        let node = self.begin(conn.node);
        let Some(session) = node.sessions.get(conn.session) else { return };
        if !session.authenticated {
            return node.write_reply(conn.session, |reply| reply.error(error::NO_AUTH.text()));
        }
        let scene = Scene { node: conn.node, db: session.db, nodes };
        let answer = Order::parse(argv, &scene).and_then(|order| self.obey(order, Some(conn)));
        match answer {
            Ok(Answer::Later) => {}
            Ok(answer) => self.nodes[conn.node].write_reply(conn.session, |reply| answer.write(reply)),
            Err(error) => self.nodes[conn.node]
                .write_reply(conn.session, |reply| reply.error(error.to_string().as_bytes())),
        }
    }

    /// What a client sent is no request.
    pub fn protocol_error(&mut self, conn: ConnId, error: &ProtocolError) {
        self.record(|recorder, when| recorder.bad(when, conn, &error.0));
        self.begin(conn.node).protocol_error(conn.session, error);
        self.end(conn.node, None);
    }

    /// A client is gone.
    pub fn close(&mut self, conn: ConnId) {
        self.record(|recorder, when| recorder.of_conn("close", when, conn));
        self.begin(conn.node).close(conn.session);
        let gates = {
            let mut control = self.control.borrow_mut();
            control.gates.forget(conn);
            control.awaits.retain(|waiting| waiting.conn != conn);
            control.gates.owned_by(conn)
        };
        gates.into_iter().for_each(|gate| self.remove_gate(gate));
        self.end(conn.node, None);
    }

    /// The driver's own clock has come to `elapsed_us` since the world began. Timers fire on the way, each at its
    /// own instant. Without effect on a manual clock.
    pub fn tick(&mut self, elapsed_us: u64) {
        self.elapsed_us = elapsed_us;
        if self.next_await_us().is_some_and(|deadline_us| deadline_us <= elapsed_us) {
            self.awaited(elapsed_us);
        }
        if let Some(target_us) = self.clock.target_us(elapsed_us) {
            self.advance_to(target_us);
        }
    }

    /// Control connections have waited until this time of the driver.
    pub(crate) fn awaited(&mut self, elapsed_us: u64) {
        self.record(|recorder, when| recorder.awaited(when, elapsed_us));
        self.elapsed_us = elapsed_us;
        self.events += 1;
        self.answer_awaits();
        self.record_outputs();
    }

    /// Moves the clock on, and it goes on from there; timers fire on the way, each at its own instant. Returns how many did.
    pub fn advance(&mut self, ms: u64) -> u64 {
        let fired = self.advance_to(self.clock.now().mono_us.saturating_add(ms.saturating_mul(1000)));
        self.clock.set_mode(self.clock.mode());
        fired
    }

    fn advance_to(&mut self, target_us: u64) -> u64 {
        if self.control.borrow().has_abandoned() {
            self.remove_abandoned();
        }
        let mut fired = 0;
        while let Some((due_ms, source)) = self.next_timer() {
            if due_ms > target_us / 1000 {
                break;
            }
            self.clock.move_to(due_ms.saturating_mul(1000));
            match source {
                Source::Control => {
                    let due = self.control.borrow_mut().pop_due(due_ms);
                    if let Some(due) = due {
                        self.due(due);
                        fired += 1;
                        (0..self.nodes.len()).for_each(|node| self.end(node, None));
                    }
                }
                Source::Node(node) => {
                    self.nodes[node].set_now(self.clock.now());
                    while self.nodes[node].fire_next_timer() {
                        self.events += 1;
                        fired += 1;
                        self.end(node, None);
                    }
                }
            }
        }
        self.clock.move_to(target_us);
        fired
    }

    /// When the next timer may be due, and whose it is.
    fn next_timer(&self) -> Option<(u64, Source)> {
        let control = self.control.borrow().next_due_ms().map(|due_ms| (due_ms, Source::Control));
        let nodes = self.nodes.iter().enumerate();
        let timers = nodes.filter_map(|(index, node)| Some((node.next_wakeup_ms()?, Source::Node(index))));
        timers.chain(control).min()
    }

    /// When the next timer is due, monotonic.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        let stands_still = |node: &&Node| node.paused || node.stopped;
        let nodes = self.nodes.iter().filter(|node| !stands_still(node));
        let timers = nodes.filter_map(|node| node.store.timers.next_deadline_ms());
        timers.chain(self.control.borrow().next_due_ms()).min()
    }

    /// The driver's time at which the first control connection has waited long enough.
    fn next_await_us(&self) -> Option<u64> {
        let control = self.control.borrow();
        control.awaits.iter().filter_map(|waiting| waiting.deadline_us).min()
    }

    /// Random choices from here on come from another seed.
    pub(crate) fn reseed(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.seed = seed;
        self.nodes.iter_mut().for_each(|node| node.rng = Rng::new(rng.next_u64()));
        self.control.borrow_mut().rng = Rng::new(rng.next_u64());
    }

    /// No data, rules, gates or states are left; nodes run and are masters; what was held goes on.
    pub(crate) fn reset(&mut self) {
        let gates: Vec<u64> = self.control.borrow().gates.iter().map(|gate| gate.id).collect();
        self.control.borrow_mut().rules.clear();
        gates.into_iter().for_each(|gate| self.remove_gate(gate));
        self.registers.clear();
        for index in 0..self.nodes.len() {
            self.promote(index);
            let node = self.begin(index);
            (node.states, node.paused, node.stopped) = Default::default();
            node.replication.forced_acks = None;
            node.wall_jump_ms = 0;
            node.scripts.flush();
            (0..node.store.dbs.len()).for_each(|db| node.flush_db(db));
        }
        for index in 0..self.nodes.len() {
            self.resume(index);
        }
        self.refresh_stages();
    }

    /// Lets the script that is running on a node go on for a slice. False: none is running (any more).
    pub fn run_slice(&mut self, node: usize) -> bool {
        let Some((started, slices)) = self.nodes[node].scripts.progress() else { return false };
        // On a clock that stands still a slice counts as a millisecond.
        let ran_ms = match self.clock.mode() {
            ClockMode::Manual => slices,
            _ => self.clock.now().mono_ms() - started.mono_ms(),
        };
        self.run_slice_for(node, ran_ms);
        self.nodes[node].scripts.is_running()
    }

    /// The same for a script that counts as having run for `ran_ms`.
    pub(crate) fn run_slice_for(&mut self, node: usize, ran_ms: u64) {
        self.record(|recorder, when| recorder.slice(when, node, ran_ms));
        self.begin(node).resume_script(ran_ms);
        self.end(node, None);
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

    /// Moves what is to be written to a connection behind what `into` holds.
    pub fn take_output(&mut self, conn: ConnId, into: &mut Vec<u8>) {
        if let Some(session) = self.nodes[conn.node].sessions.get_mut(conn.session) {
            session.take_ready(into);
        }
    }

    /// How many bytes are to be written to a connection.
    pub fn output_len(&self, conn: ConnId) -> usize {
        self.nodes[conn.node].sessions.get(conn.session).map_or(0, |session| session.ready_len())
    }

    /// Whether a connection may send its next request: it neither waits nor ends.
    pub fn is_ready(&self, conn: ConnId) -> bool {
        self.nodes[conn.node].sessions.get(conn.session).is_some_and(|session| session.is_ready())
    }

    /// Whether a connection ends once its output is written.
    pub fn is_closing(&self, conn: ConnId) -> bool {
        let session = self.nodes[conn.node].sessions.get(conn.session);
        session.is_none_or(|session| session.closing && !session.withholds())
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
        let timer =
            self.next_timer().and_then(|(due_ms, _)| self.clock.elapsed_us_at(due_ms.saturating_mul(1000)));
        timer.into_iter().chain(self.next_await_us()).min()
    }

    /// Whether a script is in the middle of its work on a node.
    pub fn is_running_script(&self, node: usize) -> bool {
        self.nodes[node].scripts.is_running()
    }

    /// Whether that script has run so long that others are told so.
    pub fn is_busy(&self, node: usize) -> bool {
        self.nodes[node].scripts.is_busy()
    }

    /// By how much the clock of the driver's command is to jump, in ms.
    pub fn take_command_jump(&mut self) -> Option<i64> {
        self.command_jump_ms.take()
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
