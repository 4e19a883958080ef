//! What clients ask of the driver, which alone has files and connections to other servers. The client waits until the driver has [reported](Node::report).

use super::Node;
use super::migration::Migration;
use super::session::SessionId;
use crate::acl::{Acl, Context, file};
use crate::error::Error;

/// Work with a file or with another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// CONFIG REWRITE: to write the file of the configuration.
    RewriteConfig,
    /// ACL SAVE: to write the file of users.
    SaveUsers,
    /// ACL LOAD: to read the file of users, and to report what is in it.
    LoadUsers,
    /// MIGRATE: to send [requests](Migration::requests) to another server, and to report the lines that it answers.
    Migrate(Box<Migration>),
}

/// A task, and the client that waits for it. In a transaction nobody waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    pub task: Task,
    pub client: Option<SessionId>,
}

impl Node {
    /// Returns what the driver has to do next.
    pub fn next_task(&self) -> Option<&Task> {
        self.errands.front().map(|errand| &errand.task)
    }

    /// Ends the oldest errand. `outcome`: what was read or answered, or why the work could not be done.
    pub fn report(&mut self, outcome: Result<&[u8], &[u8]>) {
        let Some(Errand { task, client }) = self.errands.pop_front() else { return };
        let outcome = match task {
            Task::LoadUsers => outcome.map_err(<[u8]>::to_vec).and_then(|text| self.load_users_of(text)),
            Task::Migrate(migration) => return self.end_journey(&migration, outcome),
            Task::RewriteConfig | Task::SaveUsers => outcome.map(|_| ()).map_err(<[u8]>::to_vec),
        };
        let Some(client) = client.filter(|&client| self.unblock(client).is_some()) else { return };
        let failure = outcome.err().map(|why| Error::owned([b"ERR ", &why[..]].concat()));
        if let Some(error) = &failure {
            self.stats.count_error(error.text());
        }
        self.write_reply(client, |reply| match &failure {
            Some(error) => reply.error(error.text()),
            None => reply.ok(),
        });
    }

    /// Replaces the users by those of a file.
    fn load_users_of(&mut self, text: &[u8]) -> Result<(), Vec<u8>> {
        let name = self.config.get("aclfile").unwrap_or_default();
        let users = file::parse(text, name, Context::of(&self.config))?;
        let mut loaded = Acl::of_settings(&self.config);
        for user in users {
            loaded.put(user.into());
        }
        self.load_users(&loaded);
        Ok(())
    }
}
