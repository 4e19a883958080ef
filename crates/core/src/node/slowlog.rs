//! SLOWLOG, the log of slow commands, and Valkey's logs of large requests and replies. Time does not pass inside an event, so
//! only a script that ran over several slices has a duration. A threshold of 0 logs every command.

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
    /// The duration in microseconds, or the number of bytes of the request or the reply.
    pub measure: i64,
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

impl Slowlog {
    fn push(&mut self, entry: Entry, max_len: usize) {
        self.entries.push_front(Entry { id: self.next_id, ..entry });
        self.next_id += 1;
        self.entries.truncate(max_len);
    }
}

/// The settings of a log of large requests or replies.
#[derive(Clone, Copy, Debug)]
pub struct LargeLimit {
    /// The bytes from which on a command is logged; a negative number turns the log off.
    pub threshold: i64,
    pub max_len: usize,
}

const MAX_WORDS: usize = 32;
const MAX_WORD_LEN: usize = 128;

impl Node {
    /// Logs a command without a duration if the threshold is 0, and one whose request or reply is large.
    pub(super) fn note_slow(&mut self, id: SessionId, argv: &[&[u8]], reply_len: usize) {
        if !self.config.logs_commands {
            return;
        }
        if self.config.slowlog_log_slower_than_us == 0 {
            self.log_slow(id, argv, 0);
        }
        let [requests, replies] = self.config.large;
        if requests.threshold >= 0 || replies.threshold >= 0 {
            let request_len = request_bytes(argv) as i64;
            let entry = self.logged(id, argv, 0);
            for (log, limit, len) in [
                (&mut self.large_requests, requests, request_len),
                (&mut self.large_replies, replies, reply_len as i64),
            ] {
                if limit.threshold >= 0 && len >= limit.threshold {
                    log.push(Entry { measure: len, ..entry.clone() }, limit.max_len);
                }
            }
        }
    }

    /// Logs a command if its duration reaches the threshold.
    pub fn log_slow(&mut self, id: SessionId, argv: &[&[u8]], duration_us: i64) {
        let limit = self.config.slowlog_log_slower_than_us;
        if limit < 0 || duration_us < limit {
            return;
        }
        let entry = self.logged(id, argv, duration_us);
        self.slowlog.push(entry, self.config.slowlog_max_len);
    }

    fn logged(&self, id: SessionId, argv: &[&[u8]], measure: i64) -> Entry {
        let session = &self.sessions[id];
        Entry {
            id: 0,
            time_s: self.store.now.wall_ms() / 1000,
            measure,
            argv: trim(&redacted(argv, self.config.version)),
            addr: session.addr.clone(),
            client_name: session.name.clone(),
        }
    }
}

/// Returns the number of bytes of a request.
pub fn request_bytes(argv: &[&[u8]]) -> usize {
    // `*3\r\n` and `$3\r\n`: the digits and three bytes.
    let header = |len: usize| 3 + len.checked_ilog10().map_or(1, |log| log as usize + 1);
    header(argv.len()) + argv.iter().map(|word| header(word.len()) + word.len() + 2).sum::<usize>()
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
