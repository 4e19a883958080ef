//! DEBUG DIGEST: a hash of data that does not depend on the order in which it is kept. It is Redis's, so that a test can compare
//! servers.

use sha1::{Digest as _, Sha1};

use crate::node::Node;
use crate::num;
use crate::store::{Entry, Value};
use crate::version::Version;

/// A hash of things in order, or of things in any order.
#[derive(Clone, Copy, Default)]
pub struct Digest([u8; 20]);

impl Digest {
    /// Adds something whose place does not matter.
    fn add(&mut self, bytes: &[u8]) {
        for (own, byte) in self.0.iter_mut().zip(Sha1::digest(bytes)) {
            *own ^= byte;
        }
    }

    /// Adds something that follows what was added before.
    fn append(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = Sha1::digest(self.0).into();
    }

    pub fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the digest of all databases.
pub fn of_node(node: &Node) -> Digest {
    let mut all = Digest::default();
    for (index, db) in node.store.dbs.iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        all.append(&(index as u32).to_be_bytes());
        for (_, key, entry) in db.iter() {
            let mut one = Digest::default();
            one.append(key);
            add_entry(&mut one, entry, node.config.version);
            all.add(&one.0);
        }
    }
    all
}

/// Returns the digest of a value and its expiry.
pub fn of_entry(entry: &Entry, version: Version) -> Digest {
    let mut digest = Digest::default();
    add_entry(&mut digest, entry, version);
    digest
}

fn add_entry(digest: &mut Digest, entry: &Entry, version: Version) {
    digest.append(&type_number(&entry.value).to_be_bytes());
    match &entry.value {
        Value::String(string) => digest.append(&string.to_vec()),
        Value::List(list) => list.iter().for_each(|element| digest.append(element)),
        Value::Set(set) => set.iter().for_each(|member| digest.add(&member.to_vec())),
        Value::SortedSet(set) => {
            for (member, score) in set.iter() {
                let text = match version >= Version::V7_2 && score.is_finite() && score != 0.0 {
                    true => num::shortest(score),
                    false => num::format_double(score, version),
                };
                let mut one = Digest::default();
                one.append(member);
                one.append(text.as_bytes());
                digest.add(&one.0);
            }
        }
        Value::Hash(hash) => {
            for field in hash.iter() {
                let mut one = Digest::default();
                one.append(field.name);
                one.append(field.value);
                // Valkey leaves the lifetimes of fields out.
                if field.expires_at_ms.is_some() && !version.is_valkey() {
                    one.add(b"!!hexpire!!");
                }
                digest.add(&one.0);
            }
        }
        Value::Stream(stream) => {
            let mut digits = itoa::Buffer::new();
            for entry in
                stream.nodes().flat_map(|(first, node)| node.entries(first)).filter(|entry| !entry.is_deleted)
            {
                digest.append(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                for (name, value) in entry.pairs() {
                    digest.append(name.bytes(&mut digits));
                    digest.append(value.bytes(&mut digits));
                }
            }
        }
    }
    if entry.expires_at_ms().is_some() {
        digest.add(b"!!expire!!");
    }
}

/// Returns Redis's number of a type.
fn type_number(value: &Value) -> u32 {
    match value {
        Value::String(_) => 0,
        Value::List(_) => 1,
        Value::Set(_) => 2,
        Value::SortedSet(_) => 3,
        Value::Hash(_) => 4,
        Value::Stream(_) => 6,
    }
}
