//! States in which a node refuses requests. They are Redis's own states, which a test enters at will.

use super::admission::Access;
use super::{Node, SessionId};
use crate::commands::command::{
    ALLOW_BUSY, Command, DENYOOM, Flags as CommandFlags, LOADING, MAY_REPLICATE, READONLY, STALE, WRITE,
};
use crate::error::{self, Error};
use crate::node::replication::Role;
use crate::script::{self, Flags};
use crate::version::Version;

/// A state in which a node refuses requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The server uses more memory than `maxmemory` allows.
    Oom,
    /// The server is loading its dataset.
    Loading,
    /// The server refuses writes, like a replica.
    ReadOnly,
    /// A script is running for too long.
    Busy,
    /// The server has reached `maxclients`.
    MaxClients,
    /// A replica has lost its master and serves no stale data.
    MasterDown,
    /// The master has fewer replicas than `min-replicas-to-write`.
    NoReplicas,
    /// The cluster does not serve its hash slots.
    ClusterDown,
}

pub const STATES: &[(&str, State)] = &[
    ("OOM", State::Oom),
    ("LOADING", State::Loading),
    ("READONLY", State::ReadOnly),
    ("BUSY", State::Busy),
    ("MAXCLIENTS", State::MaxClients),
    ("MASTERDOWN", State::MasterDown),
    ("NOREPLICAS", State::NoReplicas),
    ("CLUSTERDOWN", State::ClusterDown),
];

/// A set of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States(u16);

impl States {
    /// Enters or leaves a state.
    pub fn set(&mut self, state: State, on: bool) {
        let bit = 1 << state as u16;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }

    /// Returns whether a state is set.
    pub fn has(self, state: State) -> bool {
        self.0 & 1 << state as u16 != 0
    }

    /// Returns whether no state is set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl std::fmt::Display for States {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> =
            STATES.iter().filter(|(_, state)| self.has(*state)).map(|(name, _)| *name).collect();
        f.write_str(&names.join(" "))
    }
}

const OOM: Error = Error::new("OOM command not allowed when used memory > 'maxmemory'.");
const READ_ONLY: Error = Error::new("READONLY You can't write against a read only replica.");
const NO_REPLICAS: Error = Error::new("NOREPLICAS Not enough good replicas to write.");
const MASTER_DOWN: Error =
    Error::new("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
const IS_LOADING: Error = Error::new("LOADING Redis is loading the dataset in memory");
const CLUSTER_DOWN: Error = Error::new("CLUSTERDOWN The cluster is down");

impl Node {
    /// Returns whether the node refuses writes of clients.
    pub fn is_read_only(&self) -> bool {
        self.states.has(State::ReadOnly) || self.replication.role != Role::Master
    }

    /// Returns whether the node is a replica that has lost its master and serves no stale data.
    fn has_lost_master(&self) -> bool {
        let is_alone = self.replication.role != Role::Master && !self.replication.master.online;
        self.states.has(State::MasterDown)
            || is_alone && self.config.get("replica-serve-stale-data") == Some("no")
    }

    /// Returns whether the node refuses commands that may need more memory.
    fn is_out_of_memory(&self) -> bool {
        self.states.has(State::Oom) || self.eviction.is_out_of_memory
    }

    /// Returns whether a transaction would queue a command, which takes memory. Only 7.0 refuses that.
    fn takes_memory_in_queue(&self, id: SessionId, command: &Command) -> bool {
        self.config.version < Version::V7_2
            && self.sessions[id].multi.is_some()
            && !["exec", "discard", "quit", "reset"].contains(&command.name)
    }

    /// Returns whether no state is set that could refuse a request.
    fn refuses_nothing(&self) -> bool {
        self.states.is_empty()
            && !self.eviction.is_out_of_memory
            && self.replication.role == Role::Master
            && self.config.min_replicas_to_write == 0
    }

    /// Returns whether the node refuses writes because it has too few replicas that keep up.
    fn lacks_replicas(&self) -> bool {
        let good = self.replication.replicas.iter().filter(|replica| replica.online).count();
        self.states.has(State::NoReplicas)
            || self.replication.role == Role::Master && good < self.config.min_replicas_to_write
    }

    /// Returns the flags of a request. A script that declares flags of its own has those of EVAL replaced by them.
    fn flags_of_request(&self, command: &Command, argv: &[&[u8]]) -> CommandFlags {
        let declared = match (command.name, argv) {
            ("eval" | "eval_ro", [_, body, ..]) => script::declared_flags(body, self.config.version),
            ("evalsha" | "evalsha_ro", [_, sha, ..]) => self.scripts.flags_of(sha),
            ("fcall" | "fcall_ro", [_, name, ..]) => self.functions.flags_of(name),
            _ => return command.flags,
        };
        // COMMAND INFO does not show that a script may replicate.
        let may_replicate = if command.has(READONLY) { 0 } else { MAY_REPLICATE };
        let Some(declared) = declared else { return command.flags | may_replicate };
        let allows_oom = declared.allow_oom || declared.no_writes;
        let mut flags = command.flags & !(STALE | DENYOOM | WRITE | MAY_REPLICATE);
        for (flag, is_set) in
            [(STALE, declared.allow_stale), (DENYOOM, !allows_oom), (WRITE, !declared.no_writes)]
        {
            flags |= if is_set { flag } else { 0 };
        }
        flags
    }

    /// Returns the flags of a request. Those of EXEC are the ones of all commands of the transaction.
    pub(super) fn flags_with_queue(&self, id: SessionId, command: &Command, argv: &[&[u8]]) -> CommandFlags {
        let mut flags = self.flags_of_request(command, argv);
        if let (Some(multi), "exec") = (&self.sessions[id].multi, command.name) {
            for queued in &multi.commands {
                let argv = queued.args();
                if let Some(command) = self.config.find_command(&argv) {
                    flags |= self.flags_of_request(command, &argv);
                }
            }
        }
        flags
    }

    /// Makes the checks that Redis makes before the check for subscribed mode.
    pub(super) fn check_writes(&self, id: SessionId, command: &Command, argv: &[&[u8]]) -> Result<(), Error> {
        if self.refuses_nothing() {
            return Ok(());
        }
        let flags = self.flags_with_queue(id, command, argv);
        let has = |flag| flags & flag != 0;
        if self.states.has(State::ClusterDown) && !command.keys.is_empty() {
            return Err(CLUSTER_DOWN);
        }
        if self.is_out_of_memory() && (has(DENYOOM) || self.takes_memory_in_queue(id, command)) {
            return Err(OOM);
        }
        if has(WRITE) && self.lacks_replicas() {
            return Err(NO_REPLICAS);
        }
        if self.is_read_only() && has(WRITE) {
            return Err(READ_ONLY);
        }
        Ok(())
    }

    /// Makes the checks that Redis makes after the check for subscribed mode.
    pub(super) fn check_availability(&self, command: &Command, argv: &[&[u8]]) -> Result<(), Error> {
        if self.states.is_empty() && self.replication.role == Role::Master {
            return Ok(());
        }
        if self.has_lost_master() && self.flags_of_request(command, argv) & STALE == 0 {
            return Err(MASTER_DOWN);
        }
        if self.states.has(State::Loading) && !command.has(LOADING) {
            return Err(IS_LOADING);
        }
        if self.states.has(State::Busy) && !command.has(ALLOW_BUSY) {
            return Err(error::busy(self.config.version, false));
        }
        Ok(())
    }

    /// Makes the checks that apply to a script before it runs.
    ///
    /// # Errors
    ///
    /// Fails with the error of the state that refuses the script.
    pub fn check_script_start(&self, flags: Flags) -> Result<(), Error> {
        if flags.no_cluster && self.cluster.is_some() {
            return Err(Error::new("ERR Can not run script on cluster, 'no-cluster' flag is set."));
        }
        if self.has_lost_master() && !flags.allow_stale { Err(MASTER_DOWN) } else { Ok(()) }
    }

    /// Makes the checks that apply to a command of a script. A script that has already written may continue to write, except
    /// on a read-only node.
    pub(super) fn check_script_writes(&self, command: &Command, access: Access) -> Result<(), Error> {
        if self.refuses_nothing() || !command.has(WRITE) {
            return Ok(());
        }
        if self.is_read_only() {
            return Err(READ_ONLY);
        }
        if access.wrote {
            return Ok(());
        }
        if self.lacks_replicas() {
            return Err(NO_REPLICAS);
        }
        self.check_memory_of_call(command, access)
    }

    /// Checks that a command of a script may take memory.
    pub(super) fn check_memory_of_call(&self, command: &Command, access: Access) -> Result<(), Error> {
        let is_refused = command.has(DENYOOM) && !access.allow_oom && self.is_out_of_memory();
        if is_refused { Err(OOM) } else { Ok(()) }
    }
}
