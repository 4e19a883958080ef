//! Access control lists: users, their passwords, and the commands, keys and channels that they may use. The rules, their
//! order and their texts are those of Redis's `acl.c`.
//!
//! - [`user`]: one user, and the rules of ACL SETUSER.
//! - [`selector`]: one set of permissions; a user has a root selector and may have more.
//! - [`catalog`]: the numbers of commands and their categories.
//! - [`describe`]: users as ACL LIST and ACL GETUSER print them.
//! - [`file`]: users as the file of users has them.
//! - [`log`]: the entries of ACL LOG.
//!
//! This module decides; [`node`](crate::node) asks it before each command, and writes the errors.

mod catalog;
mod describe;
pub mod file;
pub mod log;
mod password;
mod selector;
mod user;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::node::Config;
use crate::version::Version;

pub use catalog::{CATEGORIES, all_rows, categories, row_named};
pub use password::hash as hash_password;
pub use selector::{Denial, Selector};
pub use user::{ParseError, RuleError, User};

/// The name of the user of new connections.
pub const DEFAULT_USER: &[u8] = b"default";

/// What the rules of a user depend on besides its own state.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub version: Version,
    /// Whether new users and selectors may use all channels: `acl-pubsub-default`.
    pub all_channels: bool,
}

impl Context {
    /// Returns the context that the settings define.
    pub fn of(config: &Config) -> Context {
        let all_channels = config.get("acl-pubsub-default") == Some("allchannels");
        Context { version: config.version, all_channels }
    }
}

/// The users of a node and its log of refusals. Users are immutable; a change puts another one in the place of the old.
#[derive(Clone)]
pub struct Acl {
    users: BTreeMap<Box<[u8]>, Rc<User>>,
    default: Rc<User>,
    pub log: log::Log,
    /// Whether `#` and the hash of a password log a user in as the password does. A trace has no passwords, so replays need
    /// this.
    pub accepts_hashes: bool,
}

impl Acl {
    /// Creates the configured users, and `default` unless it is among them: it may do everything, with `requirepass` as the
    /// password.
    pub fn new(config: &Config) -> Acl {
        let mut acl = Acl::of_settings(config);
        let context = Context::of(config);
        let has_file = config.get("aclfile").is_some_and(|path| !path.is_empty());
        for words in &config.users {
            let mut words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            // The configuration resets the user that is there, a file of users replaces it.
            if words[0] == DEFAULT_USER && !has_file {
                words.insert(1, b"reset");
            }
            // The settings have checked the rules.
            if let [name, rules @ ..] = &words[..]
                && let Ok(user) = User::new(name, context).with_rules(rules, context)
            {
                acl.put(Rc::new(user));
            }
        }
        acl
    }

    /// Creates the user `default` with `requirepass` as the password, and no other.
    pub fn of_settings(config: &Config) -> Acl {
        let default = Rc::new(User::default_user(config.version).with_password(&config.requirepass));
        let users = BTreeMap::from([(DEFAULT_USER.into(), default.clone())]);
        Acl { users, default, log: log::Log::default(), accepts_hashes: false }
    }

    /// Returns the user of new connections.
    pub fn default_user(&self) -> &Rc<User> {
        &self.default
    }

    /// Returns the user with this name.
    pub fn user(&self, name: &[u8]) -> Option<&Rc<User>> {
        self.users.get(name)
    }

    /// Returns the user whom this name and this password log in.
    pub fn log_in(&self, name: &[u8], password: &[u8]) -> Option<&Rc<User>> {
        let accepts =
            |user: &&Rc<User>| user.accepts(password) || self.accepts_hashes && user.accepts_hash(password);
        self.user(name).filter(accepts)
    }

    /// Returns all users, sorted by name.
    pub fn users(&self) -> impl ExactSizeIterator<Item = &Rc<User>> {
        self.users.values()
    }

    /// Adds a user or replaces the one of the same name. Returns the replaced user.
    pub fn put(&mut self, user: Rc<User>) -> Option<Rc<User>> {
        if user.name() == DEFAULT_USER {
            self.default = user.clone();
        }
        self.users.insert(user.name().into(), user)
    }

    /// Removes a user, who must not be `default`. Returns the removed user.
    pub fn remove(&mut self, name: &[u8]) -> Option<Rc<User>> {
        self.users.remove(name)
    }
}
