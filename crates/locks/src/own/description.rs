//! Parses the file that describes a lock.

use std::fmt;

use super::roles;
use crate::binding::{Binding, CHANNEL, CLOCK_MS, LEASE_MS, LOCK, OWNER, Parameter};
use crate::role::Role;
use crate::script_set::LockScript;

/// The reason why a description is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptionError {
    /// The file is not valid TOML.
    Syntax(String),
    UnknownPart(String),
    MissingPart(&'static str),
    MissingField {
        part: &'static str,
        field: &'static str,
    },
    UnknownWord {
        part: &'static str,
        field: &'static str,
        /// The word as written in TOML.
        word: String,
    },
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DescriptionError::Syntax(error) => f.write_str(error),
            DescriptionError::UnknownPart(part) => write!(f, "[{part}] is neither [acquire] nor [release]"),
            DescriptionError::MissingPart(part) => write!(f, "[{part}] is missing"),
            DescriptionError::MissingField { part, field } => write!(f, "[{part}] has no {field}"),
            DescriptionError::UnknownWord { part, field, word } => {
                write!(f, "[{part}] {field}: {word} is none of lock, channel, owner, lease_ms, now_ms")
            }
        }
    }
}

impl std::error::Error for DescriptionError {}

/// Parses the description of a lock.
///
/// # Errors
/// Fails if the text is not TOML, or does not describe exactly an acquire and a release.
pub fn scripts(description: &str) -> Result<Vec<LockScript>, DescriptionError> {
    let syntax = |error: toml::de::Error| DescriptionError::Syntax(error.to_string());
    let table: toml::Table = description.parse().map_err(syntax)?;
    let known = [("acquire", roles::ACQUIRE), ("release", roles::RELEASE)];
    if let Some(unknown) = table.keys().find(|key| !known.iter().any(|(name, _)| name == key)) {
        return Err(DescriptionError::UnknownPart(unknown.clone()));
    }
    known.into_iter().map(|(name, role)| script(&table, name, role)).collect()
}

fn script(table: &toml::Table, name: &'static str, role: Role) -> Result<LockScript, DescriptionError> {
    let part = table.get(name).and_then(|part| part.as_table());
    let part = part.ok_or(DescriptionError::MissingPart(name))?;
    let missing = |field| DescriptionError::MissingField { part: name, field };
    let text = part.get("script").and_then(|text| text.as_str()).ok_or(missing("script"))?;
    let parameters = |field: &'static str| -> Result<Vec<Parameter>, DescriptionError> {
        let words = part.get(field).and_then(|words| words.as_array()).ok_or(missing(field))?;
        let parameter = |word: &toml::Value| match word.as_str() {
            Some("lock") => Ok(LOCK),
            Some("channel") => Ok(CHANNEL),
            Some("owner") => Ok(OWNER),
            Some("lease_ms") => Ok(LEASE_MS),
            Some("now_ms") => Ok(CLOCK_MS),
            _ => Err(DescriptionError::UnknownWord { part: name, field, word: format!("{word:?}") }),
        };
        words.iter().map(parameter).collect()
    };
    let binding = Binding { keys: parameters("keys")?, args: parameters("args")? };
    Ok(LockScript { role, name: name.to_owned(), text: text.to_owned(), binding, uses: Vec::new() })
}
