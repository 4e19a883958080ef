//! Detects changes of data that a command did not announce. Debug builds only.
//!
//! Handlers change data through an [`Edit`](crate::commands::edit::Edit), whose finishing methods announce the change: they break
//! watches, publish the keyspace event and send the change to replicas. This check is the second line of defence: it records a
//! fingerprint of each key that a handler looks up to change it. At the end of the event, each of these keys was announced or
//! has the same fingerprint. So it also catches an edit that was finished as unchanged although the value changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use super::Node;
use super::digest::digest_value;
use crate::store::{Store, Value};

type Place = (usize, Box<[u8]>);

/// The keys that the present event has looked up to change them, and those that it has announced.
#[derive(Clone, Default)]
pub(crate) struct Announced {
    /// The fingerprint of each key at its first look-up in the event.
    edited: BTreeMap<Place, Option<u64>>,
    announced: BTreeSet<Place>,
}

/// The check skips values with more bytes than this, so that an edit stays cheap.
const MAX_BYTES: usize = 4096;

/// Returns a hash of a key's value and expiry, or `Some(None)` if there is no such key. `None`: the value is too large.
fn fingerprint(store: &Store, db: usize, key: &[u8]) -> Option<Option<u64>> {
    let data = &store.dbs[db];
    let Some(entry) = data.find(key).and_then(|slot| data.entry(slot)) else { return Some(None) };
    // A stream of that size is too long to be read at each event.
    if matches!(&entry.value, Value::Stream(stream) if stream.parts() > MAX_BYTES / 16) {
        return None;
    }
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
    /// Records that a handler has looked up a key to change it.
    pub(crate) fn note_edit(&mut self, db: usize, key: &[u8]) {
        let place = (db, key.into());
        if !self.announced.edited.contains_key(&place)
            && let Some(before) = fingerprint(&self.store, db, key)
        {
            self.announced.edited.insert(place, before);
        }
    }

    /// Records that a change of a key was announced.
    pub(crate) fn note_announced(&mut self, db: usize, key: &[u8]) {
        self.announced.announced.insert((db, key.into()));
    }

    /// Records that a whole database was emptied or swapped, which is announced as one change.
    pub(super) fn note_db_announced(&mut self, db: usize) {
        self.announced.edited.retain(|place, _| place.0 != db);
    }

    /// Asserts that the present event has announced what it changed.
    ///
    /// # Panics
    /// If it has not.
    pub(super) fn check_announced(&self) {
        for (place, before) in &self.announced.edited {
            let (db, key) = place;
            let is_known = self.announced.announced.contains(place);
            let is_same = || fingerprint(&self.store, *db, key).is_none_or(|now| now == *before);
            assert!(is_known || is_same(), "{}: changed without a word", key.escape_ascii());
        }
    }

    /// Forgets the keys of the last event, because another one begins.
    pub(crate) fn forget_announced(&mut self) {
        self.announced = Announced::default();
    }
}
