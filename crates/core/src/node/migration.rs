//! Keys on their way from one node to another, for MIGRATE.

use super::Node;
use super::session::SessionId;
use crate::error::Error;
use crate::node::notify::Class;
use crate::wire::value::Value;

pub const WRITE_FAILED: Error = Error::new("IOERR error or timeout writing to target instance");
const READ_FAILED: Error = Error::new("IOERR error or timeout reading from target instance");

/// What MIGRATE asks for. The world carries it out when the event ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    pub client: SessionId,
    pub from_db: usize,
    /// The number of the node that receives the keys, and of the database there, as the client gave it.
    pub target: usize,
    pub db: i64,
    /// The arguments of AUTH.
    pub credentials: Vec<Vec<u8>>,
    pub keys: Vec<MovedKey>,
    pub copies: bool,
    pub replaces: bool,
}

/// A serialized key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedKey {
    pub key: Box<[u8]>,
    /// Its time to live; 0 if it does not expire.
    pub ttl_ms: i64,
    pub payload: Vec<u8>,
}

impl Node {
    /// Receives the keys of another node. Returns how many arrived, for each key whether it did, and the first error.
    pub fn receive(&mut self, migration: &Migration) -> (Vec<bool>, Option<Error>) {
        let none = vec![false; migration.keys.len()];
        if self.stopped || self.paused {
            return (none, Some(WRITE_FAILED));
        }
        let id = self.open("127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned(), false);
        let mut results = Vec::new();
        let mut failure = None;
        let auth: Vec<&[u8]> =
            std::iter::once(&b"AUTH"[..]).chain(migration.credentials.iter().map(Vec::as_slice)).collect();
        if auth.len() > 1 {
            failure = self.ask(id, &auth).err();
        }
        // A slot that this node imports takes keys only from whoever follows a redirection.
        let restore: &[u8] = if self.cluster.is_some() { b"RESTORE-ASKING" } else { b"RESTORE" };
        let db = migration.db.to_string();
        failure = self.ask(id, &[b"SELECT", db.as_bytes()]).err().filter(|_| failure.is_none()).or(failure);
        for MovedKey { key, ttl_ms, payload } in &migration.keys {
            let ttl = ttl_ms.to_string();
            let mut call: Vec<&[u8]> = vec![restore, key, ttl.as_bytes(), payload];
            if migration.replaces {
                call.push(b"REPLACE");
            }
            // A key that could not be selected or stored stays where it is, and the others go on.
            let result =
                if failure.is_some() && results.is_empty() { None } else { Some(self.ask(id, &call)) };
            let error = result.as_ref().and_then(|result| result.clone().err());
            results.push(result.is_some_and(|result| result.is_ok()));
            failure = failure.or(error);
        }
        if self.sessions.get(id).is_some() {
            self.close(id);
        }
        (results, failure)
    }

    /// Executes a command of a client that waits for the reply.
    ///
    /// # Errors
    /// Fails as the client of MIGRATE is told: with the error reply of this node, or if there is none.
    fn ask(&mut self, id: SessionId, argv: &[&[u8]]) -> Result<(), Error> {
        self.execute(id, argv);
        let session = self.sessions.get_mut(id).ok_or(READ_FAILED)?;
        let mut bytes = Vec::new();
        session.output.take_ready(&mut bytes);
        match Value::decode(&bytes) {
            Ok(Some((reply, _))) => match reply.as_error() {
                Some(text) => Err(format!("ERR Target instance replied with error: {text}").into()),
                None => Ok(()),
            },
            _ => Err(READ_FAILED),
        }
    }

    /// Ends a MIGRATE: deletes the keys that have arrived, unless they were copied, and replies.
    pub fn end_migration(&mut self, migration: &Migration, arrived: &[bool], failure: Option<Error>) {
        if self.unblock(migration.client).is_none() {
            return;
        }
        let moved = migration.keys.iter().zip(arrived).filter(|(_, arrived)| **arrived && !migration.copies);
        for (MovedKey { key, .. }, _) in moved {
            #[cfg(debug_assertions)]
            self.note_edit(migration.from_db, key);
            if let Some(slot) = self.store.dbs[migration.from_db].find(key) {
                self.store.remove(migration.from_db, slot);
                self.announce(migration.from_db, key, Class::GENERIC, "del", 1);
            }
        }
        self.write_reply(migration.client, |reply| match &failure {
            Some(error) => reply.error(error.text()),
            None => reply.ok(),
        });
        if let Some(error) = failure {
            self.stats.count_error(error.text());
        }
    }
}
