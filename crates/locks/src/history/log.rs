//! The operations on locks, from request to reply.

use std::collections::{BTreeMap, VecDeque};
use std::slice;
use std::sync::Arc;

use super::asked::Asked;
use super::effect::Effect;
use super::{Conn, Lock, LockId, Moment, Proof};
use crate::linearize::Outcome;
use crate::promises::{KEY_LOCK, object_named};
use crate::reply::Reply;

/// The most operations that are kept, and about how many bytes they may take.
pub const MAX_OPERATIONS: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Acquire,
    Renew,
    Release,
    /// Sets the lock free, whoever holds it.
    ForceRelease,
    /// Deletes the key of the lock, without a look at its owner.
    Delete,
}

impl Function {
    /// Returns the name in an exported history.
    pub fn name(self) -> &'static str {
        match self {
            Function::Acquire => "acquire",
            Function::Renew => "renew",
            Function::Release => "release",
            Function::ForceRelease => "force-release",
            Function::Delete => "delete",
        }
    }
}

/// What a reply says of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub outcome: Outcome,
    /// The fencing token that came with a grant.
    pub token: Option<i64>,
    /// After a release: whether the owner holds the lock still.
    pub is_held: Option<bool>,
}

/// An operation on a lock.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The number in the history, from 0.
    pub number: u64,
    pub lock: LockId,
    pub object: &'static str,
    pub function: Function,
    /// Empty if nobody is named.
    pub owner: Vec<u8>,
    pub lease_ms: Option<u64>,
    pub conn: Conn,
    /// The group of nodes that share their data, by its first node.
    pub group: usize,
    pub asked_at: Moment,
    /// When the reply left; `None` if none has yet, or it does not tell what happened.
    pub answered_at: Option<Moment>,
    pub answer: Answer,
    /// Whether the key is known to be a lock, and was not only set if it did not exist.
    pub is_lock: bool,
}

impl Operation {
    /// Returns about how many bytes it takes.
    fn weight(&self) -> usize {
        size_of::<Operation>() + self.owner.len() + self.lock.1.len()
    }
}

/// The last operations, or all of them.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Shared by the copies of a lab.
    operations: VecDeque<Arc<Operation>>,
    /// The number of the first of them.
    first: u64,
    /// The number of the first since the history began, and of the first that may be shown.
    began: u64,
    shown_from: u64,
    /// What may be shown takes so many bytes.
    shown_bytes: usize,
    keeps_all: bool,
}

impl Log {
    /// Keeps all operations from here on.
    pub fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// Returns the log of a history that begins now.
    pub(super) fn begin_anew(self) -> Log {
        let next = self.next();
        match self.keeps_all {
            true => Log { began: next, shown_from: next, shown_bytes: 0, ..self },
            false => Log::default(),
        }
    }

    fn next(&self) -> u64 {
        self.first + self.operations.len() as u64
    }

    /// Returns all operations that are kept.
    pub fn all(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().map(|operation| &**operation)
    }

    /// Returns the last operations since the history began, with the number of the first one in the log.
    pub fn last(&self) -> (u64, impl Iterator<Item = &Operation>) {
        (self.began, self.all().skip((self.shown_from - self.first) as usize))
    }

    /// Returns how many older ones were dropped since the history began.
    pub fn dropped(&self) -> u64 {
        self.shown_from - self.began
    }

    fn push(&mut self, mut operation: Operation) -> u64 {
        let number = self.next();
        operation.number = number;
        self.shown_bytes += operation.weight();
        self.operations.push_back(Arc::new(operation));
        while self.next() - self.shown_from > MAX_OPERATIONS as u64 || self.shown_bytes > MAX_BYTES {
            let index = (self.shown_from - self.first) as usize;
            let Some(oldest) = self.operations.get(index) else { break };
            self.shown_bytes -= oldest.weight();
            self.shown_from += 1;
            if !self.keeps_all {
                self.operations.pop_front();
                self.first += 1;
            }
        }
        number
    }

    /// Notes what a request asks for. Returns the numbers of its operations.
    pub(super) fn asked(
        &mut self,
        at: Moment,
        conn: Conn,
        group: usize,
        asked: &Asked,
        known: &BTreeMap<LockId, Lock>,
    ) -> Vec<u64> {
        let object = match asked {
            Asked::Script { .. } => KEY_LOCK,
            asked => asked.object(),
        };
        let mut push = |lock: &LockId, function, owner: &[u8], lease_ms| {
            // A script that removes the token that it was given releases a lock.
            let is_release = function == Function::Release;
            self.push(Operation {
                number: 0,
                lock: lock.clone(),
                object,
                function,
                owner: owner.to_vec(),
                lease_ms,
                conn,
                group,
                asked_at: at,
                answered_at: None,
                answer: Answer::default(),
                is_lock: is_release || known.get(lock).is_some_and(|lock| lock.proof != Proof::None),
            })
        };
        match asked {
            Asked::Acquire { lock, owner, lease_ms, .. } => {
                vec![push(lock, Function::Acquire, owner, *lease_ms)]
            }
            Asked::Unlock { lock, owner, lease_ms, .. } => {
                vec![push(lock, Function::Release, owner, *lease_ms)]
            }
            Asked::ForceUnlock { lock, .. } => vec![push(lock, Function::ForceRelease, b"", None)],
            Asked::Renew { locks, owners, lease_ms, .. } => {
                // The other keys and arguments of the script are no locks, and no owners.
                let renewed = locks.iter().filter_map(|lock| {
                    let Lock { grants, ended, .. } = known.get(lock)?;
                    let grants = grants.iter().rev().chain(ended.iter().rev());
                    let grant = grants.into_iter().find(|grant| owners.contains(&grant.owner))?;
                    Some((lock, &grant.owner))
                });
                renewed.map(|(lock, owner)| push(lock, Function::Renew, owner, Some(*lease_ms))).collect()
            }
            Asked::Delete(locks) => {
                locks.iter().map(|lock| push(lock, Function::Delete, b"", None)).collect()
            }
            Asked::Script { effects } => {
                let mut numbers = Vec::new();
                for effect in effects.iter().flatten() {
                    let (lock, function, owners, lease_ms) = match effect {
                        Effect::Acquired { lock, owner, lease_ms } => {
                            (lock, Function::Acquire, slice::from_ref(owner), *lease_ms)
                        }
                        Effect::Kept { lock, owner, lease_ms, has_new_lease: true } => {
                            (lock, Function::Renew, slice::from_ref(owner), *lease_ms)
                        }
                        Effect::Expires { lock, owners, lease_ms } => {
                            (lock, Function::Renew, &owners[..], *lease_ms)
                        }
                        Effect::Released { lock, owner } => {
                            (lock, Function::Release, slice::from_ref(owner), None)
                        }
                        Effect::Deleted { lock } => (lock, Function::Delete, &[Vec::new()][..], None),
                        // It has done nothing.
                        Effect::Kept { .. } | Effect::Missed { .. } => continue,
                    };
                    numbers.extend(owners.iter().map(|owner| push(lock, function, owner, lease_ms)));
                }
                numbers
            }
        }
    }

    /// Notes the reply to a request.
    pub(super) fn answered(&mut self, at: Moment, numbers: &[u64], asked: &Asked, reply: Reply) {
        for (index, number) in numbers.iter().enumerate() {
            let answer = answer(asked, reply, index, numbers.len());
            let Some(index) = number.checked_sub(self.first) else { continue };
            let Some(operation) = self.operations.get_mut(index as usize) else { continue };
            let operation = Arc::make_mut(operation);
            operation.answer = answer;
            operation.answered_at = (answer.outcome != Outcome::Info).then_some(at);
        }
    }
}

/// Returns what a reply says of an operation of a request, which has so many.
fn answer(asked: &Asked, reply: Reply, index: usize, operations: usize) -> Answer {
    let told =
        |is_ok| Answer { outcome: if is_ok { Outcome::Ok } else { Outcome::Fail }, ..Answer::default() };
    match (asked, reply) {
        // It runs with EXEC.
        (_, Reply::Text(b"QUEUED")) => Answer::default(),
        (_, Reply::Error(text)) if text.starts_with(b"NOSCRIPT") => told(false),
        // A script may write before it fails, and an injected error may come after the work.
        (_, Reply::Error(_)) => Answer::default(),
        (Asked::Acquire { says, .. }, _) => {
            let token = match reply.element(1) {
                Reply::Int(token) if matches!(reply, Reply::Array(_)) => Some(token),
                _ => None,
            };
            Answer { token, ..told(says.is_grant(reply)) }
        }
        (Asked::Unlock { object, .. }, Reply::Int(0)) if *object != KEY_LOCK => {
            // Of read locks it says that somebody holds it.
            Answer { is_held: (!is_shared(object)).then_some(true), ..told(true) }
        }
        (Asked::Unlock { object, .. }, _) => {
            let is_ok = matches!(reply, Reply::Int(1..) | Reply::Text(_));
            Answer { is_held: (is_ok && !is_shared(object)).then_some(false), ..told(is_ok) }
        }
        (Asked::ForceUnlock { .. }, _) => told(reply == Reply::Int(1)),
        (Asked::Renew { locks, .. }, _) => match reply {
            Reply::Array(_) if locks.len() == operations => {
                told(matches!(reply.element(index), Reply::Int(1..)))
            }
            // One number for several locks.
            _ if operations > 1 => Answer::default(),
            Reply::Text(text) => told(text == b"OK"),
            reply => told(reply.int().is_some_and(|n| n > 0)),
        },
        (Asked::Delete(locks), _) => match reply {
            Reply::Int(0) | Reply::Nil => told(false),
            Reply::Int(n) if n < locks.len() as i64 => Answer::default(),
            _ => told(true),
        },
        (Asked::Script { .. }, _) => told(true),
    }
}

fn is_shared(object: &str) -> bool {
    object_named(object).is_some_and(|object| object.is_shared)
}
