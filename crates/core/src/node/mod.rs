//! One emulated Redis server: its sessions, databases, subscriptions, scripts and settings.
//!
//! A node is a state machine without a clock: the world sets `store.now` before each event and makes the node fire its
//! due timers. A node writes only to its sessions' output buffers.

mod admission;
#[cfg(debug_assertions)]
mod announced;
pub mod blocking;
mod check;
pub mod cluster;
pub mod config;
mod digest;
pub mod errands;
pub mod eviction;
pub mod execute;
pub mod functions;
pub mod hotkeys;
pub(crate) mod image;
pub mod migration;
pub mod notify;
pub mod output;
pub mod permissions;
mod persistence;
pub mod pubsub;
pub mod replication;
pub mod scripts;
pub mod secrets;
pub mod sentinel;
pub mod session;
pub mod slowlog;
pub mod states;
pub mod stats;
pub mod tracking;

use std::collections::VecDeque;
use std::rc::Rc;

use crate::acl::Acl;
use crate::error;
use crate::rng::Rng;
use crate::stages::{Interest, Stages, Ticket};
use crate::store::{Now, Store, Timer};
use crate::wire::ProtocolError;

pub use cluster::Cluster;
pub use config::{Config, ConfigError};
pub use session::{ConnId, Session, SessionId, Sessions};

use states::State;

/// An action that the node requests from its process, or from a test that takes the process's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Shutdown,
}

/// The state of CLIENT PAUSE: which commands it postpones, and until when (monotonic, in ms).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub writes_only: bool,
    pub until_ms: u64,
}

/// One emulated Redis.
///
/// # Panics
///
/// Methods that take a [`SessionId`] expect a connected client, and may panic if it has disconnected.
#[derive(Clone)]
pub struct Node {
    /// The node's number in the world.
    pub index: usize,
    pub config: Config,
    pub acl: Acl,
    pub store: Store,
    pub eviction: eviction::Eviction,
    pub sessions: Sessions,
    pub pubsub: pubsub::PubSub,
    pub blocking: blocking::Blocking,
    pub scripts: scripts::Scripts,
    pub functions: functions::Functions,
    pub stats: stats::Stats,
    pub slowlog: slowlog::Slowlog,
    pub large_requests: slowlog::Slowlog,
    pub large_replies: slowlog::Slowlog,
    pub tracking: tracking::TrackingTable,
    /// What HOTKEYS collects.
    pub hotkeys: Option<Box<hotkeys::Hotkeys>>,
    pub rng: Rng,
    /// The sessions that watch each key.
    pub watchers: blocking::Watchers,
    pub monitors: Vec<SessionId>,
    /// When the last HTTP request was logged.
    http_logged_ms: Option<u64>,
    pub pause: Option<Pause>,
    /// Whether the wheel removes expired keys that nobody accesses (DEBUG SET-ACTIVE-EXPIRE).
    pub active_expire: bool,
    /// The client whose command is running.
    pub executing: Option<SessionId>,
    /// The number of writes so far, which INFO reports as `rdb_changes_since_last_save`.
    pub dirty: u64,
    pub request: Option<Request>,
    /// Whether a client has asked for the file of data.
    pub(crate) save_is_due: bool,
    /// What clients ask of the driver, the oldest first.
    pub(crate) errands: VecDeque<errands::Errand>,
    /// The number of the current event.
    pub event: u64,
    /// The ms by which SIM.CLOCK JUMP has moved this node's wall clock away from the world's.
    pub wall_jump_ms: i64,
    pub replication: replication::Replication,
    /// What the node knows of its cluster, in cluster mode.
    pub cluster: Option<Box<cluster::Cluster>>,
    pub states: states::States,
    /// What the node watches, if it is a sentinel.
    pub sentinel: Option<Box<sentinel::Sentinel>>,
    /// Whether requests and timers wait, as in a stopped process.
    pub paused: bool,
    /// The clients whose requests arrived while the node was paused, in the order of arrival.
    pub inbox: Vec<SessionId>,
    /// Whether the node refuses connections, as if its process had ended.
    pub stopped: bool,
    /// The implementation that observes this node and interferes with it.
    pub stages: Rc<dyn Stages>,
    /// The stages at which that implementation wants to be called.
    pub interest: Interest,
    /// Whether the running request asks the stages before each command of a script.
    pub asks_calls: bool,
    #[cfg(debug_assertions)]
    events_until_check: usize,
    #[cfg(debug_assertions)]
    announced: announced::Announced,
    /// Forty hex digits, different for each start.
    pub run_id: String,
    pub replication_id: String,
}

impl Node {
    /// Creates node number `index` of a world.
    pub fn new(index: usize, config: Config, mut rng: Rng, now: Now, stages: Rc<dyn Stages>) -> Node {
        let limits = config.limits();
        let run_id = rng.hex(40);
        let replication_id = rng.hex(40);
        let cluster = config.cluster.enabled.then(|| Box::new(Cluster::new(index, &config, &mut rng)));
        let mut store = Store::new(config.databases, now, limits);
        if cluster.is_some() {
            store.index_hash_slots(0);
        }
        Node {
            index,
            acl: Acl::new(&config),
            store,
            eviction: Default::default(),
            sessions: Sessions::new(config.version),
            pubsub: Default::default(),
            blocking: Default::default(),
            scripts: scripts::Scripts::new(config.version),
            functions: Default::default(),
            stats: stats::Stats::new(now),
            slowlog: Default::default(),
            large_requests: Default::default(),
            large_replies: Default::default(),
            tracking: Default::default(),
            hotkeys: None,
            rng,
            watchers: Default::default(),
            monitors: Vec::new(),
            http_logged_ms: None,
            pause: None,
            active_expire: true,
            executing: None,
            dirty: 0,
            request: None,
            save_is_due: false,
            errands: VecDeque::new(),
            event: 0,
            wall_jump_ms: 0,
            replication: Default::default(),
            cluster,
            states: Default::default(),
            sentinel: None,
            paused: false,
            inbox: Vec::new(),
            stopped: false,
            stages,
            interest: Interest::default(),
            asks_calls: false,
            #[cfg(debug_assertions)]
            events_until_check: 0,
            #[cfg(debug_assertions)]
            announced: Default::default(),
            run_id,
            replication_id,
            config,
        }
    }

    /// Connects a client, with `control` through the control port. Beyond `maxclients`, and in protected mode, the client
    /// gets an error and is disconnected.
    pub fn open(&mut self, addr: String, laddr: String, control: bool) -> SessionId {
        let user = self.acl.default_user().clone();
        let authenticated = user.is_open();
        let id = self.sessions.open(self.config.version, addr, laddr, user, self.store.now.mono_us);
        self.stats.connections_received += 1;
        let is_full = self.sessions.len() > self.config.maxclients || self.states.has(State::MaxClients);
        let is_protected = self.config.protected_mode && authenticated;
        let session = &mut self.sessions[id];
        session.authenticated = authenticated;
        session.is_control = control;
        let refusal = match () {
            () if control => None,
            () if is_full => Some(error::MAX_CLIENTS),
            () if is_protected && !session.is_local => Some(error::protected_mode(self.config.version)),
            () => None,
        };
        if let Some(error) = refusal {
            session.output.append(|reply| reply.error(error.text()));
            session.closing = true;
            self.stats.rejected_connections += 1;
            self.sessions.mark_dirty(id);
        }
        if self.stopped && !control {
            self.kill_session(id);
        }
        id
    }

    /// Returns why a copy of this node would not go on as it does, or `None` if it would. Functions may keep state in local
    /// variables of their libraries.
    pub fn uncopyable(&self) -> Option<&'static str> {
        let functions = (!self.functions.is_empty()).then_some("libraries of functions are loaded");
        functions.or_else(|| self.scripts.uncopyable())
    }

    /// Returns whether a client is of this machine, or has authenticated with a password.
    pub fn is_trusted(&self, id: SessionId) -> bool {
        let session = &self.sessions[id];
        session.is_local || session.authenticated && !self.config.requirepass.is_empty()
    }

    /// Returns the mode that INFO and HELLO tell.
    pub fn mode(&self) -> &'static str {
        match (&self.sentinel, &self.cluster) {
            (Some(_), _) => "sentinel",
            (_, Some(_)) => "cluster",
            _ => "standalone",
        }
    }

    /// Returns the world's name for one of this node's clients.
    pub fn conn(&self, id: SessionId) -> ConnId {
        ConnId { node: self.index, session: id }
    }

    /// Removes a client that has disconnected. If its script is running, the script first runs to its end.
    pub fn close(&mut self, id: SessionId) {
        if self.sessions.get(id).is_none() || self.scripts.client_left(id) {
            return;
        }
        self.drop_subscriptions(id);
        self.disable_tracking(id);
        self.unblock(id);
        self.unwatch(id);
        self.monitors.retain(|&monitor| monitor != id);
        self.inbox.retain(|&waiting| waiting != id);
        self.sessions.remove(id);
    }

    /// Replies to bytes that are not a valid request with the error, and closes the connection.
    pub fn protocol_error(&mut self, id: SessionId, error: &ProtocolError) {
        if let Some(session) = self.sessions.get_mut(id) {
            let text = format!("ERR Protocol error: {}", error.0);
            session.output.append(|reply| reply.error(text.as_bytes()));
            session.closing = true;
            self.sessions.mark_dirty(id);
        }
    }

    /// Releases the output held under a ticket: its bytes, and those after it up to the next held output, may be sent.
    pub fn release_output(&mut self, id: SessionId, ticket: Ticket) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.output.release(ticket);
        }
        self.sessions.mark_dirty(id);
    }

    /// Closes a connection once its output has been written.
    pub fn end_session(&mut self, id: SessionId) {
        self.sessions[id].closing = true;
        self.sessions.mark_dirty(id);
    }

    /// Closes the connections of all clients, as a sentinel does after it has changed the role of a server.
    pub fn disconnect_clients(&mut self) {
        self.kill_all_but(None);
    }

    fn kill_all_but(&mut self, spared: Option<SessionId>) {
        let clients =
            self.sessions.iter().filter(|session| !session.is_control && Some(session.id) != spared);
        let clients: Vec<SessionId> = clients.map(|session| session.id).collect();
        clients.into_iter().for_each(|id| self.kill_session(id));
    }

    /// Closes a connection at once and drops its unwritten output.
    pub fn kill_session(&mut self, id: SessionId) {
        self.unblock(id);
        self.end_session(id);
        let session = &mut self.sessions[id];
        session.output.clear();
        session.killed = true;
    }

    /// Sets the node's time to that of the world's clock.
    pub fn set_now(&mut self, now: Now) {
        self.store.now = Now { wall_offset_ms: now.wall_offset_ms.saturating_add(self.wall_jump_ms), ..now };
    }

    /// Emulates the end of the process: closes all connections but one, and with `wipe` deletes the data.
    pub fn stop(&mut self, wipe: bool, but: Option<SessionId>) {
        self.stopped = true;
        self.kill_all_but(but);
        self.abort_script();
        self.scripts.flush();
        self.run_id = self.rng.hex(40);
        if wipe {
            (0..self.store.dbs.len()).for_each(|db| self.flush_db(db));
            self.flush_functions();
        }
    }

    /// Brings a node and its clients to the state that a trace begins with: no data, modes, users, transactions or waits,
    /// and counters, ages, the slow log, the identifiers of the run and everything inside the store and the script engine begin
    /// anew. To be called after the random stream was seeded. [`take_image`](Self::take_image) brings back what there was.
    ///
    /// # Panics
    ///
    /// May panic later if a script is running.
    pub fn begin_anew(&mut self) {
        let mut ids = self.rng.clone();
        self.run_id = ids.hex(40);
        self.replication_id = ids.hex(40);
        let accepts_hashes = self.acl.accepts_hashes;
        self.acl = Acl::of_settings(&self.config);
        self.acl.accepts_hashes = accepts_hashes;
        self.forget_clients();
        (self.pause, self.active_expire) = (None, true);
        (self.states, self.paused, self.stopped, self.wall_jump_ms) = Default::default();
        let ports = self.replication.ports.clone();
        self.replication = Default::default();
        self.replication.ports = ports;
        self.sentinel = None;
        self.functions = Default::default();
        self.store = Store::new(self.config.databases, self.store.now, self.config.limits());
        if let Some(cluster) = &mut self.cluster {
            cluster.begin_anew();
            self.store.index_hash_slots(0);
        }
        self.eviction = Default::default();
        self.scripts = scripts::Scripts::new(self.config.version);
        self.slowlog = Default::default();
        self.large_requests = Default::default();
        self.large_replies = Default::default();
        self.stats.reset();
        self.stats.started_us = 0;
        self.stats.saved = Default::default();
        self.dirty = 0;
        self.pubsub.sort();
        self.monitors.sort_by_key(|id| id.number);
        self.sessions.renumber_fds();
        for id in self.sessions.iter().map(|session| session.id).collect::<Vec<_>>() {
            let session = &mut self.sessions[id];
            (session.created_us, session.active_us) = (self.store.now.mono_us, self.store.now.mono_us);
            session.last_command = "NULL";
        }
    }

    /// Returns a monotonic time, in ms, before which no timer of this node is due.
    pub fn next_wakeup_ms(&self) -> Option<u64> {
        let stands_still = self.scripts.is_running() || self.paused || self.stopped;
        if stands_still { None } else { self.store.timers.next_wakeup_ms() }
    }

    /// Fires the next timer that is due at `store.now`. Returns false if none is due or a script is running: no timer
    /// fires while it runs.
    pub fn fire_next_timer(&mut self) -> bool {
        if self.scripts.is_running() {
            return false;
        }
        let Some((_, timer)) = self.store.timers.pop_due(self.store.now.mono_ms()) else { return false };
        match timer {
            Timer::Key { db, slot } => self.key_timer_fired(db as usize, slot),
            Timer::Blocked { slot } => self.block_timed_out(slot),
            Timer::Claim { slot } => self.claim_is_due(slot),
            Timer::Sentinel => self.replication.wish = Some(replication::Wish::Look),
            Timer::Unpause => self.unpause(),
            Timer::Cluster => {
                if let Some(cluster) = &mut self.cluster {
                    cluster.wake();
                }
            }
        }
        self.serve_ready_keys();
        true
    }
}
