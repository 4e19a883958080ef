//! What a request asks for, as far as it concerns the holders of locks.

use super::effect::Effect;
use super::{Conn, History, LockId, MAX_SCRIPTS, Moment, Proof};
use crate::binding::{Binding, LEASE_MS, OWNER};
use crate::promises::{KEY_LOCK, object_named};
use crate::reply::Reply;
use crate::role::{Role, recognise};
use redlatch_core::num::parse_i64;
use redlatch_core::script::sha1_hex;
use redlatch_core::store::{Store, Value};

/// How a reply tells that a lock was granted, renewed or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// A script of Redisson: nil for a grant.
    Script,
    /// OK for a grant, nil for a refusal.
    Set,
    /// 1 for a grant.
    Number,
}

impl Says {
    /// Returns whether a reply grants the lock.
    pub fn is_grant(self, reply: Reply) -> bool {
        match self {
            Says::Set => reply == Reply::Text(b"OK"),
            Says::Number => reply == Reply::Int(1),
            // A fenced lock replies -1 and the token.
            Says::Script => {
                reply == Reply::Nil || matches!(reply, Reply::Array(_)) && reply.int() == Some(-1)
            }
        }
    }
}

/// What a request asks for.
#[derive(Clone, Debug)]
pub enum Asked {
    Acquire {
        lock: LockId,
        object: &'static str,
        owner: Vec<u8>,
        lease_ms: Option<u64>,
        says: Says,
        /// The holds that the owner had before.
        stored: i64,
    },
    Unlock {
        lock: LockId,
        object: &'static str,
        owner: Vec<u8>,
        /// The lease that remains if an outer hold is left.
        lease_ms: Option<u64>,
        /// Whether the owner held the lock, by the data, when the request arrived.
        was_there: bool,
    },
    ForceUnlock {
        lock: LockId,
        object: &'static str,
    },
    /// Renews what these owners hold of these locks.
    Renew {
        locks: Vec<LockId>,
        object: &'static str,
        owners: Vec<Vec<u8>>,
        lease_ms: u64,
    },
    /// Deletes keys, whoever owns them.
    Delete(Vec<LockId>),
    /// Runs a script of an unknown kind. What it has done shows in the data.
    Script {
        effects: Option<Vec<Effect>>,
    },
}

impl Asked {
    /// Returns the object that the request is about.
    pub fn object(&self) -> &'static str {
        match self {
            Asked::Acquire { object, .. }
            | Asked::Unlock { object, .. }
            | Asked::ForceUnlock { object, .. }
            | Asked::Renew { object, .. } => object,
            Asked::Delete(_) => "del",
            Asked::Script { .. } => "script",
        }
    }

    /// Returns whether this is an operation on a lock for certain.
    pub fn is_operation(&self) -> bool {
        match self {
            Asked::Script { effects } => effects.as_ref().is_some_and(|effects| !effects.is_empty()),
            _ => true,
        }
    }
}

impl History {
    /// Returns what a request asks for, or `None` if it does not concern locks.
    pub(super) fn asked(
        &mut self,
        at: Moment,
        conn: Conn,
        db: usize,
        name: &[u8],
        argv: &[&[u8]],
        store: &Store,
    ) -> Option<Asked> {
        match name {
            b"SET" => self.set(at, db, argv),
            b"SETNX" => {
                let (key, owner) = (argv.get(1)?, argv.get(2)?);
                Some(acquire_key((db, key.to_vec()), owner, None, Says::Number))
            }
            b"SCRIPT" if argv.get(1).is_some_and(|sub| sub.eq_ignore_ascii_case(b"LOAD")) => {
                self.know(argv.get(2)?);
                None
            }
            b"EVAL" | b"EVALSHA" => self.script(db, argv, store),
            b"FCALL" => {
                self.leave_out("a function of a library");
                None
            }
            b"DELIFEQ" => self.compare_and_delete(db, argv.get(1)?, argv.get(2)?, store),
            b"DELEX" if argv.get(2).is_some_and(|word| word.eq_ignore_ascii_case(b"IFEQ")) => {
                self.compare_and_delete(db, argv.get(1)?, argv.get(3)?, store)
            }
            b"DEL" | b"UNLINK" | b"DELEX" | b"GETDEL" => {
                let keys = argv[1..].iter().map(|key| (db, key.to_vec()));
                let locks: Vec<LockId> = keys.filter(|key| self.locks.contains_key(key)).collect();
                (!locks.is_empty()).then_some(Asked::Delete(locks))
            }
            b"PEXPIRE" | b"EXPIRE" => {
                let lock = (db, argv.get(1)?.to_vec());
                let owners = self.owners_behind(conn, &lock);
                if owners.is_empty() {
                    return None;
                }
                let unit_ms = if name == b"EXPIRE" { 1_000 } else { 1 };
                let lease_ms = u64::try_from(parse_i64(argv.get(2)?)?).ok()?.saturating_mul(unit_ms);
                let object = self.locks.get(&lock)?.object;
                Some(Asked::Renew { owners, locks: vec![lock], object, lease_ms })
            }
            _ => None,
        }
    }

    /// Reads SET with NX, XX or IFEQ.
    fn set(&mut self, at: Moment, db: usize, argv: &[&[u8]]) -> Option<Asked> {
        let [_, key, owner, options @ ..] = argv else { return None };
        let find = |name: &[u8]| options.iter().position(|option| option.eq_ignore_ascii_case(name));
        let number = |name| {
            options.get(find(name)? + 1).and_then(|ms| parse_i64(ms)).and_then(|ms| u64::try_from(ms).ok())
        };
        let lease_ms = number(b"PX").or_else(|| Some(number(b"EX")?.saturating_mul(1000)));
        let lock = (db, key.to_vec());
        if find(b"NX").is_some() {
            if find(b"GET").is_some() {
                self.leave_out("set-nx: GET replies with the earlier value");
                return None;
            }
            return Some(acquire_key(lock, owner, lease_ms, Says::Set));
        }
        let known = self.locks.get(&lock)?;
        let holds = |name: &[u8]| {
            known.grants.iter().any(|grant| grant.owner == name && grant.is_in_lease(at.now_ms))
        };
        let compared = find(b"IFEQ").and_then(|at| options.get(at + 1));
        match compared {
            Some(compared) if compared != owner => {
                self.leave_out("set-nx: an owner gives the lock to another");
                None
            }
            // ShedLock keeps the key for a while when the work is done.
            None if find(b"XX").is_none() || !holds(owner) => Some(Asked::Delete(vec![lock])),
            _ => Some(Asked::Renew {
                locks: vec![lock],
                object: KEY_LOCK,
                owners: vec![owner.to_vec()],
                lease_ms: lease_ms?,
            }),
        }
    }

    fn compare_and_delete(&mut self, db: usize, key: &[u8], owner: &[u8], store: &Store) -> Option<Asked> {
        let lock = (db, key.to_vec());
        self.locks.get_mut(&lock)?.proof = Proof::Shape;
        let was_there = stored_holds(store, &lock, owner) > 0;
        Some(Asked::Unlock { lock, object: KEY_LOCK, owner: owner.to_vec(), lease_ms: None, was_there })
    }

    /// Remembers a script, and returns what it is for.
    pub(super) fn know(&mut self, text: &[u8]) -> Option<(Role, Binding)> {
        if self.scripts.len() >= MAX_SCRIPTS {
            self.scripts.clear();
        }
        let known = self.scripts.entry(sha1_hex(text)).or_insert_with(|| {
            let role = recognise(text)?.role;
            Some((role, Binding::of(role, text).ok()?))
        });
        known.clone()
    }

    /// Reads EVAL and EVALSHA.
    fn script(&mut self, db: usize, argv: &[&[u8]], store: &Store) -> Option<Asked> {
        let count = usize::try_from(parse_i64(argv.get(2)?)?).ok()?;
        let (keys, args) = argv.get(3..)?.split_at_checked(count)?;
        let lock = (db, keys.first()?.to_vec());
        let known = match argv[0].len() > b"EVAL".len() {
            true => {
                let sha: [u8; 40] = argv[1].to_ascii_lowercase().try_into().ok()?;
                self.scripts.get(&sha).cloned().flatten()
            }
            false => self.know(argv[1]),
        };
        let Some((role, binding)) = known else {
            return Some(Asked::Script { effects: None });
        };
        let object = role.object();
        object_named(object)?;
        let word = |parameter| {
            let at = binding.args.iter().position(|known| *known == parameter)?;
            args.get(at).copied()
        };
        let lease_ms = || word(LEASE_MS).and_then(parse_i64).and_then(|ms| u64::try_from(ms).ok());
        match role.name().rsplit('.').next()? {
            "acquire" | "try_acquire" | "acquire_token" => {
                let owner = word(OWNER)?.to_vec();
                let (stored, lease_ms) = (stored_holds(store, &lock, &owner), lease_ms());
                Some(Asked::Acquire { lock, object, owner, lease_ms, says: Says::Script, stored })
            }
            "unlock" => {
                let owner = word(OWNER)?.to_vec();
                let was_there = stored_holds(store, &lock, &owner) > 0;
                Some(Asked::Unlock { lock, object, owner, lease_ms: lease_ms(), was_there })
            }
            "force_unlock" => Some(Asked::ForceUnlock { lock, object }),
            "renew" => Some(Asked::Renew {
                locks: keys.iter().map(|key| (db, key.to_vec())).collect(),
                object,
                owners: args.iter().map(|arg| arg.to_vec()).collect(),
                lease_ms: lease_ms()?,
            }),
            _ => None,
        }
    }
}

fn acquire_key(lock: LockId, owner: &[u8], lease_ms: Option<u64>, says: Says) -> Asked {
    Asked::Acquire { lock, object: KEY_LOCK, owner: owner.to_vec(), lease_ms, says, stored: 0 }
}

/// Returns how often an owner holds a lock, by the data of a node.
fn stored_holds(store: &Store, (db, key): &LockId, owner: &[u8]) -> i64 {
    let data = &store.dbs[*db];
    let entry = data.find(key).and_then(|slot| data.entry(slot)).filter(|entry| !entry.is_expired(store.now));
    match entry.map(|entry| &entry.value) {
        Some(Value::Hash(hash)) => hash.get(owner, store.now.wall_ms()).and_then(parse_i64).unwrap_or(0),
        Some(Value::String(token)) => i64::from(token.to_vec() == owner),
        _ => 0,
    }
}
