//! The words of a line: quotes, variables, names, and the column of each.

use std::collections::BTreeMap;

use super::failure::Failure;
use redlatch_core::wire::request::split_word;

/// What `let`, `script` and `repeat … as` have defined.
pub type Variables = BTreeMap<String, String>;

/// The most bytes of a text with its variables replaced.
const MAX_TEXT: usize = 64 << 20;

/// A failure, and the column at which it is, from 1.
pub type At = (usize, Failure);

/// Returns the column of a part of a line.
pub fn column_of(line: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize).min(line.len());
    line[..offset].chars().count() + 1
}

/// Splits the arguments of a command into words, and replaces variables: `$NAME` as a whole word, `${NAME}` anywhere.
///
/// # Errors
/// Quotes are unbalanced, or a variable is not defined.
pub fn split(line: &str, text: &str, variables: &Variables) -> Result<Vec<Vec<u8>>, At> {
    let mut words = Vec::new();
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let column = column_of(line, rest);
        let (word, tail) = split_word(rest.as_bytes()).ok_or((column, Failure::UnbalancedQuotes))?;
        let tail = &rest[rest.len() - tail.len()..];
        let written = rest[..rest.len() - tail.len()].trim_ascii_end();
        words.push(expand_word(written, word, variables).map_err(|failure| (column, failure))?);
        rest = tail.trim_ascii_start();
    }
    Ok(words)
}

/// Replaces variables in a word. One that is written with an escaped `$` has none.
fn expand_word(written: &str, word: Vec<u8>, variables: &Variables) -> Result<Vec<u8>, Failure> {
    if let Some(name) = written.strip_prefix('$').filter(|name| is_name(name)) {
        return look_up(name, variables).map(|text| text.as_bytes().to_vec());
    }
    if !written.contains("${") {
        return Ok(word);
    }
    match String::from_utf8(word) {
        Ok(word) => expand(&word, variables).map(String::into_bytes),
        Err(_) => Err(Failure::MixedWord),
    }
}

/// Replaces each `${NAME}` in a text.
///
/// # Errors
/// A variable is not defined.
pub fn expand(text: &str, variables: &Variables) -> Result<String, Failure> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        expanded.push_str(before);
        match behind.split_once('}').filter(|(name, _)| is_name(name)) {
            Some((name, tail)) => {
                expanded.push_str(look_up(name, variables)?);
                rest = tail;
                if expanded.len() > MAX_TEXT {
                    return Err(Failure::Limit(format!("the line has more than {} MiB", MAX_TEXT >> 20)));
                }
            }
            None => {
                expanded.push_str("${");
                rest = behind;
            }
        }
    }
    Ok(expanded + rest)
}

fn look_up<'v>(name: &str, variables: &'v Variables) -> Result<&'v str, Failure> {
    variables.get(name).map(String::as_str).ok_or_else(|| Failure::NotDefined(name.to_owned()))
}

/// Returns whether a text is the name of a variable: letters, digits and `_`, a letter first.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Writes a word so that [`split`] reads the same bytes.
pub fn quote(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'');
    let has_variable = word.windows(2).any(|pair| pair == b"${")
        || word.strip_prefix(b"$").is_some_and(|name| std::str::from_utf8(name).is_ok_and(is_name));
    if !word.is_empty() && !has_variable && word.iter().all(is_plain) {
        return String::from_utf8_lossy(word).into_owned();
    }
    in_quotes(word)
}

/// Writes bytes in double quotes, with the escapes of redis-cli.
pub fn in_quotes(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                '$' if chars.peek() == Some(&'{') => quoted.push_str("\\x24"),
                c if c.is_control() => c.to_string().bytes().for_each(|byte| push_hex(&mut quoted, byte)),
                c => quoted.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_hex(&mut quoted, *byte));
    }
    quoted + "\""
}

fn push_hex(quoted: &mut String, byte: u8) {
    quoted.push_str(&format!("\\x{byte:02x}"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quoted_words_are_read_as_they_were(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..6)) {
            let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split(&line, &line, &Variables::new()).unwrap(), words);
        }
    }

    #[test]
    fn variables_are_replaced_where_they_are_written_as_such() {
        let variables =
            Variables::from([("i".to_owned(), "7".to_owned()), ("TEXT".to_owned(), "a 'b".to_owned())]);
        let line = r#"$TEXT k${i}:x "${i} \x24{i}" "\x24{i}" $ $5 '$i' ${"#;
        let words: Vec<String> = split(line, line, &variables)
            .unwrap()
            .into_iter()
            .map(|word| String::from_utf8(word).unwrap())
            .collect();
        assert_eq!(words, ["a 'b", "k7:x", "7 7", "${i}", "$", "$5", "$i", "${"]);
        assert_eq!(split("x ${j}", "x ${j}", &variables), Err((3, Failure::NotDefined("j".to_owned()))));
        assert_eq!(split("é \"x", "é \"x", &variables), Err((3, Failure::UnbalancedQuotes)));
    }
}
