//! Carries the writes of masters to their replicas.

use std::rc::Rc;

use super::World;
use crate::control::SimError;
use crate::control::words::state;
use crate::node::replication::{Link, Peer, Role};
use crate::node::session::SessionId;

impl World {
    /// Nodes that follow this one.
    fn replicas_of(&self, master: usize) -> Vec<usize> {
        let follows = |&node: &usize| self.nodes[node].replication.role == Role::Replica { of: master };
        (0..self.nodes.len()).filter(follows).collect()
    }

    /// What nodes wrote in the present event is on its way from now on. `writer`: the client that wrote.
    pub(super) fn send_writes(&mut self, node: usize, writer: Option<SessionId>) {
        if !self.nodes[node].replication.has_changes() {
            return;
        }
        let entry = Rc::new(self.nodes[node].take_entry());
        if let Some(session) = writer.and_then(|writer| self.nodes[node].sessions.get_mut(writer)) {
            session.write_offset = entry.offset;
        }
        for replica in self.replicas_of(node) {
            self.nodes[replica].replication.on_the_way.push_back(entry.clone());
        }
        self.deliver_writes();
    }

    /// Lets arrive what the links let through; replicas of replicas follow.
    pub(crate) fn deliver_writes(&mut self) {
        for index in 0..self.nodes.len() {
            let Role::Replica { of: master } = self.nodes[index].replication.role else { continue };
            let kept = match self.nodes[index].replication.link {
                Link::Up => 0,
                Link::Lag(writes) => writes,
                Link::Down => usize::MAX,
            };
            while self.nodes[index].replication.on_the_way.len() > kept {
                let node = self.begin(index);
                let Some(entry) = node.replication.on_the_way.pop_front() else { break };
                node.apply_entry(&entry);
            }
            self.show_peers(master);
            self.send_writes(index, None);
            self.nodes[master].answer_waits();
        }
    }

    /// Makes a node follow another, beginning with all its data.
    pub(crate) fn replicate(&mut self, node: usize, master: usize) -> Result<(), SimError> {
        let mut above = master;
        loop {
            if above == node {
                return Err(state(format!(
                    "node {node} cannot follow node {master}: it would follow itself"
                )));
            }
            match self.nodes[above].replication.role {
                Role::Replica { of } => above = of,
                Role::Master => break,
            }
        }
        self.promote(node);
        self.nodes[node].replication.role = Role::Replica { of: master };
        self.nodes[node].replication.link = Link::Up;
        self.resync(node, master);
        self.show_peers(master);
        Ok(())
    }

    /// A replica gets all data of its master anew.
    fn resync(&mut self, replica: usize, master: usize) {
        let entry = self.begin(master).full_entry();
        let node = self.begin(replica);
        (0..node.store.dbs.len()).for_each(|db| node.flush_db(db));
        node.replication.on_the_way.clear();
        node.apply_entry(&entry);
    }

    /// The data of a master is another than what it wrote.
    pub(crate) fn resync_replicas(&mut self, master: usize) {
        for replica in self.replicas_of(master) {
            self.resync(replica, master);
        }
        self.show_peers(master);
    }

    /// A node is a master from now on, with the data it has; writes that have not arrived are lost to it.
    pub(crate) fn promote(&mut self, node: usize) {
        let before = std::mem::take(&mut self.nodes[node].replication.role);
        self.nodes[node].replication.on_the_way.clear();
        if let Role::Replica { of } = before {
            self.show_peers(of);
            self.begin(node).resume_expiry();
        }
    }

    /// INFO, ROLE and WAIT of a master and its replicas show how things are.
    fn show_peers(&mut self, master: usize) {
        let peer = |world: &World, index: usize, online: bool| {
            let node = &world.nodes[index];
            let port = node.config.get("port").unwrap_or("0").to_owned();
            Peer { port, offset: node.replication.offset, online: online && !node.stopped }
        };
        let replicas = self.replicas_of(master);
        let links: Vec<bool> =
            replicas.iter().map(|&replica| self.nodes[replica].replication.link != Link::Down).collect();
        let peers = replicas.iter().zip(&links).map(|(&replica, &up)| peer(self, replica, up)).collect();
        let own = peer(self, master, true);
        self.nodes[master].replication.replicas = peers;
        for (replica, up) in replicas.into_iter().zip(links) {
            self.nodes[replica].replication.master = Peer { online: up && own.online, ..own.clone() };
        }
    }
}
