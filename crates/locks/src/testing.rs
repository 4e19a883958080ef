//! Tests a model without a server: a test states what a script did to the keys, and the model judges it.

use super::invariant::Invariant;
use super::model::*;
use super::view::View;
use redlatch_core::store::list::End;
use redlatch_core::store::{Hash, Limits, List, Now, SortedSet, Store, StringValue, Value};
use redlatch_core::version::Version;

pub struct Keys {
    store: Store,
    limits: Limits,
}

impl Keys {
    pub fn new() -> Keys {
        let limits = Limits::for_version(Version::V7_4);
        let now = Now { mono_us: 0, wall_offset_ms: 1_700_000_000_000 };
        Keys { store: Store::new(1, now, limits.clone()), limits }
    }

    pub fn now_ms(&self) -> i64 {
        self.store.now.wall_ms()
    }

    pub fn advance(&mut self, ms: u64) {
        self.store.now.mono_us += ms * 1_000;
    }

    pub fn view(&self) -> View<'_> {
        View::new(&self.store, self.store.now)
    }

    pub fn delete(&mut self, key: &str) {
        if let Some(slot) = self.store.dbs[0].find(key.as_bytes()) {
            self.store.remove(0, slot);
        }
    }

    pub fn set(&mut self, key: &str, value: Value, ttl_ms: Option<i64>) {
        self.delete(key);
        let end_ms = ttl_ms.map(|ttl_ms| self.now_ms() + ttl_ms);
        let slot = self.store.insert(0, key.as_bytes(), value);
        self.store.set_expiry(0, slot, end_ms);
    }

    pub fn set_number(&mut self, key: &str, number: i64) {
        let text = number.to_string();
        self.set(key, Value::String(StringValue::new(text.as_bytes())), None);
    }

    pub fn set_list(&mut self, key: &str, elements: &[&str]) {
        let mut list = List::new(&self.limits);
        for element in elements {
            list.push(End::Tail, element.as_bytes(), &self.limits);
        }
        self.set(key, Value::List(list), None);
    }

    pub fn set_sorted_set(&mut self, key: &str, members: &[(&[u8], i64)]) {
        let mut set = SortedSet::for_members(members.len(), 64, &self.limits);
        for (member, score) in members {
            set.add(member, *score as f64, &self.limits);
        }
        self.set(key, Value::SortedSet(set), None);
    }

    pub fn set_hash(&mut self, key: &str, fields: &[(&str, &str)], ttl_ms: i64) {
        let mut hash = Hash::new();
        for (name, value) in fields {
            hash.set(name.as_bytes(), value.as_bytes(), &self.limits);
        }
        self.set(key, Value::Hash(hash), Some(ttl_ms));
    }

    /// Judges one operation: `run` does to the keys what the script would do. Returns the invariant that the operation
    /// violates, if any.
    pub fn judge(
        &mut self,
        model: &mut dyn Model,
        (operation, owner, choice): (&str, usize, u8),
        (reply, messages): (Reply, &[Message]),
        run: impl FnOnce(&mut Keys, &Call),
    ) -> Option<Invariant> {
        let index = model.operations().iter().position(|row| row.name == operation).expect(operation);
        let mut call = Call { operation: index, owner, count: 1, now_ms: self.now_ms(), ..Call::default() };
        assert!(model.ask(&mut call, choice), "{operation} is not sent now");
        model.before(&call, self.view());
        run(self, &call);
        let wanted = Wanted::default();
        let mut verdict = Verdict::new(super::invariant::Rules::AsDocumented, &wanted);
        verdict.operation = model.operations()[call.operation].name;
        let out = Outcome { reply, messages, again: false };
        judge(model, Observation { call: &call, out, view: self.view() }, &mut verdict);
        verdict.found.map(|violation| violation.invariant)
    }
}

pub fn message(channel: &str, payload: &str) -> Message {
    Message { channel: channel.as_bytes().to_vec(), payload: payload.as_bytes().to_vec() }
}

pub const NO_MESSAGES: &[Message] = &[];
