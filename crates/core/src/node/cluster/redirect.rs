//! Which requests a node of a cluster runs, and where it sends the others. `getNodeByQuery` of Redis.

use super::{Cluster, Endpoint, Member};
use crate::commands::command::{ASKING, Command, WRITE};
use crate::commands::introspection::keys_in_call;
use crate::error::Error;
use crate::node::Node;
use crate::node::session::SessionId;
use crate::slots::hash_slot;
use crate::version::Version;

/// Why a node does not run a command.
enum Obstacle {
    /// The keys are in several slots.
    CrossSlot,
    /// Some of the keys are here and others on the other side of a migration.
    Unstable,
    Down,
    DownForWrites,
    /// Nobody serves the slot.
    Unbound,
    /// Another node serves it: `ASK` or `MOVED`, the slot and where.
    Elsewhere(&'static str, u16, String),
}

impl Obstacle {
    fn error(self) -> Error {
        Error::new(match self {
            Obstacle::CrossSlot => "CROSSSLOT Keys in request don't hash to the same slot",
            Obstacle::Unstable => "TRYAGAIN Multiple keys request during rehashing of slot",
            Obstacle::Down => "CLUSTERDOWN The cluster is down",
            Obstacle::DownForWrites => "CLUSTERDOWN The cluster is down and only accepts read commands",
            Obstacle::Unbound => "CLUSTERDOWN Hash slot not served",
            Obstacle::Elsewhere(code, slot, place) => return format!("{code} {slot} {place}").into(),
        })
    }

    fn error_in_script(self, command: &Command, version: Version) -> Error {
        Error::new(match self {
            Obstacle::CrossSlot if version >= Version::V7_4 => {
                return format!(
                    "ERR Command '{}' in script attempted to access keys that don't hash to the same slot",
                    command.name
                )
                .into();
            }
            Obstacle::Down => "ERR Script attempted to execute a command while the cluster is down",
            Obstacle::DownForWrites => {
                "ERR Script attempted to execute a write command while the cluster is down and readonly"
            }
            Obstacle::Unbound if version >= Version::V7_2 => {
                "ERR Script attempted to access a slot not served"
            }
            _ => "ERR Script attempted to access a non local key in a cluster node",
        })
    }
}

/// Returns whether an error sends a client elsewhere, or says that the cluster cannot run its request.
pub(in crate::node) fn is_redirection(error: &Error) -> bool {
    let code = error.text().split(|&byte| byte == b' ').next().unwrap_or_default();
    [&b"MOVED"[..], b"ASK", b"CLUSTERDOWN", b"CROSSSLOT", b"TRYAGAIN"].contains(&code)
}

/// What the keys of a request have in common.
#[derive(Default)]
struct Keys<'a> {
    slot: Option<u16>,
    first: Option<&'a [u8]>,
    /// Whether there are other keys than the first.
    several: bool,
    /// Whether it matters if keys exist.
    looks_up: bool,
    /// How many keys of a slot on the move are not here, and how many are.
    missing: usize,
    existing: usize,
}

impl<'a> Keys<'a> {
    /// Adds the keys of a call.
    fn add(&mut self, node: &Node, cluster: &Cluster, call: &[&'a [u8]]) -> Result<(), Obstacle> {
        let Some(row) = node.config.find_command(call) else { return Ok(()) };
        for (at, _) in keys_in_call(row, call, node.config.version) {
            let Some(&key) = call.get(at) else { continue };
            let slot = hash_slot(key);
            match self.slot {
                None => {
                    cluster.owner(slot).ok_or(Obstacle::Unbound)?;
                    (self.slot, self.first) = (Some(slot), Some(key));
                }
                Some(first) if first != slot => return Err(Obstacle::CrossSlot),
                Some(_) => self.several |= self.first != Some(key),
            }
            let is_moving = cluster.owns(slot) && cluster.migrating.contains_key(&slot)
                || cluster.importing.contains_key(&slot);
            if is_moving && self.looks_up {
                *(if node.has_key(key) { &mut self.existing } else { &mut self.missing }) += 1;
            }
        }
        Ok(())
    }
}

/// The commands whose arguments are shard channels.
const PUBSUB: [&str; 3] = ["ssubscribe", "sunsubscribe", "spublish"];

impl Node {
    /// Makes the checks of cluster mode for a client's request.
    pub(in crate::node) fn redirect(
        &mut self,
        id: SessionId,
        command: &Command,
        argv: &[&[u8]],
    ) -> Result<(), Error> {
        if command.keys_of_calls.unwrap_or(command.keys).is_empty() && command.name != "exec" {
            return Ok(());
        }
        self.locate(id, command, argv).map(|_| ()).map_err(Obstacle::error)
    }

    /// Makes the checks of cluster mode for a command of a script, whose keys all have to be in one slot unless
    /// `allows_cross_slot`.
    pub(in crate::node) fn redirect_call(
        &mut self,
        id: SessionId,
        command: &Command,
        argv: &[&[u8]],
        allows_cross_slot: bool,
    ) -> Result<(), Error> {
        let version = self.config.version;
        let slot = self.locate(id, command, argv).map_err(|why| why.error_in_script(command, version))?;
        let Some(cluster) = &mut self.cluster else { return Ok(()) };
        if let Some(slot) = slot.filter(|_| !allows_cross_slot)
            && *cluster.script_slot.get_or_insert(slot) != slot
        {
            return Err(Error::new("ERR Script attempted to access keys that do not hash to the same slot"));
        }
        Ok(())
    }

    /// Notes the slot of the keys that a script declares, when it begins.
    pub(in crate::node) fn enter_script_slot(&mut self, keys: &[&[u8]]) {
        if let Some(cluster) = &mut self.cluster {
            cluster.script_slot = keys.first().map(|key| hash_slot(key));
        }
    }

    /// Returns the slot of a request's keys, if it has any and this node runs it.
    fn locate(&self, id: SessionId, command: &Command, argv: &[&[u8]]) -> Result<Option<u16>, Obstacle> {
        let Some(cluster) = &self.cluster else { return Ok(None) };
        let session = &self.sessions[id];
        let is_shard = PUBSUB.contains(&command.name);
        let mut keys = Keys { looks_up: !is_shard, ..Keys::default() };
        match session.multi.as_ref().filter(|_| command.name == "exec") {
            Some(multi) => {
                multi.commands.iter().try_for_each(|queued| keys.add(self, cluster, &queued.args()))?
            }
            None => keys.add(self, cluster, argv)?,
        }
        let Keys { slot, several, missing, existing, .. } = keys;
        let Some(slot) = slot else { return Ok(None) };
        let Some(owner) = cluster.owner(slot) else { return Err(Obstacle::Unbound) };
        let writes = self.flags_with_queue(id, command, argv) & WRITE != 0;
        if !cluster.is_ok {
            let settings = &self.config.cluster;
            if is_shard {
                if !settings.allows_shards_when_down {
                    return Err(Obstacle::Down);
                }
            } else if !settings.allows_reads_when_down {
                return Err(Obstacle::Down);
            } else if writes {
                return Err(Obstacle::DownForWrites);
            }
        }
        let migrating = cluster.migrating.get(&slot).filter(|_| cluster.owns(slot));
        let is_importing = migrating.is_none() && cluster.importing.contains_key(&slot);
        if (migrating.is_some() || is_importing) && command.name == "migrate" {
            return Ok(Some(slot));
        }
        if let Some(target) = migrating.filter(|_| missing > 0) {
            if existing > 0 {
                return Err(Obstacle::Unstable);
            }
            let place = cluster.member(*target).map(|member| self.place_of(member)).unwrap_or_default();
            return Err(Obstacle::Elsewhere("ASK", slot, place));
        }
        if is_importing && (session.asks || command.has(ASKING)) {
            return if several && missing > 0 { Err(Obstacle::Unstable) } else { Ok(Some(slot)) };
        }
        if cluster.owns(slot) {
            return Ok(Some(slot));
        }
        let reads = (session.reads_replicas || is_shard) && !writes;
        if reads && cluster.me().master == Some(owner.id) {
            return Ok(Some(slot));
        }
        Err(Obstacle::Elsewhere("MOVED", slot, self.place_of(owner)))
    }

    /// Ends the effect of ASKING, which is for the next command or transaction.
    pub(in crate::node) fn end_asking(&mut self, id: SessionId, argv: &[&[u8]]) {
        if self.cluster.is_none() {
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        let is_asking = argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"asking"));
        if session.multi.is_none() && !is_asking {
            session.asks = false;
        }
    }

    fn has_key(&self, key: &[u8]) -> bool {
        let db = &self.store.dbs[0];
        let entry = db.find(key).and_then(|slot| db.entry(slot));
        entry.is_some_and(|entry| !entry.is_expired(self.store.now))
    }

    /// Returns what clients are told about where a node is.
    pub fn place_of(&self, member: &Member) -> String {
        let address = &member.address;
        let host = match self.config.cluster.endpoint {
            Endpoint::Ip => &address.ip,
            Endpoint::Hostname if address.hostname.is_empty() => "?",
            Endpoint::Hostname => &address.hostname,
            Endpoint::Unknown => "",
        };
        format!("{host}:{}", address.port)
    }

    /// Returns the error for a blocked client that waits for keys which another node serves, or nobody.
    pub(super) fn redirection_of_blocked(&self, id: SessionId) -> Option<Error> {
        let cluster = self.cluster.as_ref()?;
        let session = &self.sessions[id];
        let blocked = session.blocked.as_ref()?;
        if !cluster.is_ok {
            return Some(Obstacle::Down.error());
        }
        let slot = hash_slot(blocked.keys.first()?);
        if cluster.owns(slot) || cluster.importing.contains_key(&slot) {
            return None;
        }
        let Some(owner) = cluster.owner(slot) else { return Some(Obstacle::Unbound.error()) };
        let reads = session.reads_replicas && cluster.me().master == Some(owner.id);
        (!reads).then(|| Obstacle::Elsewhere("MOVED", slot, self.place_of(owner)).error())
    }
}
