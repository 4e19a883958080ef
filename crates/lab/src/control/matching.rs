//! What a rule or a gate matches: a conjunction of clauses over a request or a message.

use super::args::{Args, SimError, quoted, range, syntax, unknown};
use redlatch_core::commands::table;
use redlatch_core::glob;
use redlatch_core::version::Version;
use redlatch_core::world::ConnId;
use redlatch_locks::role::{Recognised, Role};

/// What clauses are checked against: a received request, or a message on its way to a subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub conn: ConnId,
    /// The name that CLIENT SETNAME has set.
    pub name: &'a [u8],
    pub event: u64,
    pub what: What<'a>,
}

/// The request or the message of a [`Subject`].
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    Request(Request<'a>),
    Push { channel: &'a [u8] },
}

/// A request as clauses see it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub argv: &'a [&'a [u8]],
    /// The script that the request runs, if it is an EVAL of any kind.
    pub script: Option<Script<'a>>,
}

/// The script of a request.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    pub sha: &'a [u8],
    pub lock: Option<Recognised>,
}

/// The KEYS and ARGV of a script.
#[derive(Clone, Copy, Debug)]
pub struct ScriptArgs<'a> {
    pub keys: &'a [&'a [u8]],
    pub argv: &'a [&'a [u8]],
}

impl<'a> Request<'a> {
    pub fn new(argv: &'a [&'a [u8]], script: Option<Script<'a>>) -> Request<'a> {
        Request { argv, script }
    }

    /// Returns the KEYS and ARGV of the script; `None` if the request runs no script.
    pub fn script_args(&self) -> Option<ScriptArgs<'a>> {
        if !is_eval(self.argv.first()?) {
            return None;
        }
        let count = redlatch_core::num::parse_i64(self.argv.get(2)?)?;
        let rest = self.argv.get(3..)?;
        let (keys, argv) = rest.split_at_checked(usize::try_from(count).ok()?)?;
        Some(ScriptArgs { keys, argv })
    }

    /// Returns the keys of the request, found by the key positions of its command.
    pub fn keys(&self) -> Vec<&'a [u8]> {
        let Some(command) = table::find(self.argv, Version::DEFAULT) else { return Vec::new() };
        let positions =
            redlatch_core::commands::command::key_positions(command.keys, self.argv).unwrap_or_default();
        positions.into_iter().filter_map(|at| self.argv.get(at).copied()).collect()
    }

    /// Returns the channels that the request subscribes to, unsubscribes from or publishes to.
    fn channels(&self) -> &'a [&'a [u8]] {
        let Some(name) = self.argv.first() else { return &[] };
        let name = name.to_ascii_lowercase();
        match &name[..] {
            b"publish" | b"spublish" => self.argv.get(1..2).unwrap_or(&[]),
            _ if name.ends_with(b"subscribe") => &self.argv[1..],
            _ => &[],
        }
    }

    /// Returns the lock owner among the arguments of a lock script.
    pub fn owner(&self) -> Option<&'a [u8]> {
        let place = self.script?.lock?.owner?;
        self.script_args()?.argv.get(place - 1).copied()
    }
}

/// Returns whether this is the name of a command that runs a script.
pub fn is_eval(name: &[u8]) -> bool {
    [&b"EVAL"[..], b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO"].iter().any(|eval| name.eq_ignore_ascii_case(eval))
}

/// One condition. Texts are glob patterns like those of KEYS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The number that CLIENT ID gives.
    Conn(u64),
    /// The name that CLIENT SETNAME has set.
    Name(Vec<u8>),
    /// The owner (`uuid:thread`) among the arguments of a lock script.
    Owner(Vec<u8>),
    /// The name of the command, in lower case.
    Cmd(Vec<u8>),
    /// The role of the script: `rlock.acquire`.
    Script(Vec<u8>),
    /// The first digits of the script's SHA-1, in lower case.
    Sha(Vec<u8>),
    /// One of the keys.
    Key(Vec<u8>),
    /// The channel of a message, or of a SUBSCRIBE or PUBLISH.
    Channel(Vec<u8>),
    /// An argument of the request; 0 is the command.
    Arg(usize, Vec<u8>),
    /// An argument in a script's ARGV; 1 is the first.
    Argv(usize, Vec<u8>),
    /// The number of the node.
    Node(usize),
    /// Only events after this one.
    After(u64),
    /// Only the n-th that matches all other clauses, from 1.
    Nth(u64),
}

/// A conjunction of clauses. Without a clause it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// All of them have to match.
    pub clauses: Vec<Clause>,
}

/// The keywords that begin a clause.
const CLAUSES: [&str; 13] = [
    "CONN", "NAME", "OWNER", "CMD", "SCRIPT", "SHA", "KEY", "CHANNEL", "ARG", "ARGV", "NODE", "AFTER", "NTH",
];

impl Match {
    /// Creates a match for everything.
    pub fn any() -> Match {
        Match::default()
    }

    /// Adds a clause.
    pub fn and(mut self, clause: Clause) -> Match {
        self.clauses.push(clause);
        self
    }

    /// Parses clauses up to the first argument that begins none. `nodes`: the number of nodes.
    pub fn parse(args: &mut Args, nodes: usize) -> Result<Match, SimError> {
        let mut found = Match::default();
        while let Some(arg) = args.peek() {
            let Some(clause) = CLAUSES.iter().find(|name| arg.eq_ignore_ascii_case(name.as_bytes())) else {
                break;
            };
            args.pop();
            found.clauses.push(parse_clause(clause, args, nodes)?);
        }
        Ok(found)
    }

    /// Returns whether all clauses but NTH match.
    pub fn matches(&self, subject: &Subject) -> bool {
        self.clauses.iter().all(|clause| clause.matches(subject))
    }

    /// Returns which of the matching requests or messages is meant, from 1; `None`: all.
    pub fn nth(&self) -> Option<u64> {
        self.clauses.iter().find_map(|clause| match clause {
            Clause::Nth(n) => Some(*n),
            _ => None,
        })
    }

    /// Checks that something can match. `pushes`: whether it is to match messages rather than requests.
    ///
    /// # Errors
    /// Names a clause about requests in a match for messages.
    pub fn check(&self, pushes: bool) -> Result<(), SimError> {
        for clause in &self.clauses {
            let only_requests = matches!(
                clause,
                Clause::Owner(_)
                    | Clause::Cmd(_)
                    | Clause::Script(_)
                    | Clause::Sha(_)
                    | Clause::Key(_)
                    | Clause::Arg(..)
                    | Clause::Argv(..)
            );
            if pushes && only_requests {
                return Err(syntax(format!("{clause} says nothing about messages: this could never match")));
            }
        }
        self.check_clauses()
    }
}

fn parse_clause(name: &str, args: &mut Args, nodes: usize) -> Result<Clause, SimError> {
    Ok(match name {
        "CONN" => Clause::Conn(args.int("the number of a connection", 1, i64::MAX)? as u64),
        "NAME" => Clause::Name(args.required("the name of a client")?.to_vec()),
        "OWNER" => Clause::Owner(args.required("the owner of a lock")?.to_vec()),
        "CMD" => {
            let arg = args.required("the name of a command")?;
            let name = arg.to_ascii_lowercase();
            if !glob::is_pattern(&name) && table::find_by_name(&name, Version::DEFAULT).is_none() {
                return Err(unknown(format!("there is no command {}: this could never match", quoted(arg))));
            }
            Clause::Cmd(name)
        }
        "SCRIPT" => {
            let arg = args.required("the role of a script")?;
            let role = arg.to_ascii_lowercase();
            if !Role::all().any(|known| glob::matches(&role, known.name().as_bytes(), false)) {
                return Err(unknown(format!(
                    "no script has the role {}: this could never match",
                    quoted(arg)
                )));
            }
            Clause::Script(role)
        }
        "SHA" => Clause::Sha(args.required("the beginning of a SHA-1")?.to_ascii_lowercase()),
        "KEY" => Clause::Key(args.required("a key")?.to_vec()),
        "CHANNEL" => Clause::Channel(args.required("a channel")?.to_vec()),
        "ARG" => Clause::Arg(
            args.int("the place of a word", 0, 1 << 20)? as usize,
            args.required("a word")?.to_vec(),
        ),
        "ARGV" => Clause::Argv(
            args.int("the place in ARGV", 1, 1 << 20)? as usize,
            args.required("a word")?.to_vec(),
        ),
        "NODE" => {
            let node = args.int("the number of a node", 0, i64::MAX)? as usize;
            if node >= nodes {
                return Err(range(format!(
                    "there is no node {node}: they are numbered from 0 to {}",
                    nodes - 1
                )));
            }
            Clause::Node(node)
        }
        "AFTER" => Clause::After(args.int("the number of an event", 0, i64::MAX)? as u64),
        _ => Clause::Nth(args.int("NTH", 1, i64::MAX)? as u64),
    })
}

impl Clause {
    fn matches(&self, subject: &Subject) -> bool {
        let matches = |pattern: &[u8], text: &[u8]| glob::matches(pattern, text, false);
        let request = match &subject.what {
            What::Request(request) => Some(request),
            What::Push { .. } => None,
        };
        match self {
            Clause::Conn(number) => subject.conn.session.number == *number,
            Clause::Name(pattern) => matches(pattern, subject.name),
            Clause::Node(node) => subject.conn.node == *node,
            Clause::After(event) => subject.event > *event,
            Clause::Nth(_) => true,
            Clause::Channel(pattern) => match &subject.what {
                What::Push { channel } => matches(pattern, channel),
                What::Request(request) => request.channels().iter().any(|channel| matches(pattern, channel)),
            },
            Clause::Owner(pattern) => {
                request.and_then(Request::owner).is_some_and(|owner| matches(pattern, owner))
            }
            Clause::Cmd(pattern) => request
                .and_then(|request| request.argv.first())
                .is_some_and(|name| glob::matches(pattern, name, true)),
            Clause::Script(pattern) => request
                .and_then(|request| request.script?.lock)
                .is_some_and(|lock| matches(pattern, lock.role.name().as_bytes())),
            Clause::Sha(prefix) => request
                .and_then(|request| request.script)
                .is_some_and(|script| script.sha.starts_with(prefix)),
            Clause::Key(pattern) => {
                request.is_some_and(|request| request.keys().iter().any(|key| matches(pattern, key)))
            }
            Clause::Arg(at, pattern) => {
                request.and_then(|request| request.argv.get(*at)).is_some_and(|arg| matches(pattern, arg))
            }
            Clause::Argv(at, pattern) => request
                .and_then(|request| request.script_args()?.argv.get(at - 1).copied())
                .is_some_and(|arg| matches(pattern, arg)),
        }
    }
}

impl std::fmt::Display for Clause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Clause::Conn(number) => write!(f, "CONN {number}"),
            Clause::Name(text) => write!(f, "NAME {}", quoted(text)),
            Clause::Owner(text) => write!(f, "OWNER {}", quoted(text)),
            Clause::Cmd(text) => write!(f, "CMD {}", String::from_utf8_lossy(text)),
            Clause::Script(text) => write!(f, "SCRIPT {}", String::from_utf8_lossy(text)),
            Clause::Sha(text) => write!(f, "SHA {}", String::from_utf8_lossy(text)),
            Clause::Key(text) => write!(f, "KEY {}", quoted(text)),
            Clause::Channel(text) => write!(f, "CHANNEL {}", quoted(text)),
            Clause::Arg(at, text) => write!(f, "ARG {at} {}", quoted(text)),
            Clause::Argv(at, text) => write!(f, "ARGV {at} {}", quoted(text)),
            Clause::Node(node) => write!(f, "NODE {node}"),
            Clause::After(event) => write!(f, "AFTER {event}"),
            Clause::Nth(n) => write!(f, "NTH {n}"),
        }
    }
}

impl std::fmt::Display for Match {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, clause) in self.clauses.iter().enumerate() {
            write!(f, "{}{clause}", if index > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}
