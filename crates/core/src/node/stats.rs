//! Counters for INFO.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::commands::command::Command;
use crate::store::Now;

/// The calls of one command.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandStats {
    pub calls: u64,
    /// Calls that the checks before the command refused.
    pub rejected: u64,
    pub failed: u64,
}

/// The last save, which writes nothing here, or the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saved {
    pub at_us: u64,
    /// The number of writes until then.
    pub dirty: u64,
    /// How often SAVE and BGSAVE ran.
    pub count: u64,
}

/// Counters since the start of the node or the last CONFIG RESETSTAT.
#[derive(Clone, Default)]
pub struct Stats {
    pub started_us: u64,
    pub saved: Saved,
    pub connections_received: u64,
    pub rejected_connections: u64,
    pub commands_processed: u64,
    pub keyspace_hits: u64,
    pub keyspace_misses: u64,
    pub expired_keys: u64,
    pub evicted_keys: u64,
    pub expired_hash_fields: u64,
    pub output_limit_disconnections: u64,
    pub error_replies: u64,
    /// Keyed by the address of the command's row, which identifies the command.
    commands: HashMap<usize, (&'static str, CommandStats), FixedState>,
    errors: BTreeMap<String, u64>,
}

/// The most distinct error codes that are counted: scripts can make up any number.
const MAX_ERROR_CODES: usize = 128;

impl Stats {
    /// Creates counters that begin at `now`.
    pub fn new(now: Now) -> Stats {
        let saved = Saved { at_us: now.mono_us, ..Saved::default() };
        Stats { started_us: now.mono_us, saved, ..Stats::default() }
    }

    /// Sets all counters to zero, as CONFIG RESETSTAT does.
    pub fn reset(&mut self) {
        *self = Stats {
            started_us: self.started_us,
            saved: Saved { count: 0, ..self.saved },
            ..Stats::default()
        };
    }

    /// Counts a call of a command.
    pub fn count_call(&mut self, command: &'static Command) {
        self.count(command, |stats| stats.calls += 1);
    }

    /// Counts a request that was refused before it ran.
    pub fn count_rejection(&mut self, command: &'static Command) {
        self.count(command, |stats| stats.rejected += 1);
    }

    /// Counts a call that failed.
    pub fn count_failure(&mut self, command: &'static Command) {
        self.count(command, |stats| stats.failed += 1);
    }

    fn count(&mut self, command: &'static Command, add: impl FnOnce(&mut CommandStats)) {
        let address = std::ptr::from_ref(command).addr();
        match self.commands.get_mut(&address) {
            Some((_, stats)) => add(stats),
            None => {
                let mut stats = CommandStats::default();
                add(&mut stats);
                self.commands.insert(address, (command.name, stats));
            }
        }
    }

    /// Counts an error reply by its code, the first word.
    pub fn count_error(&mut self, text: &[u8]) {
        self.error_replies += 1;
        let code = text.split(|&b| b == b' ').next().unwrap_or_default();
        let code = String::from_utf8_lossy(code).into_owned();
        if self.errors.len() < MAX_ERROR_CODES || self.errors.contains_key(&code) {
            *self.errors.entry(code).or_default() += 1;
        }
    }

    /// Returns the commands that have been called, by name.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, CommandStats)> {
        let mut commands: Vec<_> = self.commands.values().copied().collect();
        commands.sort_by_key(|(name, _)| *name);
        commands.into_iter()
    }

    /// Returns the counted error codes with the number of their replies.
    pub fn errors(&self) -> impl Iterator<Item = (&str, u64)> {
        self.errors.iter().map(|(code, &count)| (code.as_str(), count))
    }
}
