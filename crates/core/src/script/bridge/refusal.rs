//! Requests for memory that a test refuses, to reach every place in Lua and in the bridge that handles a full memory.

use std::cell::Cell;

use super::machine::Machine;

/// Which of a script's requests for memory are refused. They are counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::script) enum Refusal {
    #[default]
    Never,
    Once(u64),
    From(u64),
}

#[derive(Default)]
pub(super) struct Refusals {
    refusal: Cell<Refusal>,
    requests: Cell<u64>,
    /// The number of blocks that the state holds.
    pub blocks: Cell<usize>,
}

impl Refusals {
    /// Counts a request. Returns whether it is refused.
    pub fn next(&self) -> bool {
        let request = self.requests.get() + 1;
        self.requests.set(request);
        match self.refusal.get() {
            Refusal::Never => false,
            Refusal::Once(n) => request == n,
            Refusal::From(n) => request >= n,
        }
    }
}

impl Machine {
    /// Sets which requests of the following scripts are refused. Returns how many there were since the last call.
    pub fn refuse_memory(&mut self, refusal: Refusal) -> u64 {
        let refusals = &self.shared().memory.refusals;
        refusals.refusal.set(refusal);
        refusals.requests.replace(0)
    }

    /// Collects all garbage. Returns the number of blocks and of bytes that the state still holds.
    pub fn held(&mut self) -> (usize, usize) {
        self.collect();
        let memory = &self.shared().memory;
        (memory.refusals.blocks.get(), memory.used.get())
    }
}
