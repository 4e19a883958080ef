//! Redis's rules for filling, splitting and merging the nodes of a quicklist.

use std::collections::VecDeque;

use super::End;
use super::node::{EMPTY_BYTES, Node};
use crate::store::limits::Limits;
use crate::version::Version;

/// The most bytes in a node whose limit is a number of elements.
const SAFE_BYTES: usize = 8192;
/// Redis adds this to the length of an element to estimate its size in a node.
const ENTRY_OVERHEAD: usize = 8;

type Nodes = VecDeque<Node>;

/// The limit of one node.
enum NodeLimit {
    Bytes(usize),
    Count(usize),
}

fn node_limit(limits: &Limits) -> NodeLimit {
    match limits.list_max_listpack_size {
        count @ 0.. => NodeLimit::Count(count.max(1) as usize),
        level => NodeLimit::Bytes(2048 << level.unsigned_abs().min(5)),
    }
}

/// Returns whether a node of that size would exceed the limit.
pub fn exceeds(limits: &Limits, bytes: usize, count: usize) -> bool {
    match node_limit(limits) {
        NodeLimit::Bytes(limit) => bytes > limit,
        NodeLimit::Count(limit) => bytes > SAFE_BYTES || count > limit,
    }
}

/// Returns whether a quicklist that consists of this node may become a listpack again after shrinking.
pub fn is_half_full_at_most(limits: &Limits, node: &Node) -> bool {
    fills_at_most_one(2, limits, node)
}

/// Returns whether a quicklist that consists of this node may be a listpack.
pub fn is_full_at_most(limits: &Limits, node: &Node) -> bool {
    fills_at_most_one(1, limits, node)
}

/// Returns whether a node that is not plain fills at most one `part`th of its limit.
fn fills_at_most_one(part: usize, limits: &Limits, node: &Node) -> bool {
    !node.is_plain
        && match node_limit(limits) {
            NodeLimit::Bytes(limit) => node.bytes <= limit / part,
            NodeLimit::Count(limit) => node.len() <= limit / part,
        }
}

/// Returns whether an element gets its own plain node. Before 7.4 this takes 1 GiB.
fn is_large(limits: &Limits, element: &[u8]) -> bool {
    limits.version > Version::V7_2
        && match node_limit(limits) {
            NodeLimit::Bytes(limit) => element.len() > limit,
            NodeLimit::Count(_) => element.len() > SAFE_BYTES,
        }
}

/// Returns whether the node, if there is one, has room for an element.
fn has_room(limits: &Limits, node: Option<&Node>, element: &[u8]) -> bool {
    node.is_some_and(|node| {
        let bytes = node.bytes + element.len() + ENTRY_OVERHEAD;
        !node.is_plain && !is_large(limits, element) && !exceeds(limits, bytes, node.len() + 1)
    })
}

fn node_for(limits: &Limits, element: &[u8]) -> Node {
    if is_large(limits, element) { Node::plain(element) } else { Node::of(element) }
}

/// Pushes an element at an end.
pub fn push(nodes: &mut Nodes, end: End, element: &[u8], limits: &Limits) {
    match end {
        End::Head if has_room(limits, nodes.front(), element) => nodes[0].insert(0, element),
        End::Head => nodes.push_front(node_for(limits, element)),
        End::Tail if has_room(limits, nodes.back(), element) => {
            let last = nodes.len() - 1;
            let offset = nodes[last].len();
            nodes[last].insert(offset, element);
        }
        End::Tail => nodes.push_back(node_for(limits, element)),
    }
}

/// Inserts an element before or after the one at `offset` of node `at`.
pub fn insert(nodes: &mut Nodes, at: usize, offset: usize, after: bool, element: &[u8], limits: &Limits) {
    let place = offset + after as usize;
    if has_room(limits, nodes.get(at), element) {
        nodes[at].insert(place, element);
        return;
    }
    let is_at_edge = if after { place == nodes[at].len() } else { place == 0 };
    // The neighbour on the side of the new element, and the index that a new node would have.
    let (neighbour, new_at) = if after { (at.checked_add(1), at + 1) } else { (at.checked_sub(1), at) };
    if is_at_edge {
        match neighbour.and_then(|neighbour| nodes.get_mut(neighbour)) {
            Some(node) if has_room(limits, Some(node), element) => {
                let offset = if after { 0 } else { node.len() };
                node.insert(offset, element);
            }
            _ => nodes.insert(new_at, node_for(limits, element)),
        }
        return;
    }
    let rest = nodes[at].split_off(place);
    nodes.insert(at + 1, rest);
    if is_large(limits, element) {
        nodes.insert(at + 1, Node::plain(element));
        return;
    }
    // The element goes into the half that does not contain the element it was inserted next to.
    let (half, pivot) = if after { (at + 1, at) } else { (at, at + 1) };
    let offset = if after { 0 } else { nodes[half].len() };
    nodes[half].insert(offset, element);
    merge_around(nodes, pivot, limits);
}

/// Replaces the element at `offset` of node `at`.
pub fn replace(nodes: &mut Nodes, at: usize, offset: usize, element: &[u8], limits: &Limits) {
    if nodes[at].is_plain {
        if is_large(limits, element) {
            nodes[at] = Node::plain(element);
        } else {
            // The element joins the next node if that has room.
            insert(nodes, at, 0, true, element, limits);
            nodes.remove(at);
        }
        return;
    }
    if !is_large(limits, element) {
        nodes[at].replace(offset, element);
        return;
    }
    if offset + 1 < nodes[at].len() {
        let rest = nodes[at].split_off(offset + 1);
        nodes.insert(at + 1, rest);
    }
    nodes.insert(at + 1, Node::plain(element));
    nodes[at].remove(offset);
    if nodes[at].is_empty() {
        nodes.remove(at);
    } else {
        merge_around(nodes, at + 1, limits);
    }
}

/// Merges neighbouring nodes around `center` where two fit into one: first the two before it, then the two after it,
/// then `center` with the one before it, and the result with the one after.
fn merge_around(nodes: &mut Nodes, center: usize, limits: &Limits) {
    let mut center = center;
    // Merging the pair after the center first keeps the indices that are still needed.
    let after_fits = fits(nodes, center + 1, limits);
    if center >= 2 && fits(nodes, center - 2, limits) {
        merge(nodes, center - 2);
        center -= 1;
    }
    if after_fits {
        merge(nodes, center + 1);
    }
    if center >= 1 && fits(nodes, center - 1, limits) {
        merge(nodes, center - 1);
        center -= 1;
    }
    if fits(nodes, center, limits) {
        merge(nodes, center);
    }
}

/// Returns whether node `at` and the next one fit into one node.
fn fits(nodes: &Nodes, at: usize, limits: &Limits) -> bool {
    let (Some(a), Some(b)) = (nodes.get(at), nodes.get(at + 1)) else { return false };
    !a.is_plain && !b.is_plain && !exceeds(limits, a.bytes + b.bytes - EMPTY_BYTES, a.len() + b.len())
}

fn merge(nodes: &mut Nodes, at: usize) {
    if let Some(next) = nodes.remove(at + 1) {
        nodes[at].merge(next);
    }
}
