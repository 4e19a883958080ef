//! What a rule does to what it matches.

use super::words::{SimError, Words, syntax};

/// Where on its way a thing is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A request, before it runs.
    Request,
    /// The reply to a request.
    Reply,
    /// A message to a subscriber.
    Push,
}

const STAGES: [(&str, Stage); 3] =
    [("REQUEST", Stage::Request), ("REPLY", Stage::Reply), ("PUSH", Stage::Push)];

/// Which of several replies the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The reply to the first run.
    First,
    /// The reply to the last run.
    Last,
}

/// Which word of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of the request; 0 is the command.
    Arg(usize),
    /// Of a script's ARGV; 1 is the first.
    Argv(usize),
}

/// What becomes of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// The number that it is, and this.
    Add(i64),
    /// These bytes.
    Set(Vec<u8>),
}

/// What a rule does to what it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is lost, and so is all that follows it in this direction of the connection, as with TCP; of the messages
    /// to a subscriber only this one.
    Drop(Stage),
    /// It comes later, by the world's clock; what follows it on the connection waits behind it.
    Delay(Stage, u64),
    /// The request runs this many times; the client gets one reply.
    Dup(u32, Keep),
    /// The message is delivered this many times.
    DupPush(u32),
    /// An error, without running the request or in the place of its reply.
    Error {
        /// The text of the error, its code first.
        text: Vec<u8>,
        /// Whether the request runs.
        runs: bool,
    },
    /// The k-th `redis.call` of the script fails with this error and is not run.
    FailSubcall(u32, Vec<u8>),
    /// The connection ends before the request runs.
    CloseBefore,
    /// The connection ends when the request has run and that many bytes of its reply are sent.
    CloseAfter(usize),
    /// The client gets these bytes, and the request does not run.
    Reply(Vec<u8>),
    /// One word of the request is changed.
    Rewrite(Place, Rewrite),
    /// The script cache is empty when the request runs.
    ForgetScripts,
}

impl Action {
    /// Whether this acts on messages to subscribers.
    pub fn is_for_pushes(&self) -> bool {
        matches!(self, Action::Drop(Stage::Push) | Action::Delay(Stage::Push, _) | Action::DupPush(_))
    }

    /// Reads an action as SIM.FAULT has it.
    pub fn parse(words: &mut Words) -> Result<Action, SimError> {
        const MAX_RUNS: i64 = 1000;
        let name = words.word("an action")?.to_ascii_uppercase();
        Ok(match &name[..] {
            b"DROP" => Action::Drop(words.one_of("what to drop", &STAGES)?),
            b"DELAY" => {
                let stage = words.one_of("what to delay", &STAGES)?;
                Action::Delay(stage, words.ms("the delay in ms")?)
            }
            b"DUP" if words.take("PUSH") => Action::DupPush(words.int("how many times", 1, MAX_RUNS)? as u32),
            b"DUP" => {
                let times = words.int("how many times", 1, MAX_RUNS)? as u32;
                let keep = if words.take("REPLY") {
                    words.one_of("the reply to keep", &[("FIRST", Keep::First), ("LAST", Keep::Last)])?
                } else {
                    Keep::Last
                };
                Action::Dup(times, keep)
            }
            b"ERROR" => {
                let text = words.word("the text of the error")?.to_vec();
                let runs = words.one_of("BEFORE or AFTER", &[("BEFORE", false), ("AFTER", true)])?;
                Action::Error { text, runs }
            }
            b"FAIL" => {
                if !words.take("SUBCALL") {
                    return Err(syntax("FAIL is followed by SUBCALL"));
                }
                let k = words.int("the number of a redis.call", 1, i32::MAX as i64)? as u32;
                let text = match words.peek() {
                    Some(word) if !super::rules::is_option(word) => words.word("the text of the error")?,
                    _ => b"ERR refused by a fault rule",
                };
                Action::FailSubcall(k, text.to_vec())
            }
            b"CLOSE" => match &words.word("BEFORE, AFTER or BYTES")?.to_ascii_uppercase()[..] {
                b"BEFORE" => Action::CloseBefore,
                b"AFTER" => Action::CloseAfter(0),
                b"BYTES" => Action::CloseAfter(words.int("how many bytes", 0, i32::MAX as i64)? as usize),
                _ => return Err(words.not_known()),
            },
            b"REPLY" => Action::Reply(words.word("the bytes of a reply")?.to_vec()),
            b"REWRITE" => {
                let place = match &words.word("ARG or ARGV")?.to_ascii_uppercase()[..] {
                    b"ARG" => Place::Arg(words.int("the place of a word", 0, 1 << 20)? as usize),
                    b"ARGV" => Place::Argv(words.int("the place in ARGV", 1, 1 << 20)? as usize),
                    _ => return Err(words.not_known()),
                };
                let rewrite = match &words.word("ADD or SET")?.to_ascii_uppercase()[..] {
                    b"ADD" => Rewrite::Add(words.int("a number", i64::MIN, i64::MAX)?),
                    b"SET" => Rewrite::Set(words.word("the new word")?.to_vec()),
                    _ => return Err(words.not_known()),
                };
                Action::Rewrite(place, rewrite)
            }
            b"FORGET" if words.take("SCRIPTS") => Action::ForgetScripts,
            _ => return Err(words.not_known()),
        })
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stage =
            |stage: &Stage| STAGES.iter().find(|(_, known)| known == stage).map_or("", |(name, _)| name);
        match self {
            Action::Drop(at) => write!(f, "DROP {}", stage(at)),
            Action::Delay(at, ms) => write!(f, "DELAY {} {ms}", stage(at)),
            Action::Dup(times, Keep::First) => write!(f, "DUP {times} REPLY FIRST"),
            Action::Dup(times, Keep::Last) => write!(f, "DUP {times} REPLY LAST"),
            Action::DupPush(times) => write!(f, "DUP PUSH {times}"),
            Action::Error { text, runs } => {
                let when = if *runs { "AFTER" } else { "BEFORE" };
                write!(f, "ERROR {} {when}", super::words::quoted(text))
            }
            Action::FailSubcall(k, text) => write!(f, "FAIL SUBCALL {k} {}", super::words::quoted(text)),
            Action::CloseBefore => write!(f, "CLOSE BEFORE"),
            Action::CloseAfter(0) => write!(f, "CLOSE AFTER"),
            Action::CloseAfter(bytes) => write!(f, "CLOSE BYTES {bytes}"),
            Action::Reply(bytes) => write!(f, "REPLY {}", super::words::quoted(bytes)),
            Action::Rewrite(place, rewrite) => {
                match place {
                    Place::Arg(at) => write!(f, "REWRITE ARG {at} ")?,
                    Place::Argv(at) => write!(f, "REWRITE ARGV {at} ")?,
                }
                match rewrite {
                    Rewrite::Add(n) => write!(f, "ADD {n}"),
                    Rewrite::Set(word) => write!(f, "SET {}", super::words::quoted(word)),
                }
            }
            Action::ForgetScripts => write!(f, "FORGET SCRIPTS"),
        }
    }
}
