//! How a replica takes over from its master: when the master has failed, or when CLUSTER FAILOVER asks for it.

use super::bus::{Header, Message, Target};
use super::{Cluster, NodeId};
use crate::node::Node;

/// How long a manual failover may take, in ms; the clients of the master wait at most twice as long.
const MANUAL_TIMEOUT_MS: u64 = 5000;

/// The part of the waiting time before an election that does not depend on chance, and the greatest part that does, in ms.
const ELECTION_DELAY_MS: u64 = 500;

/// By how much a replica lets each one with more of the master's data go first, in ms.
const RANK_DELAY_MS: u64 = 1000;

/// The ping period of a master, in ms, by which the age of a replica's data may always exceed the limit.
const PING_PERIOD_MS: u64 = 10_000;

/// How CLUSTER FAILOVER takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverKind {
    /// The master stops its clients first, so that nothing is lost.
    Agreed,
    /// Without the master.
    Forced,
    /// Without the other masters' votes, too.
    Takeover,
}

/// A replica's attempt to be elected.
#[derive(Clone, Debug)]
pub(super) struct Election {
    /// When it asks for votes.
    pub time_ms: u64,
    pub rank: usize,
    /// The epoch for which it has asked.
    pub epoch: Option<u64>,
    pub votes: usize,
}

/// A failover that CLUSTER FAILOVER began: on the replica, and on the master that has paused its clients for it.
#[derive(Clone, Debug)]
pub(super) struct ManualFailover {
    pub end_ms: u64,
    pub is_forced: bool,
    /// Whether the master has stopped writing.
    pub is_master_paused: bool,
}

impl Cluster {
    pub(super) fn begin_manual(&mut self, kind: FailoverKind, now_ms: u64) {
        let is_forced = kind == FailoverKind::Forced;
        self.election = None;
        self.manual =
            Some(ManualFailover { end_ms: now_ms + MANUAL_TIMEOUT_MS, is_forced, is_master_paused: false });
        if let (FailoverKind::Agreed, Some(master)) = (kind, self.me().master) {
            self.send(Target::Member(master), Message::PauseForFailover);
        }
        self.is_due = true;
    }

    /// Returns how many replicas of this node's master have more of its data.
    fn rank(&self, offset: u64) -> usize {
        let me = self.me();
        let Some(master) = me.master else { return 0 };
        let others = self.replicas_of(master).filter(|other| other.id != me.id);
        others.filter(|other| !other.no_failover && other.offset > offset).count()
    }
}

impl Node {
    /// Takes over from a master as CLUSTER FAILOVER asks for.
    pub fn begin_manual_failover(&mut self, kind: FailoverKind) {
        let now_ms = self.store.now.mono_ms();
        let Some(cluster) = &mut self.cluster else { return };
        cluster.begin_manual(kind, now_ms);
        if kind == FailoverKind::Takeover {
            cluster.bump_epoch();
            self.replace_master();
        }
    }

    pub(super) fn pause_for_failover(&mut self, replica: NodeId) {
        let now_ms = self.store.now.mono_ms();
        let Some(cluster) = &mut self.cluster else { return };
        let is_mine = cluster.member(replica).is_some_and(|member| member.master == Some(cluster.me().id));
        if !is_mine {
            return;
        }
        cluster.manual = Some(ManualFailover {
            end_ms: now_ms + MANUAL_TIMEOUT_MS,
            is_forced: false,
            is_master_paused: false,
        });
        cluster.send(Target::Member(replica), Message::View);
        cluster.is_due = true;
        self.pause_clients(true, now_ms + 2 * MANUAL_TIMEOUT_MS);
    }

    pub(super) fn note_paused_master(&mut self, header: &Header) {
        let Some(cluster) = &mut self.cluster else { return };
        if header.is_paused
            && cluster.me().master == Some(header.id)
            && let Some(manual) = &mut cluster.manual
        {
            manual.is_master_paused = true;
            cluster.is_due = true;
        }
    }

    /// Ends a manual failover. A master lets its clients go on.
    pub(super) fn end_manual_failover(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        if cluster.manual.take().is_some() && cluster.me().is_master() {
            self.end_pause();
        }
    }

    /// Decides whether a replica gets this master's vote.
    pub(super) fn consider_vote(&mut self, header: &Header, forced: bool) {
        let now_ms = self.store.now.mono_ms();
        let pause_ms = self.config.cluster.node_timeout_ms * 2;
        let Some(cluster) = &mut self.cluster else { return };
        let me = cluster.me();
        if !me.is_master() || me.slots == 0 || header.current_epoch < cluster.current_epoch {
            return;
        }
        let master = header.master.and_then(|master| cluster.position(master));
        let Some(master) = master.filter(|_| cluster.last_vote_epoch < cluster.current_epoch) else { return };
        let is_late =
            |slot: u16| cluster.owner(slot).is_some_and(|owner| owner.config_epoch > header.config_epoch);
        let failed = &cluster.members[master];
        if !failed.has_failed() && !forced
            || failed.voted_ms.is_some_and(|voted_ms| now_ms < voted_ms + pause_ms)
            || header.slots.iter().any(is_late)
        {
            return;
        }
        cluster.members[master].voted_ms = Some(now_ms);
        cluster.last_vote_epoch = cluster.current_epoch;
        cluster.send(Target::Member(header.id), Message::Vote);
    }

    pub(super) fn count_vote(&mut self, header: &Header) {
        let Some(cluster) = &mut self.cluster else { return };
        let votes = cluster.member(header.id).is_some_and(|voter| voter.is_master() && voter.slots > 0);
        if let Some(election) = cluster.election.as_mut().filter(|_| votes)
            && election.epoch.is_some_and(|epoch| header.current_epoch >= epoch)
        {
            election.votes += 1;
            cluster.is_due = true;
        }
    }

    /// Goes on with the election of this replica, if there is a reason for one.
    pub(super) fn advance_election(&mut self) {
        let now_ms = self.store.now.mono_ms();
        let settings = &self.config.cluster;
        let timeout_ms = (settings.node_timeout_ms * 2).max(2000);
        let (offset, is_complete) = (self.replication.offset, self.replication.in_transit.is_empty());
        let Some(cluster) = &mut self.cluster else { return };
        let manual = cluster
            .manual
            .as_ref()
            .filter(|manual| manual.is_forced || manual.is_master_paused && is_complete);
        let is_manual = manual.is_some();
        let Some(master) = cluster.my_master() else { return };
        let data_age_ms = master.silent_since_ms.map_or(0, |since_ms| now_ms - since_ms);
        let limit_ms = settings
            .node_timeout_ms
            .saturating_mul(settings.replica_validity_factor)
            .saturating_add(PING_PERIOD_MS);
        let is_stale = settings.replica_validity_factor > 0
            && data_age_ms.saturating_sub(settings.node_timeout_ms) > limit_ms;
        let by_itself = master.has_failed() && !settings.replica_no_failover && !is_stale;
        if master.slots == 0 || !is_manual && !by_itself {
            cluster.election = None;
            return;
        }
        let is_over =
            cluster.election.as_ref().is_none_or(|election| now_ms > election.time_ms + 2 * timeout_ms);
        if is_over {
            let rank = if is_manual { 0 } else { cluster.rank(offset) };
            let delay_ms = match is_manual {
                true => 0,
                false => {
                    let random_ms = self.rng.below(ELECTION_DELAY_MS as usize) as u64;
                    ELECTION_DELAY_MS + random_ms + rank as u64 * RANK_DELAY_MS
                }
            };
            cluster.election = Some(Election { time_ms: now_ms + delay_ms, rank, epoch: None, votes: 0 });
            cluster.send(Target::Shard, Message::View);
        }
        let rank = cluster.rank(offset);
        let quorum = cluster.size() / 2 + 1;
        let current_epoch = &mut cluster.current_epoch;
        let Some(election) = &mut cluster.election else { return };
        if election.epoch.is_none() && !is_manual && rank > election.rank {
            election.time_ms += (rank - election.rank) as u64 * RANK_DELAY_MS;
            election.rank = rank;
        }
        if now_ms < election.time_ms || now_ms > election.time_ms + timeout_ms {
            return;
        }
        match election.epoch {
            None => {
                *current_epoch += 1;
                election.epoch = Some(*current_epoch);
                cluster.send(Target::All, Message::AskForVote { forced: is_manual });
            }
            Some(epoch) if election.votes >= quorum => {
                let me = cluster.me_mut();
                me.config_epoch = me.config_epoch.max(epoch);
                self.replace_master();
            }
            Some(_) => {}
        }
    }

    /// Takes the role and the slots of this replica's master.
    pub(super) fn replace_master(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        let Some(master) = cluster.me().master else { return };
        cluster.me_mut().master = None;
        (cluster.election, cluster.manual) = (None, None);
        let slots = cluster.slots_of(master);
        slots.iter().for_each(|slot| cluster.assign_at(slot, Some(0)));
        cluster.announce();
        self.settle_slots();
    }
}
