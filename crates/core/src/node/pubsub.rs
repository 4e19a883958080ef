//! Publish and subscribe: channels, patterns, shard channels.

use std::collections::BTreeMap;

use super::Node;
use super::cluster::{Message, Target};
use super::session::{SessionId, SubscriptionKind};
use crate::glob;
use crate::stages::{Push, PushFate};
use crate::wire::Reply;

/// The subscribers of each channel. They are in the order in which they subscribed, which is also the order of
/// delivery.
#[derive(Clone, Default)]
pub struct PubSub {
    channels: BTreeMap<Box<[u8]>, Vec<SessionId>>,
    patterns: BTreeMap<Box<[u8]>, Vec<SessionId>>,
    shards: BTreeMap<Box<[u8]>, Vec<SessionId>>,
}

impl PubSub {
    fn table(&self, kind: SubscriptionKind) -> &BTreeMap<Box<[u8]>, Vec<SessionId>> {
        match kind {
            SubscriptionKind::Channel => &self.channels,
            SubscriptionKind::Pattern => &self.patterns,
            SubscriptionKind::Shard => &self.shards,
        }
    }

    fn table_mut(&mut self, kind: SubscriptionKind) -> &mut BTreeMap<Box<[u8]>, Vec<SessionId>> {
        match kind {
            SubscriptionKind::Channel => &mut self.channels,
            SubscriptionKind::Pattern => &mut self.patterns,
            SubscriptionKind::Shard => &mut self.shards,
        }
    }

    /// Sorts the subscribers by number.
    pub(super) fn sort(&mut self) {
        let tables = [&mut self.channels, &mut self.patterns, &mut self.shards];
        tables
            .into_iter()
            .flat_map(|table| table.values_mut())
            .for_each(|ids| ids.sort_by_key(|id| id.number));
    }

    /// Returns how many distinct channels or patterns have subscribers.
    pub fn len(&self, kind: SubscriptionKind) -> usize {
        self.table(kind).len()
    }

    /// Returns the channels or patterns with subscribers, sorted by name.
    pub fn names(&self, kind: SubscriptionKind) -> impl Iterator<Item = &[u8]> {
        self.table(kind).keys().map(|name| &**name)
    }

    /// Returns the subscribers of a channel or pattern, in the order in which they subscribed.
    pub fn subscribers(&self, kind: SubscriptionKind, name: &[u8]) -> &[SessionId] {
        self.table(kind).get(name).map_or(&[], |sessions| sessions.as_slice())
    }
}

impl SubscriptionKind {
    /// Returns the first words of the messages that confirm a subscription and its end.
    fn words(self) -> (&'static [u8], &'static [u8]) {
        match self {
            SubscriptionKind::Channel => (b"subscribe", b"unsubscribe"),
            SubscriptionKind::Pattern => (b"psubscribe", b"punsubscribe"),
            SubscriptionKind::Shard => (b"ssubscribe", b"sunsubscribe"),
        }
    }
}

impl Node {
    /// Adds a subscription and confirms it in `reply`.
    pub fn subscribe(&mut self, id: SessionId, kind: SubscriptionKind, name: &[u8], reply: &mut Reply) {
        let session = &mut self.sessions[id];
        let own = session.subscriptions_mut(kind);
        if !own.iter().any(|known| **known == *name) {
            own.push(name.into());
            self.pubsub.table_mut(kind).entry(name.into()).or_default().push(id);
        }
        self.confirm(id, kind, kind.words().0, Some(name), reply);
    }

    /// Ends a subscription and confirms it in `reply`, even if it did not exist.
    pub fn unsubscribe(&mut self, id: SessionId, kind: SubscriptionKind, name: &[u8], reply: &mut Reply) {
        self.forget_subscription(id, kind, name);
        self.confirm(id, kind, kind.words().1, Some(name), reply);
    }

    /// Ends a subscription because its shard channel is served elsewhere, and tells the client.
    pub fn unsubscribe_pushed(&mut self, id: SessionId, kind: SubscriptionKind, name: &[u8]) {
        self.forget_subscription(id, kind, name);
        let count = self.sessions[id].shards.len();
        self.push_to(id, |out| {
            out.push(3);
            out.bulk(kind.words().1);
            out.bulk(name);
            out.int(count as i64);
        });
    }

    /// Ends all subscriptions of a kind and confirms each; sends one confirmation even if there are none.
    pub fn unsubscribe_all(&mut self, id: SessionId, kind: SubscriptionKind, reply: &mut Reply) {
        let session = &self.sessions[id];
        let names = session.subscriptions(kind).to_vec();
        if names.is_empty() {
            self.confirm(id, kind, kind.words().1, None, reply);
        }
        for name in names {
            self.unsubscribe(id, kind, &name, reply);
        }
    }

    /// Ends all subscriptions without confirmation, for a client that disconnects or resets.
    pub fn drop_subscriptions(&mut self, id: SessionId) {
        for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard] {
            let session = &self.sessions[id];
            for name in session.subscriptions(kind).to_vec() {
                self.forget_subscription(id, kind, &name);
            }
        }
    }

    fn forget_subscription(&mut self, id: SessionId, kind: SubscriptionKind, name: &[u8]) {
        let session = &mut self.sessions[id];
        session.subscriptions_mut(kind).retain(|known| **known != *name);
        let table = self.pubsub.table_mut(kind);
        if let Some(subscribers) = table.get_mut(name) {
            subscribers.retain(|&subscriber| subscriber != id);
            if subscribers.is_empty() {
                table.remove(name);
            }
        }
    }

    /// Confirms a subscription or its end. A client that wants no replies gets confirmations nevertheless, like messages.
    fn confirm(
        &mut self,
        id: SessionId,
        kind: SubscriptionKind,
        word: &[u8],
        name: Option<&[u8]>,
        reply: &mut Reply,
    ) {
        let session = &self.sessions[id];
        let count = match kind {
            SubscriptionKind::Shard => session.shards.len(),
            _ => session.channels.len() + session.patterns.len(),
        };
        let write = |out: &mut Reply| {
            out.push(3);
            out.bulk(word);
            out.bulk_or_null(name);
            out.int(count as i64);
        };
        if session.wants_no_reply() { self.push_to(id, write) } else { write(reply) }
    }

    /// Publishes a message to the subscribers of a channel and of the patterns that match it. Returns how many received
    /// it.
    pub fn publish(&mut self, kind: SubscriptionKind, channel: &[u8], message: &[u8]) -> usize {
        self.replication.note_message(kind, channel, message);
        self.publish_here(kind, channel, message)
    }

    /// Publishes a message of a client: replicas publish it too, or in a cluster the nodes that the bus carries it to.
    pub fn publish_for_client(&mut self, kind: SubscriptionKind, channel: &[u8], message: &[u8]) -> usize {
        let Some(cluster) = &mut self.cluster else { return self.publish(kind, channel, message) };
        let target = if kind == SubscriptionKind::Shard { Target::Shard } else { Target::All };
        cluster.send(target, Message::Publish { kind, channel: channel.into(), message: message.into() });
        self.publish_here(kind, channel, message)
    }

    /// Publishes a message to the clients of this node alone.
    pub(super) fn publish_here(&mut self, kind: SubscriptionKind, channel: &[u8], message: &[u8]) -> usize {
        let word: &[u8] = if kind == SubscriptionKind::Shard { b"smessage" } else { b"message" };
        let mut receivers: Vec<SessionId> = self.pubsub.subscribers(kind, channel).to_vec();
        for &id in &receivers {
            self.deliver(id, channel, |out| {
                out.push(3);
                out.bulk(word);
                out.bulk(channel);
                out.bulk(message);
            });
        }
        if kind == SubscriptionKind::Shard || self.pubsub.patterns.is_empty() {
            return receivers.len();
        }
        let matching: Vec<(Box<[u8]>, Vec<SessionId>)> = (self.pubsub.patterns.iter())
            .filter(|(pattern, _)| glob::matches(pattern, channel, false))
            .map(|(pattern, subscribers)| (pattern.clone(), subscribers.clone()))
            .collect();
        for (pattern, subscribers) in matching {
            for &id in &subscribers {
                self.deliver(id, channel, |out| {
                    out.push(4);
                    out.bulk(b"pmessage");
                    out.bulk(&pattern);
                    out.bulk(channel);
                    out.bulk(message);
                });
            }
            receivers.extend(subscribers);
        }
        receivers.len()
    }

    /// Delivers a message to one subscriber, as far as the stages permit.
    pub(super) fn deliver(&mut self, id: SessionId, channel: &[u8], write: impl Fn(&mut Reply)) {
        if !self.interest.pushes {
            return self.push_to(id, write);
        }
        let session = &self.sessions[id];
        let (conn, now_ms) = (self.conn(id), self.store.now.mono_ms());
        let push = Push { conn, client_name: &session.name, event: self.event, now_ms, channel };
        match self.stages.push(&push) {
            PushFate::Deliver(times) => (0..times).for_each(|_| self.push_to(id, &write)),
            PushFate::Hold(ticket) => {
                // A message to the publisher itself enters the stream at once; the reply follows it.
                let session = &mut self.sessions[id];
                session.output.hold(ticket);
                session.output.append(write);
                self.sessions.mark_dirty(id);
            }
        }
    }

    /// Writes an out-of-band message to a client. The client whose command is running gets it after its reply.
    pub fn push_to(&mut self, id: SessionId, write: impl FnOnce(&mut Reply)) {
        let is_caller = self.executing == Some(id);
        let session = &mut self.sessions[id];
        if is_caller {
            let mut push = Reply::new(session.protocol(), self.config.version);
            write(&mut push);
            session.output.append_own(push.as_bytes());
        } else {
            session.output.append(write);
            self.sessions.mark_dirty(id);
            self.limit_output(id);
        }
    }
}
