//! Streams: their nodes as they are, then ids and counts, then the consumer groups with what is pending, then idempotent
//! producers.

use std::collections::BTreeMap;

use super::kinds;
use super::reader::Reader;
use super::writer::Writer;
use crate::store::stream::producers::{DURATION_S, MAX_SIZE};
use crate::store::stream::{Consumer, Group, Node, Pending, Producers, StreamId};
use crate::store::{Limits, Stream};
use crate::version::Version;

/// Writes a stream in the format of a release.
pub fn save(writer: &mut Writer, stream: &Stream, version: Version) {
    let kind = match version {
        version if version < Version::V7_2 => kinds::STREAM_LISTPACKS_2,
        version if version < Version::V8_6 => kinds::STREAM_LISTPACKS_3,
        _ => kinds::STREAM_LISTPACKS_4,
    };
    writer.byte(kind);
    writer.length(stream.nodes().len() as u64);
    for (first, node) in stream.nodes() {
        writer.string(&first.to_bytes());
        writer.string(node.bytes());
    }
    writer.length(stream.len() as u64);
    for id in [stream.last_id, stream.first_id, stream.max_deleted_id] {
        save_id(writer, id);
    }
    writer.length(stream.entries_added);
    writer.length(stream.groups.len() as u64);
    for (name, group) in &stream.groups {
        writer.string(name);
        save_id(writer, group.last_id);
        writer.length(group.entries_read.unwrap_or(u64::MAX));
        writer.length(group.pending_len() as u64);
        for (id, pending) in group.pending_range(StreamId::MIN, StreamId::MAX) {
            writer.raw(&id.to_bytes());
            writer.raw(&pending.delivered_ms.to_le_bytes());
            writer.length(pending.deliveries);
        }
        writer.length(group.consumers().len() as u64);
        group.consumers().for_each(|consumer| save_consumer(writer, consumer, kind));
    }
    if kind >= kinds::STREAM_LISTPACKS_4 {
        save_producers(writer, &stream.producers);
    }
}

fn save_producers(writer: &mut Writer, producers: &Producers) {
    writer.length(producers.duration_s);
    writer.length(producers.max_size);
    writer.length(producers.iter().len() as u64);
    for (name, ids) in producers.iter() {
        writer.string(name);
        writer.length(ids.len() as u64);
        for (id, entry) in ids {
            writer.string(id);
            save_id(writer, entry);
        }
    }
    writer.length(producers.added);
    writer.length(producers.duplicates);
}

fn save_id(writer: &mut Writer, id: StreamId) {
    writer.length(id.ms);
    writer.length(id.seq);
}

fn save_consumer(writer: &mut Writer, consumer: &Consumer, kind: u8) {
    writer.string(&consumer.name);
    writer.raw(&consumer.seen_ms.to_le_bytes());
    if kind >= kinds::STREAM_LISTPACKS_3 {
        writer.raw(&consumer.active_ms.to_le_bytes());
    }
    writer.length(consumer.pending_len() as u64);
    consumer.pending(StreamId::MIN, StreamId::MAX).for_each(|id| writer.raw(&id.to_bytes()));
}

/// Reads a stream, or returns `None` if its parts contradict one another.
pub fn load(reader: &mut Reader, limits: &Limits, kind: u8) -> Option<Stream> {
    let mut stream = Stream::new(limits);
    let mut nodes = BTreeMap::new();
    for _ in 0..reader.length()? {
        let first = StreamId::from_bytes((*reader.string()?).try_into().ok()?);
        let node = Node::from_listpack(&reader.string()?)?;
        if nodes.insert(first, node).is_some() {
            return None;
        }
    }
    let len = usize::try_from(reader.length()?).ok()?;
    stream.last_id = load_id(reader)?;
    if kind >= kinds::STREAM_LISTPACKS_2 {
        stream.first_id = load_id(reader)?;
        stream.max_deleted_id = load_id(reader)?;
        stream.entries_added = reader.length()?;
        stream.set_nodes(nodes);
    } else {
        stream.entries_added = len as u64;
        stream.set_nodes(nodes);
        stream.find_first_id();
    }
    if stream.len() != len {
        return None;
    }
    for _ in 0..reader.length()? {
        let name: Box<[u8]> = reader.string()?.into();
        let group = load_group(reader, &stream, limits, kind)?;
        if stream.groups.insert(name, group).is_some() {
            return None;
        }
    }
    if kind >= kinds::STREAM_LISTPACKS_4 {
        load_producers(reader, &mut stream.producers)?;
    }
    Some(stream)
}

fn load_producers(reader: &mut Reader, producers: &mut Producers) -> Option<()> {
    let (duration_s, max_size) = (reader.length()?, reader.length()?);
    if !DURATION_S.contains(&duration_s) || !MAX_SIZE.contains(&max_size) {
        return None;
    }
    producers.configure(duration_s, max_size);
    for _ in 0..reader.length()? {
        let name = reader.string()?;
        for _ in 0..reader.length()? {
            let id = reader.string()?;
            if !producers.restore(&name, &id, load_id(reader)?) {
                return None;
            }
        }
    }
    producers.added = reader.length()?;
    producers.duplicates = reader.length()?;
    Some(())
}

fn load_id(reader: &mut Reader) -> Option<StreamId> {
    Some(StreamId { ms: reader.length()?, seq: reader.length()? })
}

fn load_group(reader: &mut Reader, stream: &Stream, limits: &Limits, kind: u8) -> Option<Group> {
    let last_id = load_id(reader)?;
    let entries_read = if kind >= kinds::STREAM_LISTPACKS_2 {
        Some(reader.length()?).filter(|&count| count != u64::MAX)
    } else {
        stream.entries_up_to(last_id, limits.version)
    };
    let mut group = Group::new(last_id, entries_read);
    let mut deliveries = BTreeMap::new();
    for _ in 0..reader.length()? {
        let id = StreamId::from_bytes(reader.array()?);
        let delivery = (i64::from_le_bytes(reader.array()?), reader.length()?);
        if deliveries.insert(id, delivery).is_some() {
            return None;
        }
    }
    for _ in 0..reader.length()? {
        let name = reader.string()?;
        if group.find(&name).is_some() {
            return None;
        }
        let seen_ms = i64::from_le_bytes(reader.array()?);
        let active_ms =
            if kind >= kinds::STREAM_LISTPACKS_3 { i64::from_le_bytes(reader.array()?) } else { seen_ms };
        let consumer = group.add_consumer(&name, seen_ms);
        group.consumer_mut(consumer).active_ms = active_ms;
        for _ in 0..reader.length()? {
            let id = StreamId::from_bytes(reader.array()?);
            let (delivered_ms, deliveries) = deliveries.remove(&id)?;
            group.deliver(id, Pending { consumer, delivered_ms, deliveries });
        }
    }
    // Every delivery has a consumer.
    deliveries.is_empty().then_some(group)
}
