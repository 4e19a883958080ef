//! The bytes on their way to one client, in the order in which the client receives them.
//!
//! A request opens a reply after all output that is already on its way, and closes the reply when it is complete.
//! Messages caused by other clients are appended at once. Messages that a request causes for its own client wait until
//! its reply is closed, because they follow it. A test can lose, replace, cut off or hold a reply, or hold a message.
//! Held output delays everything after it, as in a TCP stream.

use std::collections::VecDeque;

use crate::image::{Reader, Words};
use crate::stages::{ReplyEffect, Ticket, Until};
use crate::version::Version;
use crate::wire::{Protocol, Reply};

/// The output of one session.
#[derive(Clone, Debug)]
pub struct Output {
    /// All bytes that the driver has not taken yet, including held ones.
    bytes: Reply,
    /// The messages that the running request has caused for its own client.
    own_pushes: Vec<u8>,
    /// How many of `bytes` the trace already contains.
    traced: usize,
    interference: Option<Box<Interference>>,
}

/// A test's interference with the output. Most sessions have none.
#[derive(Clone, Debug, Default)]
struct Interference {
    /// The effects on the next reply, in the order in which they apply.
    effects: Vec<ReplyEffect>,
    /// The held ranges, first to last.
    held: VecDeque<Held>,
    /// The offset from which on the client receives nothing more.
    lost_from: Option<usize>,
}

/// Output that is held from `at` on, until its ticket is released.
#[derive(Clone, Debug)]
struct Held {
    at: usize,
    ticket: Ticket,
}

/// A reply that is being written, after all output that was already on its way.
#[derive(Debug)]
pub struct OpenReply {
    pub reply: Reply,
    /// The offset at which the reply begins.
    pub start: usize,
}

impl OpenReply {
    /// Discards everything written to the reply so far.
    pub fn discard(&mut self) {
        self.reply.truncate(self.start);
    }

    /// Returns the bytes written to the reply so far.
    pub fn bytes(&self) -> &[u8] {
        &self.reply.as_bytes()[self.start..]
    }
}

impl Output {
    /// Creates an empty output.
    pub fn new(version: Version) -> Output {
        Output {
            bytes: Reply::new(Protocol::Resp2, version),
            own_pushes: Vec::new(),
            traced: 0,
            interference: None,
        }
    }

    /// Returns the protocol of the client.
    pub fn protocol(&self) -> Protocol {
        self.bytes.protocol
    }

    /// Returns how many bytes the driver has not taken yet, including held ones.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the driver has taken everything.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    // ---- writing -------------------------------------------------------------------------------------------------

    /// Opens a reply.
    pub fn open(&mut self) -> OpenReply {
        let reply = self.bytes.take();
        OpenReply { start: reply.len(), reply }
    }

    /// Closes a complete reply. The messages that others wrote meanwhile follow it, then those that its request caused.
    pub fn close(&mut self, open: OpenReply) {
        self.put_back(open);
        self.bytes.raw(&std::mem::take(&mut self.own_pushes));
    }

    /// Closes a reply that will be completed later. Returns the part written so far.
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

    /// Appends to the output: a message from another client, or an error that answers no request.
    pub fn append(&mut self, write: impl FnOnce(&mut Reply)) {
        write(&mut self.bytes);
    }

    /// Stores a message that the running request causes for its own client.
    pub fn append_own(&mut self, push: &[u8]) {
        self.own_pushes.extend_from_slice(push);
    }

    /// Takes the messages that the running request has caused for its own client so far.
    pub fn take_own(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.own_pushes)
    }

    /// Removes and returns everything after the first `len` bytes of the output.
    pub fn take_back(&mut self, len: usize) -> Vec<u8> {
        let taken = self.bytes.as_bytes().get(len..).unwrap_or_default().to_vec();
        self.bytes.truncate(len);
        taken
    }

    /// Drops all output, because the connection is being killed.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    // ---- interference --------------------------------------------------------------------------------------------

    fn interference(&mut self) -> &mut Interference {
        self.interference.get_or_insert_default()
    }

    /// Sets the effects on the next reply.
    pub fn expect_effects(&mut self, effects: Vec<ReplyEffect>) {
        if !effects.is_empty() {
            self.interference().effects = effects;
        }
    }

    /// Applies the effects to a complete reply. `hold` returns the ticket for bytes to be held. Returns whether the
    /// connection has to be closed.
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

    /// Holds everything written from here on until the ticket is released.
    pub fn hold(&mut self, ticket: Ticket) {
        let at = self.len();
        self.interference().held.push_back(Held { at, ticket });
    }

    /// Releases the output held under a ticket, up to the next held output.
    pub fn release(&mut self, ticket: Ticket) {
        if let Some(interference) = &mut self.interference {
            interference.held.retain(|held| held.ticket != ticket);
        }
    }

    /// Returns whether the client receives nothing more.
    pub fn is_cut(&self) -> bool {
        self.interference.as_ref().is_some_and(|interference| interference.lost_from.is_some())
    }

    /// Returns whether any output is held.
    pub fn is_holding(&self) -> bool {
        self.interference.as_ref().is_some_and(|interference| !interference.held.is_empty())
    }

    // ---- images ----------------------------------------------------------------------------------------------------

    /// Returns whether a test has interfered with this output, or will with the next reply.
    pub(super) fn is_interfered_with(&self) -> bool {
        self.interference.is_some()
    }

    /// Adds the interference, and the bytes that are held or lost, to a line.
    pub(super) fn image(&self, line: Words) -> Words {
        let ready = self.ready_len();
        let Some(interference) = &self.interference else { return line };
        let line = line.word(self.bytes.as_bytes().get(ready..).unwrap_or_default());
        let line = line.option(interference.lost_from.map(|at| at.saturating_sub(ready)));
        let line = line.value(interference.held.len());
        let line = (interference.held.iter())
            .fold(line, |line, held| line.value(held.at.saturating_sub(ready)).value(held.ticket));
        interference.effects.iter().fold(line, |line, effect| match effect {
            ReplyEffect::Lose => line.word(b"LOSE"),
            ReplyEffect::Replace(bytes) => line.word(b"REPLACE").word(bytes),
            ReplyEffect::CloseAfter(len) => line.word(b"CLOSE").value(len),
            ReplyEffect::Hold(Until::Released(gate)) => line.word(b"GATE").value(gate),
            ReplyEffect::Hold(Until::Passed(ms)) => line.word(b"DELAY").value(ms),
        })
    }

    /// Takes such a line. What the driver may take stays, and a trace contains everything already.
    pub(super) fn take_image(&mut self, line: &mut Reader) -> Option<()> {
        let ready = self.ready_len();
        self.bytes.truncate(ready);
        self.bytes.raw(line.word()?);
        self.traced = self.bytes.len();
        let mut interference = Interference {
            lost_from: line.option()?.map(|at: usize| at.saturating_add(ready)),
            ..Interference::default()
        };
        for _ in 0..line.value()? {
            let (at, ticket): (usize, Ticket) = (line.value()?, line.value()?);
            interference.held.push_back(Held { at: at.saturating_add(ready), ticket });
        }
        while let Some(word) = line.word() {
            interference.effects.push(match word {
                b"LOSE" => ReplyEffect::Lose,
                b"REPLACE" => ReplyEffect::Replace(line.word()?.to_vec()),
                b"CLOSE" => ReplyEffect::CloseAfter(line.value()?),
                b"GATE" => ReplyEffect::Hold(Until::Released(line.value()?)),
                b"DELAY" => ReplyEffect::Hold(Until::Passed(line.value()?)),
                _ => return None,
            });
        }
        self.interference = Some(Box::new(interference));
        Some(())
    }

    // ---- reading -------------------------------------------------------------------------------------------------

    /// Returns how many bytes are held. Unlike [`len`](Self::len) it does not depend on what the driver has taken.
    pub fn held_len(&self) -> usize {
        let Some(Interference { held, lost_from, .. }) = self.interference.as_deref() else { return 0 };
        let end = lost_from.map_or(self.len(), |at| at.min(self.len()));
        held.front().map_or(0, |held| end.saturating_sub(held.at))
    }

    /// Returns how many bytes the driver may take.
    pub fn ready_len(&self) -> usize {
        let Some(interference) = &self.interference else { return self.len() };
        let held_at = interference.held.front().map(|held| held.at);
        held_at.into_iter().chain(interference.lost_from).min().map_or(self.len(), |at| at.min(self.len()))
    }

    /// Moves the bytes that the driver may take to the end of `into`.
    pub fn take_ready(&mut self, into: &mut Vec<u8>) {
        let len = self.ready_len();
        if let Some(interference) = &mut self.interference {
            interference.held.iter_mut().for_each(|held| held.at -= len.min(held.at));
            if let Some(at) = &mut interference.lost_from {
                self.bytes.truncate(*at);
                *at -= len;
            }
        }
        // What a lost connection drops was traced, and does not count any more.
        self.traced = self.traced.min(self.bytes.len());
        self.traced = self.traced.saturating_sub(len);
        let buffer = self.bytes.buffer_mut();
        if len == buffer.len() && into.is_empty() {
            std::mem::swap(buffer, into);
        } else {
            into.extend(buffer.drain(..len));
        }
    }

    /// Returns whether there are bytes that the trace does not contain yet.
    pub fn has_untraced(&mut self) -> bool {
        self.traced = self.traced.min(self.len());
        self.traced < self.len()
    }

    /// Returns the bytes that the trace does not contain yet, and counts them as traced.
    pub fn take_untraced(&mut self) -> &[u8] {
        let from = std::mem::replace(&mut self.traced, self.bytes.len());
        self.bytes.as_bytes().get(from..).unwrap_or_default()
    }
}
