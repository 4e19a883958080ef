//! A sequence indexed by rank: insertion, removal and access at a rank take logarithmic time.
//!
//! A treap over numbers that its owner assigns (slots of a map). A node's priority is derived from its number, so the
//! shape depends on nothing but the sequence of operations.

use std::ops::Range;

const NIL: u32 = u32::MAX;
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// A sequence of distinct small numbers.
#[derive(Clone)]
pub struct Tree {
    /// The node of item `i` is `nodes[i]`.
    nodes: Vec<Node>,
    root: u32,
}

#[derive(Clone, Copy)]
struct Node {
    children: [u32; 2],
    /// The number of nodes in this subtree.
    size: u32,
}

const LEAF: Node = Node { children: [NIL, NIL], size: 1 };

impl Default for Tree {
    fn default() -> Self {
        Tree { nodes: Vec::new(), root: NIL }
    }
}

/// Returns the priority of an item: a bijective hash of its number.
fn priority(item: u32) -> u32 {
    let mut z = item.wrapping_add(0x9e37_79b9);
    z = (z ^ (z >> 16)).wrapping_mul(0x85eb_ca6b);
    z = (z ^ (z >> 13)).wrapping_mul(0xc2b2_ae35);
    z ^ (z >> 16)
}

impl Tree {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.size(self.root)
    }

    /// Inserts `item` at a rank. The sequence must not contain it yet.
    pub fn insert(&mut self, rank: usize, item: u32) {
        if self.nodes.len() <= item as usize {
            self.nodes.resize(item as usize + 1, LEAF);
        }
        self.nodes[item as usize] = LEAF;
        let (before, after) = self.split(self.root, rank);
        let before = self.merge(before, item);
        self.root = self.merge(before, after);
    }

    /// Removes and returns the items at these ranks, in order.
    pub fn remove(&mut self, ranks: Range<usize>) -> Vec<u32> {
        let (rest, after) = self.split(self.root, ranks.end);
        let (before, removed) = self.split(rest, ranks.start);
        self.root = self.merge(before, after);
        let count = self.size(removed);
        self.walk_from(removed, 0, LEFT).take(count).collect()
    }

    /// Returns the number of items before the first for which `is_before` is false. It must be true for all items
    /// before that one.
    pub fn partition_point(&self, is_before: impl Fn(u32) -> bool) -> usize {
        let (mut at, mut rank) = (self.root, 0);
        while at != NIL {
            let [left, right] = self.nodes[at as usize].children;
            if is_before(at) {
                rank += self.size(left) + 1;
                at = right;
            } else {
                at = left;
            }
        }
        rank
    }

    /// Returns the items from `rank` on, forwards.
    pub fn walk(&self, rank: usize) -> impl Iterator<Item = u32> {
        self.walk_from(self.root, rank, LEFT)
    }

    /// Returns the items from `rank` on, backwards.
    pub fn walk_back(&self, rank: usize) -> impl Iterator<Item = u32> {
        match (self.len().checked_sub(1)).and_then(|last| last.checked_sub(rank)) {
            Some(rank) => self.walk_from(self.root, rank, RIGHT),
            None => self.walk_from(NIL, 0, RIGHT),
        }
    }

    fn walk_from(&self, root: u32, mut rank: usize, near: usize) -> Walk<'_> {
        let mut walk = Walk { tree: self, path: Vec::new(), near };
        let mut at = root;
        while at != NIL {
            let children = self.nodes[at as usize].children;
            let nearer = self.size(children[near]);
            if rank <= nearer {
                walk.path.push(at);
            }
            match rank.checked_sub(nearer) {
                None => at = children[near],
                Some(0) => break,
                Some(further) => {
                    rank = further - 1;
                    at = children[1 - near];
                }
            }
        }
        walk
    }

    fn size(&self, at: u32) -> usize {
        self.nodes.get(at as usize).map_or(0, |node| node.size as usize)
    }

    fn set_child(&mut self, at: u32, side: usize, child: u32) {
        self.nodes[at as usize].children[side] = child;
        let [left, right] = self.nodes[at as usize].children;
        self.nodes[at as usize].size = (self.size(left) + self.size(right) + 1) as u32;
    }

    /// Splits a subtree into its first `count` items and the rest.
    fn split(&mut self, at: u32, count: usize) -> (u32, u32) {
        if at == NIL {
            return (NIL, NIL);
        }
        let [left, right] = self.nodes[at as usize].children;
        match count.checked_sub(self.size(left) + 1) {
            Some(count) => {
                let (before, after) = self.split(right, count);
                self.set_child(at, RIGHT, before);
                (at, after)
            }
            None => {
                let (before, after) = self.split(left, count);
                self.set_child(at, LEFT, after);
                (before, at)
            }
        }
    }

    /// Joins two subtrees; all items of `a` precede all of `b`.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == NIL || b == NIL {
            return if a == NIL { b } else { a };
        }
        if priority(a) >= priority(b) {
            let child = self.merge(self.nodes[a as usize].children[RIGHT], b);
            self.set_child(a, RIGHT, child);
            a
        } else {
            let child = self.merge(a, self.nodes[b as usize].children[LEFT]);
            self.set_child(b, LEFT, child);
            b
        }
    }
}

/// An in-order walk. The stack holds the nodes on the path to the next item that have not been visited yet.
struct Walk<'a> {
    tree: &'a Tree,
    path: Vec<u32>,
    /// The index of the child that comes first: 0 forwards, 1 backwards.
    near: usize,
}

impl Iterator for Walk<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let item = self.path.pop()?;
        let mut at = self.tree.nodes[item as usize].children[1 - self.near];
        while at != NIL {
            self.path.push(at);
            at = self.tree.nodes[at as usize].children[self.near];
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_vector(
            ops in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8), 1..200)
        ) {
            let mut tree = Tree::default();
            let mut model: Vec<u32> = Vec::new();
            for (number, (a, b, op)) in ops.into_iter().enumerate() {
                let (a, b) = (a.index(model.len() + 1), b.index(model.len() + 1));
                if op == 0 {
                    let ranks = a.min(b)..a.max(b).min(a.min(b) + 5);
                    let removed: Vec<u32> = model.drain(ranks.clone()).collect();
                    prop_assert_eq!(tree.remove(ranks), removed);
                } else {
                    tree.insert(a, number as u32);
                    model.insert(a, number as u32);
                }
                prop_assert_eq!(tree.len(), model.len());
                prop_assert!(tree.walk(b).eq(model.iter().skip(b).copied()));
                let back = model.get(..=b).unwrap_or_default();
                prop_assert!(tree.walk_back(b).eq(back.iter().rev().copied()));
                let point = a.min(model.len());
                let first = &model[..point];
                prop_assert_eq!(tree.partition_point(|item| first.contains(&item)), point);
            }
        }
    }

    #[test]
    fn items_in_order_make_no_deep_tree() {
        let mut tree = Tree::default();
        (0..100_000).for_each(|item| tree.insert(item as usize, item));
        let walk = tree.walk(50_000);
        assert!(walk.take(10).eq(50_000..50_010));
        assert!(depth(&tree, tree.root) < 60);
    }

    fn depth(tree: &Tree, at: u32) -> usize {
        if at == NIL {
            return 0;
        }
        let [left, right] = tree.nodes[at as usize].children;
        1 + depth(tree, left).max(depth(tree, right))
    }
}
