//! Compares the keyspaces of both servers, key by key.

use super::compare::elements;
use super::exclusions::Compare;
use super::runner::{Difference, Fatal, Runner, bulk_text};

/// The databases that commands use.
const DATABASES: &[&str] = &["0", "1"];

impl Runner {
    /// Compares type, encoding, time to live and value of every key. Returns the first difference.
    pub(super) fn compare_keyspaces(&mut self, case: &mut Vec<String>) -> Result<Option<Difference>, Fatal> {
        for db in DATABASES {
            let all = [(args(&["SELECT", db]), Compare::Exactly), (args(&["KEYS", "*"]), Compare::AnyOrder)];
            let keys = match self.ask(&all, case)? {
                Ok(replies) => elements(&replies[1]).into_iter().filter_map(bulk_text).collect::<Vec<_>>(),
                Err(difference) => return Ok(Some(difference)),
            };
            let from = case.len();
            if let Some(difference) = self.compare_keys(&keys, case)? {
                case.insert(from, format!("z: SELECT {db}"));
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }

    fn compare_keys(
        &mut self,
        keys: &[Vec<u8>],
        case: &mut Vec<String>,
    ) -> Result<Option<Difference>, Fatal> {
        let properties: Vec<_> = keys
            .iter()
            .flat_map(|key| {
                [
                    (of_key(key, &["TYPE"], &[]), Compare::Exactly),
                    (of_key(key, &["OBJECT", "ENCODING"], &[]), Compare::Exactly),
                    (of_key(key, &["PTTL"], &[]), Compare::Nearly),
                ]
            })
            .collect();
        let properties = match self.ask(&properties, case)? {
            Ok(replies) => replies,
            Err(difference) => return Ok(Some(difference)),
        };
        let values: Vec<_> = keys
            .iter()
            .zip(properties.chunks_exact(3))
            .filter_map(|(key, properties)| value_of(key, &properties[0], &properties[1]))
            .collect();
        Ok(self.ask(&values, case)?.err())
    }
}

/// Returns the command that reads the value of a key, and how its replies are compared.
fn value_of(key: &[u8], kind: &[u8], encoding: &[u8]) -> Option<(Vec<Vec<u8>>, Compare)> {
    // Fields with a TTL come in the order of their expiry times, in ms.
    let is_ordered = !encoding.ends_with(b"hashtable\r\n") && !encoding.ends_with(b"listpackex\r\n");
    let order = if is_ordered { Compare::Exactly } else { Compare::AnyOrder };
    match kind.trim_ascii() {
        b"+string" => Some((of_key(key, &["GET"], &[]), Compare::Exactly)),
        b"+hash" => Some((of_key(key, &["HGETALL"], &[]), order)),
        b"+list" => Some((of_key(key, &["LRANGE"], &["0", "-1"]), Compare::Exactly)),
        // A compact set may have been stored from a hash table, in the order of the table.
        b"+set" => Some((of_key(key, &["SMEMBERS"], &[]), Compare::AnyOrder)),
        b"+zset" => Some((of_key(key, &["ZRANGE"], &["0", "-1", "WITHSCORES"]), Compare::Exactly)),
        // Entries and groups; the times of deliveries come from a clock.
        b"+stream" => Some((of_key(key, &["XINFO", "STREAM"], &["FULL", "COUNT", "0"]), Compare::Nearly)),
        _ => None,
    }
}

fn of_key(key: &[u8], before: &[&str], after: &[&str]) -> Vec<Vec<u8>> {
    [args(before), vec![key.to_vec()], args(after)].concat()
}

fn args(args: &[&str]) -> Vec<Vec<u8>> {
    args.iter().map(|arg| arg.as_bytes().to_vec()).collect()
}
