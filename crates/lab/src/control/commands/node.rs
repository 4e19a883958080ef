//! SIM.NODE: pauses, stops and starts nodes, makes them refuse requests, and controls replication and failover.

use super::super::Due;
use super::{Answer, Context, Lab};
use crate::control::args::{Args, SimError, range, state};
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

/// A parsed SIM.NODE.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeCommand {
    List,
    /// Makes requests and timers wait, like SIGSTOP.
    Pause(usize),
    Resume(usize),
    /// Closes all connections and refuses new ones. `wipe`: loses the data as well.
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
    /// Sets how many replicas WAIT and WAITAOF count; `None`: the real number.
    Ack {
        node: usize,
        replicas: Option<u64>,
    },
}

impl NodeCommand {
    pub fn parse(args: &mut Args, context: &Context) -> Result<NodeCommand, SimError> {
        let what =
            args.required("LIST, PAUSE, RESUME, STOP, START, STATE, REPLICATE, LINK, PROMOTE or ACK")?;
        let node = |args: &mut Args| parse_node(args, context);
        Ok(match &what.to_ascii_uppercase()[..] {
            b"LIST" => NodeCommand::List,
            b"PAUSE" => NodeCommand::Pause(node(args)?),
            b"RESUME" => NodeCommand::Resume(node(args)?),
            b"STOP" => NodeCommand::Stop {
                node: node(args)?,
                wipe: match args.is_empty() {
                    true => false,
                    false => args.one_of("KEEP or WIPE", &[("KEEP", false), ("WIPE", true)])?,
                },
            },
            b"START" => NodeCommand::Start {
                node: node(args)?,
                after_ms: if args.take("AFTER") { args.ms("the delay in ms")? } else { 0 },
            },
            b"STATE" => NodeCommand::State {
                node: node(args)?,
                state: args.one_of("a state", STATES)?,
                on: args.one_of("ON or OFF", &[("ON", true), ("OFF", false)])?,
            },
            b"REPLICATE" => {
                let replica = node(args)?;
                if !args.take("OF") {
                    return Err(super::syntax("OF and the master are missing"));
                }
                NodeCommand::Replicate { node: replica, master: node(args)? }
            }
            b"LINK" => NodeCommand::Link {
                replica: node(args)?,
                link: match &args.required("UP, DOWN or LAG")?.to_ascii_uppercase()[..] {
                    b"UP" => Link::Up,
                    b"DOWN" => Link::Down,
                    b"LAG" => Link::Lag(args.int("how many writes", 0, 1 << 30)? as usize),
                    _ => return Err(args.not_known()),
                },
            },
            b"PROMOTE" => NodeCommand::Promote(node(args)?),
            b"ACK" => NodeCommand::Ack {
                node: node(args)?,
                replicas: match args.take("REAL") {
                    true => None,
                    false => Some(args.int("how many replicas", 0, 1 << 30)? as u64),
                },
            },
            _ => return Err(args.not_known()),
        })
    }
}

/// Parses the number of a node.
pub(super) fn parse_node(args: &mut Args, context: &Context) -> Result<usize, SimError> {
    let node = args.int("the number of a node", 0, i64::MAX)? as usize;
    if node < context.nodes {
        return Ok(node);
    }
    Err(range(format!("there is no node {node}: they are numbered from 0 to {}", context.nodes - 1)))
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

    /// Describes a node: number, port, role, whether it runs, its injected states; for a replica also its master and link.
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
            Role::Stray => rows.extend(["stray".into(), doing.into()]),
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

/// Converts the error of a replication command, with a hint how to go on.
fn refused(error: ReplicationError) -> SimError {
    state(match error {
        ReplicationError::Circle { .. } => error.to_string(),
        ReplicationError::NotAReplica(_) => format!("{error}: SIM.NODE REPLICATE makes it a replica"),
    })
}
