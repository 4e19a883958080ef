//! The file of users: a line of rules for each, as ACL SAVE writes it and ACL LOAD reads it.

use super::user::RuleError;
use super::{Acl, Context, User, hash_password};
use crate::error::c_text;

impl Acl {
    /// Returns the file with all users.
    pub fn to_file(&self) -> Vec<u8> {
        self.users().flat_map(|user| [user.describe(), b"\n".to_vec()].concat()).collect()
    }
}

/// Reads the users of a file. `name`: the name of the file, for errors.
///
/// # Errors
/// Fails with the text of ACL LOAD, which names all wrong lines.
pub fn parse(text: &[u8], name: &str, context: Context) -> Result<Vec<User>, Vec<u8>> {
    let mut users: Vec<User> = Vec::new();
    let mut errors = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = trim(line, b" \t\r");
        let place = format!("{name}:{}", index + 1);
        let mut words = line.split(|byte| *byte == b' ');
        match (words.next(), words.next()) {
            _ if line.is_empty() => {}
            (Some(b"user"), Some(user)) if users.iter().any(|known| known.name() == user) => {
                let at = format!("' found on line {}. ", index + 1);
                errors.extend([b"WARNING: Duplicate user '", user, at.as_bytes()].concat());
            }
            (Some(b"user"), Some(user)) => {
                let rules: Vec<&[u8]> = words.map(|word| trim(word, b"\t\r")).collect();
                let (user, refused) = User::new(user, context).with_all_rules(&rules, context);
                users.push(user);
                errors.extend(explain(&place, &refused));
            }
            _ => errors.extend(
                format!("{place} should start with user keyword followed by the username. ").into_bytes(),
            ),
        }
    }
    if errors.is_empty() {
        return Ok(users);
    }
    errors.extend_from_slice(
        b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    );
    Err(errors)
}

/// Explains why rules of a line were refused: of those that name no unknown command only the first.
fn explain(place: &str, refused: &[(Vec<u8>, RuleError)]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut has_other = false;
    for (rule, why) in refused {
        if *why == RuleError::UnknownCommand {
            let quoted = [b": Error in applying operation '", c_text(rule), b"': "].concat();
            text.extend([place.as_bytes(), &quoted, why.text().as_bytes(), b". "].concat());
        } else if !std::mem::replace(&mut has_other, true) {
            text.extend(format!("{place}: {}. ", why.text()).into_bytes());
        }
    }
    text
}

/// Returns the text of a file with the hashes of passwords in the place of the passwords.
pub fn without_passwords(text: &[u8]) -> Vec<u8> {
    let mut hidden = Vec::with_capacity(text.len());
    for (index, word) in text.split_inclusive(|byte| byte.is_ascii_whitespace()).enumerate() {
        let (mark, end) = match word {
            _ if index == 0 => (None, 0),
            [b'>', ..] => (Some(b'#'), word.trim_ascii_end().len()),
            [b'<', ..] => (Some(b'!'), word.trim_ascii_end().len()),
            _ => (None, 0),
        };
        if let Some(mark) = mark {
            hidden.push(mark);
            hidden.extend_from_slice(hash_password(&word[1..end]).digits());
        }
        hidden.extend_from_slice(&word[end..]);
    }
    hidden
}

fn trim<'a>(mut text: &'a [u8], blanks: &[u8]) -> &'a [u8] {
    while let [first, rest @ ..] = text
        && blanks.contains(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && blanks.contains(last)
    {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    #[test]
    fn passwords_are_hidden_and_stay_the_same() {
        let context = Context { version: Version::V7_4, all_channels: false };
        let text = b"user a on >pw ~>k +@all\r\nuser b >x\n";
        let hidden = without_passwords(text);
        assert!(!hidden.windows(3).any(|part| part == b">pw"));
        let described = |text: &[u8]| -> Vec<Vec<u8>> {
            parse(text, "f", context).unwrap().iter().map(User::describe).collect()
        };
        assert_eq!(described(text), described(&hidden));
    }
}
