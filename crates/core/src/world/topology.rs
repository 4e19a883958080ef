//! The places that nodes take when a world begins: who follows whom, and who watches whom.

use super::World;
use crate::node::Config;
use crate::node::sentinel::{Address, MasterSettings, SentinelSettings};
use crate::topology::{Part, Topology};

/// The name under which the sentinels of a topology watch its master.
pub const MASTER_NAME: &str = "mymaster";

/// Returns the settings of the nodes of a topology: each has a port of its own, and sentinels know whom they watch.
pub(super) fn configs(mut nodes: Vec<Config>, topology: Option<Topology>) -> Vec<Config> {
    let Some(topology) = topology else { return nodes };
    let port_of = |config: &Config| config.get("port").and_then(|port| port.parse::<u16>().ok()).unwrap_or(0);
    let mut ports: Vec<u16> = nodes.iter().map(port_of).collect();
    ports.sort_unstable();
    ports.dedup();
    if ports.len() < nodes.len() {
        const DEFAULT_PORT: u16 = 6379;
        let first = ports.first().copied().filter(|&port| port != 0).unwrap_or(DEFAULT_PORT);
        for (index, config) in nodes.iter_mut().enumerate() {
            let port = first.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
            // A number is a port.
            let _ = config.set_at_start("port", port.to_string().as_bytes());
        }
    }
    if let Topology::Cluster { .. } = topology {
        for config in &mut nodes {
            config.set_at_start("cluster-enabled", b"yes").expect("every release has this setting");
        }
    }
    if let Topology::Sentinel { sentinels, .. } = topology {
        let master = Address { host: "127.0.0.1".to_owned(), port: nodes.first().map_or(0, port_of) };
        let quorum = sentinels / 2 + 1;
        let watchers = nodes.iter_mut().zip(topology.parts()).filter(|(_, part)| *part == Part::Sentinel);
        for (config, _) in watchers {
            let settings = config.sentinel.get_or_insert_default();
            watch_master(settings, &master, quorum);
        }
    }
    nodes
}

/// Lets a sentinel watch the master of its topology, unless its own settings name a master.
fn watch_master(settings: &mut SentinelSettings, master: &Address, quorum: usize) {
    if settings.masters.is_empty() {
        let (port, quorum) = (master.port.to_string(), quorum.to_string());
        let master = MasterSettings::new(MASTER_NAME, &master.host, &port, &quorum, &settings.globals);
        settings.masters.extend(master);
    }
}

impl World {
    /// Lets replicas follow their masters and sentinels look for the first time, as part of no event.
    pub(super) fn take_places(&mut self) {
        let events = self.events;
        self.form_cluster();
        // The nodes of a cluster follow whom their views name.
        let parts = self.topology.filter(|_| !self.is_clustered).map(Topology::parts).unwrap_or_default();
        for index in 0..self.nodes.len() {
            let of = match parts.get(index) {
                Some(Part::Replica { of }) => Some(Ok(*of)),
                _ => self.configured_master(index),
            };
            match of {
                // A node that would follow itself remains a master.
                Some(Ok(of)) => drop(self.replicate(index, of)),
                Some(Err(stranger)) => self.stray(index, &stranger),
                None => {}
            }
        }
        let sentinels = (0..self.nodes.len()).filter(|&node| self.nodes[node].config.sentinel.is_some());
        let sentinels: Vec<usize> = sentinels.collect();
        sentinels.iter().for_each(|&sentinel| self.nodes[sentinel].begin_sentinel());
        // The second time they know one another.
        sentinels.iter().chain(&sentinels).for_each(|&sentinel| self.look(sentinel));
        self.events = events;
    }

    /// Returns the node that another one follows by its settings, or the address that no node of this world has.
    fn configured_master(&self, index: usize) -> Option<Result<usize, Address>> {
        let node = &self.nodes[index];
        let (host, port) = node.config.get("replicaof")?.split_once(' ')?;
        let port = port.trim();
        let found = node.replication.node_at(host.as_bytes(), port.as_bytes(), index);
        Some(found.ok_or_else(|| {
            tracing::warn!(
                "replicaof {host} {port}: no other node of this process listens there, and Redlatch replicates \
                 between its own nodes alone; the link stays down"
            );
            Address { host: host.to_owned(), port: port.parse().unwrap_or(0) }
        }))
    }
}
