//! Byte strings one after another, without a gap: the small form of hashes and sets.
//!
//! Each string has its length before it, in seven bits a byte, low bits first; the top bit says that more follow. What a lock
//! needs (one field of a UUID and a thread's number, one small count) fits in place, without an allocation.

use std::ops::Range;

use smallvec::SmallVec;

/// Bytes that fit in place. With their length and the tag they make 48.
const INLINE: usize = 46;

/// A sequence of byte strings. Positions are byte offsets of an entry's length.
#[derive(Clone)]
pub enum Packed {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl Default for Packed {
    fn default() -> Self {
        Packed::Inline { len: 0, bytes: [0; INLINE] }
    }
}

impl Packed {
    fn bytes(&self) -> &[u8] {
        match self {
            Packed::Inline { len, bytes } => &bytes[..*len as usize],
            Packed::Heap(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Packed::Inline { len, bytes } => &mut bytes[..*len as usize],
            Packed::Heap(bytes) => bytes,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.end() == 0
    }

    /// Total bytes; also the position after the last entry.
    pub fn end(&self) -> usize {
        self.bytes().len()
    }

    /// Number of entries, by walking over them.
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// Where the bytes of the entry at `position` stand.
    fn span(&self, position: usize) -> Range<usize> {
        let bytes = self.bytes();
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

    /// The entry at `position` and the position of the next.
    pub fn at(&self, position: usize) -> (&[u8], usize) {
        let span = self.span(position);
        (&self.bytes()[span.clone()], span.end)
    }

    /// The position `entries` entries after `position`.
    pub fn skip(&self, position: usize, entries: usize) -> usize {
        (0..entries).fold(position, |position, _| self.span(position).end)
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut position = 0;
        std::iter::from_fn(move || {
            let (entry, next) = (position < self.end()).then(|| self.at(position))?;
            position = next;
            Some(entry)
        })
    }

    /// The position of `wanted` among the entries 0, `stride`, 2 × `stride`, ….
    pub fn find(&self, wanted: &[u8], stride: usize) -> Option<usize> {
        let mut position = 0;
        while position < self.end() {
            let (entry, next) = self.at(position);
            if entry == wanted {
                return Some(position);
            }
            position = self.skip(next, stride - 1);
        }
        None
    }

    /// Puts entries in the place of those between two positions.
    pub fn replace(&mut self, range: Range<usize>, entries: &[&[u8]]) {
        if let [entry] = entries
            && range.start < range.end
        {
            let span = self.span(range.start);
            if span.end == range.end && span.len() == entry.len() {
                self.bytes_mut()[span].copy_from_slice(entry);
                return;
            }
        }
        let added: usize = entries.iter().map(|entry| length_bytes(entry.len()) + entry.len()).sum();
        let old = self.bytes();
        let mut bytes: SmallVec<[u8; INLINE]> = SmallVec::with_capacity(old.len() - range.len() + added);
        bytes.extend_from_slice(&old[..range.start]);
        entries.iter().for_each(|entry| write(&mut bytes, entry));
        bytes.extend_from_slice(&old[range.end..]);
        *self = if bytes.spilled() {
            Packed::Heap(bytes.into_boxed_slice())
        } else {
            let mut inline = [0; INLINE];
            inline[..bytes.len()].copy_from_slice(&bytes);
            Packed::Inline { len: bytes.len() as u8, bytes: inline }
        };
    }

    pub fn append(&mut self, entries: &[&[u8]]) {
        self.replace(self.end()..self.end(), entries);
    }

    /// Removes `entries` entries from `position` on.
    pub fn remove(&mut self, position: usize, entries: usize) {
        self.replace(position..self.skip(position, entries), &[]);
    }
}

fn length_bytes(len: usize) -> usize {
    (usize::BITS - (len | 1).leading_zeros()).div_ceil(7) as usize
}

fn write(bytes: &mut SmallVec<[u8; INLINE]>, entry: &[u8]) {
    let mut len = entry.len();
    while len >= 0x80 {
        bytes.push(len as u8 | 0x80);
        len >>= 7;
    }
    bytes.push(len as u8);
    bytes.extend_from_slice(entry);
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
                    prop_assert_eq!(packed.find(entry, 1), Some(packed.skip(0, first)));
                }
            }
        }
    }
}
