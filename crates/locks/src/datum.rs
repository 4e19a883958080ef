//! Values as histories are written with them, in EDN or in JSON.

use std::fmt::{self, Write};

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 32;

/// A value of EDN or JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Datum {
    #[default]
    Nil,
    Bool(bool),
    Int(i64),
    Text(String),
    /// A keyword or a symbol of EDN, without its colon. JSON has a string for it.
    Word(String),
    List(Vec<Datum>),
    /// In the order in which it was written.
    Map(Vec<(Datum, Datum)>),
}

/// The forms in which a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Edn,
    Json,
}

impl Datum {
    /// Returns a text for bytes: the characters with the same numbers, as in a trace.
    pub fn of_bytes(bytes: &[u8]) -> Datum {
        Datum::Text(bytes.iter().map(|byte| char::from(*byte)).collect())
    }

    /// Returns the value under a name, whether the name is a keyword or a string, and in whatever case.
    pub fn get(&self, name: &str) -> Option<&Datum> {
        let Datum::Map(pairs) = self else { return None };
        let is_named = |key: &Datum| key.text().is_some_and(|key| key.eq_ignore_ascii_case(name));
        pairs.iter().find(|(key, _)| is_named(key)).map(|(_, value)| value)
    }

    /// Returns a text or a word.
    pub fn text(&self) -> Option<&str> {
        match self {
            Datum::Text(text) | Datum::Word(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an integer.
    pub fn int(&self) -> Option<i64> {
        match self {
            Datum::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns whether there is a truth value, and which.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Datum::Bool(is_true) => Some(*is_true),
            _ => None,
        }
    }

    /// Writes the value on one line.
    pub fn write(&self, form: Form) -> String {
        let mut text = String::new();
        self.append(form, &mut text);
        text
    }

    fn append(&self, form: Form, text: &mut String) {
        match (self, form) {
            (Datum::Nil, Form::Edn) => text.push_str("nil"),
            (Datum::Nil, Form::Json) => text.push_str("null"),
            (Datum::Bool(is_true), _) => text.push_str(if *is_true { "true" } else { "false" }),
            (Datum::Int(n), _) => text.push_str(itoa::Buffer::new().format(*n)),
            (Datum::Word(word), Form::Edn) => {
                text.push(':');
                text.push_str(word);
            }
            (Datum::Text(string) | Datum::Word(string), _) => quote(string, text),
            (Datum::List(items), _) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    text.push_str(match (index, form) {
                        (0, _) => "",
                        (_, Form::Edn) => " ",
                        (_, Form::Json) => ",",
                    });
                    item.append(form, text);
                }
                text.push(']');
            }
            (Datum::Map(pairs), _) => {
                text.push('{');
                for (index, (key, value)) in pairs.iter().enumerate() {
                    text.push_str(match (index, form) {
                        (0, _) => "",
                        (_, Form::Edn) => ", ",
                        (_, Form::Json) => ",",
                    });
                    key.append(form, text);
                    text.push(if form == Form::Edn { ' ' } else { ':' });
                    value.append(form, text);
                }
                text.push('}');
            }
        }
    }

    /// Reads all values of a text. Both forms are read alike: commas are white space, and `#tag` is passed over.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn read_all(text: &str) -> Result<Vec<Datum>, ReadError> {
        let mut reader = Reader { text, at: 0 };
        let mut all = Vec::new();
        while reader.skip_space() {
            all.push(reader.value(0)?);
        }
        Ok(all)
    }
}

fn quote(string: &str, text: &mut String) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

/// Why a text is not a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    pub line: usize,
    pub what: &'static str,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ReadError {}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: &'static str) -> ReadError {
        ReadError { line: self.text[..self.at].matches('\n').count() + 1, what }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes white space, comments and tags. Returns false at the end.
    fn skip_space(&mut self) -> bool {
        while let Some(byte) = self.peek() {
            match byte {
                b';' => self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at),
                // A set begins with it too.
                b'#' if self.text[self.at..].starts_with("#{") => self.at += 1,
                b'#' => self.at += self.text[self.at..].find([' ', '{', '[', '"']).unwrap_or(1),
                b',' => self.at += 1,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => return true,
            }
        }
        false
    }

    fn value(&mut self, depth: usize) -> Result<Datum, ReadError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("too many brackets inside one another"));
        }
        match self.peek() {
            None => Err(self.wrong("a value is missing")),
            Some(b'"') => self.string().map(Datum::Text),
            Some(open @ (b'[' | b'(')) => {
                let close = if open == b'[' { b']' } else { b')' };
                self.items(close, depth).map(Datum::List)
            }
            Some(b'{') => {
                let items = self.items(b'}', depth)?;
                if items.len() % 2 != 0 {
                    return Err(self.wrong("a map has a name without a value"));
                }
                let mut items = items.into_iter();
                let mut pairs = Vec::with_capacity(items.len() / 2);
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((key, value));
                }
                Ok(Datum::Map(pairs))
            }
            Some(b']' | b')' | b'}') => Err(self.wrong("a bracket closes nothing")),
            Some(_) => Ok(self.word()),
        }
    }

    fn items(&mut self, close: u8, depth: usize) -> Result<Vec<Datum>, ReadError> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            if !self.skip_space() {
                return Err(self.wrong("a bracket is not closed"));
            }
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(items);
            }
            // What separates a name from its value in JSON; a keyword of EDN is no value of a string.
            if close == b'}'
                && self.peek() == Some(b':')
                && items.len() % 2 == 1
                && matches!(items.last(), Some(Datum::Text(_)))
            {
                self.at += 1;
                self.skip_space();
            }
            items.push(self.value(depth + 1)?);
        }
    }

    fn string(&mut self) -> Result<String, ReadError> {
        self.at += 1;
        let mut string = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((index, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += index + 1;
                    return Ok(string);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => string.push('\n'),
                    Some('r') => string.push('\r'),
                    Some('t') => string.push('\t'),
                    Some('b') => string.push('\u{8}'),
                    Some('f') => string.push('\u{c}'),
                    Some('u') => {
                        let mut unit =
                            || (0..4).try_fold(0, |sum, _| Some(sum * 16 + chars.next()?.1.to_digit(16)?));
                        let c = unit().and_then(char::from_u32);
                        string.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    Some(c) => string.push(c),
                    None => break,
                },
                c => string.push(c),
            }
        }
        Err(self.wrong("a string is not closed"))
    }

    fn word(&mut self) -> Datum {
        let rest = &self.text[self.at..];
        let ends = |c: char| c.is_whitespace() || ",;[](){}\"".contains(c);
        let len = rest.char_indices().skip(1).find(|(_, c)| ends(*c)).map_or(rest.len(), |(at, _)| at);
        self.at += len;
        match &rest[..len] {
            "nil" | "null" => Datum::Nil,
            "true" => Datum::Bool(true),
            "false" => Datum::Bool(false),
            word => match word.parse() {
                Ok(n) => Datum::Int(n),
                Err(_) => Datum::Word(word.strip_prefix(':').unwrap_or(word).to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_as_they_are_written() {
        let word = |word: &str| Datum::Word(word.to_owned());
        let value = Datum::Map(vec![
            (word("f"), word("cas")),
            (word("value"), Datum::List(vec![Datum::Int(-1), Datum::Nil, Datum::Bool(true)])),
            (word("key"), Datum::of_bytes(b"a \"b\"\\\n\x01\xff")),
        ]);
        let edn = value.write(Form::Edn);
        assert_eq!(edn, "{:f :cas, :value [-1 nil true], :key \"a \\\"b\\\"\\\\\\n\\u0001\u{ff}\"}");
        assert_eq!(Datum::read_all(&edn), Ok(vec![value.clone()]));
        let json = value.write(Form::Json);
        let read = Datum::read_all(&json).unwrap();
        for name in ["F", "Value", "KEY"] {
            let text = |datum: &Datum| datum.get(name).unwrap().write(Form::Json);
            assert_eq!(text(&read[0]), text(&value), "{name}");
        }
        assert_eq!(
            Datum::read_all("{\"a\" :b} ; c\n#x.Op{:a true}").unwrap()[1].get("a"),
            Some(&Datum::Bool(true))
        );
    }

    #[test]
    fn what_is_no_value_is_an_error_with_its_line() {
        for (text, line) in [("[\n[1 2", 2), ("]", 1), ("{:a}", 1), ("\n\n\"x", 3)] {
            assert_eq!(Datum::read_all(text).unwrap_err().line, line, "{text}");
        }
        assert!(Datum::read_all(&"[".repeat(1000)).is_err());
    }
}
