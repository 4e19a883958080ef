//! The words of a SIM command, read one by one, and the errors that name the word they stumble over.

use redlatch_core::num;

/// Why a SIM command was refused: `SIMERR <code> <text>`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimError {
    /// What kind of mistake it was.
    pub code: Code,
    /// What is wrong, for people.
    pub text: String,
}

/// What kind of mistake it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The words are not as the grammar has them.
    Syntax,
    /// A number outside its range.
    Range,
    /// It names something that does not exist.
    Unknown,
    /// It cannot be done as things stand.
    State,
    /// The server that was to do it has stopped.
    Stopped,
}

impl Code {
    /// Returns the code as `SIMERR` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Code::Syntax => "SYNTAX",
            Code::Range => "RANGE",
            Code::Unknown => "UNKNOWN",
            Code::State => "STATE",
            Code::Stopped => "STOPPED",
        }
    }
}

impl std::fmt::Display for SimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SIMERR {} {}", self.code.name(), self.text)
    }
}

impl std::error::Error for SimError {}

pub fn syntax(text: impl Into<String>) -> SimError {
    SimError { code: Code::Syntax, text: text.into() }
}

pub fn range(text: impl Into<String>) -> SimError {
    SimError { code: Code::Range, text: text.into() }
}

pub fn unknown(text: impl Into<String>) -> SimError {
    SimError { code: Code::Unknown, text: text.into() }
}

pub fn state(text: impl Into<String>) -> SimError {
    SimError { code: Code::State, text: text.into() }
}

/// A cursor over the words of a SIM command.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    all: &'a [&'a [u8]],
    at: usize,
}

impl<'a> Words<'a> {
    pub fn new(all: &'a [&'a [u8]]) -> Words<'a> {
        Words { all, at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.all.len()
    }

    pub fn peek(&self) -> Option<&'a [u8]> {
        self.all.get(self.at).copied()
    }

    pub fn pop(&mut self) -> Option<&'a [u8]> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// The next word; `what` names it in the error when there is none.
    pub fn word(&mut self, what: &str) -> Result<&'a [u8], SimError> {
        let place = self.place();
        self.pop().ok_or_else(|| syntax(format!("{what} is missing {place}")))
    }

    pub fn text(&mut self, what: &str) -> Result<String, SimError> {
        Ok(String::from_utf8_lossy(self.word(what)?).into_owned())
    }

    /// Takes the next word if it is this keyword, in any case.
    pub fn take(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_some_and(|word| word.eq_ignore_ascii_case(keyword.as_bytes()));
        self.at += found as usize;
        found
    }

    /// Takes the next word, which has to be one of these.
    pub fn one_of<T: Copy>(&mut self, what: &str, choices: &[(&str, T)]) -> Result<T, SimError> {
        let word = self.word(what)?;
        let found = choices.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|&(_, choice)| choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
            syntax(format!("{} is not {what}: {}", quoted(word), names.join(", ")))
        })
    }

    /// A whole number between the two, both included.
    pub fn int(&mut self, what: &str, min: i64, max: i64) -> Result<i64, SimError> {
        let word = self.word(what)?;
        let n = num::parse_i64(word)
            .ok_or_else(|| syntax(format!("{} is not a whole number for {what}", quoted(word))))?;
        if (min..=max).contains(&n) {
            Ok(n)
        } else {
            Err(range(format!("{what} is {n}, and has to be between {min} and {max}")))
        }
    }

    /// A time or a duration in ms.
    pub fn ms(&mut self, what: &str) -> Result<u64, SimError> {
        Ok(self.int(what, 0, MAX_MS)? as u64)
    }

    /// Nothing may follow.
    pub fn end(&self) -> Result<(), SimError> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(syntax(format!("{} is not expected {}", quoted(word), self.place()))),
        }
    }

    /// An error about the word that was read last.
    pub fn not_known(&self) -> SimError {
        match self.at.checked_sub(1).and_then(|last| self.all.get(last)) {
            Some(word) => syntax(format!("{} is not known here", quoted(word))),
            None => syntax("a word is missing"),
        }
    }

    fn place(&self) -> String {
        match self.at.checked_sub(1).and_then(|last| self.all.get(last)) {
            Some(word) => format!("after {}", quoted(word)),
            None => "at the beginning".to_owned(),
        }
    }
}

/// The furthest that time can be moved at once: a thousand years.
pub const MAX_MS: i64 = 1000 * 366 * 86_400_000;

/// A word as an error shows it.
pub fn quoted(word: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut text = Vec::new();
    num::quote(&word[..word.len().min(SHOWN)], &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
