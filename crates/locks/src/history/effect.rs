//! What a script of an unknown kind has done to a lock, by the data before and after it.
//!
//! The scripts of redis-py, redsync, node-redlock, Spring's registry, python-redis-lock and others differ in their text and in their
//! replies, but all of them keep the owner's token in a string, and get the token as an argument.

use super::asked::Asked;
use super::{Conn, History, LockId, Moment, Pending};
use crate::check::Start;
use redlatch_core::store::{Store, Value};

/// The most keys of a script that are looked at.
const MAX_KEYS: usize = 8;

/// What a script has done to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The key did not exist, or had another owner, and now has the token that the script was given.
    Acquired { lock: LockId, owner: Vec<u8>, lease_ms: Option<u64> },
    /// The key has kept the token that the script was given.
    Kept { lock: LockId, owner: Vec<u8>, lease_ms: Option<u64>, has_new_lease: bool },
    /// The key of a lock expires at another time. The script names no owner; these are the owners whose client has sent it.
    Expires { lock: LockId, owners: Vec<Vec<u8>>, lease_ms: Option<u64> },
    /// The key had the token that the script was given, and is gone.
    Released { lock: LockId, owner: Vec<u8> },
    /// The key is gone, and the script was not given the token that it had.
    Deleted { lock: LockId },
    /// An owner names his token, which the key has not.
    Missed { lock: LockId, owner: Vec<u8> },
}

/// A key: the token in it, if it is a string, and when it expires.
type Seen = Option<(Option<Vec<u8>>, Option<i64>)>;

/// A script that runs.
#[derive(Clone, Debug)]
pub struct Running {
    conn: Conn,
    db: usize,
    before: Vec<(Vec<u8>, Seen)>,
    argv: Vec<Vec<u8>>,
}

fn seen(store: &Store, db: usize, key: &[u8]) -> Seen {
    let data = &store.dbs[db];
    let entry = data.entry(data.find(key)?).filter(|entry| !entry.is_expired(store.now))?;
    let token = match &entry.value {
        Value::String(string) => Some(string.to_vec()),
        _ => None,
    };
    Some((token, entry.expires_at_ms()))
}

impl History {
    /// Notes a script that is about to run, and looks at its keys if its kind is unknown.
    pub fn script_begins(&mut self, start: &Start, conn: Conn, text: &[u8], store: &Store) {
        let pending = self.clients.get(&conn).into_iter().flat_map(|client| &client.pending);
        let is_unknown = |asked: &Asked| matches!(asked, Asked::Script { effects: None });
        if !pending.into_iter().any(|pending| pending.asked.as_ref().is_some_and(is_unknown)) {
            return;
        }
        // It may have been loaded before the history began.
        self.know(text);
        let Start { db, keys, argv, .. } = *start;
        let before = keys.iter().take(MAX_KEYS).map(|key| (key.to_vec(), seen(store, db, key))).collect();
        let argv = argv.iter().map(|arg| arg.to_vec()).collect();
        self.running.insert(conn.node, Running { conn, db, before, argv });
    }

    /// Notes that the script of a node has ended.
    pub fn script_ended(&mut self, at: Moment, node: usize, store: &Store) {
        let Some(running) = self.running.remove(&node) else { return };
        let mut effects = Vec::new();
        for (key, before) in &running.before {
            let lock = (running.db, key.clone());
            let after = seen(store, running.db, key);
            effects.extend(self.effect(lock, before, &after, &running, store.now.wall_ms()));
        }
        for effect in &effects {
            match effect {
                Effect::Released { lock, owner } => self.begin_release(lock, owner, running.conn, at.event),
                Effect::Deleted { lock } => {
                    let text = format!("a script deleted the key (client {})", running.conn);
                    self.note(at, lock, super::Cause::Deletion, text);
                }
                Effect::Expires { lock, owners, .. } if owners.is_empty() => {
                    let text = format!("a script changed the lease (client {})", running.conn);
                    self.note(at, lock, super::Cause::LeaseChange, text);
                }
                _ => {}
            }
        }
        let asked = Asked::Script { effects: Some(effects) };
        let Some(asked_at) = self.waiting(running.conn).map(|pending| pending.at) else { return };
        let operations = self.log_asked(asked_at, running.conn, &asked);
        if let Some(waiting) = self.waiting(running.conn) {
            (waiting.asked, waiting.operations) = (Some(asked), operations);
        }
    }

    /// Returns the first request of a client for a script of an unknown kind that has not run yet.
    fn waiting(&mut self, conn: Conn) -> Option<&mut Pending> {
        let mut pending = self.clients.get_mut(&conn)?.pending.iter_mut();
        pending.find(|pending| matches!(pending.asked, Some(Asked::Script { effects: None })))
    }

    fn effect(
        &mut self,
        lock: LockId,
        before: &Seen,
        after: &Seen,
        Running { conn, argv, .. }: &Running,
        wall_ms: i64,
    ) -> Option<Effect> {
        let token = |seen: &Seen| seen.as_ref().and_then(|(token, _)| token.clone());
        let end_ms = |seen: &Seen| seen.as_ref().and_then(|(_, end_ms)| *end_ms);
        let (old, new) = (token(before), token(after));
        let lease_ms = end_ms(after).map(|end_ms| u64::try_from(end_ms - wall_ms).unwrap_or(0));
        if let Some(owner) = new.clone().filter(|new| argv.contains(new)) {
            return Some(match old == new {
                true => {
                    Effect::Kept { lock, owner, lease_ms, has_new_lease: end_ms(before) != end_ms(after) }
                }
                false => Effect::Acquired { lock, owner, lease_ms },
            });
        }
        if before.is_some() && after.is_none() {
            return Some(match old.filter(|old| argv.contains(old)) {
                Some(owner) => Effect::Released { lock, owner },
                None => Effect::Deleted { lock },
            });
        }
        let grants = &self.locks.get(&lock)?.grants;
        if before.is_some() && old == new && end_ms(before) != end_ms(after) {
            return Some(Effect::Expires { owners: self.owners_behind(*conn, &lock), lock, lease_ms });
        }
        let owner = grants.iter().map(|grant| &grant.owner).find(|owner| argv.contains(owner))?.clone();
        Some(Effect::Missed { lock, owner })
    }
}
