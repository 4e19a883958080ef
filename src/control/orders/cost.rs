//! SIM.COST: what scripts cost, in counts that are the same on every machine.

use super::super::words::{SimError, Words};
use super::{Answer, World};

pub const USAGE: &[&str] = &["SIM.COST ON | OFF", "SIM.COST LIST", "SIM.COST CLEAR"];

#[derive(Clone, Debug, PartialEq)]
pub enum CostOrder {
    /// Scripts are counted from here on, and run slower.
    On,
    Off,
    /// One row for each script, sums over its runs.
    List,
    Clear,
}

impl CostOrder {
    pub fn parse(words: &mut Words) -> Result<CostOrder, SimError> {
        Ok(match &words.word("ON, OFF, LIST or CLEAR")?.to_ascii_uppercase()[..] {
            b"ON" => CostOrder::On,
            b"OFF" => CostOrder::Off,
            b"LIST" => CostOrder::List,
            b"CLEAR" => CostOrder::Clear,
            _ => return Err(words.not_known()),
        })
    }
}

impl World {
    /// Whether scripts are counted from here on.
    pub fn count_costs(&mut self, on: bool) {
        self.nodes.iter_mut().for_each(|node| node.set_counting(on));
    }

    pub(super) fn obey_cost(&mut self, order: CostOrder) -> Result<Answer, SimError> {
        match order {
            CostOrder::On => self.count_costs(true),
            CostOrder::Off => self.count_costs(false),
            CostOrder::Clear => self.nodes.iter_mut().for_each(|node| node.costs.clear()),
            CostOrder::List => {
                let rows = self.nodes.iter().flat_map(|node| node.costs.iter()).map(|(sha, cost)| {
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
