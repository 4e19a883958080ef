//! Replication between the nodes of one world. A master sends its replicas the resulting states of the keys it wrote,
//! not commands.
//!
//! The writes of one event form one entry, which is applied as a whole, as Redis wraps a script or a transaction. The
//! world carries entries over links that are up, down, or a number of writes behind.

use std::collections::VecDeque;
use std::rc::Rc;

use super::migration::Migration;
use super::sentinel::Address;
use super::session::{SessionId, SubscriptionKind, Wait};
use super::{Node, blocking};
use crate::store::Value;

/// The role of a node in replication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Master,
    Replica {
        of: usize,
    },
    /// Follows a server that is no node of this world, which never answers.
    Stray,
}

/// The state of the link from a master to a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Up,
    /// No entries arrive.
    Down,
    /// The newest entries, this many, have not arrived yet.
    Lag(usize),
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Link::Up => write!(f, "up"),
            Link::Down => write!(f, "down"),
            Link::Lag(writes) => write!(f, "lag {writes}"),
        }
    }
}

/// The name of something that an event changed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Key(usize, Box<[u8]>),
    Message(SubscriptionKind, Box<[u8]>, Box<[u8]>),
    Functions,
}

/// A change together with the resulting state.
pub(super) enum Effect {
    /// A key with its value and its expiry (Unix time in ms), or without a value if it was deleted.
    Key {
        db: usize,
        key: Box<[u8]>,
        state: Option<(Value, Option<i64>)>,
    },
    Message {
        kind: SubscriptionKind,
        channel: Box<[u8]>,
        message: Box<[u8]>,
    },
    /// The texts of all libraries.
    Functions(Vec<Box<[u8]>>),
}

/// The writes of one event.
pub struct Entry {
    pub(super) effects: Vec<Effect>,
    /// The master's replication offset after this entry.
    pub offset: u64,
}

/// What a command of a client asks for that concerns other nodes. The world carries it out when the event ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To become a master.
    Lead,
    /// To follow another node.
    Follow { master: usize },
    /// To follow a server that is no node of this world.
    Stray { master: Address },
    /// To follow one of the replicas, which becomes the master.
    HandOver { heir: usize },
    /// To look at what it watches, as a sentinel.
    Look,
    /// To send keys to another node.
    Migrate(Box<Migration>),
}

/// Another node, as INFO and ROLE describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Its number in the world.
    pub node: usize,
    pub host: String,
    pub port: String,
    pub offset: u64,
    pub online: bool,
}

/// The replication state of one node.
#[derive(Clone, Default)]
pub struct Replication {
    pub role: Role,
    /// On a replica: the state of the link from its master, and the entries that are on it.
    pub link: Link,
    pub in_transit: VecDeque<Rc<Entry>>,
    pub master: Peer,
    /// On a replica: since when its master is not connected (monotonic, in ms).
    pub down_ms: Option<u64>,
    /// On a master: its replicas.
    pub replicas: Vec<Peer>,
    /// The ports of all nodes of the world.
    pub ports: Rc<[String]>,
    pub wish: Option<Wish>,
    /// If set, WAIT counts this many replicas, however many there are.
    pub forced_acks: Option<u64>,
    /// The bytes written so far, counted approximately as Redis counts them.
    pub offset: u64,
    changes: Vec<Change>,
}

impl Replication {
    fn is_recording(&self) -> bool {
        !self.replicas.is_empty()
    }

    /// Returns the node but one that listens on an address of this machine.
    pub fn node_at(&self, host: &[u8], port: &[u8], but: usize) -> Option<usize> {
        let is_local =
            [&b"127.0.0.1"[..], b"localhost", b"::1"].iter().any(|name| host.eq_ignore_ascii_case(name));
        let mut ports = self.ports.iter().enumerate();
        let found = ports.find(|(node, known)| known.as_bytes() == port && *node != but);
        found.filter(|_| is_local).map(|(node, _)| node)
    }

    /// Returns the address of a node.
    pub fn address_of(&self, node: usize) -> Address {
        let port = self.ports.get(node).and_then(|port| port.parse().ok());
        Address { host: "127.0.0.1".to_owned(), port: port.unwrap_or(0) }
    }

    /// Notes that a key has changed.
    pub fn note_key(&mut self, db: usize, key: &[u8]) {
        if self.is_recording() {
            let change = Change::Key(db, key.into());
            if !self.changes.contains(&change) {
                self.changes.push(change);
            }
        }
    }

    /// Notes that the libraries of functions have changed.
    pub fn note_functions(&mut self) {
        if self.is_recording() && !self.changes.contains(&Change::Functions) {
            self.changes.push(Change::Functions);
        }
    }

    /// Notes that a message was published, which replicas publish too.
    pub fn note_message(&mut self, kind: SubscriptionKind, channel: &[u8], message: &[u8]) {
        if self.is_recording() {
            self.changes.push(Change::Message(kind, channel.into(), message.into()));
        }
    }

    /// Returns whether the current event has written anything for the replicas.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }
}

impl Node {
    /// Notes that any key of a database may have changed.
    pub fn note_all_keys(&mut self, db: usize) {
        if self.replication.is_recording() {
            let keys: Vec<Box<[u8]>> = self.store.dbs[db].iter().map(|(_, key, _)| key.into()).collect();
            keys.iter().for_each(|key| self.replication.note_key(db, key));
        }
    }

    /// Takes the writes of the current event as an entry for the replicas.
    pub fn take_entry(&mut self) -> Entry {
        let changes = std::mem::take(&mut self.replication.changes);
        self.entry_of(changes)
    }

    /// Returns all data as an entry for a new replica.
    pub fn full_entry(&mut self) -> Entry {
        let dbs = self.store.dbs.iter().enumerate();
        let keys = dbs.flat_map(|(db, data)| data.iter().map(move |(_, key, _)| Change::Key(db, key.into())));
        self.entry_of(keys.chain([Change::Functions]).collect())
    }

    fn entry_of(&mut self, changes: Vec<Change>) -> Entry {
        const COMMAND_LEN: usize = 64;
        let mut len = 0;
        let effects = changes.into_iter().map(|change| match change {
            Change::Key(db, key) => {
                let entry = self.store.dbs[db].find(&key).and_then(|slot| self.store.dbs[db].entry(slot));
                let state = entry.map(|entry| (entry.value.clone(), entry.expires_at_ms()));
                len += key.len() + COMMAND_LEN;
                Effect::Key { db, key, state }
            }
            Change::Message(kind, channel, message) => {
                len += channel.len() + message.len();
                Effect::Message { kind, channel, message }
            }
            Change::Functions => {
                let texts: Vec<Box<[u8]>> = self.functions.texts().map(Box::from).collect();
                len += texts.iter().map(|text| text.len()).sum::<usize>();
                Effect::Functions(texts)
            }
        });
        let effects = effects.collect();
        self.replication.offset += len as u64;
        Entry { effects, offset: self.replication.offset }
    }

    /// Applies one entry of the master to this replica.
    pub fn apply_entry(&mut self, entry: &Entry) {
        for effect in &entry.effects {
            match effect {
                Effect::Key { db, key, state } => {
                    if let Some(slot) = self.store.dbs[*db].find(key) {
                        self.store.remove(*db, slot);
                    }
                    if let Some((value, end_ms)) = state {
                        let slot = self.store.insert(*db, key, value.clone());
                        self.store.set_expiry(*db, slot, *end_ms);
                    }
                    self.signal_modified(*db, key);
                }
                Effect::Message { kind, channel, message } => {
                    self.publish(*kind, channel, message);
                }
                Effect::Functions(texts) => self.replace_functions(texts),
            }
        }
        self.replication.offset = entry.offset;
    }

    /// Returns how many replicas have received all writes of this client.
    pub fn acked_replicas(&self, id: SessionId) -> u64 {
        let wrote = self.sessions[id].write_offset;
        let real =
            || self.replication.replicas.iter().filter(|peer| peer.online && peer.offset >= wrote).count();
        self.replication.forced_acks.unwrap_or_else(|| real() as u64)
    }

    /// Replies to clients whose WAIT condition is now met.
    pub fn answer_waits(&mut self) {
        let waiting: Vec<SessionId> = (self.sessions.iter())
            .filter(|session| {
                let wait = session.blocked.as_ref().map(|blocked| blocked.wait);
                matches!(wait, Some(Wait::Replicas(_) | Wait::AppendOnlyFile(_)))
            })
            .map(|session| session.id)
            .collect();
        for id in waiting {
            let acked = self.acked_replicas(id);
            let wait = self
                .sessions
                .get(id)
                .and_then(|session| session.blocked.as_ref())
                .map(|blocked| blocked.wait);
            if let Some(Wait::Replicas(asked) | Wait::AppendOnlyFile(asked)) = wait
                && acked >= asked
                && let Some(blocked) = self.unblock(id)
            {
                self.write_reply(id, |reply| blocking::timeout_reply(reply, blocked.timeout_reply, acked));
            }
        }
    }
}
