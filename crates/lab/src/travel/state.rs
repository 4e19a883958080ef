//! Everything there is at one moment of a run, as text or JSON.

use std::fmt;

use serde::Serialize;

use crate::control::Lab;
use crate::control::staging::summary;
use crate::trace::clock_name;
use redlatch_core::node::Node;
use redlatch_core::node::replication::Role;
use redlatch_core::node::session::{Session, SubscriptionKind};
use redlatch_core::store::{Store, Value};
use redlatch_locks::history::{Grant, History, LockId};
use redlatch_locks::show::show_value;

/// The most characters of a value, and the most keys of a database, that the text shows.
const SHOWN_CHARS: usize = 120;
const SHOWN_KEYS: usize = 1_000;

/// The state of a run at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// The number of the last event.
    pub event: u64,
    /// Monotonic time in µs, and Unix time in ms.
    pub mono_us: u64,
    pub wall_ms: i64,
    pub clock: String,
    /// The hash that the trace has in lines of the kind `dig`.
    pub digest: String,
    pub nodes: Vec<NodeState>,
    pub locks: Vec<LockState>,
    pub timers: Vec<TimerState>,
    /// Fault rules and gates as SIM.FAULT and SIM.GATE know them.
    pub rules: Vec<Named>,
    pub gates: Vec<Named>,
    pub held: Vec<HeldState>,
    /// Violations that checks have found so far.
    pub violations: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeState {
    pub node: usize,
    /// `master`, or `replica of 0 (up)`.
    pub role: String,
    /// `running`, `paused` or `stopped`, and the states of SIM.NODE STATE.
    pub doing: String,
    pub wall_jump_ms: i64,
    /// Whether a script is suspended.
    pub runs_script: bool,
    pub keys: Vec<KeyState>,
    pub channels: Vec<ChannelState>,
    pub clients: Vec<ClientState>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyState {
    pub db: usize,
    pub key: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub value: String,
    /// `None`: the key does not expire.
    pub ttl_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelState {
    pub channel: String,
    pub subscribers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientState {
    pub client: String,
    pub name: String,
    pub db: usize,
    /// What the client waits for, and the request that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// The requests of an open transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<String>,
}

/// A lock: what clients were told, and what the nodes have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockState {
    pub db: usize,
    pub lock: String,
    pub holders: Vec<HolderState>,
    /// The value on each node that has the key, with its remaining time to live.
    pub stored: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HolderState {
    pub owner: String,
    pub client: String,
    pub since_event: u64,
    /// What is left of the lease by the owner's own reckoning; `None`: it has no end.
    pub lease_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimerState {
    /// In how many ms it fires.
    pub in_ms: u64,
    pub kind: &'static str,
    pub what: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named {
    pub id: u64,
    pub text: String,
    /// How often the rule has applied, or how many the gate has held.
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldState {
    pub ticket: u64,
    pub client: String,
    pub at: &'static str,
    pub what: String,
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn show(value: &Value) -> String {
    let text: String = show_value(value)
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect();
    shorten(text)
}

impl State {
    /// Describes a lab, and what clients were told about locks.
    pub fn of(lab: &Lab) -> State {
        let clock = lab.world().clock();
        let control = lab.staging.control.borrow();
        let now_ms = clock.now().mono_ms();
        let rules = control.rules.iter();
        let gates = control.gates.iter();
        State {
            event: lab.world().events(),
            mono_us: clock.now().mono_us,
            wall_ms: clock.now().wall_ms(),
            clock: clock_name(clock.mode()),
            digest: lab.world().digest(),
            nodes: lab.world().nodes().iter().map(NodeState::of).collect(),
            locks: lab.with_history(|history| locks(lab, history, now_ms)).unwrap_or_default(),
            timers: lab
                .pending_timers(usize::MAX)
                .into_iter()
                .map(|timer| TimerState {
                    in_ms: timer.due_ms.saturating_sub(now_ms),
                    kind: timer.kind,
                    what: text(&timer.what),
                })
                .collect(),
            rules: rules
                .map(|rule| Named { id: rule.id, text: rule.rule.to_string(), count: rule.hits })
                .collect(),
            gates: gates
                .map(|gate| Named { id: gate.id, text: gate.gate.to_string(), count: gate.held })
                .collect(),
            held: control
                .gates
                .tickets()
                .map(|ticket| HeldState {
                    ticket: ticket.id,
                    client: conn(ticket.conn.node, ticket.conn.session.number),
                    at: ticket.at.name(),
                    what: ticket.summary.clone(),
                })
                .collect(),
            violations: lab
                .findings
                .iter()
                .map(|found| {
                    format!(
                        "event {}: {} of {}: {}",
                        found.event,
                        found.promise(),
                        text(&found.key),
                        found.violation.text
                    )
                })
                .collect(),
        }
    }
}

fn conn(node: usize, number: u64) -> String {
    format!("{node}:{number}")
}

impl NodeState {
    fn of(node: &Node) -> NodeState {
        let states = node.states.to_string();
        let doing = match (node.stopped, node.paused) {
            (true, _) => "stopped",
            (_, true) => "paused",
            _ => "running",
        };
        NodeState {
            node: node.index,
            role: match node.replication.role {
                Role::Master => "master".to_owned(),
                Role::Stray => "replica of no node".to_owned(),
                Role::Replica { of } => format!("replica of {of} ({})", node.replication.link),
            },
            doing: [doing, &states].join(" ").trim_end().to_owned(),
            wall_jump_ms: node.wall_jump_ms,
            runs_script: node.scripts.is_running(),
            keys: keys(&node.store),
            channels: channels(node),
            clients: node.sessions.iter().map(|session| client(node, session)).collect(),
        }
    }
}

fn keys(store: &Store) -> Vec<KeyState> {
    let mut all = Vec::new();
    for (db, data) in store.dbs.iter().enumerate() {
        let live = data.iter().filter(|(_, _, entry)| !entry.is_expired(store.now));
        all.extend(live.map(|(_, key, entry)| KeyState {
            db,
            key: text(key),
            kind: entry.value.type_name(),
            value: show(&entry.value),
            ttl_ms: entry.expires_at_ms().map(|at_ms| at_ms - store.now.wall_ms()),
        }));
    }
    all.sort_by(|a, b| (a.db, &a.key).cmp(&(b.db, &b.key)));
    all
}

fn channels(node: &Node) -> Vec<ChannelState> {
    let kinds = [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard];
    let of_kind = |kind| {
        node.pubsub.names(kind).map(move |name| ChannelState {
            channel: text(name),
            subscribers: (node.pubsub.subscribers(kind, name).iter())
                .map(|id| conn(node.index, id.number))
                .collect(),
        })
    };
    let mut all: Vec<ChannelState> = kinds.into_iter().flat_map(of_kind).collect();
    all.sort_by(|a, b| a.channel.cmp(&b.channel));
    all
}

fn client(node: &Node, session: &Session) -> ClientState {
    let waits = session.blocked.as_ref().map(|blocked| {
        let request = shorten(summary(&blocked.argv.args()));
        match blocked.keys.is_empty() {
            true => format!("{:?}: {request}", blocked.wait),
            false => {
                let keys: Vec<String> = blocked.keys.iter().map(|key| text(key)).collect();
                format!("{:?} at {}: {request}", blocked.wait, keys.join(" "))
            }
        }
    });
    ClientState {
        client: conn(node.index, session.id.number),
        name: text(&session.name),
        db: session.db,
        waits,
        multi: session
            .multi
            .as_ref()
            .map(|multi| multi.commands.iter().map(|argv| shorten(summary(&argv.args()))).collect()),
        watches: session.watched.iter().map(|(_, key)| text(key)).collect(),
    }
}

fn locks(lab: &Lab, history: &History, now_ms: u64) -> Vec<LockState> {
    let mut all = Vec::new();
    for lock in history.locks() {
        let grants = history.held(lock, now_ms);
        let stored: Vec<String> = lab.world().nodes().iter().filter_map(|node| stored(node, lock)).collect();
        if grants.is_empty() && stored.is_empty() {
            continue;
        }
        all.push(LockState {
            db: lock.0,
            lock: text(&lock.1),
            holders: grants.into_iter().map(|grant| holder(grant, now_ms)).collect(),
            stored,
        });
    }
    all
}

fn stored(node: &Node, (db, key): &LockId) -> Option<String> {
    let data = node.store.dbs.get(*db)?;
    let entry = data.entry(data.find(key)?).filter(|entry| !entry.is_expired(node.store.now))?;
    let ttl = match entry.expires_at_ms() {
        Some(at_ms) => format!("{} ms", at_ms - node.store.now.wall_ms()),
        None => "no expiry".to_owned(),
    };
    Some(format!("node {}: {}, {ttl}", node.index, show(&entry.value)))
}

fn holder(grant: &Grant, now_ms: u64) -> HolderState {
    HolderState {
        owner: text(&grant.owner),
        client: grant.conn.to_string(),
        since_event: grant.event,
        lease_ms: grant.until_ms.map(|until_ms| until_ms.saturating_sub(now_ms)),
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "event {} at {}.{:03} ms, Unix time {} ms, clock {}",
            self.event,
            self.mono_us / 1000,
            self.mono_us % 1000,
            self.wall_ms,
            self.clock
        )?;
        writeln!(f, "digest {}", self.digest)?;
        for node in &self.nodes {
            node.write(f)?;
        }
        for lock in &self.locks {
            writeln!(f, "lock {}", lock.lock)?;
            for holder in &lock.holders {
                let lease =
                    holder.lease_ms.map_or("no lease".to_owned(), |ms| format!("lease for {ms} ms more"));
                writeln!(
                    f,
                    "  held by {} (client {}), granted by event {}, {lease}",
                    holder.owner, holder.client, holder.since_event
                )?;
            }
            if lock.holders.is_empty() {
                writeln!(f, "  nobody was told that he holds it")?;
            }
            lock.stored.iter().try_for_each(|stored| writeln!(f, "  {stored}"))?;
        }
        for timer in &self.timers {
            writeln!(f, "timer in {} ms: {} {}", timer.in_ms, timer.kind, timer.what)?;
        }
        for rule in &self.rules {
            writeln!(f, "rule {}: {}, {} hits", rule.id, rule.text, rule.count)?;
        }
        for gate in &self.gates {
            writeln!(f, "gate {}: {}, has held {}", gate.id, gate.text, gate.count)?;
        }
        for held in &self.held {
            writeln!(f, "held t{} of {} at {}: {}", held.ticket, held.client, held.at, held.what)?;
        }
        self.violations.iter().try_for_each(|violation| writeln!(f, "violation at {violation}"))
    }
}

impl NodeState {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}: {}, {}", self.node, self.role, self.doing)?;
        if self.wall_jump_ms != 0 {
            write!(f, ", wall clock {:+} ms", self.wall_jump_ms)?;
        }
        writeln!(f, "{}", if self.runs_script { ", a script is suspended" } else { "" })?;
        for key in self.keys.iter().take(SHOWN_KEYS) {
            let ttl = key.ttl_ms.map_or(String::new(), |ms| format!(", {ms} ms"));
            let db = if key.db > 0 { format!("[{}] ", key.db) } else { String::new() };
            writeln!(f, "  {db}{} ({}{ttl}) = {}", key.key, key.kind, key.value)?;
        }
        if self.keys.len() > SHOWN_KEYS {
            writeln!(f, "  … and {} keys more; --json shows all", self.keys.len() - SHOWN_KEYS)?;
        }
        for channel in &self.channels {
            writeln!(f, "  channel {}: {}", channel.channel, channel.subscribers.join(" "))?;
        }
        for client in &self.clients {
            write!(f, "  client {}", client.client)?;
            if !client.name.is_empty() {
                write!(f, " {}", client.name)?;
            }
            if client.db > 0 {
                write!(f, ", database {}", client.db)?;
            }
            if let Some(waits) = &client.waits {
                write!(f, ", waits for {waits}")?;
            }
            if let Some(multi) = &client.multi {
                write!(f, ", in MULTI: {}", multi.join("; "))?;
            }
            if !client.watches.is_empty() {
                write!(f, ", watches {}", client.watches.join(" "))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
