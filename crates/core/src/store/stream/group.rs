//! Consumer groups: how far a group has read, and which entries its consumers have not acknowledged yet.

use std::collections::{BTreeMap, BTreeSet};

use super::id::StreamId;

/// A number that names a consumer within its group.
pub type ConsumerId = u32;

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The last id that was delivered.
    pub last_id: StreamId,
    /// How many entries the group has read, as far as that is known.
    pub entries_read: Option<u64>,
    /// The entries that were delivered and not acknowledged, in the order of their ids.
    pending: BTreeMap<StreamId, Delivery>,
    /// The same by the times of their last deliveries, and by their turns among those of a ms.
    by_time: BTreeMap<(i64, u64), StreamId>,
    next_turn: u64,
    names: BTreeMap<Box<[u8]>, ConsumerId>,
    /// The consumers by their numbers; the numbers of deleted ones are used again.
    consumers: Vec<Option<Consumer>>,
    free: Vec<ConsumerId>,
}

/// The delivery of an entry that was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub consumer: ConsumerId,
    /// Unix time in ms of the last delivery.
    pub delivered_ms: i64,
    pub deliveries: u64,
}

/// A pending entry with its place in `by_time`.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    pending: Pending,
    turn: u64,
}

/// A consumer.
#[derive(Clone, Debug)]
pub struct Consumer {
    pub name: Box<[u8]>,
    /// Unix time in ms of its last attempt to read.
    pub seen_ms: i64,
    /// Unix time in ms of its last successful one; −1 if there was none.
    pub active_ms: i64,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Returns the ids of its pending entries from `start` to `end`.
    pub fn pending(&self, start: StreamId, end: StreamId) -> impl Iterator<Item = StreamId> {
        let range = self.pending.range(start.min(end)..=end);
        range.copied().filter(move |id| *id >= start)
    }

    /// Returns the number of its pending entries.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }
}

impl Group {
    /// Creates a group that has read up to `last_id`.
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// Returns the consumers in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.names.values().map(|&id| self.consumer(id))
    }

    /// Returns the number of a consumer.
    pub fn find(&self, name: &[u8]) -> Option<ConsumerId> {
        self.names.get(name).copied()
    }

    /// Returns a consumer.
    ///
    /// # Panics
    /// If there is none with this number.
    pub fn consumer(&self, id: ConsumerId) -> &Consumer {
        self.consumers[id as usize].as_ref().expect("the number of a consumer of this group")
    }

    /// Returns a consumer, for changes.
    ///
    /// # Panics
    /// If there is none with this number.
    pub fn consumer_mut(&mut self, id: ConsumerId) -> &mut Consumer {
        self.consumers[id as usize].as_mut().expect("the number of a consumer of this group")
    }

    /// Adds a consumer, whose name must be new.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: i64) -> ConsumerId {
        let consumer =
            Consumer { name: name.into(), seen_ms: now_ms, active_ms: -1, pending: BTreeSet::new() };
        let id = self.free.pop().unwrap_or_else(|| {
            self.consumers.push(None);
            self.consumers.len() as ConsumerId - 1
        });
        self.consumers[id as usize] = Some(consumer);
        self.names.insert(name.into(), id);
        id
    }

    /// Deletes a consumer with its pending entries. Returns how many it had, or `None` if there is no such consumer.
    pub fn delete_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let id = self.names.remove(name)?;
        let consumer = self.consumers[id as usize].take()?;
        self.free.push(id);
        for id in &consumer.pending {
            if let Some(Delivery { pending, turn }) = self.pending.remove(id) {
                self.by_time.remove(&(pending.delivered_ms, turn));
            }
        }
        Some(consumer.pending.len())
    }

    /// Returns the number of pending entries.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Returns the delivery of a pending entry.
    pub fn pending(&self, id: StreamId) -> Option<Pending> {
        self.pending.get(&id).map(|delivery| delivery.pending)
    }

    /// Returns the pending entries from `start` to `end`.
    pub fn pending_range(
        &self,
        start: StreamId,
        end: StreamId,
    ) -> impl DoubleEndedIterator<Item = (StreamId, &Pending)> {
        let range = self.pending.range(start.min(end)..=end);
        range.map(|(&id, delivery)| (id, &delivery.pending)).filter(move |(id, _)| *id >= start)
    }

    /// Returns the pending entries that were delivered at `until_ms` or before, those that wait longest first.
    pub fn pending_until(&self, until_ms: i64) -> impl Iterator<Item = StreamId> {
        self.by_time.range(..=(until_ms, u64::MAX)).map(|(_, &id)| id)
    }

    /// Returns whether the group has not read an entry yet, or has not acknowledged it.
    pub fn awaits(&self, id: StreamId) -> bool {
        id > self.last_id || self.pending.contains_key(&id)
    }

    /// Records a delivery, in place of an earlier one of the same entry.
    pub fn deliver(&mut self, id: StreamId, pending: Pending) {
        let turn = self.next_turn;
        self.next_turn += 1;
        let before = self.pending.insert(id, Delivery { pending, turn });
        self.by_time.insert((pending.delivered_ms, turn), id);
        if let Some(Delivery { pending: before, turn }) = before {
            self.by_time.remove(&(before.delivered_ms, turn));
            if before.consumer == pending.consumer {
                return;
            }
            self.consumer_mut(before.consumer).pending.remove(&id);
        }
        self.consumer_mut(pending.consumer).pending.insert(id);
    }

    /// Removes a pending entry, because it was acknowledged or is gone. Returns whether it was there.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(Delivery { pending, turn }) = self.pending.remove(&id) else { return false };
        self.by_time.remove(&(pending.delivered_ms, turn));
        self.consumer_mut(pending.consumer).pending.remove(&id)
    }

    /// Asserts that the group and its consumers agree on what is pending.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(&self) {
        let of_consumers: usize = self.consumers().map(Consumer::pending_len).sum();
        assert_eq!(of_consumers, self.pending.len(), "a pending entry has no consumer, or two");
        assert_eq!(self.by_time.len(), self.pending.len(), "a pending entry has no time, or two");
        for (id, Delivery { pending, turn }) in &self.pending {
            assert_eq!(
                self.by_time.get(&(pending.delivered_ms, *turn)),
                Some(id),
                "the time of a pending entry"
            );
            let has_it = self.consumer(pending.consumer).pending.contains(id);
            assert!(has_it, "a consumer does not know of its pending entry {}-{}", id.ms, id.seq);
        }
        let consumers = self.consumers.iter().flatten().count();
        assert_eq!(consumers, self.names.len(), "a consumer has no name, or two");
    }
}
