//! State as lines of words: what a trace has of the state in which it begins.
//!
//! The first word of a line says what it is about. Words are bytes; numbers are decimal.

use std::fmt::Display;
use std::str::FromStr;

/// What stands for an optional word that is not there.
const NONE: &[u8] = b"-";

/// A line of words that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Vec<Vec<u8>>);

impl Words {
    /// Begins a line about something.
    pub fn about(what: &str) -> Words {
        Words(vec![what.as_bytes().to_vec()])
    }

    /// Adds a word as it is.
    pub fn word(mut self, word: &[u8]) -> Words {
        self.0.push(word.to_vec());
        self
    }

    /// Adds words as they are.
    pub fn words<'a>(mut self, words: impl IntoIterator<Item = &'a [u8]>) -> Words {
        self.0.extend(words.into_iter().map(<[u8]>::to_vec));
        self
    }

    /// Adds a number or a name.
    pub fn value(self, value: impl Display) -> Words {
        self.word(value.to_string().as_bytes())
    }

    /// Adds a number that may be absent.
    pub fn option(self, value: Option<impl Display>) -> Words {
        match value {
            Some(value) => self.value(value),
            None => self.word(NONE),
        }
    }

    /// Adds 0 or 1.
    pub fn flag(self, flag: bool) -> Words {
        self.value(u8::from(flag))
    }

    /// Returns the words.
    pub fn finish(self) -> Vec<Vec<u8>> {
        self.0
    }
}

/// Reads the words of a line one after the other. Every method returns `None` if the word is missing or malformed.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [&'a [u8]],
}

impl<'a> Reader<'a> {
    /// Begins with the first word.
    pub fn new(words: &'a [&'a [u8]]) -> Reader<'a> {
        Reader { rest: words }
    }

    /// Returns the next word.
    pub fn word(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Returns the next so many words.
    pub fn words(&mut self, count: usize) -> Option<&'a [&'a [u8]]> {
        let (words, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(words)
    }

    /// Returns the next word as a number.
    pub fn value<T: FromStr>(&mut self) -> Option<T> {
        std::str::from_utf8(self.word()?).ok()?.parse().ok()
    }

    /// Returns the next word as text.
    pub fn text(&mut self) -> Option<String> {
        self.value()
    }

    /// Returns the next word as a number that may be absent.
    pub fn option<T: FromStr>(&mut self) -> Option<Option<T>> {
        match *self.rest.first()? {
            NONE => self.word().map(|_| None),
            _ => self.value().map(Some),
        }
    }

    /// Returns the next word as 0 or 1.
    pub fn flag(&mut self) -> Option<bool> {
        match self.word()? {
            b"0" => Some(false),
            b"1" => Some(true),
            _ => None,
        }
    }

    /// Returns all words that are left.
    pub fn rest(&self) -> &'a [&'a [u8]] {
        self.rest
    }

    /// Returns whether no words are left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Returns the value with this name in a table of names.
pub fn named<T: Copy>(table: &[(&str, T)], name: &[u8]) -> Option<T> {
    table.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, value)| *value)
}

/// Returns the name of a value in a table of names.
pub fn name_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        let line = Words::about("KEY").value(-3).word(b"\0 x").option(None::<u8>).option(Some(7)).flag(true);
        let line = line.words([&b"a"[..], b"b"]).finish();
        let words: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
        let mut reader = Reader::new(&words);
        assert_eq!(reader.word(), Some(&b"KEY"[..]));
        assert_eq!(reader.value(), Some(-3));
        assert_eq!(reader.word(), Some(&b"\0 x"[..]));
        assert_eq!((reader.option::<u8>(), reader.option()), (Some(None), Some(Some(7))));
        assert_eq!(reader.flag(), Some(true));
        assert_eq!(reader.words(3), None);
        assert_eq!((reader.rest().len(), reader.value::<u8>()), (2, None));
    }
}
