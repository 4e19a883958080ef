//! The SIM.* commands: one file for each, with its words, its parts and what it does.

pub mod check;
pub mod clock;
pub mod cost;
pub mod fault;
pub mod gate;
pub mod key;
pub mod node;
pub mod run;
pub mod trace;

use super::words::{SimError, Words, quoted, state, syntax, unknown};
use crate::wire::Reply;
use crate::world::{ConnId, World};

pub use check::CheckOrder;
pub use clock::ClockOrder;
pub use cost::CostOrder;
pub use fault::FaultOrder;
pub use gate::GateOrder;
pub use key::KeyOrder;
pub use node::NodeOrder;
pub use run::RunOrder;
pub use trace::TraceOrder;

/// A SIM.* command that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    Check(CheckOrder),
    Clock(ClockOrder),
    Cost(CostOrder),
    Fault(FaultOrder),
    Gate(GateOrder),
    Key(KeyOrder),
    Node(NodeOrder),
    Run(RunOrder),
    Trace(TraceOrder),
    Help,
}

/// What an order gives back, of the types that every client can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Answer>),
    /// The connection waits; it gets its answer later.
    Later,
}

impl Answer {
    /// A name and a value for each fact.
    pub fn facts<const N: usize>(facts: [(&str, Answer); N]) -> Answer {
        facts.into_iter().flat_map(|(name, fact)| [name.into(), fact]).collect::<Vec<_>>().into()
    }

    pub fn write(&self, reply: &mut Reply) {
        match self {
            Answer::Ok => reply.ok(),
            Answer::Int(n) => reply.int(*n),
            Answer::Text(text) => reply.bulk(text.as_bytes()),
            Answer::Bytes(bytes) => reply.bulk(bytes),
            Answer::List(items) => {
                reply.array(items.len());
                items.iter().for_each(|item| item.write(reply));
            }
            Answer::Later => {}
        }
    }
}

impl From<u64> for Answer {
    fn from(n: u64) -> Answer {
        Answer::Int(n as i64)
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Answer {
        Answer::Text(text.to_owned())
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Answer {
        Answer::Text(text)
    }
}

impl From<Vec<Answer>> for Answer {
    fn from(items: Vec<Answer>) -> Answer {
        Answer::List(items)
    }
}

/// One SIM.* command.
struct Row {
    name: &'static str,
    /// Its forms, for SIM.HELP.
    usage: &'static [&'static str],
    parse: fn(&mut Words, &Scene) -> Result<Order, SimError>,
}

/// What has to be known to understand an order: who gives it, and how many nodes there are.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// The node that it comes to, and the database that its client has selected.
    pub node: usize,
    pub db: usize,
    pub nodes: usize,
}

const ROWS: &[Row] = &[
    Row { name: "CHECK", usage: check::USAGE, parse: |words, _| Ok(Order::Check(CheckOrder::parse(words)?)) },
    Row { name: "CLOCK", usage: clock::USAGE, parse: |words, _| Ok(Order::Clock(ClockOrder::parse(words)?)) },
    Row { name: "COST", usage: cost::USAGE, parse: |words, _| Ok(Order::Cost(CostOrder::parse(words)?)) },
    Row {
        name: "FAULT",
        usage: fault::USAGE,
        parse: |words, scene| Ok(Order::Fault(FaultOrder::parse(words, scene)?)),
    },
    Row {
        name: "GATE",
        usage: gate::USAGE,
        parse: |words, scene| Ok(Order::Gate(GateOrder::parse(words, scene)?)),
    },
    Row {
        name: "KEY",
        usage: key::USAGE,
        parse: |words, scene| Ok(Order::Key(KeyOrder::parse(words, scene)?)),
    },
    Row {
        name: "NODE",
        usage: node::USAGE,
        parse: |words, scene| Ok(Order::Node(NodeOrder::parse(words, scene)?)),
    },
    Row { name: "RUN", usage: run::USAGE, parse: |words, _| Ok(Order::Run(RunOrder::parse(words)?)) },
    Row { name: "TRACE", usage: trace::USAGE, parse: |words, _| Ok(Order::Trace(TraceOrder::parse(words)?)) },
    Row { name: "HELP", usage: &["SIM.HELP"], parse: |_, _| Ok(Order::Help) },
];

/// Whether the first word of a request begins an order.
pub fn is_order(name: &[u8]) -> bool {
    name.len() > 4 && name[..4].eq_ignore_ascii_case(b"SIM.")
}

impl Order {
    pub fn parse(argv: &[&[u8]], scene: &Scene) -> Result<Order, SimError> {
        let (name, rest) = argv.split_first().ok_or_else(|| syntax("a command is missing"))?;
        let row = ROWS
            .iter()
            .find(|row| is_order(name) && name[4..].eq_ignore_ascii_case(row.name.as_bytes()))
            .ok_or_else(|| unknown(format!("there is no command {}: SIM.HELP lists them", quoted(name))))?;
        let mut words = Words::new(rest);
        let order = (row.parse)(&mut words, scene)?;
        words.end()?;
        Ok(order)
    }
}

impl World {
    /// Does what a test asks for, between two events. `from`: the connection that asks, if one does.
    pub fn obey(&mut self, order: Order, from: Option<ConnId>) -> Result<Answer, SimError> {
        match order {
            Order::Check(order) => self.obey_check(order),
            Order::Clock(order) => self.obey_clock(order),
            Order::Cost(order) => self.obey_cost(order),
            Order::Fault(order) => self.obey_fault(order),
            Order::Gate(order) => self.obey_gate(order, from),
            Order::Key(order) => self.obey_key(order),
            Order::Node(order) => self.obey_node(order, from),
            Order::Run(order) => self.obey_run(order),
            Order::Trace(order) => self.obey_trace(order),
            Order::Help => Ok(help()),
        }
    }

    /// A node that an order names has to exist.
    pub(super) fn check_node(&self, node: usize) -> Result<usize, SimError> {
        if node < self.nodes.len() { Ok(node) } else { Err(state(format!("there is no node {node}"))) }
    }
}

fn help() -> Answer {
    ROWS.iter().flat_map(|row| row.usage).map(|&line| Answer::from(line)).collect::<Vec<_>>().into()
}
