//! What a handler works with: its words, the client, the data, the reply.

use crate::commands::command::Command;
use crate::error::{self, Error};
use crate::long_double::LongDouble;
use crate::node::Node;
use crate::node::blocking::timeout_reply;
use crate::node::notify::Class;
use crate::node::session::{Session, SessionId, TimeoutReply, Wait};
use crate::num;
use crate::store::{Entry, Now, Value, ValueType};
use crate::version::Version;
use crate::wire::Reply;

/// Where a call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Client,
    /// EXEC runs a queued command.
    Exec,
    /// `redis.call` of a script.
    Script,
    /// A blocked request is tried again.
    Blocked,
}

/// The context of one call.
pub struct Ctx<'a> {
    pub node: &'a mut Node,
    pub id: SessionId,
    pub command: &'static Command,
    /// The words of the call; `argv[0]` is the name as the client wrote it.
    pub argv: &'a [&'a [u8]],
    pub reply: &'a mut Reply,
    pub origin: Origin,
    /// A request that was tried again has to go on waiting.
    pub waits_again: bool,
    /// The key that woke a blocked request.
    pub ready_key: Option<&'a [u8]>,
    db: usize,
    /// The client's commands do not count as a use of keys.
    no_touch: bool,
}

impl<'a> Ctx<'a> {
    pub fn new(
        node: &'a mut Node,
        id: SessionId,
        command: &'static Command,
        argv: &'a [&'a [u8]],
        reply: &'a mut Reply,
        origin: Origin,
    ) -> Ctx<'a> {
        let (db, no_touch) = {
            let session = &node.sessions[id];
            (session.db, session.no_touch)
        };
        Ctx { node, id, command, argv, reply, origin, waits_again: false, ready_key: None, db, no_touch }
    }

    pub fn version(&self) -> Version {
        self.node.config.version
    }

    pub fn now(&self) -> Now {
        self.node.store.now
    }

    /// The number of the selected database.
    pub fn db(&self) -> usize {
        self.db
    }

    /// Does something with another database selected.
    pub fn in_db<T>(&mut self, db: usize, act: impl FnOnce(&mut Ctx) -> T) -> T {
        let own = std::mem::replace(&mut self.db, db);
        let result = act(self);
        self.db = own;
        result
    }

    /// The client that calls, or whose script or transaction does.
    pub fn session(&mut self) -> &mut Session {
        &mut self.node.sessions[self.id]
    }

    /// The words from `index` on.
    pub fn words(&self, index: usize) -> Words<'a> {
        Words { rest: self.argv.get(index..).unwrap_or(&[]) }
    }

    pub fn int(&self, index: usize) -> Result<i64, Error> {
        num::parse_i64(self.argv[index]).ok_or(error::NOT_AN_INTEGER)
    }

    /// The number of a database at word `index`.
    pub fn db_index(&self, index: usize) -> Result<usize, Error> {
        let number = self.int(index)?;
        if i32::try_from(number).is_err() {
            return Err(error::out_of_range(i32::MIN.into(), i32::MAX.into()));
        }
        usize::try_from(number).ok().filter(|&db| db < self.node.store.dbs.len()).ok_or(error::BAD_DB)
    }

    pub fn float(&self, index: usize) -> Result<f64, Error> {
        num::parse_f64(self.argv[index]).ok_or(error::NOT_A_FLOAT)
    }

    // ---- data ----------------------------------------------------------------------------------------------------

    /// The slot of a key that is alive, for a command that reads. Counts the hit or miss and marks the key as used.
    pub fn find(&mut self, key: &[u8]) -> Option<u32> {
        let slot = self.peek(key)?;
        self.mark_used(slot);
        Some(slot)
    }

    /// [`find`](Self::find) that does not mark the key as used.
    pub fn peek(&mut self, key: &[u8]) -> Option<u32> {
        let slot = self.find_quietly(key);
        match slot {
            Some(_) => self.node.stats.keyspace_hits += 1,
            None => {
                self.node.stats.keyspace_misses += 1;
                self.node.notify(Class::KEY_MISS, "keymiss", self.db, key);
            }
        }
        slot
    }

    /// The slot of a key that is alive, for a command that writes.
    pub fn find_for_write(&mut self, key: &[u8]) -> Option<u32> {
        let slot = self.find_quietly(key)?;
        self.mark_used(slot);
        Some(slot)
    }

    /// The slot of a key that is alive; counts and marks nothing. A key found past its end is removed.
    pub fn find_quietly(&mut self, key: &[u8]) -> Option<u32> {
        let store = &self.node.store;
        let db = &store.dbs[self.db];
        let slot = db.find(key)?;
        if db.entry(slot)?.is_expired(store.now) {
            if self.node.may_remove_expired() {
                self.node.expire_key(self.db, slot);
            }
            return None;
        }
        Some(slot)
    }

    fn mark_used(&mut self, slot: u32) {
        let now_s = (self.node.store.now.mono_us / 1_000_000) as u32;
        let no_touch = self.no_touch && self.command.name != "touch";
        if let Some(entry) = self.node.store.dbs[self.db].entry_mut(slot)
            && !no_touch
        {
            entry.used_at_s = now_s;
        }
    }

    pub fn entry(&self, slot: u32) -> Option<&Entry> {
        self.node.store.dbs[self.db].entry(slot)
    }

    /// The value in a slot, whatever its type, for a command that changes its form.
    pub fn value_mut(&mut self, slot: u32) -> Option<&mut Value> {
        self.node.store.dbs[self.db].entry_mut(slot).map(|entry| &mut entry.value)
    }

    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.find_for_write(key).is_some()
    }

    /// The value of a key, for a command that reads; an error if it is of another type.
    pub fn read<T: ValueType>(&mut self, key: &[u8]) -> Result<Option<&T>, Error> {
        Ok(self.read_and_reply(key)?.0)
    }

    /// [`read`](Self::read) together with the reply that is to be written from it.
    pub fn read_and_reply<T: ValueType>(&mut self, key: &[u8]) -> Result<(Option<&T>, &mut Reply), Error> {
        let value = match self.find(key) {
            Some(slot) => {
                let entry = self.node.store.dbs[self.db].entry(slot);
                entry.map(|entry| T::of(&entry.value).ok_or(error::WRONG_TYPE)).transpose()?
            }
            None => None,
        };
        Ok((value, self.reply))
    }

    /// Debug builds notice a key that is changed without [`touched`](Self::touched).
    fn note_edit(&mut self, _key: &[u8]) {
        #[cfg(debug_assertions)]
        self.node.note_edit(self.db, _key);
    }

    /// The value of a key, to be changed. The caller says what it did by [`touched`](Self::touched).
    pub fn edit<T: ValueType>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Error> {
        self.note_edit(key);
        match self.find_for_write(key) {
            Some(slot) => self.value_mut_at(slot).map(Some),
            None => Ok(None),
        }
    }

    /// The value of a key, to be changed; a new empty one if the key does not exist.
    pub fn edit_or_create<T: ValueType>(&mut self, key: &[u8]) -> Result<&mut T, Error> {
        self.note_edit(key);
        let slot = match self.find_for_write(key) {
            Some(slot) => slot,
            None => {
                let value = T::empty(&self.node.store.limits);
                self.insert(key, value)
            }
        };
        self.value_mut_at(slot)
    }

    fn value_mut_at<T: ValueType>(&mut self, slot: u32) -> Result<&mut T, Error> {
        let entry = self.node.store.dbs[self.db].entry_mut(slot).ok_or(error::NO_SUCH_KEY)?;
        T::of_mut(&mut entry.value).ok_or(error::WRONG_TYPE)
    }

    /// Puts a value under a key that does not exist.
    pub fn insert(&mut self, key: &[u8], value: Value) -> u32 {
        self.note_edit(key);
        let slot = self.node.store.insert(self.db, key, value);
        self.node.signal_ready(self.db, key);
        self.node.notify(Class::NEW, "new", self.db, key);
        slot
    }

    /// Sets a key whatever it held before; its expiry goes unless it is kept.
    pub fn set_key(&mut self, key: &[u8], value: Value, keep_ttl: bool) -> u32 {
        self.note_edit(key);
        match self.find_for_write(key) {
            Some(slot) => {
                self.node.store.replace(self.db, slot, value);
                if !keep_ttl {
                    self.node.store.set_expiry(self.db, slot, None);
                }
                slot
            }
            None => self.insert(key, value),
        }
    }

    /// Sets a key to the result of a STORE command, or deletes it if the result is empty; says what happened.
    pub fn store_result(&mut self, key: &[u8], value: Option<Value>, class: Class, event: &str) {
        match value {
            Some(value) => {
                self.set_key(key, value, false);
                self.touched(key, class, event);
            }
            None => {
                if self.delete(key) {
                    self.touched(key, Class::GENERIC, "del");
                }
            }
        }
    }

    /// Deletes a key without a word. True if it existed.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        self.note_edit(key);
        match self.find_quietly(key) {
            Some(slot) => self.node.store.remove(self.db, slot).is_some(),
            None => false,
        }
    }

    /// Deletes a key whose last element was taken, with its event.
    pub fn delete_if_empty(&mut self, key: &[u8]) -> bool {
        let empty = |entry: &Entry| entry.value.is_empty();
        let Some(slot) = self.node.store.dbs[self.db].find(key) else { return false };
        if !self.entry(slot).is_some_and(empty) {
            return false;
        }
        self.node.store.remove(self.db, slot);
        self.node.notify(Class::GENERIC, "del", self.db, key);
        true
    }

    pub fn set_expiry(&mut self, slot: u32, expires_at_ms: Option<i64>) {
        self.node.store.set_expiry(self.db, slot, expires_at_ms);
    }

    /// Says that a key was changed: watchers and waiting clients first, then the event, then the count of changes.
    pub fn touched(&mut self, key: &[u8], class: Class, event: &str) {
        self.changed(key, class, event, 1);
    }

    /// [`touched`](Self::touched), for a command that counts each element as a change.
    pub fn changed(&mut self, key: &[u8], class: Class, event: &str, changes: usize) {
        self.node.signal_modified(self.db, key);
        self.node.notify(class, event, self.db, key);
        self.node.dirty += changes as u64;
    }

    /// Only the event, for the second and later ones of a command.
    pub fn notify(&mut self, key: &[u8], class: Class, event: &str) {
        self.node.notify(class, event, self.db, key);
    }

    /// Fields of a hash were set or removed: the next end of one may be another.
    pub fn field_expiries_changed(&mut self, key: &[u8]) {
        if let Some(slot) = self.node.store.dbs[self.db].find(key) {
            self.node.store.rearm(self.db, slot);
        }
    }

    pub fn random(&mut self) -> u64 {
        self.node.rng.next_u64()
    }

    /// Random indexes below `len`: `count` different ones, or -`count` with repetition if it is negative.
    pub fn pick(&mut self, len: usize, count: i64) -> Vec<usize> {
        if len == 0 {
            return Vec::new();
        }
        if count < 0 {
            return (0..count.unsigned_abs()).map(|_| self.node.rng.below(len)).collect();
        }
        let count = (count as u64).min(len as u64) as usize;
        let mut indexes: Vec<usize> = (0..len).collect();
        if count == len {
            // Nothing is left to chance; Redis gives all in their order.
            return indexes;
        }
        // The first places of a shuffle.
        for at in 0..count {
            let other = at + self.node.rng.below(len - at);
            indexes.swap(at, other);
        }
        indexes.truncate(count);
        indexes
    }

    // ---- waiting -------------------------------------------------------------------------------------------------

    /// Whether this call may wait: those of transactions and scripts may not.
    pub fn may_wait(&self) -> bool {
        matches!(self.origin, Origin::Client | Origin::Blocked)
    }

    /// Lets the client wait for keys, up to `timeout_ms` (0: for ever); where waiting is not possible it gets the
    /// reply of a timeout at once.
    pub fn wait_for(&mut self, wait: Wait, keys: &[&[u8]], timeout_ms: u64, reply: TimeoutReply) {
        match self.origin {
            Origin::Blocked => self.waits_again = true,
            Origin::Client => {
                let keys = keys.iter().map(|&key| key.into()).collect();
                // Who has waited gets the null array, whatever null the command has.
                let reply = if reply == TimeoutReply::Null { TimeoutReply::NullArray } else { reply };
                let deadline_ms = (timeout_ms > 0).then(|| self.now().mono_ms().saturating_add(timeout_ms));
                self.node.block(self.id, wait, self.argv, keys, deadline_ms, reply);
            }
            Origin::Exec | Origin::Script => {
                let acks = self.node.acked_replicas(self.id);
                timeout_reply(self.reply, reply, acks);
            }
        }
    }

    /// Those of its keys that a command which may wait looks at, in order. Before 7.2 a blocked request that runs again
    /// looks at the key that woke it, and at no other.
    pub fn keys_to_try(&self, keys: &'a [&'a [u8]]) -> &'a [&'a [u8]] {
        let woken_by = self.ready_key.filter(|_| self.version() < Version::V7_2);
        match woken_by.and_then(|key| keys.iter().position(|other| *other == key)) {
            Some(at) => &keys[at..=at],
            None => keys,
        }
    }

    /// A timeout in seconds with fractions, as blocking commands take it; in ms.
    pub fn timeout_ms(&self, index: usize) -> Result<u64, Error> {
        const NEGATIVE: Error = Error::new("ERR timeout is negative");
        const OUT_OF_RANGE: Error = Error::new("ERR timeout is out of range");
        let seconds = LongDouble::parse(self.argv[index])
            .ok_or(Error::new("ERR timeout is not a float or out of range"))?;
        // Before 7.2 a number that is too large overflows.
        let checks_range = self.version() >= Version::V7_2;
        let ms = seconds.times_ceil(1000).ok_or(if checks_range && !seconds.is_negative() {
            OUT_OF_RANGE
        } else {
            NEGATIVE
        })?;
        if ms < 0 {
            return Err(NEGATIVE);
        }
        if checks_range && ms > 0 && ms.checked_add(self.now().wall_ms()).is_none() {
            return Err(OUT_OF_RANGE);
        }
        Ok(ms as u64)
    }
}

/// A cursor over the words of a call.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    rest: &'a [&'a [u8]],
}

impl<'a> Words<'a> {
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn len(&self) -> usize {
        self.rest.len()
    }

    pub fn rest(&self) -> &'a [&'a [u8]] {
        self.rest
    }

    /// Leaves out the next `count` words.
    pub fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or(&[]);
    }

    /// Takes the next word.
    pub fn pop(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next word, or a syntax error.
    pub fn word(&mut self) -> Result<&'a [u8], Error> {
        self.pop().ok_or(error::SYNTAX)
    }

    /// Takes the next word if it is this keyword (given in upper case), in any case.
    pub fn take(&mut self, keyword: &str) -> bool {
        let found = self.rest.first().is_some_and(|word| word.eq_ignore_ascii_case(keyword.as_bytes()));
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Takes the next word if it is this keyword and at least `operands` words follow it.
    pub fn take_with(&mut self, keyword: &str, operands: usize) -> bool {
        self.rest.len() > operands && self.take(keyword)
    }

    pub fn int(&mut self) -> Result<i64, Error> {
        num::parse_i64(self.word()?).ok_or(error::NOT_AN_INTEGER)
    }

    /// A whole number in a range, with Redis's texts for one outside.
    pub fn int_in(&mut self, min: i64, max: i64) -> Result<i64, Error> {
        let n = self.int()?;
        if (min..=max).contains(&n) { Ok(n) } else { Err(error::OUT_OF_RANGE) }
    }
}
