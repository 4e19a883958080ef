//! A node's data as a file: what SAVE writes, and what a server loads when it starts; the file of its settings. The driver reads and writes the files.

use super::Node;
use crate::store::rdb::file::{self, FileError};

impl Node {
    /// Returns the file with the node's data.
    pub fn to_file(&self) -> Vec<u8> {
        let compress = self.config.get("rdbcompression") == Some("yes");
        file::write(&self.store, self.functions.texts(), self.config.version, compress)
    }

    /// Returns the file of the configuration with the present settings, given the text that it has.
    pub fn to_config_file(&self, old: &[u8]) -> Vec<u8> {
        let users: Vec<Vec<u8>> = self.acl.users().map(|user| user.describe()).collect();
        self.config.rewritten(old, &users)
    }

    /// Adds the data of a file, before any client connects. Keys that have expired are left out. Returns how many were added.
    ///
    /// # Errors
    /// If the file cannot be read. Some of it may have been added then.
    pub fn load_file(&mut self, bytes: &[u8]) -> Result<usize, FileError> {
        let file = file::read(bytes, &self.store.limits)?;
        let dbs = self.store.dbs.len();
        if file.keys.iter().any(|key| key.db >= dbs) {
            return Err(FileError::BadFormat);
        }
        for text in &file.libraries {
            self.load_library(text, false).map_err(|_| FileError::BadFormat)?;
        }
        let now_ms = self.store.now.wall_ms();
        let mut added = 0;
        for key in file.keys {
            if key.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms) {
                continue;
            }
            if self.store.dbs[key.db].find(&key.name).is_some() {
                return Err(FileError::BadFormat);
            }
            let slot = self.store.insert(key.db, &key.name, key.value);
            self.store.set_expiry(key.db, slot, key.expires_at_ms);
            added += 1;
        }
        Ok(added)
    }

    /// Returns whether a client has asked for the file since the last call.
    pub fn take_save(&mut self) -> bool {
        std::mem::take(&mut self.save_is_due)
    }
}
