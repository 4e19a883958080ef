//! Carries the writes of masters to their replicas.

use std::rc::Rc;

use super::World;
use crate::node::migration::Target;
use crate::node::replication::{Link, Peer, Role, Wish};
use crate::node::sentinel::Address;
use crate::node::session::SessionId;

/// The reason why a replication command cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationError {
    /// The node would follow itself, directly or through other nodes.
    Circle { node: usize, master: usize },
    /// The node is a master, which has no link.
    NotAReplica(usize),
}

impl std::fmt::Display for ReplicationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplicationError::Circle { node, master } => {
                write!(f, "node {node} cannot follow node {master}: it would follow itself")
            }
            ReplicationError::NotAReplica(node) => {
                write!(f, "node {node} is a master")
            }
        }
    }
}

impl std::error::Error for ReplicationError {}

impl World {
    /// Returns the nodes that follow this one.
    fn replicas_of(&self, master: usize) -> Vec<usize> {
        let follows = |&node: &usize| self.nodes[node].replication.role == Role::Replica { of: master };
        (0..self.nodes.len()).filter(follows).collect()
    }

    /// Sends the writes of the current event on `node` to its replicas. `writer` is the client that wrote, if any.
    pub(super) fn send_writes(&mut self, node: usize, writer: Option<SessionId>) {
        // A running script sends what it has written when it ends, as a whole.
        if !self.nodes[node].replication.has_changes() || self.is_running_script(node) {
            return;
        }
        let entry = Rc::new(self.nodes[node].take_entry());
        if let Some(session) = writer.and_then(|writer| self.nodes[node].sessions.get_mut(writer)) {
            session.write_offset = entry.offset;
        }
        for replica in self.replicas_of(node) {
            self.nodes[replica].replication.in_transit.push_back(entry.clone());
        }
        self.deliver_writes();
    }

    /// Sets the state of the link from a replica's master to the replica.
    ///
    /// # Errors
    ///
    /// Fails if the node is a master.
    pub fn set_link(&mut self, replica: usize, link: Link) -> Result<(), ReplicationError> {
        if self.nodes[replica].replication.role == Role::Master {
            return Err(ReplicationError::NotAReplica(replica));
        }
        self.nodes[replica].replication.link = link;
        self.deliver_writes();
        self.wake_sentinels();
        Ok(())
    }

    /// Brings what nodes know of their masters and replicas up to date after one of them, or a connection, went down or came
    /// back.
    pub(super) fn links_changed(&mut self) {
        self.deliver_writes();
        (0..self.nodes.len()).for_each(|node| self.show_peers(node));
    }

    /// Returns whether a replica is connected to its master. A connection survives a pause.
    fn is_linked(&self, master: usize, replica: usize) -> bool {
        let is_stopped = self.nodes[master].stopped || self.nodes[replica].stopped;
        let is_cut = self.is_cut(master, replica) || self.is_cut(replica, master);
        self.nodes[replica].replication.link != Link::Down && !is_stopped && !is_cut
    }

    /// Delivers the entries that the links let through, also to replicas of replicas.
    pub(super) fn deliver_writes(&mut self) {
        for index in 0..self.nodes.len() {
            let Role::Replica { of: master } = self.nodes[index].replication.role else { continue };
            if self.is_running_script(index) {
                continue;
            }
            let kept = match self.nodes[index].replication.link {
                _ if !self.reaches(master, index) => usize::MAX,
                Link::Up => 0,
                Link::Lag(writes) => writes,
                Link::Down => usize::MAX,
            };
            while self.nodes[index].replication.in_transit.len() > kept {
                let node = self.begin(index);
                let Some(entry) = node.replication.in_transit.pop_front() else { break };
                node.apply_entry(&entry);
            }
            self.show_peers(master);
            self.send_writes(index, None);
            self.nodes[master].answer_waits();
        }
    }

    /// Makes a node follow `master`, beginning with a copy of all its data.
    ///
    /// # Errors
    ///
    /// Fails if the node would follow itself, directly or through other nodes.
    pub fn replicate(&mut self, node: usize, master: usize) -> Result<(), ReplicationError> {
        let mut above = master;
        loop {
            if above == node {
                return Err(ReplicationError::Circle { node, master });
            }
            match self.nodes[above].replication.role {
                Role::Replica { of } => above = of,
                Role::Master | Role::Stray => break,
            }
        }
        self.promote(node);
        self.nodes[node].replication.role = Role::Replica { of: master };
        self.nodes[node].replication.link = Link::Up;
        self.resync(node, master);
        self.show_peers(master);
        self.wake_sentinels();
        Ok(())
    }

    /// Carries out what a command of a client asked for. A node that would follow itself through others stays what it is, as in
    /// Redis, where such replicas wait for one another.
    pub(super) fn carry_out_wish(&mut self, node: usize, wish: Wish) {
        match wish {
            Wish::Lead => self.promote(node),
            Wish::Follow { master } => {
                let _ = self.replicate(node, master);
            }
            Wish::Stray { master } => self.stray(node, &master),
            Wish::Look => self.look(node),
            Wish::Migrate(migration) => {
                let Target::Node(target) = migration.target else { return };
                let (arrived, failure) = self.begin(target).receive(&migration);
                self.end(target, None);
                self.begin(node).end_migration(&migration, &arrived, failure);
                self.send_writes(node, Some(migration.client));
            }
            Wish::HandOver { heir } => {
                let others = self.replicas_of(node).into_iter().filter(|&replica| replica != heir);
                let followers: Vec<usize> = others.chain([node]).collect();
                self.nodes[heir].replication.link = Link::Up;
                self.deliver_writes();
                self.promote(heir);
                for follower in followers {
                    let _ = self.replicate(follower, heir);
                }
            }
        }
    }

    /// Makes a node the replica of a server that is no node of this world: it keeps its data, and waits for ever.
    pub(super) fn stray(&mut self, node: usize, master: &Address) {
        self.promote(node);
        let replication = &mut self.nodes[node].replication;
        replication.role = Role::Stray;
        replication.link = Link::Down;
        replication.master =
            Peer { host: master.host.clone(), port: master.port.to_string(), ..Peer::default() };
        replication.down_ms = None;
        self.wake_sentinels();
    }

    /// Replaces the data of a replica with that of its master.
    fn resync(&mut self, replica: usize, master: usize) {
        let entry = self.begin(master).full_entry();
        let node = self.begin(replica);
        (0..node.store.dbs.len()).for_each(|db| node.flush_db(db));
        node.replication.in_transit.clear();
        node.apply_entry(&entry);
        node.serve_ready_keys();
    }

    /// Resynchronizes the replicas of a master whose data was replaced as a whole.
    pub(super) fn resync_replicas(&mut self, master: usize) {
        for replica in self.replicas_of(master) {
            self.resync(replica, master);
        }
        self.show_peers(master);
    }

    /// Makes a node a master with its present data. Writes that have not arrived are lost to it.
    pub fn promote(&mut self, node: usize) {
        let before = std::mem::take(&mut self.nodes[node].replication.role);
        self.nodes[node].replication.in_transit.clear();
        if let Role::Replica { of } = before {
            self.show_peers(of);
        }
        if before != Role::Master {
            self.begin(node).resume_expiry();
            self.wake_sentinels();
        }
    }

    /// Updates what INFO, ROLE and WAIT of a master and its replicas report about one another.
    pub(super) fn show_peers(&mut self, master: usize) {
        let peer = |world: &World, index: usize, online: bool| {
            let node = &world.nodes[index];
            let port = node.config.get("port").unwrap_or("0").to_owned();
            Peer { node: index, host: "127.0.0.1".to_owned(), port, offset: node.replication.offset, online }
        };
        let replicas = self.replicas_of(master);
        let links: Vec<bool> = replicas.iter().map(|&replica| self.is_linked(master, replica)).collect();
        let peers = replicas.iter().zip(&links).map(|(&replica, &up)| peer(self, replica, up)).collect();
        let (own, now_ms) = (peer(self, master, true), self.clock.now().mono_ms());
        self.nodes[master].replication.replicas = peers;
        for (replica, online) in replicas.into_iter().zip(links) {
            let replication = &mut self.nodes[replica].replication;
            replication.master = Peer { online, ..own.clone() };
            replication.down_ms = match online {
                true => None,
                false => replication.down_ms.or(Some(now_ms)),
            };
        }
    }
}
