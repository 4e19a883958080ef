//! The guard for a change of data: it does everything that follows a change, in Redis's order.
//!
//! A handler that changes a value gets an [`Edit`] from [`Ctx::edit`](super::ctx::Ctx::edit), changes the value through it,
//! and finishes with one of these methods:
//!
//! | method | when |
//! |---|---|
//! | [`done`](Edit::done) | the value changed |
//! | [`done_if_any`](Edit::done_if_any) | the value changed if the count of changes is not zero |
//! | [`done_without_rearm`](Edit::done_without_rearm) | a hash changed, but no expiry of its fields did |
//! | [`done_unwatched`](Edit::done_unwatched) | a stream changed in a way that WATCH does not see |
//! | [`unchanged`](Edit::unchanged) | the handler borrowed the value mutably and changed nothing that clients can read |
//! | [`done_without_event`](Edit::done_without_event) | the value changed, and no keyspace event follows |
//! | [`unannounced`](Edit::unannounced) | the value changed in a way that Redis keeps to itself |
//! | [`postpone`](Edit::postpone) | the value changed, and another key's effects come first |
//!
//! An edit whose value was never borrowed mutably may simply be dropped. In debug builds, dropping any other edit without
//! finishing it panics.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::ctx::Ctx;
use crate::node::Node;
use crate::node::notify::Class;
use crate::store::usage::Usage;
use crate::store::{Hash, Limits, List, Set, SortedSet, Stream, StringValue, Value, ValueType};

/// A type of value that handlers change through an [`Edit`].
pub trait Editable: Sized {
    /// The class of the keyspace events of its changes.
    const CLASS: Class;
    /// Whether parts of the value expire by themselves, so that a change may move the key's timer.
    const HAS_FIELD_EXPIRIES: bool = false;
    /// Whether the value is a collection, which is deleted with its last element. A string and a stream may be empty.
    const IS_COLLECTION: bool = true;

    /// Returns the value as this type, or `None` if it is of another one.
    fn of(value: &Value) -> Option<&Self>;

    /// Returns the value as this type, or `None` if it is of another one.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
}

macro_rules! editable {
    ($type:ident, $class:ident $(, $constant:ident: $holds:literal)?) => {
        impl Editable for $type {
            const CLASS: Class = Class::$class;
            $(const $constant: bool = $holds;)?

            fn of(value: &Value) -> Option<&Self> {
                ValueType::of(value)
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                ValueType::of_mut(value)
            }
        }
    };
}

editable!(StringValue, STRING, IS_COLLECTION: false);
editable!(List, LIST);
editable!(Set, SET);
editable!(SortedSet, ZSET);
editable!(Hash, HASH, HAS_FIELD_EXPIRIES: true);
editable!(Stream, STREAM, IS_COLLECTION: false);

/// A value of any type, for commands that store a value whole and never an empty collection: RENAME, MOVE, COPY, RESTORE.
impl Editable for Value {
    const CLASS: Class = Class::GENERIC;
    const IS_COLLECTION: bool = false;

    fn of(value: &Value) -> Option<&Self> {
        Some(value)
    }

    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        Some(value)
    }
}

const WRONG_SLOT: &str = "an edit's slot holds a value of its type";

/// A key's value while a handler changes it. Dereferences to the value.
#[must_use = "finish a change with `done`, `done_if_any`, `unchanged` or `postpone`"]
pub struct Edit<'e, 'k, T> {
    node: &'e mut Node,
    at: Postponed<'k, T>,
}

/// A change whose effects wait for those of another key; see [`Edit::postpone`].
#[must_use = "a postponed change has to be resumed and finished"]
pub struct Postponed<'k, T> {
    db: usize,
    key: &'k [u8],
    slot: u32,
    obligation: Obligation,
    value: PhantomData<T>,
}

impl<'e, 'k, T: Editable> Edit<'e, 'k, T> {
    /// Returns an edit of the value in this slot, which must be a `T`.
    #[inline]
    pub(super) fn new(node: &'e mut Node, db: usize, key: &'k [u8], slot: u32) -> Edit<'e, 'k, T> {
        let obligation = Obligation::default();
        Edit { node, at: Postponed { db, key, slot, obligation, value: PhantomData } }
    }

    /// Returns an edit that has to be finished, because the key is new or its value was replaced.
    #[inline]
    pub(super) fn begun(node: &'e mut Node, db: usize, key: &'k [u8], slot: u32) -> Edit<'e, 'k, T> {
        let mut edit = Edit::new(node, db, key, slot);
        edit.at.obligation.incur();
        edit
    }

    /// Returns the value together with the limits of its encodings, which most changes need.
    #[inline]
    pub fn with_limits(&mut self) -> (&mut T, &Limits) {
        self.at.obligation.incur();
        let store = &mut self.node.store;
        let entry = store.dbs[self.at.db].entry_mut(self.at.slot).expect(WRONG_SLOT);
        (T::of_mut(&mut entry.value).expect(WRONG_SLOT), &store.limits)
    }

    /// Sets the key's expiry (Unix time in ms) as a part of this change.
    pub fn set_key_expiry(&mut self, expires_at_ms: i64) {
        self.at.obligation.incur();
        self.node.store.set_expiry(self.at.db, self.at.slot, Some(expires_at_ms));
    }

    /// Sets what the key remembers of its use.
    pub fn set_usage(&mut self, usage: Usage) {
        self.node.store.dbs[self.at.db].entry_mut(self.at.slot).expect(WRONG_SLOT).usage = usage;
    }

    /// Finishes a change: arms the timer of a hash anew, signals watchers and replicas, publishes the keyspace event,
    /// counts the changes, and deletes the key, with its `del` event, if the value is empty.
    #[inline]
    pub fn done(self, event: &str, changes: usize) {
        if T::HAS_FIELD_EXPIRIES {
            self.node.store.rearm(self.at.db, self.at.slot);
        }
        self.announce(event, changes);
    }

    /// Finishes with [`done`](Self::done), or with [`unchanged`](Self::unchanged) if `changes` is zero.
    #[inline]
    pub fn done_if_any(self, event: &str, changes: usize) {
        if changes > 0 {
            self.done(event, changes);
        } else {
            self.unchanged();
        }
    }

    /// Finishes an edit that changed nothing that clients can read. Another encoding is no change.
    #[inline]
    pub fn unchanged(mut self) {
        self.at.obligation.fulfil();
    }

    /// Finishes a change that has no keyspace event: signals watchers and replicas, and counts the changes.
    pub fn done_without_event(mut self, changes: usize) {
        self.at.obligation.fulfil();
        self.node.signal_modified(self.at.db, self.at.key);
        self.node.dirty += changes as u64;
    }

    /// Finishes a change that Redis tells nobody: neither watchers nor replicas, and without a keyspace event.
    pub fn unannounced(mut self) {
        self.at.obligation.fulfil();
        #[cfg(debug_assertions)]
        self.node.note_announced(self.at.db, self.at.key);
    }

    /// Lets another key's effects come before those of this change, as in LMOVE and RENAME.
    pub fn postpone(self) -> Postponed<'k, T> {
        self.at
    }

    fn announce(mut self, event: &str, changes: usize) {
        self.at.obligation.fulfil();
        let Edit { node, at: Postponed { db, key, slot, .. } } = self;
        node.announce(db, key, T::CLASS, event, changes);
        if T::IS_COLLECTION && node.store.dbs[db].entry(slot).is_some_and(|entry| entry.value.is_empty()) {
            node.store.remove(db, slot);
            node.notify(Class::GENERIC, "del", db, key);
        }
    }
}

impl Edit<'_, '_, Hash> {
    /// Finishes a change that moved no field's expiry. The key's timer keeps its turn among those with the same deadline.
    #[inline]
    pub fn done_without_rearm(self, event: &str, changes: usize) {
        self.announce(event, changes);
    }
}

impl Edit<'_, '_, Stream> {
    /// Finishes a change of groups or ids, which replicas get but which breaks no watch: publishes the event, if there is one,
    /// and counts the changes.
    pub fn done_unwatched(mut self, event: Option<&str>, changes: usize) {
        self.at.obligation.fulfil();
        let Edit { node, at: Postponed { db, key, .. } } = self;
        node.note_changed(db, key);
        if let Some(event) = event {
            node.notify(Class::STREAM, event, db, key);
        }
        node.dirty += changes as u64;
    }
}

impl<'k, T: Editable> Postponed<'k, T> {
    /// Takes the edit up again, in the database where it began.
    pub fn resume<'e>(self, ctx: &'e mut Ctx) -> Edit<'e, 'k, T> {
        Edit { node: ctx.node, at: self }
    }
}

impl<T: Editable> Deref for Edit<'_, '_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let entry = self.node.store.dbs[self.at.db].entry(self.at.slot).expect(WRONG_SLOT);
        T::of(&entry.value).expect(WRONG_SLOT)
    }
}

impl<T: Editable> DerefMut for Edit<'_, '_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.with_limits().0
    }
}

/// Whether an edit still has to be finished; in release builds nothing. A type without a lifetime, so that the check in
/// its `drop` does not prolong the borrow of the node.
#[derive(Default)]
struct Obligation {
    #[cfg(debug_assertions)]
    is_due: bool,
}

impl Obligation {
    #[inline]
    fn incur(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.is_due = true;
        }
    }

    #[inline]
    fn fulfil(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.is_due = false;
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Obligation {
    fn drop(&mut self) {
        assert!(!self.is_due || std::thread::panicking(), "an edit was dropped before it was finished");
    }
}

#[cfg(test)]
mod tests {
    //! The effects of a finished edit, and each way to forget one.

    use super::*;
    use crate::commands::ctx::Origin;
    use crate::commands::table;
    use crate::node::session::SessionId;
    use crate::node::{Config, ConnId};
    use crate::store::list::End;
    use crate::version::Version;
    use crate::wire::{Protocol, Reply};
    use crate::world::{ClockMode, World, WorldOptions};

    fn after(requests: &[&str]) -> (World, ConnId) {
        let mut world = World::new(WorldOptions {
            seed: 0,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: vec![Config::new(Version::V7_4)],
            topology: None,
        });
        let conn = world.open(0, "127.0.0.1:50000".to_owned(), "127.0.0.1:6379".to_owned());
        for request in requests {
            let argv: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
            world.request(conn, &argv);
        }
        (world, conn)
    }

    /// Runs a handler as one event that checks the node at its end.
    fn run(requests: &[&str], handler: impl FnOnce(&mut Ctx)) -> World {
        let (mut world, conn) = after(requests);
        let id: SessionId = conn.session;
        let node = world.begin(0);
        let argv: &[&[u8]] = &[b"rpush"];
        let command = table::find(argv, Version::V7_4).unwrap();
        let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
        handler(&mut Ctx::new(node, id, command, argv, &mut reply, Origin::Client));
        node.check();
        world
    }

    #[test]
    fn finishing_an_edit_counts_arms_and_deletes() {
        let world = run(&["RPUSH l a", "HSET h f 1"], |ctx| {
            let dirty = ctx.node.dirty;
            let mut list = ctx.edit::<List>(b"l").unwrap().unwrap();
            list.pop(End::Head);
            list.done("lpop", 1);
            let mut hash = ctx.edit::<Hash>(b"h").unwrap().unwrap();
            hash.set_expiry(b"f", Some(1_700_000_005_000));
            hash.done("hexpire", 2);
            assert_eq!(ctx.node.dirty, dirty + 3);
        });
        let store = &world.nodes()[0].store;
        assert_eq!(store.dbs[0].find(b"l"), None);
        assert_eq!(store.timers.len(), 1);
    }

    #[test]
    #[should_panic(expected = "an edit was dropped before it was finished")]
    fn a_change_without_its_end() {
        run(&["RPUSH l a b"], |ctx| {
            ctx.edit::<List>(b"l").unwrap().unwrap().pop(End::Head);
        });
    }

    #[test]
    #[should_panic(expected = "an edit was dropped before it was finished")]
    fn a_postponed_change_that_is_not_resumed() {
        run(&["RPUSH l a b"], |ctx| {
            let mut list = ctx.edit::<List>(b"l").unwrap().unwrap();
            list.pop(End::Head);
            let _ = list.postpone();
        });
    }

    #[test]
    #[should_panic(expected = "an edit was dropped before it was finished")]
    fn a_new_key_that_is_not_announced() {
        run(&[], |ctx| {
            let _ = ctx.edit_or_create::<Set>(b"s");
        });
    }

    #[test]
    #[should_panic(expected = "l: changed without a word")]
    fn a_change_finished_as_unchanged() {
        run(&["RPUSH l a b"], |ctx| {
            let mut list = ctx.edit::<List>(b"l").unwrap().unwrap();
            list.pop(End::Head);
            list.unchanged();
        });
    }

    #[test]
    #[should_panic(expected = "h: a timer is missing")]
    fn a_field_expiry_finished_without_its_timer() {
        run(&["HSET h f 1"], |ctx| {
            let mut hash = ctx.edit::<Hash>(b"h").unwrap().unwrap();
            hash.set_expiry(b"f", Some(1_700_000_005_000));
            hash.done_without_rearm("hincrby", 1);
        });
    }

    #[test]
    fn an_edit_that_only_reads_may_be_dropped() {
        run(&["RPUSH l a b"], |ctx| {
            assert_eq!(ctx.edit::<List>(b"l").unwrap().unwrap().len(), 2);
        });
    }
}
