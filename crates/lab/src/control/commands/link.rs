//! SIM.LINK: partitions between nodes.

use super::{Answer, Lab};
use crate::control::args::{Args, SimError, syntax};
use crate::control::commands::node::parse_node;
use crate::control::commands::{Context, SimCommand};

pub const USAGE: &[&str] = &[
    "SIM.LINK LIST",
    "SIM.LINK CUT | HEAL <sender> <receiver> [ONEWAY]",
    "SIM.LINK ISOLATE <node>",
    "SIM.LINK HEAL",
];

/// A parsed SIM.LINK.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkCommand {
    List,
    /// Cuts or restores what one node sends to another, and with `both_ways` also what it receives from it.
    Between {
        sender: usize,
        receiver: usize,
        both_ways: bool,
        is_cut: bool,
    },
    /// Cuts a node off from all others.
    Isolate(usize),
    /// Ends all partitions.
    HealAll,
}

impl LinkCommand {
    pub fn parse(args: &mut Args, context: &Context) -> Result<SimCommand, SimError> {
        let what = args.required("LIST, CUT, HEAL or ISOLATE")?;
        Ok(SimCommand::Link(match &what.to_ascii_uppercase()[..] {
            b"LIST" => LinkCommand::List,
            b"ISOLATE" => LinkCommand::Isolate(parse_node(args, context)?),
            b"HEAL" if args.is_empty() => LinkCommand::HealAll,
            what @ (b"CUT" | b"HEAL") => {
                let (sender, receiver) = (parse_node(args, context)?, parse_node(args, context)?);
                if sender == receiver {
                    return Err(syntax("a node always reaches itself"));
                }
                let both_ways = !args.take("ONEWAY");
                LinkCommand::Between { sender, receiver, both_ways, is_cut: what == b"CUT" }
            }
            _ => return Err(args.not_known()),
        }))
    }
}

impl Lab {
    pub(super) fn apply_link(&mut self, command: LinkCommand) -> Result<Answer, SimError> {
        match command {
            LinkCommand::List => {
                let pairs = self.world.partitions();
                let pairs = pairs.map(|(sender, receiver)| {
                    vec![Answer::from(sender as u64), Answer::from(receiver as u64)].into()
                });
                return Ok(pairs.collect::<Vec<Answer>>().into());
            }
            LinkCommand::Between { sender, receiver, both_ways, is_cut } => {
                self.check_node(sender)?;
                self.check_node(receiver)?;
                self.world.set_partition(sender, receiver, is_cut);
                if both_ways {
                    self.world.set_partition(receiver, sender, is_cut);
                }
            }
            LinkCommand::Isolate(node) => {
                self.check_node(node)?;
                for other in (0..self.world.nodes().len()).filter(|&other| other != node) {
                    self.world.set_partition(node, other, true);
                    self.world.set_partition(other, node, true);
                }
            }
            LinkCommand::HealAll => self.world.heal(),
        }
        Ok(Answer::Ok)
    }
}
