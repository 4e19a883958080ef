//! The SIM.* commands: one file for each, with its usage, its typed form, its parser and its implementation.

pub mod check;
pub mod clock;
pub mod cost;
pub mod fault;
pub mod gate;
pub mod key;
pub mod link;
pub mod node;
pub mod run;
pub mod trace;

use super::args::{Args, SimError, quoted, state, syntax, unknown};
use crate::control::Lab;
use redlatch_core::wire::Reply;
use redlatch_core::world::ConnId;

pub use check::CheckCommand;
pub use clock::ClockCommand;
pub use cost::CostCommand;
pub use fault::FaultCommand;
pub use gate::GateCommand;
pub use key::KeyCommand;
pub use link::LinkCommand;
pub use node::NodeCommand;
pub use run::RunCommand;
pub use trace::TraceCommand;

/// A parsed SIM.* command.
#[derive(Clone, Debug, PartialEq)]
pub enum SimCommand {
    Check(CheckCommand),
    Clock(ClockCommand),
    Cost(CostCommand),
    Fault(FaultCommand),
    Gate(GateCommand),
    Key(KeyCommand),
    Link(LinkCommand),
    Node(NodeCommand),
    Run(RunCommand),
    Trace(TraceCommand),
    Help,
}

/// The reply to a command, of types that every client library can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command was applied: `OK`.
    Ok,
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes of any value.
    Bytes(Vec<u8>),
    /// Several answers.
    List(Vec<Answer>),
    /// No reply yet: the connection is blocked and receives the reply later.
    Later,
}

impl Answer {
    /// Creates a flat list of names and values.
    pub fn facts<const N: usize>(facts: [(&str, Answer); N]) -> Answer {
        facts.into_iter().flat_map(|(name, fact)| [name.into(), fact]).collect::<Vec<_>>().into()
    }

    /// Writes the answer as a RESP reply.
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

/// A SIM.* command as the parser and SIM.HELP know it.
struct Row {
    name: &'static str,
    /// Its forms, as SIM.HELP shows them.
    usage: &'static [&'static str],
    parse: fn(&mut Args, &Context) -> Result<SimCommand, SimError>,
}

/// What parsing a command depends on: the connection that sent it, and the number of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The node that received it.
    pub node: usize,
    /// The database that the client has selected.
    pub db: usize,
    pub nodes: usize,
}

const ROWS: &[Row] = &[
    Row {
        name: "CHECK",
        usage: check::USAGE,
        parse: |args, _| Ok(SimCommand::Check(CheckCommand::parse(args)?)),
    },
    Row {
        name: "CLOCK",
        usage: clock::USAGE,
        parse: |args, _| Ok(SimCommand::Clock(ClockCommand::parse(args)?)),
    },
    Row {
        name: "COST",
        usage: cost::USAGE,
        parse: |args, _| Ok(SimCommand::Cost(CostCommand::parse(args)?)),
    },
    Row {
        name: "FAULT",
        usage: fault::USAGE,
        parse: |args, context| Ok(SimCommand::Fault(FaultCommand::parse(args, context)?)),
    },
    Row {
        name: "GATE",
        usage: gate::USAGE,
        parse: |args, context| Ok(SimCommand::Gate(GateCommand::parse(args, context)?)),
    },
    Row {
        name: "KEY",
        usage: key::USAGE,
        parse: |args, context| Ok(SimCommand::Key(KeyCommand::parse(args, context)?)),
    },
    Row { name: "LINK", usage: link::USAGE, parse: LinkCommand::parse },
    Row {
        name: "NODE",
        usage: node::USAGE,
        parse: |args, context| Ok(SimCommand::Node(NodeCommand::parse(args, context)?)),
    },
    Row { name: "RUN", usage: run::USAGE, parse: |args, _| Ok(SimCommand::Run(RunCommand::parse(args)?)) },
    Row {
        name: "TRACE",
        usage: trace::USAGE,
        parse: |args, _| Ok(SimCommand::Trace(TraceCommand::parse(args)?)),
    },
    Row { name: "HELP", usage: &["SIM.HELP"], parse: |_, _| Ok(SimCommand::Help) },
];

/// Returns whether the first argument of a request names a SIM.* command, known or not.
pub fn is_sim_command(name: &[u8]) -> bool {
    name.len() > 4 && name[..4].eq_ignore_ascii_case(b"SIM.")
}

impl SimCommand {
    /// Parses a command with its name first.
    pub fn parse(argv: &[&[u8]], context: &Context) -> Result<SimCommand, SimError> {
        let (name, rest) = argv.split_first().ok_or_else(|| syntax("a command is missing"))?;
        let row = ROWS
            .iter()
            .find(|row| is_sim_command(name) && name[4..].eq_ignore_ascii_case(row.name.as_bytes()))
            .ok_or_else(|| unknown(format!("there is no command {}: SIM.HELP lists them", quoted(name))))?;
        let mut args = Args::new(rest);
        let command = (row.parse)(&mut args, context)?;
        args.end()?;
        Ok(command)
    }
}

impl Lab {
    /// Applies a command, between two events. `from`: the connection that sent it, if one did.
    pub fn apply(&mut self, command: SimCommand, from: Option<ConnId>) -> Result<Answer, SimError> {
        match command {
            SimCommand::Check(command) => self.apply_check(command),
            SimCommand::Clock(command) => self.apply_clock(command),
            SimCommand::Cost(command) => self.apply_cost(command),
            SimCommand::Fault(command) => self.apply_fault(command),
            SimCommand::Gate(command) => self.apply_gate(command, from),
            SimCommand::Key(command) => self.apply_key(command),
            SimCommand::Link(command) => self.apply_link(command),
            SimCommand::Node(command) => self.apply_node(command, from),
            SimCommand::Run(command) => self.apply_run(command),
            SimCommand::Trace(command) => self.apply_trace(command),
            SimCommand::Help => Ok(help()),
        }
    }

    /// Returns the node's number, or fails if there is no such node.
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
