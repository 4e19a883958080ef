//! Keys on their way from one node to another, for MIGRATE.

use super::Node;
use super::session::SessionId;
use crate::error::Error;
use crate::node::notify::Class;
use crate::wire::value::Value;

pub const WRITE_FAILED: Error = Error::new("IOERR error or timeout writing to target instance");
const READ_FAILED: Error = Error::new("IOERR error or timeout reading to target instance");

/// What MIGRATE asks for. The world carries it out when the event ends, or the driver if the target is outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    pub client: SessionId,
    pub from_db: usize,
    pub target: Target,
    /// The number of the database there, as the client gave it.
    pub db: i64,
    /// The arguments of AUTH.
    pub credentials: Vec<Vec<u8>>,
    pub keys: Vec<MovedKey>,
    pub copies: bool,
    pub replaces: bool,
    /// The command that stores a key.
    pub restore: &'static str,
}

/// Where keys are moved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Node(usize),
    Outside {
        host: String,
        port: String,
        /// How long it may take to connect, to write and to read each.
        timeout_ms: u64,
    },
}

/// A serialized key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedKey {
    pub key: Box<[u8]>,
    /// Its time to live; 0 if it does not expire.
    pub ttl_ms: i64,
    pub payload: Vec<u8>,
}

impl Migration {
    /// Returns the requests that the target gets, each of which it answers with one line.
    pub fn requests(&self) -> Vec<Vec<Vec<u8>>> {
        let mut requests = Vec::new();
        if !self.credentials.is_empty() {
            requests.push([vec![b"AUTH".to_vec()], self.credentials.clone()].concat());
        }
        requests.push(vec![b"SELECT".to_vec(), self.db.to_string().into_bytes()]);
        for MovedKey { key, ttl_ms, payload } in &self.keys {
            let ttl = ttl_ms.to_string().into_bytes();
            let mut request = vec![self.restore.into(), key.to_vec(), ttl, payload.clone()];
            if self.replaces {
                request.push(b"REPLACE".to_vec());
            }
            requests.push(request);
        }
        requests
    }

    /// Returns for each key whether it has arrived, and the first error, given the outcomes of the requests.
    fn judge(&self, outcomes: &[Result<(), Error>]) -> (Vec<bool>, Option<Error>) {
        let (before, of_keys) = outcomes.split_at(outcomes.len() - self.keys.len());
        let is_refused = before.iter().any(Result::is_err);
        let failure = outcomes.iter().find_map(|outcome| outcome.clone().err());
        // A key that could not be stored stays where it is, and the others go on.
        let arrived =
            of_keys.iter().enumerate().map(|(at, outcome)| outcome.is_ok() && !(is_refused && at == 0));
        (arrived.collect(), failure)
    }

    /// Returns what the lines mean that a server outside has answered. Those that are missing could not be read.
    fn read(&self, lines: &[u8]) -> Vec<Result<(), Error>> {
        let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let outcome = |line: Option<&[u8]>| match line {
            None => Err(READ_FAILED),
            Some([b'-', text @ ..]) => Err(refused(text.trim_ascii_end())),
            Some(_) => Ok(()),
        };
        (0..self.requests().len()).map(|_| outcome(lines.next())).collect()
    }
}

/// Returns what the client is told about an error of the target.
fn refused(text: &[u8]) -> Error {
    Error::owned([b"ERR Target instance replied with error: ", text].concat())
}

impl Node {
    /// Receives the keys of another node. Returns for each key whether it arrived, and the first error.
    pub fn receive(&mut self, migration: &Migration) -> (Vec<bool>, Option<Error>) {
        if self.stopped || self.paused {
            return (vec![false; migration.keys.len()], Some(WRITE_FAILED));
        }
        let id = self.open("127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned(), false);
        let requests = migration.requests();
        let ask = |request: &Vec<Vec<u8>>| {
            let argv: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
            self.ask(id, &argv)
        };
        let outcomes: Vec<Result<(), Error>> = requests.iter().map(ask).collect();
        if self.sessions.get(id).is_some() {
            self.close(id);
        }
        migration.judge(&outcomes)
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
                Some(text) => Err(refused(text.as_bytes())),
                None => Ok(()),
            },
            _ => Err(READ_FAILED),
        }
    }

    /// Ends a MIGRATE to a server outside, which has answered with these lines, or why there are none.
    pub fn end_journey(&mut self, migration: &Migration, outcome: Result<&[u8], &[u8]>) {
        let outcomes = match outcome {
            Ok(lines) => migration.read(lines),
            Err(why) => vec![Err(Error::owned(why.to_vec())); migration.requests().len()],
        };
        let (arrived, failure) = migration.judge(&outcomes);
        self.end_migration(migration, &arrived, failure);
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
