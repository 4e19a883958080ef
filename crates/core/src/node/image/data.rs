//! Users, keys, libraries of functions and the script cache.

use std::rc::Rc;

use super::Node;
use crate::acl::{Acl, Context, DEFAULT_USER, User};
use crate::image::{Reader, Words};
use crate::store::usage::Usage;
use crate::store::{Limits, Value, rdb};
use crate::version::Version;

/// Adds a value, and when its key expires.
pub(crate) fn write_value(line: Words, value: &Value, expires_at_ms: Option<i64>, version: Version) -> Words {
    line.option(expires_at_ms).word(&rdb::dump(value, version, false))
}

/// Reads a value, and when its key expires.
pub(crate) fn read_value(line: &mut Reader, limits: &Limits) -> Option<(Value, Option<i64>)> {
    let expires_at_ms = line.option()?;
    Some((rdb::restore(line.word()?, limits).ok()?, expires_at_ms))
}

impl Node {
    /// Users other than those that the settings make. Of passwords only the hashes are known.
    pub(super) fn image_of_users(&self, lines: &mut Vec<Words>) {
        let configured = Acl::of_settings(&self.config);
        for user in self.acl.users() {
            let description = user.describe();
            if user.name() != DEFAULT_USER || description != configured.default_user().describe() {
                let rules = description.get(b"user ".len() + user.name().len() + 1..).unwrap_or_default();
                let rules = rules.split(|&byte| byte == b' ');
                lines.push(self.about("USER").word(user.name()).words(rules));
            }
        }
    }

    pub(super) fn take_user(&mut self, line: &mut Reader) -> Option<()> {
        let context = Context::of(&self.config);
        let user = User::new(line.word()?, context).with_rules(line.rest(), context).ok()?;
        self.acl.put(Rc::new(user));
        Some(())
    }

    pub(super) fn image_of_data(&self, lines: &mut Vec<Words>) {
        if !self.functions.is_empty() {
            lines.push(self.about("LIBRARIES").words(self.functions.texts()));
        }
        for (by_eval, text) in self.scripts.texts() {
            lines.push(self.about("SCRIPT").flag(by_eval).word(text));
        }
        for (number, db) in self.store.dbs.iter().enumerate() {
            for (_, key, entry) in db.iter() {
                let line = self.about("KEY").value(number).word(key).value(entry.usage.bits());
                lines.push(write_value(line, &entry.value, entry.expires_at_ms(), self.config.version));
            }
        }
    }

    pub(super) fn take_data(&mut self, what: &[u8], line: &mut Reader) -> Option<()> {
        match what {
            b"LIBRARIES" => {
                let texts: Vec<Box<[u8]>> = line.rest().iter().map(|text| (*text).into()).collect();
                self.replace_functions(&texts);
            }
            b"SCRIPT" => {
                let by_eval = line.flag()?;
                self.load_script(line.word()?, by_eval).ok()?;
            }
            _ => {
                let (db, key, usage) = (line.value()?, line.word()?, line.value()?);
                let (value, expires_at_ms) = read_value(line, &self.store.limits)?;
                self.store.dbs.get(db)?;
                let slot = self.store.insert(db, key, value);
                self.store.set_expiry(db, slot, expires_at_ms);
                self.store.dbs[db].entry_mut(slot)?.usage = Usage::from_bits(usage);
            }
        }
        Some(())
    }
}
