//! What a fault rule does to the requests, replies and messages that it matches.

use super::args::{Args, SimError, syntax};

/// The point at which an action takes effect.
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

/// Which of several replies the client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The reply to the first run.
    First,
    /// The reply to the last run.
    Last,
}

/// The position of an argument of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// An index into the request; 0 is the command.
    Arg(usize),
    /// An index into a script's ARGV; 1 is the first.
    Argv(usize),
}

/// How an argument is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Adds to the number in the argument.
    Add(i64),
    /// Replaces the argument by these bytes.
    Set(Vec<u8>),
}

/// What happens to a request, a reply or a message that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Loses it and, as with TCP, everything that follows it in this direction of the connection. A dropped message
    /// to a subscriber is lost alone.
    Drop(Stage),
    /// Delays it by this many ms of the world's clock; everything that follows on the connection waits behind it.
    Delay(Stage, u64),
    /// Runs the request this many times; the client receives one reply.
    Dup(u32, Keep),
    /// Delivers the message this many times.
    DupPush(u32),
    /// Replies with an error, either without running the request or in place of its reply.
    Error {
        /// The text of the error, its code first.
        text: Vec<u8>,
        /// Whether the request runs.
        runs: bool,
    },
    /// Makes the k-th `redis.call` of the script fail with this error instead of running it.
    FailSubcall(u32, Vec<u8>),
    /// Closes the connection before the request runs.
    CloseBefore,
    /// Closes the connection once the request has run and this many bytes of its reply are sent.
    CloseAfter(usize),
    /// Replies with these bytes, without running the request.
    Reply(Vec<u8>),
    /// Loses this one request, as a proxy would: the request does not run, and the connection goes on. The client gets these
    /// bytes; without any, a client that tells replies by their position takes the next reply for this one.
    Lose(Vec<u8>),
    /// Changes one argument of the request.
    Rewrite(Position, Rewrite),
    /// Empties the script cache before the request runs.
    ForgetScripts,
}

impl Action {
    /// Returns whether the action applies to messages rather than to requests.
    pub fn is_for_pushes(&self) -> bool {
        matches!(self, Action::Drop(Stage::Push) | Action::Delay(Stage::Push, _) | Action::DupPush(_))
    }

    /// Parses the arguments after DO.
    pub fn parse(args: &mut Args) -> Result<Action, SimError> {
        const MAX_RUNS: i64 = 1000;
        let name = args.required("an action")?.to_ascii_uppercase();
        Ok(match &name[..] {
            b"DROP" => Action::Drop(args.one_of("what to drop", &STAGES)?),
            b"DELAY" => {
                let stage = args.one_of("what to delay", &STAGES)?;
                Action::Delay(stage, args.ms("the delay in ms")?)
            }
            b"DUP" if args.take("PUSH") => Action::DupPush(args.int("how many times", 1, MAX_RUNS)? as u32),
            b"DUP" => {
                let times = args.int("how many times", 1, MAX_RUNS)? as u32;
                let keep = if args.take("REPLY") {
                    args.one_of("the reply to keep", &[("FIRST", Keep::First), ("LAST", Keep::Last)])?
                } else {
                    Keep::Last
                };
                Action::Dup(times, keep)
            }
            b"ERROR" => {
                let text = args.required("the text of the error")?.to_vec();
                let runs = args.one_of("BEFORE or AFTER", &[("BEFORE", false), ("AFTER", true)])?;
                Action::Error { text, runs }
            }
            b"FAIL" => {
                if !args.take("SUBCALL") {
                    return Err(syntax("FAIL is followed by SUBCALL"));
                }
                let k = args.int("the number of a redis.call", 1, i32::MAX as i64)? as u32;
                let text = match args.peek() {
                    Some(arg) if !super::rules::is_option(arg) => args.required("the text of the error")?,
                    _ => b"ERR refused by a fault rule",
                };
                Action::FailSubcall(k, text.to_vec())
            }
            b"CLOSE" => match &args.required("BEFORE, AFTER or BYTES")?.to_ascii_uppercase()[..] {
                b"BEFORE" => Action::CloseBefore,
                b"AFTER" => Action::CloseAfter(0),
                b"BYTES" => Action::CloseAfter(args.int("how many bytes", 0, i32::MAX as i64)? as usize),
                _ => return Err(args.not_known()),
            },
            b"REPLY" => Action::Reply(parse_reply(args)?),
            b"LOSE" if args.take("NOTHING") => Action::Lose(Vec::new()),
            b"LOSE" if args.take("REPLY") => Action::Lose(parse_reply(args)?),
            b"LOSE" => Action::Lose(LOST.to_vec()),
            b"REWRITE" => {
                let position = match &args.required("ARG or ARGV")?.to_ascii_uppercase()[..] {
                    b"ARG" => Position::Arg(args.int("the place of a word", 0, 1 << 20)? as usize),
                    b"ARGV" => Position::Argv(args.int("the place in ARGV", 1, 1 << 20)? as usize),
                    _ => return Err(args.not_known()),
                };
                let rewrite = match &args.required("ADD or SET")?.to_ascii_uppercase()[..] {
                    b"ADD" => Rewrite::Add(args.int("a number", i64::MIN, i64::MAX)?),
                    b"SET" => Rewrite::Set(args.required("the new word")?.to_vec()),
                    _ => return Err(args.not_known()),
                };
                Action::Rewrite(position, rewrite)
            }
            b"FORGET" if args.take("SCRIPTS") => Action::ForgetScripts,
            _ => return Err(args.not_known()),
        })
    }
}

/// The reply to a request that LOSE has lost, unless the rule names another.
const LOST: &[u8] = b"-ERR the request was lost by a fault rule\r\n";

/// Parses the bytes of a reply. A shell passes `\r\n` as four characters, so an argument without a line feed may have the
/// escapes of C strings.
fn parse_reply(args: &mut Args) -> Result<Vec<u8>, SimError> {
    let arg = args.required("the bytes of a reply")?;
    let bytes = if arg.contains(&b'\n') { arg.to_vec() } else { unescape(arg) };
    if bytes.ends_with(b"\r\n") {
        return Ok(bytes);
    }
    Err(syntax(format!("{} is not a reply: it has to end with \\r\\n", super::args::quoted(arg))))
}

/// Replaces `\r`, `\n`, `\t`, `\\`, `\"` and `\xHH`. Anything else behind a backslash stays as it is.
fn unescape(text: &[u8]) -> Vec<u8> {
    let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let (escaped, len) = match (byte, behind.first()) {
            (b'\\', Some(b'r')) => (Some(b'\r'), 2),
            (b'\\', Some(b'n')) => (Some(b'\n'), 2),
            (b'\\', Some(b't')) => (Some(b'\t'), 2),
            (b'\\', Some(&literal @ (b'\\' | b'"'))) => (Some(literal), 2),
            (b'\\', Some(b'x')) => (behind.get(1..3).and_then(hex), 4),
            _ => (None, 1),
        };
        bytes.push(escaped.unwrap_or(byte));
        rest = &rest[if escaped.is_some() { len } else { 1 }..];
    }
    bytes
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
                write!(f, "ERROR {} {when}", super::args::quoted(text))
            }
            Action::FailSubcall(k, text) => write!(f, "FAIL SUBCALL {k} {}", super::args::quoted(text)),
            Action::CloseBefore => write!(f, "CLOSE BEFORE"),
            Action::CloseAfter(0) => write!(f, "CLOSE AFTER"),
            Action::CloseAfter(bytes) => write!(f, "CLOSE BYTES {bytes}"),
            Action::Reply(bytes) => write!(f, "REPLY {}", super::args::quoted(bytes)),
            Action::Lose(bytes) if bytes.is_empty() => write!(f, "LOSE NOTHING"),
            Action::Lose(bytes) if bytes == LOST => write!(f, "LOSE"),
            Action::Lose(bytes) => write!(f, "LOSE REPLY {}", super::args::quoted(bytes)),
            Action::Rewrite(position, rewrite) => {
                match position {
                    Position::Arg(at) => write!(f, "REWRITE ARG {at} ")?,
                    Position::Argv(at) => write!(f, "REWRITE ARGV {at} ")?,
                }
                match rewrite {
                    Rewrite::Add(n) => write!(f, "ADD {n}"),
                    Rewrite::Set(arg) => write!(f, "SET {}", super::args::quoted(arg)),
                }
            }
            Action::ForgetScripts => write!(f, "FORGET SCRIPTS"),
        }
    }
}
