//! One emulated Redis: its sessions, databases, subscriptions, scripts and settings.
//!
//! A node is a state machine. It has no clock of its own: the world sets `store.now` before each event and asks the node
//! to fire the timers that are due. It writes only into its sessions' buffers.

mod admission;
#[cfg(debug_assertions)]
mod announced;
pub mod blocking;
mod check;
pub mod config;
mod digest;
pub mod execute;
pub mod notify;
pub mod output;
pub mod pubsub;
pub mod replication;
pub mod scripts;
pub mod session;
pub mod slowlog;
pub mod states;
pub mod stats;

use std::rc::Rc;

use crate::rng::Rng;
use crate::stages::{Interest, Stages, Ticket};
use crate::store::{Now, Store, Timer};
use crate::wire::ProtocolError;

pub use config::{Config, ConfigError};
pub use session::{ConnId, Session, SessionId, Sessions};

use states::State;

/// Why the node wants the process, or a test that stands for it, to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Shutdown,
}

/// CLIENT PAUSE: which commands are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub writes_only: bool,
    pub until_ms: u64,
}

/// One emulated Redis.
pub struct Node {
    /// Its number in the world.
    pub index: usize,
    pub config: Config,
    pub store: Store,
    pub sessions: Sessions,
    pub pubsub: pubsub::PubSub,
    pub blocking: blocking::Blocking,
    pub scripts: scripts::Scripts,
    pub stats: stats::Stats,
    pub slowlog: slowlog::Slowlog,
    pub rng: Rng,
    /// Sessions that watch a key.
    pub watchers: blocking::Watchers,
    pub monitors: Vec<SessionId>,
    pub pause: Option<Pause>,
    /// DEBUG SET-ACTIVE-EXPIRE: whether the wheel removes keys that nobody touches.
    pub active_expire: bool,
    /// The client whose command is running.
    pub executing: Option<SessionId>,
    /// Writes so far: INFO's `rdb_changes_since_last_save`.
    pub dirty: u64,
    pub request: Option<Request>,
    /// The number of the event that is being handled.
    pub event: u64,
    /// How far SIM.CLOCK JUMP has moved this node's wall clock from the world's.
    pub wall_jump_ms: i64,
    pub replication: replication::Replication,
    pub states: states::States,
    /// Requests and timers wait.
    pub paused: bool,
    /// Clients whose requests came while the node was paused, in that order.
    pub inbox: Vec<SessionId>,
    /// No client is let in.
    pub stopped: bool,
    /// What watches this node and interferes with it.
    pub stages: Rc<dyn Stages>,
    /// The stages at which it wants to be called.
    pub interest: Interest,
    /// The request that is running asks the stages before each command of a script.
    pub asks_calls: bool,
    #[cfg(debug_assertions)]
    events_until_check: usize,
    #[cfg(debug_assertions)]
    announced: announced::Announced,
    /// 40 hex digits, new with each start.
    pub run_id: String,
    pub replication_id: String,
}

impl Node {
    pub fn new(index: usize, config: Config, mut rng: Rng, now: Now, stages: Rc<dyn Stages>) -> Node {
        let limits = config.limits();
        let run_id = rng.hex(40);
        let replication_id = rng.hex(40);
        Node {
            index,
            store: Store::new(config.databases, now, limits),
            sessions: Sessions::default(),
            pubsub: Default::default(),
            blocking: Default::default(),
            scripts: scripts::Scripts::new(config.version),
            stats: stats::Stats::new(now),
            slowlog: Default::default(),
            rng,
            watchers: Default::default(),
            monitors: Vec::new(),
            pause: None,
            active_expire: true,
            executing: None,
            dirty: 0,
            request: None,
            event: 0,
            wall_jump_ms: 0,
            replication: Default::default(),
            states: Default::default(),
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

    /// Returns a client connects, by the control port or not. Beyond `maxclients` it gets the error and is closed.
    pub fn open(&mut self, addr: String, laddr: String, control: bool) -> SessionId {
        let id = self.sessions.open(self.config.version, addr, laddr, self.store.now.mono_us);
        self.stats.connections_received += 1;
        let is_full = self.sessions.len() > self.config.maxclients || self.states.has(State::MaxClients);
        let refused = is_full && !control;
        let needs_password = !self.config.requirepass.is_empty();
        let session = &mut self.sessions[id];
        session.authenticated = !needs_password;
        session.is_control = control;
        if refused {
            session.output.append(|reply| reply.error(b"ERR max number of clients reached"));
            session.closing = true;
        }
        if refused {
            self.stats.rejected_connections += 1;
            self.sessions.mark_dirty(id);
        }
        if self.stopped && !control {
            self.kill_session(id);
        }
        id
    }

    /// Names one of its clients in the world.
    pub fn conn(&self, id: SessionId) -> ConnId {
        ConnId { node: self.index, session: id }
    }

    /// A client is gone: nothing of it stays. Its script, if one runs, goes on to its end before that.
    pub fn close(&mut self, id: SessionId) {
        if self.sessions.get(id).is_none() || self.scripts.client_left(id) {
            return;
        }
        self.drop_subscriptions(id);
        self.unblock(id);
        self.unwatch(id);
        self.monitors.retain(|&monitor| monitor != id);
        self.inbox.retain(|&waiting| waiting != id);
        self.sessions.remove(id);
    }

    /// The client's bytes are no request: it gets the error and is closed.
    pub fn protocol_error(&mut self, id: SessionId, error: &ProtocolError) {
        if let Some(session) = self.sessions.get_mut(id) {
            let text = format!("ERR Protocol error: {}", error.0);
            session.output.append(|reply| reply.error(text.as_bytes()));
            session.closing = true;
            self.sessions.mark_dirty(id);
        }
    }

    /// Gives back a ticket for held output: its bytes, and those behind it up to the next held ones, may go.
    pub fn release_output(&mut self, id: SessionId, ticket: Ticket) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.output.release(ticket);
        }
        self.sessions.mark_dirty(id);
    }

    /// Closes a connection once its output is written.
    pub fn end_session(&mut self, id: SessionId) {
        self.sessions[id].closing = true;
        self.sessions.mark_dirty(id);
    }

    /// Ends a connection at once, whatever is still unwritten.
    pub fn kill_session(&mut self, id: SessionId) {
        self.unblock(id);
        self.end_session(id);
        let session = &mut self.sessions[id];
        session.output.clear();
        session.killed = true;
    }

    /// The world's clock has come to `now`.
    pub fn set_now(&mut self, now: Now) {
        self.store.now = Now { wall_offset_ms: now.wall_offset_ms.saturating_add(self.wall_jump_ms), ..now };
    }

    /// The process ends: all connections but one are lost, and with `wipe` the data is too.
    pub fn stop(&mut self, wipe: bool, but: Option<SessionId>) {
        self.stopped = true;
        let clients = self.sessions.iter().filter(|session| !session.is_control);
        let all: Vec<SessionId> = clients.map(|session| session.id).collect();
        for id in all {
            if Some(id) != but {
                self.kill_session(id);
            }
        }
        self.scripts.flush();
        self.run_id = self.rng.hex(40);
        if wipe {
            (0..self.store.dbs.len()).for_each(|db| self.flush_db(db));
        }
    }

    /// Monotonic time, in ms, before which no timer of this node is due.
    pub fn next_wakeup_ms(&self) -> Option<u64> {
        let stands_still = self.scripts.is_running() || self.paused || self.stopped;
        if stands_still { None } else { self.store.timers.next_wakeup_ms() }
    }

    /// Fires the next timer due at `store.now`. False: none is due. While a script runs time stands still for the data.
    pub fn fire_next_timer(&mut self) -> bool {
        if self.scripts.is_running() {
            return false;
        }
        let Some((_, timer)) = self.store.timers.pop_due(self.store.now.mono_ms()) else { return false };
        match timer {
            Timer::Key { db, slot } => self.key_timer_fired(db as usize, slot),
            Timer::Blocked { slot } => self.block_timed_out(slot),
            Timer::Unpause => self.unpause(),
        }
        self.serve_ready_keys();
        true
    }
}
