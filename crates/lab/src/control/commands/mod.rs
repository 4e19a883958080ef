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
use crate::control::Lab;
use redlatch_core::wire::Reply;
use redlatch_core::world::ConnId;

pub use check::CheckCommand;
pub use clock::ClockCommand;
pub use cost::CostCommand;
pub use fault::FaultCommand;
pub use gate::GateCommand;
pub use key::KeyCommand;
pub use node::NodeCommand;
pub use run::RunCommand;
pub use trace::TraceCommand;

/// A SIM.* command that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum SimCommand {
    Check(CheckCommand),
    Clock(ClockCommand),
    Cost(CostCommand),
    Fault(FaultCommand),
    Gate(GateCommand),
    Key(KeyCommand),
    Node(NodeCommand),
    Run(RunCommand),
    Trace(TraceCommand),
    Help,
}

/// What an command gives back, of the types that every client can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Ok,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Several answers.
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
    parse: fn(&mut Words, &Scope) -> Result<SimCommand, SimError>,
}

/// What has to be known to understand an command: who gives it, and how many nodes there are.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// The node that it comes to, and the database that its client has selected.
    pub node: usize,
    pub db: usize,
    pub nodes: usize,
}

const ROWS: &[Row] = &[
    Row {
        name: "CHECK",
        usage: check::USAGE,
        parse: |words, _| Ok(SimCommand::Check(CheckCommand::parse(words)?)),
    },
    Row {
        name: "CLOCK",
        usage: clock::USAGE,
        parse: |words, _| Ok(SimCommand::Clock(ClockCommand::parse(words)?)),
    },
    Row {
        name: "COST",
        usage: cost::USAGE,
        parse: |words, _| Ok(SimCommand::Cost(CostCommand::parse(words)?)),
    },
    Row {
        name: "FAULT",
        usage: fault::USAGE,
        parse: |words, scope| Ok(SimCommand::Fault(FaultCommand::parse(words, scope)?)),
    },
    Row {
        name: "GATE",
        usage: gate::USAGE,
        parse: |words, scope| Ok(SimCommand::Gate(GateCommand::parse(words, scope)?)),
    },
    Row {
        name: "KEY",
        usage: key::USAGE,
        parse: |words, scope| Ok(SimCommand::Key(KeyCommand::parse(words, scope)?)),
    },
    Row {
        name: "NODE",
        usage: node::USAGE,
        parse: |words, scope| Ok(SimCommand::Node(NodeCommand::parse(words, scope)?)),
    },
    Row { name: "RUN", usage: run::USAGE, parse: |words, _| Ok(SimCommand::Run(RunCommand::parse(words)?)) },
    Row {
        name: "TRACE",
        usage: trace::USAGE,
        parse: |words, _| Ok(SimCommand::Trace(TraceCommand::parse(words)?)),
    },
    Row { name: "HELP", usage: &["SIM.HELP"], parse: |_, _| Ok(SimCommand::Help) },
];

/// Whether the first word of a request begins an command.
pub fn is_sim_command(name: &[u8]) -> bool {
    name.len() > 4 && name[..4].eq_ignore_ascii_case(b"SIM.")
}

impl SimCommand {
    pub fn parse(argv: &[&[u8]], scope: &Scope) -> Result<SimCommand, SimError> {
        let (name, rest) = argv.split_first().ok_or_else(|| syntax("a command is missing"))?;
        let row = ROWS
            .iter()
            .find(|row| is_sim_command(name) && name[4..].eq_ignore_ascii_case(row.name.as_bytes()))
            .ok_or_else(|| unknown(format!("there is no command {}: SIM.HELP lists them", quoted(name))))?;
        let mut words = Words::new(rest);
        let command = (row.parse)(&mut words, scope)?;
        words.end()?;
        Ok(command)
    }
}

impl Lab {
    /// Does what a test asks for, between two events. `from`: the connection that asks, if one does.
    pub fn apply(&mut self, command: SimCommand, from: Option<ConnId>) -> Result<Answer, SimError> {
        match command {
            SimCommand::Check(command) => self.apply_check(command),
            SimCommand::Clock(command) => self.apply_clock(command),
            SimCommand::Cost(command) => self.apply_cost(command),
            SimCommand::Fault(command) => self.apply_fault(command),
            SimCommand::Gate(command) => self.apply_gate(command, from),
            SimCommand::Key(command) => self.apply_key(command),
            SimCommand::Node(command) => self.apply_node(command, from),
            SimCommand::Run(command) => self.apply_run(command),
            SimCommand::Trace(command) => self.apply_trace(command),
            SimCommand::Help => Ok(help()),
        }
    }

    /// A node that an command names has to exist.
    pub(crate) fn check_node(&self, node: usize) -> Result<usize, SimError> {
        if node < self.world.nodes().len() {
            Ok(node)
        } else {
            Err(state(format!("there is no node {node}")))
        }
    }
}

fn help() -> Answer {
    ROWS.iter().flat_map(|row| row.usage).map(|&line| Answer::from(line)).collect::<Vec<_>>().into()
}
