//! SLOWLOG, the log of slow commands. Time does not pass inside an event, so only a script that ran over several slices
//! has a duration. A threshold of 0 logs every command.

use std::collections::VecDeque;

use super::Node;
use super::secrets::redacted;
use super::session::SessionId;

/// One logged command.
#[derive(Clone)]
pub struct Entry {
    pub id: i64,
    /// Unix time in seconds.
    pub time_s: i64,
    pub duration_us: i64,
    /// At most 32 arguments of at most 128 bytes each.
    pub argv: Vec<Vec<u8>>,
    pub addr: String,
    pub client_name: Vec<u8>,
}

/// The log, newest entries first.
#[derive(Clone, Default)]
pub struct Slowlog {
    pub entries: VecDeque<Entry>,
    next_id: i64,
}

const MAX_WORDS: usize = 32;
const MAX_WORD_LEN: usize = 128;

impl Node {
    /// Logs a command without a duration, if the threshold is 0.
    pub(super) fn note_slow(&mut self, id: SessionId, argv: &[&[u8]]) {
        if self.config.slowlog_log_slower_than_us == 0 {
            self.log_slow(id, argv, 0);
        }
    }

    /// Logs a command if its duration reaches the threshold.
    pub fn log_slow(&mut self, id: SessionId, argv: &[&[u8]], duration_us: i64) {
        let limit = self.config.slowlog_log_slower_than_us;
        let session = &self.sessions[id];
        if limit < 0 || duration_us < limit {
            return;
        }
        let entry = Entry {
            id: self.slowlog.next_id,
            time_s: self.store.now.wall_ms() / 1000,
            duration_us,
            argv: trim(&redacted(argv, self.config.version)),
            addr: session.addr.clone(),
            client_name: session.name.clone(),
        };
        self.slowlog.next_id += 1;
        self.slowlog.entries.push_front(entry);
        self.slowlog.entries.truncate(self.config.slowlog_max_len);
    }
}

/// Returns the arguments in the form in which they are logged: shortened, with a note of how much is missing.
fn trim(argv: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = argv
        .iter()
        .take(MAX_WORDS)
        .map(|word| match word.len() {
            len if len > MAX_WORD_LEN => {
                let mut cut = word[..MAX_WORD_LEN].to_vec();
                cut.extend_from_slice(format!("... ({} more bytes)", len - MAX_WORD_LEN).as_bytes());
                cut
            }
            _ => word.to_vec(),
        })
        .collect();
    if argv.len() > MAX_WORDS {
        words[MAX_WORDS - 1] = format!("... ({} more arguments)", argv.len() - MAX_WORDS + 1).into_bytes();
    }
    words
}
