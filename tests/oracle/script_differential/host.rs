//! A host with a few commands, enough for scripts that test the engine.

use std::collections::BTreeMap;

use redlatch_core::script::{Host, LogLevel};
use redlatch_core::wire::reply::Reply;

#[derive(Default)]
pub struct FakeHost {
    values: BTreeMap<Vec<u8>, Value>,
}

enum Value {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    Set(Vec<Vec<u8>>),
    Scores(Vec<(Vec<u8>, f64)>),
}

const WRONG_TYPE: &[u8] = b"WRONGTYPE Operation against a key holding the wrong kind of value";

/// Names and arities; a negative arity is a minimum.
const COMMANDS: &[(&str, i32)] = &[
    ("ping", -1),
    ("echo", 2),
    ("set", 3),
    ("get", 2),
    ("mget", -2),
    ("del", -2),
    ("incr", 2),
    ("lpush", -3),
    ("lrange", 4),
    ("hset", -4),
    ("hgetall", 2),
    ("sadd", -3),
    ("smembers", 2),
    ("zadd", 4),
    ("zscore", 3),
    ("subscribe", -2),
];

impl Host for FakeHost {
    fn call(&mut self, argv: &[&[u8]], reply: &mut Reply) {
        let name = argv[0].to_ascii_lowercase();
        let Some((name, arity)) = COMMANDS.iter().find(|(known, _)| known.as_bytes() == name) else {
            return reply.error(b"ERR Unknown Redis command called from script");
        };
        let count = argv.len() as i32;
        if (*arity > 0 && count != *arity) || count < -arity {
            return reply.error(b"ERR Wrong number of args calling Redis command from script");
        }
        if self.run(name, &argv[1..], reply).is_none() {
            reply.error(WRONG_TYPE);
        }
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn may_run(&mut self, argv: &[&[u8]]) -> Option<bool> {
        let name = argv[0].to_ascii_lowercase();
        COMMANDS.iter().any(|(known, _)| known.as_bytes() == name).then_some(true)
    }
}

impl FakeHost {
    /// Runs a command. Returns `None` if the key holds the wrong type of value.
    fn run(&mut self, name: &str, arguments: &[&[u8]], reply: &mut Reply) -> Option<()> {
        let key = arguments.first().copied().unwrap_or_default().to_vec();
        match name {
            "ping" if arguments.is_empty() => reply.status("PONG"),
            "ping" | "echo" => reply.bulk(&key),
            "subscribe" => reply.error(b"ERR This Redis command is not allowed from script"),
            "set" => {
                self.values.insert(key, Value::Text(arguments[1].to_vec()));
                reply.ok();
            }
            "get" => reply.bulk_or_null(self.text(&key)?),
            "mget" => {
                reply.array(arguments.len());
                for key in arguments {
                    reply.bulk_or_null(self.text(key).flatten());
                }
            }
            "del" => {
                reply.int(arguments.iter().filter(|key| self.values.remove(**key).is_some()).count() as i64)
            }
            "incr" => match std::str::from_utf8(self.text(&key)?.unwrap_or(b"0")).ok()?.parse::<i64>() {
                Ok(number) => {
                    self.values.insert(key, Value::Text((number + 1).to_string().into_bytes()));
                    reply.int(number + 1);
                }
                Err(_) => reply.error(b"ERR value is not an integer or out of range"),
            },
            "lpush" => {
                let Value::List(list) = self.values.entry(key).or_insert(Value::List(vec![])) else {
                    return None;
                };
                arguments[1..].iter().for_each(|item| list.insert(0, item.to_vec()));
                reply.int(list.len() as i64);
            }
            "lrange" => {
                let list = match self.values.get(&key) {
                    Some(Value::List(list)) => &list[..],
                    Some(_) => return None,
                    None => &[],
                };
                reply.array(list.len());
                list.iter().for_each(|item| reply.bulk(item));
            }
            _ => return self.run_on_collection(name, key, arguments, reply),
        }
        Some(())
    }

    fn run_on_collection(
        &mut self,
        name: &str,
        key: Vec<u8>,
        arguments: &[&[u8]],
        reply: &mut Reply,
    ) -> Option<()> {
        match name {
            "hset" => {
                let Value::Hash(hash) = self.values.entry(key).or_insert(Value::Hash(vec![])) else {
                    return None;
                };
                hash.extend(arguments[1..].chunks_exact(2).map(|pair| (pair[0].to_vec(), pair[1].to_vec())));
                reply.int(arguments.len() as i64 / 2);
            }
            "hgetall" => {
                let hash = match self.values.get(&key) {
                    Some(Value::Hash(hash)) => &hash[..],
                    Some(_) => return None,
                    None => &[],
                };
                reply.map(hash.len());
                for (field, value) in hash {
                    reply.bulk(field);
                    reply.bulk(value);
                }
            }
            "sadd" => {
                let Value::Set(set) = self.values.entry(key).or_insert(Value::Set(vec![])) else {
                    return None;
                };
                set.extend(arguments[1..].iter().map(|member| member.to_vec()));
                reply.int(arguments.len() as i64 - 1);
            }
            "smembers" => {
                let set = match self.values.get(&key) {
                    Some(Value::Set(set)) => &set[..],
                    Some(_) => return None,
                    None => &[],
                };
                reply.set(set.len());
                set.iter().for_each(|member| reply.bulk(member));
            }
            "zadd" => {
                let Value::Scores(set) = self.values.entry(key).or_insert(Value::Scores(vec![])) else {
                    return None;
                };
                set.push((arguments[2].to_vec(), std::str::from_utf8(arguments[1]).ok()?.parse().ok()?));
                reply.int(1);
            }
            _ => {
                let set = match self.values.get(&key) {
                    Some(Value::Scores(set)) => &set[..],
                    Some(_) => return None,
                    None => &[],
                };
                match set.iter().find(|(member, _)| member == arguments[1]) {
                    Some((_, score)) => reply.double(*score),
                    None => reply.null(),
                }
            }
        }
        Some(())
    }

    fn text(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        match self.values.get(key) {
            None => Some(None),
            Some(Value::Text(text)) => Some(Some(text)),
            Some(_) => None,
        }
    }
}
