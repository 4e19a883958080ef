//! Clients that wait for data, for a time or for the end of a pause, and clients that watch keys.
//!
//! The node keeps the request of a blocked client. When a key that the client waits for may have become ready, the
//! request runs again. Clients are served in the order in which they blocked; a client that still cannot be served
//! keeps its position.

use std::collections::{BTreeMap, VecDeque};

use super::session::{Blocked, OwnedArgs, SessionId, Sessions, TimeoutReply, Wait};
use super::{Node, Pause};
use crate::store::{Timer, Value};
use crate::version::Version;
use crate::wheel::TimerId;
use crate::wire::Reply;

type DbKey = (usize, Box<[u8]>);

/// Orders blocked clients: a client that blocked earlier has a lower ticket.
pub type Ticket = u64;

/// The blocked clients of a node, by the keys they wait for.
#[derive(Clone, Default)]
pub struct Blocking {
    queues: BTreeMap<DbKey, BTreeMap<Ticket, SessionId>>,
    last_ticket: Ticket,
    /// Keys that have changed while clients wait for them, in the order of the changes.
    ready: VecDeque<DbKey>,
    /// Clients whose commands CLIENT PAUSE postpones, in the order of arrival.
    postponed: VecDeque<SessionId>,
    /// The number of blocked clients, for INFO.
    pub len: usize,
    /// The number of clients that wait for a list, a sorted set, a stream, and a stream through a group.
    for_lists: usize,
    for_sorted_sets: usize,
    for_streams: usize,
    for_stream_groups: usize,
    /// The clients that wait for pending entries that they may claim, by their slots, with the timers at which their requests run
    /// again.
    claims: BTreeMap<u32, TimerId>,
}

/// The clients that watch each key.
pub type Watchers = BTreeMap<DbKey, Vec<SessionId>>;

impl Blocking {
    /// Returns the number of keys that clients wait for.
    pub fn keys(&self) -> usize {
        self.queues.len()
    }

    /// Returns the first client that waits for a key and has a ticket after `after` and up to `last`.
    fn next_waiting(&self, key: &DbKey, after: Ticket, last: Ticket) -> Option<(Ticket, SessionId)> {
        let (&ticket, &id) = self.queues.get(key)?.range(after + 1..).next()?;
        (ticket <= last).then_some((ticket, id))
    }

    pub(super) fn is_queued(&self, db: usize, key: &[u8], ticket: Ticket, id: SessionId) -> bool {
        self.queues.get(&(db, key.into())).is_some_and(|queue| queue.get(&ticket) == Some(&id))
    }

    /// Asserts that the queues and counters agree with the sessions: `blocked` clients in all, `queued` entries in the
    /// queues, `postponed` requests.
    pub(super) fn check(&self, sessions: &Sessions, blocked: usize, queued: usize, postponed: usize) {
        let waits =
            |wait| sessions.iter().filter(move |s| s.blocked.as_ref().is_some_and(|b| b.wait == wait));
        assert_eq!(self.len, blocked, "wrong number of blocked clients");
        assert_eq!(self.for_lists, waits(Wait::List).count(), "wrong number of clients that wait for lists");
        assert_eq!(
            self.for_sorted_sets,
            waits(Wait::SortedSet).count(),
            "wrong number of clients that wait for sorted sets"
        );
        assert_eq!(
            (self.for_streams, self.for_stream_groups),
            (waits(Wait::Stream).count(), waits(Wait::StreamGroup).count()),
            "wrong number of clients that wait for streams"
        );
        let waits_in = |slot| sessions.at(slot).is_some_and(|session| session.blocked.is_some());
        assert!(
            self.claims.keys().all(|&slot| waits_in(slot)),
            "a client waits for a claim and is not blocked"
        );
        assert_eq!(self.postponed.len(), postponed, "wrong number of postponed clients");
        assert!(self.queues.values().all(|queue| !queue.is_empty()), "a key has an empty queue");
        assert_eq!(
            self.queues.values().map(BTreeMap::len).sum::<usize>(),
            queued,
            "wrong number of clients in queues"
        );
        assert!(self.ready.is_empty(), "keys are ready, but their clients were not served");
    }

    /// Returns the counter of clients that wait this way, if there is one.
    fn count(&mut self, wait: Wait) -> Option<&mut usize> {
        match wait {
            Wait::List => Some(&mut self.for_lists),
            Wait::SortedSet => Some(&mut self.for_sorted_sets),
            Wait::Stream => Some(&mut self.for_streams),
            Wait::StreamGroup => Some(&mut self.for_stream_groups),
            _ => None,
        }
    }

    /// Returns whether a client waits for this type of value, at any key.
    fn awaits(&self, value: &Value) -> bool {
        match value {
            Value::List(_) => self.for_lists > 0,
            Value::SortedSet(_) => self.for_sorted_sets > 0,
            Value::Stream(_) => self.for_streams + self.for_stream_groups > 0,
            Value::String(_) | Value::Set(_) | Value::Hash(_) => false,
        }
    }

    /// Notes that a key is ready, if clients wait for it.
    fn push_ready(&mut self, key: DbKey) {
        if self.queues.contains_key(&key) && !self.ready.contains(&key) {
            self.ready.push_back(key);
        }
    }
}

/// Returns whether a key with this value, or without one, may end a wait. The end of a stream ends the wait for its groups.
fn may_end(wait: Wait, value: Option<&Value>) -> bool {
    match wait {
        Wait::List => matches!(value, Some(Value::List(_))),
        Wait::SortedSet => matches!(value, Some(Value::SortedSet(_))),
        Wait::Stream => matches!(value, Some(Value::Stream(_))),
        Wait::StreamGroup => true,
        _ => false,
    }
}

impl Node {
    /// Blocks a client until one of `keys` is ready or the monotonic time `deadline_ms` has come.
    pub fn block(
        &mut self,
        id: SessionId,
        wait: Wait,
        argv: &[&[u8]],
        keys: Vec<Box<[u8]>>,
        deadline_ms: Option<u64>,
        timeout_reply: TimeoutReply,
    ) {
        let timer = match deadline_ms {
            Some(deadline_ms) => self.store.timers.arm(deadline_ms, Timer::Blocked { slot: id.slot }),
            None => TimerId::NONE,
        };
        let session = &mut self.sessions[id];
        let db = session.db;
        self.blocking.last_ticket += 1;
        let ticket = self.blocking.last_ticket;
        for key in &keys {
            self.blocking.queues.entry((db, key.clone())).or_default().insert(ticket, id);
        }
        let argv = OwnedArgs::new(argv);
        session.blocked = Some(Blocked { wait, argv, db, keys, ticket, timer, timeout_reply });
        self.blocking.len += 1;
        if let Some(count) = self.blocking.count(wait) {
            *count += 1;
        }
        if wait == Wait::Postponed {
            self.blocking.postponed.push_back(id);
        }
    }

    /// Unblocks a client without a reply. Returns what it waited for, or `None` if it was not blocked.
    pub fn unblock(&mut self, id: SessionId) -> Option<Blocked> {
        let blocked = self.sessions.get_mut(id)?.blocked.take()?;
        self.forget_waiting(id, &blocked);
        Some(blocked)
    }

    fn forget_waiting(&mut self, id: SessionId, blocked: &Blocked) {
        self.store.timers.cancel(blocked.timer);
        if let Some(timer) = self.blocking.claims.remove(&id.slot) {
            self.store.timers.cancel(timer);
        }
        self.blocking.len -= 1;
        if let Some(count) = self.blocking.count(blocked.wait) {
            *count -= 1;
        }
        for key in &blocked.keys {
            let key = (blocked.db, key.clone());
            if let Some(queue) = self.blocking.queues.get_mut(&key) {
                queue.remove(&blocked.ticket);
                if queue.is_empty() {
                    self.blocking.queues.remove(&key);
                }
            }
        }
        match blocked.wait {
            Wait::Postponed => self.blocking.postponed.retain(|&waiting| waiting != id),
            Wait::Held => self.inbox.retain(|&waiting| waiting != id),
            Wait::OtherScript => self.scripts.waiting.retain(|&waiting| waiting != id),
            _ => {}
        }
        // The driver may now send this client's next request.
        self.sessions.mark_dirty(id);
    }

    /// Notes that a key has appeared. If clients wait for the key, they are served when the running command is over. As
    /// in Redis, it is enough that some client waits for the key's present type, at any key.
    pub fn signal_ready(&mut self, db: usize, key: &[u8]) {
        if self.blocking.queues.is_empty() {
            return;
        }
        let store = &self.store.dbs[db];
        let entry = store.find(key).and_then(|slot| store.entry(slot));
        if entry.is_some_and(|entry| self.blocking.awaits(&entry.value)) {
            self.blocking.push_ready((db, key.into()));
        }
    }

    /// Notes that a key has changed: if it no longer holds a stream, the clients that wait for one of its groups are served an
    /// error.
    pub(super) fn signal_gone(&mut self, db: usize, key: &[u8]) {
        if self.blocking.for_stream_groups == 0 {
            return;
        }
        let store = &self.store.dbs[db];
        let entry = store.find(key).and_then(|slot| store.entry(slot));
        if !entry.is_some_and(|entry| matches!(entry.value, Value::Stream(_))) {
            self.blocking.push_ready((db, key.into()));
        }
    }

    /// Notes that entries of a stream were delivered, for clients that wait for what they may claim.
    pub fn signal_delivered(&mut self, db: usize, key: &[u8]) {
        if !self.blocking.claims.is_empty() {
            self.signal_ready(db, key);
        }
    }

    /// Runs the request of a blocked client again at the monotonic time `due_ms`, when it may claim what is pending, or after the
    /// next delivery.
    pub fn retry_at(&mut self, id: SessionId, due_ms: Option<u64>) {
        let timer = due_ms.map(|due_ms| self.store.timers.arm(due_ms, Timer::Claim { slot: id.slot }));
        if let Some(before) = self.blocking.claims.insert(id.slot, timer.unwrap_or(TimerId::NONE)) {
            self.store.timers.cancel(before);
        }
    }

    /// Returns when the request of a blocked client runs again, if the client waits for what it may claim.
    pub(super) fn claim_of(&self, id: SessionId) -> Option<Option<u64>> {
        self.blocking.claims.get(&id.slot).map(|&timer| self.store.timers.deadline_ms(timer))
    }

    pub(super) fn claim_is_due(&mut self, slot: u32) {
        self.blocking.claims.insert(slot, TimerId::NONE);
        let Some(session) = self.sessions.at(slot) else { return };
        let (id, key) =
            (session.id, session.blocked.as_ref().and_then(|blocked| blocked.keys.first().cloned()));
        if let Some(key) = key {
            self.retry_blocked(id, &key);
        }
    }

    /// Serves the clients that wait for keys that have changed, by running their requests again.
    pub fn serve_ready_keys(&mut self) {
        while let Some(key) = self.blocking.ready.pop_front() {
            // Clients that block from here on are not served in this round.
            let last = self.blocking.last_ticket;
            let mut after = 0;
            while let Some((ticket, id)) = self.blocking.next_waiting(&key, after, last) {
                let blocked = self.sessions[id].blocked.as_ref();
                let value = self.value_of(&key);
                if blocked.is_some_and(|blocked| may_end(blocked.wait, value)) {
                    self.retry_blocked(id, &key.1);
                }
                after = ticket;
            }
        }
    }

    /// Returns the value of a live key.
    fn value_of(&self, (db, key): &DbKey) -> Option<&Value> {
        let db = &self.store.dbs[*db];
        let entry = db.find(key).and_then(|slot| db.entry(slot))?;
        (!entry.is_expired(self.store.now)).then_some(&entry.value)
    }

    /// Runs the request of a blocked client again. If it still has to wait, the client keeps its position in the queue.
    fn retry_blocked(&mut self, id: SessionId, key: &[u8]) {
        let Some(blocked) = self.sessions.get_mut(id).and_then(|session| session.blocked.take()) else {
            return;
        };
        let again = self.run_again(id, &blocked, key);
        if again {
            self.sessions[id].blocked = Some(blocked);
        } else {
            self.forget_waiting(id, &blocked);
        }
    }

    /// Replies to a blocked client whose timeout has passed.
    pub(super) fn block_timed_out(&mut self, slot: u32) {
        let Some(id) = self.sessions.at(slot).map(|session| session.id) else { return };
        if let Some(blocked) = self.unblock(id) {
            let acks = self.acked_replicas(id);
            self.write_reply(id, |reply| timeout_reply(reply, blocked.timeout_reply, acks));
            self.note_unserved(id, &blocked);
        }
    }

    /// Counts and logs a blocked command that was not served, as Redis does since 7.2.
    fn note_unserved(&mut self, id: SessionId, blocked: &Blocked) {
        if self.config.version >= Version::V7_2 {
            let argv = blocked.argv.args();
            if let Some(command) = self.config.find_command(&argv) {
                self.stats.count_call(command);
            }
            self.note_slow(id, &argv, 0);
        }
    }

    /// Unblocks a client that waits for data or replicas, as CLIENT UNBLOCK does. Returns whether it did.
    pub fn unblock_by_command(&mut self, id: SessionId, with_error: bool) -> bool {
        let waits = self.sessions[id].blocked.as_ref().map(|blocked| blocked.wait);
        let waits_for_data = matches!(
            waits,
            Some(
                Wait::List
                    | Wait::SortedSet
                    | Wait::Stream
                    | Wait::StreamGroup
                    | Wait::Replicas(_)
                    | Wait::AppendOnlyFile(_)
            )
        );
        if !waits_for_data {
            return false;
        }
        let acks = self.acked_replicas(id);
        let Some(blocked) = self.unblock(id) else { return false };
        self.write_reply(id, |reply| {
            if with_error {
                reply.error(b"UNBLOCKED client unblocked via CLIENT UNBLOCK");
            } else {
                timeout_reply(reply, blocked.timeout_reply, acks);
            }
        });
        self.note_unserved(id, &blocked);
        true
    }

    /// Pauses clients, as CLIENT PAUSE does. A pause in effect can only become longer or stricter.
    pub fn pause_clients(&mut self, writes_only: bool, until_ms: u64) {
        let until_ms = self.pause.map_or(until_ms, |old| old.until_ms.max(until_ms));
        let writes_only = writes_only && self.pause.is_none_or(|old| old.writes_only);
        self.pause = Some(Pause { writes_only, until_ms });
        self.store.timers.arm(until_ms, Timer::Unpause);
    }

    /// Ends the pause, because its time is over or by CLIENT UNPAUSE. Postponed commands run in the order of arrival.
    pub fn unpause(&mut self) {
        let now_ms = self.store.now.mono_ms();
        if self.pause.is_some_and(|pause| pause.until_ms > now_ms) {
            return;
        }
        self.end_pause();
    }

    /// Ends the pause that CLIENT PAUSE began, if there is one.
    pub fn end_pause(&mut self) {
        self.pause = None;
        self.resume_expiry();
        self.run_postponed();
    }

    /// Executes the postponed commands, until one of them begins a pause or a script that goes on.
    pub(super) fn run_postponed(&mut self) {
        let mut postponed = std::mem::take(&mut self.blocking.postponed);
        while self.pause.is_none() && !self.scripts.is_running() {
            let Some(id) = postponed.pop_front() else { return };
            if let Some(blocked) = self.unblock(id) {
                self.execute(id, &blocked.argv.args());
            }
        }
        // Clients that were disconnected meanwhile do not wait any more.
        postponed.retain(|&id| self.sessions.get(id).is_some_and(|session| session.blocked.is_some()));
        postponed.append(&mut self.blocking.postponed);
        self.blocking.postponed = postponed;
    }

    /// Adds a key to those that a client watches.
    pub fn watch(&mut self, id: SessionId, key: &[u8]) {
        self.watch_in(id, self.sessions[id].db, key);
    }

    /// Adds a key of a database to those that a client watches.
    pub(super) fn watch_in(&mut self, id: SessionId, db: usize, key: &[u8]) {
        let session = &mut self.sessions[id];
        if session.watched.iter().any(|(known_db, known)| *known_db == db && **known == *key) {
            return;
        }
        session.watched.push((db, key.into()));
        self.watchers.entry((db, key.into())).or_default().push(id);
    }

    /// Ends all watches of a client, as UNWATCH does.
    pub fn unwatch(&mut self, id: SessionId) {
        let session = &mut self.sessions[id];
        session.watch_broken = false;
        for key in std::mem::take(&mut session.watched) {
            if let Some(sessions) = self.watchers.get_mut(&key) {
                sessions.retain(|&watching| watching != id);
                if sessions.is_empty() {
                    self.watchers.remove(&key);
                }
            }
        }
    }

    pub(super) fn break_watches(&mut self, db: usize, key: &[u8]) {
        let Some(sessions) = self.watchers.get(&(db, key.into())) else { return };
        for &id in sessions {
            self.sessions[id].watch_broken = true;
        }
    }

    /// Breaks the watches on all keys of a database that exist in it, or in `other` after the change. FLUSHDB, FLUSHALL
    /// and SWAPDB do this.
    pub fn break_watches_of_db(&mut self, db: usize, other: Option<usize>) {
        #[cfg(debug_assertions)]
        self.note_db_announced(db);
        let keys: Vec<Box<[u8]>> = (self.watchers.range((db, Box::default())..(db + 1, Box::default())))
            .map(|((_, key), _)| key.clone())
            .collect();
        for key in keys {
            let exists = |db: usize| self.store.dbs[db].find(&key).is_some();
            if exists(db) || other.is_some_and(exists) {
                self.break_watches(db, &key);
            }
        }
    }

    /// Serves the clients that wait for keys of a database whose keys were all replaced or removed.
    pub fn signal_db_ready(&mut self, db: usize) {
        let waited: Vec<Box<[u8]>> =
            (self.blocking.queues.range((db, Box::default())..(db + 1, Box::default())))
                .map(|((_, key), _)| key.clone())
                .collect();
        for key in waited {
            self.signal_ready(db, &key);
            self.signal_gone(db, &key);
        }
    }
}

/// Writes the reply to a client whose wait has timed out, or whose WAIT has ended with `acks` replicas.
pub fn timeout_reply(reply: &mut Reply, kind: TimeoutReply, acks: u64) {
    match kind {
        TimeoutReply::Ok => reply.ok(),
        TimeoutReply::Null => reply.null(),
        TimeoutReply::NullArray => reply.null_array(),
        TimeoutReply::Acks => reply.int(acks as i64),
        TimeoutReply::LocalAndAcks => {
            reply.array(2);
            reply.int(0);
            reply.int(acks as i64);
        }
    }
}
