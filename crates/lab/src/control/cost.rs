//! Counts what scripts cost: instructions, calls, keys and bytes, which are the same on every machine.

use std::collections::BTreeMap;

use redlatch_core::commands::command::key_positions;
use redlatch_core::commands::table;
use redlatch_core::node::scripts::Sha;
use redlatch_core::version::Version;
use redlatch_locks::role::Role;

/// Sums over all runs of one script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub role: Option<Role>,
    pub runs: u64,
    pub instructions: u64,
    /// `redis.call` and `redis.pcall`.
    pub calls: u64,
    /// Distinct keys among the arguments of the calls, summed over the runs.
    pub keys: u64,
    /// The bytes of all arguments of the calls.
    pub bytes_in: u64,
    /// The bytes of all replies to the calls.
    pub bytes_out: u64,
}

/// The costs of the scripts of one node.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    pub on: bool,
    by_script: BTreeMap<Sha, Cost>,
    run: Cost,
    run_keys: Vec<Box<[u8]>>,
}

impl Costs {
    pub fn iter(&self) -> impl Iterator<Item = (&Sha, &Cost)> {
        self.by_script.iter()
    }

    pub fn clear(&mut self) {
        self.by_script.clear();
    }

    /// Counts a finished `redis.call` of the running script.
    pub fn count_call(&mut self, argv: &[&[u8]], reply_len: usize, version: Version) {
        self.run.calls += 1;
        self.run.bytes_in += argv.iter().map(|arg| arg.len() as u64).sum::<u64>();
        self.run.bytes_out += reply_len as u64;
        let command = table::find(argv, version);
        let positions = command.and_then(|command| key_positions(command.keys, argv)).unwrap_or_default();
        for key in positions.into_iter().filter_map(|at| argv.get(at)) {
            if !self.run_keys.iter().any(|known| **known == **key) {
                self.run_keys.push((*key).into());
            }
        }
    }

    /// Adds the run that has just ended to the sums of its script.
    pub fn finish(&mut self, sha: Sha, role: Option<Role>, instructions: u64) {
        let run = std::mem::take(&mut self.run);
        let cost = self.by_script.entry(sha).or_default();
        cost.role = role;
        cost.runs += 1;
        cost.instructions += instructions;
        cost.calls += run.calls;
        cost.keys += std::mem::take(&mut self.run_keys).len() as u64;
        cost.bytes_in += run.bytes_in;
        cost.bytes_out += run.bytes_out;
    }
}
