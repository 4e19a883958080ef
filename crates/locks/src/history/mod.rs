//! Who was told that he holds which lock, across nodes and time, as far as requests and replies show it.
//!
//! A grant begins with the reply that grants the lock. It ends when its lease is over by the owner's own account, or when
//! the owner asks to release the lock. The loss of the lock's data does not end it: the owner does not know. So two owners
//! at once show after a failover or a `FLUSHALL` too, where every single script was right.
//!
//! | file | concept |
//! |---|---|
//! | `asked` | what a request asks for |
//! | `effect` | what a script of an unknown kind has done to a lock, by the data before and after it |
//! | `grant` | a lock that a client was told it holds |
//! | `cause` | what can take a lock from its owner |
//! | `log`, `export` | the operations from request to reply, and how they are written for others |
//! | `verdict` | grants, renewals and releases, and what is wrong with them |
//! | `violated` | two owners, lost locks, stale unlocks: violations with what explains them |
//!
//! The account of a lease is a careful one: it begins when the request arrives, not when the reply leaves. An owner whose
//! renewal has not been answered still believes that he holds the lock, until his connection closes.
//! Operations that are not judged are counted by reason.

mod asked;
mod cause;
mod effect;
pub mod export;
mod grant;
pub mod log;
mod verdict;
mod violated;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::binding::Binding;
use crate::check::{Finding, Tally};
use crate::invariant::Invariant;
use crate::reply::Reply;
use crate::role::Role;
use asked::Asked;
pub use cause::{Cause, Happening};
use effect::Running;
pub use grant::{Conn, Grant};
use log::Log;
use redlatch_core::store::Store;
use redlatch_core::wire::client::value_len;

/// A lock: its database and its key. Nodes that replicate share it.
pub type LockId = (usize, Vec<u8>);

/// The most locks that are remembered.
pub const MAX_LOCKS: usize = 10_000;
/// The most scripts that are remembered.
const MAX_SCRIPTS: usize = 10_000;
/// The most holders of one lock, and the most grants that are remembered after their end.
const MAX_HOLDERS: usize = 64;
const MAX_ENDED: usize = 8;
/// The most requests of a client that wait for replies.
const MAX_PENDING: usize = 10_000;
/// The most happenings that are remembered, of the world and of one lock.
const MAX_HAPPENINGS: usize = 256;
const MAX_NOTES: usize = 8;

/// The time and the number of an event.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub event: u64,
    /// Monotonic time in ms.
    pub now_ms: u64,
}

/// A client: the requests whose replies it has not received yet, and the beginning of the next reply.
#[derive(Clone, Debug, Default)]
struct Client {
    pending: VecDeque<Pending>,
    bytes: Vec<u8>,
    /// Whether replies can no longer be told from messages, as after SUBSCRIBE.
    is_ignored: bool,
    /// The family of the owner for whom it has last acquired or released a lock.
    acts_for: Option<Vec<u8>>,
}

/// A request without a reply.
#[derive(Clone, Debug)]
struct Pending {
    at: Moment,
    asked: Option<Asked>,
    /// The numbers of its operations in the log.
    operations: Vec<u64>,
}

/// What shows that a key is a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Proof {
    /// Only that it was set if it did not exist.
    #[default]
    None,
    /// Its name or its value, or a request that compared its owner.
    Shape,
    /// A script of Redisson.
    Script,
}

/// All that is known of one lock.
#[derive(Clone, Debug, Default)]
struct Lock {
    object: &'static str,
    proof: Proof,
    grants: Vec<Grant>,
    /// The last grants that have ended, the newest last.
    ended: VecDeque<Grant>,
    /// What clients have done to the lock's key, but for lock operations.
    notes: VecDeque<Happening>,
    /// The groups of nodes that it was asked for at, by the last owners who asked.
    asked_at: VecDeque<(Vec<u8>, BTreeSet<usize>)>,
    /// Whether one owner asks for it at several independent nodes, as for a RedLock.
    is_spread: bool,
}

/// The history of all locks.
#[derive(Clone, Debug, Default)]
pub struct History {
    scripts: BTreeMap<[u8; 40], Option<(Role, Binding)>>,
    clients: BTreeMap<Conn, Client>,
    locks: BTreeMap<LockId, Lock>,
    /// For each node the first one that it has ever shared its data with.
    group: Vec<usize>,
    happenings: VecDeque<Happening>,
    /// How many keys were evicted from each node.
    evicted: Vec<u64>,
    /// The script that runs on each node, if its kind is unknown.
    running: BTreeMap<usize, Running>,
    findings: Vec<Finding>,
    two_owners: Option<Finding>,
    /// The operations on locks that were judged, and those that were not, by reason.
    pub tally: Tally,
    /// The operations on locks.
    pub log: Log,
    /// The last event that granted, renewed or released a lock.
    pub last_event: u64,
}

impl History {
    /// Returns a history that begins now, after another, or after none. Only the log may go on.
    pub fn after(earlier: Option<History>) -> History {
        let log = earlier.map(|earlier| earlier.log.begin_anew()).unwrap_or_default();
        History { log, ..History::default() }
    }

    /// Returns the first finding of two owners at once.
    pub fn two_owners(&self) -> Option<&Finding> {
        self.two_owners.as_ref()
    }

    /// Returns the grants of a lock whose owners believe that they hold it.
    pub fn held(&self, lock: &LockId, now_ms: u64) -> Vec<&Grant> {
        let grants = self.locks.get(lock).into_iter().flat_map(|lock| &lock.grants);
        grants.filter(|grant| self.is_held(grant, now_ms)).collect()
    }

    /// Returns all locks that are remembered.
    pub fn locks(&self) -> impl Iterator<Item = &LockId> {
        self.locks.keys()
    }

    /// Returns the violations since the last call.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Notes a request that has arrived, before it runs. `store`: the data of its node.
    pub fn request(&mut self, at: Moment, conn: Conn, db: usize, argv: &[&[u8]], store: &Store) {
        let Some(name) = argv.first().map(|name| name.to_ascii_uppercase()) else { return };
        self.note_request(at, conn, db, &name, argv);
        let asked = self.asked(at, conn, db, &name, argv, store);
        let client = self.clients.entry(conn).or_default();
        client.is_ignored |= matches!(&name[..], b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"MONITOR")
            || name == b"CLIENT" && argv.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"REPLY"));
        client.is_ignored |= client.pending.len() >= MAX_PENDING;
        if client.is_ignored {
            *client = Client { is_ignored: true, ..Client::default() };
            if let Some(asked) = asked {
                // Its reply is never seen.
                self.log_asked(at, conn, &asked);
                self.leave_out(&format!(
                    "{}: the replies of its connection cannot be followed",
                    asked.object()
                ));
            }
            return;
        }
        if let Some(asked) = &asked {
            self.note_asked(at, conn, asked);
        }
        let operations = asked.as_ref().map(|asked| self.log_asked(at, conn, asked)).unwrap_or_default();
        if let Some(client) = self.clients.get_mut(&conn) {
            client.pending.push_back(Pending { at, asked, operations });
        }
    }

    /// Logs what a request asks for. Returns the numbers of the operations.
    fn log_asked(&mut self, at: Moment, conn: Conn, asked: &Asked) -> Vec<u64> {
        self.log.asked(at, conn, self.group_of(conn.node), asked, &self.locks)
    }

    /// Notes that the replies to a client cannot be told from messages.
    pub fn ignore(&mut self, conn: Conn) {
        self.clients.insert(conn, Client { is_ignored: true, ..Client::default() });
    }

    /// Notes that a client has left. It may still believe that it holds its locks.
    pub fn closed(&mut self, conn: Conn) {
        if let Some(client) = self.clients.remove(&conn) {
            let unanswered = client.pending.into_iter().filter_map(|pending| pending.asked);
            for asked in unanswered.filter(Asked::is_operation) {
                self.leave_out(&format!("{}: no reply before the connection closed", asked.object()));
            }
        }
    }

    /// Notes what a client has received.
    pub fn received(&mut self, at: Moment, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&conn).filter(|client| !client.is_ignored) else { return };
        client.bytes.extend_from_slice(bytes);
        let mut begin = 0;
        let mut answered = Vec::new();
        while let Some(len) = value_len(&client.bytes[begin..]) {
            let reply = &client.bytes[begin..begin + len];
            begin += len;
            // A message of RESP3 is not a reply.
            if !reply.starts_with(b">")
                && let Some(Pending { at: asked_at, asked: Some(asked), operations }) =
                    client.pending.pop_front()
            {
                answered.push((asked_at, asked, operations, reply.to_vec()));
            }
        }
        client.bytes.drain(..begin);
        for (asked_at, asked, operations, reply) in answered {
            self.log.answered(at, &operations, &asked, Reply::parse(&reply));
            self.answered(at, conn, asked_at, asked, &reply);
        }
    }

    /// Notes that two nodes share their data.
    pub fn join(&mut self, a: usize, b: usize) {
        if self.group.len() > a.max(b) && self.group[a] == self.group[b] {
            return;
        }
        let known = self.group.len();
        self.group.extend(known..=a.max(b));
        let (from, to) = (self.group_of(a), self.group_of(b));
        self.group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
    }

    /// Forgets all locks: the whole world begins anew.
    pub fn forget_locks(&mut self) {
        self.locks.clear();
        self.group.clear();
        self.happenings.clear();
        self.log = std::mem::take(&mut self.log).begin_anew();
        let pending = self.clients.values_mut().flat_map(|client| &mut client.pending);
        pending.for_each(|pending| pending.operations.clear());
    }

    /// Notes for whom a client acts.
    fn note_owner(&mut self, conn: Conn, owner: &[u8]) {
        let client = self.clients.entry(conn).or_default();
        if client.acts_for.as_deref() != Some(family(owner)) {
            client.acts_for = Some(family(owner).to_vec());
        }
    }

    /// Returns the owners of a lock on whose behalf a client may act that names none: those for whom it has acted, and those
    /// of the same program, which has several connections. A client that has acted for nobody may be any owner's.
    fn owners_behind(&mut self, conn: Conn, lock: &LockId) -> Vec<Vec<u8>> {
        let Some(known) = self.locks.get(lock) else { return Vec::new() };
        let acts_for = self.clients.get(&conn).and_then(|client| client.acts_for.as_deref());
        let is_behind = |grant: &&Grant| {
            grant.conn == conn || acts_for.is_none_or(|acts_for| acts_for == family(&grant.owner))
        };
        let grants = known.grants.iter().filter(|grant| grant.conn.node == conn.node);
        let owners: Vec<Vec<u8>> = grants.filter(is_behind).map(|grant| grant.owner.clone()).collect();
        if acts_for.is_none() && !owners.is_empty() {
            self.leave_out("expire: by a connection that has acted for no owner of the lock");
        }
        owners
    }

    fn group_of(&self, node: usize) -> usize {
        self.group.get(node).copied().unwrap_or(node)
    }

    fn leave_out(&mut self, why: &str) {
        match self.tally.unjudged.get_mut(why) {
            Some(count) => *count += 1,
            None => {
                self.tally.unjudged.insert(why.to_owned(), 1);
            }
        }
    }

    /// Returns the lock, which is created if there is room. Locks that nobody holds make room for others.
    fn lock(&mut self, id: &LockId, object: &'static str, now_ms: u64) -> Option<&mut Lock> {
        if self.locks.len() >= MAX_LOCKS && !self.locks.contains_key(id) {
            let is_held = |grant: &Grant| grant.until_ms.is_none_or(|until_ms| until_ms > now_ms);
            self.locks.retain(|_, lock| lock.grants.iter().any(is_held));
            if self.locks.len() >= MAX_LOCKS {
                self.leave_out(&format!("{object}: more than {MAX_LOCKS} locks are held at once"));
                return None;
            }
        }
        let lock = self.locks.entry(id.clone()).or_default();
        if lock.object.is_empty() {
            lock.object = object;
        }
        Some(lock)
    }

    /// Returns whether the owner believes that he holds the lock: his lease is not over, or he has asked to renew it in time
    /// and waits for the reply.
    fn is_held(&self, grant: &Grant, now_ms: u64) -> bool {
        grant.is_in_lease(now_ms) || grant.releasing.is_none() && self.awaits_renewal(grant)
    }

    fn awaits_renewal(&self, grant: &Grant) -> bool {
        grant.renewal.is_some_and(|(conn, event)| {
            let client = self.clients.get(&conn);
            client.is_some_and(|client| client.pending.iter().any(|pending| pending.at.event == event))
        })
    }

    fn report(&mut self, finding: Finding) {
        if finding.violation.invariant == Invariant::H1 && self.two_owners.is_none() {
            self.two_owners = Some(finding.clone());
        }
        self.findings.push(finding);
    }
}

/// Returns what the owners of one program share: Redisson's are the id of the client, a colon and that of the thread.
fn family(owner: &[u8]) -> &[u8] {
    owner.split(|byte| *byte == b':').next().unwrap_or(owner)
}
