//! The state of a node as bytes in a canonical order, so that two runs can be compared.

use super::Node;
use super::session::SubscriptionKind;
use crate::image::Words;
use crate::store::stream::StreamId;
use crate::store::{Entry, Stream, Value};

impl Node {
    /// Feeds these to `sink`: keys with their values and expiries; libraries; subscriptions; each session's number, database,
    /// name, queue and whether it is blocked; the state of the random numbers; the count of writes; and what a sentinel knows. Excludes
    /// settings, cached scripts, watches and SIM.NODE states, whose effects show in the output.
    pub fn digest(&self, sink: &mut dyn FnMut(&[u8])) {
        for (index, db) in self.store.dbs.iter().enumerate() {
            let mut entries: Vec<(&[u8], &Entry)> = db.iter().map(|(_, key, entry)| (key, entry)).collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, entry) in entries {
                number(sink, index as i64);
                bytes(sink, key);
                number(sink, entry.expires_at_ms().unwrap_or(-1));
                digest_value(&entry.value, sink);
            }
        }
        self.functions.texts().for_each(|text| bytes(sink, text));
        for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard] {
            for name in self.pubsub.names(kind) {
                bytes(sink, name);
                self.pubsub.subscribers(kind, name).iter().for_each(|id| number(sink, id.number as i64));
            }
        }
        for session in self.sessions.iter() {
            number(sink, session.id.number as i64);
            number(sink, session.db as i64);
            bytes(sink, &session.name);
            number(sink, session.multi.as_ref().map_or(-1, |multi| multi.commands.len() as i64));
            number(sink, session.blocked.is_some() as i64);
        }
        if self.sentinel.is_some() {
            let mut lines = Vec::new();
            self.image_of_sentinel(&mut lines);
            lines.into_iter().flat_map(Words::finish).for_each(|word| bytes(sink, &word));
        }
        number(sink, self.rng.clone().next_u64() as i64);
        number(sink, self.dirty as i64);
        if let Some(cluster) = &self.cluster {
            cluster.digest(sink);
        }
    }
}

pub(super) fn digest_value(value: &Value, sink: &mut dyn FnMut(&[u8])) {
    bytes(sink, value.type_name().as_bytes());
    match value {
        Value::String(string) => bytes(sink, &string.to_vec()),
        Value::List(list) => list.iter().for_each(|element| bytes(sink, element)),
        Value::Set(set) => set.iter().for_each(|member| bytes(sink, &member.to_vec())),
        Value::SortedSet(set) => set.iter().for_each(|(member, score)| {
            bytes(sink, member);
            number(sink, score.to_bits() as i64);
        }),
        Value::Stream(stream) => digest_stream(stream, sink),
        Value::Hash(hash) => hash.iter().for_each(|field| {
            bytes(sink, field.name);
            bytes(sink, field.value);
            number(sink, field.expires_at_ms.unwrap_or(-1));
        }),
    }
}

/// Feeds the nodes as they are, and the groups; times of consumers too, because replies show them.
fn digest_stream(stream: &Stream, sink: &mut dyn FnMut(&[u8])) {
    for (first, node) in stream.nodes() {
        sink(&first.to_bytes());
        bytes(sink, node.bytes());
    }
    for id in [stream.last_id, stream.first_id, stream.max_deleted_id] {
        sink(&id.to_bytes());
    }
    number(sink, stream.entries_added as i64);
    for (name, group) in &stream.groups {
        bytes(sink, name);
        sink(&group.last_id.to_bytes());
        number(sink, group.entries_read.map_or(-1, |count| count as i64));
        for consumer in group.consumers() {
            bytes(sink, &consumer.name);
            number(sink, consumer.seen_ms);
            number(sink, consumer.active_ms);
        }
        for (id, pending) in group.pending_range(StreamId::MIN, StreamId::MAX) {
            sink(&id.to_bytes());
            bytes(sink, &group.consumer(pending.consumer).name);
            number(sink, pending.delivered_ms);
            number(sink, pending.deliveries as i64);
        }
    }
    let producers = &stream.producers;
    for count in [producers.duration_s, producers.max_size, producers.added, producers.duplicates] {
        number(sink, count as i64);
    }
    for (name, ids) in producers.iter() {
        bytes(sink, name);
        for (id, entry) in ids {
            bytes(sink, id);
            sink(&entry.to_bytes());
        }
    }
}

/// Feeds the length, then the bytes, so that different sequences cannot produce the same stream.
fn bytes(sink: &mut dyn FnMut(&[u8]), bytes: &[u8]) {
    number(sink, bytes.len() as i64);
    sink(bytes);
}

fn number(sink: &mut dyn FnMut(&[u8]), number: i64) {
    sink(&number.to_le_bytes());
}
