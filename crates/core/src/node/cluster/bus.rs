//! The cluster bus: what nodes tell each other, and what a node makes of it.

use std::rc::Rc;

use super::{Address, Cluster, Health, Member, NodeId};
use crate::node::Node;
use crate::node::session::SubscriptionKind;
use crate::slots::SlotSet;

/// What a node says about itself with every message.
#[derive(Clone, Debug)]
pub struct Header {
    pub id: NodeId,
    pub shard: NodeId,
    /// Its number in the world.
    pub node: usize,
    pub address: Address,
    pub master: Option<NodeId>,
    pub current_epoch: u64,
    /// The epoch of its claims, or of those of its master.
    pub config_epoch: u64,
    /// The slots that it serves, or that its master does.
    pub slots: Rc<SlotSet>,
    pub offset: u64,
    pub no_failover: bool,
    /// Whether its clients wait for a failover that its replica has asked for.
    pub is_paused: bool,
    /// All nodes that it knows, by id and number in the world.
    known: Rc<[(NodeId, usize)]>,
    /// The nodes that it takes for failed.
    suspects: Rc<[NodeId]>,
}

/// A message.
#[derive(Clone, Debug)]
pub enum Message {
    /// The header is all there is to say.
    View,
    /// The receiver shall know the sender, whom CLUSTER MEET sent.
    Meet,
    /// The receiver shall answer, because the sender has heard of it.
    Hello,
    /// The answer to both.
    Welcome,
    /// A majority of masters agrees that a node has failed.
    Failed(NodeId),
    /// A replica asks for a vote. `forced`: although its master has not failed.
    AskForVote {
        forced: bool,
    },
    Vote,
    /// The receiver has claimed slots that a node serves with a later epoch.
    Update {
        id: NodeId,
        config_epoch: u64,
        slots: Rc<SlotSet>,
    },
    /// A replica asks its master to pause its clients.
    PauseForFailover,
    /// A message of a client to all subscribers of a channel.
    Publish {
        kind: SubscriptionKind,
        channel: Box<[u8]>,
        message: Box<[u8]>,
    },
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    All,
    /// The other nodes of the sender's shard.
    Shard,
    Member(NodeId),
    /// A node of the world that the sender may not know yet.
    Node(usize),
}

impl Cluster {
    /// Returns whether there is something to do before the event ends.
    pub fn is_restless(&self) -> bool {
        self.is_due || self.announces || !self.outbox.is_empty()
    }

    /// Takes the messages that wait, each with the numbers of the nodes that it is for.
    pub fn take_mail(&mut self) -> Vec<(Vec<usize>, Message)> {
        if std::mem::take(&mut self.announces) {
            self.outbox.push((Target::All, Message::View));
        }
        let me = self.me();
        let shard = me.master.unwrap_or(me.id);
        let targets = |target: Target| {
            let others = self.members.iter().skip(1).filter(|member| match target {
                Target::All => true,
                Target::Shard => member.id == shard || member.master == Some(shard),
                Target::Member(id) => member.id == id,
                Target::Node(_) => false,
            });
            match target {
                Target::Node(node) => vec![node],
                _ => others.map(|member| member.node).collect(),
            }
        };
        let mail = self.outbox.iter().map(|(target, message)| (targets(*target), message.clone())).collect();
        self.outbox.clear();
        mail
    }

    fn learn(&mut self, header: &Header) {
        let mut member = Member::new(header.id, header.shard, header.node, header.address.clone());
        member.address.set_default_ip();
        self.forgotten.remove(&header.id);
        self.members.push(member);
        self.announce();
    }
}

impl Node {
    /// Returns what this node says about itself.
    pub fn cluster_header(&self) -> Option<Header> {
        let cluster = self.cluster.as_ref()?;
        let me = cluster.me();
        let speaker = cluster.my_master().unwrap_or(me);
        Some(Header {
            id: me.id,
            shard: me.shard,
            node: self.index,
            address: me.address.clone(),
            master: me.master,
            current_epoch: cluster.current_epoch,
            config_epoch: speaker.config_epoch,
            slots: Rc::new(cluster.slots_of(speaker.id)),
            offset: self.replication.offset,
            no_failover: self.config.cluster.replica_no_failover,
            is_paused: me.is_master() && cluster.manual.is_some(),
            known: cluster.members.iter().map(|member| (member.id, member.node)).collect(),
            suspects: (cluster.members.iter().filter(|member| member.is_suspect()))
                .map(|member| member.id)
                .collect(),
        })
    }

    /// Receives a message of another node.
    pub fn hear(&mut self, header: &Header, message: &Message) {
        let Some(cluster) = &mut self.cluster else { return };
        cluster.received += 1;
        let is_greeting = matches!(message, Message::Meet | Message::Welcome);
        if is_greeting && header.id != cluster.me().id && cluster.position(header.id).is_none() {
            // A node that was met learns by that where others find it.
            cluster.me_mut().address.set_default_ip();
            cluster.learn(header);
        }
        if matches!(message, Message::Meet | Message::Hello) {
            cluster.send(Target::Node(header.node), Message::Welcome);
        }
        if cluster.position(header.id).is_none_or(|at| at == 0) {
            return;
        }
        cluster.current_epoch = cluster.current_epoch.max(header.current_epoch);
        match message {
            Message::View | Message::Meet | Message::Hello | Message::Welcome => self.take_view(header),
            Message::Failed(id) => self.take_failure(*id),
            Message::AskForVote { forced } => self.consider_vote(header, *forced),
            Message::Vote => self.count_vote(header),
            Message::Update { id, config_epoch, slots } => self.take_update(*id, *config_epoch, slots),
            Message::PauseForFailover => self.pause_for_failover(header.id),
            Message::Publish { kind, channel, message } => {
                self.publish_here(*kind, channel, message);
            }
        }
        self.settle_slots();
    }

    fn take_view(&mut self, header: &Header) {
        let now_ms = self.store.now.mono_ms();
        let Some(cluster) = &mut self.cluster else { return };
        let Some(at) = cluster.position(header.id) else { return };
        let was_master = cluster.members[at].is_master();
        let member = &mut cluster.members[at];
        member.node = header.node;
        member.address = header.address.clone();
        member.address.set_default_ip();
        member.shard = header.shard;
        member.offset = header.offset;
        member.no_failover = header.no_failover;
        member.config_epoch = member.config_epoch.max(header.config_epoch);
        member.master = header.master;
        if was_master && header.master.is_some() {
            let theirs = cluster.slots_of(header.id);
            theirs.iter().for_each(|slot| cluster.assign_at(slot, None));
            cluster.is_due = true;
        }
        // My master has found a master of its own.
        if let (true, Some(above)) = (cluster.me().master == Some(header.id), header.master)
            && above != cluster.me().id
            && cluster.position(above).is_some()
        {
            cluster.follow(above);
        }
        let speaker = header.master.unwrap_or(header.id);
        if let Some(speaker) = cluster.position(speaker)
            && cluster.slots_of(cluster.members[speaker].id) != *header.slots
        {
            if header.master.is_none() {
                self.take_claims(header.id, header.config_epoch, &header.slots);
            }
            self.correct(header);
        }
        self.resolve_collision(header);
        let Some(cluster) = &mut self.cluster else { return };
        if header.master.is_none() {
            for member in &mut cluster.members[1..] {
                if header.suspects.contains(&member.id) && member.id != header.id {
                    member.reports.insert(header.id, now_ms);
                } else {
                    member.reports.remove(&header.id);
                }
            }
            header.suspects.iter().for_each(|&id| self.consider_failed(id));
        }
        self.meet_others(header);
        self.note_paused_master(header);
    }

    /// Learns of nodes that another knows.
    fn meet_others(&mut self, header: &Header) {
        let now_ms = self.store.now.mono_ms();
        let Some(cluster) = &mut self.cluster else { return };
        for &(id, node) in header.known.iter() {
            let is_forgotten = cluster.forgotten.get(&id).is_some_and(|until_ms| *until_ms > now_ms);
            if cluster.position(id).is_none() && !is_forgotten {
                cluster.send(Target::Node(node), Message::Hello);
            }
        }
    }

    /// Takes over what a master claims to serve, as far as it has the later epoch.
    fn take_claims(&mut self, id: NodeId, epoch: u64, slots: &SlotSet) {
        let may_migrate = self.config.cluster.allows_replica_migration;
        let Some(cluster) = &mut self.cluster else { return };
        let Some(at) = cluster.position(id).filter(|&at| at != 0) else { return };
        let served = cluster.me().master.unwrap_or(cluster.me().id);
        let (mut lost, mut claimed) = (0, 0);
        let mut emptied = Vec::new();
        for slot in slots.iter() {
            claimed += 1;
            if cluster.owners[slot as usize] == at as u16 || cluster.importing.contains_key(&slot) {
                continue;
            }
            let owner = cluster.owner(slot).map(|owner| (owner.id, owner.config_epoch));
            if owner.is_some_and(|(_, owned)| owned >= epoch) {
                continue;
            }
            if owner.is_some_and(|(owner, _)| owner == served) {
                lost += 1;
                emptied.push(slot);
            }
            cluster.assign_at(slot, Some(at));
            cluster.is_due = true;
        }
        let nothing_left = cluster.member(served).is_none_or(|served| served.slots == 0);
        if lost > 0 && nothing_left && (may_migrate || claimed == lost) {
            cluster.follow(id);
        } else if cluster.me().is_master() {
            cluster.lost_slots.extend(emptied);
        }
    }

    /// Tells a node that claims slots which others serve with a later epoch who they are.
    fn correct(&mut self, header: &Header) {
        let Some(cluster) = &mut self.cluster else { return };
        let speaker = header.master.unwrap_or(header.id);
        let stale = header.slots.iter().find_map(|slot| {
            let owner = cluster.owner(slot)?;
            (owner.id != speaker && owner.id != header.id && owner.config_epoch > header.config_epoch)
                .then_some((owner.id, owner.config_epoch))
        });
        if let Some((id, config_epoch)) = stale {
            let slots = Rc::new(cluster.slots_of(id));
            cluster.send(Target::Member(header.id), Message::Update { id, config_epoch, slots });
        }
    }

    fn take_update(&mut self, id: NodeId, config_epoch: u64, slots: &SlotSet) {
        let Some(cluster) = &mut self.cluster else { return };
        let Some(at) = cluster.position(id).filter(|&at| at != 0) else { return };
        let member = &mut cluster.members[at];
        if member.config_epoch >= config_epoch {
            return;
        }
        (member.master, member.config_epoch) = (None, config_epoch);
        self.take_claims(id, config_epoch, slots);
    }

    /// Two masters with the same epoch cannot be told apart: the one with the lower id takes a new epoch.
    fn resolve_collision(&mut self, header: &Header) {
        let Some(cluster) = &mut self.cluster else { return };
        let me = cluster.me();
        let collides = me.is_master() && header.master.is_none() && me.config_epoch == header.config_epoch;
        if collides && header.id > me.id {
            cluster.current_epoch += 1;
            cluster.me_mut().config_epoch = cluster.current_epoch;
            cluster.announce();
        }
    }

    fn take_failure(&mut self, id: NodeId) {
        let since_ms = self.store.now.mono_ms();
        let Some(cluster) = &mut self.cluster else { return };
        let Some(at) = cluster.position(id).filter(|&at| at != 0) else { return };
        if !cluster.members[at].has_failed() {
            cluster.members[at].health = Health::Failed { since_ms };
            cluster.announce();
        }
    }

    /// Takes a suspected node for failed if a majority of masters does.
    pub(super) fn consider_failed(&mut self, id: NodeId) {
        let now_ms = self.store.now.mono_ms();
        let valid_ms = self.config.cluster.node_timeout_ms * 2;
        let Some(cluster) = &mut self.cluster else { return };
        let Some(at) = cluster.position(id) else { return };
        if cluster.members[at].health != Health::Suspected {
            return;
        }
        // A report of a node that is silent itself goes out of date.
        let counts = |reporter: &NodeId, said_ms: u64| {
            cluster.member(*reporter).is_some_and(|reporter| {
                reporter.is_master() && (reporter.silent_since_ms.is_none() || said_ms + valid_ms >= now_ms)
            })
        };
        let reports = cluster.members[at].reports.iter();
        let reports = reports.filter(|(reporter, said_ms)| counts(reporter, **said_ms)).count();
        let is_master = cluster.me().is_master();
        if reports + usize::from(is_master) < cluster.size() / 2 + 1 {
            return;
        }
        cluster.members[at].health = Health::Failed { since_ms: now_ms };
        if is_master {
            cluster.send(Target::All, Message::Failed(id));
        }
        cluster.announce();
    }

    /// Makes this node know another of the world, and the other know this one.
    pub fn meet(&mut self, node: usize) {
        if let Some(cluster) = &mut self.cluster {
            cluster.me_mut().address.set_default_ip();
            cluster.send(Target::Node(node), Message::Meet);
        }
    }
}
