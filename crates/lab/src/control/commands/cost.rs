//! SIM.COST: the cost of scripts, in counts that are the same on every machine.

use super::{Answer, Lab};
use crate::control::args::{Args, SimError};

pub const USAGE: &[&str] = &["SIM.COST ON | OFF", "SIM.COST LIST", "SIM.COST CLEAR"];

/// A parsed SIM.COST.
#[derive(Clone, Debug, PartialEq)]
pub enum CostCommand {
    /// Counts scripts from now on, which makes them run slower.
    On,
    Off,
    /// Returns a row for each script: sums over its runs.
    List,
    Clear,
}

impl CostCommand {
    pub fn parse(args: &mut Args) -> Result<CostCommand, SimError> {
        Ok(match &args.required("ON, OFF, LIST or CLEAR")?.to_ascii_uppercase()[..] {
            b"ON" => CostCommand::On,
            b"OFF" => CostCommand::Off,
            b"LIST" => CostCommand::List,
            b"CLEAR" => CostCommand::Clear,
            _ => return Err(args.not_known()),
        })
    }
}

impl Lab {
    /// Turns the counting of script costs on or off.
    pub fn count_costs(&mut self, on: bool) {
        self.staging.watches.borrow_mut().iter_mut().for_each(|watch| watch.costs.on = on);
        self.world.nodes_mut().for_each(|node| node.count_instructions(on));
        self.refresh_interest();
    }

    /// Returns whether script costs are counted.
    pub(crate) fn counts_costs(&self) -> bool {
        self.staging.watches.borrow().iter().any(|watch| watch.costs.on)
    }

    pub(super) fn apply_cost(&mut self, command: CostCommand) -> Result<Answer, SimError> {
        match command {
            CostCommand::On => self.count_costs(true),
            CostCommand::Off => self.count_costs(false),
            CostCommand::Clear => {
                self.staging.watches.borrow_mut().iter_mut().for_each(|watch| watch.costs.clear())
            }
            CostCommand::List => {
                let watches = self.staging.watches.borrow();
                let rows = watches.iter().flat_map(|watch| watch.costs.iter()).map(|(sha, cost)| {
                    Answer::facts([
                        ("sha", Answer::Bytes(sha.to_vec())),
                        ("role", cost.role.map_or("", |role| role.name()).into()),
                        ("runs", cost.runs.into()),
                        ("instructions", cost.instructions.into()),
                        ("calls", cost.calls.into()),
                        ("keys", cost.keys.into()),
                        ("bytes_in", cost.bytes_in.into()),
                        ("bytes_out", cost.bytes_out.into()),
                    ])
                });
                return Ok(rows.collect::<Vec<_>>().into());
            }
        }
        Ok(Answer::Ok)
    }
}
