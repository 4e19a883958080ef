//! The value of a stream: nodes with entries in the order of their ids, and the consumer groups that read them.
//!
//! A node is a listpack with the same bytes as in Redis (see [`node`]), so that a stream needs as little memory, trims at the
//! same borders and is dumped as it is.

pub mod group;
pub mod id;
pub mod node;
pub mod producers;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Range;

pub use group::{Consumer, Group, Pending};
pub use id::{StreamId, WrittenId};
pub use node::{Entry, Node};
pub use producers::Producers;

use super::Limits;
use crate::version::Version;

/// The memory of a node besides its listpack, and of a pending entry, in bytes: keys and values of maps that are two thirds
/// full.
const NODE_BYTES: usize = 60;
const PENDING_BYTES: usize = 144;

/// A stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The nodes, by the ids of their first entries.
    nodes: BTreeMap<StreamId, Node>,
    len: usize,
    /// The largest id that was ever added.
    pub last_id: StreamId,
    /// The id of the first entry; 0-0 if there is none.
    pub first_id: StreamId,
    /// The largest id that XDEL has deleted.
    pub max_deleted_id: StreamId,
    /// The number of entries that were ever added.
    pub entries_added: u64,
    pub groups: BTreeMap<Box<[u8]>, Group>,
    pub producers: Producers,
}

/// Which entries a trim removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// The oldest, until this many are left.
    MaxLen(u64),
    /// Those with smaller ids.
    MinId(StreamId),
}

/// What a deletion does with the deliveries of an entry to groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// They stay.
    #[default]
    Keep,
    /// They are deleted too.
    Delete,
    /// Only entries without any are deleted: those that all groups have read and acknowledged.
    Respect,
}

/// A trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    pub threshold: Threshold,
    /// Whether only whole nodes are removed.
    pub is_approximate: bool,
    /// The most entries to remove; 0 means no limit.
    pub limit: u64,
    pub references: References,
}

impl Stream {
    /// Creates a stream without entries.
    pub fn new(limits: &Limits) -> Stream {
        Stream {
            nodes: BTreeMap::new(),
            len: 0,
            last_id: StreamId::MIN,
            first_id: StreamId::MIN,
            max_deleted_id: StreamId::MIN,
            entries_added: 0,
            groups: BTreeMap::new(),
            producers: Producers::new(limits),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries. A stream without entries stays a key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the nodes with the ids of their first entries.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (StreamId, &Node)> {
        self.nodes.iter().map(|(&id, node)| (id, node))
    }

    /// Appends an entry, whose id must be greater than `last_id`; `fields` has fields and values in turn. Begins a new node where
    /// Redis does.
    pub fn append(&mut self, id: StreamId, fields: &[&[u8]], limits: &Limits) {
        let bytes: usize = fields.iter().map(|part| part.len()).sum();
        if let Some(mut last) = self.nodes.last_entry() {
            let is_full = is_full(last.get(), bytes, limits);
            if is_full {
                last.get_mut().shrink();
            } else {
                let first = *last.key();
                last.get_mut().append(first, id, fields);
                return self.count_appended(id);
            }
        }
        let mut node = Node::new(fields);
        node.append(id, id, fields);
        self.nodes.insert(id, node);
        self.count_appended(id);
    }

    fn count_appended(&mut self, id: StreamId) {
        self.entries_added = self.entries_added.wrapping_add(1);
        if self.len == 0 {
            self.first_id = id;
        }
        self.len += 1;
        self.last_id = id;
    }

    /// Returns the entries from `start` to `end`, both included, in the order of their ids.
    pub fn range(&self, start: StreamId, end: StreamId) -> Entries<'_> {
        let first = self.nodes.range(..=start).next_back().map_or(start, |(&id, _)| id);
        // A map panics if the start of a range is greater than its end.
        let nodes = self.nodes.range(first.min(end)..=end);
        Entries { nodes, node: None, start, end, is_reverse: false }
    }

    /// Returns the entries from `end` back to `start`, both included.
    pub fn range_back(&self, start: StreamId, end: StreamId) -> Entries<'_> {
        Entries { is_reverse: true, ..self.range(start, end) }
    }

    /// Returns the entry with this id.
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// Returns the id of the last entry; 0-0 if there is none.
    pub fn last_live_id(&self) -> StreamId {
        self.range_back(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id)
    }

    /// Deletes an entry. Returns whether it was there. The caller updates `max_deleted_id`.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some((&first, node)) = self.nodes.range_mut(..=id).next_back() else { return false };
        let is_last = node.counts().0 == 1;
        if !node.delete(first, id) {
            return false;
        }
        if is_last {
            self.nodes.remove(&first);
        }
        self.len = self.len.saturating_sub(1);
        if self.len == 0 || id == self.first_id {
            self.find_first_id();
        }
        true
    }

    /// Sets the nodes of a stream that is being loaded.
    pub(super) fn set_nodes(&mut self, nodes: BTreeMap<StreamId, Node>) {
        self.len = nodes.values().map(|node| node.counts().0).sum();
        self.nodes = nodes;
    }

    /// Sets `first_id` from the entries.
    pub(super) fn find_first_id(&mut self) {
        let first = self.range(StreamId::MIN, StreamId::MAX).next();
        self.first_id = first.filter(|_| self.len > 0).map_or(StreamId::MIN, |entry| entry.id);
    }

    /// Returns whether a group has not read an entry yet, or has not acknowledged it. The entry itself may be gone.
    pub fn is_referenced(&self, id: StreamId) -> bool {
        self.groups.values().any(|group| group.awaits(id))
    }

    /// Deletes the deliveries of an entry to all groups. Returns whether there were any.
    pub fn delete_references(&mut self, id: StreamId) -> bool {
        self.groups.values_mut().filter_map(|group| group.acknowledge(id).then_some(())).count() > 0
    }

    /// Removes the oldest entries. Returns how many were removed.
    pub fn trim(&mut self, trim: &Trim) -> u64 {
        let removed = match trim.references {
            References::Keep => self.trim_keeping_references(trim),
            References::Delete | References::Respect => self.trim_with_references(trim),
        };
        if removed > 0 {
            self.find_first_id();
        }
        removed
    }

    /// Removes the oldest entries. As in Redis, a node stays whose last live entry is trimmed while deleted entries behind it are
    /// not.
    fn trim_keeping_references(&mut self, trim: &Trim) -> u64 {
        let mut removed = 0;
        while let Some(mut first) = self.nodes.first_entry() {
            let (id, entries) = (*first.key(), first.get().counts().0);
            let len = self.len as u64;
            if matches!(trim.threshold, Threshold::MaxLen(most) if len <= most) {
                break;
            }
            if trim.limit > 0 && removed + entries as u64 > trim.limit {
                break;
            }
            let is_whole = match trim.threshold {
                Threshold::MaxLen(most) => len.saturating_sub(entries as u64) >= most,
                Threshold::MinId(least) => first.get().last_id(id).is_none_or(|last| last < least),
            };
            if is_whole {
                first.remove();
                self.len = self.len.saturating_sub(entries);
                removed += entries as u64;
                continue;
            }
            if !trim.is_approximate {
                let mut left = len;
                first.get_mut().delete_where(id, |id| {
                    let is_wanted = match trim.threshold {
                        Threshold::MaxLen(most) => left > most,
                        Threshold::MinId(least) => id < least,
                    };
                    left -= is_wanted as u64;
                    is_wanted.then_some(true)
                });
                removed += len - left;
                self.len = left as usize;
            }
            break;
        }
        removed
    }

    /// Removes the oldest entries one by one, whole nodes or not. Entries that groups wait for stay, or lose their deliveries.
    fn trim_with_references(&mut self, trim: &Trim) -> u64 {
        let (mut removed, mut deleted, mut at) = (0, Vec::new(), StreamId::MIN);
        while let Some((&first, node)) = self.nodes.range_mut(at..).next() {
            let entries = node.counts().0;
            let is_done = matches!(trim.threshold, Threshold::MaxLen(most) if self.len as u64 <= most);
            if is_done || trim.limit > 0 && removed + entries as u64 > trim.limit {
                break;
            }
            let (groups, mut left) = (&self.groups, self.len as u64);
            let before = deleted.len();
            let is_whole = node.delete_where(first, |id| {
                let is_reached = match trim.threshold {
                    Threshold::MaxLen(most) => left <= most,
                    Threshold::MinId(least) => id >= least,
                };
                if is_reached {
                    return None;
                }
                let is_kept =
                    trim.references == References::Respect && groups.values().any(|group| group.awaits(id));
                if !is_kept {
                    left -= 1;
                    deleted.push(id);
                }
                Some(!is_kept)
            });
            let count = deleted.len() - before;
            if node.counts().0 == 0 {
                self.nodes.remove(&first);
            }
            self.len = self.len.saturating_sub(count);
            removed += count as u64;
            let Some(next) = first.next().filter(|_| is_whole) else { break };
            at = next;
        }
        if trim.references == References::Delete {
            deleted.iter().for_each(|&id| _ = self.delete_references(id));
        }
        removed
    }

    /// Returns whether the stream's largest deleted id is at or after `start`, so that a count of entries from there may be
    /// wrong (`streamRangeHasTombstones` of Redis).
    pub fn has_tombstone_from(&self, start: StreamId) -> bool {
        self.len > 0 && self.first_id <= self.max_deleted_id && start <= self.max_deleted_id
    }

    /// Returns how many entries were ever added up to `id`, if that can be told (`streamEstimateDistanceFromFirstEverEntry` of
    /// Redis).
    pub fn entries_up_to(&self, id: StreamId, version: Version) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.len == 0 && id < self.last_id {
            return Some(self.entries_added);
        }
        if version.is_valkey() && id != StreamId::MIN && id < self.max_deleted_id {
            return None;
        }
        match id.cmp(&self.last_id) {
            Ordering::Equal => return Some(self.entries_added),
            Ordering::Greater => return None,
            Ordering::Less => {}
        }
        // Nothing was deleted behind the first entry.
        let is_whole = self.max_deleted_id == StreamId::MIN || self.max_deleted_id < self.first_id;
        let before_first = self.entries_added.wrapping_sub(self.len as u64);
        match id.cmp(&self.first_id) {
            Ordering::Less if is_whole => Some(before_first),
            Ordering::Equal if is_whole => Some(before_first.wrapping_add(1)),
            _ => None,
        }
    }

    /// Notes that a group has read these entries, in ascending order.
    pub fn advance(&mut self, group: &[u8], ids: &[StreamId], version: Version) {
        // Later releases look for deleted entries from the last one read on, not from the new one. They do not believe the count of
        // a group that is before the first entry.
        let looks_back = version.is_valkey() || version >= Version::V8_0;
        let Some(before) = self.groups.get(group) else { return };
        let (mut last_id, mut entries_read) = (before.last_id, before.entries_read);
        for &id in ids.iter().filter(|id| **id > before.last_id) {
            let is_known = match looks_back {
                true => last_id >= self.first_id && !self.has_tombstone_from(last_id),
                false => !self.has_tombstone_from(id),
            };
            entries_read = match entries_read {
                Some(count) if is_known => Some(count.wrapping_add(1)),
                _ if self.entries_added > 0 => self.entries_up_to(id, version),
                unknown => unknown,
            };
            last_id = id;
        }
        if let Some(group) = self.groups.get_mut(group) {
            (group.last_id, group.entries_read) = (last_id, entries_read);
        }
    }

    /// Returns how many entries a group has not read yet, if that can be told.
    pub fn lag(&self, group: &Group, version: Version) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        // Since 8.0 a group that is before the first entry has all of them left to read if none behind it was deleted.
        let is_before = group.last_id < self.first_id && self.max_deleted_id < self.first_id;
        if version >= Version::V8_0 && (self.is_empty() || is_before) {
            return Some(self.len as i64);
        }
        let read = match group.entries_read {
            Some(count) if !self.has_tombstone_from(group.last_id) => count,
            _ => self.entries_up_to(group.last_id, version)?,
        };
        Some(self.entries_added.wrapping_sub(read) as i64)
    }

    /// Returns the memory of a stream, in bytes, as Redis estimates it: nodes and what is pending, each in a radix tree.
    pub fn memory_bytes(&self) -> usize {
        const GROUP: usize = 64;
        const CONSUMER: usize = 48;
        let listpacks: usize = self.nodes.values().map(Node::capacity).sum();
        let groups = self.groups.values().map(|group| {
            let names: usize = group.consumers().map(|consumer| consumer.name.len() + CONSUMER).sum();
            GROUP + names + group.pending_len() * PENDING_BYTES
        });
        let producers = self.producers.memory_bytes();
        size_of::<Stream>() + listpacks + self.nodes.len() * NODE_BYTES + groups.sum::<usize>() + producers
    }

    /// Returns the number of entries and of what is pending in all groups.
    pub fn parts(&self) -> usize {
        self.len + self.groups.values().map(Group::pending_len).sum::<usize>()
    }

    /// Asserts that the counts agree with the nodes and the groups.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(&self) {
        let live: usize = self.nodes.values().map(|node| node.counts().0).sum();
        assert_eq!(self.len, live, "the length of a stream is not that of its nodes");
        self.groups.values().for_each(Group::check);
        self.producers.check();
    }

    /// Returns the number of nodes of the radix tree in which Redis keeps the nodes of a stream: a node for each key, each
    /// branch and each run of bytes between them.
    pub fn radix_tree_nodes(&self) -> usize {
        radix_tree_nodes(self.nodes.keys().copied())
    }
}

/// Returns whether an entry with `bytes` of fields and values begins a new node.
fn is_full(node: &Node, bytes: usize, limits: &Limits) -> bool {
    let max_bytes = match limits.stream_node_max_bytes {
        0 => node::MAX_BYTES,
        most => most.min(node::MAX_BYTES),
    };
    let (count, deleted) = node.counts();
    let max_entries = limits.stream_node_max_entries;
    node.bytes().len() + bytes >= max_bytes || max_entries > 0 && (count + deleted) as u64 >= max_entries
}

/// Returns the number of nodes of a radix tree with these keys, in ascending order. Each key of 16 bytes ends in a node
/// without children. Keys that share bytes share the nodes up to where they branch.
pub fn radix_tree_nodes(keys: impl Iterator<Item = StreamId>) -> usize {
    const KEY_BYTES: usize = 16;
    let shared = |a: StreamId, b: StreamId| {
        let (a, b) = (u128::from_be_bytes(a.to_bytes()), u128::from_be_bytes(b.to_bytes()));
        ((a ^ b).leading_zeros() / 8) as usize
    };
    // The depths at which the path to the latest key branches, in ascending order.
    let mut branches: Vec<usize> = Vec::new();
    let (mut nodes, mut last) = (0, None::<StreamId>);
    // Counts the run of bytes from `from` to `to`, if there is one.
    let run = |from: usize, to: usize| (to > from) as usize;
    for key in keys {
        // Each key has its final node.
        nodes += 1;
        if let Some(last) = last {
            let depth = shared(last, key);
            // Branches below the new one are complete; the run above the last of them is counted with its branch.
            let mut below = KEY_BYTES;
            while let Some(branch) = branches.pop_if(|branch| *branch > depth) {
                nodes += 1 + run(branch + 1, below);
                below = branch;
            }
            nodes += run(depth + 1, below);
            if branches.last() != Some(&depth) {
                branches.push(depth);
            }
        }
        last = Some(key);
    }
    let mut below = KEY_BYTES;
    while let Some(branch) = branches.pop() {
        nodes += 1 + run(branch + 1, below);
        below = branch;
    }
    // The run from the root; without keys, the root alone.
    if last.is_some() { nodes + run(0, below) } else { 1 }
}

/// The entries of a range that are not deleted.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    nodes: Range<'a, StreamId, Node>,
    node: Option<node::Entries<'a>>,
    start: StreamId,
    end: StreamId,
    is_reverse: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let reverse = self.is_reverse;
            let entry = match &mut self.node {
                Some(node) if reverse => node.next_back(),
                Some(node) => node.next(),
                None => None,
            };
            let Some(entry) = entry else {
                let next = if reverse { self.nodes.next_back() } else { self.nodes.next() };
                let (&first, node) = next?;
                let mut entries = node.entries(first);
                if !reverse && first < self.start {
                    entries.skip_to(self.start);
                }
                self.node = Some(entries);
                continue;
            };
            if if reverse { entry.id < self.start } else { entry.id > self.end } {
                return None;
            }
            if !entry.is_deleted && (self.start..=self.end).contains(&entry.id) {
                return Some(entry);
            }
        }
    }
}
