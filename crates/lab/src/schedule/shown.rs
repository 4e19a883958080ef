//! A reply or message in one line: what a schedule expects, and what `redlatch demo` prints.
//!
//! | reply | shown as |
//! |---|---|
//! | nil | `nil` |
//! | number, boolean | `7`, `1.5`, `true` |
//! | status, string | `OK`, `some text`; in quotes if it is empty, has characters that do not print, or could be taken for something else: `"7"`, `"nil"` |
//! | error | `(error) ERR …` |
//! | list, set, message | `[message, news, "1"]` |
//! | map | `{field: value}` |
//! | bytes that are no reply | `(bytes) "+O"` |

use super::words::in_quotes;
use redlatch_core::wire::Value;

/// Returns a value in one line.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Error(text) => format!("(error) {}", escaped(text)),
        Value::Status(text) => text_of(text.as_bytes()),
        Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => text_of(bytes),
        Value::Array(items) | Value::Set(items) | Value::Push(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Value::Map(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(key, value)| format!("{}: {}", shown(key), shown(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        value => value.to_string(),
    }
}

/// Shows bytes that are no reply.
pub fn shown_bytes(bytes: &[u8]) -> String {
    format!("(bytes) {}", in_quotes(bytes))
}

/// Shows an error without line ends.
fn escaped(text: &str) -> String {
    match text.chars().any(char::is_control) || text.contains("${") || text.trim() != text {
        true => in_quotes(text.as_bytes()),
        false => text.to_owned(),
    }
}

/// Shows a text, in quotes if it could be taken for something else.
fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(text) => text.to_owned(),
        _ => in_quotes(bytes),
    }
}

fn is_plain(text: &str) -> bool {
    let names_something = matches!(text, "" | "nil" | "waits" | "closed" | "true" | "false");
    let looks_special = text.starts_with(['"', '(', '[', '{', '~', '=']) || text.parse::<f64>().is_ok();
    let is_clear =
        !text.contains("${") && !text.contains(", ") && !text.contains(": ") && !text.ends_with([']', '}']);
    let prints = text.trim() == text && !text.chars().any(char::is_control);
    !names_something && !looks_special && is_clear && prints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_mistaken_is_in_quotes() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        for (value, text) in [
            (Value::Nil, "nil"),
            (bulk("nil"), "\"nil\""),
            (Value::Int(7), "7"),
            (bulk("7"), "\"7\""),
            (bulk(""), "\"\""),
            (bulk("v1 by c1"), "v1 by c1"),
            (bulk("a\r\nb\u{1}"), "\"a\\r\\nb\\x01\""),
            (Value::Bulk(vec![0xff]), "\"\\xff\""),
            (Value::Status("OK".to_owned()), "OK"),
            (Value::Error("ERR x".to_owned()), "(error) ERR x"),
            (Value::Array(vec![bulk("a"), Value::Int(1), Value::Array(vec![])]), "[a, 1, []]"),
            (Value::Map(vec![(bulk("k"), bulk("a, b"))]), "{k: \"a, b\"}"),
        ] {
            assert_eq!(shown(&value), text);
        }
    }
}
