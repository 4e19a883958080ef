//! What sentinels see of the other nodes, and what they do to them.

use super::World;
use crate::node::replication::Role;
use crate::node::sentinel::{Act, Hello, Outlook, Sighting};

impl World {
    /// Lets all sentinels look, because something about the nodes has changed.
    pub(super) fn wake_sentinels(&mut self) {
        let now_ms = self.clock.now().mono_ms();
        self.nodes.iter_mut().for_each(|node| node.look_at(now_ms));
    }

    /// Lets a sentinel look, and carries out what it decides.
    pub(super) fn look(&mut self, sentinel: usize) {
        let outlook = self.outlook(sentinel);
        for act in self.nodes[sentinel].look_around(&outlook) {
            self.carry_out_act(sentinel, act);
        }
    }

    /// Returns whether two nodes hear one another.
    fn are_connected(&self, one: usize, other: usize) -> bool {
        self.reaches(one, other) && self.reaches(other, one)
    }

    fn outlook(&self, sentinel: usize) -> Outlook {
        let seen =
            (0..self.nodes.len()).map(|node| self.are_connected(sentinel, node).then(|| self.sighting(node)));
        let others = (0..self.nodes.len()).filter(|&other| other != sentinel);
        let hellos = others.flat_map(|other| self.hellos(sentinel, other)).collect();
        Outlook { nodes: seen.collect(), hellos }
    }

    /// Returns what a node says about itself.
    fn sighting(&self, node: usize) -> Sighting {
        let node = &self.nodes[node];
        let replication = &node.replication;
        let replicas = replication.replicas.iter().filter(|replica| replica.online);
        Sighting {
            run_id: node.run_id.clone(),
            follows: match replication.role {
                Role::Replica { of } => Some(of),
                Role::Master | Role::Stray => None,
            },
            has_link: replication.master.online,
            offset: replication.offset,
            priority: node.config.get("replica-priority").and_then(|text| text.parse().ok()).unwrap_or(100),
            replicas: replicas.map(|replica| replica.node).collect(),
        }
    }

    /// Returns what a sentinel has heard from another, directly or through a server that both of them reach.
    fn hellos(&self, listener: usize, speaker: usize) -> Vec<Hello> {
        let Some(sentinel) = &self.nodes[speaker].sentinel else { return Vec::new() };
        let is_asked = self.are_connected(listener, speaker);
        let relays = || {
            let servers = (0..self.nodes.len()).filter(|&node| self.nodes[node].sentinel.is_none());
            servers.into_iter().any(|node| self.reaches(speaker, node) && self.reaches(node, listener))
        };
        match self.reaches(speaker, listener) || relays() {
            true => sentinel.hellos(speaker, &self.nodes[speaker].sentinel_address(), is_asked).collect(),
            false => Vec::new(),
        }
    }

    fn carry_out_act(&mut self, sentinel: usize, act: Act) {
        match act {
            Act::Promote { node } => {
                self.begin(node).disconnect_clients();
                self.promote(node);
            }
            Act::Follow { node, master } => {
                let Some(master) = self.nodes[sentinel].node_at(&master) else { return };
                if self.nodes[node].replication.role != (Role::Replica { of: master }) {
                    self.begin(node).disconnect_clients();
                    let _ = self.replicate(node, master);
                }
            }
            Act::Canvass { master, epoch } => {
                let Some(candidate) = self.nodes[sentinel].sentinel.as_ref().map(|own| own.id.clone()) else {
                    return;
                };
                for voter in 0..self.nodes.len() {
                    if voter == sentinel || !self.are_connected(sentinel, voter) {
                        continue;
                    }
                    let Some(vote) = self.begin(voter).vote(&master, epoch, &candidate) else { continue };
                    let id =
                        self.nodes[voter].sentinel.as_ref().map_or_else(String::new, |own| own.id.clone());
                    self.nodes[sentinel].take_vote(&master, &id, vote);
                }
            }
            Act::Tell => {
                let now_ms = self.clock.now().mono_ms();
                let others = self.nodes.iter_mut().enumerate().filter(|(node, _)| *node != sentinel);
                others.for_each(|(_, node)| node.look_at(now_ms));
            }
            Act::Crash => self.stop_node(sentinel, false, None),
        }
    }
}
