//! A world with its control plane.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::commands::run::Register;
use super::commands::trace::TraceFile;
use super::commands::{Answer, Context, SimCommand, is_sim_command};
use super::gates::At;
use super::staging::Staging;
use super::{Await, Due};
use crate::trace::Recorder;
use redlatch_core::error;
use redlatch_core::stages::{Interest, Plan, Stages, Verdict};
use redlatch_core::wire::ProtocolError;
use redlatch_core::world::snapshot::Snapshot;
use redlatch_core::world::{ConnId, World, WorldOptions, streams};
use redlatch_locks::check::{Checks, Finding, MAX_FINDINGS};

/// A world with its control plane. Drivers (sockets, the in-process handle, replay) talk to it.
///
/// Every input goes through the lab, so that the trace records it. After each event the lab applies the SIM commands of
/// scripts, answers control connections that wait, collects violations from the checkers, and records the outputs.
pub struct Lab {
    pub(crate) world: World,
    pub(crate) staging: Rc<Staging>,
    pub(crate) seed: u64,
    /// The driver's time at the last tick, in µs since the world began.
    pub(crate) elapsed_us: u64,
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    /// The fenced store of SIM.RUN STORE.
    pub(crate) registers: BTreeMap<Vec<u8>, Register>,
    /// How far SIM.CLOCK JUMP ... COMMAND asks the driver to move its command's clock, in ms.
    pub(crate) command_jump_ms: Option<i64>,
    /// The checks that SIM.CHECK has turned on, and the violations that they have found.
    pub(crate) checks: Option<Checks>,
    pub(crate) findings: Vec<Finding>,
    /// Control connections that wait for tickets.
    pub(crate) awaits: Vec<Await>,
    pub(super) recorder: Option<Box<Recorder>>,
    /// What the driver has to do with the trace file.
    pub(crate) trace_file: Option<TraceFile>,
}

/// The owner of the next timer to fire.
enum Next {
    Control,
    Node(usize),
}

impl Lab {
    /// Creates a world without rules, gates or checks.
    pub fn new(options: WorldOptions) -> Lab {
        let (_, rng) = streams(options.seed, options.nodes.len());
        let staging = Rc::new(Staging::new(rng, options.nodes.iter().map(|config| config.version)));
        let stages: Rc<dyn Stages> = staging.clone();
        Lab {
            seed: options.seed,
            world: World::with_stages(options, stages),
            staging,
            elapsed_us: 0,
            snapshots: BTreeMap::new(),
            registers: BTreeMap::new(),
            command_jump_ms: None,
            checks: None,
            findings: Vec::new(),
            awaits: Vec::new(),
            recorder: None,
            trace_file: None,
        }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// Tells the core which stages to call. To be called whenever rules, gates, checks or counts change.
    pub(crate) fn refresh_interest(&mut self) {
        let is_active = self.staging.control.borrow().is_active();
        let counts = self.staging.watches.borrow().iter().any(|watch| watch.costs.on);
        self.world.set_interest(Interest {
            requests: is_active,
            pushes: is_active,
            scripts: self.checks.is_some() || counts,
            calls: counts,
        });
    }

    /// Does everything that follows an event on a node.
    #[inline(always)] // Nothing to do, for nearly every request.
    fn settle(&mut self, node: usize) {
        while let Some(command) = self.next_queued(node) {
            if let Err(error) = self.apply(command, None) {
                tracing::warn!(node, %error, "a script's SIM command failed");
            }
        }
        if !self.awaits.is_empty() {
            self.answer_awaits();
        }
        if self.checks.is_some() {
            self.take_findings(node);
        }
        if self.recorder.is_some() {
            self.record_outputs();
        }
    }

    /// Ends the event on every node, after something that may concern any of them.
    pub(crate) fn settle_all(&mut self) {
        for node in 0..self.world.nodes().len() {
            self.world.end(node, None);
            self.settle(node);
        }
    }

    /// Removes and returns the next SIM command that a script of this node has queued.
    fn next_queued(&self, node: usize) -> Option<SimCommand> {
        if !self.staging.has_queued.get() {
            return None;
        }
        let mut queued = self.staging.queued.borrow_mut();
        self.staging.has_queued.set(!queued.is_empty());
        let at = queued.iter().position(|(from, _)| *from == node)?;
        Some(queued.remove(at).1)
    }

    /// Collects the violations that the checker of a node has found: keeps, logs and records them.
    fn take_findings(&mut self, node: usize) {
        let found = match &mut self.staging.watches.borrow_mut()[node].checker {
            Some(checker) => checker.take_findings(),
            None => return,
        };
        for finding in found {
            if let Some(recorder) = &mut self.recorder {
                recorder.finding(&finding);
            }
            let (key, owner) = (finding.key.escape_ascii(), finding.owner.escape_ascii());
            tracing::warn!(
                event = finding.event, node, object = finding.object, %key, %owner,
                invariant = finding.promise(), "an invariant of a lock is violated: {}", finding.violation.text
            );
            if self.findings.len() < MAX_FINDINGS {
                self.findings.push(finding);
            }
        }
    }

    /// Seeds the random streams anew.
    pub(crate) fn reseed(&mut self, seed: u64) {
        let (_, rng) = streams(seed, self.world.nodes().len());
        self.seed = seed;
        self.world.reseed(seed);
        self.staging.control.borrow_mut().rng = rng;
    }

    /// Removes all data, rules, gates and states, releases everything held, and makes all nodes running masters.
    pub(crate) fn reset(&mut self) {
        let gates: Vec<u64> = self.staging.control.borrow().gates.iter().map(|gate| gate.id).collect();
        self.staging.control.borrow_mut().rules.clear();
        gates.into_iter().for_each(|gate| self.remove_gate(gate));
        self.registers.clear();
        self.world.reset();
        self.refresh_interest();
    }

    /// Releases a ticket. Returns false if there is no such ticket.
    pub fn release(&mut self, ticket: u64) -> bool {
        let Some(ticket) = self.staging.control.borrow_mut().gates.take(ticket) else { return false };
        let conn = ticket.conn;
        if ticket.at != At::Pre {
            self.world.node_mut(conn.node).release_output(conn.session, ticket.id);
            return true;
        }
        if let Some(request) = self.world.take_held(conn) {
            self.world.begin(conn.node);
            let argv = request.args();
            let verdict = match ticket.gate {
                Some(_) => self.world.with_received(conn, &argv, |request| self.staging.pass_rules(request)),
                // Only a rule's delay holds without a gate, so the rules have been applied already.
                None => Verdict::Run(Plan::default()),
            };
            self.world.carry_out(conn, &argv, verdict);
        }
        true
    }

    // ---- inputs --------------------------------------------------------------------------------------------------

    /// Connects a client to a node. `addr`: the client's address; `laddr`: the server's.
    pub fn open(&mut self, node: usize, addr: String, laddr: String) -> ConnId {
        self.open_as(node, false, addr, laddr)
    }

    /// Connects a client that only sends SIM commands. It can connect, and stays connected, whatever the state of node 0.
    pub fn open_control(&mut self, addr: String, laddr: String) -> ConnId {
        self.open_as(0, true, addr, laddr)
    }

    pub(super) fn open_as(&mut self, node: usize, control: bool, addr: String, laddr: String) -> ConnId {
        let when = self.when();
        let shown = self.recorder.is_some().then(|| (addr.clone(), laddr.clone()));
        let conn = self.world.open_as(node, control, addr, laddr);
        if let (Some(recorder), Some((addr, laddr))) = (&mut self.recorder, shown) {
            recorder.open(when, conn, control, &addr, &laddr);
        }
        self.settle(node);
        conn
    }

    /// Receives a request of a client. The client has to be [ready](World::is_ready).
    pub fn request(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let Some(name) = argv.first() else { return };
        if self.world.interest().requests && self.staging.control.borrow().has_abandoned() {
            self.remove_abandoned();
        }
        let is_sim = is_sim_command(name);
        if self.recorder.is_some() {
            let elapsed_us = is_sim.then_some(self.elapsed_us);
            self.record(|recorder, when| recorder.request("req", when, conn, argv, elapsed_us));
        }
        if is_sim {
            self.request_command(conn, argv);
            self.world.end(conn.node, Some(conn.session));
        } else {
            self.world.request(conn, argv);
        }
        self.settle(conn.node);
    }

    /// Receives a SIM command of a client. Rules, gates and node states do not apply; authentication does.
    fn request_command(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let nodes = self.world.nodes().len();
        let node = self.world.begin(conn.node);
        let Some(session) = node.sessions.get(conn.session) else { return };
        if node.must_authenticate(session) {
            return node.write_reply(conn.session, |reply| reply.error(error::NO_AUTH.text()));
        }
        let context = Context { node: conn.node, db: session.db, nodes };
        let answer = SimCommand::parse(argv, &context).and_then(|command| self.apply(command, Some(conn)));
        let node = self.world.node_mut(conn.node);
        match answer {
            Ok(Answer::Later) => {}
            Ok(answer) => node.write_reply(conn.session, |reply| answer.write(reply)),
            Err(error) => node.write_reply(conn.session, |reply| reply.error(error.to_string().as_bytes())),
        }
    }

    /// Receives bytes that do not parse as a request.
    pub fn protocol_error(&mut self, conn: ConnId, error: &ProtocolError) {
        self.record(|recorder, when| recorder.bad(when, conn, &error.0));
        self.world.protocol_error(conn, error);
        self.settle(conn.node);
    }

    /// Closes the connection of a client.
    pub fn close(&mut self, conn: ConnId) {
        self.record(|recorder, when| recorder.of_conn("close", when, conn));
        self.world.begin(conn.node).close(conn.session);
        let gates = {
            let mut control = self.staging.control.borrow_mut();
            control.gates.forget(conn);
            self.awaits.retain(|waiting| waiting.conn != conn);
            control.gates.owned_by(conn)
        };
        gates.into_iter().for_each(|gate| self.remove_gate(gate));
        self.world.end(conn.node, None);
        self.settle(conn.node);
    }

    /// Sets the driver's time, `elapsed_us` since the world began, and advances the clock accordingly. Each timer on the way
    /// fires at its exact due time. A manual clock does not move.
    pub fn tick(&mut self, elapsed_us: u64) {
        self.elapsed_us = elapsed_us;
        if self.next_await_us().is_some_and(|deadline_us| deadline_us <= elapsed_us) {
            self.awaited(elapsed_us);
        }
        if let Some(target_us) = self.world.clock_mut().target_us(elapsed_us) {
            self.advance_to(target_us);
        }
    }

    /// Answers the control connections whose wait has timed out at this time of the driver.
    pub(crate) fn awaited(&mut self, elapsed_us: u64) {
        self.record(|recorder, when| recorder.awaited(when, elapsed_us));
        self.elapsed_us = elapsed_us;
        self.world.set_events(self.world.events() + 1);
        self.answer_awaits();
        self.record_outputs();
    }

    /// Advances the clock by `ms`; a real clock continues from there. Each timer on the way fires at its exact due time. Returns
    /// how many fired.
    pub fn advance(&mut self, ms: u64) -> u64 {
        let now_us = self.world.clock().now().mono_us;
        let fired = self.advance_to(now_us.saturating_add(ms.saturating_mul(1000)));
        let clock = self.world.clock_mut();
        clock.set_mode(clock.mode());
        fired
    }

    pub(super) fn advance_to(&mut self, target_us: u64) -> u64 {
        if self.staging.control.borrow().has_abandoned() {
            self.remove_abandoned();
        }
        let mut fired = 0;
        while let Some(next) = self.move_to_next(target_us) {
            match next {
                Next::Control => {
                    let now_ms = self.world.clock().now().mono_ms();
                    let due = self.staging.control.borrow_mut().pop_due(now_ms);
                    if let Some(due) = due {
                        self.carry_out(due);
                        fired += 1;
                        self.settle_all();
                    }
                }
                Next::Node(node) => {
                    while self.world.fire_timer(node) {
                        fired += 1;
                        self.settle(node);
                    }
                }
            }
        }
        self.world.clock_mut().move_to(target_us);
        fired
    }

    /// Moves the clock to the next timer, up to `target_us`. At equal times the control plane comes first.
    fn move_to_next(&mut self, target_us: u64) -> Option<Next> {
        let due_ms = self.staging.control.borrow().next_due_ms().filter(|&due_ms| due_ms <= target_us / 1000);
        let timer = self.world.next_timer();
        match due_ms {
            Some(due_ms) if timer.is_none_or(|(timer_ms, _)| due_ms <= timer_ms) => {
                self.world.clock_mut().move_to(due_ms.saturating_mul(1000));
                Some(Next::Control)
            }
            _ => self.world.move_to_next_timer(target_us).map(Next::Node),
        }
    }

    /// Carries out an action that is due.
    fn carry_out(&mut self, due: Due) {
        match due {
            Due::Release(ticket) => {
                self.release(ticket);
            }
            Due::Start(node) => self.world.start_node(node),
        }
    }

    /// Returns when the next timer is due, monotonic.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        let due_ms = self.staging.control.borrow().next_due_ms();
        self.world.next_due_ms().into_iter().chain(due_ms).min()
    }

    /// Returns the driver's time at which the first waiting control connection times out.
    fn next_await_us(&self) -> Option<u64> {
        self.awaits.iter().filter_map(|waiting| waiting.deadline_us).min()
    }

    /// Runs the suspended script of a node for one slice. Returns false if no script is running, or none is left.
    pub fn run_slice(&mut self, node: usize) -> bool {
        let Some(ran_ms) = self.world.script_ran_ms(node) else { return false };
        self.run_slice_for(node, ran_ms);
        self.world.is_running_script(node)
    }

    /// Runs the suspended script of a node for one slice, and counts it as having run for `ran_ms` in all.
    pub(crate) fn run_slice_for(&mut self, node: usize, ran_ms: u64) {
        self.record(|recorder, when| recorder.slice(when, node, ran_ms));
        self.world.run_slice_for(node, ran_ms);
        self.settle(node);
    }

    // ---- outputs -------------------------------------------------------------------------------------------------

    /// Moves into `into` the connections that have output, were closed, or may send again since the last call.
    pub fn take_dirty(&mut self, into: &mut Vec<ConnId>) {
        self.world.take_dirty(into);
    }

    /// Appends the output for a connection to `into`.
    pub fn take_output(&mut self, conn: ConnId, into: &mut Vec<u8>) {
        self.world.take_output(conn, into);
    }

    /// Returns the driver's time, in µs since the world began, at which the next timer is due. `None`: no timer is set.
    pub fn next_wakeup_us(&self) -> Option<u64> {
        let due_ms = self.staging.control.borrow().next_due_ms();
        let next_ms = self.world.next_timer().map(|(due_ms, _)| due_ms).into_iter().chain(due_ms).min();
        let clock = self.world.clock();
        let timer_us = next_ms.and_then(|due_ms| clock.elapsed_us_at(due_ms.saturating_mul(1000)));
        timer_us.into_iter().chain(self.next_await_us()).min()
    }

    /// Takes what the driver has to do with the trace file.
    pub fn take_trace_file(&mut self) -> Option<TraceFile> {
        self.trace_file.take()
    }

    /// Takes how far the clock of the driver's command has to jump, in ms.
    pub fn take_command_jump(&mut self) -> Option<i64> {
        self.command_jump_ms.take()
    }
}
