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
//! | [`unchanged`](Edit::unchanged) | the handler borrowed the value mutably and changed nothing that clients can read |
//! | [`postpone`](Edit::postpone) | the value changed, and another key's effects come first |
//!
//! An edit whose value was never borrowed mutably may simply be dropped. In debug builds, dropping any other edit without
//! finishing it panics.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::ctx::Ctx;
use crate::node::Node;
use crate::node::notify::Class;
use crate::store::{Hash, Kind, Limits, List, Set, SortedSet, StringValue, Value};

/// A type of value that handlers change through an [`Edit`].
pub trait Editable: Sized {
    /// The class of the keyspace events of its changes.
    const CLASS: Class;
    /// Whether parts of the value expire by themselves, so that a change may move the key's timer.
    const HAS_FIELD_EXPIRIES: bool = false;

    /// Returns the value as this type, or `None` if it is of another one.
    fn of(value: &Value) -> Option<&Self>;

    /// Returns the value as this type, or `None` if it is of another one.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
}

macro_rules! editable {
    ($type:ident, $class:ident $(, $constant:ident)?) => {
        impl Editable for $type {
            const CLASS: Class = Class::$class;
            $(const $constant: bool = true;)?

            fn of(value: &Value) -> Option<&Self> {
                Kind::of(value)
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                Kind::of_mut(value)
            }
        }
    };
}

editable!(StringValue, STRING);
editable!(List, LIST);
editable!(Set, SET);
editable!(SortedSet, ZSET);
editable!(Hash, HASH, HAS_FIELD_EXPIRIES);

/// A value of any type, for commands that store a value whole: RENAME, MOVE, COPY, RESTORE.
impl Editable for Value {
    const CLASS: Class = Class::GENERIC;

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
    pub(super) fn new(node: &'e mut Node, db: usize, key: &'k [u8], slot: u32) -> Edit<'e, 'k, T> {
        let obligation = Obligation::default();
        Edit { node, at: Postponed { db, key, slot, obligation, value: PhantomData } }
    }

    /// Returns an edit that has to be finished, because the key is new or its value was replaced.
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
    pub fn set_expiry(&mut self, expires_at_ms: i64) {
        self.at.obligation.incur();
        self.node.store.set_expiry(self.at.db, self.at.slot, Some(expires_at_ms));
    }

    /// Marks the key as last used at this monotonic time in seconds.
    pub fn set_used_at(&mut self, used_at_s: u32) {
        self.node.store.dbs[self.at.db].entry_mut(self.at.slot).expect(WRONG_SLOT).used_at_s = used_at_s;
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

    /// Lets another key's effects come before those of this change, as in LMOVE and RENAME.
    pub fn postpone(self) -> Postponed<'k, T> {
        self.at
    }

    fn announce(mut self, event: &str, changes: usize) {
        self.at.obligation.fulfil();
        let Edit { node, at: Postponed { db, key, slot, .. } } = self;
        node.announce(db, key, T::CLASS, event, changes);
        if node.store.dbs[db].entry(slot).is_some_and(|entry| entry.value.is_empty()) {
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
