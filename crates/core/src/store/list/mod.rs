//! Lists: byte strings in nodes of limited size.
//!
//! Clients see how Redis divides a list into nodes through `OBJECT ENCODING`: since 7.2 a list is a `listpack` until it
//! outgrows one node, and becomes one again once it has shrunk to half a node, provided that it is in one node by then.
//! That depends on how nodes split and merge, so `quicklist` follows Redis's rules, using the sizes that the elements
//! would have in Redis (`node`).

mod node;
mod quicklist;

use std::collections::VecDeque;

pub use self::node::Node;
use super::limits::Limits;
use crate::version::Version;

/// One element of a list.
pub type Element = Box<[u8]>;

/// The two ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Head,
    Tail,
}

/// A list of byte strings. Boxed, so that it does not enlarge the values of other types.
#[derive(Clone)]
pub struct List(Box<Form>);

#[derive(Clone)]
struct Form {
    /// Nodes are never empty. A listpack has one node, or none if the list is empty.
    nodes: VecDeque<Node>,
    len: usize,
    is_quicklist: bool,
}

impl List {
    /// Creates an empty list: a listpack since 7.2, a quicklist before.
    pub fn new(limits: &Limits) -> List {
        List::empty(limits.version < Version::V7_2)
    }

    /// Creates an empty quicklist in any release.
    pub fn quicklist() -> List {
        List::empty(true)
    }

    fn empty(is_quicklist: bool) -> List {
        List(Box::new(Form { nodes: VecDeque::new(), len: 0, is_quicklist }))
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Returns whether the list has no elements.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns the name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        if self.0.is_quicklist { "quicklist" } else { "listpack" }
    }

    /// Announces the elements that a command is about to add: a listpack that would outgrow its node becomes a
    /// quicklist. Call this before adding any.
    pub fn prepare<'a>(&mut self, elements: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) {
        let (mut bytes, mut count) =
            (self.0.nodes.front().map_or(node::EMPTY_BYTES, |node| node.bytes), self.0.len);
        for element in elements {
            bytes += element.len();
            count += 1;
        }
        if !self.0.is_quicklist && quicklist::exceeds(limits, bytes, count) {
            self.0.is_quicklist = true;
        }
    }

    /// Converts a quicklist of one node that is at most half full to a listpack. Call this at the end of a command that
    /// removed elements.
    pub fn shrink(&mut self, limits: &Limits) {
        if limits.version < Version::V7_2 || !self.0.is_quicklist {
            return;
        }
        if self.0.nodes.len() == 1 && quicklist::is_half_full_at_most(limits, &self.0.nodes[0]) {
            self.0.is_quicklist = false;
        }
    }

    /// Converts a quicklist of one node to a listpack if the release is at least 7.2 and the node's size is within the
    /// limit.
    pub fn become_listpack_if_possible(&mut self, limits: &Limits) {
        if limits.version < Version::V7_2 || self.0.nodes.len() != 1 {
            return;
        }
        self.0.is_quicklist = !quicklist::is_full_at_most(limits, &self.0.nodes[0]);
    }

    /// Returns the nodes from head to tail.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.0.nodes.iter()
    }

    /// Appends a node with these elements to a quicklist, unless there are none.
    pub fn push_node<'a>(&mut self, elements: impl Iterator<Item = &'a [u8]>) {
        let mut node = Node::default();
        elements.for_each(|element| node.insert(node.len(), element));
        if !node.is_empty() {
            self.0.len += node.len();
            self.0.nodes.push_back(node);
        }
    }

    /// Appends a node that holds one element as plain bytes.
    pub fn push_plain_node(&mut self, element: &[u8]) {
        self.0.nodes.push_back(Node::plain(element));
        self.0.len += 1;
    }

    /// Pushes an element at an end. Call [`prepare`](Self::prepare) first.
    pub fn push(&mut self, end: End, element: &[u8], limits: &Limits) {
        self.0.len += 1;
        if self.0.is_quicklist {
            quicklist::push(&mut self.0.nodes, end, element, limits);
            return;
        }
        if self.0.nodes.is_empty() {
            self.0.nodes.push_back(Node::default());
        }
        if let Some(node) = self.0.nodes.front_mut() {
            let offset = if end == End::Head { 0 } else { node.len() };
            node.insert(offset, element);
        }
    }

    /// Pops an element from an end. Call [`shrink`](Self::shrink) afterwards.
    pub fn pop(&mut self, end: End) -> Option<Element> {
        let node_at = if end == End::Head { 0 } else { self.0.nodes.len().checked_sub(1)? };
        let node = self.0.nodes.get(node_at)?;
        let offset = if end == End::Head { 0 } else { node.len() - 1 };
        Some(self.remove_at(node_at, offset))
    }

    /// Returns the element at `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (node_at, offset) = self.locate(index)?;
        self.0.nodes[node_at].get(offset)
    }

    /// Replaces the element at `index`. Returns false if there is none. See [`prepare`](Self::prepare) and
    /// [`shrink`](Self::shrink).
    pub fn set(&mut self, index: usize, element: &[u8], limits: &Limits) -> bool {
        let Some((node_at, offset)) = self.locate(index) else { return false };
        if self.0.is_quicklist {
            quicklist::replace(&mut self.0.nodes, node_at, offset, element, limits);
        } else {
            self.0.nodes[node_at].replace(offset, element);
        }
        true
    }

    /// Inserts an element before or after the first one that equals `pivot`. Returns false if there is none.
    pub fn insert(&mut self, pivot: &[u8], after: bool, element: &[u8], limits: &Limits) -> bool {
        let Some(index) = self.iter().position(|other| other == pivot) else { return false };
        let Some((node_at, offset)) = self.locate(index) else { return false };
        self.0.len += 1;
        if self.0.is_quicklist {
            quicklist::insert(&mut self.0.nodes, node_at, offset, after, element, limits);
        } else {
            self.0.nodes[node_at].insert(offset + after as usize, element);
        }
        true
    }

    /// Removes up to `limit` elements equal to `element`, starting at the end `from`. Returns how many it removed.
    pub fn remove(&mut self, element: &[u8], from: End, limit: usize) -> usize {
        let mut doomed: Vec<usize> = match from {
            End::Head => self.positions(element).take(limit).collect(),
            End::Tail => {
                let mut all: Vec<usize> = self.positions(element).collect();
                all.drain(..all.len().saturating_sub(limit));
                all
            }
        };
        doomed.reverse();
        for &index in &doomed {
            if let Some((node_at, offset)) = self.locate(index) {
                self.remove_at(node_at, offset);
            }
        }
        doomed.len()
    }

    fn positions(&self, element: &[u8]) -> impl Iterator<Item = usize> {
        self.iter().enumerate().filter(move |(_, other)| *other == element).map(|(index, _)| index)
    }

    /// Keeps `count` elements from `start` on, and removes all others.
    pub fn trim(&mut self, start: usize, count: usize) {
        let front = start.min(self.0.len);
        let back = self.0.len - front - count.min(self.0.len - front);
        self.cut(End::Head, front);
        self.cut(End::Tail, back);
    }

    /// Removes `count` elements from an end, whole nodes at once where possible.
    fn cut(&mut self, end: End, mut count: usize) {
        self.0.len -= count;
        while count > 0 {
            let node = if end == End::Head { self.0.nodes.front_mut() } else { self.0.nodes.back_mut() };
            let Some(node) = node else { return };
            if node.len() > count {
                node.cut(end, count);
                return;
            }
            count -= node.len();
            if end == End::Head {
                self.0.nodes.pop_front()
            } else {
                self.0.nodes.pop_back()
            };
        }
    }

    /// Returns all elements from head to tail.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.nodes.iter().flat_map(Node::iter)
    }

    /// Returns the elements from `start` on, towards the tail.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let (node_at, offset) = self.locate(start).unwrap_or((self.0.nodes.len(), 0));
        self.0.nodes.range(node_at..).flat_map(Node::iter).skip(offset)
    }

    /// Returns the elements from `start` on, towards the head.
    pub fn iter_back_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let (nodes, skipped) = match self.locate(start) {
            Some((node_at, offset)) => (node_at + 1, self.0.nodes[node_at].len() - 1 - offset),
            None => (0, 0),
        };
        self.0.nodes.range(..nodes).flat_map(Node::iter).rev().skip(skipped)
    }

    /// Returns the node that contains the element at `index`, and the element's offset in that node. Searches from the
    /// nearer end.
    fn locate(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.0.len {
            return None;
        }
        if index < self.0.len / 2 {
            let mut left = index;
            for (node_at, node) in self.0.nodes.iter().enumerate() {
                if left < node.len() {
                    return Some((node_at, left));
                }
                left -= node.len();
            }
        } else {
            let mut end = self.0.len;
            for (node_at, node) in self.0.nodes.iter().enumerate().rev() {
                end -= node.len();
                if index >= end {
                    return Some((node_at, index - end));
                }
            }
        }
        None
    }

    fn remove_at(&mut self, node_at: usize, offset: usize) -> Element {
        self.0.len -= 1;
        let element = self.0.nodes[node_at].remove(offset);
        if self.0.nodes[node_at].is_empty() {
            self.0.nodes.remove(node_at);
        }
        element
    }
}

#[cfg(test)]
mod tests;
