//! The world: nodes that share one clock and one sequence of events.
//!
//! Every input enters here: connections that open and close, requests, and time. Each input is an *event* with a
//! number. The same events with the same seed always give the same outputs. Drivers only carry bytes and time. Tests
//! observe and interfere through [`Stages`], or between two events.

pub mod clock;
mod cluster;
mod copy;
mod image;
mod partitions;
mod replication;
mod request;
mod sentinel;
#[cfg(test)]
mod sentinel_tests;
pub mod snapshot;
mod topology;

use std::rc::Rc;

use sha1::{Digest, Sha1};

use crate::node::{Config, Node, Request, SessionId};
use crate::rng::Rng;
use crate::stages::{Interest, NoStages, Stages};
use crate::topology::Topology;
use crate::wire::{ProtocolError, RequestLimits};

pub use crate::node::ConnId;
pub use clock::{Clock, ClockMode};
pub use replication::ReplicationError;

/// The initial settings of a world.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// The seed of all random choices.
    pub seed: u64,
    pub clock: ClockMode,
    /// The Unix time in ms at which the world begins.
    pub wall_start_ms: i64,
    /// The settings of each node.
    pub nodes: Vec<Config>,
    /// What the nodes are for one another; `None`: independent masters.
    pub topology: Option<Topology>,
}

/// Several nodes that share one clock.
///
/// # Panics
///
/// Methods that take a node's number, or a connection to a node, panic if there is no such node.
pub struct World {
    nodes: Vec<Node>,
    topology: Option<Topology>,
    partitions: partitions::Partitions,
    /// Whether some node is in cluster mode.
    is_clustered: bool,
    clock: Clock,
    events: u64,
    stages: Rc<dyn Stages>,
    interest: Interest,
    /// Whether requests have to be checked against pauses and stages before they execute.
    inspects_requests: bool,
    /// Whether some connection has lost a request, and with it everything it sends later.
    has_lost_inputs: bool,
    sessions: Vec<SessionId>,
}

/// Returns the random number generators derived from a seed: one for each node, and one for the stages.
pub fn streams(seed: u64, nodes: usize) -> (Vec<Rng>, Rng) {
    let mut rng = Rng::new(seed);
    let of_nodes = (0..nodes).map(|_| Rng::new(rng.next_u64())).collect();
    (of_nodes, Rng::new(rng.next_u64()))
}

impl World {
    /// Creates a world without stages: nothing observes it or interferes with it.
    pub fn new(options: WorldOptions) -> World {
        World::with_stages(options, Rc::new(NoStages))
    }

    /// Creates a world that calls `stages`.
    pub fn with_stages(options: WorldOptions, stages: Rc<dyn Stages>) -> World {
        let clock = Clock::new(options.clock, options.wall_start_ms);
        let (rngs, _) = streams(options.seed, options.nodes.len());
        let configs = topology::configs(options.nodes, options.topology);
        let port = |config: &Config| config.get("port").unwrap_or("0").to_owned();
        let ports: Rc<[String]> = configs.iter().map(port).collect();
        let nodes = configs.into_iter().zip(rngs).enumerate();
        let nodes = nodes
            .map(|(index, (config, rng))| Node::new(index, config, rng, clock.now(), Rc::clone(&stages)));
        let mut nodes: Vec<Node> = nodes.collect();
        nodes.iter_mut().for_each(|node| node.replication.ports = Rc::clone(&ports));
        let mut world = World {
            nodes,
            topology: options.topology,
            partitions: Default::default(),
            is_clustered: false,
            clock,
            events: 0,
            stages,
            interest: Interest::default(),
            inspects_requests: false,
            has_lost_inputs: false,
            sessions: Vec::new(),
        };
        world.take_places();
        world
    }

    /// Returns what the nodes were for one another when the world began.
    pub fn topology(&self) -> Option<Topology> {
        self.topology
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns a node, outside of any event.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node_mut(&mut self, node: usize) -> &mut Node {
        &mut self.nodes[node]
    }

    /// Returns all nodes for changes, outside any event.
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut()
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the clock for changes.
    pub fn clock_mut(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Sets the number of events that happened before this world began.
    pub fn set_events(&mut self, events: u64) {
        self.events = events;
    }

    /// Turns recording of the executed lines of scripts on or off. [`Node::has_reached`] reports them.
    pub fn note_lines(&mut self, on: bool) {
        self.nodes.iter_mut().for_each(|node| node.note_lines(on));
    }

    /// Returns the stages at which the implementation is called.
    pub fn interest(&self) -> Interest {
        self.interest
    }

    /// Sets at which stages the implementation is called from here on.
    pub fn set_interest(&mut self, interest: Interest) {
        self.interest = interest;
        self.nodes.iter_mut().for_each(|node| node.interest = interest);
        self.update_inspection();
    }

    fn update_inspection(&mut self) {
        let is_paused = self.nodes.iter().any(|node| node.paused);
        self.inspects_requests = self.interest.requests || is_paused || self.has_lost_inputs;
    }

    /// Begins the next event on a node: assigns its number and its time.
    pub fn begin(&mut self, node: usize) -> &mut Node {
        self.events += 1;
        self.join(node)
    }

    /// Lets a node take part in the present event.
    fn join(&mut self, node: usize) -> &mut Node {
        let node = &mut self.nodes[node];
        node.event = self.events;
        #[cfg(debug_assertions)]
        node.forget_announced();
        node.set_now(self.clock.now());
        node
    }

    /// Ends an event: sends its writes to the replicas. `writer` is the client whose request it was, if any.
    pub fn end(&mut self, node: usize, writer: Option<SessionId>) {
        self.nodes[node].broadcast_invalidations();
        self.send_writes(node, writer);
        if let Some(wish) = self.nodes[node].replication.wish.take() {
            self.carry_out_wish(node, wish);
        }
        if self.is_clustered {
            self.exchange_views();
        }
        #[cfg(debug_assertions)]
        self.nodes[node].check_now_and_then();
    }

    /// Seeds the random choices of all nodes anew.
    pub fn reseed(&mut self, seed: u64) {
        let (rngs, _) = streams(seed, self.nodes.len());
        self.nodes.iter_mut().zip(rngs).for_each(|(node, rng)| node.rng = rng);
    }

    /// Empties all nodes and makes them running masters without states and pauses. Requests that waited for a node run.
    pub fn reset(&mut self) {
        self.heal();
        for index in 0..self.nodes.len() {
            self.promote(index);
            let node = self.begin(index);
            node.abort_script();
            node.end_pause();
            (node.states, node.paused, node.stopped) = Default::default();
            node.replication.forced_acks = None;
            node.wall_jump_ms = 0;
            node.scripts.flush();
            node.flush_functions();
            (0..node.store.dbs.len()).for_each(|db| node.flush_db(db));
            node.invalidate_all();
        }
        for index in 0..self.nodes.len() {
            self.resume_node(index);
            self.nodes[index].serve_ready_keys();
        }
        self.take_places();
    }

    // ---- inputs --------------------------------------------------------------------------------------------------

    /// Connects a client with the address `addr` to a node, through the node's address `laddr`.
    pub fn open(&mut self, node: usize, addr: String, laddr: String) -> ConnId {
        self.open_as(node, false, addr, laddr)
    }

    /// Connects a client. With `is_control` it is a control connection, which any node accepts and which survives a
    /// node's stop.
    pub fn open_as(&mut self, node: usize, is_control: bool, addr: String, laddr: String) -> ConnId {
        let session = self.begin(node).open(addr, laddr, is_control);
        self.end(node, None);
        ConnId { node, session }
    }

    /// Handles bytes of a client that are not a valid request.
    pub fn protocol_error(&mut self, conn: ConnId, error: &ProtocolError) {
        self.begin(conn.node).protocol_error(conn.session, error);
        self.end(conn.node, None);
    }

    /// Removes a client that has disconnected.
    pub fn close(&mut self, conn: ConnId) {
        self.begin(conn.node).close(conn.session);
        self.end(conn.node, None);
    }

    /// Advances the clock by `ms`. Timers fire on the way, each at its own time. The clock continues from there.
    pub fn advance(&mut self, ms: u64) {
        let target_us = self.clock.now().mono_us.saturating_add(ms.saturating_mul(1000));
        while let Some(node) = self.move_to_next_timer(target_us) {
            while self.fire_timer(node) {}
        }
        self.clock.move_to(target_us);
        self.clock.set_mode(self.clock.mode());
    }

    /// Moves the clock to the time at which the next timer may be due, at most `target_us`, and returns the timer's
    /// node. Returns `None` if no timer can be due by then.
    pub fn move_to_next_timer(&mut self, target_us: u64) -> Option<usize> {
        let (due_ms, node) = self.next_timer().filter(|&(due_ms, _)| due_ms <= target_us / 1000)?;
        self.clock.move_to(due_ms.saturating_mul(1000));
        self.nodes[node].set_now(self.clock.now());
        Some(node)
    }

    /// Fires the next due timer of a node. Returns false if none is due.
    pub fn fire_timer(&mut self, node: usize) -> bool {
        let fired = self.nodes[node].fire_next_timer();
        if fired {
            self.events += 1;
            self.end(node, None);
        }
        fired
    }

    /// Returns whether a node has set a timer that is due at once, and that has not fired yet.
    pub fn has_armed_due(&self) -> bool {
        let now_ms = self.clock.now().mono_ms();
        self.nodes.iter().any(|node| node.store.timers.was_armed_by(now_ms))
    }

    /// Returns whether [`fire_timer`](Self::fire_timer) would fire a timer.
    pub fn is_timer_due(&mut self, node: usize) -> bool {
        let node = &mut self.nodes[node];
        !node.scripts.is_running() && node.store.timers.is_due(node.store.now.mono_ms())
    }

    /// Returns the monotonic time in ms at which the next timer may be due, and its node.
    pub fn next_timer(&self) -> Option<(u64, usize)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter_map(|(index, node)| Some((node.next_wakeup_ms()?, index))).min()
    }

    /// Returns the monotonic time in ms at which the next timer is due.
    pub fn next_due_ms(&self) -> Option<u64> {
        let stands_still = |node: &&Node| node.paused || node.stopped;
        let nodes = self.nodes.iter().filter(|node| !stands_still(node));
        nodes.filter_map(|node| node.store.timers.next_deadline_ms()).min()
    }

    /// Returns how long the suspended script of a node has run, in ms, or `None` if there is none that could go on.
    pub fn script_ran_ms(&self, node: usize) -> Option<u64> {
        let (started, slices) = self.nodes[node].scripts.progress().filter(|_| !self.nodes[node].paused)?;
        Some(match self.clock.mode() {
            // On a manual clock a slice counts as a millisecond.
            ClockMode::Manual => slices,
            _ => self.clock.now().mono_ms() - started.mono_ms(),
        })
    }

    /// Resumes the running script of a node for one slice. Returns whether a script is still running.
    pub fn run_slice(&mut self, node: usize) -> bool {
        let Some(ran_ms) = self.script_ran_ms(node) else { return false };
        self.run_slice_for(node, ran_ms);
        self.is_running_script(node)
    }

    /// Resumes the running script for one slice, as if it had run for `ran_ms`.
    pub fn run_slice_for(&mut self, node: usize, ran_ms: u64) {
        let writer = self.nodes[node].scripts.client();
        self.begin(node).resume_script(ran_ms);
        self.end(node, writer);
        if !self.is_running_script(node) {
            self.deliver_writes();
        }
    }

    // ---- nodes ---------------------------------------------------------------------------------------------------

    /// Makes the requests and timers of a node wait, as if its process had been stopped by a signal.
    pub fn pause_node(&mut self, node: usize) {
        self.nodes[node].paused = true;
        self.update_inspection();
        self.nodes_changed();
    }

    /// Resumes a paused node. The waiting requests run in the order of arrival.
    pub fn resume_node(&mut self, node: usize) {
        self.nodes[node].paused = false;
        self.update_inspection();
        for session in std::mem::take(&mut self.nodes[node].inbox) {
            let conn = ConnId { node, session };
            if let Some(request) = self.take_held(conn) {
                self.begin(node);
                self.show_request(conn, &request.args());
            }
        }
        self.begin(node).resume_expiry();
        self.nodes_changed();
    }

    /// Closes all connections of a node except `spared`, and makes it refuse new ones. With `wipe` it also deletes the
    /// data.
    pub fn stop_node(&mut self, node: usize, wipe: bool, spared: Option<ConnId>) {
        let spared = spared.filter(|conn| conn.node == node).map(|conn| conn.session);
        self.begin(node).stop(wipe, spared);
        self.nodes[node].serve_ready_keys();
        if wipe {
            self.resync_replicas(node);
        }
        self.nodes_changed();
    }

    /// Starts a stopped node again.
    pub fn start_node(&mut self, node: usize) {
        self.nodes[node].stopped = false;
        self.begin(node).resume_expiry();
        self.nodes_changed();
    }

    /// Moves the wall clock of a node by `ms`. That affects the expiry of keys, but not the timeouts of blocked
    /// clients. Returns the node's Unix time in ms.
    pub fn jump(&mut self, node: usize, ms: i64) -> i64 {
        let node = &mut self.nodes[node];
        node.wall_jump_ms = node.wall_jump_ms.saturating_add(ms);
        node.set_now(self.clock.now());
        node.store.rearm_all();
        node.store.now.wall_ms()
    }

    /// Moves the wall clocks of all nodes by `ms`, like [`jump`](Self::jump). Returns the world's Unix time in ms.
    pub fn jump_all(&mut self, ms: i64) -> i64 {
        self.clock.jump(ms);
        for node in 0..self.nodes.len() {
            self.jump(node, 0);
        }
        self.clock.now().wall_ms()
    }

    // ---- outputs -------------------------------------------------------------------------------------------------

    /// Moves into `into` the connections that, since the last call, got output, were closed, or may send again.
    pub fn take_dirty(&mut self, into: &mut Vec<ConnId>) {
        into.clear();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.sessions.take_dirty(&mut self.sessions);
            into.extend(self.sessions.iter().map(|&session| ConnId { node: index, session }));
        }
    }

    /// Moves the output that may be sent on a connection to the end of `into`.
    pub fn take_output(&mut self, conn: ConnId, into: &mut Vec<u8>) {
        if let Some(session) = self.nodes[conn.node].sessions.get_mut(conn.session) {
            session.output.take_ready(into);
        }
    }

    /// Returns how many bytes of output may be sent on a connection.
    pub fn output_len(&self, conn: ConnId) -> usize {
        self.nodes[conn.node].sessions.get(conn.session).map_or(0, |session| session.output.ready_len())
    }

    /// Returns whether a connection may send its next request: it is neither blocked nor closing.
    pub fn is_ready(&self, conn: ConnId) -> bool {
        self.nodes[conn.node].sessions.get(conn.session).is_some_and(|session| session.is_ready())
    }

    /// Returns whether a connection is closed once its output has been written.
    pub fn is_closing(&self, conn: ConnId) -> bool {
        let session = self.nodes[conn.node].sessions.get(conn.session);
        session.is_none_or(|session| session.closing && !session.output.is_holding())
    }

    /// Returns whether a connection is closed at once, without writing the rest of its output.
    pub fn is_killed(&self, conn: ConnId) -> bool {
        self.nodes[conn.node].sessions.get(conn.session).is_none_or(|session| session.killed)
    }

    /// Returns the limits for a request on this connection.
    pub fn request_limits(&self, conn: ConnId) -> RequestLimits {
        let node = &self.nodes[conn.node];
        RequestLimits {
            max_bulk_len: node.config.proto_max_bulk_len,
            authenticated: (node.sessions.get(conn.session))
                .is_none_or(|session| !node.must_authenticate(session)),
            version: node.config.version,
        }
    }

    /// Returns the connection with this CLIENT ID on a node.
    pub fn conn(&self, node: usize, number: u64) -> Option<ConnId> {
        let session = self.nodes.get(node)?.sessions.by_number(number)?;
        Some(ConnId { node, session: session.id })
    }

    /// Returns whether a script on a node is suspended between two slices.
    pub fn is_running_script(&self, node: usize) -> bool {
        self.nodes[node].scripts.is_running()
    }

    /// Returns whether that script has run for so long that other clients get the BUSY error.
    pub fn is_busy(&self, node: usize) -> bool {
        self.nodes[node].scripts.is_busy()
    }

    /// Returns whether a client has requested a shutdown.
    pub fn shutdown_requested(&self) -> bool {
        self.nodes.iter().any(|node| node.request == Some(Request::Shutdown))
    }

    /// Returns a hash over the time and over [`Node::digest`] of all nodes. It is the same on every machine.
    pub fn digest(&self) -> String {
        let mut hasher = Sha1::new();
        hasher.update(self.clock.now().mono_us.to_le_bytes());
        for (sender, receiver) in self.partitions() {
            hasher.update(sender.to_le_bytes());
            hasher.update(receiver.to_le_bytes());
        }
        for node in &self.nodes {
            node.digest(&mut |bytes| hasher.update(bytes));
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
