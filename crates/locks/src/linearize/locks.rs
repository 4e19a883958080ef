//! The models of locks.
//!
//! A lease ends by itself, at any time after it is over: from then on the lock may be free or still be held. A lease begins when its
//! request is called, the earliest moment at which it can have run; so a grant to another is impossible if it has *returned* before the
//! lease is over. A refusal says nothing, because a lock may be refused for other reasons than that it is held (a queue, say).

use super::search::Model;

/// What a lock guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// One owner, once.
    Mutex,
    /// One owner, any number of times. A release says whether he holds it still.
    Reentrant,
    /// As re-entrant; the tokens of grants grow.
    Fenced,
    /// So many permits.
    Semaphore(u32),
    /// One writer, or any number of readers; the writer may read.
    ReadWrite,
}

/// What an operation does, if it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Acquire,
    Renew,
    Release,
    /// Sets the lock free, whoever holds it.
    ForceRelease,
}

/// An operation on a lock that has succeeded, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOperation {
    pub action: Action,
    pub owner: u32,
    /// The same for both ids of one owner: as a reader and as a writer.
    pub person: u32,
    pub is_shared: bool,
    pub permits: u32,
    pub lease_ms: Option<u64>,
    /// The times of call and return.
    pub from_ms: u64,
    pub to_ms: Option<u64>,
    /// The fencing token that came with a grant.
    pub token: Option<i64>,
    /// After a release: whether its owner holds the lock still.
    pub is_held: Option<bool>,
    /// Whether a release succeeds if nobody holds the lock.
    pub frees_what_is_free: bool,
}

impl LockOperation {
    fn until_ms(&self) -> Option<u64> {
        self.lease_ms.map(|lease_ms| self.from_ms.saturating_add(lease_ms))
    }

    /// Returns whether a hold may have ended by itself before this operation took effect.
    fn may_follow_end_of(&self, hold: &Hold) -> bool {
        hold.until_ms.is_some_and(|until_ms| self.to_ms.is_none_or(|to_ms| until_ms <= to_ms))
    }
}

/// What an owner has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    pub owner: u32,
    person: u32,
    is_shared: bool,
    /// How many holds or permits; `None` if he held some before the history begins.
    pub count: Option<u32>,
    /// When the lease is over at the earliest.
    pub until_ms: Option<u64>,
}

/// Who holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holders {
    /// In the order of the owners.
    pub holds: Vec<Hold>,
    /// The last fencing token.
    pub token: Option<i64>,
    /// Whether others may hold it, from before the history begins.
    pub is_open: bool,
}

/// A lock.
pub struct LockModel {
    pub kind: LockKind,
    /// Whether the beginning of the history is missing.
    pub begins_late: bool,
}

impl Model for LockModel {
    type State = Holders;
    type Operation = LockOperation;

    fn start(&self) -> Holders {
        Holders { is_open: self.begins_late, ..Holders::default() }
    }

    fn step(&self, state: &Holders, operation: &LockOperation, next: &mut Vec<Holders>) {
        match operation.action {
            Action::Acquire => self.acquire(state, operation, next),
            Action::Renew => next.extend(renew(state, operation)),
            Action::Release => self.release(state, operation, next),
            Action::ForceRelease => next.push(Holders { token: state.token, ..Holders::default() }),
        }
    }
}

impl LockModel {
    fn acquire(&self, state: &Holders, operation: &LockOperation, next: &mut Vec<Holders>) {
        if let LockKind::Semaphore(permits) = self.kind {
            return acquire_permits(permits, state, operation, next);
        }
        let own = state.holds.iter().position(|hold| hold.owner == operation.owner);
        let shares = |hold: &Hold| {
            self.kind == LockKind::ReadWrite
                && (hold.person == operation.person || hold.is_shared && operation.is_shared)
        };
        let mut free = state.clone();
        free.holds.retain(|hold| {
            let is_own = hold.owner == operation.owner;
            !(operation.may_follow_end_of(hold) && (is_own || !shares(hold)))
        });
        let is_free = free.holds.iter().all(|hold| hold.owner != operation.owner && shares(hold));
        if is_free && state.token.is_none_or(|last| operation.token.is_none_or(|token| token > last)) {
            free.token = operation.token.or(state.token);
            free.is_open &= operation.is_shared;
            let count = (!state.is_open || self.kind == LockKind::Mutex).then_some(1);
            insert(&mut free, operation, count);
            next.push(free);
        }
        let Some(own) = own.filter(|_| self.kind != LockKind::Mutex) else { return };
        let others = || state.holds.iter().filter(|hold| hold.owner != operation.owner);
        if others().all(shares)
            && state.token.is_none_or(|last| operation.token.is_none_or(|token| token >= last))
        {
            let mut held = state.clone();
            held.token = operation.token.or(state.token);
            let hold = &mut held.holds[own];
            hold.count = hold.count.map(|count| count.saturating_add(1));
            hold.until_ms = operation.until_ms();
            next.push(held);
        }
    }

    fn release(&self, state: &Holders, operation: &LockOperation, next: &mut Vec<Holders>) {
        let has_ended = |hold: &Hold| operation.may_follow_end_of(hold);
        if operation.frees_what_is_free && state.holds.iter().all(has_ended) {
            next.push(Holders { holds: Vec::new(), ..state.clone() });
        }
        let Some(own) = state.holds.iter().position(|hold| hold.owner == operation.owner) else {
            // He may have held it since before the history.
            next.extend(state.is_open.then(|| state.clone()));
            return;
        };
        let mut released = state.clone();
        let hold = &mut released.holds[own];
        let count = match (self.kind, hold.count) {
            (LockKind::Mutex, _) => Some(0),
            (LockKind::Semaphore(_), Some(count)) => match count.checked_sub(operation.permits) {
                None => return,
                left => left,
            },
            (_, count) => count.map(|count| count.saturating_sub(1)),
        };
        let is_possible = |is_held: bool| {
            self.kind == LockKind::Mutex || operation.is_held.is_none_or(|told| told == is_held)
        };
        if count.is_none_or(|count| count > 0) && is_possible(true) {
            hold.count = count;
            hold.until_ms = operation.until_ms().or(hold.until_ms);
            next.push(released.clone());
        }
        if count.is_none_or(|count| count == 0) && is_possible(false) {
            released.holds.remove(own);
            next.push(released);
        }
    }
}

/// Adds the states in which enough permits are free. Which of the leases that are over have ended is not known.
fn acquire_permits(permits: u32, state: &Holders, operation: &LockOperation, next: &mut Vec<Holders>) {
    let used = |holds: &[Hold]| holds.iter().filter_map(|hold| hold.count).map(u64::from).sum::<u64>();
    if used(&state.holds) + u64::from(operation.permits) > u64::from(permits) {
        for index in 0..state.holds.len() {
            if operation.may_follow_end_of(&state.holds[index]) {
                let mut fewer = state.clone();
                fewer.holds.remove(index);
                acquire_permits(permits, &fewer, operation, next);
            }
        }
        return;
    }
    let mut more = state.clone();
    let until_ms = operation.until_ms();
    match more.holds.iter_mut().find(|hold| hold.owner == operation.owner) {
        Some(hold) => {
            hold.count = hold.count.map(|count| count.saturating_add(operation.permits));
            hold.until_ms = until_ms.and_then(|until_ms| Some(until_ms.min(hold.until_ms?)));
        }
        None => insert(&mut more, operation, Some(operation.permits)),
    }
    next.push(more);
}

fn insert(state: &mut Holders, operation: &LockOperation, count: Option<u32>) {
    let LockOperation { owner, person, is_shared, .. } = *operation;
    let at = state.holds.partition_point(|hold| hold.owner < owner);
    state.holds.insert(at, Hold { owner, person, is_shared, count, until_ms: operation.until_ms() });
}

fn renew(state: &Holders, operation: &LockOperation) -> Option<Holders> {
    let own = state.holds.iter().position(|hold| hold.owner == operation.owner);
    let Some(own) = own else { return state.is_open.then(|| state.clone()) };
    let mut renewed = state.clone();
    let hold = &mut renewed.holds[own];
    hold.until_ms = operation.until_ms().or(hold.until_ms);
    Some(renewed)
}
