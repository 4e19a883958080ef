//! A connection to each server, and the state that comparing their replies needs.

use super::compare::{elements, is_push, move_pushes_behind, same, sort_pattern_messages, values};
use super::exclusions::{self, Compare};
use super::link::Link;
use super::step::Step;
use redlatch_core::version::Version;

pub struct Pair {
    pub ours: Link,
    pub theirs: Link,
    /// Whether the connection is blocked. Its steps are skipped until it has a reply.
    pub waiting: bool,
    /// Whether messages may come between the replies.
    has_subscribed: bool,
    transaction: Transaction,
}

/// The transaction of a connection.
#[derive(Clone, Default)]
struct Transaction {
    /// How the elements of the reply to EXEC are compared.
    queued: Vec<Compare>,
    /// Whether a queued command does not add exactly one element to that reply.
    has_unframed: bool,
}

impl Pair {
    pub fn new(ours: Link, theirs: Link) -> Pair {
        Pair { ours, theirs, waiting: false, has_subscribed: false, transaction: Transaction::default() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.ours.send(bytes);
        self.theirs.send(bytes);
    }

    /// Returns whether steps have to be sent one by one, because replies could not be assigned to steps otherwise.
    pub fn is_asked_singly(&self) -> bool {
        self.has_subscribed || self.transaction.has_unframed
    }

    /// Returns whether both servers have sent the same. `asked`: the steps sent on this connection.
    pub fn agrees(&self, asked: &[Step], version: Version) -> bool {
        if self.ours.closed != self.theirs.closed {
            return false;
        }
        let (ours, theirs) = (&self.ours.received, &self.theirs.received);
        match asked {
            _ if ours == theirs => true,
            [] => self.same_values(None, version),
            [step] => {
                // Before 7.2 a client receives messages of its own commands within the reply to EXEC.
                let mixed = || version < Version::V7_2 && memchr::memmem::find(theirs, b"\r\n>").is_some();
                if step.command() == "EXEC" && (self.transaction.has_unframed || mixed()) {
                    return same(ours, theirs, Compare::Kind);
                }
                same(ours, theirs, step.compare) || self.same_values(Some(step), version)
            }
            _ => self.same_replies(asked),
        }
    }

    /// Returns whether the messages, and the reply to a step among them, are the same.
    fn same_values(&self, step: Option<&Step>, version: Version) -> bool {
        let (mut ours, mut theirs) = (values(&self.ours.received), values(&self.theirs.received));
        sort_pattern_messages(&mut ours);
        sort_pattern_messages(&mut theirs);
        if version < Version::V7_2 {
            move_pushes_behind(&mut ours);
            move_pushes_behind(&mut theirs);
        }
        let same_value = |ours: &[u8], theirs: &[u8]| match step {
            Some(step) if !is_push(theirs) => self.transaction.same(step, ours, theirs),
            _ => ours == theirs,
        };
        ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(ours, theirs)| same_value(ours, theirs))
    }

    /// Returns whether several steps got the same replies from both servers.
    fn same_replies(&self, asked: &[Step]) -> bool {
        let (ours, theirs) = (values(&self.ours.received), values(&self.theirs.received));
        let mut transaction = self.transaction.clone();
        let mut same = |step: &Step, ours: &[u8], theirs: &[u8]| {
            let same = transaction.same(step, ours, theirs);
            transaction.go_on(step, theirs);
            same
        };
        ours.len() == theirs.len()
            && theirs.len() <= asked.len()
            && asked
                .iter()
                .zip(ours.iter().zip(&theirs))
                .all(|(step, (ours, theirs))| same(step, ours, theirs))
    }

    /// Discards what was received. Returns the number of values besides the replies to the steps.
    pub fn consume(&mut self, asked: &[Step]) -> usize {
        let received = std::mem::take(&mut self.theirs.received);
        self.ours.received.clear();
        let values = values(&received);
        match asked {
            [] if values.iter().any(|value| !is_push(value)) => self.waiting = false,
            [] => {}
            [step] => {
                self.waiting = values.is_empty();
                if let Some(reply) = values.last() {
                    self.transaction.go_on(step, reply);
                }
                match &*step.command() {
                    "RESET" if values.last().copied() == Some(b"+RESET\r\n") => self.has_subscribed = false,
                    command => self.has_subscribed |= command.ends_with("SUBSCRIBE"),
                }
            }
            _ => {
                self.waiting = values.len() < asked.len();
                asked.iter().zip(&values).for_each(|(step, reply)| self.transaction.go_on(step, reply));
            }
        }
        values.len().saturating_sub(asked.len())
    }

    /// Renders what each server has sent and has not been consumed.
    pub fn shown(&self) -> (Vec<u8>, Vec<u8>) {
        let shown = |link: &Link| {
            let end: &[u8] = if link.closed { b"(closed)" } else { b"" };
            [&link.received, end].concat()
        };
        (shown(&self.ours), shown(&self.theirs))
    }
}

impl Transaction {
    /// Returns whether the replies to a step are the same. Compares each element of an EXEC as its command requires.
    fn same(&self, step: &Step, ours: &[u8], theirs: &[u8]) -> bool {
        if same(ours, theirs, step.compare) {
            return true;
        }
        let (ours, theirs) = (elements(ours), elements(theirs));
        step.command() == "EXEC"
            && ours.len() == self.queued.len()
            && theirs.len() == self.queued.len()
            && ours
                .iter()
                .zip(&theirs)
                .zip(&self.queued)
                .all(|((ours, theirs), how)| same(ours, theirs, *how))
    }

    /// Updates the transaction by the reply to a step.
    fn go_on(&mut self, step: &Step, reply: &[u8]) {
        let ends = |command: &str| {
            command == "EXEC" || matches!(command, "DISCARD" | "RESET") && reply.starts_with(b"+")
        };
        if reply == b"+QUEUED\r\n" {
            self.queued.push(step.compare);
            self.has_unframed |= exclusions::UNFRAMED.contains(&&*step.command());
        } else if !self.queued.is_empty() && ends(&step.command()) {
            *self = Transaction::default();
        }
    }
}
