//! A node of a stream: a listpack with up to some hundred entries, in Redis's layout (`t_stream.c`).
//!
//! ```text
//! count deleted fields field … field 0               the master entry, whose field names others share
//! flags ms seq value … value parts                   an entry with the master entry's fields
//! flags ms seq fields field value … value parts      any other entry
//! ```
//!
//! `ms` and `seq` are differences to the node's id, `parts` is the number of parts before it. A deleted entry keeps its place
//! and gets a flag.

use std::ops::Range;

use super::id::StreamId;
use crate::store::rdb::listpack::{self, Element};

const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;
/// The parts of every entry: flags, ms and seq.
const FIXED_PARTS: usize = 3;

/// The largest listpack that Redis makes for a stream, in bytes.
pub const MAX_BYTES: usize = 1 << 30;

/// A node, as the bytes of its listpack. The id of its first entry is known to the stream.
#[derive(Clone, Debug)]
pub struct Node(Vec<u8>);

/// The master entry.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The number of entries that are not deleted.
    pub count: usize,
    pub deleted: usize,
    fields: usize,
    fields_at: usize,
    entries_at: usize,
}

/// An entry of a stream, deleted or not.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub id: StreamId,
    pub is_deleted: bool,
    /// The number of pairs of a field and its value.
    pub len: usize,
    node: &'a Node,
    flags_at: usize,
    /// The first field name, and the first part after `fields`.
    fields_at: usize,
    body_at: usize,
    has_own_fields: bool,
}

impl<'a> Entry<'a> {
    /// Returns the fields and their values.
    pub fn pairs(&self) -> impl Iterator<Item = (Element<'a>, Element<'a>)> + use<'a> {
        let Entry { node, len, has_own_fields, .. } = *self;
        let (mut field_at, mut value_at) = (self.fields_at, self.body_at);
        (0..len).map(move |_| {
            let (field, next) = node.part(if has_own_fields { value_at } else { field_at });
            (field_at, value_at) = if has_own_fields { (field_at, next) } else { (next, value_at) };
            let (value, next) = node.part(value_at);
            value_at = next;
            (field, value)
        })
    }

    /// Returns the position after the entry.
    fn end(&self) -> usize {
        let parts = if self.has_own_fields { 2 * self.len } else { self.len };
        (0..=parts).fold(self.body_at, |at, _| listpack::next(&self.node.0, at))
    }
}

impl Node {
    /// Creates a node with the master entry of its first entry, and without entries.
    pub fn new(fields: &[&[u8]]) -> Node {
        let mut node = Node(listpack::EMPTY.to_vec());
        listpack::append(&mut node.0, |listpack| {
            listpack.push_int(0);
            listpack.push_int(0);
            listpack.push_int(fields.len() as i64 / 2);
            fields.iter().step_by(2).for_each(|field| listpack.push(field));
            listpack.push_int(0);
        });
        node
    }

    /// Reads a node from the bytes of a listpack, or returns `None` if the listpack or its entries are malformed.
    pub fn from_listpack(bytes: &[u8]) -> Option<Node> {
        let parts = listpack::entries(bytes)?;
        let number = |at: usize| crate::num::parse_i64(parts.get(at)?);
        let size = |at: usize| number(at).and_then(|number| usize::try_from(number).ok());
        let (count, deleted, fields) = (size(0)?, size(1)?, size(2)?);
        let mut at = fields.checked_add(3)?;
        if number(at)? != 0 {
            return None;
        }
        at += 1;
        for _ in 0..count.checked_add(deleted)? {
            let flags = number(at)?;
            number(at + 1)?;
            number(at + 2)?;
            let mut entry_parts = FIXED_PARTS.checked_add(fields)?;
            if flags & SAME_FIELDS == 0 {
                let own = size(at + FIXED_PARTS)?;
                entry_parts = own.checked_mul(2)?.checked_add(FIXED_PARTS + 1)?;
            }
            at = at.checked_add(entry_parts)?;
            if size(at)? != entry_parts {
                return None;
            }
            at += 1;
        }
        if at != parts.len() {
            return None;
        }
        let node = Node(bytes.to_vec());
        let deleted_in_fact = node.entries(StreamId::MIN).filter(|entry| entry.is_deleted).count();
        (deleted_in_fact == deleted).then_some(node)
    }

    /// Returns the bytes of the listpack.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the allocated bytes.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Frees memory that is reserved for more entries.
    pub fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Returns the master entry.
    pub fn header(&self) -> Header {
        let (count, at) = self.number(listpack::FIRST);
        let (deleted, at) = self.number(at);
        let (fields, fields_at) = self.number(at);
        let terminator_at = (0..fields).fold(fields_at, |at, _| listpack::next(&self.0, at));
        let entries_at = listpack::next(&self.0, terminator_at);
        Header {
            count: count as usize,
            deleted: deleted as usize,
            fields: fields as usize,
            fields_at,
            entries_at,
        }
    }

    /// Returns the numbers of live and of deleted entries.
    pub fn counts(&self) -> (usize, usize) {
        let (count, at) = self.number(listpack::FIRST);
        (count as usize, self.number(at).0 as usize)
    }

    /// Appends an entry. `first` is the id of the node's first entry; `fields` has fields and values in turn.
    pub fn append(&mut self, first: StreamId, id: StreamId, fields: &[&[u8]]) {
        let header = self.header();
        let len = fields.len() / 2;
        let has_own_fields = len != header.fields || {
            let mut at = header.fields_at;
            fields.iter().step_by(2).any(|field| {
                let (known, next) = self.part(at);
                at = next;
                !known.equals(field)
            })
        };
        self.set_number(listpack::FIRST, header.count as i64 + 1);
        listpack::append(&mut self.0, |listpack| {
            let parts = if has_own_fields { 2 * len + 1 } else { len };
            listpack.push_int(if has_own_fields { 0 } else { SAME_FIELDS });
            listpack.push_int(id.ms.wrapping_sub(first.ms) as i64);
            listpack.push_int(id.seq.wrapping_sub(first.seq) as i64);
            if has_own_fields {
                listpack.push_int(len as i64);
                fields.iter().for_each(|part| listpack.push(part));
            } else {
                fields.iter().skip(1).step_by(2).for_each(|value| listpack.push(value));
            }
            listpack.push_int((FIXED_PARTS + parts) as i64);
        });
    }

    /// Marks entries as deleted, given the positions of their flags in ascending order.
    fn mark_deleted(&mut self, flags_at: &[usize]) {
        // From the back, because a change of length moves what follows.
        for &at in flags_at.iter().rev() {
            let flags = self.number(at).0;
            self.set_number(at, flags | DELETED);
        }
        let (count, deleted_at) = self.number(listpack::FIRST);
        let deleted = self.number(deleted_at).0;
        self.set_number(deleted_at, deleted + flags_at.len() as i64);
        self.set_number(listpack::FIRST, count - flags_at.len() as i64);
    }

    /// Deletes the entry with this id. Returns whether it was there.
    pub fn delete(&mut self, first: StreamId, id: StreamId) -> bool {
        let found = self.entries(first).find(|entry| entry.id == id && !entry.is_deleted);
        let flags_at = found.map(|entry| entry.flags_at);
        flags_at.inspect(|&at| self.mark_deleted(&[at])).is_some()
    }

    /// Asks for the first live entries, given their ids, which to delete, until the answer is `None`. Returns whether it was asked
    /// for all of them.
    pub fn delete_where(
        &mut self,
        first: StreamId,
        mut is_wanted: impl FnMut(StreamId) -> Option<bool>,
    ) -> bool {
        let (mut flags_at, mut is_whole) = (Vec::new(), true);
        for entry in self.entries(first).filter(|entry| !entry.is_deleted) {
            match is_wanted(entry.id) {
                Some(true) => flags_at.push(entry.flags_at),
                Some(false) => {}
                None => {
                    is_whole = false;
                    break;
                }
            }
        }
        if !flags_at.is_empty() {
            self.mark_deleted(&flags_at);
        }
        is_whole
    }

    /// Returns the id of the last entry, even if it is deleted.
    pub fn last_id(&self, first: StreamId) -> Option<StreamId> {
        self.entries(first).next_back().map(|entry| entry.id)
    }

    /// Returns all entries, those that are deleted too. `first` is the id of the first entry.
    pub fn entries(&self, first: StreamId) -> Entries<'_> {
        let header = self.header();
        Entries { node: self, first, header, span: header.entries_at..self.0.len() - 1 }
    }

    /// Returns the part at a position, and the position of the next.
    fn part(&self, at: usize) -> (Element<'_>, usize) {
        listpack::element(&self.0, at)
    }

    fn number(&self, at: usize) -> (i64, usize) {
        let (element, next) = self.part(at);
        (element.number().unwrap_or(0), next)
    }

    fn set_number(&mut self, at: usize, number: i64) {
        listpack::replace_int(&mut self.0, at, number);
    }

    /// Returns the entry whose flags are at a position.
    fn entry(&self, first: StreamId, header: &Header, flags_at: usize) -> Entry<'_> {
        let (flags, at) = self.number(flags_at);
        let (ms, at) = self.number(at);
        let (seq, at) = self.number(at);
        let id = StreamId { ms: first.ms.wrapping_add(ms as u64), seq: first.seq.wrapping_add(seq as u64) };
        let has_own_fields = flags & SAME_FIELDS == 0;
        let (len, body_at) = if has_own_fields { self.number(at) } else { (header.fields as i64, at) };
        Entry {
            id,
            is_deleted: flags & DELETED != 0,
            len: len as usize,
            node: self,
            flags_at,
            fields_at: header.fields_at,
            body_at,
            has_own_fields,
        }
    }
}

/// An iterator over the entries of a node.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    node: &'a Node,
    first: StreamId,
    header: Header,
    span: Range<usize>,
}

/// How many entries from the end `skip_to` looks at.
const NEAR_END: usize = 8;

impl Entries<'_> {
    /// Skips entries before an id if it is near the end of the node, where those who wait for new entries read.
    pub fn skip_to(&mut self, id: StreamId) {
        let before = self.clone().rev().take(NEAR_END).find(|entry| entry.id < id);
        if let Some(before) = before {
            self.span.start = before.end();
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        if self.span.is_empty() {
            return None;
        }
        let entry = self.node.entry(self.first, &self.header, self.span.start);
        self.span.start = entry.end();
        Some(entry)
    }
}

impl DoubleEndedIterator for Entries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.span.is_empty() {
            return None;
        }
        let bytes = &self.node.0;
        let parts_at = listpack::previous(bytes, self.span.end);
        let parts = self.node.number(parts_at).0;
        let flags_at = (0..parts).fold(parts_at, |at, _| listpack::previous(bytes, at));
        self.span.end = flags_at;
        Some(self.node.entry(self.first, &self.header, flags_at))
    }
}
