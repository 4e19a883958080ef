//! Reads a value of any type and encoding, and chooses its encoding by the limits. Returns `None` if the bytes are
//! malformed.
//!
//! As in Redis, a loaded listpack may contain longer members than commands would put there: only their number is
//! checked.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::reader::Reader;
use super::{intset, kinds, listpack, stream, ziplist, zipmap};
use crate::num::{parse_f64, parse_i64};
use crate::store::hash::Field;
use crate::store::list::End;
use crate::store::{Hash, Limits, List, Set, SortedSet, StringValue, Value};

/// The latest expiry of a field: the largest Unix time in ms of 48 bits, minus two.
const MAX_FIELD_EXPIRY_MS: i64 = (1 << 48) - 2;

/// Reads a value after its type and encoding.
pub fn value(reader: &mut Reader, limits: &Limits) -> Option<Value> {
    let kind = reader.byte()?;
    content(reader, kind, limits)
}

/// Reads a value of this type and encoding.
pub fn content(reader: &mut Reader, kind: u8, limits: &Limits) -> Option<Value> {
    if kind > kinds::newest(limits.version) {
        return None;
    }
    let value = match kind {
        kinds::STRING => StringValue::new(&reader.string()?).into(),
        kinds::LIST => list(reader, limits)?.into(),
        kinds::LIST_ZIPLIST => ziplist_list(reader)?.into(),
        kinds::LIST_QUICKLIST | kinds::LIST_QUICKLIST_2 => quicklist(reader, limits, kind)?.into(),
        kinds::SET => set(reader, limits)?.into(),
        kinds::SET_INTSET => integer_set(reader, limits)?.into(),
        kinds::SET_LISTPACK => small_set(reader, limits)?.into(),
        kinds::ZSET | kinds::ZSET_2 => sorted_set(reader, limits, kind)?.into(),
        kinds::ZSET_ZIPLIST | kinds::ZSET_LISTPACK => small_sorted_set(reader, limits, kind)?.into(),
        kinds::HASH => hash(reader, limits)?.into(),
        kinds::HASH_ZIPMAP | kinds::HASH_ZIPLIST | kinds::HASH_LISTPACK => {
            small_hash(reader, limits, kind)?.into()
        }
        kinds::STREAM_LISTPACKS
        | kinds::STREAM_LISTPACKS_2
        | kinds::STREAM_LISTPACKS_3
        | kinds::STREAM_LISTPACKS_4 => stream::load(reader, limits, kind)?.into(),
        kinds::HASH_2 if limits.version.is_valkey() => valkey_hash(reader, limits)?.into(),
        kinds::HASH_METADATA | kinds::HASH_METADATA_PRE_GA => expiring_hash(reader, limits, kind)?.into(),
        kinds::HASH_LISTPACK_EX | kinds::HASH_LISTPACK_EX_PRE_GA => {
            small_expiring_hash(reader, limits, kind)?.into()
        }
        _ => return None,
    };
    let value: Value = value;
    (!value.is_empty()).then_some(value)
}

/// Returns the entries of a value or list node, given its serialized bytes.
fn entries(kind: u8, bytes: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    match kind {
        kinds::LIST_ZIPLIST | kinds::LIST_QUICKLIST | kinds::ZSET_ZIPLIST | kinds::HASH_ZIPLIST => {
            ziplist::entries(bytes)
        }
        kinds::HASH_ZIPMAP => zipmap::entries(bytes),
        _ => listpack::entries(bytes),
    }
}

fn all_differ<'a>(mut names: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut seen = BTreeSet::new();
    names.all(|name| seen.insert(name))
}

// ---- lists -----------------------------------------------------------------------------------------------------------

fn list(reader: &mut Reader, limits: &Limits) -> Option<List> {
    let mut list = List::quicklist();
    for _ in 0..reader.length()? {
        list.push(End::Tail, &reader.string()?, limits);
    }
    list.become_listpack_if_possible(limits);
    Some(list)
}

/// Reads a list that consists of one ziplist. The result is a quicklist, however small.
fn ziplist_list(reader: &mut Reader) -> Option<List> {
    let mut list = List::quicklist();
    let bytes = reader.string()?;
    list.push_node(entries(kinds::LIST_ZIPLIST, &bytes)?.iter().map(|element| &**element));
    Some(list)
}

/// Reads a list node by node. The newer format marks plain nodes.
fn quicklist(reader: &mut Reader, limits: &Limits, kind: u8) -> Option<List> {
    let mut list = List::quicklist();
    for _ in 0..reader.length()? {
        let container = if kind == kinds::LIST_QUICKLIST_2 { reader.length()? } else { kinds::NODE_PACKED };
        let bytes = reader.string()?;
        match container {
            kinds::NODE_PLAIN if !bytes.is_empty() => list.push_plain_node(&bytes),
            kinds::NODE_PACKED => list.push_node(entries(kind, &bytes)?.iter().map(|element| &**element)),
            _ => return None,
        }
    }
    list.become_listpack_if_possible(limits);
    Some(list)
}

// ---- sets ------------------------------------------------------------------------------------------------------------

fn set(reader: &mut Reader, limits: &Limits) -> Option<Set> {
    let count = reader.length()?;
    let is_small = count <= limits.set_max_intset_entries as u64;
    let mut set = if is_small { Set::intset() } else { Set::table() };
    for _ in 0..count {
        if !set.add(&reader.string()?, limits) {
            return None;
        }
    }
    Some(set)
}

fn integer_set(reader: &mut Reader, limits: &Limits) -> Option<Set> {
    let mut set = Set::intset();
    let mut digits = itoa::Buffer::new();
    for number in intset::decode(&reader.string()?)? {
        set.add(digits.format(number).as_bytes(), limits);
    }
    Some(set)
}

fn small_set(reader: &mut Reader, limits: &Limits) -> Option<Set> {
    let bytes = reader.string()?;
    let entries = entries(kinds::SET_LISTPACK, &bytes)?;
    let members: Vec<&[u8]> = entries.iter().map(|member| &**member).collect();
    all_differ(members.iter().copied()).then(|| Set::small(&members, limits))
}

// ---- sorted sets -----------------------------------------------------------------------------------------------------

fn sorted_set(reader: &mut Reader, limits: &Limits, kind: u8) -> Option<SortedSet> {
    let mut set = SortedSet::skiplist();
    for _ in 0..reader.length()? {
        let member = reader.string()?;
        let score = if kind == kinds::ZSET { reader.double_text()? } else { reader.double()? };
        if set.add(&member, score, limits).is_some() {
            return None;
        }
    }
    set.become_listpack_if_possible(limits);
    Some(set)
}

fn small_sorted_set(reader: &mut Reader, limits: &Limits, kind: u8) -> Option<SortedSet> {
    let limits = Limits { zset_max_listpack_value: usize::MAX, ..limits.clone() };
    let bytes = reader.string()?;
    let entries = entries(kind, &bytes)?;
    let (pairs, []) = entries.as_chunks::<2>() else { return None };
    let mut set = SortedSet::for_members(0, 0, &limits);
    for [member, score] in pairs {
        if set.add(member, parse_f64(score)?, &limits).is_some() {
            return None;
        }
    }
    Some(set)
}

// ---- hashes ----------------------------------------------------------------------------------------------------------

/// A field as read from the payload, its value and its expiry.
type FieldParts<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>, Option<i64>);

fn hash(reader: &mut Reader, limits: &Limits) -> Option<Hash> {
    let mut fields = Vec::new();
    for _ in 0..reader.length()? {
        fields.push((reader.string()?, reader.string()?, None));
    }
    hash_of(&fields, false, longest(&fields) <= limits.hash_max_listpack_value, limits)
}

fn small_hash(reader: &mut Reader, limits: &Limits, kind: u8) -> Option<Hash> {
    let bytes = reader.string()?;
    let entries = entries(kind, &bytes)?;
    let (pairs, []) = entries.as_chunks::<2>() else { return None };
    let fields: Vec<FieldParts> =
        pairs.iter().map(|[name, value]| (name.clone(), value.clone(), None)).collect();
    let is_short = kind != kinds::HASH_ZIPMAP || longest(&fields) <= limits.hash_max_listpack_value;
    hash_of(&fields, false, is_short, limits)
}

/// Reads a hash whose expiries are relative to the earliest of them, or to the epoch in the format that does not state
/// the earliest.
fn expiring_hash(reader: &mut Reader, limits: &Limits, kind: u8) -> Option<Hash> {
    let earliest_ms =
        if kind == kinds::HASH_METADATA { i64::from_le_bytes(reader.array()?).checked_sub(1)? } else { 0 };
    let mut fields = Vec::new();
    for _ in 0..reader.length()? {
        let later_ms = i64::try_from(reader.length()?).ok()?;
        let expires_at_ms = if later_ms == 0 { 0 } else { earliest_ms.checked_add(later_ms)? };
        fields.push((reader.string()?, reader.string()?, field_expiry(expires_at_ms)?));
    }
    hash_of(&fields, true, longest(&fields) <= limits.hash_max_listpack_value, limits)
}

/// Reads a hash of Valkey, in which each field has its expiry, or -1.
fn valkey_hash(reader: &mut Reader, limits: &Limits) -> Option<Hash> {
    let mut fields = Vec::new();
    for _ in 0..reader.length()? {
        let (name, value) = (reader.string()?, reader.string()?);
        let expires_at_ms = match i64::from_le_bytes(reader.array()?) {
            -1 => None,
            end_ms @ 0.. if end_ms < i64::MAX => Some(end_ms),
            _ => return None,
        };
        fields.push((name, value, expires_at_ms));
    }
    let expires = fields.iter().any(|(_, _, expires_at_ms)| expires_at_ms.is_some());
    hash_of(&fields, expires, false, limits)
}

fn small_expiring_hash(reader: &mut Reader, limits: &Limits, kind: u8) -> Option<Hash> {
    if kind == kinds::HASH_LISTPACK_EX {
        // Skips the earliest expiry, which the fields contain too.
        reader.take(8)?;
    }
    let bytes = reader.string()?;
    let entries = entries(kind, &bytes)?;
    let (triples, []) = entries.as_chunks::<3>() else { return None };
    let mut fields = Vec::with_capacity(triples.len());
    for [name, value, expiry] in triples {
        fields.push((name.clone(), value.clone(), field_expiry(parse_i64(expiry)?)?));
    }
    hash_of(&fields, true, true, limits)
}

/// Returns a stored expiry, where 0 means none, or `None` if it is out of range.
fn field_expiry(expires_at_ms: i64) -> Option<Option<i64>> {
    match expires_at_ms {
        0 => Some(None),
        1..=MAX_FIELD_EXPIRY_MS => Some(Some(expires_at_ms)),
        _ => None,
    }
}

/// Returns the length of the longest field or value.
fn longest(fields: &[FieldParts]) -> usize {
    fields.iter().map(|(name, value, _)| name.len().max(value.len())).max().unwrap_or(0)
}

/// Builds a hash from these fields. It is small unless there are too many fields or `is_short` is false. Returns `None`
/// if two fields have the same name.
fn hash_of(fields: &[FieldParts], is_extended: bool, is_short: bool, limits: &Limits) -> Option<Hash> {
    let mut fields: Vec<Field> = fields
        .iter()
        .map(|(name, value, expires_at_ms)| Field { name, value, expires_at_ms: *expires_at_ms })
        .collect();
    if !all_differ(fields.iter().map(|field| field.name)) {
        return None;
    }
    let mut hash = Hash::small(&mut fields, is_extended);
    if !is_short || fields.len() > limits.hash_max_listpack_entries {
        hash.become_table();
    }
    Some(hash)
}
