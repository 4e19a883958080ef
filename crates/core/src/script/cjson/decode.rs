//! Converts JSON to Lua values.

use super::options::Options;
use crate::script::bridge::{Raised, Stack};
use crate::script::number;

/// Pushes the value that the JSON `text` describes.
pub(super) fn decode(lua: &mut Stack, options: &Options, text: &[u8]) -> Raised<()> {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return lua.raise_text("JSON parser does not support UTF-16 or UTF-32");
    }
    let mut parser = Parser { text, at: 0, depth: 0, options };
    let token = parser.next();
    parser.push_value(lua, token)?;
    let token = parser.next();
    match token.kind {
        TokenKind::End => Ok(()),
        _ => fail(lua, "the end", &token),
    }
}

#[derive(Debug, PartialEq)]
struct Token {
    /// The offset at which it starts.
    at: usize,
    kind: TokenKind,
}

#[derive(Debug, PartialEq)]
enum TokenKind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl TokenKind {
    fn name(&self) -> &'static str {
        match self {
            TokenKind::ObjectBegin => "T_OBJ_BEGIN",
            TokenKind::ObjectEnd => "T_OBJ_END",
            TokenKind::ArrayBegin => "T_ARR_BEGIN",
            TokenKind::ArrayEnd => "T_ARR_END",
            TokenKind::String(_) => "T_STRING",
            TokenKind::Number(_) => "T_NUMBER",
            TokenKind::Boolean(_) => "T_BOOLEAN",
            TokenKind::Null => "T_NULL",
            TokenKind::Colon => "T_COLON",
            TokenKind::Comma => "T_COMMA",
            TokenKind::End => "T_END",
            TokenKind::Error(what) => what,
        }
    }
}

fn fail<T>(lua: &mut Stack, expected: &str, found: &Token) -> Raised<T> {
    lua.raise_text(&format!(
        "Expected {expected} but found {} at character {}",
        found.kind.name(),
        found.at + 1
    ))
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: i32,
    options: &'a Options,
}

impl Parser<'_> {
    /// Returns the byte at `offset` after the current one, or NUL at the end of the text.
    fn byte(&self, offset: usize) -> u8 {
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Token {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let single = match self.byte(0) {
            b'{' => TokenKind::ObjectBegin,
            b'}' => TokenKind::ObjectEnd,
            b'[' => TokenKind::ArrayBegin,
            b']' => TokenKind::ArrayEnd,
            b':' => TokenKind::Colon,
            b',' => TokenKind::Comma,
            0 => return Token { at, kind: TokenKind::End },
            b'"' => return self.string(at),
            b'-' | b'0'..=b'9' if !self.options.decode_invalid_numbers && self.is_invalid_number() => {
                return self.error("invalid number");
            }
            b'-' | b'0'..=b'9' => return self.number(at),
            _ => return self.word(at),
        };
        self.at += 1;
        Token { at, kind: single }
    }

    fn error(&self, what: &'static str) -> Token {
        Token { at: self.at, kind: TokenKind::Error(what) }
    }

    fn word(&mut self, at: usize) -> Token {
        let words = [
            (&b"true"[..], TokenKind::Boolean(true)),
            (b"false", TokenKind::Boolean(false)),
            (b"null", TokenKind::Null),
        ];
        for (word, kind) in words {
            if self.text[at..].starts_with(word) {
                self.at += word.len();
                return Token { at, kind };
            }
        }
        let may_be_number = matches!(self.byte(0), b'n' | b'N' | b'i' | b'I' | b'+');
        if may_be_number && self.options.decode_invalid_numbers && self.is_invalid_number() {
            return self.number(at);
        }
        self.error("invalid token")
    }

    /// Returns whether a number follows that `strtod` accepts and JSON does not: a hexadecimal number, one with a
    /// leading zero or plus, an infinity, or NaN.
    fn is_invalid_number(&self) -> bool {
        let text = &self.text[self.at..];
        if text.starts_with(b"+") {
            return true;
        }
        match text.strip_prefix(b"-").unwrap_or(text) {
            [b'0', b'x' | b'X' | b'0'..=b'9', ..] => true,
            [byte, ..] if *byte <= b'9' => false,
            rest => rest
                .get(..3)
                .is_some_and(|word| word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")),
        }
    }

    fn number(&mut self, at: usize) -> Token {
        match number::read_prefix(&self.text[at..]) {
            Some((value, len)) => {
                self.at += len;
                Token { at, kind: TokenKind::Number(value) }
            }
            None => self.error("invalid number"),
        }
    }

    fn string(&mut self, at: usize) -> Token {
        let mut string = Vec::new();
        self.at += 1;
        loop {
            match self.byte(0) {
                b'"' => break,
                0 => return self.error("unexpected end of string"),
                b'\\' => {
                    let escaped = match self.byte(1) {
                        byte @ (b'"' | b'\\' | b'/') => byte,
                        b'b' => 8,
                        b't' => b'\t',
                        b'n' => b'\n',
                        b'f' => 12,
                        b'r' => b'\r',
                        b'u' => match self.unicode_escape() {
                            Some((character, len)) => {
                                append_utf8(character, &mut string);
                                self.at += len;
                                continue;
                            }
                            None => return self.error("invalid unicode escape code"),
                        },
                        _ => return self.error("invalid escape code"),
                    };
                    string.push(escaped);
                    self.at += 2;
                }
                byte => {
                    string.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Token { at, kind: TokenKind::String(string) }
    }

    /// Reads `\uXXXX`, or two of them that form a surrogate pair. Returns the code point and the length of the escape
    /// in bytes.
    fn unicode_escape(&self) -> Option<(u32, usize)> {
        let high = self.hex4(2)?;
        if high & 0xf800 != 0xd800 {
            return Some((high, 6));
        }
        if high & 0x400 != 0 || self.byte(6) != b'\\' || self.byte(7) != b'u' {
            return None;
        }
        let low = self.hex4(8)?;
        (low & 0xfc00 == 0xdc00).then_some((((high & 0x3ff) << 10 | low & 0x3ff) + 0x10000, 12))
    }

    fn hex4(&self, offset: usize) -> Option<u32> {
        (offset..offset + 4).try_fold(0, |value, i| Some(value << 4 | (self.byte(i) as char).to_digit(16)?))
    }

    fn push_value(&mut self, lua: &mut Stack, token: Token) -> Raised<()> {
        match token.kind {
            TokenKind::String(text) => lua.push_bytes(&text),
            TokenKind::Number(value) => lua.push_number(value),
            TokenKind::Boolean(value) => lua.push_boolean(value),
            TokenKind::Null => lua.push_null_pointer(),
            TokenKind::ObjectBegin => self.push_object(lua)?,
            TokenKind::ArrayBegin => self.push_array(lua)?,
            _ => return fail(lua, "value", &token),
        }
        lua.check_memory()
    }

    /// Enters a nested table, which needs `room` stack slots.
    fn descend(&mut self, lua: &mut Stack, room: i32) -> Raised<()> {
        self.depth += 1;
        if self.depth > self.options.decode_max_depth || !lua.reserve(room) {
            return lua.raise_text(&format!(
                "Found too many nested data structures ({}) at character {}",
                self.depth, self.at
            ));
        }
        Ok(())
    }

    fn push_object(&mut self, lua: &mut Stack) -> Raised<()> {
        self.descend(lua, 3)?;
        lua.push_table(0, 0);
        let mut token = self.next();
        if token.kind == TokenKind::ObjectEnd {
            self.depth -= 1;
            return Ok(());
        }
        loop {
            match &token.kind {
                TokenKind::String(key) => lua.push_bytes(key),
                _ => return fail(lua, "object key string", &token),
            }
            token = self.next();
            if token.kind != TokenKind::Colon {
                return fail(lua, "colon", &token);
            }
            token = self.next();
            self.push_value(lua, token)?;
            lua.raw_set(-3);
            token = self.next();
            match token.kind {
                TokenKind::ObjectEnd => break,
                TokenKind::Comma => token = self.next(),
                _ => return fail(lua, "comma or object end", &token),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn push_array(&mut self, lua: &mut Stack) -> Raised<()> {
        self.descend(lua, 2)?;
        lua.push_table(0, 0);
        let mut token = self.next();
        let mut len = 0;
        while token.kind != TokenKind::ArrayEnd {
            self.push_value(lua, token)?;
            len += 1;
            lua.raw_set_at(-2, len);
            token = self.next();
            match token.kind {
                TokenKind::ArrayEnd => break,
                TokenKind::Comma => token = self.next(),
                _ => return fail(lua, "comma or array end", &token),
            }
            if token.kind == TokenKind::ArrayEnd {
                return fail(lua, "value", &token);
            }
        }
        self.depth -= 1;
        Ok(())
    }
}

/// Appends a code point as UTF-8, even if it is not a character.
fn append_utf8(code: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend_from_slice(&[0xc0 | (code >> 6) as u8, tail(0)]),
        0x800..0x10000 => out.extend_from_slice(&[0xe0 | (code >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend_from_slice(&[0xf0 | (code >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<TokenKind> {
        let options = Options::default();
        let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0, options: &options };
        let mut kinds = Vec::new();
        loop {
            let token = parser.next();
            let is_last = matches!(token.kind, TokenKind::End | TokenKind::Error(_));
            kinds.push(token.kind);
            if is_last {
                return kinds;
            }
        }
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(
            tokens(r#""\u00e9\ud83d\ude00\n\/""#),
            [TokenKind::String("é😀\n/".as_bytes().to_vec()), TokenKind::End]
        );
        assert_eq!(tokens(r#""\ud83d""#), [TokenKind::Error("invalid unicode escape code")]);
        assert_eq!(tokens(r#""\x""#), [TokenKind::Error("invalid escape code")]);
        assert_eq!(tokens(r#""abc"#), [TokenKind::Error("unexpected end of string")]);
    }

    #[test]
    fn numbers_are_read_as_strtod_reads_them() {
        assert_eq!(tokens("-1.5e3"), [TokenKind::Number(-1500.0), TokenKind::End]);
        assert_eq!(tokens("0x10"), [TokenKind::Number(16.0), TokenKind::End]);
        assert_eq!(tokens("-"), [TokenKind::Error("invalid number")]);
    }
}
