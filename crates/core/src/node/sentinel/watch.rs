//! How a sentinel looks at the others, and what it concludes from what it sees.

use super::failover::Stage;
use super::{
    Act, Address, Hello, Instance, Master, Outlook, Peer, Reconf, Replica, Sentinel, Sighting, TICK_MS,
};
use crate::node::Node;
use crate::node::replication::Replication;
use crate::rng::Rng;

/// A time that does not come.
const NEVER_MS: u64 = u64::MAX / 2;

/// One look of a sentinel: what it sees, and what it says and does.
pub(super) struct Look<'a> {
    pub now_ms: u64,
    pub id: String,
    pub epoch: u64,
    pub election_ms: u64,
    pub ask_ms: u64,
    pub reconf_ms: u64,
    info_ms: u64,
    publish_ms: u64,
    pub crashes: u8,
    outlook: &'a Outlook,
    replication: &'a Replication,
    index: usize,
    pub rng: &'a mut Rng,
    pub events: Vec<(&'static str, String)>,
    pub acts: Vec<Act>,
    /// When to look again, if nothing happens until then.
    due_ms: Option<u64>,
}

impl Look<'_> {
    pub fn say(&mut self, event: &'static str, text: String) {
        self.events.push((event, text));
    }

    /// Looks again at this time at the latest.
    pub fn due(&mut self, at_ms: u64) {
        if at_ms < NEVER_MS {
            let at_ms = at_ms.max(self.now_ms + 1);
            self.due_ms = Some(self.due_ms.map_or(at_ms, |due_ms| due_ms.min(at_ms)));
        }
    }

    /// Returns the time after a time span has passed, and lets the sentinel look then.
    pub fn is_over(&mut self, since_ms: u64, span_ms: u64) -> bool {
        let at_ms = since_ms.saturating_add(span_ms);
        let is_over = self.now_ms >= at_ms;
        if !is_over {
            self.due(at_ms);
        }
        is_over
    }

    /// Returns whether enough time has passed since the last step of a failover.
    pub fn is_next_tick(&mut self, changed_ms: u64) -> bool {
        self.is_over(changed_ms, TICK_MS)
    }

    fn node_at(&self, address: &Address) -> Option<usize> {
        self.replication.node_at(address.host.as_bytes(), address.port.to_string().as_bytes(), self.index)
    }

    /// Returns what an instance says, or `None` if it is not a node of this world or does not answer.
    fn sighting(&self, instance: &Instance) -> Option<&Sighting> {
        self.outlook.nodes.get(instance.node?)?.as_ref()
    }

    pub fn answers(&self, instance: &Instance) -> bool {
        instance.node.is_none() || self.sighting(instance).is_some()
    }
}

impl Node {
    /// Lets the sentinel look. Returns what it does to others.
    pub fn look_around(&mut self, outlook: &Outlook) -> Vec<Act> {
        let Some(mut sentinel) = self.sentinel.take() else { return Vec::new() };
        let timers = &mut self.store.timers;
        timers.cancel(sentinel.timer);
        let mut look = Look {
            now_ms: self.store.now.mono_ms(),
            id: sentinel.id.clone(),
            epoch: sentinel.epoch,
            election_ms: sentinel.time_ms("ELECTION-TIMEOUT"),
            ask_ms: sentinel.time_ms("ASK-PERIOD"),
            reconf_ms: sentinel.time_ms("SLAVE-RECONF-TIMEOUT"),
            info_ms: sentinel.time_ms("INFO-PERIOD"),
            publish_ms: sentinel.time_ms("PUBLISH-PERIOD"),
            crashes: sentinel.crashes,
            outlook,
            replication: &self.replication,
            index: self.index,
            rng: &mut self.rng,
            events: Vec::new(),
            acts: Vec::new(),
            due_ms: None,
        };
        let before = sentinel.news();
        sentinel.masters.iter_mut().for_each(|master| master.look(&mut look));
        let Look { epoch, events, mut acts, due_ms, .. } = look;
        sentinel.epoch = epoch;
        if sentinel.news() != before {
            acts.push(Act::Tell);
        }
        self.sentinel = Some(sentinel);
        due_ms.into_iter().for_each(|due_ms| self.look_at(due_ms));
        events.into_iter().for_each(|(event, text)| self.say(event, &text));
        acts
    }
}

impl Sentinel {
    /// Returns what other sentinels act upon.
    fn news(&self) -> (u64, Vec<(bool, Address, u64)>) {
        let of_master =
            |master: &Master| (master.own.is_down(), master.address().clone(), master.config_epoch);
        (self.epoch, self.masters.iter().map(of_master).collect())
    }
}

impl Instance {
    /// Notes whether the instance answers. If not, it counts as down up to `max_delay_ms` later than others.
    fn notice_link(&mut self, look: &mut Look, max_delay_ms: usize) {
        match (look.answers(self), self.lost_ms) {
            (true, Some(_)) => self.lost_ms = None,
            (false, None) => {
                self.lost_ms = Some(look.now_ms);
                self.delay_ms = if max_delay_ms > 0 { look.rng.below(max_delay_ms) as u64 } else { 0 };
            }
            _ => {}
        }
    }

    /// Notes what the instance says about itself, if it answers.
    fn notice_info(&mut self, look: &mut Look, label: &str) {
        let Some(sighting) = look.sighting(self) else { return };
        let (is_replica, run_id) = (sighting.follows.is_some(), sighting.run_id.clone());
        if self.run_id != run_id {
            if !self.run_id.is_empty() && !run_id.is_empty() {
                look.say("+reboot", label.to_owned());
            }
            self.run_id = run_id;
        }
        if self.is_replica != is_replica {
            (self.is_replica, self.role_ms) = (is_replica, look.now_ms);
        }
    }

    /// Decides whether the instance counts as down.
    fn judge(&mut self, look: &mut Look, label: &str, down_after_ms: u64, is_wrong: bool) {
        let is_lost = self
            .lost_ms
            .is_some_and(|lost_ms| look.is_over(lost_ms, down_after_ms.saturating_add(self.delay_ms)));
        match (is_lost || is_wrong, self.sdown_ms) {
            (true, None) => {
                self.sdown_ms = Some(look.now_ms);
                look.say("+sdown", label.to_owned());
            }
            (false, Some(_)) => {
                self.sdown_ms = None;
                look.say("-sdown", label.to_owned());
            }
            _ => {}
        }
    }
}

impl Master {
    fn look(&mut self, look: &mut Look) {
        let outlook = look.outlook;
        for hello in &outlook.hellos {
            if hello.name == self.settings.name {
                self.hear(hello, look);
            }
        }
        self.see_own(look);
        self.see_replicas(look);
        self.see_peers(look);
        self.judge_objectively(look);
        self.fail_over(look);
    }

    /// Takes what another sentinel says about itself and this master.
    fn hear(&mut self, hello: &Hello, look: &mut Look) {
        let peer = match self.peers.iter_mut().find(|peer| peer.own.run_id == hello.id) {
            Some(peer) => peer,
            None => {
                let mut own = Instance::new(hello.address.clone(), Some(hello.node), false, look.now_ms);
                own.run_id.clone_from(&hello.id);
                let peer = Peer { own, heard_ms: 0, says_down: false, leader: None, leader_epoch: 0 };
                let label = self.label_of_peer(&peer);
                look.say("+sentinel", label);
                self.peers.push(peer);
                let last = self.peers.len() - 1;
                &mut self.peers[last]
            }
        };
        peer.heard_ms = look.now_ms;
        // A sentinel that already knows the new master says nothing about the old one.
        if hello.master == self.own.address || self.failover.stage == Stage::None {
            peer.says_down = hello.says_down == Some(true) && hello.master == self.own.address;
        }
        if hello.epoch > look.epoch {
            look.epoch = hello.epoch;
            look.say("+new-epoch", hello.epoch.to_string());
        }
        if hello.config_epoch > self.config_epoch {
            self.config_epoch = hello.config_epoch;
            if hello.master != self.own.address {
                let peer = self.peers.iter().find(|peer| peer.own.run_id == hello.id);
                let label = peer.map(|peer| self.label_of_peer(peer)).unwrap_or_default();
                look.say("+config-update-from", label);
                self.switch_to(hello.master.clone(), look);
            }
        }
    }

    /// Takes another address for the master. The old master is one of the replicas from then on.
    pub(super) fn switch_to(&mut self, address: Address, look: &mut Look) {
        let old = self.own.address.clone();
        look.say("+switch-master", format!("{} {old} {address}", self.settings.name));
        let others = self.replicas.iter().map(|replica| replica.own.address.clone());
        let replicas: Vec<Address> = others.chain([old]).filter(|known| *known != address).collect();
        let node = look.node_at(&address);
        self.forget(address, node, look.now_ms);
        for address in replicas {
            let node = look.node_at(&address);
            self.add_replica(address, node, look);
        }
    }

    fn add_replica(&mut self, address: Address, node: Option<usize>, look: &mut Look) {
        let replica = Replica::new(address, node, look.now_ms);
        look.say("+slave", self.label_of_replica(&replica));
        self.replicas.push(replica);
    }

    fn see_own(&mut self, look: &mut Look) {
        let label = self.label();
        let was_replica = self.own.is_replica;
        self.own.notice_link(look, TICK_MS as usize);
        self.own.notice_info(look, &label);
        if self.own.is_replica != was_replica {
            let (event, role) = match self.own.is_replica {
                true => ("-role-change", "slave"),
                false => ("+role-change", "master"),
            };
            look.say(event, format!("{label} new reported role is {role}"));
        }
        let down_after_ms = self.settings.down_after_ms;
        let patience_ms = down_after_ms.saturating_add(2 * look.info_ms);
        let is_wrong = self.own.is_replica && look.is_over(self.own.role_ms, patience_ms);
        self.own.judge(look, &label, down_after_ms, is_wrong);
        let replicas = look.sighting(&self.own).map(|sighting| sighting.replicas.clone());
        for node in replicas.unwrap_or_default() {
            let address = look.replication.address_of(node);
            let is_new = |replica: &Replica| replica.own.node != Some(node);
            if !self.own.is_replica && self.replicas.iter().all(is_new) {
                self.add_replica(address, Some(node), look);
            }
        }
    }

    /// Returns whether the master can be trusted to be the master.
    fn looks_sane(&self) -> bool {
        !self.own.is_replica && !self.own.is_down() && self.odown_ms.is_none() && self.own.lost_ms.is_none()
    }

    fn see_replicas(&mut self, look: &mut Look) {
        let promoted = self.address().clone();
        let mut replicas = std::mem::take(&mut self.replicas);
        for replica in &mut replicas {
            self.see_replica(replica, &promoted, look);
        }
        self.replicas = replicas;
    }

    fn see_replica(&mut self, replica: &mut Replica, promoted: &Address, look: &mut Look) {
        let label = self.label_of_replica(replica);
        let was_replica = replica.own.is_replica;
        replica.own.notice_link(look, 0);
        replica.own.notice_info(look, &label);
        replica.own.judge(look, &label, self.settings.down_after_ms, false);
        let Some(sighting) = look.sighting(&replica.own).cloned() else { return };
        if replica.own.is_replica != was_replica {
            let (event, role) = match replica.own.is_replica {
                true => ("+role-change", "slave"),
                false => ("-role-change", "master"),
            };
            look.say(event, format!("{label} new reported role is {role}"));
        }
        let follows = sighting.follows.map(|node| look.replication.address_of(node));
        if replica.follows != follows || replica.own.is_replica != was_replica {
            (replica.follows, replica.follows_ms) = (follows, look.now_ms);
        }
        replica.unlinked_ms = match sighting.has_link {
            true => None,
            false => replica.unlinked_ms.or(Some(look.now_ms)),
        };
        (replica.offset, replica.priority) = (sighting.offset, sighting.priority);
        if !replica.own.is_replica {
            self.see_master_among_replicas(replica, &label, look);
        } else {
            if replica.reconf == Reconf::Sent && replica.follows.as_ref() == Some(promoted) {
                replica.reconf = Reconf::InProgress;
                look.say("+slave-reconf-inprog", label.clone());
            }
            if replica.reconf == Reconf::InProgress && sighting.has_link {
                replica.reconf = Reconf::Done;
                look.say("+slave-reconf-done", label.clone());
            }
            self.correct_follower(replica, &label, look);
        }
    }

    /// Concludes something from a replica that says it is a master.
    fn see_master_among_replicas(&mut self, replica: &mut Replica, label: &str, look: &mut Look) {
        if replica.is_promoted {
            if self.failover.stage == Stage::WaitPromotion && look.is_over(self.failover.changed_ms, TICK_MS)
            {
                self.promotion_succeeded(label, look);
            }
        } else if self.looks_sane() && look.is_over(replica.own.role_ms, 4 * look.publish_ms + 1) {
            // Until now, another sentinel could have known better.
            self.reconfigure(replica);
            look.say("+convert-to-slave", label.to_owned());
            let node = replica.own.node.map(|node| Act::Follow { node, master: self.own.address.clone() });
            look.acts.extend(node);
        }
    }

    /// Starts the time anew after which a replica is corrected again.
    fn reconfigure(&self, replica: &mut Replica) {
        (replica.own.role_ms, replica.follows_ms) = (NEVER_MS, NEVER_MS);
    }

    /// Corrects a replica that has followed another master for too long.
    fn correct_follower(&mut self, replica: &mut Replica, label: &str, look: &mut Look) {
        let timeout_ms = self.settings.failover_timeout_ms.saturating_add(1);
        if replica.follows.as_ref() != Some(&self.own.address)
            && self.failover.stage == Stage::None
            && self.looks_sane()
            && look.is_over(replica.follows_ms, timeout_ms)
        {
            self.reconfigure(replica);
            look.say("+fix-slave-config", label.to_owned());
            let node = replica.own.node.map(|node| Act::Follow { node, master: self.own.address.clone() });
            look.acts.extend(node);
        }
    }

    fn see_peers(&mut self, look: &mut Look) {
        let mut peers = std::mem::take(&mut self.peers);
        for peer in &mut peers {
            let label = self.label_of_peer(peer);
            peer.own.notice_link(look, 0);
            peer.own.judge(look, &label, self.settings.down_after_ms, false);
            if peer.own.lost_ms.is_some() {
                peer.says_down = false;
            }
        }
        self.peers = peers;
    }

    /// Decides whether enough sentinels say that the master is down.
    fn judge_objectively(&mut self, look: &mut Look) {
        let others = self.peers.iter().filter(|peer| peer.says_down).count();
        let (quorum, votes) = (self.settings.quorum as usize, others + 1);
        let is_down = self.own.is_down() && votes >= quorum;
        match (is_down, self.odown_ms) {
            (true, None) => {
                self.odown_ms = Some(look.now_ms);
                look.say("+odown", format!("{} #quorum {votes}/{quorum}", self.label()));
            }
            (false, Some(_)) => {
                self.odown_ms = None;
                look.say("-odown", self.label());
            }
            _ => {}
        }
    }

    // ---- how events name the instances ---------------------------------------------------------------------------

    /// Returns how events name the master.
    pub fn label(&self) -> String {
        format!("master {} {}", self.settings.name, self.own.address)
    }

    fn label_at(&self, text: String) -> String {
        format!("{text} @ {} {}", self.settings.name, self.own.address)
    }

    pub(super) fn label_of_replica(&self, replica: &Replica) -> String {
        let address = &replica.own.address;
        self.label_at(format!("slave {}:{} {address}", address.host, address.port))
    }

    fn label_of_peer(&self, peer: &Peer) -> String {
        self.label_at(format!("sentinel {} {}", peer.own.run_id, peer.own.address))
    }
}
