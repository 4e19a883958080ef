//! Carries the cluster bus, and gives nodes the roles that their views say they have.

use super::World;
use crate::node::cluster::{Cluster, Header, Message};
use crate::node::replication::Role;
use crate::topology::Topology;

impl World {
    /// Makes the nodes a cluster that is complete, if the topology is one.
    pub(super) fn form_cluster(&mut self) {
        self.is_clustered = self.nodes.iter().any(|node| node.cluster.is_some());
        let Some(topology @ Topology::Cluster { .. }) = self.topology else { return };
        let mut views: Vec<&mut Cluster> =
            self.nodes.iter_mut().filter_map(|node| node.cluster.as_deref_mut()).collect();
        let parts = topology.parts();
        if views.len() == parts.len() {
            Cluster::complete(&mut views, &parts);
            (0..self.nodes.len()).for_each(|node| self.follow_view(node));
        }
    }

    /// Lets the nodes of a cluster learn whom they hear from here on.
    pub(super) fn watch_cluster(&mut self) {
        if !self.is_clustered {
            return;
        }
        for observer in 0..self.nodes.len() {
            if self.runs(observer) {
                let heard: Vec<bool> =
                    (0..self.nodes.len()).map(|sender| self.reaches(sender, observer)).collect();
                self.join(observer).notice(|sender| heard.get(sender).is_some_and(|heard| *heard));
            } else if let Some(cluster) = &mut self.nodes[observer].cluster {
                cluster.stand_still();
            }
        }
        self.exchange_views();
    }

    /// Delivers the messages of the cluster bus until nobody has anything to say.
    pub(super) fn exchange_views(&mut self) {
        // Every message makes views more alike, so the exchange ends; the bound is for a defect.
        for _ in 0..1000 {
            let is_restless = |node: &usize| {
                self.runs(*node) && self.nodes[*node].cluster.as_ref().is_some_and(|view| view.is_restless())
            };
            let restless: Vec<usize> = (0..self.nodes.len()).filter(is_restless).collect();
            if restless.is_empty() {
                return;
            }
            restless.into_iter().for_each(|node| self.speak(node));
        }
        debug_assert!(false, "the nodes of a cluster do not come to an end");
    }

    /// Lets a node do what is due, take its role and send its messages.
    fn speak(&mut self, node: usize) {
        self.join(node).advance_cluster();
        self.nodes[node].settle_slots();
        self.follow_view(node);
        let Some(header) = self.nodes[node].cluster_header() else { return };
        let Some(cluster) = &mut self.nodes[node].cluster else { return };
        for (receivers, message) in cluster.take_mail() {
            receivers.into_iter().for_each(|receiver| self.deliver_on_bus(&header, receiver, &message));
        }
        self.nodes[node].serve_ready_keys();
    }

    fn deliver_on_bus(&mut self, header: &Header, receiver: usize, message: &Message) {
        if let Some(cluster) = &mut self.nodes[header.node].cluster {
            cluster.sent += 1;
        }
        if receiver != header.node
            && self.nodes.get(receiver).is_some()
            && self.reaches(header.node, receiver)
        {
            self.join(receiver).hear(header, message);
            self.nodes[receiver].serve_ready_keys();
        }
    }

    /// Gives a node the role in replication that its view says it has. A replica begins when its master reaches it.
    fn follow_view(&mut self, node: usize) {
        let Some(cluster) = &self.nodes[node].cluster else { return };
        let role = self.nodes[node].replication.role;
        match cluster.my_master().map(|master| master.node) {
            None if role != Role::Master => self.promote(node),
            Some(master) if role != (Role::Replica { of: master }) && self.reaches(master, node) => {
                // A circle lasts until the views agree.
                let _ = self.replicate(node, master);
            }
            _ => {}
        }
    }
}
