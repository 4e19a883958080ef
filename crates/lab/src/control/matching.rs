//! What a rule or a gate looks at: a conjunction of clauses over a request or a message.

use super::words::{SimError, Words, quoted, range, syntax, unknown};
use redlatch_core::commands::table;
use redlatch_core::glob;
use redlatch_core::version::Version;
use redlatch_core::world::ConnId;
use redlatch_locks::role::{Recognised, Role};

/// What is looked at: a request that came, or a message on its way to a subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub conn: ConnId,
    /// What CLIENT SETNAME said.
    pub name: &'a [u8],
    pub event: u64,
    pub what: What<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    Request(Request<'a>),
    Push { channel: &'a [u8] },
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub argv: &'a [&'a [u8]],
    /// The script that it runs, if it runs one that is known.
    pub script: Option<Script<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    pub sha: &'a [u8],
    pub lock: Option<Recognised>,
}

/// What a script finds in its tables of these names.
#[derive(Clone, Copy, Debug)]
pub struct ScriptWords<'a> {
    pub keys: &'a [&'a [u8]],
    pub argv: &'a [&'a [u8]],
}

impl<'a> Request<'a> {
    pub fn new(argv: &'a [&'a [u8]], script: Option<Script<'a>>) -> Request<'a> {
        Request { argv, script }
    }

    /// The KEYS and the ARGV of a script.
    pub fn script_words(&self) -> Option<ScriptWords<'a>> {
        if !is_eval(self.argv.first()?) {
            return None;
        }
        let count = redlatch_core::num::parse_i64(self.argv.get(2)?)?;
        let rest = self.argv.get(3..)?;
        let (keys, argv) = rest.split_at_checked(usize::try_from(count).ok()?)?;
        Some(ScriptWords { keys, argv })
    }

    /// Keys of the request, by the row of its command.
    pub fn keys(&self) -> Vec<&'a [u8]> {
        let Some(command) = table::find(self.argv, Version::V7_4) else { return Vec::new() };
        let positions =
            redlatch_core::commands::command::key_positions(command.keys, self.argv).unwrap_or_default();
        positions.into_iter().filter_map(|at| self.argv.get(at).copied()).collect()
    }

    /// Channels that the request subscribes to, leaves or publishes to; those of a script are among its words.
    fn channels(&self) -> &'a [&'a [u8]] {
        let Some(name) = self.argv.first() else { return &[] };
        let name = name.to_ascii_lowercase();
        match &name[..] {
            b"publish" | b"spublish" => self.argv.get(1..2).unwrap_or(&[]),
            _ if name.ends_with(b"subscribe") => &self.argv[1..],
            _ => &[],
        }
    }

    /// Who asks, where the script is one whose owner's place is known.
    pub fn owner(&self) -> Option<&'a [u8]> {
        let place = self.script?.lock?.owner?;
        self.script_words()?.argv.get(place - 1).copied()
    }
}

pub fn is_eval(name: &[u8]) -> bool {
    [&b"EVAL"[..], b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO"].iter().any(|eval| name.eq_ignore_ascii_case(eval))
}

/// One condition. Texts are globs, as KEYS has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The number that CLIENT ID gives.
    Conn(u64),
    /// What CLIENT SETNAME said.
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
    /// A word of the request; 0 is the command.
    Arg(usize, Vec<u8>),
    /// A word of a script's ARGV; 1 is the first.
    Argv(usize, Vec<u8>),
    /// The number of the node.
    Node(usize),
    /// Only events after this one.
    After(u64),
    /// Only the n-th that all other clauses fit, from 1.
    Nth(u64),
}

/// A conjunction. Without a clause it fits everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// All of them have to fit.
    pub clauses: Vec<Clause>,
}

/// The words that begin a clause.
const CLAUSES: [&str; 13] = [
    "CONN", "NAME", "OWNER", "CMD", "SCRIPT", "SHA", "KEY", "CHANNEL", "ARG", "ARGV", "NODE", "AFTER", "NTH",
];

impl Match {
    /// Everything.
    pub fn any() -> Match {
        Match::default()
    }

    /// And this as well.
    pub fn and(mut self, clause: Clause) -> Match {
        self.clauses.push(clause);
        self
    }

    /// Reads clauses up to the first word that begins none. `nodes`: how many there are.
    pub fn parse(words: &mut Words, nodes: usize) -> Result<Match, SimError> {
        let mut found = Match::default();
        while let Some(word) = words.peek() {
            let Some(clause) = CLAUSES.iter().find(|name| word.eq_ignore_ascii_case(name.as_bytes())) else {
                break;
            };
            words.pop();
            found.clauses.push(parse_clause(clause, words, nodes)?);
        }
        Ok(found)
    }

    /// Whether all clauses but NTH fit.
    pub fn fits(&self, subject: &Subject) -> bool {
        self.clauses.iter().all(|clause| clause.fits(subject))
    }

    /// Which of those that fit is meant, from 1; `None`: all.
    pub fn nth(&self) -> Option<u64> {
        self.clauses.iter().find_map(|clause| match clause {
            Clause::Nth(n) => Some(*n),
            _ => None,
        })
    }

    /// Refuses a conjunction that nothing at this place can ever fit.
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
        Ok(())
    }
}

fn parse_clause(name: &str, words: &mut Words, nodes: usize) -> Result<Clause, SimError> {
    Ok(match name {
        "CONN" => Clause::Conn(words.int("the number of a connection", 1, i64::MAX)? as u64),
        "NAME" => Clause::Name(words.word("the name of a client")?.to_vec()),
        "OWNER" => Clause::Owner(words.word("the owner of a lock")?.to_vec()),
        "CMD" => {
            let word = words.word("the name of a command")?;
            let name = word.to_ascii_lowercase();
            if !glob::is_pattern(&name) && table::find_by_name(&name, Version::V7_4).is_none() {
                return Err(unknown(format!("there is no command {}: this could never match", quoted(word))));
            }
            Clause::Cmd(name)
        }
        "SCRIPT" => {
            let word = words.word("the role of a script")?;
            let role = word.to_ascii_lowercase();
            if !Role::all().any(|known| glob::matches(&role, known.name().as_bytes(), false)) {
                return Err(unknown(format!(
                    "no script has the role {}: this could never match",
                    quoted(word)
                )));
            }
            Clause::Script(role)
        }
        "SHA" => Clause::Sha(words.word("the beginning of a SHA-1")?.to_ascii_lowercase()),
        "KEY" => Clause::Key(words.word("a key")?.to_vec()),
        "CHANNEL" => Clause::Channel(words.word("a channel")?.to_vec()),
        "ARG" => Clause::Arg(
            words.int("the place of a word", 0, 1 << 20)? as usize,
            words.word("a word")?.to_vec(),
        ),
        "ARGV" => {
            Clause::Argv(words.int("the place in ARGV", 1, 1 << 20)? as usize, words.word("a word")?.to_vec())
        }
        "NODE" => {
            let node = words.int("the number of a node", 0, i64::MAX)? as usize;
            if node >= nodes {
                return Err(range(format!(
                    "there is no node {node}: they are numbered from 0 to {}",
                    nodes - 1
                )));
            }
            Clause::Node(node)
        }
        "AFTER" => Clause::After(words.int("the number of an event", 0, i64::MAX)? as u64),
        _ => Clause::Nth(words.int("NTH", 1, i64::MAX)? as u64),
    })
}

impl Clause {
    fn fits(&self, subject: &Subject) -> bool {
        let fits = |pattern: &[u8], text: &[u8]| glob::matches(pattern, text, false);
        let request = match &subject.what {
            What::Request(request) => Some(request),
            What::Push { .. } => None,
        };
        match self {
            Clause::Conn(number) => subject.conn.session.number == *number,
            Clause::Name(pattern) => fits(pattern, subject.name),
            Clause::Node(node) => subject.conn.node == *node,
            Clause::After(event) => subject.event > *event,
            Clause::Nth(_) => true,
            Clause::Channel(pattern) => match &subject.what {
                What::Push { channel } => fits(pattern, channel),
                What::Request(request) => request.channels().iter().any(|channel| fits(pattern, channel)),
            },
            Clause::Owner(pattern) => {
                request.and_then(Request::owner).is_some_and(|owner| fits(pattern, owner))
            }
            Clause::Cmd(pattern) => request
                .and_then(|request| request.argv.first())
                .is_some_and(|name| glob::matches(pattern, name, true)),
            Clause::Script(pattern) => request
                .and_then(|request| request.script?.lock)
                .is_some_and(|lock| fits(pattern, lock.role.name().as_bytes())),
            Clause::Sha(prefix) => request
                .and_then(|request| request.script)
                .is_some_and(|script| script.sha.starts_with(prefix)),
            Clause::Key(pattern) => {
                request.is_some_and(|request| request.keys().iter().any(|key| fits(pattern, key)))
            }
            Clause::Arg(at, pattern) => {
                request.and_then(|request| request.argv.get(*at)).is_some_and(|word| fits(pattern, word))
            }
            Clause::Argv(at, pattern) => request
                .and_then(|request| request.script_words()?.argv.get(at - 1).copied())
                .is_some_and(|word| fits(pattern, word)),
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
