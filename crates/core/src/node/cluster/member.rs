//! The nodes of a cluster as one of them knows them.

use std::collections::BTreeMap;
use std::fmt;

use crate::rng::Rng;

/// Identifies a node or a shard of a cluster: forty hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId([u8; 40]);

impl NodeId {
    pub fn random(rng: &mut Rng) -> NodeId {
        let mut id = [0; 40];
        id.copy_from_slice(rng.hex(40).as_bytes());
        NodeId(id)
    }

    /// Parses an id. Returns `None` if it has not the length of one.
    pub fn parse(text: &[u8]) -> Option<NodeId> {
        text.try_into().ok().map(NodeId)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Where clients and other nodes find a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Empty until the node knows it.
    pub ip: String,
    pub port: u16,
    pub bus_port: u16,
    /// `cluster-announce-hostname`; empty if it is not set.
    pub hostname: String,
}

/// Whether a node hears another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    #[default]
    Fine,
    /// It has been silent for `cluster-node-timeout` (PFAIL).
    Suspected,
    /// A majority of masters has agreed that it failed (FAIL), at this time.
    Failed { since_ms: u64 },
}

/// A node of the cluster in the view of one of them. Times are monotonic, in ms.
#[derive(Clone, Debug)]
pub struct Member {
    pub id: NodeId,
    pub shard: NodeId,
    /// Its number in the world.
    pub node: usize,
    pub address: Address,
    /// The master that it follows; a master has none.
    pub master: Option<NodeId>,
    pub config_epoch: u64,
    pub health: Health,
    /// Whether it never takes over from its master by itself (`cluster-replica-no-failover`).
    pub no_failover: bool,
    /// How many slots it serves.
    pub slots: usize,
    /// Its replication offset, as it last said.
    pub offset: u64,
    /// When it became silent, if it is.
    pub silent_since_ms: Option<u64>,
    /// When this node last voted for one of its replicas.
    pub voted_ms: Option<u64>,
    /// The masters that take it for failed, and when they said so.
    pub reports: BTreeMap<NodeId, u64>,
}

impl Member {
    pub fn new(id: NodeId, shard: NodeId, node: usize, address: Address) -> Member {
        Member {
            id,
            shard,
            node,
            address,
            master: None,
            config_epoch: 0,
            health: Health::Fine,
            no_failover: false,
            slots: 0,
            offset: 0,
            silent_since_ms: None,
            voted_ms: None,
            reports: BTreeMap::new(),
        }
    }

    pub fn is_master(&self) -> bool {
        self.master.is_none()
    }

    pub fn has_failed(&self) -> bool {
        matches!(self.health, Health::Failed { .. })
    }

    /// Returns whether it has failed or may have failed.
    pub fn is_suspect(&self) -> bool {
        self.health != Health::Fine
    }
}
