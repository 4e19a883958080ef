//! The row of a command. Each command and subcommand is declared once; dispatch, arity errors, `COMMAND`, ACL
//! categories, the rules for scripts and transactions, and the positions of keys all follow from that row.

use crate::commands::ctx::Ctx;
use crate::error::{self, Outcome};
pub use crate::version::NEVER;
use crate::version::Version;

/// One command or subcommand.
#[derive(Clone, Copy)]
pub struct Command {
    /// The name in lower case. A subcommand has its full name: `config|get`.
    pub name: &'static str,
    /// The number of arguments including the name; a negative number means at least that many.
    pub arity: i32,
    /// The arity before 7.2, if it was different.
    pub old_arity: Option<i32>,
    /// The release of Redis that introduced the command, or [`NEVER`](crate::version::NEVER). A server that emulates an
    /// earlier release does not have it.
    pub since: &'static str,
    /// The release of Valkey that introduced the command, if that was after Valkey and Redis had parted.
    pub since_valkey: &'static str,
    pub group: Group,
    pub flags: Flags,
    /// The ACL categories in addition to those that follow from the flags. The default is the group's category.
    pub acl: &'static [&'static str],
    pub keys: &'static [KeySpec],
    /// The specifications that find the keys of a call, where `COMMAND INFO` shows others.
    pub keys_of_calls: Option<&'static [KeySpec]>,
    /// Returns the flags of the keys whose specification has `variable_flags`, for these arguments.
    pub variable_flags: fn(&[&[u8]], Version) -> &'static [&'static str],
    /// Hints for proxies and clients, as `COMMAND INFO` lists them.
    pub tips: &'static [&'static str],
    pub summary: &'static str,
    pub complexity: &'static str,
    pub subcommands: &'static [Command],
    /// What later releases changed in the row; see [`Command::in_release`].
    pub changes: &'static [Change],
    pub run: fn(&mut Ctx) -> Outcome,
}

/// Scripts may call the command since 7.2.
pub const FOR_SCRIPTS_SINCE_7_2: &[Change] =
    &[Change { since: ("7.2.0", ""), apply: |row| row.flags &= !NOSCRIPT }];

/// What a release changed in a row. The row itself says what the first releases have.
#[derive(Clone, Copy)]
pub struct Change {
    /// The first releases of Redis and of Valkey with the change; see [`Version::has`].
    pub since: (&'static str, &'static str),
    pub apply: fn(&mut Command),
}

impl Command {
    /// Returns the defaults for the rows of a group.
    pub const fn of(group: Group) -> Command {
        Command {
            name: "",
            arity: 0,
            old_arity: None,
            since: "1.0.0",
            since_valkey: "",
            group,
            flags: 0,
            acl: group.acl(),
            keys: &[],
            keys_of_calls: None,
            variable_flags: |_, _| &[],
            tips: &[],
            summary: "",
            complexity: "O(1)",
            subcommands: &[],
            changes: &[],
            run: unknown_subcommand,
        }
    }

    /// Returns the row, and the rows of its subcommands, as they are in a release. The rows of subcommands live as long as the
    /// process.
    pub fn in_release(&self, version: Version) -> Command {
        let mut row = *self;
        for change in self.changes {
            if version.has(change.since.0, change.since.1) {
                (change.apply)(&mut row);
            }
        }
        if self.subcommands.iter().any(|sub| !sub.changes.is_empty() || !sub.exists_in(version)) {
            let subs = self.subcommands.iter().filter(|sub| sub.exists_in(version));
            row.subcommands = Vec::leak(subs.map(|sub| sub.in_release(version)).collect());
        }
        row
    }

    /// Returns whether a server that emulates `version` has this command.
    pub fn exists_in(&self, version: Version) -> bool {
        version.has(self.since, self.since_valkey)
    }

    /// Returns the release that introduced the command, as `COMMAND DOCS` has it.
    pub fn since_in(&self, version: Version) -> &'static str {
        if version.is_valkey() && !self.since_valkey.is_empty() { self.since_valkey } else { self.since }
    }

    /// Returns the arity in a release.
    pub fn arity_in(&self, version: Version) -> i32 {
        self.old_arity.filter(|_| version < Version::V7_2).unwrap_or(self.arity)
    }

    pub fn accepts(&self, words: usize, version: Version) -> bool {
        let arity = self.arity_in(version);
        if arity >= 0 { words == arity as usize } else { words >= arity.unsigned_abs() as usize }
    }

    pub fn has(&self, flags: Flags) -> bool {
        self.flags & flags != 0
    }

    /// Returns the row of a subcommand, given its own name in any case.
    pub fn subcommand(&self, word: &[u8]) -> Option<&'static Command> {
        let own = self.name.len() + 1;
        self.subcommands.iter().find(|sub| sub.name.as_bytes()[own..].eq_ignore_ascii_case(word))
    }
}

/// Replies with an error. This is the handler of commands that consist of subcommands: the dispatcher found no row for
/// the second argument.
fn unknown_subcommand(ctx: &mut Ctx) -> Outcome {
    Err(error::unknown_subcommand(ctx.argv))
}

/// The group under which a command is documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Bitmap,
    Cluster,
    Connection,
    Generic,
    Geo,
    Hash,
    HyperLogLog,
    List,
    PubSub,
    Scripting,
    Sentinel,
    Server,
    Set,
    SortedSet,
    Stream,
    String,
    Transactions,
}

impl Group {
    const fn acl(self) -> &'static [&'static str] {
        match self {
            Group::Bitmap => &["bitmap"],
            Group::Connection => &["connection"],
            Group::Generic => &["keyspace"],
            Group::Geo => &["geo"],
            Group::Hash => &["hash"],
            Group::HyperLogLog => &["hyperloglog"],
            Group::List => &["list"],
            Group::Scripting => &["scripting"],
            Group::Set => &["set"],
            Group::SortedSet => &["sortedset"],
            Group::Stream => &["stream"],
            Group::String => &["string"],
            Group::Transactions => &["transaction"],
            Group::Cluster | Group::PubSub | Group::Sentinel | Group::Server => &[],
        }
    }

    /// Returns the group's name in `COMMAND DOCS`.
    pub fn name(self) -> &'static str {
        match self {
            Group::Bitmap => "bitmap",
            Group::Cluster => "cluster",
            Group::Connection => "connection",
            Group::Generic => "generic",
            Group::Geo => "geo",
            Group::Hash => "hash",
            Group::HyperLogLog => "hyperloglog",
            Group::List => "list",
            Group::PubSub => "pubsub",
            Group::Scripting => "scripting",
            Group::Sentinel => "sentinel",
            Group::Server => "server",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Stream => "stream",
            Group::String => "string",
            Group::Transactions => "transactions",
        }
    }
}

/// A set of bits with Redis's names: what a command does, and where it may run.
pub type Flags = u32;

/// Returns the names of the flags that are set, in the order of `COMMAND INFO` of a release.
pub fn flag_names(flags: Flags, version: Version) -> impl Iterator<Item = &'static str> {
    let set = FLAG_NAMES.iter().enumerate().filter(move |(bit, _)| flags & 1 << bit != 0);
    set.map(move |(_, name)| match *name {
        "skip_slowlog" if version.is_valkey() => "skip_commandlog",
        name => name,
    })
}

pub const WRITE: Flags = 1 << 0;
pub const READONLY: Flags = 1 << 1;
pub const DENYOOM: Flags = 1 << 2;
pub const ADMIN: Flags = 1 << 3;
pub const PUBSUB: Flags = 1 << 4;
pub const NOSCRIPT: Flags = 1 << 5;
pub const BLOCKING: Flags = 1 << 6;
pub const LOADING: Flags = 1 << 7;
pub const STALE: Flags = 1 << 8;
pub const SKIP_MONITOR: Flags = 1 << 9;
pub const SKIP_SLOWLOG: Flags = 1 << 10;
pub const ASKING: Flags = 1 << 11;
pub const FAST: Flags = 1 << 12;
pub const NO_AUTH: Flags = 1 << 13;
pub const MAY_REPLICATE: Flags = 1 << 14;
pub const NO_MANDATORY_KEYS: Flags = 1 << 15;
pub const NO_ASYNC_LOADING: Flags = 1 << 16;
pub const NO_MULTI: Flags = 1 << 17;
pub const ALLOW_BUSY: Flags = 1 << 18;
pub const MOVABLEKEYS: Flags = 1 << 19;

const FLAG_NAMES: &[&str] = &[
    "write",
    "readonly",
    "denyoom",
    "admin",
    "pubsub",
    "noscript",
    "blocking",
    "loading",
    "stale",
    "skip_monitor",
    "skip_slowlog",
    "asking",
    "fast",
    "no_auth",
    "may_replicate",
    "no_mandatory_keys",
    "no_async_loading",
    "no_multi",
    "allow_busy",
    "movablekeys",
];

/// The positions of a command's keys, and what the command does with them.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Redis's terms for the access (`RO`, `RW`, `OW`, `RM`) and the use (`access`, `update`, `insert`, `delete`, …).
    pub flags: &'static [&'static str],
    pub notes: &'static str,
    pub begin: Begin,
    pub find: Find,
}

/// The position at which the search for keys begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// At the argument with this index.
    Index(i32),
    /// After this keyword. The search for it begins at the given index (backwards from the end if negative).
    Keyword(&'static str, i32),
    /// After the last of these keywords, wherever it stands among the options from argument `from` on. Other options
    /// with arguments, with their number, are skipped. `COMMAND INFO` calls it unknown.
    Option {
        keywords: &'static [&'static str],
        from: usize,
        skipping: &'static [(&'static str, usize)],
    },
    /// At the argument with this index, if none of these keywords stands among the options.
    IndexWithout {
        index: usize,
        keywords: &'static [&'static str],
        from: usize,
        skipping: &'static [(&'static str, usize)],
    },
    Unknown,
}

/// Which arguments after the beginning are keys.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Every `step`-th argument up to `last` (relative to the beginning, or to the end if negative); `limit` divides
    /// the number of the remaining arguments.
    Range {
        last: i32,
        step: i32,
        limit: i32,
    },
    /// The argument at `count` is the number of keys; they begin at `first`, every `step`-th argument.
    Count {
        count: i32,
        first: i32,
        step: i32,
    },
    Unknown,
}

/// Returns the specification of one key at argument `index`.
pub const fn key(flags: &'static [&'static str], index: i32) -> KeySpec {
    keys(flags, index, 0, 1)
}

/// Returns the specification of keys from argument `index` to `last` (relative to it, or to the end if negative), every
/// `step`-th.
pub const fn keys(flags: &'static [&'static str], index: i32, last: i32, step: i32) -> KeySpec {
    KeySpec { flags, notes: "", begin: Begin::Index(index), find: Find::Range { last, step, limit: 0 } }
}

/// Returns the specification of keys whose number is argument `index`.
pub const fn counted_keys(flags: &'static [&'static str], index: i32) -> KeySpec {
    KeySpec {
        flags,
        notes: "",
        begin: Begin::Index(index),
        find: Find::Count { count: 0, first: 1, step: 1 },
    }
}

/// Returns the positions of the keys among the arguments of a call, or `None` if the row does not determine them.
pub fn key_positions(specs: &[KeySpec], argv: &[&[u8]]) -> Option<Vec<usize>> {
    let mut positions = Vec::new();
    for spec in specs {
        let begin = match spec.begin {
            Begin::Index(index) => index as usize,
            Begin::Keyword(word, from) => match find_keyword(argv, word, from) {
                Some(at) => at + 1,
                None => continue,
            },
            Begin::Option { keywords, from, skipping } => match find_option(argv, keywords, from, skipping) {
                Some(at) => at + 1,
                None => continue,
            },
            Begin::IndexWithout { index, keywords, from, skipping } => {
                match find_option(argv, keywords, from, skipping) {
                    Some(_) => continue,
                    None => index,
                }
            }
            Begin::Unknown => return None,
        };
        if begin >= argv.len() {
            continue;
        }
        match spec.find {
            Find::Range { last, step, limit } => {
                let end = if last >= 0 {
                    begin + last as usize
                } else if limit > 1 {
                    let end = (argv.len() - begin) / limit as usize;
                    (begin + end).saturating_sub(last.unsigned_abs() as usize)
                } else {
                    (argv.len() as i64 + last as i64).max(0) as usize
                };
                positions.extend((begin..=end.min(argv.len() - 1)).step_by(step.max(1) as usize));
            }
            Find::Count { count, first, step } => {
                let count = argv.get(begin + count as usize).and_then(|word| crate::num::parse_i64(word))?;
                let first = begin + first as usize;
                let end = first.saturating_add(usize::try_from(count).ok()?.saturating_mul(step as usize));
                if end > argv.len() {
                    return None;
                }
                positions.extend((first..end).step_by(step.max(1) as usize));
            }
            Find::Unknown => return None,
        }
    }
    Some(positions)
}

/// Returns the position of the last of some keywords that has an argument.
fn find_option(argv: &[&[u8]], keywords: &[&str], from: usize, skipping: &[(&str, usize)]) -> Option<usize> {
    let (mut found, mut at) = (None, from);
    while at < argv.len() {
        let is = |word: &str| argv[at].eq_ignore_ascii_case(word.as_bytes());
        if let Some((_, arguments)) = skipping.iter().find(|(word, _)| is(word)) {
            at += arguments;
        } else if at + 1 < argv.len() && keywords.iter().any(|word| is(word)) {
            found = Some(at);
        }
        at += 1;
    }
    found
}

fn find_keyword(argv: &[&[u8]], word: &str, from: i32) -> Option<usize> {
    let is_word = |at: &usize| argv[*at].eq_ignore_ascii_case(word.as_bytes());
    if from >= 0 {
        (from as usize..argv.len()).find(is_word)
    } else {
        (1..argv.len().saturating_sub(from.unsigned_abs() as usize - 1)).rev().find(is_word)
    }
}
