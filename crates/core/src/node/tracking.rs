//! CLIENT TRACKING: invalidation messages for clients that cache keys.
//!
//! By default the node remembers which keys a client has read, and sends it one message when each changes. A client in
//! broadcast mode gets the names of all changed keys with its prefixes, at the end of the event that changed them.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Node;
use super::session::{Session, SessionId};
use crate::commands::command::{Command, Group, PUBSUB, READONLY};
use crate::commands::ctx::Origin;
use crate::commands::introspection::keys_in_call;
use crate::version::Version;
use crate::wire::{Protocol, Reply};

/// Which reads of a client are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackingMode {
    #[default]
    All,
    /// Those that follow CLIENT CACHING YES.
    OptIn,
    /// Those that do not follow CLIENT CACHING NO.
    OptOut,
    /// None; the client gets the changes of all keys with its prefixes.
    Broadcast,
}

/// The tracking of one client.
#[derive(Clone, Debug, Default)]
pub struct Tracking {
    pub mode: TrackingMode,
    /// Whether the client gets no messages about its own changes.
    pub no_loop: bool,
    /// The number of the client that gets the messages; 0: this one.
    pub redirect: u64,
    /// Whether that client has left.
    pub is_redirect_broken: bool,
    /// Whether CLIENT CACHING was given for the next command or transaction.
    pub caching: bool,
    /// The prefixes of broadcast mode.
    pub prefixes: BTreeSet<Box<[u8]>>,
}

/// What has changed, in a message.
#[derive(Clone, Debug)]
enum Changed {
    Keys(Vec<Box<[u8]>>),
    /// Everything, in the protocol of the tracking client.
    All(Protocol),
}

/// The keys that clients have read, and the changes that clients have to be told of.
#[derive(Clone, Default)]
pub struct TrackingTable {
    /// The numbers of the clients that have read a key.
    readers: HashMap<Box<[u8]>, BTreeSet<u64>, FixedState>,
    items: usize,
    /// The number of clients that are tracking.
    pub clients: usize,
    /// The same, and one more if HOTKEYS collects: whether anybody wants to know of the keys of commands.
    pub observers: usize,
    /// The number of clients with each prefix.
    prefixes: BTreeMap<Box<[u8]>, usize>,
    /// The keys with one of these prefixes that changed in this event, with the client that changed them first.
    changed: BTreeMap<Box<[u8]>, Option<SessionId>>,
    /// Whether the running script has read, on releases where its keys are tracked and not those of its commands.
    script_reads: bool,
    /// The messages for the client whose command is running; they follow its reply.
    pending: Vec<(SessionId, Changed)>,
}

impl TrackingTable {
    /// Returns the numbers of remembered keys, of keys times their readers, and of prefixes.
    pub fn sizes(&self) -> [usize; 3] {
        [self.readers.len(), self.items, self.prefixes.len()]
    }

    /// Returns whether any key is remembered.
    #[inline]
    pub fn has_readers(&self) -> bool {
        self.items > 0
    }

    /// Returns the remembered keys with the numbers of the clients that have read them, in the order of the keys.
    pub(super) fn readers(&self) -> impl Iterator<Item = (&[u8], &BTreeSet<u64>)> {
        let sorted: BTreeMap<&[u8], &BTreeSet<u64>> =
            self.readers.iter().map(|(key, readers)| (&**key, readers)).collect();
        sorted.into_iter()
    }

    /// Remembers that these clients have read a key.
    pub(super) fn take_readers(&mut self, key: &[u8], readers: BTreeSet<u64>) {
        self.items += readers.len();
        self.readers.insert(key.into(), readers);
    }
}

impl Node {
    /// Begins tracking for a client, or changes its options.
    pub fn enable_tracking(&mut self, id: SessionId, tracking: Tracking) {
        let old = self.disable_tracking(id);
        let mut prefixes = old.map(|old| old.prefixes).unwrap_or_default();
        prefixes.extend(tracking.prefixes);
        for prefix in &prefixes {
            *self.tracking.prefixes.entry(prefix.clone()).or_default() += 1;
        }
        self.tracking.clients += 1;
        self.tracking.observers += 1;
        self.sessions[id].tracking = Some(Box::new(Tracking { prefixes, ..tracking }));
    }

    /// Ends tracking for a client. What it has read stays in the table until it changes, without effect.
    pub fn disable_tracking(&mut self, id: SessionId) -> Option<Tracking> {
        let tracking = self.sessions[id].tracking.take()?;
        for prefix in &tracking.prefixes {
            if let Some(clients) = self.tracking.prefixes.get_mut(prefix) {
                *clients -= 1;
                if *clients == 0 {
                    self.tracking.prefixes.remove(prefix);
                }
            }
        }
        self.tracking.clients -= 1;
        self.tracking.observers -= 1;
        Some(*tracking)
    }

    /// Remembers the keys that a command has read for a tracking client, and counts its bytes for HOTKEYS.
    pub(super) fn remember_reads(
        &mut self,
        id: SessionId,
        command: &Command,
        argv: &[&[u8]],
        origin: Origin,
        reply_len: usize,
    ) {
        if self.hotkeys.is_some() && origin != Origin::Script {
            self.count_key_bytes(command, argv, reply_len);
        }
        let Some(tracking) = &self.sessions[id].tracking else { return };
        let wants_reads = match tracking.mode {
            TrackingMode::All => true,
            TrackingMode::OptIn => tracking.caching,
            TrackingMode::OptOut => !tracking.caching,
            TrackingMode::Broadcast => false,
        };
        let is_script = command.group == Group::Scripting;
        let mut reads = command.has(READONLY) && !command.has(PUBSUB);
        if self.config.version >= Version::V7_2 {
            // The commands of a script count, not the script.
            reads &= !is_script;
        } else if origin == Origin::Script {
            // The keys that the script was called with count, if it reads at all.
            self.tracking.script_reads |= reads;
            return;
        } else if is_script {
            reads = std::mem::take(&mut self.tracking.script_reads);
        }
        if !wants_reads || !reads {
            return;
        }
        for (at, _) in keys_in_call(command, argv, self.config.version) {
            let table = &mut self.tracking;
            let readers = table.readers.entry(argv[at].into()).or_default();
            table.items += readers.insert(id.number) as usize;
        }
        while self.tracking.readers.len() > self.config.tracking_table_max_keys {
            let Some(key) = self.tracking.readers.keys().next().cloned() else { return };
            self.invalidate_readers(&key);
        }
    }

    /// Ends the effect of CLIENT CACHING, which is for the next command or transaction.
    pub(super) fn end_caching(&mut self, id: SessionId, argv: &[&[u8]]) {
        if self.tracking.clients == 0 {
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        let is_client = argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"client"));
        if let (Some(tracking), None, false) = (&mut session.tracking, &session.multi, is_client) {
            tracking.caching = false;
        }
    }

    /// Sends the messages for a key that has changed.
    pub(super) fn invalidate(&mut self, key: &[u8]) {
        if self.tracking.prefixes.keys().any(|prefix| key.starts_with(prefix)) {
            self.tracking.changed.entry(key.into()).or_insert(self.executing);
        }
        self.invalidate_readers(key);
    }

    fn invalidate_readers(&mut self, key: &[u8]) {
        let Some(readers) = self.tracking.readers.remove(key) else { return };
        self.tracking.items -= readers.len();
        for number in readers {
            let Some(session) = self.sessions.by_number(number) else { continue };
            let (id, tracking) = (session.id, session.tracking.as_deref());
            let is_wanted = tracking.is_some_and(|tracking| {
                tracking.mode != TrackingMode::Broadcast && !(tracking.no_loop && self.executing == Some(id))
            });
            if is_wanted {
                self.notify_client(id, Changed::Keys(vec![key.into()]));
            }
        }
    }

    /// Sends all tracking clients the message that everything has changed.
    pub fn invalidate_all(&mut self) {
        if self.tracking.clients == 0 && !self.tracking.has_readers() {
            return;
        }
        let tracking = self.sessions.iter().filter(|session| session.tracking.is_some());
        let ids: Vec<(SessionId, Protocol)> =
            tracking.map(|session| (session.id, session.protocol())).collect();
        for (id, protocol) in ids {
            self.notify_client(id, Changed::All(protocol));
        }
        self.tracking.readers.clear();
        self.tracking.items = 0;
    }

    /// Sends a client a message, after its reply if its command is running.
    fn notify_client(&mut self, id: SessionId, changed: Changed) {
        if self.executing == Some(id) {
            self.tracking.pending.push((id, changed));
        } else {
            self.send_invalidation(id, &changed);
        }
    }

    /// Sends a client the messages about its own command, whose reply is complete.
    pub fn send_pending_invalidations(&mut self, id: SessionId) {
        if self.tracking.pending.is_empty() {
            return;
        }
        // Those of a client whose script is suspended wait for the script's own reply.
        let pending = std::mem::take(&mut self.tracking.pending).into_iter();
        let (own, others): (Vec<_>, Vec<_>) = pending.partition(|(to, _)| *to == id);
        self.tracking.pending = others;
        for (_, changed) in own {
            self.send_invalidation(id, &changed);
        }
    }

    /// Sends the clients in broadcast mode the changes of the event that ends.
    pub fn broadcast_invalidations(&mut self) {
        if !self.tracking.changed.is_empty() {
            self.send_changes();
        }
    }

    fn send_changes(&mut self) {
        let changed = std::mem::take(&mut self.tracking.changed);
        let prefixes: Vec<Box<[u8]>> = self.tracking.prefixes.keys().cloned().collect();
        for prefix in prefixes {
            let has_prefix =
                |session: &&Session| session.tracking.as_ref().is_some_and(|t| t.prefixes.contains(&prefix));
            let clients: Vec<(SessionId, bool)> = (self.sessions.iter().filter(has_prefix))
                .map(|session| (session.id, session.tracking.as_ref().is_some_and(|t| t.no_loop)))
                .collect();
            for (id, no_loop) in clients {
                let keys: Vec<Box<[u8]>> = (changed.iter())
                    .filter(|(key, writer)| key.starts_with(&prefix) && !(no_loop && **writer == Some(id)))
                    .map(|(key, _)| key.clone())
                    .collect();
                if !keys.is_empty() {
                    self.send_invalidation(id, &Changed::Keys(keys));
                }
            }
        }
    }

    /// Sends an invalidation message to a client that tracks or did so, or to the client that it redirects to. A RESP2 client only
    /// gets it by redirection, if it has subscriptions.
    fn send_invalidation(&mut self, id: SessionId, changed: &Changed) {
        const CHANNEL: &[u8] = b"__redis__:invalidate";
        let Some(session) = self.sessions.get_mut(id) else { return };
        let protocol = session.protocol();
        // A transaction may have ended the tracking after a change.
        let redirect = session.tracking.as_ref().map_or(0, |tracking| tracking.redirect);
        let mut target = id;
        if redirect != 0 {
            match self.sessions.by_number(redirect) {
                Some(session) => target = session.id,
                None => {
                    if let Some(tracking) = &mut self.sessions[id].tracking {
                        tracking.is_redirect_broken = true;
                    }
                    if protocol == Protocol::Resp3 {
                        self.push_to(id, |out| {
                            out.push(2);
                            out.bulk(b"tracking-redir-broken");
                            out.int(redirect as i64);
                        });
                    }
                    return;
                }
            }
        }
        let session = &self.sessions[target];
        let is_push = session.protocol() == Protocol::Resp3;
        if !is_push && (target == id || !session.is_subscriber()) {
            return;
        }
        self.deliver(target, CHANNEL, |out: &mut Reply| {
            if is_push {
                out.push(2);
                out.bulk(b"invalidate");
            } else {
                out.push(3);
                out.bulk(b"message");
                out.bulk(CHANNEL);
            }
            match changed {
                Changed::Keys(keys) => {
                    out.array(keys.len());
                    keys.iter().for_each(|key| out.bulk(key));
                }
                Changed::All(Protocol::Resp2) => out.raw(b"$-1\r\n"),
                Changed::All(Protocol::Resp3) => out.raw(b"_\r\n"),
            }
        });
    }

    /// Asserts that the counts agree with the sessions.
    pub(super) fn check_tracking(&self) {
        let clients: Vec<&Tracking> =
            self.sessions.iter().filter_map(|session| session.tracking.as_deref()).collect();
        assert_eq!(clients.len(), self.tracking.clients, "wrong number of tracking clients");
        let mut prefixes: BTreeMap<&[u8], usize> = BTreeMap::new();
        for prefix in clients.iter().flat_map(|tracking| &tracking.prefixes) {
            *prefixes.entry(prefix).or_default() += 1;
        }
        let counted: BTreeMap<&[u8], usize> =
            self.tracking.prefixes.iter().map(|(prefix, &count)| (&**prefix, count)).collect();
        assert_eq!(counted, prefixes, "wrong numbers of tracking clients by prefix");
        let items: usize = self.tracking.readers.values().map(BTreeSet::len).sum();
        assert_eq!(items, self.tracking.items, "wrong number of remembered reads");
        let is_due = |(id, _): &(SessionId, Changed)| self.scripts.client() != Some(*id);
        let are_late = self.tracking.pending.iter().any(is_due);
        assert!(!are_late, "a client did not get the messages about its own changes");
    }
}
