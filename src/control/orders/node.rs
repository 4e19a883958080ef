//! SIM.NODE: nodes that pause, stop, start, refuse, replicate and take over.

use super::super::Due;
use super::super::words::{SimError, Words, range, state};
use super::{Answer, Scene, World};
use crate::node::replication::{Link, Role};
use crate::node::states::{STATES, State};
use crate::world::ConnId;

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
pub enum NodeOrder {
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

impl NodeOrder {
    pub fn parse(words: &mut Words, scene: &Scene) -> Result<NodeOrder, SimError> {
        let what = words.word("LIST, PAUSE, RESUME, STOP, START, STATE, REPLICATE, LINK, PROMOTE or ACK")?;
        let node = |words: &mut Words| parse_node(words, scene);
        Ok(match &what.to_ascii_uppercase()[..] {
            b"LIST" => NodeOrder::List,
            b"PAUSE" => NodeOrder::Pause(node(words)?),
            b"RESUME" => NodeOrder::Resume(node(words)?),
            b"STOP" => NodeOrder::Stop {
                node: node(words)?,
                wipe: match words.is_empty() {
                    true => false,
                    false => words.one_of("KEEP or WIPE", &[("KEEP", false), ("WIPE", true)])?,
                },
            },
            b"START" => NodeOrder::Start {
                node: node(words)?,
                after_ms: if words.take("AFTER") { words.ms("the delay in ms")? } else { 0 },
            },
            b"STATE" => NodeOrder::State {
                node: node(words)?,
                state: words.one_of("a state", STATES)?,
                on: words.one_of("ON or OFF", &[("ON", true), ("OFF", false)])?,
            },
            b"REPLICATE" => {
                let replica = node(words)?;
                if !words.take("OF") {
                    return Err(super::syntax("OF and the master are missing"));
                }
                NodeOrder::Replicate { node: replica, master: node(words)? }
            }
            b"LINK" => NodeOrder::Link {
                replica: node(words)?,
                link: match &words.word("UP, DOWN or LAG")?.to_ascii_uppercase()[..] {
                    b"UP" => Link::Up,
                    b"DOWN" => Link::Down,
                    b"LAG" => Link::Lag(words.int("how many writes", 0, 1 << 30)? as usize),
                    _ => return Err(words.not_known()),
                },
            },
            b"PROMOTE" => NodeOrder::Promote(node(words)?),
            b"ACK" => NodeOrder::Ack {
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

fn parse_node(words: &mut Words, scene: &Scene) -> Result<usize, SimError> {
    let node = words.int("the number of a node", 0, i64::MAX)? as usize;
    if node < scene.nodes {
        return Ok(node);
    }
    Err(range(format!("there is no node {node}: they are numbered from 0 to {}", scene.nodes - 1)))
}

impl World {
    pub(super) fn obey_node(&mut self, order: NodeOrder, from: Option<ConnId>) -> Result<Answer, SimError> {
        match order {
            NodeOrder::List => {
                return Ok((0..self.nodes.len())
                    .map(|node| self.describe_node(node))
                    .collect::<Vec<_>>()
                    .into());
            }
            NodeOrder::Pause(node) => {
                self.check_node(node)?;
                self.nodes[node].paused = true;
            }
            NodeOrder::Resume(node) => {
                self.check_node(node)?;
                self.resume(node);
            }
            NodeOrder::Stop { node, wipe } => {
                self.check_node(node)?;
                self.begin(node).stop(wipe, from.filter(|conn| conn.node == node).map(|conn| conn.session));
                if wipe {
                    self.resync_replicas(node);
                }
            }
            NodeOrder::Start { node, after_ms } => {
                self.check_node(node)?;
                match after_ms {
                    0 => self.start_node(node),
                    _ => {
                        let due_ms = self.clock.now().mono_ms().saturating_add(after_ms);
                        self.control.borrow_mut().arm(due_ms, Due::Start(node));
                    }
                }
            }
            NodeOrder::State { node, state, on } => {
                self.check_node(node)?;
                self.nodes[node].states.set(state, on);
            }
            NodeOrder::Replicate { node, master } => {
                self.check_node(node)?;
                self.check_node(master)?;
                self.replicate(node, master)?;
            }
            NodeOrder::Link { replica, link } => {
                self.check_node(replica)?;
                if self.nodes[replica].replication.role == Role::Master {
                    return Err(state(format!(
                        "node {replica} is a master: SIM.NODE REPLICATE makes it a replica"
                    )));
                }
                self.nodes[replica].replication.link = link;
                self.deliver_writes();
            }
            NodeOrder::Promote(node) => {
                self.check_node(node)?;
                self.promote(node);
            }
            NodeOrder::Ack { node, replicas } => {
                self.check_node(node)?;
                self.nodes[node].replication.forced_acks = replicas;
                self.begin(node).answer_waits();
            }
        }
        self.refresh_stages();
        Ok(Answer::Ok)
    }

    /// Number, port, role, state, and of a replica its master and link.
    fn describe_node(&self, index: usize) -> Answer {
        let node = &self.nodes[index];
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

    /// A paused node goes on: what waited runs in the order in which it came.
    pub(crate) fn resume(&mut self, node: usize) {
        self.nodes[node].paused = false;
        for session in std::mem::take(&mut self.nodes[node].inbox) {
            let conn = ConnId { node, session };
            if let Some(request) = self.take_held(conn) {
                self.begin(node);
                self.pass_gates(conn, &request.args());
            }
        }
        self.begin(node).resume_expiry();
    }

    pub(crate) fn start_node(&mut self, node: usize) {
        self.nodes[node].stopped = false;
        self.begin(node).resume_expiry();
    }
}
