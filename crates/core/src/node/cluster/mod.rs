//! What a node knows of its cluster: the nodes, who serves which hash slot, and the epochs that decide between claims.
//!
//! Nodes exchange their views over the cluster bus, which the world carries (`world/cluster.rs`). A message arrives in the event that
//! causes it, unless a partition is in between. Time matters only where somebody is silent: one timer of the node's wheel fires at
//! the next moment at which a node is suspected, an election begins or a state ends. While all is well, there is none.
//!
//! The rules are those of `cluster.c` and `cluster_legacy.c` of Redis.

mod bus;
mod failover;
mod member;
mod redirect;
mod state;

use std::collections::BTreeMap;

use super::Node;
use super::config::Config;
use crate::image::{Reader, Words};
use crate::rng::Rng;
use crate::slots::{self, SLOTS, SlotSet};
use crate::topology::{MAX_NODES, Part};
use crate::wheel::TimerId;

pub use bus::{Header, Message, Target};
pub use failover::FailoverKind;
pub use member::{Address, Health, Member, NodeId};

pub(super) use redirect::is_redirection;

use failover::{Election, ManualFailover};

/// Nobody serves a slot.
const NOBODY: u16 = u16::MAX;

/// How long a forgotten node is not learned again from others, in ms.
const FORGOTTEN_MS: u64 = 60_000;

/// The longest `cluster-node-timeout`, in ms; a longer one has the same effect.
const MAX_TIMEOUT_MS: u64 = 1 << 48;

/// How clients are told where a node is (`cluster-preferred-endpoint-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endpoint {
    #[default]
    Ip,
    Hostname,
    Unknown,
}

/// The settings of cluster mode.
#[derive(Clone, Debug, Default)]
pub struct ClusterSettings {
    pub enabled: bool,
    pub node_timeout_ms: u64,
    pub requires_full_coverage: bool,
    pub allows_reads_when_down: bool,
    pub allows_shards_when_down: bool,
    pub replica_validity_factor: u64,
    pub replica_no_failover: bool,
    pub allows_replica_migration: bool,
    pub endpoint: Endpoint,
}

impl ClusterSettings {
    /// Reads the settings.
    pub fn of(config: &Config) -> ClusterSettings {
        let is_on = |name: &str| config.get(name) == Some("yes");
        let number =
            |name: &str| -> u64 { config.get(name).and_then(|text| text.parse().ok()).unwrap_or_default() };
        ClusterSettings {
            enabled: is_on("cluster-enabled"),
            node_timeout_ms: number("cluster-node-timeout").min(MAX_TIMEOUT_MS),
            requires_full_coverage: is_on("cluster-require-full-coverage"),
            allows_reads_when_down: is_on("cluster-allow-reads-when-down"),
            allows_shards_when_down: is_on("cluster-allow-pubsubshard-when-down"),
            replica_validity_factor: number("cluster-replica-validity-factor"),
            replica_no_failover: is_on("cluster-replica-no-failover"),
            allows_replica_migration: is_on("cluster-allow-replica-migration"),
            endpoint: match config.get("cluster-preferred-endpoint-type") {
                Some("hostname") => Endpoint::Hostname,
                Some("unknown-endpoint") => Endpoint::Unknown,
                _ => Endpoint::Ip,
            },
        }
    }
}

/// The cluster in the view of one node.
#[derive(Clone)]
pub struct Cluster {
    /// The nodes; this one is the first.
    members: Vec<Member>,
    /// The position among `members` of the node that serves a slot, or [`NOBODY`].
    owners: Box<[u16]>,
    /// The slots of this node that go to another, and those that it receives.
    pub migrating: BTreeMap<u16, NodeId>,
    pub importing: BTreeMap<u16, NodeId>,
    pub current_epoch: u64,
    pub last_vote_epoch: u64,
    /// Whether the cluster serves requests (`cluster_state:ok`).
    pub is_ok: bool,
    /// When this node last reached only a minority of the masters.
    minority_ms: Option<u64>,
    election: Option<Election>,
    manual: Option<ManualFailover>,
    /// Forgotten nodes, and until when nobody may bring them back.
    forgotten: BTreeMap<NodeId, u64>,
    /// The slot of the running script, once it has used a key.
    pub script_slot: Option<u16>,
    /// Messages that wait to be sent.
    outbox: Vec<(Target, Message)>,
    /// Whether all other nodes have to learn this node's view.
    announces: bool,
    /// Slots whose keys have to be removed, and slots whose subscribers have to go elsewhere.
    lost_slots: Vec<u16>,
    left_slots: Vec<u16>,
    /// Fires at the next moment at which something is due; `is_due` says that it has.
    timer: TimerId,
    is_due: bool,
    pub sent: u64,
    pub received: u64,
}

impl Cluster {
    /// Creates the view of a node that knows no other and serves nothing.
    pub fn new(node: usize, config: &Config, rng: &mut Rng) -> Cluster {
        let id = NodeId::random(rng);
        let shard = NodeId::random(rng);
        Cluster::alone(Member::new(id, shard, node, Address::of(config)))
    }

    fn alone(me: Member) -> Cluster {
        Cluster {
            members: vec![me],
            owners: vec![NOBODY; SLOTS].into(),
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            current_epoch: 0,
            last_vote_epoch: 0,
            is_ok: false,
            minority_ms: None,
            election: None,
            manual: None,
            forgotten: BTreeMap::new(),
            script_slot: None,
            outbox: Vec::new(),
            announces: false,
            lost_slots: Vec::new(),
            left_slots: Vec::new(),
            timer: TimerId::NONE,
            is_due: false,
            sent: 0,
            received: 0,
        }
    }

    /// Makes the views those of a complete cluster: all nodes know each other, and the masters share the slots evenly. `views` are in the
    /// order of `parts`.
    pub fn complete(views: &mut [&mut Cluster], parts: &[Part]) {
        let masters = parts.iter().filter(|part| **part == Part::Master).count();
        views.iter_mut().for_each(|view| view.begin_anew());
        let mut members: Vec<Member> = views.iter().map(|view| view.members[0].clone()).collect();
        for (at, part) in parts.iter().enumerate() {
            members[at].address.set_default_ip();
            match *part {
                Part::Replica { of } => {
                    members[at].master = Some(members[of].id);
                    members[at].shard = members[of].shard;
                }
                _ => {
                    members[at].config_epoch = at as u64 + 1;
                    members[at].slots = slots::even_share(at, masters).len();
                }
            }
        }
        for (own, view) in views.iter_mut().enumerate() {
            let mut known = members.clone();
            known[..=own].rotate_right(1);
            view.members = known;
            for master in 0..masters {
                let at = if master == own { 0 } else { master + usize::from(master < own) };
                slots::even_share(master, masters).for_each(|slot| view.owners[slot as usize] = at as u16);
            }
            view.current_epoch = masters as u64;
            view.is_ok = true;
        }
    }

    /// Forgets everything but the own identity.
    pub(crate) fn begin_anew(&mut self) {
        let mut me = self.members[0].clone();
        let address = me.address.clone();
        me = Member::new(me.id, me.shard, me.node, address);
        *self = Cluster::alone(me);
    }

    /// Takes a node of an image; the first is this one.
    pub(crate) fn take_member(&mut self, member: Member) -> Option<()> {
        if member.node == self.members[0].node {
            self.members[0] = member;
        } else if self.position(member.id).is_none() && self.members.len() < MAX_NODES {
            self.members.push(member);
        } else {
            return None;
        }
        Some(())
    }

    pub(crate) fn take_report(&mut self, about: NodeId, reporter: NodeId, said_ms: u64) -> Option<()> {
        let at = self.position(about)?;
        self.members[at].reports.insert(reporter, said_ms);
        Some(())
    }

    /// Adds the line about what concerns the view as a whole, and those about forgotten nodes.
    pub(crate) fn image_of_state(&self, line: Words, lines: &mut Vec<Words>) {
        let line = line.value(self.current_epoch).value(self.last_vote_epoch).flag(self.is_ok);
        let line = line.option(self.minority_ms).value(self.sent).value(self.received);
        let line = match &self.election {
            Some(election) => line
                .value("election")
                .value(election.time_ms)
                .value(election.rank)
                .option(election.epoch)
                .value(election.votes),
            None => line.value("none"),
        };
        let line = match &self.manual {
            Some(manual) => {
                line.value("manual").value(manual.end_ms).flag(manual.is_forced).flag(manual.is_master_paused)
            }
            None => line.value("none"),
        };
        let forgotten = self.forgotten.iter();
        lines.push(forgotten.fold(line, |line, (id, until_ms)| line.word(id.as_bytes()).value(until_ms)));
    }

    /// Takes that line.
    pub(crate) fn take_state(&mut self, line: &mut Reader) -> Option<()> {
        (self.current_epoch, self.last_vote_epoch) = (line.value()?, line.value()?);
        (self.is_ok, self.minority_ms) = (line.flag()?, line.option()?);
        (self.sent, self.received) = (line.value()?, line.value()?);
        if line.word()? == b"election" {
            let (time_ms, rank) = (line.value()?, line.value()?);
            self.election = Some(Election { time_ms, rank, epoch: line.option()?, votes: line.value()? });
        }
        if line.word()? == b"manual" {
            let (end_ms, is_forced) = (line.value()?, line.flag()?);
            self.manual = Some(ManualFailover { end_ms, is_forced, is_master_paused: line.flag()? });
        }
        while !line.is_empty() {
            self.forgotten.insert(NodeId::parse(line.word()?)?, line.value()?);
        }
        self.lost_slots.clear();
        self.left_slots.clear();
        Some(())
    }

    /// Returns this node.
    pub fn me(&self) -> &Member {
        &self.members[0]
    }

    pub(crate) fn me_mut(&mut self) -> &mut Member {
        &mut self.members[0]
    }

    /// Returns all nodes, this one first.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    fn position(&self, id: NodeId) -> Option<usize> {
        self.members.iter().position(|member| member.id == id)
    }

    /// Returns a node by its id.
    pub fn member(&self, id: NodeId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Returns the node that serves a slot.
    pub fn owner(&self, slot: u16) -> Option<&Member> {
        self.members.get(self.owners[slot as usize] as usize)
    }

    /// Returns whether this node serves a slot.
    pub fn owns(&self, slot: u16) -> bool {
        self.owners[slot as usize] == 0
    }

    /// Returns the master that this node follows.
    pub fn my_master(&self) -> Option<&Member> {
        self.member(self.me().master?)
    }

    /// Returns the slots that a node serves.
    pub fn slots_of(&self, id: NodeId) -> SlotSet {
        self.position(id).map_or_else(SlotSet::default, |at| SlotSet::of(&self.owners, at as u16))
    }

    /// Returns the replicas that follow a node.
    pub fn replicas_of(&self, id: NodeId) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| member.master == Some(id))
    }

    /// Returns how many masters serve slots.
    pub fn size(&self) -> usize {
        self.members.iter().filter(|member| member.is_master() && member.slots > 0).count()
    }

    /// Assigns a slot to a node, or to nobody.
    pub fn assign(&mut self, slot: u16, to: Option<NodeId>) {
        let to = to.and_then(|id| self.position(id));
        self.assign_at(slot, to);
    }

    fn assign_at(&mut self, slot: u16, to: Option<usize>) {
        let from = self.owners[slot as usize];
        if from != NOBODY {
            let old = &mut self.members[from as usize];
            old.slots -= 1;
            if Some(old.id) == self.me().master || from == 0 {
                self.left_slots.push(slot);
            }
        }
        self.owners[slot as usize] = to.map_or(NOBODY, |at| at as u16);
        if let Some(at) = to {
            self.members[at].slots += 1;
        }
        if from == 0 {
            self.migrating.remove(&slot);
        }
    }

    /// Removes a node from the view.
    fn remove_member(&mut self, id: NodeId) {
        let Some(at) = self.position(id) else { return };
        self.members.remove(at);
        for owner in &mut self.owners {
            match *owner {
                owner if owner == NOBODY || (owner as usize) < at => {}
                _ if *owner as usize == at => *owner = NOBODY,
                _ => *owner -= 1,
            }
        }
        self.migrating.retain(|_, to| *to != id);
        self.importing.retain(|_, from| *from != id);
        self.members.iter_mut().for_each(|member| {
            member.reports.remove(&id);
        });
        self.announces = true;
    }

    /// Removes a node, and does not learn of it again from others for a minute.
    pub fn forget(&mut self, id: NodeId, now_ms: u64) {
        self.remove_member(id);
        self.forgotten.retain(|_, until_ms| *until_ms > now_ms);
        self.forgotten.insert(id, now_ms + FORGOTTEN_MS);
    }

    /// Begins anew: this node is a master without slots that knows no other, with `id` if it gets a new one.
    pub fn reset(&mut self, id: Option<NodeId>, shard: NodeId) {
        while let Some(other) = self.members.get(1).map(|member| member.id) {
            self.remove_member(other);
        }
        (0..SLOTS as u16).for_each(|slot| self.assign_at(slot, None));
        self.forgotten.clear();
        self.migrating.clear();
        self.importing.clear();
        (self.election, self.manual) = (None, None);
        let me = &mut self.members[0];
        me.master = None;
        me.shard = shard;
        if let Some(id) = id {
            me.id = id;
            me.config_epoch = 0;
            (self.current_epoch, self.last_vote_epoch) = (0, 0);
        }
        self.outbox.clear();
        self.is_due = true;
    }

    /// Makes this node a replica of another.
    pub fn follow(&mut self, master: NodeId) {
        let Some(shard) = self.member(master).map(|member| member.shard) else { return };
        let me = self.me_mut();
        me.master = Some(master);
        me.shard = shard;
        self.migrating.clear();
        self.importing.clear();
        self.election = None;
        self.announces = true;
        self.is_due = true;
    }

    /// Raises the epoch of this node's claims above all that it knows of, without asking the others. Returns whether that was
    /// necessary.
    pub fn bump_epoch(&mut self) -> bool {
        let highest = self.members.iter().map(|member| member.config_epoch).max().unwrap_or(0);
        let highest = highest.max(self.current_epoch);
        let mine = self.me().config_epoch;
        if mine != 0 && mine == highest {
            return false;
        }
        self.current_epoch += 1;
        self.me_mut().config_epoch = self.current_epoch;
        self.announce();
        true
    }

    /// Lets all other nodes learn this node's view when the event ends.
    pub fn announce(&mut self) {
        self.announces = true;
        self.is_due = true;
    }

    /// Sends a message when the event ends.
    pub fn send(&mut self, target: Target, message: Message) {
        self.outbox.push((target, message));
    }
}

impl Address {
    /// Returns the address that a node announces.
    pub fn of(config: &Config) -> Address {
        let text = |name: &str| config.get(name).unwrap_or_default().to_owned();
        let number = |name: &str| text(name).parse::<u16>().ok().filter(|&port| port != 0);
        let port = number("port").unwrap_or(0);
        Address {
            ip: text("cluster-announce-ip"),
            port: number("cluster-announce-port").unwrap_or(port),
            bus_port: number("cluster-announce-bus-port")
                .or_else(|| number("cluster-port"))
                .unwrap_or_else(|| port.saturating_add(10_000)),
            hostname: text("cluster-announce-hostname"),
        }
    }

    /// Makes the address of this machine the one to use if none is announced.
    fn set_default_ip(&mut self) {
        if self.ip.is_empty() {
            self.ip = "127.0.0.1".to_owned();
        }
    }
}

impl Node {
    /// Returns the number of keys in a slot.
    pub fn count_keys_in(&self, slot: u16) -> usize {
        self.store.dbs[0].hash_slots().map_or(0, |index| index.count(slot))
    }

    /// Reads the announced address again, after a change of the settings.
    pub fn refresh_cluster(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        let ip = std::mem::take(&mut cluster.me_mut().address.ip);
        let mut address = Address::of(&self.config);
        if address.ip.is_empty() && !ip.is_empty() {
            address.set_default_ip();
        }
        cluster.me_mut().address = address;
        cluster.me_mut().no_failover = self.config.cluster.replica_no_failover;
        cluster.announce();
    }
}

#[cfg(test)]
mod tests;
