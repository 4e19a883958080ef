//! The context of a call: what a handler uses to read its arguments, look up and change data, and write its reply.
//!
//! A handler changes data in one of these ways, and each announces the change: it signals watchers and replicas, publishes the
//! keyspace event, and counts the change.
//!
//! | to | use |
//! |---|---|
//! | change a value in place | [`edit`](Ctx::edit), then a finishing method of [`Edit`] |
//! | the same, and create the key if it is missing | [`edit_or_create`](Ctx::edit_or_create), [`edit_or_insert`](Ctx::edit_or_insert) |
//! | replace a value | [`set_key`](Ctx::set_key), then [`Edit::done`] |
//! | insert a value with an expiry under a new name | [`insert`](Ctx::insert), then [`Edit::done`] |
//! | store the result of a command | [`store_result`](Ctx::store_result) |
//! | delete a key | [`delete`](Ctx::delete) |
//! | set or remove the expiry of a key | [`set_expiry`](Ctx::set_expiry) |
//! | let another key's events come first | [`Edit::postpone`] |
//! | remove a key under another event than `del` | [`discard`](Ctx::discard), then [`announce`](Ctx::announce) |
//!
//! Debug builds check at the end of each event that every key which changed was announced (`node/announced.rs`).

use crate::commands::command::Command;
use crate::commands::edit::{Edit, Editable};
use crate::error::{self, Error};
use crate::long_double::LongDouble;
use crate::node::Node;
use crate::node::blocking::timeout_reply;
use crate::node::errands::{Errand, Task};
use crate::node::notify::Class;
use crate::node::session::{Session, SessionId, TimeoutReply, Wait};
use crate::num;
use crate::store::{Entry, Limits, Now, Value, ValueType};
use crate::version::Version;
use crate::wire::Reply;

/// The origin of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client's request.
    Client,
    /// A queued command that EXEC runs.
    Exec,
    /// A script's `redis.call`.
    Script,
    /// A blocked request that runs again.
    Blocked,
}

/// The context of one call.
pub struct Ctx<'a> {
    /// The node that executes the call.
    pub node: &'a mut Node,
    /// The client's session.
    pub id: SessionId,
    /// The row of the command.
    pub command: &'static Command,
    /// The arguments; `argv[0]` is the command's name as the client wrote it.
    pub argv: &'a [&'a [u8]],
    /// The reply, which the handler writes.
    pub reply: &'a mut Reply,
    /// The origin of the call.
    pub origin: Origin,
    /// Whether a request that ran again has to keep waiting.
    pub waits_again: bool,
    /// The key that woke a blocked request.
    pub ready_key: Option<&'a [u8]>,
    /// The number of the selected database.
    db: usize,
    /// Whether the client has turned CLIENT NO-TOUCH on: its commands do not count as a use of keys.
    no_touch: bool,
}

impl<'a> Ctx<'a> {
    /// Returns the context of a call of the session `id`.
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

    /// Returns the release that the node emulates.
    pub fn version(&self) -> Version {
        self.node.config.version
    }

    /// Fails in cluster mode.
    ///
    /// # Errors
    /// If the node is in cluster mode: `ERR` and `why`.
    pub fn refuse_in_cluster(&self, why: &str) -> Result<(), Error> {
        if self.node.cluster.is_some() { Err(format!("ERR {why}").into()) } else { Ok(()) }
    }

    /// Returns the time of the event.
    pub fn now(&self) -> Now {
        self.node.store.now
    }

    /// Returns the number of the selected database.
    pub fn db(&self) -> usize {
        self.db
    }

    /// Calls `act` with another database selected.
    pub fn in_db<T>(&mut self, db: usize, act: impl FnOnce(&mut Ctx) -> T) -> T {
        let own = std::mem::replace(&mut self.db, db);
        let result = act(self);
        self.db = own;
        result
    }

    /// Returns the session of the client, which may call directly, in a transaction or in a script.
    pub fn session(&mut self) -> &mut Session {
        &mut self.node.sessions[self.id]
    }

    /// Returns a cursor over the arguments from `index` on.
    pub fn words(&self, index: usize) -> Words<'a> {
        Words::of(self.argv.get(index..).unwrap_or(&[]))
    }

    /// Parses the argument at `index` as an integer.
    ///
    /// # Errors
    /// If it is not a 64-bit integer in canonical form.
    pub fn int(&self, index: usize) -> Result<i64, Error> {
        num::parse_i64(self.argv[index]).ok_or(error::NOT_AN_INTEGER)
    }

    /// Parses the argument at `index` as the number of a database.
    ///
    /// # Errors
    /// If it is not an integer, or there is no such database.
    pub fn db_index(&self, index: usize) -> Result<usize, Error> {
        let number = self.int(index)?;
        if i32::try_from(number).is_err() {
            return Err(error::out_of_range(i32::MIN.into(), i32::MAX.into()));
        }
        usize::try_from(number).ok().filter(|&db| db < self.node.store.dbs.len()).ok_or(error::BAD_DB)
    }

    /// Parses the argument at `index` as a floating-point number.
    ///
    /// # Errors
    /// If it is not a number.
    pub fn float(&self, index: usize) -> Result<f64, Error> {
        num::parse_operand(self.argv[index], self.version()).ok_or(error::NOT_A_FLOAT)
    }

    // ---- data ----------------------------------------------------------------------------------------------------

    /// Returns the slot of a live key, for a command that reads. Counts the hit or miss and marks the key as used.
    pub fn find(&mut self, key: &[u8]) -> Option<u32> {
        let slot = self.peek(key)?;
        self.mark_used(slot);
        Some(slot)
    }

    /// Returns the slot of a live key as [`find`](Self::find) does, without marking the key as used.
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

    /// Returns the slot of a live key, for a command that writes. Marks the key as used.
    pub fn find_for_write(&mut self, key: &[u8]) -> Option<u32> {
        let slot = self.find_quietly(key)?;
        self.mark_used(slot);
        Some(slot)
    }

    /// Returns the slot of a live key; counts and marks nothing. Removes a key that has expired.
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

    /// Records the time as the last use of a key.
    fn mark_used(&mut self, slot: u32) {
        if !self.no_touch || self.command.name == "touch" {
            self.node.mark_used(self.db, slot);
        }
    }

    /// Returns the entry in a slot of the selected database.
    pub fn entry(&self, slot: u32) -> Option<&Entry> {
        self.node.store.dbs[self.db].entry(slot)
    }

    /// Returns the value in a slot, whatever its type, for a command that changes only its encoding.
    pub fn value_mut(&mut self, slot: u32) -> Option<&mut Value> {
        self.node.store.dbs[self.db].entry_mut(slot).map(|entry| &mut entry.value)
    }

    /// Returns whether a key exists, and marks it as used.
    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.find_for_write(key).is_some()
    }

    /// Returns the value of a key, for a command that reads.
    ///
    /// # Errors
    /// If the value is of another type.
    pub fn read<T: ValueType>(&mut self, key: &[u8]) -> Result<Option<&T>, Error> {
        Ok(self.read_and_reply(key)?.0)
    }

    /// Returns the value of a key, for a command that reads, together with the reply.
    ///
    /// # Errors
    /// If the value is of another type.
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

    /// Returns the value of a key that the call has already looked up, together with the reply; `None` if there is no such value
    /// of this type. Counts and marks nothing.
    pub fn read_quietly<T: ValueType>(&mut self, key: &[u8]) -> (Option<&T>, &mut Reply) {
        let slot = self.find_quietly(key);
        let entry = slot.and_then(|slot| self.node.store.dbs[self.db].entry(slot));
        (entry.and_then(|entry| T::of(&entry.value)), self.reply)
    }

    /// Records that the handler is about to change a key: debug builds check at the end of the event that a key which
    /// changed was also announced.
    fn note_edit(&mut self, _key: &[u8]) {
        #[cfg(debug_assertions)]
        self.node.note_edit(self.db, _key);
    }

    /// Returns the value of a key, to be changed, or `None` if there is no such key.
    ///
    /// # Errors
    /// If the value is of another type.
    pub fn edit<'k, T: Editable>(&mut self, key: &'k [u8]) -> Result<Option<Edit<'_, 'k, T>>, Error> {
        self.note_edit(key);
        match self.find_for_write(key) {
            Some(slot) => self.edit_at(key, slot).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the value of a key, to be changed, and first creates an empty one if there is no such key.
    ///
    /// # Errors
    /// If the value is of another type.
    pub fn edit_or_create<'k, T: Editable + ValueType>(
        &mut self,
        key: &'k [u8],
    ) -> Result<Edit<'_, 'k, T>, Error> {
        self.edit_or_insert(key, T::empty)
    }

    /// Returns the value of a key, to be changed, and first inserts what `create` returns if there is no such key.
    ///
    /// # Errors
    /// If the value is of another type.
    pub fn edit_or_insert<'k, T: Editable>(
        &mut self,
        key: &'k [u8],
        create: impl FnOnce(&Limits) -> Value,
    ) -> Result<Edit<'_, 'k, T>, Error> {
        self.note_edit(key);
        if let Some(slot) = self.find_for_write(key) {
            return self.edit_at(key, slot);
        }
        let value = create(&self.node.store.limits);
        let slot = self.insert_quietly(key, value);
        Ok(Edit::begun(self.node, self.db, key, slot))
    }

    #[inline]
    fn edit_at<'k, T: Editable>(&mut self, key: &'k [u8], slot: u32) -> Result<Edit<'_, 'k, T>, Error> {
        let is_of_type = self.entry(slot).is_some_and(|entry| T::of(&entry.value).is_some());
        if is_of_type { Ok(Edit::new(self.node, self.db, key, slot)) } else { Err(error::WRONG_TYPE) }
    }

    /// Inserts a value of any type, with its expiry (Unix time in ms), under a key that does not exist.
    pub fn insert<'k>(
        &mut self,
        key: &'k [u8],
        value: Value,
        expires_at_ms: Option<i64>,
    ) -> Edit<'_, 'k, Value> {
        let slot = self.insert_quietly(key, value);
        self.node.store.set_expiry(self.db, slot, expires_at_ms);
        Edit::begun(self.node, self.db, key, slot)
    }

    /// Inserts a value under a key that does not exist, wakes the clients that wait for it, and publishes the `new` event.
    fn insert_quietly(&mut self, key: &[u8], value: Value) -> u32 {
        self.note_edit(key);
        let slot = self.node.store.insert(self.db, key, value);
        self.node.signal_ready(self.db, key);
        self.node.notify(Class::NEW, "new", self.db, key);
        slot
    }

    /// Sets a key whatever it held before. Removes its expiry unless `keep_ttl` is true.
    #[inline]
    pub fn set_key<'k, T: Editable + Into<Value>>(
        &mut self,
        key: &'k [u8],
        value: T,
        keep_ttl: bool,
    ) -> Edit<'_, 'k, T> {
        let slot = self.replace_or_insert(key, value.into(), keep_ttl);
        Edit::begun(self.node, self.db, key, slot)
    }

    fn replace_or_insert(&mut self, key: &[u8], value: Value, keep_ttl: bool) -> u32 {
        self.note_edit(key);
        match self.find_for_write(key) {
            Some(slot) => {
                let old_type = self.entry(slot).map_or("", |entry| entry.value.type_name());
                self.node.store.replace(self.db, slot, value);
                if !keep_ttl {
                    self.node.store.set_expiry(self.db, slot, None);
                }
                self.notify_overwritten(key, slot, old_type);
                slot
            }
            None => self.insert_quietly(key, value),
        }
    }

    /// Sets a key to the result of a STORE command, with its event and count of changes, or deletes the key if there is no
    /// result.
    pub fn store_result<T: Editable + Into<Value>>(
        &mut self,
        key: &[u8],
        result: Option<T>,
        event: &str,
        changes: usize,
    ) {
        match result {
            Some(value) => self.set_key(key, value, false).done(event, changes),
            None => {
                self.delete(key);
            }
        }
    }

    /// Deletes a key, with its `del` event. Returns whether it existed.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let existed = self.discard(key);
        if existed {
            self.announce(key, Class::GENERIC, "del");
        }
        existed
    }

    /// Deletes a key whose new expiry has passed: with the `del` event, or since Valkey 9.0 with `expired`.
    pub fn expire_now(&mut self, key: &[u8]) {
        let is_valkey = self.version().is_valkey_since(Version::Valkey9_0);
        if !is_valkey {
            self.delete(key);
        } else if self.discard(key) {
            self.node.stats.expired_keys += 1;
            self.announce(key, Class::EXPIRED, "expired");
        }
    }

    /// Removes a key without an event: another value takes its place, or the caller announces the change. Returns whether the key
    /// existed.
    pub fn discard(&mut self, key: &[u8]) -> bool {
        self.note_edit(key);
        match self.find_quietly(key) {
            Some(slot) => self.node.store.remove(self.db, slot).is_some(),
            None => false,
        }
    }

    /// Sets the expiry of a key (Unix time in ms), with its `expire` event, or removes it, with its `persist` event.
    pub fn set_expiry(&mut self, key: &[u8], slot: u32, expires_at_ms: Option<i64>) {
        self.note_edit(key);
        self.node.store.set_expiry(self.db, slot, expires_at_ms);
        self.announce(key, Class::GENERIC, if expires_at_ms.is_some() { "expire" } else { "persist" });
    }

    /// Announces one change of a key that no [`Edit`] covers, because the key was removed.
    pub fn announce(&mut self, key: &[u8], class: Class, event: &str) {
        self.node.announce(self.db, key, class, event, 1);
    }

    /// Publishes a further event of a change that is already announced.
    pub fn notify(&mut self, key: &[u8], class: Class, event: &str) {
        self.node.notify(class, event, self.db, key);
    }

    /// Publishes the events of a value that took the place of one of type `old_type`. Releases before 8.2 have no such events.
    pub fn notify_overwritten(&mut self, key: &[u8], slot: u32, old_type: &str) {
        if !self.node.config.notify_keyspace_events.has(Class::SINCE_8_2) {
            return;
        }
        self.notify(key, Class::OVERWRITTEN, "overwritten");
        if self.entry(slot).is_some_and(|entry| entry.value.type_name() != old_type) {
            self.notify(key, Class::TYPE_CHANGED, "type_changed");
        }
    }

    /// Returns the next random number of the node.
    pub fn random(&mut self) -> u64 {
        self.node.rng.next_u64()
    }

    /// Returns random indexes below `len`: `count` different ones, or -`count` with repetition if `count` is negative.
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

    /// Returns whether the call may block: calls of transactions and scripts may not.
    pub fn may_wait(&self) -> bool {
        matches!(self.origin, Origin::Client | Origin::Blocked)
    }

    /// Replies OK, after the driver has done a task if there is one. Where the client cannot wait, the reply comes before.
    pub fn answer_after(&mut self, task: Option<Task>) {
        let Some(task) = task else { return self.reply.ok() };
        let client = (self.origin == Origin::Client).then_some(self.id);
        self.node.errands.push_back(Errand { task, client });
        match client {
            Some(_) => self.wait_for(Wait::Errand, &[], 0, TimeoutReply::Null),
            None => self.reply.ok(),
        }
    }

    /// Blocks the client until one of the keys is ready or `timeout_ms` has passed (0: no timeout). Where blocking is not
    /// possible, writes the reply of a timeout at once.
    pub fn wait_for(&mut self, wait: Wait, keys: &[&[u8]], timeout_ms: u64, reply: TimeoutReply) {
        self.wait_for_as(wait, self.argv, keys, timeout_ms, reply);
    }

    /// Blocks the client as [`wait_for`](Self::wait_for) does, with the arguments of the request that runs again.
    pub fn wait_for_as(
        &mut self,
        wait: Wait,
        argv: &[&[u8]],
        keys: &[&[u8]],
        timeout_ms: u64,
        reply: TimeoutReply,
    ) {
        match self.origin {
            Origin::Blocked => self.waits_again = true,
            Origin::Client => {
                let keys = keys.iter().map(|&key| key.into()).collect();
                // A client that has waited gets the null array, whatever null the command has.
                let reply = if reply == TimeoutReply::Null { TimeoutReply::NullArray } else { reply };
                let deadline_ms = (timeout_ms > 0).then(|| self.now().mono_ms().saturating_add(timeout_ms));
                self.node.block(self.id, wait, argv, keys, deadline_ms, reply);
            }
            Origin::Exec | Origin::Script => {
                let acks = self.node.acked_replicas(self.id);
                timeout_reply(self.reply, reply, acks);
            }
        }
    }

    /// Returns the keys that a blocking command tries, in order. Before 7.2, a blocked request that runs again tries only the
    /// key that woke it.
    pub fn keys_to_try(&self, keys: &'a [&'a [u8]]) -> &'a [&'a [u8]] {
        let woken_by = self.ready_key.filter(|_| self.version() < Version::V7_2);
        match woken_by.and_then(|key| keys.iter().position(|other| *other == key)) {
            Some(at) => &keys[at..=at],
            None => keys,
        }
    }

    /// Parses the argument at `index` as a timeout in seconds, perhaps with a fraction, and returns it in ms.
    ///
    /// # Errors
    /// If it is not a number, negative or out of range.
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

/// A cursor over the arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    rest: &'a [&'a [u8]],
}

impl<'a> Words<'a> {
    /// Returns a cursor over these arguments.
    pub fn of(rest: &'a [&'a [u8]]) -> Words<'a> {
        Words { rest }
    }

    /// Returns whether no argument is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns how many arguments are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Returns the arguments that are left.
    pub fn rest(&self) -> &'a [&'a [u8]] {
        self.rest
    }

    /// Skips the next `count` arguments.
    pub fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or(&[]);
    }

    /// Takes the next argument.
    pub fn pop(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Takes the next argument.
    ///
    /// # Errors
    /// If none is left: a syntax error.
    pub fn word(&mut self) -> Result<&'a [u8], Error> {
        self.pop().ok_or(error::SYNTAX)
    }

    /// Takes the next argument if it is this keyword (given in upper case), in any case.
    pub fn take(&mut self, keyword: &str) -> bool {
        let found = self.rest.first().is_some_and(|word| word.eq_ignore_ascii_case(keyword.as_bytes()));
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Takes the next argument if it is this keyword and at least `operands` arguments follow it.
    pub fn take_with(&mut self, keyword: &str, operands: usize) -> bool {
        self.rest.len() > operands && self.take(keyword)
    }

    /// Takes the next argument as an integer.
    ///
    /// # Errors
    /// If none is left, or it is not an integer.
    pub fn int(&mut self) -> Result<i64, Error> {
        num::parse_i64(self.word()?).ok_or(error::NOT_AN_INTEGER)
    }
}
