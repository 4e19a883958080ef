//! What follows a change of data: keyspace events, broken watches, and the removal of expired keys.

use super::Node;
use super::replication::Role;
use super::session::SubscriptionKind;
use crate::store::Value;

/// A set of classes of keyspace events, written as the letters of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(pub u16);

impl Class {
    pub const KEYSPACE: Class = Class(1 << 0);
    pub const KEYEVENT: Class = Class(1 << 1);
    pub const GENERIC: Class = Class(1 << 2);
    pub const STRING: Class = Class(1 << 3);
    pub const LIST: Class = Class(1 << 4);
    pub const SET: Class = Class(1 << 5);
    pub const HASH: Class = Class(1 << 6);
    pub const ZSET: Class = Class(1 << 7);
    pub const EXPIRED: Class = Class(1 << 8);
    pub const EVICTED: Class = Class(1 << 9);
    pub const STREAM: Class = Class(1 << 10);
    pub const KEY_MISS: Class = Class(1 << 11);
    pub const MODULE: Class = Class(1 << 12);
    pub const NEW: Class = Class(1 << 13);
    pub const OVERWRITTEN: Class = Class(1 << 14);
    pub const TYPE_CHANGED: Class = Class(1 << 15);

    /// The classes that came with 8.2.
    pub const SINCE_8_2: Class = Class(Class::OVERWRITTEN.0 | Class::TYPE_CHANGED.0);

    /// Every class except key misses, new keys and those of 8.2: the letter `A`.
    const ALL: u16 = 0b0001_0111_1111_1100;

    /// The classes that Redis does not print beside an `A`, although it does not contain them.
    const HIDDEN_BY_A: u16 = Class::ALL | Class::NEW.0 | Class::SINCE_8_2.0;

    /// The letters in the order Redis prints them.
    const LETTERS: [(u8, Class); 16] = [
        (b'g', Class::GENERIC),
        (b'$', Class::STRING),
        (b'l', Class::LIST),
        (b's', Class::SET),
        (b'h', Class::HASH),
        (b'z', Class::ZSET),
        (b'x', Class::EXPIRED),
        (b'e', Class::EVICTED),
        (b't', Class::STREAM),
        (b'd', Class::MODULE),
        (b'n', Class::NEW),
        (b'o', Class::OVERWRITTEN),
        (b'c', Class::TYPE_CHANGED),
        (b'K', Class::KEYSPACE),
        (b'E', Class::KEYEVENT),
        (b'm', Class::KEY_MISS),
    ];

    /// Parses the letters. Returns `None` if one is unknown.
    pub fn parse(letters: &[u8]) -> Option<Class> {
        let mut set = 0;
        for &letter in letters {
            set |= match letter {
                b'A' => Class::ALL,
                _ => Class::LETTERS.iter().find(|(known, _)| *known == letter)?.1.0,
            };
        }
        Some(Class(set))
    }

    /// Returns the letters of a set of classes, as CONFIG GET prints them.
    pub fn letters(self) -> String {
        let all = self.0 & Class::ALL == Class::ALL;
        let mut text = String::new();
        if all {
            text.push('A');
        }
        for (letter, class) in Class::LETTERS {
            if self.has(class) && !(all && Class::HIDDEN_BY_A & class.0 != 0) {
                text.push(letter as char);
            }
        }
        text
    }

    /// Returns whether the set contains any class of `class`.
    pub fn has(self, class: Class) -> bool {
        self.0 & class.0 != 0
    }
}

impl Node {
    /// Publishes a keyspace event if the configuration enables its class.
    pub fn notify(&mut self, class: Class, event: &str, db: usize, key: &[u8]) {
        let wanted = self.config.notify_keyspace_events;
        if !wanted.has(class) {
            return;
        }
        if wanted.has(Class::KEYSPACE) {
            let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
            self.publish(SubscriptionKind::Channel, &channel, event.as_bytes());
        }
        if wanted.has(Class::KEYEVENT) {
            let channel = format!("__keyevent@{db}__:{event}");
            self.publish(SubscriptionKind::Channel, channel.as_bytes(), key);
        }
    }

    /// Notes that a key has changed: breaks the watches on it and records it for the replicas. The insertion of a key
    /// signals the clients that are blocked on it.
    pub fn signal_modified(&mut self, db: usize, key: &[u8]) {
        if !self.watchers.is_empty() {
            self.break_watches(db, key);
        }
        // Clients that track no more may have read the key.
        if self.tracking.clients > 0 || self.tracking.has_readers() {
            self.invalidate(key);
        }
        self.signal_gone(db, key);
        self.note_changed(db, key);
    }

    /// Notes that a key has changed in a way that watches do not see: records it for the replicas.
    pub fn note_changed(&mut self, db: usize, key: &[u8]) {
        #[cfg(debug_assertions)]
        self.note_announced(db, key);
        self.note_weight(db, key);
        self.replication.note_key(db, key);
    }

    /// Announces a change of a key: signals watchers and replicas first, then publishes the keyspace event, then counts
    /// the changes.
    #[inline]
    pub fn announce(&mut self, db: usize, key: &[u8], class: Class, event: &str, changes: usize) {
        self.signal_modified(db, key);
        self.notify(class, event, db, key);
        self.dirty += changes as u64;
    }

    /// Removes an expired key.
    pub fn expire_key(&mut self, db: usize, slot: u32) {
        let Some(key) = self.store.dbs[db].key(slot).map(Box::<[u8]>::from) else { return };
        self.store.remove(db, slot);
        self.stats.expired_keys += 1;
        self.dirty += 1;
        self.notify(Class::EXPIRED, "expired", db, &key);
        self.signal_modified(db, &key);
    }

    /// Removes the key, or the hash fields, whose timer has fired.
    pub(super) fn key_timer_fired(&mut self, db: usize, slot: u32) {
        self.store.timer_fired(db, slot);
        if !self.may_expire() {
            return;
        }
        let now = self.store.now;
        let Some(entry) = self.store.dbs[db].entry_mut(slot) else { return };
        if entry.is_expired(now) {
            return self.expire_key(db, slot);
        }
        if let Value::Hash(hash) = &mut entry.value {
            let removed = hash.remove_expired(now.wall_ms());
            self.hash_fields_expired(db, slot, removed.len());
        }
        self.store.rearm(db, slot);
    }

    /// Removes hash fields that have expired, when a command accesses them while active expiry is suspended.
    pub fn expire_accessed_fields(&mut self, db: usize, key: &[u8], fields: &[&[u8]]) {
        if self.active_expire || !self.may_remove_expired() {
            return;
        }
        let now = self.store.now;
        for field in fields {
            let Some(slot) = self.store.dbs[db].find(key) else { return };
            let Some(entry) = self.store.dbs[db].entry_mut(slot) else { return };
            let Value::Hash(hash) = &mut entry.value else { return };
            if hash.field(field).is_some_and(|field| field.is_expired(now.wall_ms())) {
                hash.remove(field);
                self.hash_fields_expired(db, slot, 1);
            }
        }
    }

    /// Publishes the events for `removed` hash fields that have expired, and removes the hash if they were its last
    /// fields.
    fn hash_fields_expired(&mut self, db: usize, slot: u32, removed: usize) {
        if removed == 0 {
            return;
        }
        let Some(key) = self.store.dbs[db].key(slot).map(Box::<[u8]>::from) else { return };
        self.stats.expired_hash_fields += removed as u64;
        self.notify(Class::HASH, "hexpired", db, &key);
        let empty = matches!(
            self.store.dbs[db].entry(slot).map(|entry| &entry.value),
            Some(Value::Hash(hash)) if hash.is_empty()
        );
        if empty {
            self.store.remove(db, slot);
            self.notify(Class::GENERIC, "del", db, &key);
        }
        self.signal_modified(db, &key);
    }

    /// Returns whether expired keys are removed at present. DEBUG SET-ACTIVE-EXPIRE and CLIENT PAUSE suspend that.
    pub fn may_expire(&self) -> bool {
        self.active_expire && self.may_remove_expired()
    }

    /// Returns whether accessing an expired key removes it. CLIENT PAUSE suspends that, and a replica leaves it to its
    /// master.
    pub fn may_remove_expired(&self) -> bool {
        self.pause.is_none() && self.replication.role == Role::Master
    }

    /// Resumes active expiry: removes the keys that expired while it was suspended.
    pub fn resume_expiry(&mut self) {
        if !self.may_expire() {
            return;
        }
        for db in 0..self.store.dbs.len() {
            let now = self.store.now;
            let late: Vec<u32> = (self.store.dbs[db].iter())
                .filter(|(_, _, entry)| entry.is_expired(now) || entry.value.has_expired_fields(now))
                .map(|(slot, _, _)| slot)
                .collect();
            for slot in late {
                self.key_timer_fired(db, slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Class;

    #[test]
    fn classes_read_and_print_as_redis_does() {
        for (letters, printed) in [
            ("KEA", "AKE"),
            ("Ex", "xE"),
            ("KEg$lshzxetd", "AKE"),
            ("", ""),
            ("Knm", "nKm"),
            ("AKEn", "AKE"),
            ("AKEocm", "AKEm"),
            ("KEcon", "nocKE"),
        ] {
            let class = Class::parse(letters.as_bytes()).unwrap();
            assert_eq!(class.letters(), printed, "{letters}");
        }
        assert!(Class::parse(b"KEq").is_none());
    }
}
