//! Generates random rounds of commands.

use redlatch_core::commands::command::{Command, key_positions};
use redlatch_core::commands::table;
use redlatch_core::version::Version;

use super::exclusions::{self, Compare};
use super::grammar;
use super::pools::{self, Pools};
use super::shapes::{self, FOREIGN, Family, RUN, RUN_PROTECTED};
use super::step::Step;

/// The number of connections that send commands; one more only listens.
const SENDERS: usize = 3;
const LISTENER: usize = SENDERS;

/// A command that is sent, with the form of its arguments.
#[derive(Clone, Copy)]
struct Entry {
    row: &'static Command,
    form: Option<&'static str>,
}

/// One step in this many times a hundred involves a timeout, and takes 45 ms.
const TIMED: usize = 40;

/// Generates rounds for one family.
pub struct Generator {
    family: &'static Family,
    version: Version,
    pools: Pools,
    own: Vec<Entry>,
    foreign: Vec<Entry>,
    /// Whether this round has SORT; other rounds have numbers beyond a double. Redis leaves `errno` at `ERANGE` after such a
    /// number, and SORT takes that for an error in its own arguments.
    sorts: bool,
}

impl Generator {
    pub fn new(family: &'static Family, version: Version, seed: u64) -> Generator {
        let rows = || {
            table::all(version).flat_map(move |row| {
                let subs = row.subcommands.iter().filter(move |sub| sub.exists_in(version));
                std::iter::once(row)
                    .filter(|row| row.subcommands.is_empty() || row.name == "command")
                    .chain(subs)
            })
        };
        let entries = || {
            rows()
                .filter(|row| !exclusions::is_excluded(row.name))
                .map(|row| Entry { row, form: shapes::find(row.name) })
        };
        let of_groups = entries().filter(|entry| family.groups.contains(&entry.row.group));
        let named = |name: &&str| entries().find(|entry| entry.row.name == *name);
        let mut pools = Pools::new(seed);
        pools.home = family.keys;
        pools.grows_scripts = family.name == shapes::RANDOM_LUA;
        Generator {
            family,
            version,
            pools,
            own: of_groups.chain(family.also.iter().filter_map(named)).collect(),
            foreign: FOREIGN.iter().filter_map(named).collect(),
            sorts: false,
        }
    }

    /// Generates about `len` steps, to be run on empty databases with new connections.
    pub fn round(&mut self, len: usize, resp3: bool) -> Vec<Step> {
        self.sorts = self.pools.once_in(2);
        let mut steps = self.preamble(resp3);
        // Some rounds change the connection at every step, others rarely.
        let stay = [1, 8, 8, 30, 30, 30, 100, 100][self.pools.rng.below(8)];
        let mut client = 0;
        while steps.len() < len {
            if self.pools.once_in(stay) {
                client = self.pools.rng.below(SENDERS).min(self.pools.rng.below(SENDERS));
            }
            match self.pools.rng.below(100) {
                0 if self.pools.once_in(TIMED) => steps.extend(self.timed(client)),
                1..=3 => steps.extend(self.transaction(client)),
                _ => {
                    let (argv, compare) = self.command(false);
                    steps.push(Step::new(client, argv, compare));
                }
            }
        }
        if self.family.name == shapes::TRACKING_FAMILY {
            // Broadcasts of requests that arrive together are sent together.
            steps.iter_mut().for_each(|step| step.stands_alone = true);
        }
        steps
    }

    fn preamble(&mut self, resp3: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut say = |client: usize, words: &str, compare| {
            let argv = words.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
            steps.push(Step::new(client, argv, compare));
        };
        if resp3 {
            (0..=LISTENER).for_each(|client| say(client, "HELLO 3", Compare::Kind));
        }
        if self.pools.once_in(2) {
            say(0, "CONFIG SET notify-keyspace-events KEA", Compare::Exactly);
            say(LISTENER, "PSUBSCRIBE __key*__:*", Compare::Exactly);
            // In RESP3 a client receives the events of its own commands among its replies; before 7.2 even within them.
            if resp3 && self.version >= Version::V7_2 && self.pools.once_in(3) {
                say(0, "PSUBSCRIBE __key*__:*", Compare::Exactly);
            }
        }
        for param in [
            "hash-max-listpack-entries",
            "list-max-listpack-size",
            "zset-max-listpack-entries",
            "set-max-intset-entries",
            "stream-node-max-entries",
        ] {
            if self.pools.once_in(4) {
                say(0, &format!("CONFIG SET {param} 2"), Compare::Exactly);
            }
        }
        steps
    }

    /// Generates a command for this round.
    fn command(&mut self, in_script: bool) -> (Vec<Vec<u8>>, Compare) {
        loop {
            let (argv, compare) = self.any_command(in_script);
            let is_sort = [&b"sort"[..], b"sort_ro"].iter().any(|name| argv[0].eq_ignore_ascii_case(name));
            if argv[0].eq_ignore_ascii_case(b"xadd") && !has_certain_id(&argv) {
                continue;
            }
            if argv[0].eq_ignore_ascii_case(b"hsetex") && repeats_a_field(&argv) {
                continue;
            }
            let overflows = || argv.iter().any(|arg| pools::OVERFLOWS.contains(&arg.as_slice()));
            let fits = if self.sorts { !overflows() } else { !is_sort };
            if fits {
                return (argv, compare);
            }
        }
    }

    /// Generates a command of the family or a foreign one, sometimes malformed.
    fn any_command(&mut self, in_script: bool) -> (Vec<Vec<u8>>, Compare) {
        let foreign = self.pools.once_in(self.family.foreign) || in_script;
        let entries = if foreign { &self.foreign } else { &self.own };
        let entry = entries[self.pools.rng.below(entries.len())];
        let (mut argv, name_len) = request(entry.row, entry.form, &mut self.pools);
        if argv.iter().any(|arg| arg == RUN.as_bytes() || arg == RUN_PROTECTED.as_bytes()) && !in_script {
            argv.truncate(2);
            argv.push(b"0".to_vec());
            argv.extend(self.scripted());
        } else if self.pools.once_in(10) && !entry.form.is_some_and(|form| form.starts_with('=')) {
            spoil(&mut argv, name_len, &mut self.pools);
        }
        let compare = match entry.row.name {
            // Before 7.2 the single commands of a user come in hash-table order.
            "acl|list" | "acl|getuser" if self.version < Version::V7_2 => Compare::Kind,
            name => exclusions::compare_of(name),
        };
        (argv, compare)
    }

    /// Generates a command for a script to run, whose reply does not depend on the server.
    fn scripted(&mut self) -> Vec<Vec<u8>> {
        loop {
            let (argv, compare) = self.command(true);
            if compare == Compare::Exactly {
                return argv;
            }
        }
    }

    fn transaction(&mut self, client: usize) -> Vec<Step> {
        let words = |text: &str| vec![text.as_bytes().to_vec()];
        let mut steps = vec![Step::new(client, words("MULTI"), Compare::Exactly)];
        for _ in 0..self.pools.rng.below(4) {
            let (argv, compare) = self.command(false);
            steps.push(Step::new(client, argv, compare));
            if self.pools.once_in(4) {
                let (argv, compare) = self.command(false);
                steps.push(Step::new((client + 1) % SENDERS, argv, compare));
            }
        }
        let end = if self.pools.once_in(6) { "DISCARD" } else { "EXEC" };
        steps.push(Step::new(client, words(end), Compare::Exactly));
        steps
    }

    /// Generates steps with a timeout of 20 ms: the TTL of a key, or the timeout of a blocked client.
    fn timed(&mut self, client: usize) -> Vec<Step> {
        let key = self.pools.word("key");
        let argv = |words: &[&[u8]]| words.iter().map(|arg| arg.to_vec()).collect();
        let (argv, settles): (Vec<Vec<u8>>, bool) = match self.pools.rng.below(4) {
            0 => (argv(&[b"PEXPIRE", &key, b"20"]), true),
            1 => (argv(&[b"SET", &key, b"v", b"PX", b"20"]), true),
            2 => (argv(&[b"BLPOP", &key, b"nokey", b"0.02"]), false),
            _ => (argv(&[b"BLMOVE", &key, b"l2", b"LEFT", b"RIGHT", b"0.02"]), false),
        };
        let mut first = Step::new(client, argv, Compare::Exactly);
        first.wait_ms = 45;
        first.stands_alone = true;
        // Redis emits `expired` only when it accesses the key, so a step has to.
        let look = Step::new(client, vec![b"EXISTS".to_vec(), key.clone()], Compare::Exactly);
        if settles {
            first.then = Some(Box::new(look));
        }
        // In a transaction the timeout would start only at EXEC.
        vec![Step::new(client, vec![b"DISCARD".to_vec()], Compare::Exactly), first]
    }
}

/// Returns whether a word stands at two places of HSETEX: a field that is named twice, once with an expiry, ends Redis 8.6.3.
fn repeats_a_field(argv: &[Vec<u8>]) -> bool {
    let words = argv.get(2..).unwrap_or_default();
    words.iter().enumerate().any(|(at, word)| words[..at].contains(word))
}

/// Returns whether the id of an entry that is added does not depend on the server's clock, now or later.
fn has_certain_id(argv: &[Vec<u8>]) -> bool {
    let word = |at: usize| argv.get(at).map_or(&b""[..], Vec::as_slice);
    match word(1) == pools::FAR.as_bytes() {
        true => word(2).eq_ignore_ascii_case(b"NOMKSTREAM") || word(2).starts_with(pools::FAR_MS.as_bytes()),
        false => argv.iter().all(|arg| arg != b"*"),
    }
}

/// Generates any request for a command, in one of ten cases malformed.
pub fn any_request(row: &Command, pools: &mut Pools) -> Vec<Vec<u8>> {
    let (mut argv, name_len) = request(row, shapes::find(row.name), pools);
    if pools.once_in(10) {
        spoil(&mut argv, name_len, pools);
    }
    argv
}

/// Generates a request for a command. Returns it, and how many words its name has.
fn request(row: &Command, form: Option<&str>, pools: &mut Pools) -> (Vec<Vec<u8>>, usize) {
    let mut argv: Vec<Vec<u8>> =
        row.name.split('|').map(|name| pools.keyword(&name.to_ascii_uppercase())).collect();
    let name_len = argv.len();
    match form {
        Some(form) => argv.extend(grammar::expand(form, pools)),
        None => fill(row, &mut argv, pools),
    }
    (argv, name_len)
}

/// Adds arguments for a command without a form: as many as its arity requires, with keys at the key positions.
fn fill(row: &Command, argv: &mut Vec<Vec<u8>>, pools: &mut Pools) {
    let least = row.arity.unsigned_abs() as usize;
    let more = if row.arity < 0 { pools.rng.below(3) } else { 0 };
    while argv.len() < least + more {
        argv.push(pools.any().into());
    }
    let words: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
    for at in key_positions(row.keys, &words).unwrap_or_default() {
        argv[at] = pools.word("key");
    }
}

/// Makes a request malformed: removes, adds or replaces an argument.
fn spoil(argv: &mut Vec<Vec<u8>>, name_len: usize, pools: &mut Pools) {
    let args = argv.len() - name_len;
    let at = name_len + pools.rng.below(args.max(1));
    match pools.rng.below(4) {
        0 if args > 0 => drop(argv.pop()),
        1 if args > 0 => drop(argv.remove(at)),
        2 if args > 0 => argv[at] = pools.any().into(),
        _ => argv.push(pools.any().into()),
    }
}
