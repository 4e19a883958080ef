//! Idempotent producers: which ids of requests (`IDMP`) a stream has seen lately, so that a request that comes again adds no
//! second entry.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use super::id::StreamId;
use crate::store::Limits;

/// How long an id may be remembered, in seconds.
pub const DURATION_S: RangeInclusive<u64> = 1..=86_400;
/// How many ids of a producer may be remembered.
pub const MAX_SIZE: RangeInclusive<u64> = 1..=10_000;

/// How long Redis waits between two looks for ids that are to be forgotten, in ms.
const PERIOD_MS: u64 = 1000;

/// The producers of a stream.
#[derive(Clone, Debug)]
pub struct Producers {
    /// How long an id is remembered, in seconds.
    pub duration_s: u64,
    /// The most ids of a producer that are remembered.
    pub max_size: u64,
    /// The number of ids that were ever remembered.
    pub added: u64,
    /// The number of requests that came again.
    pub duplicates: u64,
    by_name: BTreeMap<Box<[u8]>, Producer>,
}

/// The ids that a producer used, and the entries they led to.
#[derive(Clone, Debug, Default)]
struct Producer {
    entries: BTreeMap<Box<[u8]>, StreamId>,
    /// The ids in the order in which they came, with the Unix time in ms from which they are forgotten.
    order: VecDeque<(Box<[u8]>, u64)>,
}

impl Producer {
    /// Returns how many of the oldest ids are forgotten by now.
    fn forgotten(&self, now_ms: u64) -> usize {
        self.order.iter().take_while(|(_, until_ms)| *until_ms <= now_ms).count()
    }

    fn forget_oldest(&mut self, count: usize) {
        for (id, _) in self.order.drain(..count) {
            self.entries.remove(&id);
        }
    }
}

impl Producers {
    /// Returns a stream's producers before the first one, with the settings of the server.
    pub fn new(limits: &Limits) -> Producers {
        let Limits { stream_idmp_duration: duration_s, stream_idmp_maxsize: max_size, .. } = *limits;
        Producers { duration_s, max_size, added: 0, duplicates: 0, by_name: BTreeMap::new() }
    }

    /// Sets the limits. Other limits than before make the stream forget all ids. Returns whether they are others.
    pub fn configure(&mut self, duration_s: u64, max_size: u64) -> bool {
        let changes = (duration_s, max_size) != (self.duration_s, self.max_size);
        if changes {
            (self.duration_s, self.max_size) = (duration_s, max_size);
            self.by_name.clear();
        }
        changes
    }

    /// Returns the entry to which a producer's id led.
    pub fn find(&self, producer: &[u8], id: &[u8], now_ms: i64) -> Option<StreamId> {
        let producer = self.by_name.get(producer)?;
        let forgotten = producer.forgotten(now_ms.max(0) as u64);
        let is_forgotten = producer.order.range(..forgotten).any(|(old, _)| **old == *id);
        producer.entries.get(id).copied().filter(|_| !is_forgotten)
    }

    /// Remembers a producer's id, which must be new, and the entry to which it led.
    pub fn remember(&mut self, producer: &[u8], id: &[u8], entry: StreamId, now_ms: i64) {
        let now_ms = now_ms.max(0) as u64;
        self.by_name.retain(|_, known| {
            known.forget_oldest(known.forgotten(now_ms));
            !known.order.is_empty()
        });
        // Redis looks once a second; an id is there until the next look even if its time has passed.
        let until_ms = entry.ms.saturating_add(self.duration_s.saturating_mul(1000)).max(now_ms + 1);
        let until_ms = until_ms.checked_next_multiple_of(PERIOD_MS).unwrap_or(u64::MAX);
        if let Some(known) =
            self.by_name.get_mut(producer).filter(|known| known.order.len() as u64 >= self.max_size)
        {
            known.forget_oldest(1);
        }
        self.load(producer, id, entry, until_ms);
        self.added = self.added.wrapping_add(1);
    }

    /// Adds an id that is forgotten at `until_ms`.
    fn load(&mut self, producer: &[u8], id: &[u8], entry: StreamId, until_ms: u64) {
        let known = self.by_name.entry(producer.into()).or_default();
        known.entries.insert(id.into(), entry);
        known.order.push_back((id.into(), until_ms));
    }

    /// Adds an id from a serialized stream, which may have more than the limit. Returns false if the producer has it.
    pub fn restore(&mut self, producer: &[u8], id: &[u8], entry: StreamId) -> bool {
        let is_new = self.by_name.get(producer).is_none_or(|known| !known.entries.contains_key(id));
        if is_new {
            let until_ms = entry.ms.saturating_add(self.duration_s.saturating_mul(1000));
            self.load(producer, id, entry, until_ms);
        }
        is_new
    }

    /// Returns how many producers and ids are remembered.
    pub fn counts(&self, now_ms: i64) -> (usize, usize) {
        let ids =
            self.by_name.values().map(|known| known.order.len() - known.forgotten(now_ms.max(0) as u64));
        ids.filter(|ids| *ids > 0).fold((0, 0), |(producers, all), ids| (producers + 1, all + ids))
    }

    /// Returns the producers in the order of their names, with their ids in the order in which they came, whether
    /// these are forgotten by now or not.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (&[u8], impl ExactSizeIterator<Item = (&[u8], StreamId)>)> {
        self.by_name
            .iter()
            .map(|(name, known)| (&**name, known.order.iter().map(|(id, _)| (&**id, known.entries[id]))))
    }

    /// Returns the memory of the ids, in bytes.
    pub fn memory_bytes(&self) -> usize {
        const PRODUCER: usize = 96;
        const ID: usize = 96;
        let producers = self.by_name.iter();
        producers.map(|(name, known)| PRODUCER + name.len() + known.order.len() * ID).sum()
    }

    /// Asserts that the entries and their order agree.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(&self) {
        for known in self.by_name.values() {
            assert_eq!(known.entries.len(), known.order.len(), "an id of a producer has no place, or two");
            assert!(
                known.order.iter().all(|(id, _)| known.entries.contains_key(id)),
                "an id without its entry"
            );
        }
    }
}
