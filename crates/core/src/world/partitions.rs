//! Partitions: which nodes hear which others.

use std::collections::BTreeSet;

use super::World;

/// The pairs of nodes between which nothing arrives. Each pair is one direction: (sender, receiver).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partitions(BTreeSet<(usize, usize)>);

impl Partitions {
    /// Cuts a direction.
    pub(super) fn cut(&mut self, sender: usize, receiver: usize) {
        self.0.insert((sender, receiver));
    }
}

impl World {
    /// Returns whether a node neither is stopped nor pauses.
    pub(super) fn runs(&self, node: usize) -> bool {
        !self.nodes[node].stopped && !self.nodes[node].paused
    }

    /// Returns whether what `sender` sends now arrives at `receiver`: both run, and no partition is between them.
    pub fn reaches(&self, sender: usize, receiver: usize) -> bool {
        self.runs(sender) && self.runs(receiver) && !self.is_cut(sender, receiver)
    }

    /// Returns whether a partition keeps what `sender` sends from `receiver`.
    pub(super) fn is_cut(&self, sender: usize, receiver: usize) -> bool {
        self.partitions.0.contains(&(sender, receiver))
    }

    /// Cuts or restores one direction between two nodes.
    pub fn set_partition(&mut self, sender: usize, receiver: usize, is_cut: bool) {
        match is_cut {
            true => self.partitions.cut(sender, receiver),
            false => {
                self.partitions.0.remove(&(sender, receiver));
            }
        }
        self.nodes_changed();
    }

    /// Ends all partitions.
    pub fn heal(&mut self) {
        self.partitions.0.clear();
        self.nodes_changed();
    }

    /// Returns the directions that are cut, in order.
    pub fn partitions(&self) -> impl Iterator<Item = (usize, usize)> {
        self.partitions.0.iter().copied()
    }

    /// Lets what watches other nodes know that one stopped, paused or runs again, or that a partition began or ended.
    pub(super) fn nodes_changed(&mut self) {
        self.links_changed();
        self.watch_cluster();
        self.wake_sentinels();
    }
}
