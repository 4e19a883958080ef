//! What a key can hold.

use super::{Hash, Limits, List, Now, Set, SortedSet, StringValue};

/// A value of one of Redis's types.
#[derive(Clone)]
pub enum Value {
    String(StringValue),
    List(List),
    Set(Set),
    SortedSet(SortedSet),
    Hash(Hash),
}

/// Does the same with whatever type a value is of.
macro_rules! each {
    ($value:expr, $inner:ident => $body:expr) => {
        match $value {
            Value::String($inner) => $body,
            Value::List($inner) => $body,
            Value::Set($inner) => $body,
            Value::SortedSet($inner) => $body,
            Value::Hash($inner) => $body,
        }
    };
}

impl Value {
    /// The name that TYPE gives.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::SortedSet(_) => "zset",
            Value::Hash(_) => "hash",
        }
    }

    /// The name that OBJECT ENCODING gives.
    pub fn encoding(&self) -> &'static str {
        each!(self, value => value.encoding())
    }

    /// An estimate, for MEMORY USAGE and INFO.
    pub fn memory_bytes(&self) -> usize {
        const ENTRY: usize = 64;
        ENTRY + each!(self, value => value.memory_bytes())
    }

    /// Whether a collection has lost its last element; strings may be empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Value::String(_) => false,
            Value::List(value) => value.is_empty(),
            Value::Set(value) => value.is_empty(),
            Value::SortedSet(value) => value.is_empty(),
            Value::Hash(value) => value.is_empty(),
        }
    }

    /// OBJECT REFCOUNT: Redis shares the integers below 10,000 among all keys.
    pub fn refcount(&self) -> i64 {
        match self {
            Value::String(value) if value.is_int() && value.to_int().is_some_and(|n| (0..10_000).contains(&n)) => {
                i32::MAX as i64
            }
            _ => 1,
        }
    }

    pub fn has_expired_fields(&self, now: Now) -> bool {
        match self {
            Value::Hash(hash) => hash.next_expiry_ms().is_some_and(|end_ms| now.wall_ms() > end_ms),
            _ => false,
        }
    }
}

/// A type that a command expects a key to hold.
pub trait Kind: Sized {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// What a new key of this type begins with.
    fn empty(limits: &Limits) -> Value;
}

macro_rules! kind {
    ($type:ident, $variant:ident, $empty:expr) => {
        impl Kind for $type {
            fn of(value: &Value) -> Option<&Self> {
                match value {
                    Value::$variant(inner) => Some(inner),
                    _ => None,
                }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(inner) => Some(inner),
                    _ => None,
                }
            }

            fn empty(limits: &Limits) -> Value {
                #[allow(clippy::redundant_closure_call)]
                Value::$variant($empty(limits))
            }
        }

        impl From<$type> for Value {
            fn from(inner: $type) -> Value {
                Value::$variant(inner)
            }
        }
    };
}

kind!(StringValue, String, |_| StringValue::new_raw(b""));
kind!(List, List, List::new);
kind!(Set, Set, |_| Set::new());
kind!(SortedSet, SortedSet, |_| SortedSet::new());
kind!(Hash, Hash, |_| Hash::new());
