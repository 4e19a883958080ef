//! Violations, each with the grants and what explains it.

use super::{Cause, Conn, Grant, Happening, History, LockId, Moment, Proof};
use crate::check::Finding;
use crate::invariant::Invariant;
use crate::promises::{self, KEY_LOCK};
use crate::violation::Violation;

/// The most happenings between two grants that a report has.
const MAX_BETWEEN: usize = 16;

/// What a reply tells an owner about his lock.
pub(super) struct Told<'a> {
    pub at: Moment,
    pub asked_at: Moment,
    pub conn: Conn,
    pub id: &'a LockId,
    pub owner: &'a [u8],
    /// The operation that he has asked for.
    pub by: &'static str,
}

impl History {
    /// Reports a lock that is gone within its lease, although nobody released it.
    pub(super) fn lost(&mut self, Told { at, asked_at, conn, id, owner, by }: Told) {
        let Some(lock) = self.locks.get_mut(id) else { return };
        let is_own = |grant: &&mut Grant| grant.owner == owner && grant.conn.node == conn.node;
        let (is_spread, proof) = (lock.is_spread, lock.proof);
        let Some(grant) = lock.grants.iter_mut().find(is_own) else { return };
        // By the time of the reply, so that a lock that ends while the request is on its way is not lost.
        let is_due = !grant.is_in_lease(at.now_ms) || asked_at.event == grant.event;
        if is_due || grant.is_reported || is_spread || proof == Proof::None {
            return;
        }
        grant.is_reported = true;
        let grant = grant.clone();
        let text = format!(
            "{} is told that he does not hold {}, within his lease, and nobody has released it",
            owner.escape_ascii(),
            id.1.escape_ascii()
        );
        self.violated(at, id, (Invariant::H2, by), text, vec![grant], false);
    }

    /// Reports a release that succeeds after the lease, while another holds the lock.
    pub(super) fn stale(&mut self, Told { at, asked_at, conn, id, owner, by }: Told) {
        let Some(lock) = self.locks.get(id).filter(|lock| !lock.is_spread && lock.proof != Proof::None)
        else {
            return;
        };
        let group = self.group_of(conn.node);
        let of_group = |grant: &&Grant| self.group_of(grant.conn.node) == group;
        let former = lock.ended.iter().rev().filter(of_group).find(|grant| grant.owner == owner);
        let Some(former) = former.cloned() else { return };
        let holder = lock.grants.iter().filter(of_group).find(|grant| {
            let is_later = grant.at_ms >= former.at_ms && grant.event > former.event;
            is_later
                && !grant.is_same_person(&former)
                && !(grant.is_shared && former.is_shared)
                && grant.event < asked_at.event
                && grant.is_in_lease(at.now_ms)
        });
        let Some(holder) = holder.cloned() else { return };
        let text = format!(
            "{} is told that he has released {}, which he does not hold any more: {} holds it",
            owner.escape_ascii(),
            id.1.escape_ascii(),
            holder.owner.escape_ascii()
        );
        self.violated(at, id, (Invariant::H3, by), text, vec![former, holder], false);
    }

    pub(super) fn violated(
        &mut self,
        at: Moment,
        id: &LockId,
        (invariant, operation): (Invariant, &'static str),
        text: String,
        grants: Vec<Grant>,
        by_renewal: bool,
    ) {
        let Some(last) = grants.last() else { return };
        let object = self.locks.get(id).map_or(KEY_LOCK, |lock| lock.object);
        if !promises::is_judged(object, invariant) {
            return;
        }
        let (cause, between) = self.between(id, &grants, at, by_renewal);
        self.report(Finding {
            event: last.event.max(at.event),
            node: last.conn.node,
            db: id.0,
            object,
            violation: Violation { invariant, operation, text },
            key: id.1.clone(),
            owner: last.owner.clone(),
            owners: Vec::new(),
            reply: String::new(),
            messages: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            cause: Some(cause),
            grants,
            between: between.iter().map(Happening::to_string).collect(),
        });
    }

    /// Returns what stands between the first grant and now, and which of it explains the violation.
    fn between(
        &self,
        id: &LockId,
        grants: &[Grant],
        at: Moment,
        by_renewal: bool,
    ) -> (Cause, Vec<Happening>) {
        let first = grants.iter().map(|grant| grant.event).min().unwrap_or_default();
        let notes = self.locks.get(id).map(|lock| lock.notes.iter());
        let all = || self.happenings.iter().chain(notes.clone().into_iter().flatten());
        let mut found: Vec<Happening> = all()
            .filter(|happening| happening.event > first && happening.event <= at.event)
            .cloned()
            .collect();
        found.sort_by_key(|happening| happening.event);
        // What loses all keys explains more than what was done to this one, which its owner may have done himself.
        let loses_all =
            |happening: &&Happening| matches!(happening.cause, Cause::Promotion | Cause::DataLoss);
        let explains = |happening: &&Happening| happening.cause != Cause::Unknown;
        let explaining = found.iter().rev().find(loses_all).or_else(|| found.iter().rev().find(explains));
        let mut cause = explaining.map_or(Cause::Unknown, |happening| happening.cause);
        if let [first, second] = grants
            && first.conn.node != second.conn.node
            && cause == Cause::Unknown
            && let Some(promotion) = all().rfind(|happening| happening.cause == Cause::Promotion)
        {
            found.insert(0, promotion.clone());
            cause = Cause::Promotion;
        }
        if by_renewal {
            cause = Cause::LostRenewal;
        }
        if cause == Cause::Unknown
            && let Some(rule) = all().rfind(|happening| happening.cause == Cause::Rule)
        {
            found.insert(0, rule.clone());
            cause = Cause::Rule;
        }
        let skipped = found.len().saturating_sub(MAX_BETWEEN);
        (cause, found.split_off(skipped))
    }
}
