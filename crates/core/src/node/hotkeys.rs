//! HOTKEYS: which keys the commands of a time used most. Time does not pass inside an event, so no key uses processor time;
//! the bytes of requests and replies are counted.

use std::collections::BTreeMap;

use super::Node;
use super::slowlog::request_bytes;
use crate::commands::command::Command;
use crate::commands::introspection::keys_in_call;

/// What HOTKEYS START asks for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub counts_time: bool,
    pub counts_bytes: bool,
    /// How many keys are reported.
    pub count: usize,
    /// In seconds; 0 is without end.
    pub duration_s: i64,
    pub ratio: i64,
}

/// A collection, which may have ended.
#[derive(Clone, Debug)]
pub struct Hotkeys {
    pub options: Options,
    /// Unix time in ms.
    pub started_ms: i64,
    pub ended_ms: Option<i64>,
    /// The bytes of all commands with keys.
    pub bytes: u64,
    by_key: BTreeMap<Box<[u8]>, u64>,
}

impl Hotkeys {
    pub fn new(options: Options, started_ms: i64) -> Hotkeys {
        Hotkeys { options, started_ms, ended_ms: None, bytes: 0, by_key: BTreeMap::new() }
    }

    /// Returns when the collection ended, or will have ended.
    fn end_ms(&self) -> Option<i64> {
        let limit = self.options.duration_s.saturating_mul(1000);
        self.ended_ms.or((limit > 0).then(|| self.started_ms.saturating_add(limit)))
    }

    pub fn is_active(&self, now_ms: i64) -> bool {
        self.end_ms().is_none_or(|end_ms| now_ms < end_ms)
    }

    /// Returns how long the collection has run.
    pub fn duration_ms(&self, now_ms: i64) -> i64 {
        self.end_ms().map_or(now_ms, |end_ms| end_ms.min(now_ms)) - self.started_ms
    }

    /// Returns the keys with the most bytes.
    pub fn top(&self) -> Vec<(&[u8], u64)> {
        let mut keys: Vec<(&[u8], u64)> = self.by_key.iter().map(|(key, bytes)| (&**key, *bytes)).collect();
        keys.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        keys.truncate(self.options.count);
        keys
    }
}

impl Node {
    /// Begins a collection, or forgets the last one.
    pub fn set_hotkeys(&mut self, hotkeys: Option<Hotkeys>) {
        self.tracking.observers -= self.hotkeys.is_some() as usize;
        self.tracking.observers += hotkeys.is_some() as usize;
        self.hotkeys = hotkeys.map(Box::new);
    }

    /// Counts the bytes of a command and its reply for the keys that it names.
    pub(super) fn count_key_bytes(&mut self, command: &Command, argv: &[&[u8]], reply_len: usize) {
        let now_ms = self.store.now.wall_ms();
        let Some(hotkeys) = self.hotkeys.as_mut().filter(|hotkeys| hotkeys.is_active(now_ms)) else { return };
        let keys = keys_in_call(command, argv, self.config.version);
        if keys.is_empty() {
            return;
        }
        let bytes = (request_bytes(argv) + reply_len) as u64;
        hotkeys.bytes += bytes;
        let ratio = hotkeys.options.ratio as usize;
        if hotkeys.options.counts_bytes && (ratio == 1 || self.rng.below(ratio) == 0) {
            for (at, _) in keys {
                *hotkeys.by_key.entry(argv[at].into()).or_default() += bytes;
            }
        }
    }
}
