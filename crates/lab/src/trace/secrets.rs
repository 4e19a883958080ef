//! Passwords in traces. A trace has a stand-in for each, of the same length, so that it can be given away. A replay takes
//! the stand-ins for passwords, and decides as the recorded run did: equal passwords have equal stand-ins.

use std::collections::{BTreeMap, BTreeSet};

use redlatch_core::acl::hash_password;
use redlatch_core::node::secrets::{Hidden, Secret, is_secret_parameter};

/// The stand-ins of a trace.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Whether the trace shows its passwords.
    pub is_off: bool,
    /// The stand-ins of the passwords that were stored.
    stored: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The last stand-in of each length.
    last: BTreeMap<usize, Vec<u8>>,
    /// The hashes in hex of passwords that the trace does not have: those of users at the beginning, and those that ACL SETUSER
    /// has stored as hashes.
    hashes: BTreeSet<Vec<u8>>,
    /// The hashes of the passwords that were stored, with those of their stand-ins.
    stored_hashes: Vec<([u8; 64], [u8; 64])>,
    /// Whether a client has asked for settings, so that a reply may show a password.
    are_asked_for: bool,
    /// Whether a client has asked for users, so that a reply may show a hash.
    are_users_asked_for: bool,
}

/// What stands for a byte of a password that never was stored.
const UNKNOWN: u8 = b'*';

impl Secrets {
    /// Returns the stand-in of a password that is stored.
    pub fn stored(&mut self, password: &[u8]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        if let Some(known) = self.stored.get(password) {
            return known.clone();
        }
        let last = self.last.entry(password.len()).or_insert_with(|| vec![UNKNOWN; password.len()]);
        next(last);
        let last = last.clone();
        self.stored.insert(password.to_vec(), last.clone());
        self.stored_hashes.push((*hash_password(password).digits(), *hash_password(&last).digits()));
        last
    }

    /// Returns the stand-in of a password that a client offers.
    fn offered(&self, password: &[u8]) -> Vec<u8> {
        if !self.hashes.is_empty() {
            // In a replay the hash is what a client offers.
            let given = password.strip_prefix(b"#").filter(|hash| self.hashes.contains(*hash));
            if let Some(hash) = given.map(<[u8]>::to_vec).or_else(|| self.known_hash(password)) {
                return [b"#", &hash[..]].concat();
            }
        }
        self.stored.get(password).cloned().unwrap_or_else(|| vec![UNKNOWN; password.len()])
    }

    /// Returns the hash of a password if it is one of those that stand for their passwords.
    fn known_hash(&self, password: &[u8]) -> Option<Vec<u8>> {
        self.hashes.get(&hash_password(password).digits()[..]).cloned()
    }

    /// Returns the arguments of a request with its passwords hidden.
    pub fn hide(&mut self, argv: &[&[u8]], hidden: &[Hidden]) -> Vec<Vec<u8>> {
        let hidden = if self.is_off { &[] } else { hidden };
        let mut shown: Vec<Vec<u8>> = argv.iter().map(|arg| arg.to_vec()).collect();
        for &Hidden { index, from, secret } in hidden {
            let password = &argv[index][from..];
            // Of ACL SETUSER: a rule for the hash has the same effect.
            if secret == Secret::Stored
                && from == 1
                && let Some(hash) = self.known_hash(password)
            {
                let sign = if argv[index][0] == b'>' { b'#' } else { b'!' };
                shown[index] = [&[sign], &hash[..]].concat();
                continue;
            }
            let stand_in = match secret {
                Secret::User => continue,
                Secret::Offered => self.offered(password),
                Secret::Stored => self.stored(password),
            };
            shown[index].splice(from.., stand_in);
        }
        shown
    }

    /// Notes the hashes of passwords in a line of the state at the beginning: they are the stand-ins of these passwords.
    pub fn look_at_state(&mut self, words: &[&[u8]]) {
        if words.first() == Some(&&b"USER"[..]) {
            self.note_hashes(words);
        }
    }

    /// Notes the hashes in a file of users that a node reads.
    pub fn look_at_file(&mut self, text: &[u8]) {
        let words: Vec<&[u8]> = text.split(u8::is_ascii_whitespace).collect();
        self.note_hashes(&words);
    }

    /// Notes whether a request may show passwords, as only CONFIG GET does, or hashes, and the hashes that it stores.
    pub fn look_at(&mut self, argv: &[&[u8]]) {
        let is = |at: usize, word: &[u8]| argv.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
        if is(0, b"CONFIG") {
            self.are_asked_for |= is(1, b"GET");
        } else if is(0, b"ACL") {
            self.are_users_asked_for |= is(1, b"LIST") || is(1, b"GETUSER");
            if is(1, b"SETUSER") {
                self.note_hashes(argv);
            }
        }
    }

    fn note_hashes(&mut self, rules: &[&[u8]]) {
        let hashes = rules.iter().filter_map(|rule| rule.strip_prefix(b"#")).filter(|hash| hash.len() == 64);
        self.hashes.extend(hashes.map(<[u8]>::to_vec));
    }

    /// Returns a reply with the passwords in it hidden, or `None` if there are none.
    pub fn hide_in_reply(&self, reply: &[u8]) -> Option<Vec<u8>> {
        if self.is_off {
            return None;
        }
        let mut shown = if self.are_users_asked_for { self.hide_hashes(reply) } else { None };
        if !self.are_asked_for {
            return shown;
        }
        let mut at = 0;
        while let Some((name, after)) = bulk(reply, at) {
            at = after;
            if is_secret_parameter(&reply[name])
                && let Some((value, _)) = bulk(reply, at)
                && let Some(stand_in) = self.stored.get(&reply[value.clone()])
            {
                shown.get_or_insert_with(|| reply.to_vec())[value].copy_from_slice(stand_in);
            }
        }
        shown
    }

    /// Returns a reply with the hashes of stored passwords replaced by those of their stand-ins, or `None` if there are none.
    fn hide_hashes(&self, reply: &[u8]) -> Option<Vec<u8>> {
        let mut shown: Option<Vec<u8>> = None;
        for (hash, stand_in) in &self.stored_hashes {
            let found = reply.windows(hash.len()).enumerate().filter(|(_, bytes)| bytes == hash);
            for (at, _) in found {
                let shown = shown.get_or_insert_with(|| reply.to_vec());
                shown[at..at + hash.len()].copy_from_slice(stand_in);
            }
        }
        shown
    }
}

/// Changes bytes to the next value of a counter of that many bytes.
fn next(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

/// Returns where the next bulk string after `from` is, and where it ends.
fn bulk(reply: &[u8], from: usize) -> Option<(std::ops::Range<usize>, usize)> {
    let mut at = from;
    loop {
        at += reply.get(at..)?.iter().position(|&byte| byte == b'$')? + 1;
        let line = reply[at..].iter().position(|&byte| byte == b'\r').map(|len| &reply[at..at + len])?;
        let len = std::str::from_utf8(line).ok().and_then(|digits| digits.parse::<usize>().ok());
        let start = at + line.len() + 2;
        if let Some(end) = len.and_then(|len| start.checked_add(len)).filter(|&end| end <= reply.len()) {
            return Some((start..end, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_are_equal_where_passwords_are() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.offered(b"first"), b"*****");
        assert_eq!(secrets.stored(b"first"), b"****+");
        assert_eq!(secrets.stored(b"other"), b"****,");
        assert_eq!(secrets.offered(b"first"), b"****+");
        // A replay sees stand-ins, and gives each itself.
        let mut replayed = Secrets::default();
        for stand_in in [b"****+", b"****,"] {
            assert_eq!(replayed.stored(stand_in), stand_in);
        }
    }

    #[test]
    fn replies_to_config_get_show_no_password() {
        let mut secrets = Secrets::default();
        secrets.stored(b"hush");
        let reply = b"*4\r\n$2\r\nhz\r\n$2\r\n10\r\n$11\r\nREQUIREPASS\r\n$4\r\nhush\r\n";
        assert_eq!(secrets.hide_in_reply(reply), None, "nobody has asked");
        secrets.look_at(&[b"config", b"get", b"*"]);
        let shown = secrets.hide_in_reply(reply).unwrap();
        assert!(shown.ends_with(b"$4\r\n***+\r\n"), "{}", shown.escape_ascii());
        assert_eq!(secrets.hide_in_reply(b"$4\r\nhush\r\n"), None, "a value that is no setting");
    }
}
