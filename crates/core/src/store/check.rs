//! Checks the invariants of a store.

use super::db::due_ms;
use super::{Store, Timer, Value};
use crate::slots::SLOTS;

/// The check skips streams with more parts than this.
const MAX_STREAM_PARTS: usize = 256;

impl Store {
    /// Asserts that the databases agree with the timing wheel.
    ///
    /// # Panics
    /// If a key cannot be found, a value is empty, a count is wrong, or a timer is missing, late or left over.
    pub fn check(&self) {
        let mut timed = 0;
        for (index, db) in self.dbs.iter().enumerate() {
            let mut volatile = 0;
            for (slot, key, entry) in db.iter() {
                let name = key.escape_ascii();
                assert_eq!(db.find(key), Some(slot), "{name}: the index refers to another slot");
                assert!(!entry.value.is_empty(), "{name}: an empty value was not deleted");
                volatile += entry.expires_at_ms().is_some() as usize;
                // Large streams are skipped, so that the average cost of an event stays bounded.
                if let Value::Stream(stream) = &entry.value
                    && stream.parts() <= MAX_STREAM_PARTS
                {
                    stream.check();
                }
                let field_end_ms = match &entry.value {
                    Value::Hash(hash) => hash.next_expiry_ms(),
                    _ => None,
                };
                let end_ms = entry.expires_at_ms().into_iter().chain(field_end_ms).min();
                let timer = self.timers.get(self.timer(index, slot, entry));
                match (end_ms, timer) {
                    (None, None) => {}
                    (Some(end_ms), Some((deadline_ms, timer))) => {
                        assert_eq!(
                            deadline_ms,
                            due_ms(end_ms, self.now),
                            "{name}: the timer has a wrong deadline"
                        );
                        assert_eq!(
                            timer,
                            Timer::Key { db: index as u16, slot },
                            "{name}: the timer belongs to another key"
                        );
                        timed += 1;
                    }
                    // Active expiry was off when the timer fired.
                    (Some(_), None) => {
                        let has_ended =
                            entry.is_expired(self.now) || entry.value.has_expired_fields(self.now);
                        assert!(has_ended, "{name}: a timer is missing");
                    }
                    (None, Some(_)) => panic!("{name}: a timer is left over"),
                }
            }
            if let Some(slots) = db.hash_slots() {
                let indexed: usize = (0..SLOTS as u16).map(|slot| slots.count(slot)).sum();
                assert_eq!(indexed, db.len(), "database {index}: wrong number of keys in hash slots");
            }
            assert_eq!(db.volatile(), volatile, "database {index}: wrong number of keys with an expiry");
        }
        let of_keys = self.timers.iter().filter(|(_, timer)| matches!(timer, Timer::Key { .. })).count();
        assert_eq!(of_keys, timed, "the number of key timers differs from that of keys with a timer");
    }
}
