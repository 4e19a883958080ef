//! Gates hold matching requests, replies and messages; each held item has a ticket that releases it.

use std::collections::VecDeque;

use super::args::{Args, SimError, syntax};
use super::matching::{Match, Subject};
use redlatch_core::image::{Reader, Words, named};
use redlatch_core::wire::request::split_words;
use redlatch_core::world::{ConnId, World};

/// The point at which a gate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the request runs.
    Pre,
    /// Before its reply is sent.
    Post,
    /// Before a message is sent to a subscriber.
    Push,
}

pub const PLACES: [(&str, At); 3] = [("PRE", At::Pre), ("POST", At::Post), ("PUSH", At::Push)];

impl At {
    /// Returns the name that SIM.GATE has for it.
    pub fn name(self) -> &'static str {
        PLACES.iter().find(|(_, at)| *at == self).map_or("", |(name, _)| name)
    }
}

/// Which requests, replies or messages a gate holds, at which point, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Selects what the gate holds.
    pub matching: Match,
    /// The point at which it holds.
    pub at: At,
    /// How many the gate holds; `None`: all.
    pub times: Option<u64>,
    /// A name for it; may be empty.
    pub label: String,
    /// Whether the gate outlives the connection that added it.
    pub keep: bool,
}

impl Gate {
    /// Creates a gate that holds everything that matches.
    pub fn new(matching: Match, at: At) -> Gate {
        Gate { matching, at, times: None, label: String::new(), keep: false }
    }

    /// Parses `<match> AT PRE|POST|PUSH [TIMES n] [LABEL l] [KEEP]`.
    pub fn parse(args: &mut Args, nodes: usize) -> Result<Gate, SimError> {
        let matching = Match::parse(args, nodes)?;
        if !args.take("AT") {
            return Err(match args.pop() {
                None => syntax("AT and a place are missing"),
                Some(_) => args.not_known(),
            });
        }
        let mut gate = Gate::new(matching, args.one_of("a place", &PLACES)?);
        while let Some(arg) = args.pop() {
            match &arg.to_ascii_uppercase()[..] {
                b"TIMES" => gate.times = Some(args.int("TIMES", 1, i64::MAX)? as u64),
                b"LABEL" => gate.label = args.text("a label")?,
                b"KEEP" => gate.keep = true,
                _ => return Err(args.not_known()),
            }
        }
        gate.matching.check(gate.at == At::Push)?;
        Ok(gate)
    }
}

impl Gate {
    /// Parses a gate as it is displayed. Returns `None` if it is none.
    pub(super) fn from_text(text: &[u8], nodes: usize) -> Option<Gate> {
        let words = split_words(text)?;
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        Gate::parse(&mut Args::new(&words), nodes).ok()
    }
}

impl std::fmt::Display for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.matching.clauses.is_empty() {
            write!(f, "{} ", self.matching)?;
        }
        write!(f, "AT {}", self.at.name())
    }
}

/// A gate in effect.
#[derive(Clone, Debug)]
pub struct Active {
    pub id: u64,
    pub gate: Gate,
    /// How often all clauses but NTH matched.
    matched: u64,
    pub held: u64,
    /// The connection that added it, if a connection did.
    owner: Option<ConnId>,
}

/// A held request, reply or message: a gate holds it, or a delay that is not over.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub id: u64,
    pub gate: Option<u64>,
    pub conn: ConnId,
    pub at: At,
    pub summary: String,
}

/// All gates, and everything they hold.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    active: Vec<Active>,
    tickets: Vec<Ticket>,
    last_gate: u64,
    last_ticket: u64,
    /// The number and the label of gates that were removed with the connections that had added them.
    left: VecDeque<(u64, String)>,
}

/// How many removed gates are remembered for error texts.
const KEPT_LEFT: usize = 100;

impl Gates {
    /// Returns whether the gate with this number or label was removed with the connection that had added it.
    pub fn has_left(&self, name: &str) -> bool {
        self.left.iter().any(|(id, label)| id.to_string() == name || !name.is_empty() && label == name)
    }

    /// Notes that a gate is removed with its connection.
    pub fn note_left(&mut self, gate: u64) {
        let Some(active) = self.active.iter().find(|active| active.id == gate) else { return };
        if self.left.len() == KEPT_LEFT {
            self.left.pop_front();
        }
        self.left.push_back((gate, active.gate.label.clone()));
    }

    /// Adds a gate and returns its number. `owner`: the connection that added it.
    pub fn add(&mut self, gate: Gate, owner: Option<ConnId>) -> u64 {
        self.last_gate += 1;
        self.active.push(Active { id: self.last_gate, gate, matched: 0, held: 0, owner });
        self.last_gate
    }

    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Active> {
        self.active.iter()
    }

    /// Returns the gate with this number or label.
    pub fn find(&self, name: &str) -> Option<u64> {
        let named =
            |active: &&Active| active.id.to_string() == name || !name.is_empty() && active.gate.label == name;
        self.active.iter().find(named).map(|active| active.id)
    }

    /// Removes a gate. Its tickets stay until they are released.
    pub fn remove(&mut self, gate: u64) -> bool {
        let before = self.active.len();
        self.active.retain(|active| active.id != gate);
        before != self.active.len()
    }

    /// Returns lines that bring it to this state.
    pub(super) fn image(&self, lines: &mut Vec<Words>) {
        for Active { id, gate, matched, held, owner } in &self.active {
            let line = Words::about("GATE").value(id).value(matched).value(held).option(gate.times);
            let line = line.flag(gate.keep).word(gate.label.as_bytes()).option(owner.map(|conn| conn.node));
            let line = line.option(owner.map(|conn| conn.session.number));
            lines.push(line.value(gate));
        }
        for Ticket { id, gate, conn, at, summary } in &self.tickets {
            let line = Words::about("TICKET").value(id).option(*gate).value(conn.node);
            lines.push(line.value(conn.session.number).word(at.name().as_bytes()).word(summary.as_bytes()));
        }
        lines.extend(
            self.left.iter().map(|(id, label)| Words::about("LEFT").value(id).word(label.as_bytes())),
        );
        if self.last_gate + self.last_ticket > 0 {
            lines.push(Words::about("GATES").value(self.last_gate).value(self.last_ticket));
        }
    }

    /// Takes such a line. Returns `None` if it is malformed, or names a client that is not there.
    pub(super) fn take_image(&mut self, what: &[u8], line: &mut Reader, world: &World) -> Option<()> {
        match what {
            b"GATE" => {
                let (id, matched, held, times) =
                    (line.value()?, line.value()?, line.value()?, line.option()?);
                let (keep, label) = (line.flag()?, line.text()?);
                let (node, number) = (line.option()?, line.option()?);
                // The gate may outlive its owner.
                let owner = node.zip(number).and_then(|(node, number)| world.conn(node, number));
                let gate = Gate { times, keep, label, ..Gate::from_text(line.word()?, world.nodes().len())? };
                self.active.push(Active { id, gate, matched, held, owner });
            }
            b"TICKET" => {
                let (id, gate) = (line.value()?, line.option()?);
                let conn = world.conn(line.value()?, line.value()?)?;
                let (at, summary) = (named(&PLACES, line.word()?)?, line.text()?);
                self.tickets.push(Ticket { id, gate, conn, at, summary });
            }
            b"LEFT" => self.left.push_back((line.value()?, line.text()?)),
            _ => (self.last_gate, self.last_ticket) = (line.value()?, line.value()?),
        }
        Some(())
    }

    /// Returns the gates that have to be removed when this connection closes.
    pub fn owned_by(&self, conn: ConnId) -> Vec<u64> {
        let owned = self.active.iter().filter(|active| active.owner == Some(conn) && !active.gate.keep);
        owned.map(|active| active.id).collect()
    }

    /// Returns the first gate at this point that matches, and counts the match.
    pub fn decide(&mut self, subject: &Subject, at: At) -> Option<u64> {
        for active in &mut self.active {
            let Gate { matching, times, .. } = &active.gate;
            if active.gate.at != at
                || times.is_some_and(|times| active.held >= times)
                || !matching.matches(subject)
            {
                continue;
            }
            active.matched += 1;
            if matching.nth().is_none_or(|nth| nth == active.matched) {
                active.held += 1;
                return Some(active.id);
            }
        }
        None
    }

    /// Creates a ticket and returns its number. `gate`: the gate that holds it; `None` for a delay.
    pub fn hold(&mut self, gate: Option<u64>, conn: ConnId, at: At, summary: String) -> u64 {
        self.last_ticket += 1;
        self.tickets.push(Ticket { id: self.last_ticket, gate, conn, at, summary });
        self.last_ticket
    }

    /// Returns all tickets, oldest first.
    pub fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.tickets.iter()
    }

    /// Returns the tickets that a gate holds, oldest first.
    pub fn held_by(&self, gate: u64) -> impl Iterator<Item = u64> {
        self.tickets.iter().filter(move |ticket| ticket.gate == Some(gate)).map(|ticket| ticket.id)
    }

    /// Removes and returns a ticket.
    pub fn take(&mut self, ticket: u64) -> Option<Ticket> {
        let at = self.tickets.iter().position(|known| known.id == ticket)?;
        Some(self.tickets.remove(at))
    }

    /// Discards the tickets of a connection that has closed.
    pub fn forget(&mut self, conn: ConnId) {
        self.tickets.retain(|ticket| ticket.conn != conn);
    }
}
