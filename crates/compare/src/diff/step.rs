//! A command of a round, and its text form in a case.

use super::exclusions::{self, Compare};
use redlatch_core::commands::command::BLOCKING;
use redlatch_core::commands::table;
use redlatch_core::version::Version;

/// A command on a connection.
#[derive(Clone, Debug)]
pub struct Step {
    /// The index of the connection.
    pub client: usize,
    pub argv: Vec<Vec<u8>>,
    pub compare: Compare,
    /// How long to wait after the command, in ms.
    pub wait_ms: u64,
    /// A command to send after that wait.
    pub then: Option<Box<Step>>,
    /// Whether the step is not sent together with others: it may block, closes the connection, or does not have exactly one reply.
    pub stands_alone: bool,
}

impl Step {
    pub fn new(client: usize, argv: Vec<Vec<u8>>, compare: Compare) -> Step {
        let mut step = Step { client, argv, compare, wait_ms: 0, then: None, stands_alone: false };
        let command = step.command();
        step.stands_alone = command == "QUIT"
            || exclusions::UNFRAMED.contains(&&*command)
            || table::find_by_name(command.as_bytes(), Version::V7_4).is_some_and(|row| row.has(BLOCKING));
        step
    }

    /// Returns the name of the command in upper case.
    pub fn command(&self) -> String {
        String::from_utf8_lossy(self.argv.first().map_or(b"", Vec::as_slice)).to_ascii_uppercase()
    }
}

/// Returns the name of a connection in the text form.
pub fn client_name(client: usize) -> char {
    char::from(b'a' + (client % 26) as u8)
}

/// Returns the mark in the text form for how a reply is compared.
pub fn mark(compare: Compare) -> &'static str {
    match compare {
        Compare::Exactly => "",
        Compare::AnyOrder => "~ ",
        Compare::Nearly | Compare::Kind => "% ",
    }
}

/// Quotes arguments as redis-cli and the cases of tests/differential do.
pub fn quote(argv: &[Vec<u8>]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quote_word(word)).collect();
    words.join(" ")
}

fn quote_word(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.iter().all(plain) {
        return String::from_utf8_lossy(word).into_owned();
    }
    let mut text = String::from("\"");
    for &byte in word {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b'\n' => text += "\\n",
            b'\r' => text += "\\r",
            b'\t' => text += "\\t",
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlatch_core::wire::request::split_words;

    #[test]
    fn what_is_quoted_can_be_read_again() {
        let argv: Vec<Vec<u8>> = [&b"SET"[..], b"", b"a b", b"\"\\'", b"\x00\xff\r\n\t", "é".as_bytes()]
            .map(<[u8]>::to_vec)
            .into();
        assert_eq!(split_words(quote(&argv).as_bytes()), Some(argv));
    }
}
