//! Users and permissions of a node's clients: who they are, what they may run, and what happens when that changes.

use std::rc::Rc;

use super::Node;
use super::session::{Session, SessionId};
use crate::acl::log::{Entry, Reason};
use crate::acl::{Acl, Context, DEFAULT_USER, Denial, User};
use crate::commands::command::Command;
use crate::error::Error;
use crate::version::Version;

/// Where a command came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A request, outside or inside a transaction.
    Request,
    /// A queued command that EXEC runs.
    Exec,
    Script,
}

impl Node {
    /// Returns whether a client has to authenticate before it may run most commands.
    pub fn must_authenticate(&self, session: &Session) -> bool {
        !session.authenticated && !self.acl.default_user().is_open()
    }

    /// Makes a session's user that of a new connection.
    pub fn set_default_user(&mut self, id: SessionId) {
        let default = self.acl.default_user().clone();
        let session = &mut self.sessions[id];
        session.authenticated = default.is_open();
        session.user = default;
    }

    /// Returns the context of rules for users.
    pub fn acl_context(&self) -> Context {
        Context::of(&self.config)
    }

    /// Sets the password of `default` to `requirepass`.
    pub fn update_default_password(&mut self) {
        let user = self.acl.default_user().with_password(&self.config.requirepass);
        self.replace_user(user);
    }

    /// Adds a user, or replaces the one of the same name, whose clients lose subscriptions to channels that are no longer
    /// theirs: they are disconnected.
    pub fn replace_user(&mut self, user: User) {
        let user = Rc::new(user);
        let Some(old) = self.acl.put(user.clone()) else { return };
        let clients: Vec<SessionId> = self.sessions_of(&old);
        for id in clients {
            let session = &mut self.sessions[id];
            session.user = user.clone();
            if session.is_subscriber() && !user.may_keep_subscriptions(session) {
                self.dismiss(id);
            }
        }
    }

    /// Removes a user and disconnects the user's clients. Returns whether there was such a user.
    pub fn remove_user(&mut self, name: &[u8]) -> bool {
        let Some(old) = self.acl.remove(name) else { return false };
        for id in self.sessions_of(&old) {
            self.dismiss(id);
        }
        true
    }

    /// Makes the users those of the file of users.
    pub fn save_users(&mut self) {
        let words = |user: &Rc<User>| {
            let line = user.describe();
            line.split(|byte| *byte == b' ').skip(1).map(<[u8]>::to_vec).collect()
        };
        self.config.users = self.acl.users().map(words).collect();
    }

    /// Replaces all users by others. Clients whose users are gone are disconnected; before 7.2 all clients of users other than
    /// `default`.
    pub fn load_users(&mut self, loaded: &Acl) {
        let keeps_clients = self.config.version >= Version::V7_2;
        let names: Vec<Box<[u8]>> = self.acl.users().map(|user| user.name().into()).collect();
        for name in names.iter().filter(|name| ***name != *DEFAULT_USER) {
            if !keeps_clients || loaded.user(name).is_none() {
                self.remove_user(name);
            }
        }
        for user in loaded.users() {
            self.replace_user(User::clone(user));
        }
    }

    fn sessions_of(&self, user: &Rc<User>) -> Vec<SessionId> {
        let is_theirs = |session: &&Session| Rc::ptr_eq(&session.user, user);
        self.sessions.iter().filter(is_theirs).map(|session| session.id).collect()
    }

    /// Takes a client's user away and disconnects the client. The caller still gets its reply.
    fn dismiss(&mut self, id: SessionId) {
        self.set_default_user(id);
        self.sessions[id].authenticated = false;
        if self.executing == Some(id) {
            self.end_session(id);
        } else {
            self.kill_session(id);
        }
    }

    /// Decides whether a client may run a command, and logs a refusal.
    ///
    /// # Errors
    ///
    /// Fails with the error reply.
    #[inline]
    pub fn authorize(
        &mut self,
        id: SessionId,
        command: &'static Command,
        argv: &[&[u8]],
        source: Source,
    ) -> Result<(), Error> {
        if self.sessions[id].user.is_unrestricted() {
            return Ok(());
        }
        self.check_permissions(id, command, argv, source)
    }

    #[inline(never)]
    fn check_permissions(
        &mut self,
        id: SessionId,
        command: &'static Command,
        argv: &[&[u8]],
        source: Source,
    ) -> Result<(), Error> {
        let user = self.sessions[id].user.clone();
        let Err(denial) = user.check(command, argv, self.config.version) else { return Ok(()) };
        let (reason, object) = match denial {
            Denial::Command => (Reason::Command, command.name.as_bytes()),
            Denial::Key(at) => (Reason::Key, argv[at]),
            Denial::Channel(at) => (Reason::Channel, argv[at]),
        };
        if source == Source::Request {
            self.sessions[id].last_command = command.name;
        }
        self.log_denial(id, source, reason, object, user.name());
        let version = self.config.version;
        Err(match source {
            Source::Request => format!("NOPERM {}", why_denied(denial, &user, command, version)),
            Source::Exec => format!(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                 command is no longer allowed for the following reason: {}",
                match reason {
                    Reason::Key => "no permission to touch the specified keys",
                    Reason::Channel => {
                        "no permission to access one of the channels used as arguments to the command"
                    }
                    _ => "no permission to execute the command or subcommand",
                }
            ),
            Source::Script if version >= Version::V7_2 => {
                format!("ERR ACL failure in script: {}", why_denied(denial, &user, command, version))
            }
            Source::Script => format!(
                "ERR The user executing the script {}",
                match reason {
                    Reason::Key => "can't access at least one of the keys mentioned in the command arguments",
                    Reason::Channel => "can't publish to the channel mentioned in the command",
                    _ => "can't run this command or subcommand",
                }
            ),
        }
        .into())
    }

    /// Checks a user's password for a client, and logs a failure.
    pub fn authenticate(&mut self, id: SessionId, name: &[u8], password: &[u8], command: &[u8]) -> bool {
        match self.acl.log_in(name, password) {
            Some(user) => {
                let user = user.clone();
                let session = &mut self.sessions[id];
                session.authenticated = true;
                session.user = user;
                true
            }
            None => {
                self.log_denial(id, Source::Request, Reason::Auth, command, name);
                false
            }
        }
    }

    fn log_denial(&mut self, id: SessionId, source: Source, reason: Reason, object: &[u8], username: &[u8]) {
        let session = &self.sessions[id];
        let context = match source {
            Source::Script => "lua",
            Source::Exec => "multi",
            Source::Request if session.multi.is_some() => "multi",
            Source::Request => "toplevel",
        };
        let now_ms = self.store.now.wall_ms();
        let entry = Entry {
            count: 1,
            reason,
            context,
            object: object.to_vec(),
            username: username.to_vec(),
            client: self.describe(session),
            id: 0,
            created_ms: now_ms,
            updated_ms: now_ms,
        };
        let max_len = self.config.get("acllog-max-len").and_then(|text| text.parse().ok()).unwrap_or(0);
        self.acl.log.add(entry, max_len, self.config.version);
    }
}

/// Returns the reason of a refusal without the names of keys and channels.
fn why_denied(denial: Denial, user: &User, command: &Command, version: Version) -> String {
    let old = version < Version::V7_2;
    match denial {
        Denial::Command if old => {
            format!("this user has no permissions to run the '{}' command", command.name)
        }
        Denial::Command => {
            let name = String::from_utf8_lossy(user.name());
            format!("User {name} has no permissions to run the '{}' command", command.name)
        }
        Denial::Key(_) if old => {
            "this user has no permissions to access one of the keys used as arguments".to_owned()
        }
        Denial::Key(_) => "No permissions to access a key".to_owned(),
        Denial::Channel(_) if old => {
            "this user has no permissions to access one of the channels used as arguments".to_owned()
        }
        Denial::Channel(_) => "No permissions to access a channel".to_owned(),
    }
}
