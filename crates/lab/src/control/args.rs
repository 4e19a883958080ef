//! Reads the arguments of a SIM command one by one, with errors that name the offending argument.

use redlatch_core::num;

/// Why a SIM command failed. Clients see it as `SIMERR <code> <text>`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimError {
    /// The class of the error, for programs.
    pub code: Code,
    /// The description of the error, for people.
    pub text: String,
}

/// The class of an error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The arguments do not match the grammar.
    Syntax,
    /// A number is outside its range.
    Range,
    /// The command names something that does not exist.
    Unknown,
    /// The command is not possible in the present state.
    State,
    /// The server has stopped.
    Stopped,
    /// The client may not send SIM commands.
    Denied,
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
            Code::Denied => "DENIED",
        }
    }
}

impl std::fmt::Display for SimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SIMERR {} {}", self.code.name(), self.text)
    }
}

impl std::error::Error for SimError {}

/// Creates an error of [`Code::Syntax`].
pub fn syntax(text: impl Into<String>) -> SimError {
    SimError { code: Code::Syntax, text: text.into() }
}

/// Creates an error of [`Code::Range`].
pub fn range(text: impl Into<String>) -> SimError {
    SimError { code: Code::Range, text: text.into() }
}

/// Creates an error of [`Code::Unknown`].
pub fn unknown(text: impl Into<String>) -> SimError {
    SimError { code: Code::Unknown, text: text.into() }
}

/// Creates an error of [`Code::State`].
pub fn state(text: impl Into<String>) -> SimError {
    SimError { code: Code::State, text: text.into() }
}

/// Creates the error for a client of another machine that has no password.
pub fn denied() -> SimError {
    let text = "SIM commands are for clients of this machine and for clients with a password; --control-anywhere lifts this";
    SimError { code: Code::Denied, text: text.to_owned() }
}

/// A cursor over the arguments of a SIM command.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    all: &'a [&'a [u8]],
    at: usize,
}

impl<'a> Args<'a> {
    pub fn new(all: &'a [&'a [u8]]) -> Args<'a> {
        Args { all, at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.all.len()
    }

    /// Returns the next argument without taking it.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.all.get(self.at).copied()
    }

    /// Takes the next argument, if there is one.
    pub fn pop(&mut self) -> Option<&'a [u8]> {
        let arg = self.peek()?;
        self.at += 1;
        Some(arg)
    }

    /// Takes the next argument. `what` names it in the error if it is missing.
    pub fn required(&mut self, what: &str) -> Result<&'a [u8], SimError> {
        let place = self.place();
        self.pop().ok_or_else(|| syntax(format!("{what} is missing {place}")))
    }

    /// Takes the next argument as text.
    pub fn text(&mut self, what: &str) -> Result<String, SimError> {
        Ok(String::from_utf8_lossy(self.required(what)?).into_owned())
    }

    /// Takes the next argument if it is this keyword, in upper or lower case. Returns whether it was.
    pub fn take(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_some_and(|arg| arg.eq_ignore_ascii_case(keyword.as_bytes()));
        self.at += found as usize;
        found
    }

    /// Takes the next argument, which has to be one of these keywords.
    pub fn one_of<T: Copy>(&mut self, what: &str, choices: &[(&str, T)]) -> Result<T, SimError> {
        let arg = self.required(what)?;
        let found = choices.iter().find(|(name, _)| arg.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|&(_, choice)| choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
            syntax(format!("{} is not {what}: {}", quoted(arg), names.join(", ")))
        })
    }

    /// Takes a whole number from `min` to `max`, both included.
    pub fn int(&mut self, what: &str, min: i64, max: i64) -> Result<i64, SimError> {
        let arg = self.required(what)?;
        let n = num::parse_i64(arg)
            .ok_or_else(|| syntax(format!("{} is not a whole number for {what}", quoted(arg))))?;
        if (min..=max).contains(&n) {
            Ok(n)
        } else {
            Err(range(format!("{what} is {n}, and has to be between {min} and {max}")))
        }
    }

    /// Takes a time or a duration in ms.
    pub fn ms(&mut self, what: &str) -> Result<u64, SimError> {
        Ok(self.int(what, 0, MAX_MS)? as u64)
    }

    /// Fails if an argument is left.
    pub fn end(&self) -> Result<(), SimError> {
        match self.peek() {
            None => Ok(()),
            Some(arg) => Err(syntax(format!("{} is not expected {}", quoted(arg), self.place()))),
        }
    }

    /// Creates the error for the argument taken last: it is not known here.
    pub fn not_known(&self) -> SimError {
        match self.at.checked_sub(1).and_then(|last| self.all.get(last)) {
            Some(arg) => syntax(format!("{} is not known here", quoted(arg))),
            None => syntax("a word is missing"),
        }
    }

    /// Says where the cursor is, for errors.
    fn place(&self) -> String {
        match self.at.checked_sub(1).and_then(|last| self.all.get(last)) {
            Some(arg) => format!("after {}", quoted(arg)),
            None => "at the beginning".to_owned(),
        }
    }
}

/// The furthest that time can be moved at once, in ms: a thousand years.
pub const MAX_MS: i64 = 1000 * 366 * 86_400_000;

/// Quotes an argument for an error text or a list, shortened to 64 bytes.
pub fn quoted(arg: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut text = Vec::new();
    num::quote(&arg[..arg.len().min(SHOWN)], &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
