//! Hashes, whose fields may have expiries.
//!
//! A small hash is one run of bytes with its fields in insertion order, as in Redis. Once one of its fields gets an
//! expiry, the hash becomes a `listpackex`: fields ordered by expiry, those without one last. A large hash is a table
//! in slot order. A hash never returns to a smaller encoding.
//!
//! Times are Unix milliseconds. A field is alive while `now_ms <= expires_at_ms`. Reads skip expired fields; everything
//! else, the length included, counts them until [`Hash::remove_expired`] removes them, as in Redis.

use std::collections::BTreeSet;

use super::limits::Limits;
use super::packed::{Found, Packed};
use super::slab_map::{SlabMap, scale};
use crate::version::Version;

/// Represents "no expiry". Sorts after every time, as fields without an expiry do.
const NEVER: i64 = i64::MAX;

/// A hash: a map from fields to values, both byte strings.
#[derive(Clone)]
pub struct Hash(Form);

/// Each form is boxed, so that hashes do not enlarge the values of other types. The hash of a lock takes one allocation of 48
/// bytes.
#[derive(Clone)]
enum Form {
    /// Entries in the order field, value, field, value, ….
    Listpack(Box<Packed>),
    /// Entries in the order field, value, expiry (eight bytes), field, …, sorted by expiry.
    ListpackEx(Box<Packed>),
    Table(Box<Table>),
}

#[derive(Clone, Default)]
struct Table {
    fields: SlabMap<Value>,
    /// The expiry and the slot of each field that has an expiry.
    expiries: BTreeSet<(i64, u32)>,
}

#[derive(Clone)]
struct Value {
    bytes: Box<[u8]>,
    expires_at_ms: i64,
}

/// One field, as iterators return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// Unix time in ms; `None` if the field does not expire.
    pub expires_at_ms: Option<i64>,
}

impl Field<'_> {
    /// Returns whether the field has expired.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end_ms| now_ms > end_ms)
    }
}

impl Default for Hash {
    fn default() -> Self {
        Hash(Form::Listpack(Box::default()))
    }
}

impl Hash {
    /// Creates an empty hash.
    pub fn new() -> Hash {
        Hash::default()
    }

    /// Returns a small hash of distinct fields: a `listpackex` sorted by expiry if `is_extended`, else in the given
    /// order.
    pub fn small(fields: &mut [Field], is_extended: bool) -> Hash {
        let mut packed = Packed::default();
        if !is_extended {
            let entries: Vec<&[u8]> = fields.iter().flat_map(|field| [field.name, field.value]).collect();
            packed.append(&entries);
            return Hash(Form::Listpack(Box::new(packed)));
        }
        fields.sort_by_key(|field| field.expires_at_ms.unwrap_or(NEVER));
        let ends: Vec<[u8; 8]> =
            fields.iter().map(|field| field.expires_at_ms.unwrap_or(NEVER).to_le_bytes()).collect();
        let triples = fields.iter().zip(&ends).flat_map(|(field, end)| [field.name, field.value, end]);
        packed.append(&triples.collect::<Vec<&[u8]>>());
        Hash(Form::ListpackEx(Box::new(packed)))
    }

    /// Returns the name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Form::Listpack(_) => "listpack",
            Form::ListpackEx(_) => "listpackex",
            Form::Table(_) => "hashtable",
        }
    }

    /// Returns the number of fields, expired ones included.
    pub fn len(&self) -> usize {
        match self.packed() {
            Some((packed, stride)) => packed.count() / stride,
            None => self.table().map_or(0, |table| table.fields.len()),
        }
    }

    /// Returns whether the hash has no fields, expired ones included.
    pub fn is_empty(&self) -> bool {
        match self.packed() {
            Some((packed, _)) => packed.is_empty(),
            None => self.table().is_none_or(|table| table.fields.is_empty()),
        }
    }

    /// Returns the packed entries of a small form, and the number of entries per field.
    fn packed(&self) -> Option<(&Packed, usize)> {
        match &self.0 {
            Form::Listpack(packed) => Some((packed, 2)),
            Form::ListpackEx(packed) => Some((packed, 3)),
            Form::Table(_) => None,
        }
    }

    fn packed_mut(&mut self) -> Option<(&mut Packed, usize)> {
        match &mut self.0 {
            Form::Listpack(packed) => Some((packed, 2)),
            Form::ListpackEx(packed) => Some((packed, 3)),
            Form::Table(_) => None,
        }
    }

    fn table(&self) -> Option<&Table> {
        match &self.0 {
            Form::Table(table) => Some(table),
            Form::Listpack(_) | Form::ListpackEx(_) => None,
        }
    }

    fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.0 {
            Form::Table(table) => Some(table),
            Form::Listpack(_) | Form::ListpackEx(_) => None,
        }
    }

    /// Returns a field, even if it has expired.
    pub fn field(&self, name: &[u8]) -> Option<Field<'_>> {
        match self.packed() {
            Some((packed, stride)) => {
                let Found { entry, next, .. } = packed.find(name, stride)?;
                Some(field_behind(packed, stride, entry, next).0)
            }
            None => {
                let fields = &self.table()?.fields;
                fields.entry(fields.find(name)?).map(table_field)
            }
        }
    }

    /// Returns the value of a field that is alive.
    pub fn get(&self, name: &[u8], now_ms: i64) -> Option<&[u8]> {
        self.field(name).filter(|field| !field.is_expired(now_ms)).map(|field| field.value)
    }

    /// Returns whether the hash has a field that is alive.
    pub fn contains(&self, name: &[u8], now_ms: i64) -> bool {
        self.get(name, now_ms).is_some()
    }

    /// Returns the expiry of a field: `None` if there is no such field, `Some(None)` if it has no expiry.
    pub fn expiry(&self, name: &[u8]) -> Option<Option<i64>> {
        self.field(name).map(|field| field.expires_at_ms)
    }

    /// Returns the earliest expiry of all fields.
    pub fn next_expiry_ms(&self) -> Option<i64> {
        match &self.0 {
            Form::Listpack(_) => None,
            Form::ListpackEx(packed) if packed.is_empty() => None,
            Form::ListpackEx(packed) => field_at(packed, 3, 0).0.expires_at_ms,
            Form::Table(table) => table.expiries.first().map(|&(expires_at_ms, _)| expires_at_ms),
        }
    }

    /// Returns all fields in order, expired ones included.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        let packed = self.packed().map(|(packed, stride)| {
            let mut position = 0;
            std::iter::from_fn(move || {
                let (field, next) = (position < packed.end()).then(|| field_at(packed, stride, position))?;
                position = next;
                Some(field)
            })
        });
        let table = self.table().map(|table| table.fields.iter().map(table_field));
        packed.into_iter().flatten().chain(table.into_iter().flatten())
    }

    /// Visits the next fields of a scan, as [`SlabMap::scan`] does; a small hash is visited whole.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Field<'_>)) -> u64 {
        match self.table() {
            Some(table) => table.fields.scan(cursor, count, |name, value| visit(table_field((name, value)))),
            None => {
                self.iter().for_each(visit);
                0
            }
        }
    }

    /// Returns the field that the random number `draw` selects, possibly an expired one.
    pub fn random(&self, draw: u64) -> Option<Field<'_>> {
        match self.table() {
            Some(table) => table.fields.entry(table.fields.random(draw)?).map(table_field),
            None => self.iter().nth(scale(draw, self.len())),
        }
    }

    /// Announces how many fields (duplicates included) one command is about to set. Since 7.2 a small hash becomes a
    /// table at once if they exceed its limit.
    pub fn expect(&mut self, fields: usize, limits: &Limits) {
        if limits.version >= Version::V7_2 && fields > limits.hash_max_listpack_entries {
            self.become_table();
        }
    }

    /// Sets a field and removes its expiry. Returns whether the field is new.
    pub fn set(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> bool {
        let is_new = self.set_keeping_expiry(name, value, limits);
        if !is_new {
            self.set_expiry(name, None);
        }
        is_new
    }

    /// Sets a field and keeps its expiry, as `HINCRBY` does. Returns whether the field is new.
    pub fn set_keeping_expiry(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> bool {
        if name.len().max(value.len()) > limits.hash_max_listpack_value {
            self.become_table();
        }
        let Some((packed, stride)) = self.packed_mut() else { return self.set_in_table(name, value) };
        let value_at = packed.find(name, stride).map(|found| found.next);
        match value_at {
            Some(start) => packed.replace(start..packed.skip(start, 1), &[value]),
            None => packed.append(&[name, value, &NEVER.to_le_bytes()][..stride]),
        }
        // The check is needed even if no field was added, because the limit may have been lowered. Each entry takes at
        // least one byte.
        let most_fields = packed.end() / stride;
        if most_fields > limits.hash_max_listpack_entries && self.len() > limits.hash_max_listpack_entries {
            self.become_table();
        }
        value_at.is_none()
    }

    fn set_in_table(&mut self, name: &[u8], value: &[u8]) -> bool {
        let Some(table) = self.table_mut() else { return false };
        if let Some(old) = table.fields.get_mut(name) {
            old.bytes = value.into();
            return false;
        }
        table.fields.insert(name, Value { bytes: value.into(), expires_at_ms: NEVER });
        true
    }

    /// Removes a field. Returns whether it existed, expired or not.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        if let Some((packed, stride)) = self.packed_mut() {
            let position = packed.find(name, stride).map(|found| found.position);
            if let Some(position) = position {
                packed.remove(position, stride);
            }
            return position.is_some();
        }
        let Some(table) = self.table_mut() else { return false };
        let Some(slot) = table.fields.find(name) else { return false };
        let Some((_, value)) = table.fields.remove_slot(slot) else { return false };
        table.expiries.remove(&(value.expires_at_ms, slot));
        true
    }

    /// Sets or removes the expiry of a field (Unix time in ms, less than `i64::MAX`). Returns whether the field exists.
    ///
    /// A small hash becomes a `listpackex` when it gets its first expiry.
    pub fn set_expiry(&mut self, name: &[u8], expires_at_ms: Option<i64>) -> bool {
        let Some(old) = self.expiry(name) else { return false };
        if old.is_none() && expires_at_ms.is_none() {
            return true;
        }
        self.become_extended();
        if let Some((packed, _)) = self.packed_mut() {
            set_packed_expiry(packed, name, expires_at_ms.unwrap_or(NEVER));
        } else if let Some(table) = self.table_mut() {
            table.set_expiry(name, expires_at_ms.unwrap_or(NEVER));
        }
        true
    }

    /// Sets or removes the expiry of a field as [`set_expiry`](Self::set_expiry) does. In Valkey, a small hash becomes a table
    /// when it gets its first expiry.
    pub fn set_expiry_in(&mut self, name: &[u8], expires_at_ms: Option<i64>, limits: &Limits) -> bool {
        if limits.version.is_valkey() && expires_at_ms.is_some() && self.expiry(name).is_some() {
            self.become_table();
        }
        self.set_expiry(name, expires_at_ms)
    }

    /// Converts a small hash to the form in which Redis keeps hashes with expiries, for a command that sets expiries even if
    /// it then sets none. Valkey waits for the first one.
    pub fn prepare_expiries(&mut self, limits: &Limits) {
        if !limits.version.is_valkey() {
            self.become_extended();
        }
    }

    /// Converts a small hash to a `listpackex`. Commands that set expiries do this even if they then set none.
    fn become_extended(&mut self) {
        if let Form::Listpack(packed) = &self.0 {
            let mut extended = Packed::default();
            let entries: Vec<&[u8]> = packed.iter().collect();
            let never = NEVER.to_le_bytes();
            let entries: Vec<&[u8]> =
                entries.chunks(2).flat_map(|pair| [pair[0], pair[1], never.as_slice()]).collect();
            extended.append(&entries);
            self.0 = Form::ListpackEx(Box::new(extended));
        }
    }

    /// Removes the expired fields and returns their names, earliest expiry first.
    pub fn remove_expired(&mut self, now_ms: i64) -> Vec<Box<[u8]>> {
        let mut names = Vec::new();
        while self.next_expiry_ms().is_some_and(|end_ms| now_ms > end_ms) {
            let name: Box<[u8]> = match self.table() {
                Some(table) => {
                    let first = table.expiries.first();
                    first.and_then(|&(_, slot)| table.fields.key(slot)).unwrap_or_default().into()
                }
                None => self.iter().next().map(|field| field.name.into()).unwrap_or_default(),
            };
            if !self.remove(&name) {
                break;
            }
            names.push(name);
        }
        names
    }

    /// Converts the hash to a table, whatever its size.
    pub fn become_table(&mut self) {
        if self.table().is_some() {
            return;
        }
        let mut table = Table::default();
        for field in self.iter() {
            table.fields.insert(field.name, Value { bytes: field.value.into(), expires_at_ms: NEVER });
            if let Some(expires_at_ms) = field.expires_at_ms {
                table.set_expiry(field.name, expires_at_ms);
            }
        }
        self.0 = Form::Table(Box::new(table));
    }
}

impl Table {
    fn set_expiry(&mut self, name: &[u8], expires_at_ms: i64) {
        let Some(slot) = self.fields.find(name) else { return };
        let Some(value) = self.fields.value_mut(slot) else { return };
        let old = std::mem::replace(&mut value.expires_at_ms, expires_at_ms);
        self.expiries.remove(&(old, slot));
        if expires_at_ms != NEVER {
            self.expiries.insert((expires_at_ms, slot));
        }
    }
}

fn table_field<'a>((name, value): (&'a [u8], &'a Value)) -> Field<'a> {
    Field { name, value: &value.bytes, expires_at_ms: some_time(value.expires_at_ms) }
}

fn some_time(expires_at_ms: i64) -> Option<i64> {
    (expires_at_ms != NEVER).then_some(expires_at_ms)
}

/// Returns the field that starts at `position`, and the position of the next field.
fn field_at(packed: &Packed, stride: usize, position: usize) -> (Field<'_>, usize) {
    let (name, value_at) = packed.at(position);
    field_behind(packed, stride, name, value_at)
}

/// Returns a field, given its name and the position of its value, and the position of the next field.
fn field_behind<'a>(
    packed: &'a Packed,
    stride: usize,
    name: &'a [u8],
    value_at: usize,
) -> (Field<'a>, usize) {
    let (value, next) = packed.at(value_at);
    if stride == 2 {
        return (Field { name, value, expires_at_ms: None }, next);
    }
    let (expiry, next) = packed.at(next);
    let expires_at_ms = expiry.try_into().map_or(NEVER, i64::from_le_bytes);
    (Field { name, value, expires_at_ms: some_time(expires_at_ms) }, next)
}

/// Moves a field to where its new expiry sorts: before fields with the same or a later expiry, or to the end if it has
/// none.
fn set_packed_expiry(packed: &mut Packed, name: &[u8], expires_at_ms: i64) {
    let Some(Found { position, entry, next }) = packed.find(name, 3) else { return };
    let (field, _) = field_behind(packed, 3, entry, next);
    let (name, value): (Box<[u8]>, Box<[u8]>) = (field.name.into(), field.value.into());
    packed.remove(position, 3);
    let mut position = 0;
    while position < packed.end() {
        let (other, next) = field_at(packed, 3, position);
        if other.expires_at_ms.unwrap_or(NEVER) >= expires_at_ms && expires_at_ms != NEVER {
            break;
        }
        position = next;
    }
    packed.replace(position..position, &[&name, &value, &expires_at_ms.to_le_bytes()]);
}

#[cfg(test)]
mod tests;
