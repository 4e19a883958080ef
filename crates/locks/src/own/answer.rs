//! What the reply to a request means.

use std::fmt;

use crate::model::Reply;

/// What a reply tells the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Granted,
    Refused,
    /// The lock was held and is free now.
    Released,
    /// One of several holds was released.
    StillHeld,
    /// The client does not hold the lock, and nothing has changed.
    NotHeld,
    Extended,
    Done,
    /// The count went down and is not nought.
    Counted,
    /// The count reached nought.
    Opened,
}

/// The form of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    Nil,
    Int(i64),
    /// A status or a bulk string.
    Text(String),
    /// An error that begins with this text.
    Error(String),
    /// The owner or the token that the request has named.
    Owner,
    Token,
    /// A list with these elements at its beginning.
    List(Vec<Pattern>),
    /// A number, which may be written as text.
    Number,
    /// A number that says something: a fencing token, a time to wait, or what is left.
    Fence,
    WaitMs,
    WaitS,
    Left,
    /// One of several forms.
    Any(Vec<Pattern>),
    Anything,
}

/// The numbers that a reply contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    pub fence: Option<i64>,
    pub wait_ms: Option<i64>,
    /// Whether the time to wait was told in whole seconds.
    pub is_rounded: bool,
    pub left: Option<i64>,
}

/// What the request of a reply has named.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    pub owner: &'a str,
    pub token: &'a str,
}

impl Pattern {
    /// The words for forms that have no value of their own.
    pub const WORDS: &[(&str, Pattern)] = &[
        ("nil", Pattern::Nil),
        ("number", Pattern::Number),
        ("owner", Pattern::Owner),
        ("token", Pattern::Token),
        ("fence", Pattern::Fence),
        ("wait_ms", Pattern::WaitMs),
        ("wait_s", Pattern::WaitS),
        ("left", Pattern::Left),
        ("anything", Pattern::Anything),
    ];

    /// Parses a word: one of [`Pattern::WORDS`], `OK`, `text:…`, `error` or `error:…`.
    pub fn of_word(word: &str) -> Option<Pattern> {
        match word.split_once(':') {
            Some(("text", text)) => return Some(Pattern::Text(text.to_owned())),
            Some(("error", prefix)) => return Some(Pattern::Error(prefix.to_owned())),
            _ => {}
        }
        match word {
            "OK" => Some(Pattern::Text(word.to_owned())),
            "error" => Some(Pattern::Error(String::new())),
            _ => Pattern::WORDS.iter().find(|(name, _)| *name == word).map(|(_, pattern)| pattern.clone()),
        }
    }

    /// Returns how general the form is: of two forms that a reply has, the less general one decides.
    pub fn generality(&self) -> usize {
        match self {
            Pattern::Nil | Pattern::Int(_) | Pattern::Text(_) | Pattern::Owner | Pattern::Token => 0,
            Pattern::Number | Pattern::Fence | Pattern::WaitMs | Pattern::WaitS | Pattern::Left => 1,
            Pattern::Error(prefix) => usize::from(prefix.is_empty()),
            Pattern::List(all) | Pattern::Any(all) => all.iter().map(Pattern::generality).max().unwrap_or(1),
            Pattern::Anything => 2,
        }
    }

    /// Returns whether a pattern that this one contains, or this one, fits.
    pub fn contains(&self, fits: &dyn Fn(&Pattern) -> bool) -> bool {
        match self {
            Pattern::List(all) | Pattern::Any(all) => all.iter().any(|pattern| pattern.contains(fits)),
            pattern => fits(pattern),
        }
    }

    /// Returns whether a reply has this form. Adds the numbers that it contains.
    pub fn matches(&self, reply: Reply, named: Named, numbers: &mut Numbers) -> bool {
        let is_text = |expected: &str| matches!(reply, Reply::Text(text) if text == expected.as_bytes());
        let number = || match reply {
            Reply::Int(_) | Reply::Text(_) => reply.int(),
            _ => None,
        };
        match self {
            Pattern::Nil => reply == Reply::Nil,
            Pattern::Int(n) => reply == Reply::Int(*n),
            Pattern::Text(text) => is_text(text),
            Pattern::Error(prefix) => {
                matches!(reply, Reply::Error(error) if error.starts_with(prefix.as_bytes()))
            }
            Pattern::Owner => is_text(named.owner),
            Pattern::Token => is_text(named.token),
            Pattern::List(all) => {
                let is_list = matches!(reply, Reply::Array(_));
                let mut elements = all.iter().enumerate();
                is_list
                    && elements.all(|(index, pattern)| pattern.matches(reply.element(index), named, numbers))
            }
            Pattern::Number => number().is_some(),
            Pattern::Fence => {
                numbers.fence = number();
                numbers.fence.is_some()
            }
            Pattern::WaitMs | Pattern::WaitS => {
                numbers.is_rounded = *self == Pattern::WaitS;
                let unit_ms = if numbers.is_rounded { 1_000 } else { 1 };
                numbers.wait_ms = number().filter(|wait| *wait >= 0).map(|wait| wait.saturating_mul(unit_ms));
                numbers.wait_ms.is_some()
            }
            Pattern::Left => {
                numbers.left = number();
                numbers.left.is_some()
            }
            Pattern::Any(all) => all.iter().any(|pattern| pattern.matches(reply, named, numbers)),
            Pattern::Anything => !reply.is_error(),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: &[Pattern]| all.iter().map(Pattern::to_string).collect::<Vec<_>>();
        match self {
            Pattern::Int(n) => write!(f, "{n}"),
            Pattern::Text(text) => write!(f, "\"{text}\""),
            Pattern::Error(prefix) => write!(f, "error:{prefix}"),
            Pattern::List(all) => write!(f, "[{}]", list(all).join(", ")),
            Pattern::Any(all) => f.write_str(&list(all).join(" or ")),
            word => {
                let name = Pattern::WORDS.iter().find(|(_, pattern)| pattern == word);
                f.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &Pattern, reply: &[u8]) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        let named = Named { owner: "A", token: "A#1" };
        pattern.matches(Reply::parse(reply), named, &mut numbers).then_some(numbers)
    }

    #[test]
    fn a_word_is_the_form_of_a_reply() {
        let word = |word: &str| Pattern::of_word(word).unwrap();
        assert!(matches(&word("OK"), b"+OK\r\n").is_some());
        assert!(matches(&word("nil"), b"$-1\r\n").is_some());
        assert!(matches(&word("text:nil"), b"$3\r\nnil\r\n").is_some());
        assert!(matches(&word("token"), b"$3\r\nA#1\r\n").is_some());
        assert!(matches(&word("error:BUSY"), b"-BUSY now\r\n").is_some());
        assert!(matches(&word("error:BUSY"), b"-ERR\r\n").is_none());
        assert!(matches(&word("anything"), b"-ERR\r\n").is_none());
        assert_eq!(matches(&word("fence"), b":7\r\n").unwrap().fence, Some(7));
        assert_eq!(matches(&word("wait_s"), b"$1\r\n2\r\n").unwrap().wait_ms, Some(2_000));
        assert!(matches(&word("wait_ms"), b":-2\r\n").is_none());
        assert_eq!(Pattern::of_word("numbr"), None);
    }

    #[test]
    fn a_list_is_compared_by_its_first_elements() {
        let list = Pattern::List(vec![Pattern::Int(1), Pattern::Fence]);
        assert_eq!(matches(&list, b"*3\r\n:1\r\n:9\r\n+x\r\n").unwrap().fence, Some(9));
        assert!(matches(&list, b"*1\r\n:1\r\n").is_none());
        assert!(matches(&list, b":1\r\n").is_none());
    }
}
