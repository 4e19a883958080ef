//! ACL LOG: refused commands and failed logins, latest first.

use std::collections::VecDeque;

use crate::version::Version;

/// The greatest distance in time of refusals that share an entry, in ms.
const GROUPING_MS: i64 = 60_000;

/// How many of the latest entries are compared with a new one.
const COMPARED: usize = 10;

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Auth,
    Command,
    Key,
    Channel,
}

impl Reason {
    pub const ALL: [Reason; 4] = [Reason::Auth, Reason::Command, Reason::Key, Reason::Channel];

    /// Returns the reason as ACL LOG prints it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Auth => "auth",
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
        }
    }
}

/// One refusal, or several alike.
#[derive(Clone, Debug)]
pub struct Entry {
    pub count: u64,
    pub reason: Reason,
    /// Where the command came from: `toplevel`, `multi` or `lua`.
    pub context: &'static str,
    /// The command, key or channel.
    pub object: Vec<u8>,
    pub username: Vec<u8>,
    /// The line of CLIENT LIST.
    pub client: String,
    pub id: u64,
    /// Unix times in ms.
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// The log.
#[derive(Clone, Default)]
pub struct Log {
    pub entries: VecDeque<Entry>,
    next_id: u64,
    /// The number of refusals for each [`Reason`], as INFO reports it.
    pub refused: [u64; Reason::ALL.len()],
}

impl Log {
    /// Adds an entry, or counts it in a recent one that is alike. A new entry shortens the log to `max_len` entries. Since
    /// 7.2, a length of 0 turns the log off.
    pub fn add(&mut self, entry: Entry, max_len: usize, version: Version) {
        self.refused[entry.reason as usize] += 1;
        if max_len == 0 && version >= Version::V7_2 {
            return self.entries.clear();
        }
        let is_alike = |known: &Entry| {
            known.reason == entry.reason
                && known.context == entry.context
                && (known.updated_ms - entry.updated_ms).abs() <= GROUPING_MS
                && known.object == entry.object
                && known.username == entry.username
        };
        let found = self.entries.iter().take(COMPARED).position(is_alike);
        if let Some(mut known) = found.and_then(|at| self.entries.remove(at)) {
            known.count += 1;
            (known.client, known.updated_ms) = (entry.client, entry.updated_ms);
            self.entries.push_front(known);
        } else {
            self.entries.push_front(Entry { id: self.next_id, ..entry });
            self.next_id += 1;
            self.entries.truncate(max_len);
        }
    }
}
