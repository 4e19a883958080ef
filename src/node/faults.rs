//! What fault rules and gates do to the bytes of a session.
//!
//! A reply can be changed, withheld for a while or lost; a message to a subscriber likewise. Bytes keep their order: what
//! is withheld holds back everything behind it on the connection, as a TCP stream does.

use std::collections::VecDeque;

use super::Node;
use super::session::{Session, SessionId};
use crate::control::gates::At;
use crate::control::matching::{Subject, What};
use crate::control::{PushFate, Until};
use crate::wire::Reply;
use crate::world::ConnId;

/// What becomes of the reply to the request that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyEffect {
    /// It is lost, with all that follows on the connection.
    Lose,
    Replace(Vec<u8>),
    /// The connection ends after this many bytes of it.
    CloseAfter(usize),
    Withhold(Until),
}

/// Bytes from `at` on stay where they are until the ticket is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dam {
    at: usize,
    ticket: u64,
}

/// A session that rules have touched.
#[derive(Debug, Default)]
pub struct SessionFaults {
    effects: Vec<ReplyEffect>,
    dams: VecDeque<Dam>,
    /// Nothing reaches the client any more.
    muted: bool,
    /// Nothing that the client sends arrives any more.
    deaf: bool,
}

impl Session {
    fn faults_mut(&mut self) -> &mut SessionFaults {
        self.faults.get_or_insert_default()
    }

    /// Nothing that the client sends arrives any more.
    pub fn deafen(&mut self) {
        self.faults_mut().deaf = true;
    }

    pub fn is_deaf(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.deaf)
    }

    /// What is to become of the next reply, each effect after the other.
    pub fn expect_reply_effects(&mut self, effects: Vec<ReplyEffect>) {
        if !effects.is_empty() {
            self.faults_mut().effects = effects;
        }
    }

    /// Whether bytes are withheld.
    pub fn withholds(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| !faults.dams.is_empty())
    }

    /// How many bytes the driver may take.
    pub fn ready_len(&self) -> usize {
        match &self.faults {
            Some(faults) if faults.muted => 0,
            Some(faults) => faults.dams.front().map_or(self.out.len(), |dam| dam.at),
            None => self.out.len(),
        }
    }

    /// Moves the bytes that the driver may take behind what `into` holds.
    pub fn take_ready(&mut self, into: &mut Vec<u8>) {
        if self.faults.as_ref().is_some_and(|faults| faults.muted) {
            self.out.clear();
        }
        let len = self.ready_len();
        self.traced = self.traced.saturating_sub(len);
        let buffer = self.out.buffer_mut();
        if len == buffer.len() && into.is_empty() {
            std::mem::swap(buffer, into);
            return;
        }
        into.extend(buffer.drain(..len));
        if let Some(faults) = &mut self.faults {
            faults.dams.iter_mut().for_each(|dam| dam.at -= len);
        }
    }
}

impl Node {
    /// A reply that begins at `start` is complete: what is expected of it happens now.
    pub(super) fn apply_reply_effects(&mut self, id: SessionId, reply: &mut Reply, start: usize) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let waits_for_reply = session.blocked.is_some() && reply.len() == start;
        let Some(faults) = session.faults.as_mut().filter(|_| !waits_for_reply) else { return };
        for effect in std::mem::take(&mut faults.effects) {
            match effect {
                ReplyEffect::Lose => {
                    reply.truncate(start);
                    faults.muted = true;
                }
                ReplyEffect::Replace(bytes) => {
                    reply.truncate(start);
                    reply.raw(&bytes);
                }
                ReplyEffect::CloseAfter(len) => {
                    reply.truncate(start + len);
                    session.closing = true;
                }
                ReplyEffect::Withhold(until) => {
                    let conn = ConnId { node: self.index, session: id };
                    let shown = String::from_utf8_lossy(&reply.as_bytes()[start..]).into_owned();
                    let now_ms = self.store.now.mono_ms();
                    let ticket = self.control.borrow_mut().hold(until, conn, At::Post, shown, now_ms);
                    faults.dams.push_back(Dam { at: start, ticket });
                }
            }
        }
    }

    /// A ticket was given back: its bytes, and those behind it up to the next dam, may go.
    pub fn open_dam(&mut self, id: SessionId, ticket: u64) {
        if let Some(faults) = self.sessions.get_mut(id).and_then(|session| session.faults.as_mut()) {
            faults.dams.retain(|dam| dam.ticket != ticket);
        }
        self.sessions.mark_dirty(id);
    }

    /// Delivers a message to one subscriber, as far as rules and gates let it.
    pub(super) fn deliver(&mut self, id: SessionId, channel: &[u8], write: impl Fn(&mut Reply)) {
        if !self.stages_pushes {
            return self.push_to(id, write);
        }
        let Some(session) = self.sessions.get(id) else { return };
        let conn = ConnId { node: self.index, session: id };
        let subject = Subject { conn, name: &session.name, event: self.event, what: What::Push { channel } };
        let fate = self.control.borrow_mut().decide_push(&subject, self.store.now.mono_ms());
        match fate {
            PushFate::Deliver(times) => (0..times).for_each(|_| self.push_to(id, &write)),
            PushFate::Withhold(ticket) => {
                // A message to oneself stands in the same stream, without a place of its own before the reply.
                if let Some(session) = self.sessions.get_mut(id) {
                    let at = session.out.len();
                    session.faults_mut().dams.push_back(Dam { at, ticket });
                    write(&mut session.out);
                    self.sessions.mark_dirty(id);
                }
            }
        }
    }

    /// Takes away what the last request wrote to its client beyond `start`.
    pub fn take_back_reply(&mut self, id: SessionId, start: usize) -> Vec<u8> {
        match self.sessions.get_mut(id) {
            Some(session) => {
                let reply = session.out.as_bytes().get(start..).unwrap_or_default().to_vec();
                session.out.truncate(start);
                reply
            }
            None => Vec::new(),
        }
    }
}
