//! The same connection at both servers, and what the comparison has to know of it.

use super::compare::{elements, is_push, move_pushes_behind, same, sort_pattern_messages, values};
use super::exclusions::{self, Compare};
use super::link::Link;
use super::step::Step;
use redlatch_core::version::Version;

pub struct Pair {
    pub ours: Link,
    pub theirs: Link,
    /// It has not been answered: it is blocked, and its steps are left out until it is.
    pub waiting: bool,
    /// Messages may come between its replies.
    has_subscribed: bool,
    transaction: Transaction,
}

/// What is known of the transaction that a connection is in.
#[derive(Clone, Default)]
struct Transaction {
    /// How the parts of the reply to EXEC are compared.
    queued: Vec<Compare>,
    /// Whether one of them is no single part of that reply.
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

    /// Whether it cannot be told which reply belongs to which step when several are sent at once.
    pub fn is_asked_singly(&self) -> bool {
        self.has_subscribed || self.transaction.has_unframed
    }

    /// Whether both servers have sent the same; `asked` are the steps that it was asked, if any.
    pub fn agrees(&self, asked: &[Step], version: Version) -> bool {
        if self.ours.closed != self.theirs.closed {
            return false;
        }
        let (ours, theirs) = (&self.ours.received, &self.theirs.received);
        match asked {
            _ if ours == theirs => true,
            [] => self.same_values(None, version),
            [step] => {
                // Before 7.2 the messages of a client's own commands came within the reply to EXEC.
                let mixed = || version < Version::V7_2 && memchr::memmem::find(theirs, b"\r\n>").is_some();
                if step.command() == "EXEC" && (self.transaction.has_unframed || mixed()) {
                    return same(ours, theirs, Compare::Kind);
                }
                same(ours, theirs, step.compare) || self.same_values(Some(step), version)
            }
            _ => self.same_replies(asked),
        }
    }

    /// Whether the messages are the same, and the reply to a step among them.
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

    /// Whether several steps got the same replies.
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

    /// What was received is done with. Gives the number of values beyond the replies to what was asked.
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

    /// What each server has sent and has not been consumed, for people.
    pub fn shown(&self) -> (Vec<u8>, Vec<u8>) {
        let shown = |link: &Link| {
            let end: &[u8] = if link.closed { b"(closed)" } else { b"" };
            [&link.received, end].concat()
        };
        (shown(&self.ours), shown(&self.theirs))
    }
}

impl Transaction {
    /// Whether the replies to a step are the same: for EXEC, every part as its command asks.
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

    /// The reply to a step tells whether it was queued, or ended the transaction.
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
