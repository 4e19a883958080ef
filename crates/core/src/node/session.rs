//! Sessions: the state that a node keeps for each connected client.

use std::net::SocketAddr;
use std::rc::Rc;

use smallvec::SmallVec;

use super::blocking::Ticket;
use super::output::Output;
use super::tracking::Tracking;
use crate::acl::User;
pub use crate::conn::{ConnId, SessionId};
use crate::version::Version;
use crate::wheel::TimerId;
use crate::wire::{Args, Protocol};

/// The arguments of a request, copied so that they outlive the buffer they arrived in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedArgs {
    bytes: Box<[u8]>,
    ends: SmallVec<[u32; 6]>,
}

impl OwnedArgs {
    /// Copies the arguments of a request.
    pub fn new(argv: &[&[u8]]) -> OwnedArgs {
        let mut bytes = Vec::with_capacity(argv.iter().map(|arg| arg.len()).sum());
        let ends = argv
            .iter()
            .map(|arg| {
                bytes.extend_from_slice(arg);
                bytes.len() as u32
            })
            .collect();
        OwnedArgs { bytes: bytes.into(), ends }
    }

    /// Returns the arguments.
    pub fn args(&self) -> Args<'_> {
        let mut start = 0;
        self.ends
            .iter()
            .map(|&end| {
                let arg = &self.bytes[start..end as usize];
                start = end as usize;
                arg
            })
            .collect()
    }

    /// Returns the size of the arguments in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * 4
    }
}

/// A transaction that is being queued.
#[derive(Clone, Debug, Default)]
pub struct Multi {
    pub commands: Vec<OwnedArgs>,
    /// Whether a command was refused while queueing: EXEC will abort.
    pub refused: bool,
}

/// What a blocked client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    List,
    SortedSet,
    /// XREAD: new entries of a stream.
    Stream,
    /// XREADGROUP: new entries, or the end of the stream or the group.
    StreamGroup,
    /// WAIT: until this many replicas have the client's writes.
    Replicas(u64),
    /// WAITAOF: until this many replicas have acknowledged the client's writes.
    AppendOnlyFile(u64),
    /// DEBUG SLEEP.
    Sleep,
    /// The end of CLIENT PAUSE, which postpones the request.
    Postponed,
    /// A gate, the end of a delay or the end of a node's pause, which holds the request.
    Held,
    /// A gate that a control connection waits for.
    Gate,
    /// The end of the client's own running script.
    Script,
    /// Another client's running script: until it ends or is busy.
    OtherScript,
    /// MIGRATE: the end of the event, when the other node has the keys.
    Migration,
    /// What the driver reports of files.
    Errand,
}

/// A request that has begun and whose reply comes later.
#[derive(Clone, Debug)]
pub struct Blocked {
    pub wait: Wait,
    /// The request, which runs again when it may succeed.
    pub argv: OwnedArgs,
    /// The selected database at the time of the request, and the keys that the client waits for.
    pub db: usize,
    pub keys: Vec<Box<[u8]>>,
    /// The client's position in the order of all blocked clients.
    pub ticket: Ticket,
    /// Fires when the client's timeout has passed.
    pub timer: TimerId,
    pub timeout_reply: TimeoutReply,
}

/// The reply if the timeout passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReply {
    Ok,
    Null,
    NullArray,
    /// WAIT: the number of replicas that have the writes.
    Acks,
    /// WAITAOF: that number for this server, and for its replicas.
    LocalAndAcks,
}

/// Which replies a client wants (CLIENT REPLY).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    #[default]
    On,
    Off,
    /// The next command gets no reply.
    SkipNext,
    /// The current command gets no reply.
    Skip,
}

/// A kind of subscription: to channels, patterns or shard channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionKind {
    Channel,
    Pattern,
    Shard,
}

/// The kinds of subscriptions by name.
pub(super) const SUBSCRIPTION_KINDS: &[(&str, SubscriptionKind)] = &[
    ("channel", SubscriptionKind::Channel),
    ("pattern", SubscriptionKind::Pattern),
    ("shard", SubscriptionKind::Shard),
];

/// The file descriptor of the first client.
const FIRST_FD: i64 = 8;

/// One connected client.
#[derive(Clone)]
pub struct Session {
    pub id: SessionId,
    pub addr: String,
    pub laddr: String,
    pub fd: i64,
    pub name: Vec<u8>,
    pub lib_name: Vec<u8>,
    pub lib_ver: Vec<u8>,
    pub db: usize,
    pub authenticated: bool,
    /// Whether the client is of this machine: it uses the loopback interface or a Unix socket.
    pub is_local: bool,
    pub user: Rc<User>,
    pub created_us: u64,
    pub active_us: u64,
    pub last_command: &'static str,
    pub multi: Option<Multi>,
    /// The watched keys, each with its database.
    pub watched: Vec<(usize, Box<[u8]>)>,
    /// Whether a watched key has changed: EXEC will execute nothing.
    pub watch_broken: bool,
    pub channels: Vec<Box<[u8]>>,
    pub patterns: Vec<Box<[u8]>>,
    pub shards: Vec<Box<[u8]>>,
    pub monitor: bool,
    pub reply_mode: ReplyMode,
    pub no_evict: bool,
    pub no_touch: bool,
    /// Set by CLIENT TRACKING.
    pub tracking: Option<Box<Tracking>>,
    /// Whether the client has told Valkey that it follows redirections.
    pub can_redirect: bool,
    /// Whether the client follows an ASK redirection with its next request (ASKING).
    pub asks: bool,
    /// Whether the client reads from replicas of a cluster (READONLY).
    pub reads_replicas: bool,
    pub blocked: Option<Blocked>,
    /// The output that is on its way to the client.
    pub output: Output,
    /// Whether the session is closing: it takes no more requests, and the connection ends once `output` has been
    /// written.
    pub closing: bool,
    /// Whether the connection is closed at once, without writing the rest of its output.
    pub killed: bool,
    /// Whether a test has lost a request: nothing that the client sends after it arrives, as on a dead TCP connection.
    pub is_input_lost: bool,
    /// Whether this is a control connection, which survives when its node stops.
    pub is_control: bool,
    /// Whether a replay knows that the client is a slow reader: the next output exceeds its limit.
    pub reads_nothing: bool,
    /// The master's replication offset after this client's last write.
    pub write_offset: u64,
    /// Whether the session is in the list of sessions with output.
    pub(super) dirty: bool,
}

impl Session {
    fn new(
        id: SessionId,
        version: Version,
        addr: String,
        laddr: String,
        user: Rc<User>,
        now_us: u64,
    ) -> Session {
        let is_local = is_local(&addr);
        Session {
            id,
            addr,
            laddr,
            is_local,
            fd: FIRST_FD,
            name: Vec::new(),
            lib_name: Vec::new(),
            lib_ver: Vec::new(),
            db: 0,
            authenticated: true,
            user,
            created_us: now_us,
            active_us: now_us,
            last_command: "NULL",
            multi: None,
            watched: Vec::new(),
            watch_broken: false,
            channels: Vec::new(),
            patterns: Vec::new(),
            shards: Vec::new(),
            monitor: false,
            reply_mode: ReplyMode::On,
            no_evict: false,
            no_touch: false,
            tracking: None,
            can_redirect: false,
            asks: false,
            reads_replicas: false,
            blocked: None,
            output: Output::new(version),
            closing: false,
            killed: false,
            is_input_lost: false,
            is_control: false,
            reads_nothing: false,
            write_offset: 0,
            dirty: false,
        }
    }

    /// Returns the protocol of the client.
    pub fn protocol(&self) -> Protocol {
        self.output.protocol()
    }

    /// Returns the client's subscriptions of a kind.
    pub fn subscriptions(&self, kind: SubscriptionKind) -> &[Box<[u8]>] {
        match kind {
            SubscriptionKind::Channel => &self.channels,
            SubscriptionKind::Pattern => &self.patterns,
            SubscriptionKind::Shard => &self.shards,
        }
    }

    /// Returns the client's subscriptions of a kind, for changes.
    pub fn subscriptions_mut(&mut self, kind: SubscriptionKind) -> &mut Vec<Box<[u8]>> {
        match kind {
            SubscriptionKind::Channel => &mut self.channels,
            SubscriptionKind::Pattern => &mut self.patterns,
            SubscriptionKind::Shard => &mut self.shards,
        }
    }

    /// Returns whether the client is in subscribed mode, in which a RESP2 client may send only a few commands.
    pub fn is_subscriber(&self) -> bool {
        !self.channels.is_empty() || !self.patterns.is_empty() || !self.shards.is_empty()
    }

    /// Returns whether the reply to the current command is dropped.
    pub fn wants_no_reply(&self) -> bool {
        matches!(self.reply_mode, ReplyMode::Off | ReplyMode::Skip)
    }

    /// Returns whether the client may run its next request now.
    pub fn is_ready(&self) -> bool {
        self.blocked.is_none() && !self.closing
    }
}

/// Returns whether an address is of this machine. An address that is no IP address is the path of a Unix socket; there is
/// none if the client has left already.
fn is_local(addr: &str) -> bool {
    let ip = addr.parse::<SocketAddr>().map(|addr| addr.ip().to_canonical());
    !addr.is_empty() && ip.map_or(true, |ip| ip.is_loopback())
}

/// Returns how many clients a server of a release makes for itself at start: they execute scripts and modules' commands.
const fn inner_clients(version: Version) -> u64 {
    match version {
        Version::Valkey8_1 => 1,
        Version::V8_0 | Version::V8_2 | Version::V8_4 | Version::V8_6 | Version::V8_8 | Version::V8_10 => 3,
        _ => 2,
    }
}

/// All sessions of a node. Indexing is for ids that the node itself stores, whose clients are always connected.
#[derive(Clone)]
pub struct Sessions {
    slots: Vec<Option<Box<Session>>>,
    free: Vec<u32>,
    /// The file descriptors that CLIENT LIST shows: those of clients that have left, and the next new one.
    free_fds: Vec<i64>,
    next_fd: i64,
    last_number: u64,
    len: usize,
    /// Sessions with output that the driver has not taken yet, in the order in which they were marked.
    dirty: Vec<SessionId>,
}

impl std::ops::Index<SessionId> for Sessions {
    type Output = Session;

    /// # Panics
    /// If the client has disconnected, which breaks an invariant of the node.
    fn index(&self, id: SessionId) -> &Session {
        self.get(id).expect("a client whose id the node stores is connected")
    }
}

impl std::ops::IndexMut<SessionId> for Sessions {
    fn index_mut(&mut self, id: SessionId) -> &mut Session {
        self.get_mut(id).expect("a client whose id the node stores is connected")
    }
}

impl Sessions {
    /// Returns an empty set of sessions.
    pub fn new(version: Version) -> Sessions {
        Sessions {
            slots: Vec::new(),
            free: Vec::new(),
            free_fds: Vec::new(),
            next_fd: FIRST_FD,
            last_number: inner_clients(version),
            len: 0,
            dirty: Vec::new(),
        }
    }

    /// Adds a session for a new client.
    pub fn open(
        &mut self,
        version: Version,
        addr: String,
        laddr: String,
        user: Rc<User>,
        now_us: u64,
    ) -> SessionId {
        self.last_number += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let id = SessionId { slot, number: self.last_number };
        let mut session = Box::new(Session::new(id, version, addr, laddr, user, now_us));
        session.fd = self.free_fds.pop().unwrap_or_else(|| {
            self.next_fd += 1;
            self.next_fd - 1
        });
        self.slots[slot as usize] = Some(session);
        self.len += 1;
        id
    }

    /// Removes a session and returns it.
    pub fn remove(&mut self, id: SessionId) -> Option<Box<Session>> {
        self.get(id)?;
        let session = self.slots[id.slot as usize].take()?;
        self.free.push(id.slot);
        self.free_fds.push(session.fd);
        self.len -= 1;
        Some(session)
    }

    /// Returns the session of a client, or `None` if the client has left.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.slots.get(id.slot as usize)?.as_deref().filter(|session| session.id == id)
    }

    /// Returns the session of a client for changes, or `None` if the client has left.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.slots.get_mut(id.slot as usize)?.as_deref_mut().filter(|session| session.id == id)
    }

    /// Returns the session in a slot.
    pub fn at(&self, slot: u32) -> Option<&Session> {
        self.slots.get(slot as usize)?.as_deref()
    }

    /// Returns the session with this CLIENT ID.
    pub fn by_number(&self, number: u64) -> Option<&Session> {
        self.iter().find(|session| session.id.number == number)
    }

    /// Asserts that the slots, the free list and the list of sessions with output agree.
    pub(super) fn check(&self) {
        let live = self.slots.iter().flatten();
        assert_eq!(live.clone().count(), self.len, "wrong number of sessions");
        assert_eq!(self.slots.len() - self.len, self.free.len(), "wrong number of free slots");
        for session in live.filter(|session| session.dirty) {
            assert!(
                self.dirty.contains(&session.id),
                "client {}: marked as dirty, but not in the list",
                session.id.number
            );
        }
    }

    /// Returns all sessions, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        let mut sessions: Vec<&Session> = self.slots.iter().flatten().map(|session| &**session).collect();
        sessions.sort_by_key(|session| session.id.number);
        sessions.into_iter()
    }

    /// Returns the number of sessions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Notes that the driver has to look at a session: it has output, or it may send again.
    pub fn mark_dirty(&mut self, id: SessionId) {
        if let Some(session) = self.get_mut(id)
            && !session.dirty
        {
            session.dirty = true;
            self.dirty.push(id);
        }
    }

    /// Gives the clients the file descriptors that they would have had they alone connected, in the order of their numbers.
    pub(super) fn renumber_fds(&mut self) {
        let mut sessions: Vec<&mut Box<Session>> = self.slots.iter_mut().flatten().collect();
        sessions.sort_by_key(|session| session.id.number);
        for (session, fd) in sessions.into_iter().zip(FIRST_FD..) {
            session.fd = fd;
        }
        self.free_fds.clear();
        self.next_fd = FIRST_FD + self.len as i64;
    }

    /// Sets the number of the next client.
    pub fn number_next(&mut self, number: u64) {
        self.last_number = number.saturating_sub(1);
    }

    /// Returns the number of the next client.
    pub fn next_number(&self) -> u64 {
        self.last_number.saturating_add(1)
    }

    /// Returns the sessions with output that the trace does not contain yet, sorted by number.
    pub fn with_new_output(&mut self) -> SmallVec<[SessionId; 4]> {
        let mut found = SmallVec::new();
        for index in 0..self.dirty.len() {
            if let Some(session) = self.get_mut(self.dirty[index])
                && session.output.has_untraced()
            {
                found.push(session.id);
            }
        }
        found.sort_by_key(|id: &SessionId| id.number);
        found
    }

    /// Moves the sessions that were marked since the last call into `into`.
    pub fn take_dirty(&mut self, into: &mut Vec<SessionId>) {
        into.clear();
        std::mem::swap(&mut self.dirty, into);
        for &id in into.iter() {
            if let Some(session) = self.get_mut(id) {
                session.dirty = false;
            }
        }
    }
}
