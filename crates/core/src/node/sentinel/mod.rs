//! A node that watches masters and their replicas, as redis-sentinel does.
//!
//! [`settings`] has what is configured, this file what a sentinel knows of others, `watch` how it looks at them, `failover` what it
//! does when a master is down, `describe` how it tells clients. A sentinel looks when something has changed and when a time that it
//! waits for has come, never in between. The world shows it the nodes that answer, as an [`Outlook`], and carries out its
//! [`Act`]s: a sentinel has no connections, and it sees nothing outside of its world. A master elsewhere counts as up.

mod describe;
mod failover;
pub mod settings;
mod watch;

use super::Node;
use crate::error::Error;
use crate::store::Timer;
use crate::wheel::TimerId;

pub use describe::{Kind, Row};
pub use failover::Stage;
pub use settings::{Address, MasterSettings, SentinelSettings};

/// The time between two steps of a failover, in ms: how often redis-sentinel looks at its timers.
const TICK_MS: u64 = 100;

/// The times that SENTINEL DEBUG shows, in ms, and that clients change.
pub const TIMES: [(&str, u64); 13] = [
    ("INFO-PERIOD", 10_000),
    ("PING-PERIOD", 1_000),
    ("ASK-PERIOD", 1_000),
    ("PUBLISH-PERIOD", 2_000),
    ("DEFAULT-DOWN-AFTER", 30_000),
    ("DEFAULT-FAILOVER-TIMEOUT", 180_000),
    ("TILT-TRIGGER", 2_000),
    ("TILT-PERIOD", 30_000),
    ("SLAVE-RECONF-TIMEOUT", 10_000),
    ("MIN-LINK-RECONNECT-PERIOD", 15_000),
    ("ELECTION-TIMEOUT", 10_000),
    ("SCRIPT-MAX-RUNTIME", 60_000),
    ("SCRIPT-RETRY-DELAY", 30_000),
];

/// The ends of the process that SENTINEL SIMULATE-FAILURE knows, by bit.
pub const CRASHES: [&str; 2] = ["crash-after-election", "crash-after-promotion"];

/// A sentinel: whom it watches, and what it knows.
#[derive(Clone, Debug)]
pub struct Sentinel {
    /// Forty hex digits.
    pub id: String,
    /// The highest number of an election that it has heard of.
    pub epoch: u64,
    pub settings: SentinelSettings,
    /// In the order of [`TIMES`].
    pub times_ms: [u64; TIMES.len()],
    pub masters: Vec<Master>,
    /// When the process ends, as SENTINEL SIMULATE-FAILURE asks for: bits of [`CRASHES`].
    pub crashes: u8,
    pub(super) timer: TimerId,
}

/// A master that a sentinel watches.
#[derive(Clone, Debug)]
pub struct Master {
    pub settings: MasterSettings,
    pub own: Instance,
    pub replicas: Vec<Replica>,
    /// The other sentinels that watch it.
    pub peers: Vec<Peer>,
    pub config_epoch: u64,
    /// For whom this sentinel has voted last, and in which election.
    pub leader: Option<String>,
    pub leader_epoch: u64,
    /// Since when enough sentinels say that it is down.
    pub odown_ms: Option<u64>,
    pub failover: Failover,
}

/// What a sentinel knows of another process. Times are monotonic, in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub address: Address,
    /// The node of this world at the address.
    pub node: Option<usize>,
    pub run_id: String,
    pub since_ms: u64,
    /// Since when it does not answer.
    pub lost_ms: Option<u64>,
    /// How much later than `down-after-milliseconds` says it counts as down.
    pub delay_ms: u64,
    /// Since when it counts as down.
    pub sdown_ms: Option<u64>,
    /// Whether it says that it is a replica, and since when it says so.
    pub is_replica: bool,
    pub role_ms: u64,
}

/// A replica of a watched master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    pub own: Instance,
    /// Whom it says it follows, and since when.
    pub follows: Option<Address>,
    pub follows_ms: u64,
    /// Since when it says that its link is down.
    pub unlinked_ms: Option<u64>,
    pub offset: u64,
    pub priority: u64,
    pub is_promoted: bool,
    pub reconf: Reconf,
    pub reconf_ms: u64,
}

/// How far a replica has come to follow a new master.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reconf {
    #[default]
    None,
    Sent,
    InProgress,
    Done,
}

/// Another sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub own: Instance,
    pub heard_ms: u64,
    /// Whether it says that the master is down.
    pub says_down: bool,
    pub leader: Option<String>,
    pub leader_epoch: u64,
}

/// A failover, or that there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failover {
    pub stage: Stage,
    pub epoch: u64,
    /// When the last one was tried, here or, with a random delay, by the sentinel that this one voted for.
    pub tried_ms: Option<u64>,
    pub changed_ms: u64,
    /// When votes were asked for.
    pub asked_ms: u64,
    /// Whether a client asked for it: it needs no election.
    pub is_forced: bool,
}

/// What a node that answers says in INFO, as far as sentinels read it.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub run_id: String,
    /// The node that it follows.
    pub follows: Option<usize>,
    pub has_link: bool,
    pub offset: u64,
    pub priority: u64,
    pub replicas: Vec<usize>,
}

/// What a sentinel tells others about itself and one master.
#[derive(Clone, Debug)]
pub struct Hello {
    pub node: usize,
    pub id: String,
    pub address: Address,
    pub epoch: u64,
    pub name: String,
    pub master: Address,
    pub config_epoch: u64,
    /// Whether it says that the master is down; `None` if it cannot be asked.
    pub says_down: Option<bool>,
}

/// What a sentinel sees at one moment.
#[derive(Debug, Default)]
pub struct Outlook {
    /// The nodes that answer, by number. A sentinel among them has nothing to say but that it answers.
    pub nodes: Vec<Option<Sighting>>,
    pub hellos: Vec<Hello>,
}

/// What a sentinel does to other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Makes a replica a master, and disconnects its clients.
    Promote { node: usize },
    /// Makes a node follow another, and disconnects its clients.
    Follow { node: usize, master: Address },
    /// Asks the other sentinels for their votes.
    Canvass { master: Address, epoch: u64 },
    /// Lets other sentinels look, because this one has news for them.
    Tell,
    /// Ends the process of this sentinel.
    Crash,
}

impl Instance {
    fn new(address: Address, node: Option<usize>, is_replica: bool, now_ms: u64) -> Instance {
        Instance {
            address,
            node,
            run_id: String::new(),
            since_ms: now_ms,
            lost_ms: None,
            delay_ms: 0,
            sdown_ms: None,
            is_replica,
            role_ms: now_ms,
        }
    }

    fn is_down(&self) -> bool {
        self.sdown_ms.is_some()
    }
}

impl Replica {
    fn new(address: Address, node: Option<usize>, now_ms: u64) -> Replica {
        Replica {
            own: Instance::new(address, node, true, now_ms),
            follows: None,
            follows_ms: now_ms,
            unlinked_ms: None,
            offset: 0,
            priority: 100,
            is_promoted: false,
            reconf: Reconf::None,
            reconf_ms: 0,
        }
    }
}

impl Master {
    pub(super) fn new(settings: MasterSettings, node: Option<usize>, now_ms: u64) -> Master {
        Master {
            own: Instance::new(settings.address.clone(), node, false, now_ms),
            config_epoch: settings.config_epoch,
            settings,
            replicas: Vec::new(),
            peers: Vec::new(),
            leader: None,
            leader_epoch: 0,
            odown_ms: None,
            failover: Failover::default(),
        }
    }

    /// Returns the address that clients are told: that of the promoted replica as soon as it is a master.
    pub fn address(&self) -> &Address {
        let promoted = self.replicas.iter().find(|replica| replica.is_promoted);
        match promoted {
            Some(replica) if self.failover.stage >= Stage::ReconfSlaves => &replica.own.address,
            _ => &self.own.address,
        }
    }

    /// Forgets what was learned about the master and its replicas.
    fn forget(&mut self, address: Address, node: Option<usize>, now_ms: u64) {
        self.own = Instance::new(address, node, false, now_ms);
        self.replicas.clear();
        self.leader = None;
        self.odown_ms = None;
        self.failover = Failover::default();
        self.peers.iter_mut().for_each(|peer| peer.says_down = false);
    }

    /// Forgets what was learned about the master, its replicas and the other sentinels.
    pub fn begin_anew(&mut self, now_ms: u64) {
        self.peers.clear();
        self.forget(self.own.address.clone(), self.own.node, now_ms);
    }

    /// Returns how many sentinels, this one included, are able to vote.
    fn usable_sentinels(&self) -> usize {
        1 + self.peers.iter().filter(|peer| !peer.own.is_down()).count()
    }

    /// Returns how many votes are more than half of all.
    fn majority(&self) -> usize {
        self.peers.len().div_ceil(2) + 1
    }

    /// Checks that the quorum and a majority can be reached. Returns the number of usable sentinels.
    ///
    /// # Errors
    /// Fails with what cannot be reached.
    pub fn check_quorum(&self) -> Result<usize, Error> {
        let usable = self.usable_sentinels();
        let lacks = [
            (
                self.settings.quorum as usize,
                "Not enough available Sentinels to reach the specified quorum for this master",
            ),
            (
                self.majority(),
                "Not enough available Sentinels to reach the majority and authorize a failover",
            ),
        ];
        let lacks: Vec<&str> =
            lacks.iter().filter(|(needed, _)| usable < *needed).map(|(_, lack)| *lack).collect();
        match lacks.is_empty() {
            true => Ok(usable),
            false => Err(format!("NOQUORUM {usable} usable Sentinels. {}", lacks.join(". ")).into()),
        }
    }
}

impl Sentinel {
    /// Creates a sentinel that has seen nothing yet.
    pub fn new(settings: SentinelSettings, id: String) -> Sentinel {
        Sentinel {
            id: settings.id.clone().unwrap_or(id),
            epoch: settings.epoch,
            settings,
            times_ms: TIMES.map(|(_, ms)| ms),
            masters: Vec::new(),
            crashes: 0,
            timer: TimerId::NONE,
        }
    }

    /// Returns the master of this name.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn master(&self, name: &[u8]) -> Result<&Master, Error> {
        let found = self.masters.iter().find(|master| master.settings.name.as_bytes() == name);
        found.ok_or(settings::NO_SUCH_MASTER)
    }

    /// Returns the master of this name for changes.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn master_mut(&mut self, name: &[u8]) -> Result<&mut Master, Error> {
        let found = self.masters.iter_mut().find(|master| master.settings.name.as_bytes() == name);
        found.ok_or(settings::NO_SUCH_MASTER)
    }

    /// Returns the nodes of the world that it knows.
    pub fn nodes(&self) -> impl Iterator<Item = usize> {
        self.masters.iter().flat_map(|master| {
            let others = master.replicas.iter().map(|replica| replica.own.node);
            others.chain(master.peers.iter().map(|peer| peer.own.node)).chain([master.own.node]).flatten()
        })
    }

    /// Knows from now on the identifiers of the runs of all nodes.
    pub fn know(&mut self, run_ids: &[String]) {
        let instances = self.masters.iter_mut().flat_map(|master| {
            std::iter::once(&mut master.own).chain(master.replicas.iter_mut().map(|replica| &mut replica.own))
        });
        for instance in instances {
            if let Some(run_id) = instance.node.and_then(|node| run_ids.get(node)) {
                instance.run_id.clone_from(run_id);
            }
        }
    }

    /// Returns one of the [`TIMES`].
    pub fn time_ms(&self, name: &str) -> u64 {
        TIMES.iter().position(|(known, _)| *known == name).map_or(0, |at| self.times_ms[at])
    }

    /// Says what others want to know about all masters.
    pub fn hellos(&self, node: usize, address: &Address, is_asked: bool) -> impl Iterator<Item = Hello> {
        self.masters.iter().map(move |master| Hello {
            node,
            id: self.id.clone(),
            address: address.clone(),
            epoch: self.epoch,
            name: master.settings.name.clone(),
            master: master.address().clone(),
            config_epoch: match master.failover.stage >= Stage::ReconfSlaves {
                true => master.failover.epoch,
                false => master.config_epoch,
            },
            says_down: is_asked.then_some(master.own.is_down()),
        })
    }
}

impl Node {
    /// Begins to watch the masters of the settings.
    pub fn begin_sentinel(&mut self) {
        let Some(mut settings) = self.config.sentinel.clone() else { return };
        let masters = std::mem::take(&mut settings.masters);
        let id = match self.sentinel.take() {
            Some(before) => {
                self.store.timers.cancel(before.timer);
                before.id
            }
            None => self.rng.hex(40),
        };
        self.sentinel = Some(Box::new(Sentinel::new(*settings, id)));
        masters.into_iter().for_each(|master| self.monitor(master));
    }

    /// Adds a master.
    pub fn monitor(&mut self, settings: MasterSettings) {
        let node = self.node_at(&settings.address);
        let now_ms = self.store.now.mono_ms();
        let master = Master::new(settings, node, now_ms);
        let Some(sentinel) = &mut self.sentinel else { return };
        let text = format!("{} quorum {}", master.label(), master.settings.quorum);
        sentinel.masters.push(master);
        self.say("+monitor", &text);
        self.look_at(now_ms);
    }

    /// Returns the node of this world that listens on an address.
    pub fn node_at(&self, address: &Address) -> Option<usize> {
        let host = address.host.as_bytes();
        self.replication.node_at(host, address.port.to_string().as_bytes(), self.index)
    }

    /// Returns the address under which this sentinel is known to others.
    pub fn sentinel_address(&self) -> Address {
        let mut address = self.replication.address_of(self.index);
        if let Some(sentinel) = &self.sentinel {
            let globals = &sentinel.settings.globals;
            if !globals.announce_ip.is_empty() {
                address.host.clone_from(&globals.announce_ip);
            }
            if globals.announce_port != 0 {
                address.port = globals.announce_port;
            }
        }
        address
    }

    /// Lets the sentinel look at a time, if not earlier.
    pub fn look_at(&mut self, at_ms: u64) {
        let Some(sentinel) = &mut self.sentinel else { return };
        let timers = &mut self.store.timers;
        match timers.deadline_ms(sentinel.timer) {
            Some(due_ms) if due_ms <= at_ms => {}
            Some(_) => {
                timers.rearm(sentinel.timer, at_ms);
            }
            None => sentinel.timer = timers.arm(at_ms, Timer::Sentinel),
        }
    }

    /// Publishes an event to the clients of a sentinel.
    pub fn say(&mut self, event: &str, text: &str) {
        use super::session::SubscriptionKind;
        tracing::info!("{event} {text}");
        self.publish(SubscriptionKind::Channel, event.as_bytes(), text.as_bytes());
    }
}
