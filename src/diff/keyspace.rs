//! The whole keyspace of both servers, compared key by key.

use super::compare::elements;
use super::exclusions::Compare;
use super::runner::{Difference, Fatal, Runner, bulk_text};

/// The databases that commands use.
const DATABASES: &[&str] = &["0", "1"];

impl Runner {
    /// Compares every key: its type, encoding, time to live and value. The first difference is given.
    pub(super) fn compare_keyspaces(&mut self, case: &mut Vec<String>) -> Result<Option<Difference>, Fatal> {
        for db in DATABASES {
            let from = case.len();
            let select = words(&["SELECT", db]);
            if let Err(difference) = self.ask(&select, Compare::Exactly, case)? {
                return Ok(Some(difference));
            }
            let keys = match self.ask(&words(&["KEYS", "*"]), Compare::AnyOrder, case)? {
                Ok(reply) => reply,
                Err(difference) => return Ok(Some(difference)),
            };
            for key in elements(&keys).into_iter().filter_map(bulk_text) {
                if let Some(difference) = self.compare_key(&key, case)? {
                    case.insert(from, format!("z: SELECT {db}"));
                    return Ok(Some(difference));
                }
            }
        }
        Ok(None)
    }

    fn compare_key(&mut self, key: &[u8], case: &mut Vec<String>) -> Result<Option<Difference>, Fatal> {
        let of_key =
            |before: &[&str], after: &[&str]| [words(before), vec![key.to_vec()], words(after)].concat();
        let mut ask = |argv: Vec<Vec<u8>>, compare| self.ask(&argv, compare, case);
        let kind = match ask(of_key(&["TYPE"], &[]), Compare::Exactly)? {
            Ok(kind) => kind,
            Err(difference) => return Ok(Some(difference)),
        };
        let encoding = match ask(of_key(&["OBJECT", "ENCODING"], &[]), Compare::Exactly)? {
            Ok(encoding) => encoding,
            Err(difference) => return Ok(Some(difference)),
        };
        let is_hashed = encoding.ends_with(b"hashtable\r\n");
        let order = if is_hashed { Compare::AnyOrder } else { Compare::Exactly };
        let reads = match kind.trim_ascii() {
            b"+string" => vec![(of_key(&["GET"], &[]), Compare::Exactly)],
            b"+hash" => vec![(of_key(&["HGETALL"], &[]), order)],
            b"+list" => vec![(of_key(&["LRANGE"], &["0", "-1"]), Compare::Exactly)],
            // A compact set may have been stored from a hash table, in its order.
            b"+set" => vec![(of_key(&["SMEMBERS"], &[]), Compare::AnyOrder)],
            b"+zset" => vec![(of_key(&["ZRANGE"], &["0", "-1", "WITHSCORES"]), Compare::Exactly)],
            _ => Vec::new(),
        };
        let ttl = (of_key(&["PTTL"], &[]), Compare::Nearly);
        for (argv, compare) in std::iter::once(ttl).chain(reads) {
            if let Err(difference) = ask(argv, compare)? {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
