//! Grants, renewals and releases, and what is wrong with them.

use std::collections::BTreeSet;

use super::asked::{Asked, Says};
use super::effect::Effect;
use super::violated::Told;
use super::{Conn, Grant, History, LockId, MAX_ENDED, MAX_HOLDERS, Moment, Proof};
use crate::invariant::Invariant;
use crate::promises::{self, KEY_LOCK, object_named};
use crate::reply::Reply;

/// The most owners of a lock for whom the nodes that they asked are remembered.
const MAX_ASKERS: usize = 16;

/// Returns whether the name of a key or its value looks like a lock.
fn looks_like_lock(key: &[u8], owner: &[u8]) -> bool {
    let key = key.to_ascii_lowercase();
    let is_named =
        ["lock", "mutex", "leader"].iter().any(|word| memchr::memmem::find(&key, word.as_bytes()).is_some());
    let is_text = std::str::from_utf8(owner).is_ok();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_+/=:.@".contains(byte);
    let is_token = owner.len() >= 16
        && owner.len() <= 128
        && (!is_text || owner.iter().all(is_word) && owner.iter().any(u8::is_ascii_digit));
    is_named || is_token
}

impl History {
    /// Notes what a request asks for, before its reply.
    pub(super) fn note_asked(&mut self, at: Moment, conn: Conn, asked: &Asked) {
        match asked {
            Asked::Acquire { lock, object, owner, .. } => {
                self.note_owner(conn, owner);
                let proof = match *object {
                    KEY_LOCK if looks_like_lock(&lock.1, owner) => Proof::Shape,
                    KEY_LOCK => Proof::None,
                    _ => Proof::Script,
                };
                let group = self.group_of(conn.node);
                if let Some(lock) = self.lock(lock, object, at.now_ms) {
                    lock.proof = if lock.proof == Proof::None { proof } else { lock.proof };
                    lock.note_asked_at(owner, group);
                }
            }
            Asked::Unlock { lock, owner, .. } => {
                self.note_owner(conn, owner);
                self.begin_release(lock, owner, conn, at.event);
            }
            Asked::Renew { locks, owners, .. } => {
                for lock in locks {
                    for grant in self.grants_mut(lock, owners, conn) {
                        if grant.is_in_lease(at.now_ms) {
                            grant.renewal = Some((conn, at.event));
                        }
                    }
                }
            }
            Asked::ForceUnlock { .. } | Asked::Delete(_) | Asked::Script { .. } => {}
        }
    }

    fn grants_mut(
        &mut self,
        lock: &LockId,
        owners: &[Vec<u8>],
        conn: Conn,
    ) -> impl Iterator<Item = &mut Grant> {
        let grants = self.locks.get_mut(lock).map(|lock| lock.grants.iter_mut());
        grants
            .into_iter()
            .flatten()
            .filter(move |grant| grant.conn.node == conn.node && owners.contains(&grant.owner))
    }

    /// Notes that an owner has asked to release a lock, at whatever node.
    pub(super) fn begin_release(&mut self, lock: &LockId, owner: &[u8], conn: Conn, event: u64) {
        let grants = self.locks.get_mut(lock).into_iter().flat_map(|lock| &mut lock.grants);
        let mut is_known = false;
        for grant in grants.filter(|grant| grant.owner == owner) {
            is_known |= grant.conn.node == conn.node;
            grant.releasing.get_or_insert(event);
        }
        if is_known {
            self.last_event = event;
        }
    }

    /// Forgets what a request has asked for that did not run.
    fn take_back(&mut self, event: u64, asked: &Asked) {
        let Asked::Unlock { lock, .. } = asked else { return };
        let grants = self.locks.get_mut(lock).into_iter().flat_map(|lock| &mut lock.grants);
        grants.filter(|grant| grant.releasing == Some(event)).for_each(|grant| grant.releasing = None);
    }

    /// Judges a reply.
    pub(super) fn answered(&mut self, at: Moment, conn: Conn, asked_at: Moment, asked: Asked, bytes: &[u8]) {
        let reply = Reply::parse(bytes);
        if matches!(reply, Reply::Error(text) if text.starts_with(b"NOSCRIPT")) {
            // The client sends the text next.
            return self.take_back(asked_at.event, &asked);
        }
        if let Some(why) = unjudged(&asked, reply) {
            return self.leave_out(&format!("{}: {why}", asked.object()));
        }
        if asked.is_operation() {
            self.tally.judged += 1;
        }
        match asked {
            Asked::Acquire { lock, object, owner, lease_ms, says, stored } => {
                if says.is_grant(reply) {
                    let token = match reply.element(1) {
                        Reply::Int(token) if matches!(reply, Reply::Array(_)) => Some(token),
                        _ => None,
                    };
                    let mut grant = granted(owner, conn, asked_at, at, lease_ms);
                    let is_shared = object_named(object).is_some_and(|object| object.is_shared);
                    (grant.is_shared, grant.token) = (is_shared, token);
                    grant.has_all_holds = stored == 0;
                    self.grant(lock, grant, at);
                }
            }
            Asked::Unlock { lock, object, owner, lease_ms, was_there } => {
                self.released(at, asked_at, conn, (lock, object, owner, lease_ms, was_there), reply);
            }
            Asked::ForceUnlock { lock, .. } => {
                if reply == Reply::Int(1)
                    && let Some(known) = self.locks.get_mut(&lock)
                {
                    known.grants.clear();
                    self.last_event = asked_at.event;
                }
            }
            Asked::Renew { locks, object, owners, lease_ms } => {
                self.renewed(at, asked_at, conn, (&locks, object, &owners, Some(lease_ms)), reply);
            }
            Asked::Delete(locks) => {
                if matches!(reply, Reply::Int(1..) | Reply::Text(_)) {
                    locks.iter().for_each(|lock| self.deleted(at, asked_at, conn, lock));
                }
            }
            Asked::Script { effects } => {
                for effect in effects.into_iter().flatten() {
                    self.took_effect(at, asked_at, conn, effect);
                }
            }
        }
    }

    fn took_effect(&mut self, at: Moment, asked_at: Moment, conn: Conn, effect: Effect) {
        match effect {
            Effect::Acquired { lock, owner, lease_ms } => {
                let asked = Asked::Acquire {
                    lock: lock.clone(),
                    object: KEY_LOCK,
                    owner: owner.clone(),
                    lease_ms,
                    says: Says::Number,
                    stored: 0,
                };
                self.note_asked(asked_at, conn, &asked);
                self.grant(lock, granted(owner, conn, asked_at, at, lease_ms), at);
            }
            Effect::Kept { lock, owner, lease_ms, has_new_lease: true } => {
                self.renewed(at, asked_at, conn, (&[lock], KEY_LOCK, &[owner], lease_ms), Reply::Int(1));
            }
            Effect::Kept { .. } => {}
            Effect::Expires { lock, owners, lease_ms } => {
                self.renewed(at, asked_at, conn, (&[lock], KEY_LOCK, &owners, lease_ms), Reply::Int(1));
            }
            Effect::Released { lock, owner } => {
                if let Some(known) = self.locks.get_mut(&lock)
                    && known.proof == Proof::None
                {
                    known.proof = Proof::Shape;
                }
                self.released(at, asked_at, conn, (lock, KEY_LOCK, owner, None, true), Reply::Int(1));
            }
            Effect::Deleted { lock } => self.deleted(at, asked_at, conn, &lock),
            Effect::Missed { lock, owner } => {
                self.lost(Told { at, asked_at, conn, id: &lock, owner: &owner, by: "script" });
                self.end(&lock, &owner, conn);
            }
        }
    }

    // ---- grants --------------------------------------------------------------------------------------------------

    fn grant(&mut self, id: LockId, mut grant: Grant, at: Moment) {
        self.last_event = grant.event;
        let Some(lock) = self.locks.get_mut(&id) else { return };
        let (over, mut live): (Vec<Grant>, Vec<Grant>) =
            std::mem::take(&mut lock.grants).into_iter().partition(|known| {
                let is_own = known.owner == grant.owner && known.conn.node == grant.conn.node;
                let is_over = known.until_ms.is_some_and(|until_ms| until_ms <= at.now_ms);
                is_own && (is_over || known.releasing.is_some()) || is_over && known.renewal.is_none()
            });
        let is_own = |known: &Grant| known.owner == grant.owner && known.conn.node == grant.conn.node;
        if let Some(index) = live.iter().position(is_own) {
            // A hold inside a hold.
            let outer = live.swap_remove(index);
            grant.holds += outer.holds;
            (grant.has_all_holds, grant.is_reported) = (outer.has_all_holds, outer.is_reported);
            (grant.event, grant.at_ms) = (outer.event, outer.at_ms);
        }
        if live.len() >= MAX_HOLDERS {
            live.remove(0);
        }
        grant.is_reported |= live.iter().any(|known| known.is_reported && known.is_same_person(&grant));
        live.push(grant.clone());
        lock.grants = live;
        lock.ended.extend(over);
        while lock.ended.len() > MAX_ENDED {
            lock.ended.pop_front();
        }
        self.judge_grant(&id, &grant, at);
    }

    /// Looks for another owner who holds the lock too.
    fn judge_grant(&mut self, id: &LockId, grant: &Grant, at: Moment) {
        let Some(lock) = self.locks.get(id) else { return };
        let is_rival = |known: &&Grant| {
            let may_share = known.is_shared && grant.is_shared;
            let is_other = !known.is_same_person(grant) && !may_share;
            is_other && !(known.is_reported && grant.is_reported) && self.is_held(known, at.now_ms)
        };
        let mut rivals = lock.grants.iter().filter(is_rival);
        let rival = match lock.is_spread {
            // A lock of several independent nodes belongs to the owner of most of them.
            true => rivals
                .find(|rival| self.has_most(id, rival, at.now_ms) && self.has_most(id, grant, at.now_ms)),
            false => rivals.find(|rival| self.group_of(rival.conn.node) == self.group_of(grant.conn.node)),
        };
        let Some(first) = rival.cloned() else { return };
        if lock.proof == Proof::None {
            return self.leave_out("set-nx: nothing but NX shows that the key is a lock");
        }
        let has_ended = !first.is_in_lease(at.now_ms);
        let scope = if lock.is_spread { ", each at most of its nodes" } else { "" };
        let text = format!("two owners of {}{scope}", id.1.escape_ascii());
        self.violated(
            at,
            id,
            (Invariant::H1, "acquire"),
            text,
            vec![first.clone(), grant.clone()],
            has_ended,
        );
        let known = self.locks.get_mut(id).into_iter().flat_map(|lock| &mut lock.grants);
        for known in known.filter(|known| known.is_same_person(&first) || known.is_same_person(grant)) {
            known.is_reported = true;
        }
    }

    fn has_most(&self, id: &LockId, of: &Grant, now_ms: u64) -> bool {
        let Some(lock) = self.locks.get(id) else { return false };
        let held = lock.grants.iter().filter(|grant| grant.owner == of.owner && self.is_held(grant, now_ms));
        let held: BTreeSet<usize> = held.map(|grant| self.group_of(grant.conn.node)).collect();
        let all: BTreeSet<usize> =
            lock.asked_at.iter().flat_map(|(_, groups)| groups).map(|group| self.group_of(*group)).collect();
        held.len() * 2 > all.len()
    }

    // ---- releases and renewals -----------------------------------------------------------------------------------

    fn released(
        &mut self,
        at: Moment,
        asked_at: Moment,
        conn: Conn,
        (id, object, owner, lease_ms, was_there): (LockId, &'static str, Vec<u8>, Option<u64>, bool),
        reply: Reply,
    ) {
        let Some(lock) = self.locks.get_mut(&id) else { return };
        let is_own = |grant: &Grant| grant.owner == owner && grant.conn.node == conn.node;
        let Some(index) = lock.grants.iter().position(is_own) else {
            if reply == Reply::Int(1) {
                self.stale(Told { at, asked_at, conn, id: &id, owner: &owner, by: "unlock" });
            }
            return;
        };
        let grant = &mut lock.grants[index];
        let was_first = grant.releasing == Some(asked_at.event);
        match reply {
            // An outer hold is left, or other readers are.
            Reply::Int(0) if object != KEY_LOCK => {
                grant.releasing = None;
                grant.holds = grant.holds.saturating_sub(1);
                if grant.is_shared && (grant.holds == 0 || !grant.has_all_holds) {
                    return self.end(&id, &owner, conn);
                }
                if let (Some(lease_ms), Some(until_ms)) = (lease_ms, &mut grant.until_ms) {
                    *until_ms = (asked_at.now_ms.saturating_add(lease_ms)).min(*until_ms);
                }
                let waits = self.waits_for_grant(&id, &owner);
                self.judge_count(at, &id, object, &owner, conn, waits);
            }
            Reply::Int(1..) | Reply::Text(_) => {
                let grant = lock.grants.remove(index);
                let was_over = grant.until_ms.is_some_and(|until_ms| until_ms <= asked_at.now_ms);
                let is_over = was_over && grant.renewal.is_none();
                lock.ended.push_back(grant);
                if is_over {
                    self.stale(Told { at, asked_at, conn, id: &id, owner: &owner, by: "unlock" });
                }
            }
            _ => {
                // Had it been there, the request itself has released it, and ran twice.
                if was_first && !was_there {
                    lock.grants[index].releasing = None;
                    self.lost(Told { at, asked_at, conn, id: &id, owner: &owner, by: "unlock" });
                }
                self.end(&id, &owner, conn);
            }
        }
    }

    /// Ends a grant: its owner knows that he does not hold the lock.
    fn end(&mut self, id: &LockId, owner: &[u8], conn: Conn) {
        let Some(lock) = self.locks.get_mut(id) else { return };
        let is_own = |grant: &mut Grant| grant.owner == owner && grant.conn.node == conn.node;
        lock.ended.extend(lock.grants.extract_if(.., is_own));
        while lock.ended.len() > MAX_ENDED {
            lock.ended.pop_front();
        }
    }

    /// Returns whether an owner has asked for a lock and not been answered.
    fn waits_for_grant(&self, id: &LockId, name: &[u8]) -> bool {
        let pending = self.clients.values().flat_map(|client| &client.pending);
        pending.into_iter().any(|pending| {
            matches!(&pending.asked, Some(Asked::Acquire { lock, owner, .. }) if lock == id && owner == name)
        })
    }

    fn judge_count(&mut self, at: Moment, id: &LockId, object: &str, owner: &[u8], conn: Conn, waits: bool) {
        if waits || !promises::is_judged(object, Invariant::H4) {
            return;
        }
        let Some(lock) = self.locks.get_mut(id) else { return };
        let is_own = |grant: &&mut Grant| grant.owner == owner && grant.conn.node == conn.node;
        let Some(grant) = lock.grants.iter_mut().find(is_own) else { return };
        if grant.holds > 0 || !grant.has_all_holds {
            return;
        }
        let grant = grant.clone();
        let text = format!(
            "{} has released {} as often as it was granted to him, and is told that he holds it still",
            owner.escape_ascii(),
            id.1.escape_ascii()
        );
        self.violated(at, id, (Invariant::H4, "unlock"), text, vec![grant], false);
        // He knows of no hold.
        self.end(id, owner, conn);
    }

    fn renewed(
        &mut self,
        at: Moment,
        asked_at: Moment,
        conn: Conn,
        (locks, object, owners, lease_ms): (&[LockId], &'static str, &[Vec<u8>], Option<u64>),
        reply: Reply,
    ) {
        let is_renewed = match reply {
            Reply::Text(text) => text == b"OK",
            reply => reply.int().is_some_and(|n| n > 0),
        };
        for lock in locks {
            for grant in self.grants_mut(lock, owners, conn) {
                grant.renewal = None;
                if is_renewed {
                    grant.until_ms = lease_ms.map(|lease_ms| asked_at.now_ms.saturating_add(lease_ms));
                }
            }
        }
        if is_renewed {
            self.last_event = asked_at.event;
        }
        // One number is the reply for several locks.
        let ([lock], false) = (locks, is_renewed) else { return };
        let mut held = self.grants_mut(lock, owners, conn).map(|grant| grant.owner.clone());
        if let (Some(owner), None) = (held.next(), held.next()) {
            drop(held);
            let is_plain = object == KEY_LOCK && matches!(reply, Reply::Nil);
            self.lost(Told {
                at,
                asked_at,
                conn,
                id: lock,
                owner: &owner,
                by: if is_plain { "set" } else { "renew" },
            });
            self.end(lock, &owner, conn);
        }
    }

    /// Judges a deletion that names no owner.
    fn deleted(&mut self, at: Moment, asked_at: Moment, conn: Conn, id: &LockId) {
        let Some(lock) = self.locks.get(id) else { return };
        let own = lock.grants.iter().find(|grant| grant.conn == conn).map(|grant| grant.owner.clone());
        if lock.proof == Proof::Script {
            // Not how such a lock is released: its owner does not know.
            return;
        }
        let is_live =
            lock.grants.iter().any(|grant| grant.conn == conn && self.is_held(grant, asked_at.now_ms));
        let former =
            lock.ended.iter().rev().find(|grant| grant.conn == conn).map(|grant| grant.owner.clone());
        match (own, former) {
            (Some(owner), _) if is_live => self.end(id, &owner, conn),
            (Some(owner), _) | (None, Some(owner)) => {
                self.end(id, &owner, conn);
                self.stale(Told { at, asked_at, conn, id, owner: &owner, by: "delete" });
            }
            (None, None) => {
                // It may be another connection of the owner's.
                let owners: Vec<Vec<u8>> = lock.grants.iter().map(|grant| grant.owner.clone()).collect();
                owners.iter().for_each(|owner| self.end(id, owner, conn));
                self.leave_out("del: by a connection that has acted for no owner of the lock");
            }
        }
    }
}

impl super::Lock {
    /// Notes that an owner asks for the lock at a group of nodes.
    fn note_asked_at(&mut self, owner: &[u8], group: usize) {
        let index = self.asked_at.iter().position(|(known, _)| known == owner);
        let (_, groups) = match index {
            Some(index) => &mut self.asked_at[index],
            None => {
                if self.asked_at.len() >= MAX_ASKERS {
                    self.asked_at.pop_front();
                }
                self.asked_at.push_back((owner.to_vec(), BTreeSet::new()));
                let last = self.asked_at.len() - 1;
                &mut self.asked_at[last]
            }
        };
        groups.insert(group);
        self.is_spread |= groups.len() > 1;
    }
}

fn granted(owner: Vec<u8>, conn: Conn, asked_at: Moment, at: Moment, lease_ms: Option<u64>) -> Grant {
    Grant {
        owner,
        conn,
        event: asked_at.event,
        at_ms: at.now_ms,
        until_ms: lease_ms.map(|lease_ms| asked_at.now_ms.saturating_add(lease_ms)),
        is_shared: false,
        token: None,
        holds: 1,
        has_all_holds: true,
        releasing: None,
        renewal: None,
        is_reported: false,
    }
}

/// Returns why a reply cannot be judged.
fn unjudged(asked: &Asked, reply: Reply) -> Option<&'static str> {
    match reply {
        Reply::Text(b"QUEUED") => Some("inside MULTI"),
        Reply::Error(_) if asked.is_operation() => Some("an error"),
        _ => match asked {
            // The script has run before the checks began, or not at all.
            Asked::Script { effects: None } => Some("it did not run, or was not seen"),
            Asked::Script { effects: Some(effects) } if effects.is_empty() => {
                Some("a script that is not known, and has changed no lock")
            }
            _ => None,
        },
    }
}
