//! A world with its control plane.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::args::denied;
use super::commands::run::Register;
use super::commands::trace::OpenTrace;
use super::commands::{Answer, Context, SimCommand, is_sim_command};
use super::gates::At;
use super::staging::{Staging, conn_of};
use super::{Await, Due};
use crate::trace::Recorder;
use redlatch_core::acl::file::without_passwords;
use redlatch_core::error;
use redlatch_core::node::errands::Task;
use redlatch_core::stages::{Interest, Plan, Stages, Verdict};
use redlatch_core::store::rdb::file::FileError;
use redlatch_core::wire::ProtocolError;
use redlatch_core::world::snapshot::Snapshot;
use redlatch_core::world::{ConnId, World, WorldOptions, streams};
use redlatch_locks::check::{Checks, Finding, Kinds, MAX_FINDINGS};

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
    /// Whether timers were left for the next turn, so that the clock stands still until they have fired.
    pub(super) is_behind: bool,
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    /// The fenced store of SIM.RUN STORE.
    pub(crate) registers: BTreeMap<Vec<u8>, Register>,
    /// How far SIM.CLOCK JUMP ... COMMAND asks the driver to move its command's clock, in ms.
    pub(crate) command_jump_ms: Option<i64>,
    /// Whether the driver runs a command whose clock can jump.
    pub(crate) has_command: bool,
    /// Why the command's clock cannot jump now.
    pub(crate) command_stands: Option<String>,
    /// Asks the driver for that reason.
    pub(super) ask_command: Option<Box<dyn FnMut() -> Option<String>>>,
    /// The checks that SIM.CHECK has turned on, and the violations that they have found.
    pub(crate) checks: Option<Checks>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) kinds: Kinds,
    /// Whether checks look at the history of locks. In the replay of an older trace they do not.
    pub(crate) judges_owners: bool,
    /// Whether the history of locks is kept without checks too.
    pub(crate) keeps_history: bool,
    /// Control connections that wait for tickets.
    pub(crate) awaits: Vec<Await>,
    pub(super) recorder: Option<Box<Recorder>>,
    /// A script's SIM command was applied, which may have let a node go on.
    pub(super) may_have_resumed: bool,
    /// In the replay of an older trace: jumps and resets act on the nodes' clocks only, and a reset keeps numbers.
    pub(crate) keeps_old_clock: bool,
    /// How the driver opens the file of SIM.TRACE START, if clients may write files.
    pub(crate) open_trace: Option<OpenTrace>,
    /// Whether SIM.TRACE STOP has asked the driver to end the trace.
    pub(crate) trace_ends: bool,
}

/// The most timers that fire in one turn of a real clock. Clients are served between two turns.
const TIMERS_PER_TURN: u64 = 200;

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
            is_behind: false,
            snapshots: BTreeMap::new(),
            registers: BTreeMap::new(),
            command_jump_ms: None,
            has_command: false,
            command_stands: None,
            ask_command: None,
            checks: None,
            findings: Vec::new(),
            kinds: Kinds::default(),
            judges_owners: true,
            keeps_history: false,
            awaits: Vec::new(),
            recorder: None,
            may_have_resumed: false,
            keeps_old_clock: false,
            open_trace: None,
            trace_ends: false,
        }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// Tells the core which stages to call. To be called whenever rules, gates, checks or counts change.
    pub(crate) fn refresh_interest(&mut self) {
        let is_active = self.staging.control.borrow().is_active();
        let counts = self.counts_costs();
        self.world.set_interest(Interest {
            requests: is_active,
            pushes: is_active,
            scripts: self.checks.is_some() || counts || self.has_history(),
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
            self.end_everywhere(None);
            self.may_have_resumed = true;
        }
        if !self.awaits.is_empty() {
            self.answer_awaits();
        }
        if self.checks.is_some() {
            self.take_findings(node);
        }
        if self.recorder.is_some() || self.has_history() {
            self.record_outputs();
        }
    }

    /// Ends the event on every node, after something that may concern any of them.
    pub(crate) fn settle_all(&mut self) {
        for node in 0..self.world.nodes().len() {
            self.world.end(node, None);
            self.settle(node);
        }
        self.fire_due();
    }

    /// Sends the writes of an event that may have concerned any node to the replicas. `writer`: the client whose request it was.
    fn end_everywhere(&mut self, writer: Option<ConnId>) {
        for node in 0..self.world.nodes().len() {
            self.world.end(node, writer.filter(|conn| conn.node == node).map(|conn| conn.session));
        }
    }

    /// Fires what an input has made due without time passing: a key that was given a past expiry, or what fell due while its
    /// node stood still. Comes before the next input, as in a replay. Timers that were left for the next turn stay there.
    fn fire_due(&mut self) {
        if self.is_behind {
            return;
        }
        let now_ms = self.world.clock().now().mono_ms();
        let timer_ms = self.world.next_timer().map(|(due_ms, _)| due_ms);
        let due_ms = self.staging.control.borrow().next_due_ms();
        if timer_ms.into_iter().chain(due_ms).any(|due_ms| due_ms <= now_ms) {
            self.advance_to(self.world.clock().now().mono_us);
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
        self.keep_findings(found);
    }

    /// Keeps, logs and records violations.
    pub(super) fn keep_findings(&mut self, found: Vec<Finding>) {
        for finding in found {
            if let Some(recorder) = &mut self.recorder {
                recorder.finding(&finding);
            }
            let (key, owner) = (finding.key.escape_ascii(), finding.owner.escape_ascii());
            tracing::warn!(
                event = finding.event, node = finding.node, object = finding.object, %key, %owner,
                invariant = finding.promise(), "an invariant of a lock is violated: {}", finding.to_string().trim_end().replace("\n  ", "; ")
            );
            let is_new = self.kinds.add(&finding);
            let has_room = self.kinds.has_room(&finding) || !self.judges_owners;
            if is_new && self.judges_owners || has_room && self.findings.len() < MAX_FINDINGS {
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

    /// Removes all data, rules, gates, states and measured skews, releases everything held, makes all nodes running masters, and
    /// moves their wall clocks back to the host's time. Rules, gates and tickets are numbered from 1 again.
    pub(crate) fn reset(&mut self) {
        if let Some(history) = &mut *self.staging.history.borrow_mut() {
            history.forget_locks();
        }
        let gates: Vec<u64> = self.staging.control.borrow().gates.iter().map(|gate| gate.id).collect();
        self.staging.control.borrow_mut().rules.clear();
        gates.into_iter().for_each(|gate| self.remove_gate(gate));
        if self.keeps_old_clock {
            self.registers.clear();
            self.world.reset();
            return self.refresh_interest();
        }
        let delayed: Vec<u64> =
            self.staging.control.borrow().gates.tickets().map(|ticket| ticket.id).collect();
        for ticket in delayed {
            self.release(ticket);
        }
        self.staging.control.borrow_mut().restart();
        self.staging.watches.borrow_mut().iter_mut().for_each(|watch| watch.skews = Default::default());
        self.registers.clear();
        self.world.reset();
        self.jump_to_host();
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
        if self.has_history() {
            self.show_request(conn, argv);
        }
        let is_sim = is_sim_command(name);
        if is_sim {
            // What it does to the clock begins at the present.
            self.catch_up_fully();
            self.look_at_command(argv);
        }
        if self.recorder.is_some() {
            let elapsed_us = is_sim.then_some(self.elapsed_us);
            self.record(|recorder, when| recorder.request("req", when, conn, argv, elapsed_us));
        }
        if is_sim {
            self.request_command(conn, argv);
            self.end_everywhere(Some(conn));
        } else {
            self.world.request(conn, argv);
        }
        self.settle(conn.node);
        // Anything else cannot have made something due.
        let looks = self.world.has_armed_due() || self.world.interest().requests;
        if looks || is_sim || self.may_have_resumed {
            self.may_have_resumed = false;
            self.fire_due();
        }
    }

    /// Receives a SIM command of a client. Rules, gates and node states do not apply; authentication does.
    fn request_command(&mut self, conn: ConnId, argv: &[&[u8]]) {
        let nodes = self.world.nodes().len();
        let node = self.world.begin(conn.node);
        let Some(session) = node.sessions.get(conn.session) else { return };
        if node.must_authenticate(session) {
            return node.write_reply(conn.session, |reply| reply.error(error::NO_AUTH.text()));
        }
        if !node.is_trusted(conn.session) && !self.staging.serves_anyone.get() {
            return node.write_reply(conn.session, |reply| reply.error(denied().to_string().as_bytes()));
        }
        let context = Context { node: conn.node, db: session.db, nodes };
        let was_traced = self.is_traced();
        let answer = SimCommand::parse(argv, &context).and_then(|command| self.apply(command, Some(conn)));
        let node = self.world.node_mut(conn.node);
        match answer {
            Ok(Answer::Later) => {}
            Ok(answer) => node.write_reply(conn.session, |reply| answer.write(reply)),
            Err(error) => node.write_reply(conn.session, |reply| reply.error(error.to_string().as_bytes())),
        }
        // The request that begins a trace comes before it, and so does its reply.
        if !was_traced
            && self.is_traced()
            && let Some(session) = self.world.node_mut(conn.node).sessions.get_mut(conn.session)
        {
            session.output.take_untraced();
        }
    }

    /// Receives bytes that do not parse as a request.
    pub fn protocol_error(&mut self, conn: ConnId, error: &ProtocolError) {
        self.record(|recorder, when| recorder.bad(when, conn, &error.0));
        self.world.protocol_error(conn, error);
        self.settle(conn.node);
        self.fire_due();
    }

    /// Closes the connection of a client.
    pub fn close(&mut self, conn: ConnId) {
        self.record(|recorder, when| recorder.of_conn("close", when, conn));
        if let Some(history) = &mut *self.staging.history.borrow_mut() {
            history.closed(conn_of(conn));
        }
        self.world.begin(conn.node).close(conn.session);
        let gates = {
            let mut control = self.staging.control.borrow_mut();
            control.gates.forget(conn);
            self.awaits.retain(|waiting| waiting.conn != conn);
            control.gates.owned_by(conn)
        };
        for &gate in &gates {
            tracing::warn!(
                gate,
                "the gate is removed, because the connection that added it has closed: KEEP keeps it"
            );
            self.staging.control.borrow_mut().gates.note_left(gate);
        }
        gates.into_iter().for_each(|gate| self.remove_gate(gate));
        self.end_everywhere(None);
        self.settle(conn.node);
        self.fire_due();
    }

    /// Sets the driver's time, `elapsed_us` since the world began, and advances the clock accordingly. Each timer on the way
    /// fires at its exact due time. A manual clock does not move.
    ///
    /// If very many timers are due, some are left for [`catch_up`](Self::catch_up). Until then the clock stands still at
    /// their due time, as if the requests in between had come then.
    pub fn tick(&mut self, elapsed_us: u64) {
        self.elapsed_us = elapsed_us;
        if self.next_await_us().is_some_and(|deadline_us| deadline_us <= elapsed_us) {
            self.awaited(elapsed_us);
        }
        if !self.is_behind {
            self.catch_up();
        }
    }

    /// Fires timers that are due at the driver's time, up to the number for one turn. Returns whether some are left.
    pub fn catch_up(&mut self) -> bool {
        self.is_behind = match self.world.clock_mut().target_us(self.elapsed_us) {
            Some(target_us) => !self.advance_while(target_us, |_, fired| fired < TIMERS_PER_TURN).1,
            None => false,
        };
        self.is_behind
    }

    /// Fires all timers that are due at the driver's time.
    pub fn catch_up_fully(&mut self) {
        while self.is_behind {
            self.catch_up();
        }
    }

    /// Returns whether timers were left for the next turn.
    pub fn is_behind(&self) -> bool {
        self.is_behind
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
        self.advance_us(ms.saturating_mul(1000))
    }

    /// Advances the clock by `us`, as [`advance`](Self::advance) does by ms.
    pub(crate) fn advance_us(&mut self, us: u64) -> u64 {
        let now_us = self.world.clock().now().mono_us;
        let fired = self.advance_to(now_us.saturating_add(us));
        let clock = self.world.clock_mut();
        clock.set_mode(clock.mode());
        fired
    }

    pub(super) fn advance_to(&mut self, target_us: u64) -> u64 {
        self.advance_while(target_us, |_, _| true).0
    }

    /// Advances the clock to `target_us`, as long as `goes_on` before each timer of a node; it gets the number of those
    /// that have fired. Returns that number, and whether the clock is there.
    pub(super) fn advance_while(
        &mut self,
        target_us: u64,
        goes_on: impl Fn(&Lab, u64) -> bool,
    ) -> (u64, bool) {
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
                        for node in 0..self.world.nodes().len() {
                            self.world.end(node, None);
                            self.settle(node);
                        }
                    }
                }
                Next::Node(node) => loop {
                    if !goes_on(self, fired) && self.world.is_timer_due(node) {
                        return (fired, false);
                    }
                    if !self.world.fire_timer(node) {
                        break;
                    }
                    fired += 1;
                    self.settle(node);
                },
            }
        }
        self.world.clock_mut().move_to(target_us);
        (fired, true)
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
        self.run_slice_after(node, 0)
    }

    /// Runs the suspended script of a node for one slice. It counts as having run for `real_ms` at least: a clock that a test
    /// moves does not tell the driver that a script keeps it from serving others.
    pub fn run_slice_after(&mut self, node: usize, real_ms: u64) -> bool {
        let Some(ran_ms) = self.world.script_ran_ms(node) else { return false };
        self.run_slice_for(node, ran_ms.max(real_ms));
        self.world.is_running_script(node)
    }

    /// Returns the first node whose suspended script has to go on before anything else happens: it is not busy yet.
    pub fn urgent_script(&self) -> Option<usize> {
        self.world.nodes().iter().position(|node| node.scripts.holds_requests() && !node.paused)
    }

    /// Runs all suspended scripts until they end or are busy.
    pub(crate) fn run_scripts(&mut self) {
        while let Some(node) = self.urgent_script() {
            self.run_slice(node);
        }
    }

    /// Runs the suspended script of a node for one slice, and counts it as having run for `ran_ms` in all.
    pub(crate) fn run_slice_for(&mut self, node: usize, ran_ms: u64) {
        self.record(|recorder, when| recorder.slice(when, node, ran_ms));
        self.world.run_slice_for(node, ran_ms);
        self.settle(node);
        self.fire_due();
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

    /// Lets clients write traces. `open` opens a file for the lines, or says why it cannot.
    pub fn open_traces_with(&mut self, open: OpenTrace) {
        self.open_trace = Some(open);
    }

    /// Returns whether the driver has to end the trace and to close its file.
    pub fn take_trace_end(&mut self) -> bool {
        std::mem::take(&mut self.trace_ends)
    }

    /// Adds the data of a file to a node, before any client connects and before a trace begins. Returns how many keys there are.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn load_file(&mut self, node: usize, bytes: &[u8]) -> Result<usize, FileError> {
        self.world.node_mut(node).load_file(bytes)
    }

    /// Returns the file with a node's data if a client has asked for it since the last call.
    pub fn take_saved(&mut self, node: usize) -> Option<Vec<u8>> {
        let node = self.world.node_mut(node);
        node.take_save().then(|| node.to_file())
    }

    /// Returns what a client asks the driver to do, and of which node. The driver does it before the next input, and
    /// [reports](Self::report).
    pub fn next_task(&self) -> Option<(usize, &Task)> {
        let mut nodes = self.world.nodes().iter().enumerate();
        nodes.find_map(|(index, node)| Some((index, node.next_task()?)))
    }

    /// Tells a node what the driver has read or been answered for it, or why the driver could not do what a client asked for.
    pub fn report(&mut self, node: usize, outcome: Result<&[u8], &[u8]>) {
        // A trace has no passwords.
        let reads_users = self.world.nodes()[node].next_task() == Some(&Task::LoadUsers);
        let shown = outcome.map(|text| if reads_users { without_passwords(text) } else { text.to_vec() });
        let outcome = shown.as_deref().map_err(|why| *why);
        self.record(|recorder, when| recorder.report(when, node, outcome));
        self.world.begin(node).report(outcome);
        self.world.end(node, None);
        self.settle(node);
        self.fire_due();
    }

    /// Lets clients of other machines send SIM commands without a password.
    pub fn serve_control_anywhere(&mut self, anywhere: bool) {
        self.staging.serves_anyone.set(anywhere);
    }

    /// Returns whether clients of other machines may send SIM commands without a password.
    pub(crate) fn serves_control_anywhere(&self) -> bool {
        self.staging.serves_anyone.get()
    }
}
