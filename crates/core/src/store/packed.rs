//! Byte strings stored one after another without gaps: the small form of hashes and sets.
//!
//! Each string follows its length, which takes seven bits per byte, low bits first; a set top bit means that more bytes
//! follow. The data of a lock (one field made of a UUID and a thread's number, one small counter) fits inline, without
//! an allocation.

use std::ops::Range;

use super::small_bytes::SmallBytes;

/// A sequence of byte strings. A position is the byte offset at which an entry's length begins.
#[derive(Clone, Default)]
pub struct Packed(SmallBytes<46>);

/// An entry and its position.
pub struct Found<'a> {
    pub position: usize,
    pub entry: &'a [u8],
    /// The position of the next entry.
    pub next: usize,
}

impl Packed {
    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the entries are stored inline, without an allocation.
    #[cfg(test)]
    pub fn is_in_place(&self) -> bool {
        matches!(self.0, SmallBytes::Inline { .. })
    }

    /// Returns the total bytes, which is also the position after the last entry.
    pub fn end(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of entries. Walks over all of them.
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// Returns the entry at `position` and the position of the next.
    pub fn at(&self, position: usize) -> (&[u8], usize) {
        let span = span(&self.0, position);
        (&self.0[span.clone()], span.end)
    }

    /// Returns the position `entries` entries after `position`.
    pub fn skip(&self, position: usize, entries: usize) -> usize {
        skip(&self.0, position, entries)
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut position = 0;
        std::iter::from_fn(move || {
            let (entry, next) = (position < self.end()).then(|| self.at(position))?;
            position = next;
            Some(entry)
        })
    }

    /// Returns the first entry that equals `wanted` among the entries 0, `stride`, 2 × `stride`, ….
    pub fn find(&self, wanted: &[u8], stride: usize) -> Option<Found<'_>> {
        let bytes = &*self.0;
        let mut position = 0;
        while position < bytes.len() {
            let span = span(bytes, position);
            let entry = &bytes[span.clone()];
            if entry == wanted {
                return Some(Found { position, entry, next: span.end });
            }
            position = skip(bytes, span.end, stride - 1);
        }
        None
    }

    /// Replaces the entries between two positions.
    pub fn replace(&mut self, range: Range<usize>, entries: &[&[u8]]) {
        if let [entry] = entries
            && range.start < range.end
        {
            let span = span(&self.0, range.start);
            if span.end == range.end && span.len() == entry.len() {
                self.0[span].copy_from_slice(entry);
                return;
            }
        }
        let added: usize = entries.iter().map(|entry| length_bytes(entry.len()) + entry.len()).sum();
        let old = &self.0;
        let mut new = SmallBytes::zeroed(old.len() - range.len() + added);
        let mut rest = &mut new[..];
        put(&mut rest, &old[..range.start]);
        for entry in entries {
            put_length(&mut rest, entry.len());
            put(&mut rest, entry);
        }
        put(&mut rest, &old[range.end..]);
        self.0 = new;
    }

    /// Appends entries.
    pub fn append(&mut self, entries: &[&[u8]]) {
        self.replace(self.end()..self.end(), entries);
    }

    /// Removes `entries` entries from `position` on.
    pub fn remove(&mut self, position: usize, entries: usize) {
        self.replace(position..self.skip(position, entries), &[]);
    }
}

/// Returns the range of the bytes of the entry at `position`.
fn span(bytes: &[u8], position: usize) -> Range<usize> {
    let (mut len, mut shift, mut start) = (0, 0, position);
    loop {
        let byte = bytes[start];
        len |= ((byte & 0x7f) as usize) << shift;
        start += 1;
        if byte < 0x80 {
            return start..start + len;
        }
        shift += 7;
    }
}

fn skip(bytes: &[u8], position: usize, entries: usize) -> usize {
    (0..entries).fold(position, |position, _| span(bytes, position).end)
}

fn length_bytes(len: usize) -> usize {
    (usize::BITS - (len | 1).leading_zeros()).div_ceil(7) as usize
}

/// Writes bytes at the start of `rest`, and advances `rest` past them.
fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (target, behind) = std::mem::take(rest).split_at_mut(bytes.len());
    target.copy_from_slice(bytes);
    *rest = behind;
}

fn put_length(rest: &mut &mut [u8], mut len: usize) {
    while len >= 0x80 {
        put(rest, &[len as u8 | 0x80]);
        len >>= 7;
    }
    put(rest, &[len as u8]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_vector(
            ops in prop::collection::vec((0..4u8, any::<prop::sample::Index>(), 0..300usize), 1..60)
        ) {
            let mut packed = Packed::default();
            let mut model: Vec<Vec<u8>> = Vec::new();
            for (op, which, len) in ops {
                let entry = vec![len as u8; len];
                let index = which.index(model.len() + 1);
                let position = packed.skip(0, index);
                match op {
                    _ if index == model.len() => {
                        packed.append(&[&entry]);
                        model.push(entry);
                    }
                    0 => {
                        packed.remove(position, 1);
                        model.remove(index);
                    }
                    1 => {
                        packed.replace(position..packed.skip(position, 1), &[&entry]);
                        model[index] = entry;
                    }
                    _ => {
                        packed.replace(position..position, &[&entry]);
                        model.insert(index, entry);
                    }
                }
                prop_assert_eq!(packed.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(packed.count(), model.len());
                if let Some(entry) = model.get(index) {
                    let first = model.iter().position(|other| other == entry).unwrap_or(0);
                    let found = packed.find(entry, 1).map(|found| (found.position, found.entry, found.next));
                    let (start, end) = (packed.skip(0, first), packed.skip(0, first + 1));
                    prop_assert_eq!(found, Some((start, &entry[..], end)));
                }
            }
        }
    }
}
