//! Notices data that a command changed without telling anybody. Debug builds only.
//!
//! Whoever changes a key has to say so with [`Ctx::touched`](crate::commands::ctx::Ctx::touched), which breaks watches, publishes the
//! keyspace event and sends the change to replicas. What a handler looks up in order to change it is noted here with a
//! fingerprint; at the end of the event the key was announced or has the same fingerprint.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use super::Node;
use super::digest::digest_value;
use crate::store::Store;

type Place = (usize, Box<[u8]>);

/// What the present event has looked up to change, and what it has announced.
#[derive(Default)]
pub(crate) struct Announced {
    /// The fingerprint that a key had when it was looked up first.
    edited: BTreeMap<Place, Option<u64>>,
    announced: BTreeSet<Place>,
}

/// Values with more bytes than this are left out, so that an edit stays cheap.
const MAX_BYTES: usize = 4096;

/// A hash over the value and the expiry of a key; `None` if there is none. The outer `None`: the value is too large.
fn fingerprint(store: &Store, db: usize, key: &[u8]) -> Option<Option<u64>> {
    let data = &store.dbs[db];
    let Some(entry) = data.find(key).and_then(|slot| data.entry(slot)) else { return Some(None) };
    let mut hasher = FixedState::default().build_hasher();
    let mut len = 0;
    hasher.write_i64(entry.expires_at_ms().unwrap_or(-1));
    digest_value(&entry.value, &mut |bytes| {
        len += bytes.len();
        if len <= MAX_BYTES {
            hasher.write(bytes);
        }
    });
    (len <= MAX_BYTES).then(|| Some(hasher.finish()))
}

impl Node {
    /// A handler has looked up a key to change it.
    pub(crate) fn note_edit(&mut self, db: usize, key: &[u8]) {
        let place = (db, key.into());
        if !self.announced.edited.contains_key(&place)
            && let Some(before) = fingerprint(&self.store, db, key)
        {
            self.announced.edited.insert(place, before);
        }
    }

    pub(super) fn note_announced(&mut self, db: usize, key: &[u8]) {
        self.announced.announced.insert((db, key.into()));
    }

    /// A whole database was emptied or exchanged, which is announced as one.
    pub(super) fn note_db_announced(&mut self, db: usize) {
        self.announced.edited.retain(|place, _| place.0 != db);
    }

    /// Asserts that the present event has announced what it changed.
    pub(super) fn check_announced(&self) {
        for (place, before) in &self.announced.edited {
            let (db, key) = place;
            let is_known = self.announced.announced.contains(place);
            let is_same = || fingerprint(&self.store, *db, key).is_none_or(|now| now == *before);
            assert!(is_known || is_same(), "{}: changed without a word", key.escape_ascii());
        }
    }

    /// Another event begins.
    pub(crate) fn forget_announced(&mut self) {
        self.announced = Announced::default();
    }
}
