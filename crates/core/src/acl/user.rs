//! One user: whether the user is active, passwords and permissions, and the rules of ACL SETUSER that set them.

use super::password::{self, Hash};
use super::selector::has_blanks;
use super::{Context, DEFAULT_USER, Denial, Selector};
use crate::commands::command::Command;
use crate::error::c_text;
use crate::node::session::{Session, SubscriptionKind};
use crate::version::Version;
use crate::wire::request::split_words;

/// Why a rule was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    UnknownCommand,
    Syntax,
    AfterAllKeys,
    AfterAllChannels,
    NoSuchPassword,
    BadHash,
    FirstArgumentOfSubcommand,
}

impl RuleError {
    /// Returns Redis's explanation.
    pub fn text(self) -> &'static str {
        match self {
            RuleError::UnknownCommand => "Unknown command or category name in ACL",
            RuleError::Syntax => "Syntax error",
            RuleError::AfterAllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::AfterAllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            RuleError::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            RuleError::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            RuleError::FirstArgumentOfSubcommand => "Allowing first-arg of a subcommand is not supported",
        }
    }
}

/// Why the rules of a user were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// This rule is wrong.
    Rule(Vec<u8>, RuleError),
    /// A selector that begins with this word does not end.
    Unmatched(Vec<u8>),
}

impl ParseError {
    /// Returns the text of the error, as ACL SETUSER has it after its code.
    pub fn explain(&self) -> Vec<u8> {
        match self {
            ParseError::Rule(rule, why) => {
                [b"Error in ACL SETUSER modifier '", c_text(rule), b"': ", why.text().as_bytes()].concat()
            }
            ParseError::Unmatched(word) => {
                [b"Unmatched parenthesis in acl selector starting at '", c_text(word), b"'."].concat()
            }
        }
    }
}

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    name: Box<[u8]>,
    pub(super) is_on: bool,
    /// Whether any password is accepted.
    pub(super) no_password: bool,
    /// Whether payloads of RESTORE are checked, if it was said.
    pub(super) sanitize: Option<bool>,
    pub(super) passwords: Vec<Hash>,
    pub(super) root: Selector,
    pub(super) selectors: Vec<Selector>,
    is_unrestricted: bool,
}

impl User {
    /// Creates a user who may do nothing and cannot log in.
    pub fn new(name: &[u8], context: Context) -> User {
        User {
            name: name.into(),
            is_on: false,
            no_password: false,
            sanitize: (context.version >= Version::V7_2).then_some(true),
            passwords: Vec::new(),
            root: Selector::new(context),
            selectors: Vec::new(),
            is_unrestricted: false,
        }
    }

    /// Creates the user of new connections, who may do everything without a password.
    pub fn default_user(version: Version) -> User {
        let mut user = User::new(DEFAULT_USER, Context { version, all_channels: true });
        (user.is_on, user.no_password, user.root.all_keys) = (true, true, true);
        user.root.set_all_commands(true);
        user.is_unrestricted = true;
        user
    }

    /// Returns the user with this only password, or with none if it is empty.
    pub fn with_password(&self, password: &[u8]) -> User {
        let mut user = self.clone();
        user.no_password = password.is_empty();
        user.passwords.clear();
        if !password.is_empty() {
            user.passwords.push(password::hash(password));
        }
        user
    }

    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns whether a name may be given to a user.
    pub fn is_valid_name(name: &[u8]) -> bool {
        !has_blanks(name)
    }

    /// Returns whether the user may run every command on every key and channel.
    pub fn is_unrestricted(&self) -> bool {
        self.is_unrestricted
    }

    /// Returns whether any password is accepted for the user.
    pub fn has_no_password(&self) -> bool {
        self.no_password
    }

    /// Returns whether new connections of this user, if it is `default`, need no authentication.
    pub fn is_open(&self) -> bool {
        self.no_password && self.is_on
    }

    /// Returns whether a password logs the user in. Compares with every password, in constant time.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let given = password::hash(password);
        let is_known = self.passwords.iter().fold(false, |found, hash| found | hash.is_equal(&given));
        self.is_on && (self.no_password || is_known)
    }

    /// Returns whether `#` and the hash of a password log the user in, where [`Acl`](super::Acl) accepts hashes.
    pub(super) fn accepts_hash(&self, text: &[u8]) -> bool {
        let given = text.strip_prefix(b"#").and_then(password::parse_hash);
        let is_one =
            |given: Hash| self.passwords.iter().fold(false, |found, hash| found | hash.is_equal(&given));
        self.is_on && given.is_some_and(is_one)
    }

    /// Returns the user with these rules applied one after the other.
    ///
    /// # Errors
    ///
    /// Fails at the first rule that is wrong, or if a selector's parenthesis is not closed.
    pub fn with_rules(&self, rules: &[&[u8]], context: Context) -> Result<User, ParseError> {
        let mut user = self.clone();
        for rule in join_selectors(rules, context.version)? {
            user.apply(&rule, context).map_err(|why| ParseError::Rule(rule, why))?;
        }
        user.note_restrictions();
        Ok(user)
    }

    /// Returns this user with those of the rules that are right, and the others.
    pub(super) fn with_all_rules(
        &self,
        rules: &[&[u8]],
        context: Context,
    ) -> (User, Vec<(Vec<u8>, RuleError)>) {
        let mut user = self.clone();
        let rules = match join_selectors(rules, context.version) {
            Ok(rules) => rules,
            Err(ParseError::Unmatched(rule) | ParseError::Rule(rule, _)) => {
                return (user, vec![(rule, RuleError::Syntax)]);
            }
        };
        let refused =
            rules.into_iter().filter_map(|rule| user.apply(&rule, context).err().map(|why| (rule, why)));
        let refused = refused.collect();
        user.note_restrictions();
        (user, refused)
    }

    /// Notes whether the rules leave any restriction.
    fn note_restrictions(&mut self) {
        let is_unrestricted = self.every_selector().any(Selector::is_unrestricted);
        self.is_unrestricted = is_unrestricted;
    }

    fn apply(&mut self, rule: &[u8], context: Context) -> Result<(), RuleError> {
        match c_text(rule).to_ascii_lowercase().as_slice() {
            _ if rule.is_empty() => {}
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"nopass" => {
                self.no_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.no_password = false;
                self.passwords.clear();
            }
            b"sanitize-payload" => self.sanitize = Some(true),
            b"skip-sanitize-payload" => self.sanitize = Some(false),
            b"clearselectors" => self.selectors.clear(),
            b"reset" => {
                let name = std::mem::take(&mut self.name);
                *self = User { name, sanitize: Some(true), ..User::new(b"", context) };
            }
            _ => match rule {
                [b'>', password @ ..] => self.add_password(password::hash(password)),
                [b'#', hash @ ..] => self.add_password(password::parse_hash(hash).ok_or(RuleError::BadHash)?),
                [b'<', password @ ..] => self.remove_password(password::hash(password))?,
                [b'!', hash @ ..] => {
                    self.remove_password(password::parse_hash(hash).ok_or(RuleError::BadHash)?)?;
                }
                [b'(', rules @ .., b')'] => {
                    let mut selector = Selector::new(context);
                    for rule in split_words(rules).unwrap_or_default() {
                        selector.apply(&rule)?;
                    }
                    self.selectors.push(selector);
                }
                _ => self.root.apply(rule)?,
            },
        }
        Ok(())
    }

    fn add_password(&mut self, hash: Hash) {
        if !self.passwords.iter().any(|known| known.is_equal(&hash)) {
            self.passwords.push(hash);
        }
        self.no_password = false;
    }

    fn remove_password(&mut self, hash: Hash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| known.is_equal(&hash));
        let at = at.ok_or(RuleError::NoSuchPassword)?;
        self.passwords.remove(at);
        Ok(())
    }

    pub(super) fn every_selector(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Decides whether the user may make a call. If no selector permits it, the reason is that of the selector which came
    /// closest.
    ///
    /// # Errors
    ///
    /// Fails with that reason.
    pub fn check(&self, row: &Command, argv: &[&[u8]], version: Version) -> Result<(), Denial> {
        let mut closest = Denial::Command;
        for selector in self.every_selector() {
            match selector.check(row, argv, version) {
                Ok(()) => return Ok(()),
                Err(denial) => closest = closest.max(denial),
            }
        }
        Err(closest)
    }

    /// Returns whether the user may make a call that also reads keys which its arguments do not name.
    pub fn may_read_every_key(&self, row: &Command, argv: &[&[u8]], version: Version) -> bool {
        self.is_unrestricted
            || self
                .every_selector()
                .any(|selector| selector.check(row, argv, version).is_ok() && selector.may_read_every_key())
    }

    /// Returns whether the user may keep the subscriptions of a session.
    pub fn may_keep_subscriptions(&self, session: &Session) -> bool {
        let permits = |name: &[u8], is_pattern: bool| {
            self.every_selector().any(|selector| selector.permits_channel(name, is_pattern))
        };
        [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard].into_iter().all(
            |kind| {
                session
                    .subscriptions(kind)
                    .iter()
                    .all(|name| permits(name, kind == SubscriptionKind::Pattern))
            },
        )
    }
}

/// Joins the words between an opening and a closing parenthesis to one rule.
fn join_selectors(words: &[&[u8]], version: Version) -> Result<Vec<Vec<u8>>, ParseError> {
    let mut rules = Vec::new();
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for word in words {
        // Before 7.2 an opening word replaces one that is open.
        let may_open = open.is_none() || version < Version::V7_2;
        if may_open && word.starts_with(b"(") && !word.ends_with(b")") {
            open = Some((word, word.to_vec()));
            continue;
        }
        match &mut open {
            Some((_, rule)) => {
                rule.push(b' ');
                rule.extend_from_slice(c_text(word));
            }
            None => rules.push(word.to_vec()),
        }
        if word.ends_with(b")")
            && let Some((_, rule)) = open.take()
        {
            rules.push(rule);
        }
    }
    match open {
        Some((first, _)) => Err(ParseError::Unmatched(first.to_vec())),
        None => Ok(rules),
    }
}
