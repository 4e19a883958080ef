//! The bytes on their way to one client, in the order in which the client gets them.
//!
//! A request opens a reply behind everything that is on its way already, and closes it when it is complete. Messages of
//! others go straight to the end; messages that a request causes for its own client wait until its reply is closed, for
//! they follow it. A test can lose, replace, cut or hold a reply, or hold a message; what is held holds back everything
//! behind it, as a TCP stream does.

use std::collections::VecDeque;

use crate::stages::{ReplyEffect, Ticket, Until};
use crate::version::Version;
use crate::wire::{Protocol, Reply};

/// The output of one session.
#[derive(Debug)]
pub struct Output {
    /// Everything that the driver has not taken, held bytes included.
    bytes: Reply,
    /// Messages that the running request caused for its own client.
    own_pushes: Vec<u8>,
    /// How much of `bytes` is in the trace already.
    traced: usize,
    interference: Option<Box<Interference>>,
}

/// What a test does to the output. Most sessions have none.
#[derive(Debug, Default)]
struct Interference {
    /// What is to happen to the next reply, in this order.
    effects: Vec<ReplyEffect>,
    /// Where held bytes begin, first to last.
    held: VecDeque<Held>,
    /// From this byte on nothing reaches the client any more.
    lost_from: Option<usize>,
}

/// Bytes from `at` on stay until the ticket is given back.
#[derive(Debug)]
struct Held {
    at: usize,
    ticket: Ticket,
}

/// A reply that is being written, behind everything that was on its way before.
#[derive(Debug)]
pub struct OpenReply {
    pub reply: Reply,
    /// Where the reply begins.
    pub start: usize,
}

impl OpenReply {
    /// Takes back what was written of the reply.
    pub fn discard(&mut self) {
        self.reply.truncate(self.start);
    }

    /// Returns the bytes of the reply so far.
    pub fn bytes(&self) -> &[u8] {
        &self.reply.as_bytes()[self.start..]
    }
}

impl Output {
    pub fn new(version: Version) -> Output {
        Output {
            bytes: Reply::new(Protocol::Resp2, version),
            own_pushes: Vec::new(),
            traced: 0,
            interference: None,
        }
    }

    pub fn protocol(&self) -> Protocol {
        self.bytes.protocol
    }

    /// Returns how many bytes the driver has not taken, held ones included.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    // ---- writing -------------------------------------------------------------------------------------------------

    pub fn open(&mut self) -> OpenReply {
        let reply = self.bytes.take();
        OpenReply { start: reply.len(), reply }
    }

    /// The reply is complete. What others wrote meanwhile follows it, then the messages that its request caused.
    pub fn close(&mut self, open: OpenReply) {
        self.put_back(open);
        self.bytes.raw(&std::mem::take(&mut self.own_pushes));
    }

    /// Returns the reply will be completed later: returns what there is of it.
    pub fn suspend(&mut self, mut open: OpenReply) -> Vec<u8> {
        let begun = open.bytes().to_vec();
        open.discard();
        self.put_back(open);
        begun
    }

    fn put_back(&mut self, open: OpenReply) {
        let meanwhile = std::mem::replace(&mut self.bytes, open.reply);
        self.bytes.raw(meanwhile.as_bytes());
    }

    /// Writes behind everything: a message of another client, or an error that answers no request.
    pub fn append(&mut self, write: impl FnOnce(&mut Reply)) {
        write(&mut self.bytes);
    }

    /// Keeps a message that the running request causes for its own client.
    pub fn append_own(&mut self, push: &[u8]) {
        self.own_pushes.extend_from_slice(push);
    }

    /// Returns the messages that the running request has caused for its own client so far.
    pub fn take_own(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.own_pushes)
    }

    /// Takes back what was written after the output was `len` bytes long.
    pub fn take_back(&mut self, len: usize) -> Vec<u8> {
        let taken = self.bytes.as_bytes().get(len..).unwrap_or_default().to_vec();
        self.bytes.truncate(len);
        taken
    }

    /// The connection ends at once: nothing more is sent.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    // ---- interference --------------------------------------------------------------------------------------------

    fn interference(&mut self) -> &mut Interference {
        self.interference.get_or_insert_default()
    }

    /// Says what is to happen to the next reply.
    pub fn expect_effects(&mut self, effects: Vec<ReplyEffect>) {
        if !effects.is_empty() {
            self.interference().effects = effects;
        }
    }

    /// Applies what is to happen to a reply that is complete. `hold` gives the ticket for bytes to be held. Returns whether
    /// the connection ends.
    pub fn apply_effects(
        &mut self,
        open: &mut OpenReply,
        mut hold: impl FnMut(Until, &[u8]) -> Ticket,
    ) -> bool {
        let Some(interference) = &mut self.interference else { return false };
        let mut closes = false;
        for effect in std::mem::take(&mut interference.effects) {
            match effect {
                ReplyEffect::Lose => {
                    open.discard();
                    interference.lost_from.get_or_insert(open.start);
                }
                ReplyEffect::Replace(bytes) => {
                    open.discard();
                    open.reply.raw(&bytes);
                }
                ReplyEffect::CloseAfter(len) => {
                    open.reply.truncate(open.start + len);
                    closes = true;
                }
                ReplyEffect::Hold(until) => {
                    let ticket = hold(until, open.bytes());
                    interference.held.push_back(Held { at: open.start, ticket });
                }
            }
        }
        closes
    }

    /// Holds everything that is written from here on.
    pub fn hold(&mut self, ticket: Ticket) {
        let at = self.len();
        self.interference().held.push_back(Held { at, ticket });
    }

    /// Gives back a ticket: its bytes may go, and those behind it up to the next held ones.
    pub fn release(&mut self, ticket: Ticket) {
        if let Some(interference) = &mut self.interference {
            interference.held.retain(|held| held.ticket != ticket);
        }
    }

    pub fn is_holding(&self) -> bool {
        self.interference.as_ref().is_some_and(|interference| !interference.held.is_empty())
    }

    // ---- reading -------------------------------------------------------------------------------------------------

    /// Returns how many bytes the driver may take.
    pub fn ready_len(&self) -> usize {
        let Some(interference) = &self.interference else { return self.len() };
        let held_at = interference.held.front().map(|held| held.at);
        held_at.into_iter().chain(interference.lost_from).min().map_or(self.len(), |at| at.min(self.len()))
    }

    /// Moves the bytes that the driver may take behind what `into` holds.
    pub fn take_ready(&mut self, into: &mut Vec<u8>) {
        let len = self.ready_len();
        if let Some(interference) = &mut self.interference {
            interference.held.iter_mut().for_each(|held| held.at -= len.min(held.at));
            if let Some(at) = &mut interference.lost_from {
                self.bytes.truncate(*at);
                *at -= len;
            }
        }
        self.traced = self.traced.saturating_sub(len);
        let buffer = self.bytes.buffer_mut();
        if len == buffer.len() && into.is_empty() {
            std::mem::swap(buffer, into);
        } else {
            into.extend(buffer.drain(..len));
        }
    }

    /// Returns whether there are bytes that the trace does not have.
    pub fn has_untraced(&mut self) -> bool {
        self.traced = self.traced.min(self.len());
        self.traced < self.len()
    }

    /// Returns the bytes that the trace does not have; it has them from now on.
    pub fn take_untraced(&mut self) -> &[u8] {
        let from = std::mem::replace(&mut self.traced, self.bytes.len());
        self.bytes.as_bytes().get(from..).unwrap_or_default()
    }
}
