//! The state of a cluster as a node sees it, and what time changes in it.

use super::{Cluster, Health};
use crate::error::Error;
use crate::node::Node;
use crate::node::replication::Role;
use crate::node::session::{SessionId, SubscriptionKind, Wait};
use crate::slots::{SLOTS, hash_slot};
use crate::store::Timer;
use crate::wheel::TimerId;

/// The shortest and the longest time, in ms, for which a master that was in the minority refuses requests after it has joined the others
/// again.
const REJOIN_MS: std::ops::RangeInclusive<u64> = 500..=5000;

impl Cluster {
    /// Notes that the timer has fired.
    pub fn wake(&mut self) {
        self.timer = TimerId::NONE;
        self.is_due = true;
    }

    /// Forgets who was silent, and every attempt to be elected, because the node stands still.
    pub fn stand_still(&mut self) {
        for member in &mut self.members {
            member.silent_since_ms = None;
            if member.health == Health::Suspected {
                member.health = Health::Fine;
            }
        }
        (self.election, self.manual) = (None, None);
    }

    /// Returns whether all slots that have to be are served, and whether this node reaches a majority of the masters.
    fn looks_ok(&self, requires_full_coverage: bool) -> (bool, bool) {
        let served = self.members.iter().filter(|member| !member.has_failed()).map(|member| member.slots);
        let is_covered = !requires_full_coverage || served.sum::<usize>() == SLOTS;
        let masters = self.members.iter().filter(|member| member.is_master() && member.slots > 0);
        let reached = masters.filter(|master| !master.is_suspect()).count();
        (is_covered, reached > self.size() / 2)
    }

    /// Returns how long a master waits after a time in the minority.
    fn rejoin_ms(&self, node_timeout_ms: u64) -> u64 {
        node_timeout_ms.clamp(*REJOIN_MS.start(), *REJOIN_MS.end())
    }

    fn update_state(&mut self, node_timeout_ms: u64, requires_full_coverage: bool, now_ms: u64) {
        let (is_covered, is_in_majority) = self.looks_ok(requires_full_coverage);
        if !is_in_majority {
            self.minority_ms = Some(now_ms);
        }
        let is_ok = is_covered && is_in_majority;
        if is_ok == self.is_ok {
            return;
        }
        let waits_until_ms = self.minority_ms.map(|ms| ms + self.rejoin_ms(node_timeout_ms));
        let is_stranger = self.size() == 0 || self.members.len() == 1;
        if is_ok
            && self.me().is_master()
            && !is_stranger
            && waits_until_ms.is_some_and(|until_ms| now_ms < until_ms)
        {
            return;
        }
        self.is_ok = is_ok;
    }

    /// Returns the next time at which something is due.
    fn next_due_ms(&self, node_timeout_ms: u64, now_ms: u64) -> Option<u64> {
        let suspicions = self.members.iter().filter(|member| member.health == Health::Fine);
        let suspicions = suspicions.filter_map(|member| Some(member.silent_since_ms? + node_timeout_ms));
        let recoveries = self.members.iter().filter_map(|member| match member.health {
            Health::Failed { since_ms } if member.silent_since_ms.is_none() => {
                Some(since_ms + 2 * node_timeout_ms + 1)
            }
            _ => None,
        });
        let retry_ms = 4 * node_timeout_ms.max(1000) + 1;
        let election = self.election.as_ref().map(|election| match election.epoch {
            None => election.time_ms,
            Some(_) => election.time_ms + retry_ms,
        });
        let manual = self.manual.as_ref().map(|manual| manual.end_ms);
        let rejoin = self.minority_ms.filter(|_| !self.is_ok).map(|ms| ms + self.rejoin_ms(node_timeout_ms));
        let all = suspicions.chain(recoveries).chain(election).chain(manual).chain(rejoin);
        all.filter(|&due_ms| due_ms > now_ms).min()
    }
}

impl Node {
    /// Learns which nodes of the world are heard from now on.
    pub fn notice(&mut self, is_heard: impl Fn(usize) -> bool) {
        let now_ms = self.store.now.mono_ms();
        let Some(cluster) = &mut self.cluster else { return };
        for member in &mut cluster.members[1..] {
            if !is_heard(member.node) {
                member.silent_since_ms.get_or_insert(now_ms);
            } else if member.silent_since_ms.take().is_some() && member.health == Health::Suspected {
                member.health = Health::Fine;
            }
        }
        cluster.announce();
    }

    /// Does what is due: suspects who is silent, takes back who has recovered, goes on with an election, and decides whether the
    /// cluster serves requests.
    pub fn advance_cluster(&mut self) {
        let now_ms = self.store.now.mono_ms();
        let timeout_ms = self.config.cluster.node_timeout_ms;
        let Some(cluster) = &mut self.cluster else { return };
        cluster.is_due = false;
        let mut suspected = Vec::new();
        let mut has_recovered = false;
        for member in &mut cluster.members[1..] {
            match (member.health, member.silent_since_ms) {
                (Health::Fine, Some(since_ms)) if since_ms + timeout_ms <= now_ms => {
                    member.health = Health::Suspected;
                    suspected.push(member.id);
                }
                (Health::Failed { since_ms }, None)
                    if member.slots == 0 || member.master.is_some() || now_ms > since_ms + 2 * timeout_ms =>
                {
                    member.health = Health::Fine;
                    has_recovered = true;
                }
                _ => {}
            }
        }
        if !suspected.is_empty() || has_recovered {
            cluster.announces = true;
        }
        let is_over = cluster.manual.as_ref().is_some_and(|manual| manual.end_ms <= now_ms);
        suspected.into_iter().for_each(|id| self.consider_failed(id));
        if is_over {
            self.end_manual_failover();
        }
        self.advance_election();
        self.update_cluster_state();
        self.arm_cluster_timer(now_ms);
    }

    fn update_cluster_state(&mut self) {
        let now_ms = self.store.now.mono_ms();
        let settings = &self.config.cluster;
        let Some(cluster) = &mut self.cluster else { return };
        cluster.update_state(settings.node_timeout_ms, settings.requires_full_coverage, now_ms);
        self.redirect_blocked();
    }

    /// Sets the timer of a view that was taken from an image. What is due at this very moment has not happened yet.
    pub(crate) fn resume_cluster(&mut self) {
        let now_ms = self.store.now.mono_ms();
        self.arm_cluster_timer(now_ms.saturating_sub(1));
    }

    /// Sets the timer to the first moment after `now_ms` at which something is due.
    fn arm_cluster_timer(&mut self, now_ms: u64) {
        let timeout_ms = self.config.cluster.node_timeout_ms;
        let Some(cluster) = &mut self.cluster else { return };
        let timers = &mut self.store.timers;
        match cluster.next_due_ms(timeout_ms, now_ms) {
            Some(due_ms) if timers.rearm(cluster.timer, due_ms) => {}
            Some(due_ms) => cluster.timer = timers.arm(due_ms, Timer::Cluster),
            None => {
                timers.cancel(cluster.timer);
                cluster.timer = TimerId::NONE;
            }
        }
    }

    /// Removes the keys of slots that the node has lost, and the subscribers of shard channels whose slots are elsewhere.
    pub(crate) fn settle_slots(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        let (lost, left) = (std::mem::take(&mut cluster.lost_slots), std::mem::take(&mut cluster.left_slots));
        lost.into_iter().for_each(|slot| self.delete_slot(slot));
        if !left.is_empty() && self.pubsub.len(SubscriptionKind::Shard) > 0 {
            let moved = |channel: &[u8]| left.contains(&hash_slot(channel));
            let names = self.pubsub.names(SubscriptionKind::Shard);
            let channels: Vec<Box<[u8]>> = names.filter(|name| moved(name)).map(Box::from).collect();
            channels.iter().for_each(|channel| self.end_shard_channel(channel));
        }
    }

    /// Deletes the keys of a slot.
    pub(crate) fn delete_slot(&mut self, slot: u16) {
        let Some(index) = self.store.dbs[0].hash_slots() else { return };
        let keys: Vec<u32> = index.keys(slot).collect();
        for place in keys {
            let Some(key) = self.store.dbs[0].key(place).map(Box::<[u8]>::from) else { continue };
            #[cfg(debug_assertions)]
            self.note_edit(0, &key);
            self.store.remove(0, place);
            self.signal_modified(0, &key);
        }
    }

    /// Ends the subscriptions to a shard channel, and tells the subscribers.
    fn end_shard_channel(&mut self, channel: &[u8]) {
        let subscribers = self.pubsub.subscribers(SubscriptionKind::Shard, channel).to_vec();
        for id in subscribers {
            self.unsubscribe_pushed(id, SubscriptionKind::Shard, channel);
        }
    }

    /// Answers the clients that wait for keys which this node does not serve any more. A master that becomes a replica disconnects all
    /// that wait.
    fn redirect_blocked(&mut self) {
        const IS_REPLICA: Error = Error::new(
            "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
        );
        let Some(cluster) = &self.cluster else { return };
        let becomes_replica = !cluster.me().is_master() && self.replication.role == Role::Master;
        let may_end = |wait: Wait| match wait {
            Wait::List | Wait::SortedSet | Wait::Stream | Wait::StreamGroup => true,
            Wait::Replicas(_) | Wait::AppendOnlyFile(_) => becomes_replica,
            _ => false,
        };
        let waiting: Vec<SessionId> = (self.sessions.iter())
            .filter(|session| session.blocked.as_ref().is_some_and(|blocked| may_end(blocked.wait)))
            .map(|session| session.id)
            .collect();
        for id in waiting {
            if becomes_replica {
                self.unblock(id);
                self.write_reply(id, |reply| reply.error(IS_REPLICA.text()));
                self.end_session(id);
            } else if let Some(error) = self.redirection_of_blocked(id)
                && self.unblock(id).is_some()
            {
                self.stats.count_error(error.text());
                self.write_reply(id, |reply| reply.error(error.text()));
            }
        }
    }
}
