//! Passwords in requests: which arguments MONITOR, SLOWLOG and traces must not show.

use smallvec::SmallVec;

use crate::version::Version;
use crate::wire::Args;

/// Why an argument is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The name of a user, or a rule for one.
    User,
    /// A password that a client offers.
    Offered,
    /// A password that is stored from now on.
    Stored,
}

/// An argument that must not be shown, or its part from the byte `from` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    pub index: usize,
    pub from: usize,
    pub secret: Secret,
}

/// What stands in place of a hidden argument.
const REDACTED: &[u8] = b"(redacted)";

/// Returns whether a parameter of the configuration is a secret.
pub fn is_secret_parameter(name: &[u8]) -> bool {
    ["requirepass", "masterauth", "masteruser", "tls-key-file-pass", "tls-client-key-file-pass"]
        .iter()
        .any(|secret| secret.as_bytes().eq_ignore_ascii_case(name))
}

/// Returns the arguments of a request that must not be shown, in order.
pub fn hidden(argv: &[&[u8]]) -> SmallVec<[Hidden; 2]> {
    let mut found = SmallVec::new();
    let is =
        |at: usize, word: &str| argv.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let mut hide = |index, secret| {
        if index < argv.len() {
            found.push(Hidden { index, from: 0, secret });
        }
    };
    let mut at = 2;
    match argv.first().map_or(0, |name| name.len()) {
        4 if is(0, "AUTH") => match argv.len() {
            2 => hide(1, Secret::Offered),
            3 => {
                hide(1, Secret::User);
                hide(2, Secret::Offered);
            }
            _ => {}
        },
        5 if is(0, "HELLO") => {
            while at < argv.len() {
                if is(at, "AUTH") && at + 2 < argv.len() {
                    hide(at + 1, Secret::User);
                    hide(at + 2, Secret::Offered);
                    at += 2;
                } else if is(at, "SETNAME") {
                    at += 1;
                }
                at += 1;
            }
        }
        6 if is(0, "CONFIG") && is(1, "SET") => {
            while at + 1 < argv.len() {
                if is_secret_parameter(argv[at]) {
                    hide(at + 1, Secret::Stored);
                }
                at += 2;
            }
        }
        7 if is(0, "MIGRATE") => {
            at = 6;
            while at < argv.len() && !is(at, "KEYS") {
                if is(at, "AUTH") {
                    hide(at + 1, Secret::Offered);
                    at += 1;
                } else if is(at, "AUTH2") {
                    hide(at + 1, Secret::User);
                    hide(at + 2, Secret::Offered);
                    at += 2;
                }
                at += 1;
            }
        }
        3 if is(0, "ACL") && (is(1, "SETUSER") || is(1, "GETUSER") || is(1, "DELUSER")) => {
            while at < argv.len() {
                let is_password = at > 2 && is(1, "SETUSER") && matches!(argv[at].first(), Some(b'>' | b'<'));
                let (from, secret) = if is_password { (1, Secret::Stored) } else { (0, Secret::User) };
                found.push(Hidden { index: at, from, secret });
                at += 1;
            }
        }
        _ => {}
    }
    found
}

/// Returns the arguments as MONITOR and SLOWLOG show them.
pub(super) fn redacted<'a>(argv: &[&'a [u8]], version: Version) -> Args<'a> {
    let mut shown: Args = argv.iter().copied().collect();
    // 7.0 hides the user only where a password may follow.
    let shows_users =
        version < Version::V7_2 && !argv.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"SETUSER"));
    let is_acl = argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"ACL"));
    if !(is_acl && shows_users) {
        hidden(argv).iter().for_each(|hidden| shown[hidden.index] = REDACTED);
    }
    shown
}
