//! The failover of a master that is down: an election among the sentinels, the choice of a replica, its promotion, and the
//! replicas that follow it from then on. Each step takes a tick.

use std::collections::BTreeMap;

use super::watch::Look;
use super::{Act, Address, Master, Peer, Reconf, Replica, Sentinel};
use crate::error::Error;
use crate::node::Node;
use crate::rng::Rng;

/// The states of a failover, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    #[default]
    None,
    WaitStart,
    SelectReplica,
    SendPromotion,
    WaitPromotion,
    ReconfSlaves,
    UpdateConfig,
}

impl Stage {
    /// The names of all stages, as `failover-state` shows them.
    pub const NAMES: [(&'static str, Stage); 7] = [
        ("none", Stage::None),
        ("wait_start", Stage::WaitStart),
        ("select_slave", Stage::SelectReplica),
        ("send_slaveof_noone", Stage::SendPromotion),
        ("wait_promotion", Stage::WaitPromotion),
        ("reconf_slaves", Stage::ReconfSlaves),
        ("update_config", Stage::UpdateConfig),
    ];
}

/// The most ms by which sentinels that try a failover are set apart.
const MAX_DESYNC_MS: usize = 1_000;

/// What a sentinel answers to a request for its vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    pub leader: Option<String>,
    pub epoch: u64,
}

/// What a vote changes besides the master.
struct Ballot<'a> {
    own_id: &'a str,
    epoch: &'a mut u64,
    now_ms: u64,
    rng: &'a mut Rng,
    events: &'a mut Vec<(&'static str, String)>,
}

impl Master {
    /// Votes for a candidate, unless this or a later election already has a vote.
    fn vote(&mut self, epoch: u64, candidate: &str, ballot: Ballot) -> Vote {
        if epoch > *ballot.epoch {
            *ballot.epoch = epoch;
            ballot.events.push(("+new-epoch", epoch.to_string()));
        }
        if self.leader_epoch < epoch && *ballot.epoch <= epoch {
            self.leader = Some(candidate.to_owned());
            self.leader_epoch = *ballot.epoch;
            ballot.events.push(("+vote-for-leader", format!("{candidate} {}", self.leader_epoch)));
            if candidate != ballot.own_id {
                let delay_ms = ballot.rng.below(MAX_DESYNC_MS) as u64;
                self.failover.tried_ms = Some(ballot.now_ms + delay_ms);
            }
        }
        Vote { leader: self.leader.clone(), epoch: self.leader_epoch }
    }

    /// Returns the winner of the election, if it is decided. This sentinel votes for whom most vote, or for itself.
    fn winner(&mut self, look: &mut Look) -> Option<String> {
        let epoch = self.failover.epoch;
        let mut votes: BTreeMap<String, usize> = BTreeMap::new();
        for Peer { leader, leader_epoch, .. } in &self.peers {
            if let Some(leader) = leader.as_ref().filter(|_| *leader_epoch == look.epoch) {
                *votes.entry(leader.clone()).or_default() += 1;
            }
        }
        let leading = votes.iter().max_by_key(|(_, votes)| **votes).map(|(leader, _)| leader.clone());
        let candidate = leading.unwrap_or_else(|| look.id.clone());
        let Look { id, epoch: current, now_ms, rng, events, .. } = look;
        let ballot = Ballot { own_id: id, epoch: current, now_ms: *now_ms, rng, events };
        let own = self.vote(epoch, &candidate, ballot);
        if let Some(leader) = own.leader.filter(|_| own.epoch == epoch) {
            *votes.entry(leader).or_default() += 1;
        }
        let (leader, votes) = votes.into_iter().max_by_key(|(_, votes)| *votes)?;
        (votes >= self.majority() && votes >= self.settings.quorum as usize).then_some(leader)
    }

    fn enter(&mut self, stage: Stage, look: &mut Look) {
        self.failover.stage = stage;
        self.failover.changed_ms = look.now_ms;
        look.due(look.now_ms + super::TICK_MS);
    }

    /// Begins a failover if one is due, and does the next step of one that has begun.
    pub(super) fn fail_over(&mut self, look: &mut Look) {
        match self.failover.stage {
            Stage::None => self.begin_failover_if_due(look),
            Stage::WaitStart => self.wait_for_election(look),
            Stage::WaitPromotion if look.is_over(self.failover.changed_ms, self.timeout_ms()) => {
                self.abort("-failover-abort-slave-timeout", look);
            }
            stage if look.is_next_tick(self.failover.changed_ms) => match stage {
                Stage::SelectReplica => self.select_replica(look),
                Stage::SendPromotion => self.send_promotion(look),
                Stage::ReconfSlaves => self.reconfigure_replicas(look),
                _ => {}
            },
            _ => {}
        }
    }

    fn timeout_ms(&self) -> u64 {
        self.settings.failover_timeout_ms.saturating_add(1)
    }

    fn begin_failover_if_due(&mut self, look: &mut Look) {
        let pause_ms = self.settings.failover_timeout_ms.saturating_mul(2);
        let is_due = self.odown_ms.is_some()
            && self.failover.tried_ms.is_none_or(|tried_ms| look.is_over(tried_ms, pause_ms));
        if !is_due && !self.failover.is_forced {
            return;
        }
        look.epoch += 1;
        self.failover.epoch = look.epoch;
        look.say("+new-epoch", look.epoch.to_string());
        look.say("+try-failover", self.label());
        self.failover.tried_ms = Some(look.now_ms + look.rng.below(MAX_DESYNC_MS) as u64);
        self.enter(Stage::WaitStart, look);
        self.canvass(look);
    }

    fn canvass(&mut self, look: &mut Look) {
        self.failover.asked_ms = look.now_ms;
        look.acts.push(Act::Canvass { master: self.own.address.clone(), epoch: look.epoch });
    }

    fn wait_for_election(&mut self, look: &mut Look) {
        if !look.is_next_tick(self.failover.changed_ms) {
            return;
        }
        let is_leader = self.winner(look).is_some_and(|winner| winner == look.id);
        if is_leader || self.failover.is_forced {
            look.say("+elected-leader", self.label());
            if look.crashes & 1 != 0 {
                return look.acts.push(Act::Crash);
            }
            self.enter(Stage::SelectReplica, look);
            return look.say("+failover-state-select-slave", self.label());
        }
        let patience_ms = look.election_ms.min(self.settings.failover_timeout_ms).saturating_add(1);
        if look.is_over(self.failover.tried_ms.unwrap_or(0), patience_ms) {
            self.abort("-failover-abort-not-elected", look);
        } else if look.is_over(self.failover.asked_ms, look.ask_ms) {
            self.canvass(look);
            look.due(look.now_ms + look.ask_ms);
        }
    }

    fn abort(&mut self, event: &'static str, look: &mut Look) {
        look.say(event, self.label());
        self.failover.stage = Stage::None;
        self.failover.is_forced = false;
        self.failover.changed_ms = look.now_ms;
        self.replicas.iter_mut().for_each(|replica| replica.is_promoted = false);
        // The next attempt.
        self.begin_failover_if_due(look);
    }

    /// Returns the replica that is the best to take over: that with the lowest priority, then with the most data.
    pub fn heir(&self, now_ms: u64) -> Option<usize> {
        let down_ms = self.own.sdown_ms.map_or(0, |sdown_ms| now_ms.saturating_sub(sdown_ms));
        let patience_ms = self.settings.down_after_ms.saturating_mul(10).saturating_add(down_ms);
        let is_fit = |replica: &Replica| {
            let unlinked_ms = replica.unlinked_ms.map_or(0, |unlinked_ms| now_ms.saturating_sub(unlinked_ms));
            let is_up = !replica.own.is_down() && replica.own.lost_ms.is_none() && replica.own.node.is_some();
            is_up && replica.priority > 0 && unlinked_ms <= patience_ms
        };
        let fit = self.replicas.iter().enumerate().filter(|(_, replica)| is_fit(replica));
        let order = |replica: &Replica| {
            (replica.priority, std::cmp::Reverse(replica.offset), replica.own.run_id.clone())
        };
        fit.min_by_key(|(_, replica)| order(replica)).map(|(at, _)| at)
    }

    fn select_replica(&mut self, look: &mut Look) {
        let Some(at) = self.heir(look.now_ms) else {
            return self.abort("-failover-abort-no-good-slave", look);
        };
        self.replicas[at].is_promoted = true;
        let label = self.label_of_replica(&self.replicas[at]);
        look.say("+selected-slave", label.clone());
        self.enter(Stage::SendPromotion, look);
        look.say("+failover-state-send-slaveof-noone", label);
    }

    fn send_promotion(&mut self, look: &mut Look) {
        let promoted = self.replicas.iter().find(|replica| replica.is_promoted);
        let node = promoted.filter(|replica| look.answers(&replica.own)).and_then(|replica| replica.own.node);
        let (Some(promoted), Some(node)) = (promoted, node) else {
            if look.is_over(self.failover.changed_ms, self.timeout_ms()) {
                self.abort("-failover-abort-slave-timeout", look);
            }
            return;
        };
        let label = self.label_of_replica(promoted);
        look.acts.push(Act::Promote { node });
        self.enter(Stage::WaitPromotion, look);
        look.say("+failover-state-wait-promotion", label);
    }

    /// Goes on once the promoted replica says that it is a master.
    pub(super) fn promotion_succeeded(&mut self, label: &str, look: &mut Look) {
        self.config_epoch = self.failover.epoch;
        look.say("+promoted-slave", label.to_owned());
        if look.crashes & 2 != 0 {
            look.acts.push(Act::Crash);
        }
        self.enter(Stage::ReconfSlaves, look);
        look.say("+failover-state-reconf-slaves", self.label());
    }

    /// Lets replicas follow the new master, a few at a time, and ends the failover when all of them do.
    fn reconfigure_replicas(&mut self, look: &mut Look) {
        let Some(promoted) = self.replicas.iter().find(|replica| replica.is_promoted) else { return };
        let (master, promoted_node) = (promoted.own.address.clone(), promoted.own.node);
        let is_late = look.is_over(self.failover.changed_ms, self.timeout_ms());
        for replica in &mut self.replicas {
            let is_on_its_way = matches!(replica.reconf, Reconf::Sent | Reconf::InProgress);
            if is_on_its_way && look.is_over(replica.reconf_ms, look.reconf_ms.saturating_add(1)) {
                replica.reconf = Reconf::Done;
            }
        }
        let is_pending = |replica: &&Replica| {
            !replica.is_promoted && replica.reconf != Reconf::Done && !replica.own.is_down()
        };
        if is_late {
            look.say("+failover-end-for-timeout", self.label());
        }
        if is_late || self.replicas.iter().find(is_pending).is_none() {
            look.say("+failover-end", self.label());
            if is_late {
                self.follow(&master, usize::MAX, "+slave-reconf-sent-be", look);
            }
            let address = match promoted_node {
                Some(_) => master,
                None => self.own.address.clone(),
            };
            return self.switch_to(address, look);
        }
        let limit = self.settings.parallel_syncs as usize;
        self.follow(&master, limit, "+slave-reconf-sent", look);
        // What the replicas say then is seen when it changes.
        look.due(look.now_ms + super::TICK_MS);
    }

    /// Lets replicas follow the new master, as long as at most `limit` are on their way.
    fn follow(&mut self, master: &Address, limit: usize, event: &'static str, look: &mut Look) {
        let is_on_its_way = |replica: &&Replica| matches!(replica.reconf, Reconf::Sent | Reconf::InProgress);
        let mut on_their_way = self.replicas.iter().filter(is_on_its_way).count();
        for at in 0..self.replicas.len() {
            let replica = &self.replicas[at];
            let is_next =
                replica.reconf == Reconf::None && !replica.is_promoted && look.answers(&replica.own);
            if let Some(node) = replica.own.node.filter(|_| is_next && on_their_way < limit) {
                on_their_way += 1;
                look.say(event, self.label_of_replica(replica));
                look.acts.push(Act::Follow { node, master: master.clone() });
                self.replicas[at].reconf = Reconf::Sent;
                self.replicas[at].reconf_ms = look.now_ms;
            }
        }
    }
}

impl Node {
    /// Votes in an election of another sentinel. Returns what this one has to say, or `None` if it does not watch the master.
    pub fn vote(&mut self, master: &Address, epoch: u64, candidate: &str) -> Option<Vote> {
        let (now_ms, rng) = (self.store.now.mono_ms(), &mut self.rng);
        let Sentinel { id, epoch: current, masters, .. } = self.sentinel.as_deref_mut()?;
        let found = masters.iter_mut().find(|known| known.own.address == *master)?;
        let mut events = Vec::new();
        let ballot = Ballot { own_id: id, epoch: current, now_ms, rng, events: &mut events };
        let vote = found.vote(epoch, candidate, ballot);
        events.into_iter().for_each(|(event, text)| self.say(event, &text));
        Some(vote)
    }

    /// Takes the vote of another sentinel.
    pub fn take_vote(&mut self, master: &Address, voter: &str, vote: Vote) {
        let Some(sentinel) = &mut self.sentinel else { return };
        let found = sentinel.masters.iter_mut().filter(|known| known.own.address == *master);
        let peers = found.flat_map(|known| &mut known.peers).filter(|peer| peer.own.run_id == voter);
        peers.for_each(|peer| (peer.leader, peer.leader_epoch) = (vote.leader.clone(), vote.epoch));
    }

    /// Begins a failover that a client asked for.
    ///
    /// # Errors
    /// Fails if there is no such master, no replica for it, or a failover already.
    pub fn force_failover(&mut self, name: &[u8]) -> Result<(), Error> {
        let now_ms = self.store.now.mono_ms();
        let Some(sentinel) = &mut self.sentinel else { return Ok(()) };
        let master = sentinel.master_mut(name)?;
        if master.failover.stage != Stage::None || master.failover.is_forced {
            return Err(Error::new("INPROG Failover already in progress"));
        }
        if master.heir(now_ms).is_none() {
            return Err(Error::new("NOGOODSLAVE No suitable replica to promote"));
        }
        master.failover.is_forced = true;
        self.look_at(now_ms);
        Ok(())
    }
}
