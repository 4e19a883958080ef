//! Why a schedule cannot be read, or has another outcome than it expects.

use std::fmt;

use crate::sim::CallError;

/// A place in the text of a schedule. Lines and columns count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the file.
    pub file: String,
    pub line: usize,
    pub column: usize,
}

/// A line that cannot be read, or whose outcome differs from the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    pub place: Place,
    pub cause: Failure,
}

/// Why a line of a schedule failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The line has none of the forms that a schedule has, or not this one.
    Syntax {
        found: String,
        expected: &'static str,
    },
    UnbalancedQuotes,
    /// A word has both a variable and bytes that are not UTF-8.
    MixedWord,
    NotDefined(String),
    /// A setting comes behind the first step.
    TooLate(String),
    /// A setting that no node takes, or a predicate that there is not.
    Wrong(String),
    /// A file, a jar or its script cannot be read.
    Unreadable(String),
    NotUtf8,
    /// A `repeat` without `end`, or an `end` without `repeat`.
    Unpaired(&'static str),
    /// The schedule exceeds one of its limits.
    Limit(String),
    /// The node in `client@node` is not the number of a node.
    NoSuchNode {
        node: usize,
        nodes: usize,
    },
    /// An expectation comes before any command.
    NothingSent,
    NeverConnected(String),
    AlreadyConnected(String),
    /// A client sends while it waits for a reply, or after its connection was closed.
    NotSent {
        client: String,
        error: CallError,
    },
    WrongTime {
        elapsed: String,
        expected: String,
    },
    WrongReply {
        client: String,
        received: String,
        expected: String,
    },
    /// A client received something that the schedule does not mention.
    UnexpectedReplies {
        client: String,
        received: Vec<String>,
    },
    /// The checks have found other violations than expected.
    Violations {
        found: Vec<String>,
        expected: String,
    },
    ChecksAreOff,
    /// A predicate does not hold, or holds and should not.
    Predicate {
        text: String,
        holds: bool,
    },
}

impl Failure {
    /// Returns whether the text is wrong, and not the outcome.
    pub fn is_about_text(&self) -> bool {
        use Failure::*;
        matches!(
            self,
            Syntax { .. }
                | UnbalancedQuotes
                | MixedWord
                | NotDefined(_)
                | TooLate(_)
                | Wrong(_)
                | Unreadable(_)
                | NotUtf8
                | Unpaired(_)
                | Limit(_)
                | NoSuchNode { .. }
                | NothingSent
        )
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { file, line, column } = &self.place;
        write!(f, "{file}:{line}:{column}: {}", self.cause)
    }
}

impl std::error::Error for ScheduleError {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Syntax { found, expected } => write!(f, "found {}, expected {expected}", short(found)),
            Failure::UnbalancedQuotes => {
                write!(f, "unbalanced quotes: expected a closing quote, and a blank or the end behind it")
            }
            Failure::MixedWord => write!(f, "a word with a variable has to be UTF-8"),
            Failure::NotDefined(name) => {
                write!(f, "${name} is not defined; expected 'let {name} = TEXT' before")
            }
            Failure::TooLate(setting) => write!(f, "'{setting}' has to come before the first step"),
            Failure::Wrong(why) | Failure::Unreadable(why) | Failure::Limit(why) => f.write_str(why),
            Failure::NotUtf8 => {
                write!(f, "the bytes from here on are not UTF-8; \"\\xff\" in quotes is any byte")
            }
            Failure::Unpaired("repeat") => write!(f, "'repeat' has no 'end'"),
            Failure::Unpaired(_) => write!(f, "'end' has no 'repeat'"),
            Failure::NoSuchNode { node, nodes } => {
                write!(f, "there is no node {node}: there are {nodes}, numbered from 0; 'nodes N' adds more")
            }
            Failure::NothingSent => write!(f, "no client has sent anything yet; expected a command before"),
            Failure::NeverConnected(who) => write!(f, "{who} is not connected"),
            Failure::AlreadyConnected(who) => write!(f, "{who} is connected already"),
            Failure::NotSent { client, error } => write!(f, "{client}: {error}"),
            Failure::WrongTime { elapsed, expected } => {
                write!(f, "{elapsed} ms have passed, not {expected}")
            }
            Failure::WrongReply { client, received, expected } => {
                write!(f, "{client} receives {received}, not {expected}")
            }
            Failure::UnexpectedReplies { client, received } => {
                write!(f, "{client} receives {} as well", received.join(", "))
            }
            Failure::Violations { found, expected } if found.is_empty() => {
                write!(f, "the checks have found no violation, not {expected}")
            }
            Failure::Violations { found, expected } => {
                write!(f, "the checks have found {}, not {expected}", found.join("; "))
            }
            Failure::ChecksAreOff => {
                write!(f, "the locks are not checked; expected 'check' before the first step")
            }
            Failure::Predicate { text, holds: true } => write!(f, "{text} holds"),
            Failure::Predicate { text, holds: false } => write!(f, "{text} does not hold"),
        }
    }
}

/// Returns a text in quotes, cut to a length that fits a message.
fn short(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None if text.is_empty() => "nothing".to_owned(),
        None => format!("'{text}'"),
    }
}
