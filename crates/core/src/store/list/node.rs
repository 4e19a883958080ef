//! One node of a list, and the size that it would have as a listpack in Redis.

use std::collections::VecDeque;

use super::{Element, End};
use crate::num::parse_i64;

/// The bytes of an empty listpack: its header and end mark.
pub const EMPTY_BYTES: usize = 7;

/// A node of a list: elements that Redis would keep in one listpack, or one large element (*plain*).
#[derive(Clone)]
pub struct Node {
    elements: VecDeque<Element>,
    /// The size of the listpack in bytes; for a plain node, that of its element.
    pub bytes: usize,
    pub is_plain: bool,
}

impl Default for Node {
    fn default() -> Self {
        Node { elements: VecDeque::new(), bytes: EMPTY_BYTES, is_plain: false }
    }
}

impl Node {
    /// Creates a node with one element.
    pub fn of(element: &[u8]) -> Node {
        let mut node = Node::default();
        node.insert(0, element);
        node
    }

    /// Creates a plain node.
    pub fn plain(element: &[u8]) -> Node {
        Node { elements: VecDeque::from([element.into()]), bytes: element.len(), is_plain: true }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns whether the node has no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Returns the element at `offset`.
    pub fn get(&self, offset: usize) -> Option<&[u8]> {
        self.elements.get(offset).map(|element| &**element)
    }

    /// Returns the elements from head to tail.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.elements.iter().map(|element| &**element)
    }

    /// Inserts an element before the one at `offset`.
    pub fn insert(&mut self, offset: usize, element: &[u8]) {
        self.bytes += entry_bytes(element);
        self.elements.insert(offset, element.into());
    }

    /// Replaces an element of a node that is not plain.
    pub fn replace(&mut self, offset: usize, element: &[u8]) {
        let old = std::mem::replace(&mut self.elements[offset], element.into());
        self.bytes = self.bytes - entry_bytes(&old) + entry_bytes(element);
    }

    /// Removes and returns the element at `offset`.
    pub fn remove(&mut self, offset: usize) -> Element {
        let element = self.elements.remove(offset).unwrap_or_default();
        self.bytes -= if self.is_plain { element.len() } else { entry_bytes(&element) };
        element
    }

    /// Removes `count` elements, fewer than the node has, from an end.
    pub fn cut(&mut self, end: End, count: usize) {
        if end == End::Head {
            self.elements.drain(..count);
        } else {
            self.elements.truncate(self.elements.len() - count);
        }
        self.measure();
    }

    /// Moves the elements from `offset` on to a new node.
    pub fn split_off(&mut self, offset: usize) -> Node {
        let mut rest = Node { elements: self.elements.split_off(offset), ..Node::default() };
        rest.measure();
        self.measure();
        rest
    }

    /// Appends the elements of the next node.
    pub fn merge(&mut self, next: Node) {
        self.elements.extend(next.elements);
        self.bytes += next.bytes - EMPTY_BYTES;
    }

    fn measure(&mut self) {
        self.bytes = EMPTY_BYTES + self.elements.iter().map(|element| entry_bytes(element)).sum::<usize>();
    }
}

/// Returns the bytes that an element takes in a listpack: integers are stored in binary, and the length is stored at
/// both ends.
fn entry_bytes(element: &[u8]) -> usize {
    let body = match parse_i64(element) {
        Some(0..=127) => 1,
        Some(-4096..=4095) => 2,
        Some(-0x8000..=0x7fff) => 3,
        Some(-0x80_0000..=0x7f_ffff) => 4,
        Some(-0x8000_0000..=0x7fff_ffff) => 5,
        Some(_) => 9,
        None => match element.len() {
            len @ 0..=63 => 1 + len,
            len @ 64..=4095 => 2 + len,
            len => 5 + len,
        },
    };
    let length_at_end = match body {
        0..=127 => 1,
        128..16383 => 2,
        16383..2097151 => 3,
        2097151..268435455 => 4,
        _ => 5,
    };
    body + length_at_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_a_listpack() {
        let sizes = [
            ("0", 2),
            ("127", 2),
            ("128", 3),
            ("-1", 3),
            ("4095", 3),
            ("4096", 4),
            ("-4097", 4),
            ("32768", 5),
            ("8388608", 6),
            ("2147483648", 10),
            ("", 2),
            ("01", 4),
            ("a", 3),
        ];
        for (element, size) in sizes {
            assert_eq!(entry_bytes(element.as_bytes()), size, "{element}");
        }
        assert_eq!(entry_bytes(&[b'x'; 63]), 65);
        assert_eq!(entry_bytes(&[b'x'; 64]), 67);
        assert_eq!(entry_bytes(&[b'x'; 125]), 127 + 1);
        assert_eq!(entry_bytes(&[b'x'; 126]), 128 + 2);
        assert_eq!(entry_bytes(&[b'x'; 4096]), 4096 + 5 + 2);
    }
}
