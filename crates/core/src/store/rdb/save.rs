//! Writes a value: first its type and encoding, then its content.

use super::listpack::Listpack;
use super::writer::Writer;
use super::{intset, kinds, stream};
use crate::num::format_double;
use crate::store::hash::Field;
use crate::store::set::Member;
use crate::store::{Hash, List, Set, SortedSet, Value};
use crate::version::Version;

/// Writes a value in the format of a release.
pub fn value(writer: &mut Writer, value: &Value, version: Version) {
    match value {
        Value::String(string) => {
            writer.byte(kinds::STRING);
            writer.string(string.bytes(&mut itoa::Buffer::new()));
        }
        Value::List(list) => save_list(writer, list),
        Value::Set(set) => save_set(writer, set),
        Value::SortedSet(sorted_set) => save_sorted_set(writer, sorted_set, version),
        Value::Hash(hash) => save_hash(writer, hash, version),
        Value::Stream(stream) => stream::save(writer, stream, version),
    }
}

fn save_list(writer: &mut Writer, list: &List) {
    writer.byte(kinds::LIST_QUICKLIST_2);
    writer.length(list.nodes().len() as u64);
    for node in list.nodes() {
        if node.is_plain {
            writer.length(kinds::NODE_PLAIN);
            node.iter().for_each(|element| writer.string(element));
        } else {
            writer.length(kinds::NODE_PACKED);
            write_listpack(writer, node.iter());
        }
    }
}

fn save_set(writer: &mut Writer, set: &Set) {
    let mut digits = itoa::Buffer::new();
    match set.encoding() {
        "intset" => {
            let numbers: Vec<i64> = set
                .iter()
                .filter_map(|member| match member {
                    Member::Int(number) => Some(number),
                    Member::Bytes(_) => None,
                })
                .collect();
            writer.byte(kinds::SET_INTSET);
            writer.string(&intset::encode(&numbers));
        }
        "listpack" => {
            writer.byte(kinds::SET_LISTPACK);
            let mut listpack = Listpack::new();
            set.iter().for_each(|member| listpack.push(member.bytes(&mut digits)));
            writer.string(&listpack.finish());
        }
        _ => {
            writer.byte(kinds::SET);
            writer.length(set.len() as u64);
            set.iter().for_each(|member| writer.string(member.bytes(&mut digits)));
        }
    }
}

fn save_sorted_set(writer: &mut Writer, sorted_set: &SortedSet, version: Version) {
    if sorted_set.encoding() == "listpack" {
        writer.byte(kinds::ZSET_LISTPACK);
        let mut listpack = Listpack::new();
        for (member, score) in sorted_set.iter() {
            listpack.push(member);
            listpack.push(score_text(score, version).as_bytes());
        }
        writer.string(&listpack.finish());
        return;
    }
    writer.byte(kinds::ZSET_2);
    writer.length(sorted_set.len() as u64);
    // In descending order: a skiplist grows fastest at its front.
    for (member, score) in sorted_set.iter_back_from(sorted_set.len().saturating_sub(1)) {
        writer.string(member);
        writer.raw(&score.to_le_bytes());
    }
}

/// Returns a score as a listpack stores it: whole numbers of up to 62 bits have all their digits, even where a reply
/// would use an exponent.
fn score_text(score: f64, version: Version) -> String {
    const MOST: f64 = (1u64 << 62) as f64;
    if score.fract() == 0.0 && (-MOST..=MOST).contains(&score) {
        return (score as i64).to_string();
    }
    format_double(score, version)
}

fn save_hash(writer: &mut Writer, hash: &Hash, version: Version) {
    let next_expiry_ms = hash.next_expiry_ms().unwrap_or(0);
    match hash.encoding() {
        "listpack" => {
            writer.byte(kinds::HASH_LISTPACK);
            write_listpack(writer, hash.iter().flat_map(|field| [field.name, field.value]));
        }
        "listpackex" => {
            writer.byte(kinds::HASH_LISTPACK_EX);
            writer.raw(&next_expiry_ms.to_le_bytes());
            write_extended(writer, hash);
        }
        _ if next_expiry_ms == 0 => {
            writer.byte(kinds::HASH);
            writer.length(hash.len() as u64);
            hash.iter().for_each(|field| write_field(writer, field));
        }
        _ if version.is_valkey() => {
            writer.byte(kinds::HASH_2);
            writer.length(hash.len() as u64);
            for field in hash.iter() {
                write_field(writer, field);
                writer.raw(&field.expires_at_ms.unwrap_or(-1).to_le_bytes());
            }
        }
        _ => {
            writer.byte(kinds::HASH_METADATA);
            writer.raw(&next_expiry_ms.to_le_bytes());
            writer.length(hash.len() as u64);
            for field in hash.iter() {
                // 0 means no expiry, so the difference to the earliest expiry is counted from 1.
                let later_ms = field.expires_at_ms.map_or(0, |end_ms| end_ms - next_expiry_ms + 1);
                writer.length(later_ms as u64);
                write_field(writer, field);
            }
        }
    }
}

fn write_field(writer: &mut Writer, field: Field) {
    writer.string(field.name);
    writer.string(field.value);
}

/// Writes fields, values and expiries; 0 means no expiry.
fn write_extended(writer: &mut Writer, hash: &Hash) {
    let mut listpack = Listpack::new();
    let mut digits = itoa::Buffer::new();
    for field in hash.iter() {
        listpack.push(field.name);
        listpack.push(field.value);
        listpack.push(digits.format(field.expires_at_ms.unwrap_or(0)).as_bytes());
    }
    writer.string(&listpack.finish());
}

fn write_listpack<'a>(writer: &mut Writer, entries: impl Iterator<Item = &'a [u8]>) {
    let mut listpack = Listpack::new();
    entries.for_each(|entry| listpack.push(entry));
    writer.string(&listpack.finish());
}
