//! Gates hold what matches; each thing that is held has a ticket by which it is let go.

use super::matching::{Match, Subject};
use super::words::{SimError, Words, syntax};
use redlatch_core::world::ConnId;

/// Where a gate stands.
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
    /// The place as SIM.GATE names it.
    pub fn name(self) -> &'static str {
        PLACES.iter().find(|(_, at)| *at == self).map_or("", |(name, _)| name)
    }
}

/// What a gate holds, where, how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// What it holds.
    pub matching: Match,
    /// Where it holds it.
    pub at: At,
    /// How many it holds; `None`: all.
    pub times: Option<u64>,
    /// A name for it; may be empty.
    pub label: String,
    /// It outlives the connection that made it.
    pub keep: bool,
}

impl Gate {
    /// A gate that holds everything that matches.
    pub fn new(matching: Match, at: At) -> Gate {
        Gate { matching, at, times: None, label: String::new(), keep: false }
    }

    /// `<match> AT PRE|POST|PUSH [TIMES n] [LABEL l] [KEEP]`
    pub fn parse(words: &mut Words, nodes: usize) -> Result<Gate, SimError> {
        let matching = Match::parse(words, nodes)?;
        if !words.take("AT") {
            return Err(match words.pop() {
                None => syntax("AT and a place are missing"),
                Some(_) => words.not_known(),
            });
        }
        let mut gate = Gate::new(matching, words.one_of("a place", &PLACES)?);
        while let Some(word) = words.pop() {
            match &word.to_ascii_uppercase()[..] {
                b"TIMES" => gate.times = Some(words.int("TIMES", 1, i64::MAX)? as u64),
                b"LABEL" => gate.label = words.text("a label")?,
                b"KEEP" => gate.keep = true,
                _ => return Err(words.not_known()),
            }
        }
        gate.matching.check(gate.at == At::Push)?;
        Ok(gate)
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

#[derive(Clone, Debug)]
pub struct Active {
    pub id: u64,
    pub gate: Gate,
    fitted: u64,
    pub held: u64,
    /// The connection that made it, if a connection did.
    owner: Option<ConnId>,
}

/// Something that is held: by a gate, or by a delay until its time has come.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub id: u64,
    pub gate: Option<u64>,
    pub conn: ConnId,
    pub at: At,
    pub summary: String,
}

/// All gates, and what they hold.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    active: Vec<Active>,
    tickets: Vec<Ticket>,
    last_gate: u64,
    last_ticket: u64,
}

impl Gates {
    pub fn add(&mut self, gate: Gate, owner: Option<ConnId>) -> u64 {
        self.last_gate += 1;
        self.active.push(Active { id: self.last_gate, gate, fitted: 0, held: 0, owner });
        self.last_gate
    }

    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Active> {
        self.active.iter()
    }

    /// The gate that a word names: by number or by label.
    pub fn find(&self, name: &str) -> Option<u64> {
        let named =
            |active: &&Active| active.id.to_string() == name || !name.is_empty() && active.gate.label == name;
        self.active.iter().find(named).map(|active| active.id)
    }

    /// Takes a gate away; what it holds is still held.
    pub fn remove(&mut self, gate: u64) -> bool {
        let before = self.active.len();
        self.active.retain(|active| active.id != gate);
        before != self.active.len()
    }

    /// The gates that go with the connection that made them.
    pub fn owned_by(&self, conn: ConnId) -> Vec<u64> {
        let owned = self.active.iter().filter(|active| active.owner == Some(conn) && !active.gate.keep);
        owned.map(|active| active.id).collect()
    }

    /// The first gate at this place that fits.
    pub fn decide(&mut self, subject: &Subject, at: At) -> Option<u64> {
        for active in &mut self.active {
            let Gate { matching, times, .. } = &active.gate;
            if active.gate.at != at
                || times.is_some_and(|times| active.held >= times)
                || !matching.fits(subject)
            {
                continue;
            }
            active.fitted += 1;
            if matching.nth().is_none_or(|nth| nth == active.fitted) {
                active.held += 1;
                return Some(active.id);
            }
        }
        None
    }

    pub fn hold(&mut self, gate: Option<u64>, conn: ConnId, at: At, summary: String) -> u64 {
        self.last_ticket += 1;
        self.tickets.push(Ticket { id: self.last_ticket, gate, conn, at, summary });
        self.last_ticket
    }

    /// What is held, oldest first.
    pub fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.tickets.iter()
    }

    pub fn held_by(&self, gate: u64) -> impl Iterator<Item = u64> {
        self.tickets.iter().filter(move |ticket| ticket.gate == Some(gate)).map(|ticket| ticket.id)
    }

    pub fn take(&mut self, ticket: u64) -> Option<Ticket> {
        let at = self.tickets.iter().position(|known| known.id == ticket)?;
        Some(self.tickets.remove(at))
    }

    /// The connection is gone, and what was held of it.
    pub fn forget(&mut self, conn: ConnId) {
        self.tickets.retain(|ticket| ticket.conn != conn);
    }
}
