//! The values that keys can hold.

use super::hash::Field;
use super::{Hash, Limits, List, Now, Set, SortedSet, Stream, StringValue};
use crate::version::Version;

/// A value of one of Redis's types.
#[derive(Clone)]
pub enum Value {
    String(StringValue),
    List(List),
    Set(Set),
    SortedSet(SortedSet),
    Hash(Hash),
    Stream(Box<Stream>),
}

impl Value {
    /// Returns the name that TYPE reports.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::SortedSet(_) => "zset",
            Value::Hash(_) => "hash",
            Value::Stream(_) => "stream",
        }
    }

    /// Returns the name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match self {
            Value::String(value) => value.encoding(),
            Value::List(value) => value.encoding(),
            Value::Set(value) => value.encoding(),
            Value::SortedSet(value) => value.encoding(),
            Value::Hash(value) => value.encoding(),
            Value::Stream(_) => "stream",
        }
    }

    /// Returns an estimate of the memory used, in bytes, for MEMORY USAGE, INFO and eviction. Looks at `samples` elements.
    pub fn memory_bytes(&self, samples: usize) -> usize {
        const ENTRY: usize = 64;
        let scale = |bytes: usize, len: usize| bytes * len / len.min(samples).max(1);
        ENTRY
            + match self {
                Value::String(value) => value.len(),
                Value::List(value) => {
                    scale(value.iter().take(samples).map(|element| element.len() + 16).sum(), value.len())
                }
                Value::Set(value) => {
                    let members = value.iter().take(samples);
                    scale(members.map(|member| member.to_vec().len() + 16).sum(), value.len())
                }
                Value::SortedSet(value) => {
                    scale(value.iter().take(samples).map(|(member, _)| member.len() + 24).sum(), value.len())
                }
                Value::Hash(value) => {
                    scale(value.iter().take(samples).map(|field| field_bytes(&field)).sum(), value.len())
                }
                Value::Stream(value) => value.memory_bytes(),
            }
    }

    /// Returns whether a collection has lost its last element. A string never counts as empty, nor does a stream.
    pub fn is_empty(&self) -> bool {
        match self {
            Value::String(_) | Value::Stream(_) => false,
            Value::List(value) => value.is_empty(),
            Value::Set(value) => value.is_empty(),
            Value::SortedSet(value) => value.is_empty(),
            Value::Hash(value) => value.is_empty(),
        }
    }

    /// Returns the number that OBJECT REFCOUNT reports: Redis shares the integers below 10,000 among all keys.
    pub fn refcount(&self, version: Version) -> i64 {
        // Redis 8.2 and Valkey share no integers.
        let shares = !version.is_valkey() && version < Version::V8_2;
        match self {
            Value::String(StringValue::Int(0..10_000)) if shares => i32::MAX as i64,
            _ => 1,
        }
    }

    /// Returns whether the value is a hash with expired fields.
    pub fn has_expired_fields(&self, now: Now) -> bool {
        match self {
            Value::Hash(hash) => hash.next_expiry_ms().is_some_and(|end_ms| now.wall_ms() > end_ms),
            _ => false,
        }
    }
}

fn field_bytes(field: &Field) -> usize {
    field.name.len() + field.value.len() + if field.expires_at_ms.is_some() { 16 } else { 4 }
}

/// The type of value that a command expects.
pub trait ValueType: Sized {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// Returns the value of a new key of this type.
    fn empty(limits: &Limits) -> Value;
}

macro_rules! kind {
    ($type:ident, $variant:ident, $empty:expr) => {
        impl ValueType for $type {
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

kind!(StringValue, String, |_| StringValue::text(b""));
kind!(List, List, List::new);
kind!(Set, Set, |_| Set::intset());
kind!(SortedSet, SortedSet, |limits| SortedSet::for_members(0, 0, limits));
kind!(Hash, Hash, |_| Hash::new());

impl ValueType for Stream {
    fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Stream(inner) => Some(inner),
            _ => None,
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        match value {
            Value::Stream(inner) => Some(inner),
            _ => None,
        }
    }

    fn empty(limits: &Limits) -> Value {
        Stream::new(limits).into()
    }
}

impl From<Stream> for Value {
    fn from(inner: Stream) -> Value {
        Value::Stream(Box::new(inner))
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn inline_values_do_not_enlarge_the_enum() {
        assert_eq!(size_of::<Value>(), 24);
        assert_eq!(size_of::<crate::store::Entry>(), 40);
    }
}
