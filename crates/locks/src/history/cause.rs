//! What can take a lock from its owner.

use std::fmt;

use super::{Conn, History, LockId, MAX_HAPPENINGS, MAX_NOTES, Moment};

/// A kind of happening that can take a lock from its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A replica became a master, or there were two masters.
    Promotion,
    /// All data of a database or a node were lost.
    DataLoss,
    /// The lock's key was deleted or replaced.
    Deletion,
    /// The lock's lease was changed by somebody else.
    LeaseChange,
    /// The clock of a node jumped.
    ClockJump,
    /// Keys were evicted.
    Eviction,
    /// A renewal got no reply.
    LostRenewal,
    /// A fault rule was there.
    Rule,
    /// Nothing that was seen.
    Unknown,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Promotion => "promotion or two masters",
            Cause::DataLoss => "loss of data",
            Cause::Deletion => "deletion of the key",
            Cause::LeaseChange => "change of the lease",
            Cause::ClockJump => "jump of a clock",
            Cause::Eviction => "eviction",
            Cause::LostRenewal => "renewal without a reply",
            Cause::Rule => "fault rule",
            Cause::Unknown => "unknown",
        })
    }
}

/// Something that has happened, other than a lock operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    pub event: u64,
    pub at_ms: u64,
    pub cause: Cause,
    pub text: String,
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} at {} ms: {}", self.event, self.at_ms, self.text)
    }
}

impl History {
    /// Notes how many keys were ever evicted from a node.
    pub fn evicted(&mut self, at: Moment, node: usize, total: u64) {
        if self.evicted.len() <= node {
            self.evicted.resize(node + 1, 0);
        }
        let before = std::mem::replace(&mut self.evicted[node], total);
        if total > before {
            self.happened(
                at,
                Cause::Eviction,
                format!("{} keys were evicted from node {node}", total - before),
            );
        }
    }

    fn happened(&mut self, Moment { event, now_ms: at_ms }: Moment, cause: Cause, text: String) {
        if self.happenings.len() >= MAX_HAPPENINGS {
            self.happenings.pop_front();
        }
        self.happenings.push_back(Happening { event, at_ms, cause, text });
    }

    /// Notes what has happened to the key of a lock.
    pub(super) fn note(&mut self, at: Moment, lock: &LockId, cause: Cause, text: String) {
        let Some(lock) = self.locks.get_mut(lock) else { return };
        if lock.notes.len() >= MAX_NOTES {
            lock.notes.pop_front();
        }
        lock.notes.push_back(Happening { event: at.event, at_ms: at.now_ms, cause, text });
    }

    /// Notes a request that can take locks from their owners.
    pub(super) fn note_request(&mut self, at: Moment, conn: Conn, db: usize, name: &[u8], argv: &[&[u8]]) {
        let words = || argv.iter().map(|word| word.to_ascii_uppercase());
        let has = |word: &[u8]| words().any(|other| other == word);
        let sub = argv.get(1).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        let cause = match (name, &sub[..]) {
            (b"FLUSHALL" | b"FLUSHDB" | b"SWAPDB", _) => Some(Cause::DataLoss),
            (b"FAILOVER" | b"REPLICAOF" | b"SLAVEOF", _) | (b"SIM.NODE", b"PROMOTE" | b"REPLICATE") => {
                Some(Cause::Promotion)
            }
            (b"SIM.NODE", b"STOP") if has(b"WIPE") => Some(Cause::DataLoss),
            (b"SIM.NODE", b"STOP" | b"START" | b"LINK" | b"PAUSE" | b"RESUME") => Some(Cause::Unknown),
            (b"SIM.CLOCK", b"JUMP") => Some(Cause::ClockJump),
            (b"SIM.KEY", b"LOSE") => Some(Cause::Deletion),
            (b"SIM.KEY", b"TTL") => Some(Cause::LeaseChange),
            (b"SIM.FAULT", b"ADD") => Some(Cause::Rule),
            _ => None,
        };
        if let Some(cause) = cause {
            return self.happened(at, cause, format!("{} (client {conn})", shown(argv)));
        }
        if name == b"SIM.RUN" && sub == b"RESTORE" {
            return self.forget_locks();
        }
        let cause = match name {
            b"DEL" | b"UNLINK" | b"GETDEL" | b"RENAME" | b"RESTORE" | b"HDEL" | b"MOVE" => Cause::Deletion,
            b"EXPIRE" | b"PEXPIRE" | b"EXPIREAT" | b"PEXPIREAT" | b"PERSIST" | b"GETEX" => Cause::LeaseChange,
            b"SET" if !has(b"NX") => Cause::Deletion,
            _ => return,
        };
        for key in argv.get(1..).unwrap_or_default() {
            let lock = (db, key.to_vec());
            if self.locks.contains_key(&lock) {
                self.note(at, &lock, cause, format!("{} (client {conn})", shown(argv)));
            }
        }
    }
}

fn shown(argv: &[&[u8]]) -> String {
    let words: Vec<String> = argv.iter().take(8).map(|word| word.escape_ascii().to_string()).collect();
    words.join(" ")
}
