//! Where two runs part: the first line that differs, with ids and times masked.
//!
//! Two runs of one test have other clients' ids, other connections' numbers and other times. These are replaced by what they have
//! in common: the order in which they first appear. Numbers of replies above [`EXACT`] may differ by as much, because most are
//! times to live.

use std::collections::BTreeMap;
use std::fmt;

use crate::trace::tape::Kind;
use crate::trace::{Conn, Line, Tape};

/// Numbers in replies above this may differ by at most this.
const EXACT: i64 = 100;

/// How many of the last equal lines are shown.
const SHOWN_BEFORE: usize = 3;

/// The most characters of a line that are shown.
const SHOWN_CHARS: usize = 400;

/// The first difference of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The last lines of the first run that both runs have.
    pub before: Vec<String>,
    /// The event and the line of each run, masked; `None`: the run has ended.
    pub sides: [Option<(u64, String)>; 2],
}

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.before.is_empty() {
            writeln!(f, "the last lines of both:")?;
            self.before.iter().try_for_each(|line| writeln!(f, "  {}", shorten(line)))?;
        }
        for (name, side) in ["A", "B"].iter().zip(&self.sides) {
            match side {
                Some((event, line)) => writeln!(f, "{name}, event {event}:\n  {}", shorten(line))?,
                None => writeln!(f, "{name}: the run has ended")?,
            }
        }
        Ok(())
    }
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

impl Parting {
    /// Returns the first difference of two traces, or `None` if there is none.
    ///
    /// # Errors
    /// Which line of which trace cannot be read.
    pub fn of(a: &Tape, b: &Tape) -> Result<Option<Parting>, String> {
        let mut sides = [Side::new("A", a), Side::new("B", b)];
        let mut before: Vec<String> = Vec::new();
        loop {
            let [one, other] = &mut sides;
            let (one, other) = (one.next()?, other.next()?);
            let is_same = match (&one, &other) {
                (None, None) => return Ok(None),
                (Some(one), Some(other)) => one.is_like(other),
                _ => false,
            };
            if !is_same {
                let show = |masked: Option<Masked>| masked.map(|masked| (masked.event, masked.to_string()));
                return Ok(Some(Parting { before, sides: [show(one), show(other)] }));
            }
            if before.len() == SHOWN_BEFORE {
                before.remove(0);
            }
            before.extend(one.map(|masked| masked.to_string()));
        }
    }
}

/// A line without what differs from run to run.
#[derive(Clone, Debug)]
struct Masked {
    event: u64,
    /// The client, by the order of connections, and the kind of the line.
    who: String,
    /// The words of a request, or the lines of a reply.
    words: Vec<String>,
    is_reply: bool,
}

impl Masked {
    fn is_like(&self, other: &Masked) -> bool {
        let are_near = |(a, b): (&String, &String)| a == b || self.is_reply && is_about_the_same(a, b);
        self.who == other.who
            && self.words.len() == other.words.len()
            && self.words.iter().zip(&other.words).all(are_near)
    }
}

impl fmt::Display for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.who, self.words.join(" ").escape_debug())
    }
}

fn is_about_the_same(a: &str, b: &str) -> bool {
    let number = |text: &str| text.trim_start_matches(':').parse::<i64>().ok();
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a > EXACT && b > EXACT && (a - b).abs() <= EXACT,
        _ => false,
    }
}

/// One of the two traces.
struct Side<'a> {
    name: &'static str,
    tape: &'a Tape<'a>,
    at: usize,
    clients: BTreeMap<Conn, usize>,
    ids: BTreeMap<String, usize>,
}

impl<'a> Side<'a> {
    fn new(name: &'static str, tape: &'a Tape<'a>) -> Side<'a> {
        Side { name, tape, at: 0, clients: BTreeMap::new(), ids: BTreeMap::new() }
    }

    /// Returns the next line that says what a run does: no header, hash or slice.
    fn next(&mut self) -> Result<Option<Masked>, String> {
        while let Some(row) = self.tape.rows().get(self.at) {
            self.at += 1;
            if matches!(row.kind, Kind::Head | Kind::Digest | Kind::End) {
                continue;
            }
            let line = self
                .tape
                .line(self.at - 1)
                .map_err(|error| format!("{}, line {}: {error}", self.name, self.at))?;
            if let Some((who, words, is_reply)) = self.mask(line) {
                return Ok(Some(Masked { event: row.event, who, words, is_reply }));
            }
        }
        Ok(None)
    }

    fn mask(&mut self, line: Line) -> Option<(String, Vec<String>, bool)> {
        Some(match line {
            Line::Open { c, .. } => (format!("{} connects", self.client(c)), Vec::new(), false),
            Line::Close { c, .. } => (format!("{} disconnects", self.client(c)), Vec::new(), false),
            Line::Cut { c, .. } => {
                (format!("{} is disconnected, too slow", self.client(c)), Vec::new(), false)
            }
            Line::Bad { c, why, .. } => {
                (format!("{} sends a malformed request:", self.client(c)), vec![why], false)
            }
            Line::Req { c, a, .. } | Line::Setup { c, a, .. } => {
                (format!("{} →", self.client(c)), a.iter().map(|word| self.word(word)).collect(), false)
            }
            Line::Out { c, b, .. } => (
                format!("{} ←", self.client(c)),
                b.split_terminator("\r\n").map(|word| self.word(word)).collect(),
                true,
            ),
            Line::Mark { text, .. } => ("mark".to_owned(), vec![text], false),
            Line::Check { promise, key, .. } => ("violation".to_owned(), vec![promise, key], false),
            _ => return None,
        })
    }

    fn client(&mut self, conn: Conn) -> String {
        let next = self.clients.len() + 1;
        format!("node {} client #{}", conn.node, self.clients.entry(conn).or_insert(next))
    }

    /// Replaces ids (UUIDs) by the order of their first appearance, and Unix times by a word.
    fn word(&mut self, word: &str) -> String {
        let mut masked = String::with_capacity(word.len());
        let mut rest = word;
        while let Some(c) = rest.chars().next() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let follows = masked.bytes().last().is_none_or(|last| !last.is_ascii_alphanumeric());
            if follows && let Some(id) = uuid(rest) {
                let next = self.ids.len() + 1;
                masked += &format!("<id {}>", self.ids.entry(id.to_owned()).or_insert(next));
                rest = &rest[id.len()..];
            } else if follows && is_unix_time(&rest[..digits]) {
                masked += "<time>";
                rest = &rest[digits..];
            } else {
                let len = if digits > 0 { digits } else { c.len_utf8() };
                masked += &rest[..len];
                rest = &rest[len..];
            }
        }
        masked
    }
}

/// Returns the UUID at the beginning of a text.
fn uuid(text: &str) -> Option<&str> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let id = text.get(..36)?;
    let parts = id.split('-');
    let is_uuid = parts.clone().count() == LENGTHS.len()
        && parts
            .zip(LENGTHS)
            .all(|(part, len)| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit()));
    is_uuid.then_some(id)
}

/// Returns whether a number is a Unix time between 2001 and 2286, in s, ms or µs.
fn is_unix_time(digits: &str) -> bool {
    matches!(digits.len(), 10 | 13 | 16) && !digits.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parting(a: &[&str], b: &[&str]) -> Option<Parting> {
        let (a, b) = (a.join("\n"), b.join("\n"));
        Parting::of(&Tape::of(&a), &Tape::of(&b)).unwrap()
    }

    #[test]
    fn ids_times_and_numbers_of_connections_do_not_matter() {
        let a = [
            r#"{"k":"req","e":7,"t":0,"c":"0:1","a":["SET","l","5b0d8e62-0f0e-4f43-9c0c-0a4d6ce38b01:1"]}"#,
            r#"{"k":"out","e":7,"c":"0:1","b":":29990\r\n"}"#,
            r#"{"k":"req","e":8,"t":0,"c":"0:2","a":["PEXPIREAT","l","1795304091565"]}"#,
        ];
        let b = [
            r#"{"k":"req","e":9,"t":5,"c":"0:4","a":["SET","l","11111111-0f0e-4f43-9c0c-0a4d6ce38b01:1"]}"#,
            r#"{"k":"out","e":9,"c":"0:4","b":":29987\r\n"}"#,
            r#"{"k":"req","e":12,"t":9,"c":"0:9","a":["PEXPIREAT","l","1795304099999"]}"#,
        ];
        assert_eq!(parting(&a, &b), None);
        let ended = parting(&a, &b[..2]).unwrap();
        assert_eq!(ended.sides, [Some((8, "node 0 client #2 → PEXPIREAT l <time>".to_owned())), None]);
    }

    #[test]
    fn another_owner_or_another_number_is_a_difference() {
        let reply = |n: i64| format!(r#"{{"k":"out","e":7,"c":"0:1","b":":{n}\r\n"}}"#);
        assert!(parting(&[&reply(1)], &[&reply(2)]).is_some());
        assert!(parting(&[&reply(30_000)], &[&reply(29_000)]).is_some());
        assert!(parting(&[&reply(30_000)], &[&reply(29_950)]).is_none());
        let take = |owner: &str| format!(r#"{{"k":"req","e":8,"t":0,"c":"0:1","a":["SET","l","{owner}"]}}"#);
        let (x, y) = ("5b0d8e62-0f0e-4f43-9c0c-0a4d6ce38b01", "6b0d8e62-0f0e-4f43-9c0c-0a4d6ce38b01");
        let (x, y) = (take(x), take(y));
        assert!(parting(&[&x, &y], &[&y, &x]).is_none(), "the same story with other names");
        assert!(parting(&[&x, &y], &[&x, &x]).is_some(), "in the second run one owner asks twice");
    }
}
