//! What SENTINEL MASTERS, REPLICAS and SENTINELS show.

use super::{Instance, Master, Peer, Reconf, Replica, Stage};

/// What an instance is to a sentinel.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    Master,
    Replica(&'a Replica),
    Peer(&'a Peer),
}

/// The names and values that describe an instance.
pub type Row = Vec<(&'static str, String)>;

impl Master {
    /// Returns the description of the master, of one of its replicas or of another sentinel at this time.
    pub fn describe(&self, kind: Kind, now_ms: u64, info_ms: u64) -> Row {
        let own = match kind {
            Kind::Master => &self.own,
            Kind::Replica(replica) => &replica.own,
            Kind::Peer(peer) => &peer.own,
        };
        let Instance { address, run_id, .. } = own;
        let ago = |since_ms: u64| now_ms.saturating_sub(since_ms);
        let has_failover = matches!(kind, Kind::Master) && self.failover.stage != Stage::None;
        let mut row: Row = Vec::new();
        let mut add = |name, value: String| row.push((name, value));
        add(
            "name",
            match kind {
                Kind::Master => self.settings.name.clone(),
                Kind::Replica(_) => format!("{}:{}", address.host, address.port),
                Kind::Peer(_) => run_id.clone(),
            },
        );
        add("ip", address.host.clone());
        add("port", address.port.to_string());
        add("runid", run_id.clone());
        add("flags", self.flags(own, kind).join(","));
        // Redis stops to send when a few requests are pending.
        add("link-pending-commands", if own.lost_ms.is_some() { "3" } else { "0" }.to_owned());
        add("link-refcount", "1".to_owned());
        if has_failover {
            add("failover-state", crate::image::name_of(&Stage::NAMES, self.failover.stage).to_owned());
        }
        let lost_ms = own.lost_ms.map_or(0, ago).to_string();
        add("last-ping-sent", lost_ms.clone());
        add("last-ok-ping-reply", lost_ms.clone());
        add("last-ping-reply", lost_ms);
        if let Some(sdown_ms) = own.sdown_ms {
            add("s-down-time", ago(sdown_ms).to_string());
        }
        if let (Some(odown_ms), Kind::Master) = (self.odown_ms, kind) {
            add("o-down-time", ago(odown_ms).to_string());
        }
        add("down-after-milliseconds", self.settings.down_after_ms.to_string());
        if let Kind::Peer(peer) = kind {
            add("last-hello-message", "0".to_owned());
            add("voted-leader", peer.leader.clone().unwrap_or_else(|| "?".to_owned()));
            add("voted-leader-epoch", peer.leader_epoch.to_string());
            return row;
        }
        // A node that answers is asked again and again.
        let info_ms = match own.lost_ms {
            Some(lost_ms) => ago(lost_ms),
            None => ago(own.since_ms) % info_ms.max(1),
        };
        add("info-refresh", if own.run_id.is_empty() { 0 } else { info_ms }.to_string());
        add("role-reported", if own.is_replica { "slave" } else { "master" }.to_owned());
        add("role-reported-time", ago(own.role_ms).to_string());
        match kind {
            Kind::Replica(replica) => self.describe_replica(replica, now_ms, &mut add),
            _ => self.describe_master(&mut add),
        }
        row
    }

    fn describe_master(&self, add: &mut dyn FnMut(&'static str, String)) {
        let settings = &self.settings;
        add("config-epoch", self.config_epoch.to_string());
        add("num-slaves", self.replicas.len().to_string());
        add("num-other-sentinels", self.peers.len().to_string());
        add("quorum", settings.quorum.to_string());
        add("failover-timeout", settings.failover_timeout_ms.to_string());
        add("parallel-syncs", settings.parallel_syncs.to_string());
        for (name, script) in [
            ("notification-script", &settings.notification_script),
            ("client-reconfig-script", &settings.client_reconfig_script),
        ] {
            script.iter().for_each(|script| add(name, script.clone()));
        }
    }

    fn describe_replica(&self, replica: &Replica, now_ms: u64, add: &mut dyn FnMut(&'static str, String)) {
        let unlinked_ms = replica.unlinked_ms.map_or(0, |unlinked_ms| now_ms.saturating_sub(unlinked_ms));
        let is_linked = replica.follows.is_some() && replica.unlinked_ms.is_none();
        let (host, port) = match &replica.follows {
            Some(master) => (master.host.clone(), master.port),
            None => ("?".to_owned(), 0),
        };
        add("master-link-down-time", unlinked_ms.to_string());
        add("master-link-status", if is_linked { "ok" } else { "err" }.to_owned());
        add("master-host", host);
        add("master-port", port.to_string());
        add("slave-priority", replica.priority.to_string());
        add("slave-repl-offset", replica.offset.to_string());
        add("replica-announced", "1".to_owned());
    }

    fn flags(&self, own: &Instance, kind: Kind) -> Vec<&'static str> {
        let is_master = matches!(kind, Kind::Master);
        let (mut is_promoted, mut reconf, mut says_down) = (false, Reconf::None, false);
        let name = match kind {
            Kind::Master => "master",
            Kind::Replica(replica) => {
                (is_promoted, reconf) = (replica.is_promoted, replica.reconf);
                "slave"
            }
            Kind::Peer(peer) => {
                says_down = peer.says_down && self.own.sdown_ms.is_some();
                "sentinel"
            }
        };
        [
            (own.sdown_ms.is_some(), "s_down"),
            (is_master && self.odown_ms.is_some(), "o_down"),
            (true, name),
            (own.lost_ms.is_some(), "disconnected"),
            (says_down, "master_down"),
            (is_master && self.failover.stage != Stage::None, "failover_in_progress"),
            (is_promoted, "promoted"),
            (reconf == Reconf::Sent, "reconf_sent"),
            (reconf == Reconf::InProgress, "reconf_inprog"),
            (reconf == Reconf::Done, "reconf_done"),
            (is_master && self.failover.is_forced, "force_failover"),
        ]
        .into_iter()
        .filter_map(|(is_set, name)| is_set.then_some(name))
        .collect()
    }
}
