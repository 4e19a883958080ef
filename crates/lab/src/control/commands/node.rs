//! SIM.NODE: nodes that pause, stop, start, refuse, replicate and take over.

use super::super::Due;
use super::{Answer, Lab, Scope};
use crate::control::words::{SimError, Words, range, state};
use redlatch_core::node::replication::{Link, Role};
use redlatch_core::node::states::{STATES, State};
use redlatch_core::world::{ConnId, ReplicationError};

pub const USAGE: &[&str] = &[
    "SIM.NODE LIST",
    "SIM.NODE PAUSE | RESUME <node>",
    "SIM.NODE STOP <node> [KEEP | WIPE]",
    "SIM.NODE START <node> [AFTER <ms>]",
    "SIM.NODE STATE <node> OOM | LOADING | READONLY | BUSY | MAXCLIENTS | MASTERDOWN | NOREPLICAS | CLUSTERDOWN ON | OFF",
    "SIM.NODE REPLICATE <node> OF <master>",
    "SIM.NODE LINK <replica> UP | DOWN | LAG <writes>",
    "SIM.NODE PROMOTE <node>",
    "SIM.NODE ACK <node> <replicas> | REAL",
];

#[derive(Clone, Debug, PartialEq)]
pub enum NodeCommand {
    List,
    /// Requests and timers wait, as when the process is stopped by a signal.
    Pause(usize),
    Resume(usize),
    /// All connections end and new ones are refused. With `wipe` the data is lost too.
    Stop {
        node: usize,
        wipe: bool,
    },
    Start {
        node: usize,
        after_ms: u64,
    },
    State {
        node: usize,
        state: State,
        on: bool,
    },
    Replicate {
        node: usize,
        master: usize,
    },
    Link {
        replica: usize,
        link: Link,
    },
    Promote(usize),
    /// How many replicas WAIT and WAITAOF count; `None`: those that there are.
    Ack {
        node: usize,
        replicas: Option<u64>,
    },
}

impl NodeCommand {
    pub fn parse(words: &mut Words, scope: &Scope) -> Result<NodeCommand, SimError> {
        let what = words.word("LIST, PAUSE, RESUME, STOP, START, STATE, REPLICATE, LINK, PROMOTE or ACK")?;
        let node = |words: &mut Words| parse_node(words, scope);
        Ok(match &what.to_ascii_uppercase()[..] {
            b"LIST" => NodeCommand::List,
            b"PAUSE" => NodeCommand::Pause(node(words)?),
            b"RESUME" => NodeCommand::Resume(node(words)?),
            b"STOP" => NodeCommand::Stop {
                node: node(words)?,
                wipe: match words.is_empty() {
                    true => false,
                    false => words.one_of("KEEP or WIPE", &[("KEEP", false), ("WIPE", true)])?,
                },
            },
            b"START" => NodeCommand::Start {
                node: node(words)?,
                after_ms: if words.take("AFTER") { words.ms("the delay in ms")? } else { 0 },
            },
            b"STATE" => NodeCommand::State {
                node: node(words)?,
                state: words.one_of("a state", STATES)?,
                on: words.one_of("ON or OFF", &[("ON", true), ("OFF", false)])?,
            },
            b"REPLICATE" => {
                let replica = node(words)?;
                if !words.take("OF") {
                    return Err(super::syntax("OF and the master are missing"));
                }
                NodeCommand::Replicate { node: replica, master: node(words)? }
            }
            b"LINK" => NodeCommand::Link {
                replica: node(words)?,
                link: match &words.word("UP, DOWN or LAG")?.to_ascii_uppercase()[..] {
                    b"UP" => Link::Up,
                    b"DOWN" => Link::Down,
                    b"LAG" => Link::Lag(words.int("how many writes", 0, 1 << 30)? as usize),
                    _ => return Err(words.not_known()),
                },
            },
            b"PROMOTE" => NodeCommand::Promote(node(words)?),
            b"ACK" => NodeCommand::Ack {
                node: node(words)?,
                replicas: match words.take("REAL") {
                    true => None,
                    false => Some(words.int("how many replicas", 0, 1 << 30)? as u64),
                },
            },
            _ => return Err(words.not_known()),
        })
    }
}

fn parse_node(words: &mut Words, scope: &Scope) -> Result<usize, SimError> {
    let node = words.int("the number of a node", 0, i64::MAX)? as usize;
    if node < scope.nodes {
        return Ok(node);
    }
    Err(range(format!("there is no node {node}: they are numbered from 0 to {}", scope.nodes - 1)))
}

impl Lab {
    pub(super) fn apply_node(
        &mut self,
        command: NodeCommand,
        from: Option<ConnId>,
    ) -> Result<Answer, SimError> {
        match command {
            NodeCommand::List => {
                return Ok((0..self.world.nodes().len())
                    .map(|node| self.describe_node(node))
                    .collect::<Vec<_>>()
                    .into());
            }
            NodeCommand::Pause(node) => {
                self.check_node(node)?;
                self.world.pause_node(node);
            }
            NodeCommand::Resume(node) => {
                self.check_node(node)?;
                self.world.resume_node(node);
            }
            NodeCommand::Stop { node, wipe } => {
                self.check_node(node)?;
                self.world.stop_node(node, wipe, from);
            }
            NodeCommand::Start { node, after_ms } => {
                self.check_node(node)?;
                match after_ms {
                    0 => self.world.start_node(node),
                    _ => {
                        let due_ms = self.world.clock().now().mono_ms().saturating_add(after_ms);
                        self.staging.control.borrow_mut().arm(due_ms, Due::Start(node));
                    }
                }
            }
            NodeCommand::State { node, state, on } => {
                self.check_node(node)?;
                self.world.node_mut(node).states.set(state, on);
            }
            NodeCommand::Replicate { node, master } => {
                self.check_node(node)?;
                self.check_node(master)?;
                self.world.replicate(node, master).map_err(refused)?;
            }
            NodeCommand::Link { replica, link } => {
                self.check_node(replica)?;
                self.world.set_link(replica, link).map_err(refused)?;
            }
            NodeCommand::Promote(node) => {
                self.check_node(node)?;
                self.world.promote(node);
            }
            NodeCommand::Ack { node, replicas } => {
                self.check_node(node)?;
                self.world.node_mut(node).replication.forced_acks = replicas;
                self.world.begin(node).answer_waits();
            }
        }
        self.refresh_interest();
        Ok(Answer::Ok)
    }

    /// Number, port, role, state, and of a replica its master and link.
    fn describe_node(&self, index: usize) -> Answer {
        let node = &self.world.nodes()[index];
        let mut rows: Vec<Answer> =
            vec![(index as u64).into(), node.config.get("port").unwrap_or("0").into()];
        let doing = match (node.stopped, node.paused) {
            (true, _) => "stopped",
            (_, true) => "paused",
            _ => "running",
        };
        match node.replication.role {
            Role::Master => rows.extend(["master".into(), doing.into()]),
            Role::Replica { of } => rows.extend([
                "replica".into(),
                doing.into(),
                (of as u64).into(),
                node.replication.link.to_string().into(),
            ]),
        }
        rows.push(node.states.to_string().into());
        rows.into()
    }
}

/// Why a node cannot follow another, with what to do about it.
fn refused(error: ReplicationError) -> SimError {
    state(match error {
        ReplicationError::Circle { .. } => error.to_string(),
        ReplicationError::NotAReplica(_) => format!("{error}: SIM.NODE REPLICATE makes it a replica"),
    })
}
