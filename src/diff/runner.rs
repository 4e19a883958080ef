//! Sends the same steps to both servers and compares everything that comes back.

use std::time::Duration;

use super::compare::{elements, is_push, move_pushes_behind, same, sort_pattern_messages, values};
use super::exclusions::{self, Compare};
use super::link::Link;
use super::step::{Step, client_name, mark, quote};
use super::target::Target;
use crate::version::Version;
use crate::wire::client::encode;

/// The same connection at both servers.
struct Pair {
    ours: Link,
    theirs: Link,
    /// It has not been answered: it is blocked, and its steps are left out until it is.
    waiting: bool,
    /// How the replies of the EXEC to come are compared.
    queued: Vec<Compare>,
    /// Whether one of them is no single part of that reply.
    has_unframed: bool,
}

impl Pair {
    fn send(&mut self, bytes: &[u8]) {
        self.ours.send(bytes);
        self.theirs.send(bytes);
    }

    fn fill(&mut self) {
        self.ours.fill();
        self.theirs.fill();
    }
}

/// A place where the servers differ.
pub struct Difference {
    /// The step, or where the steps ended if the keyspaces differ behind them.
    pub at: usize,
    /// What tells it from other differences: the command.
    pub command: String,
    /// The last line of the case.
    pub line: String,
    pub ours: Vec<u8>,
    pub theirs: Vec<u8>,
}

/// What a run of steps came to.
pub struct Outcome {
    pub difference: Option<Difference>,
    /// The steps that were run, in the text form of a case.
    pub case: Vec<String>,
    pub sent: usize,
}

/// Why no more can be compared: a sentence.
pub type Fatal = String;

/// How often a difference is looked at again before it is believed, so that a slow process is none, nor a key that Redis
/// deletes in its next cycle. While shrinking, fewer have to do.
const LOOKS: u32 = 80;
const FEW_LOOKS: u32 = 15;

/// Settings that rounds change; each begins with those of the servers.
const SETTINGS: &[&str] = &[
    "notify-keyspace-events",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "list-max-listpack-size",
    "set-max-intset-entries",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
    "maxmemory-policy",
];

pub struct Runner {
    ours: Target,
    theirs: Target,
    control: Pair,
    pairs: Vec<Option<Pair>>,
    settings: Vec<(&'static str, Vec<u8>)>,
    /// Whether differences are believed sooner.
    pub in_a_hurry: bool,
}

fn open(ours: &Target, theirs: &Target) -> Result<Pair, Fatal> {
    let (ours, theirs) = (Link::open(ours.addr)?, Link::open(theirs.addr)?);
    Ok(Pair { ours, theirs, waiting: false, queued: Vec::new(), has_unframed: false })
}

impl Runner {
    pub fn new(ours: Target, theirs: Target) -> Result<Runner, Fatal> {
        let mut control = open(&ours, &theirs)?;
        let mut settings = Vec::new();
        for name in SETTINGS {
            let reply = control.theirs.call(&["CONFIG", "GET", name]).unwrap_or_default();
            if let Some(value) = elements(&reply).get(1).and_then(|bulk| bulk_text(bulk)) {
                settings.push((*name, value));
            }
        }
        Ok(Runner { ours, theirs, control, pairs: Vec::new(), settings, in_a_hurry: false })
    }

    /// Runs steps from empty databases and fresh connections up to the first difference, and compares the
    /// keyspaces behind the last one if `keyspace` says so.
    pub fn run(&mut self, steps: &[Step], keyspace: bool) -> Result<Outcome, Fatal> {
        self.reset()?;
        let mut outcome = Outcome { difference: None, case: Vec::new(), sent: 0 };
        for (at, step) in steps.iter().enumerate() {
            let difference = match self.step(step, &mut outcome) {
                Ok(None) => continue,
                Ok(Some(difference)) => Difference { at, ..difference },
                Err(silent) => {
                    let difference = self.silence(step, silent)?;
                    Difference { at, ..difference }
                }
            };
            outcome.difference = Some(difference);
            break;
        }
        if keyspace && outcome.difference.is_none() {
            let difference = self.compare_keyspaces(&mut outcome.case)?;
            outcome.difference = difference.map(|difference| Difference { at: steps.len(), ..difference });
        }
        self.restore_settings(steps, &mut outcome.case);
        Ok(outcome)
    }

    /// A case that changes settings puts them back for the next one.
    fn restore_settings(&self, steps: &[Step], case: &mut Vec<String>) {
        for (name, value) in &self.settings {
            let sets = |step: &Step| {
                step.command() == "CONFIG" && step.argv.get(2).is_some_and(|word| word == name.as_bytes())
            };
            if steps.iter().any(sets) {
                let argv = [b"CONFIG", &b"SET"[..], name.as_bytes(), value].map(<[u8]>::to_vec);
                case.push(format!("z: {}", quote(&argv)));
            }
        }
    }

    /// Empties both servers and gives them their settings back.
    pub fn reset(&mut self) -> Result<(), Fatal> {
        self.pairs.clear();
        self.control = open(&self.ours, &self.theirs)?;
        // What was closed before is gone once the barrier is passed.
        let _ = self.barrier();
        let mut requests: Vec<Vec<Vec<u8>>> =
            vec![vec![b"FLUSHALL".to_vec()], vec![b"SCRIPT".to_vec(), b"FLUSH".to_vec()]];
        for (name, value) in &self.settings {
            requests.push(vec![b"CONFIG".to_vec(), b"SET".to_vec(), name.as_bytes().to_vec(), value.clone()]);
        }
        for argv in requests {
            self.control.send(&encode(&argv));
            if self.control.theirs.receive().is_none() || self.control.ours.receive().is_none() {
                return Err(format!("no answer to {}", quote(&argv)));
            }
        }
        Ok(())
    }

    /// Returns once both servers have done all that was sent before: a server answers a PING that came later no
    /// earlier, and a second one shows that what the first turn wrote has been sent. The error names who is silent.
    fn barrier(&mut self) -> Result<(), Silent> {
        for _ in 0..2 {
            self.control.send(&encode(&["PING"]));
            for (link, who) in
                [(&mut self.control.theirs, Silent::Theirs), (&mut self.control.ours, Silent::Ours)]
            {
                link.receive().ok_or(who)?;
            }
        }
        Ok(())
    }

    fn pair(&mut self, client: usize) -> Result<&mut Pair, Silent> {
        if self.pairs.len() <= client {
            self.pairs.resize_with(client + 1, || None);
        }
        let slot = &mut self.pairs[client];
        match slot {
            Some(pair) => Ok(pair),
            None => {
                let ours = Link::open(self.ours.addr).map_err(|_| Silent::Ours)?;
                let theirs = Link::open(self.theirs.addr).map_err(|_| Silent::Theirs)?;
                Ok(slot.insert(Pair {
                    ours,
                    theirs,
                    waiting: false,
                    queued: Vec::new(),
                    has_unframed: false,
                }))
            }
        }
    }

    fn step(&mut self, step: &Step, outcome: &mut Outcome) -> Result<Option<Difference>, Silent> {
        let pair = self.pair(step.client)?;
        if pair.waiting {
            return Ok(None);
        }
        pair.send(&encode(&step.argv));
        outcome.sent += 1;
        if step.wait_ms > 0 {
            std::thread::sleep(Duration::from_millis(step.wait_ms));
        }
        // Events of keys that expired meanwhile come with the step that looks.
        let listeners_later = step.then.is_some();
        if let Some(difference) = self.settle(step, listeners_later, &mut outcome.case)? {
            return Ok(Some(difference));
        }
        match &step.then {
            Some(then) => self.step(then, outcome),
            None => Ok(None),
        }
    }

    /// Takes in what both servers have sent, compares it and writes the lines of the case.
    fn settle(
        &mut self,
        step: &Step,
        only_own: bool,
        case: &mut Vec<String>,
    ) -> Result<Option<Difference>, Silent> {
        let mut look = 0;
        let version = self.theirs.version();
        let looks = if self.in_a_hurry { FEW_LOOKS } else { LOOKS };
        let differing = loop {
            self.barrier()?;
            self.pairs.iter_mut().flatten().for_each(Pair::fill);
            let differs = |(client, pair): (usize, &Option<Pair>)| {
                let pair = pair.as_ref()?;
                let own = client == step.client;
                ((own || !only_own) && !agree(pair, own.then_some(step), version)).then_some(client)
            };
            match self.pairs.iter().enumerate().find_map(differs) {
                Some(client) if look == looks => break Some(client),
                Some(_) => std::thread::sleep(Duration::from_millis(2)),
                None => break None,
            }
            look += 1;
        };
        let line = own_line(step, self.pairs[step.client].as_ref());
        case.push(line.clone());
        if step.wait_ms > 0 {
            case.push(format!("sleep {}", step.wait_ms));
        }
        if let Some(client) = differing {
            let line = if client == step.client { line } else { format!("{}<", client_name(client)) };
            if client != step.client {
                case.push(line.clone());
            }
            let pair = self.pairs[client].as_ref();
            let shown = |link: Option<&Link>| {
                link.map(|link| {
                    if link.closed {
                        [&link.received[..], b"(closed)"].concat()
                    } else {
                        link.received.clone()
                    }
                })
                .unwrap_or_default()
            };
            return Ok(Some(Difference {
                at: 0,
                command: step.command(),
                line,
                ours: shown(pair.map(|pair| &pair.ours)),
                theirs: shown(pair.map(|pair| &pair.theirs)),
            }));
        }
        for client in 0..self.pairs.len() {
            if !(only_own && client != step.client) {
                self.consume(client, step, case);
            }
        }
        Ok(None)
    }

    /// What was received is done with.
    fn consume(&mut self, client: usize, step: &Step, case: &mut Vec<String>) {
        let Some(pair) = &mut self.pairs[client] else { return };
        let received = std::mem::take(&mut pair.theirs.received);
        pair.ours.received.clear();
        let values = values(&received);
        let mut extra = values.len();
        if client == step.client {
            extra = extra.saturating_sub(1);
            pair.waiting = values.is_empty();
            match values.last().copied() {
                Some(b"+QUEUED\r\n") => {
                    pair.queued.push(step.compare);
                    pair.has_unframed |= exclusions::UNFRAMED.contains(&&*step.command());
                }
                Some(reply) if ends_transaction(&step.command(), reply) => {
                    pair.queued.clear();
                    pair.has_unframed = false;
                }
                _ => {}
            }
        } else if values.iter().any(|value| !is_push(value)) {
            pair.waiting = false;
        }
        case.extend((0..extra).map(|_| format!("{}<", client_name(client))));
        if pair.theirs.closed {
            self.pairs[client] = None;
        }
    }

    /// One server does not answer any more.
    fn silence(&mut self, step: &Step, silent: Silent) -> Result<Difference, Fatal> {
        let line = format!("{}: {}", client_name(step.client), quote(&step.argv));
        if silent == Silent::Theirs {
            return Err(format!("{} died or hangs after {line}", self.theirs.addr));
        }
        if !self.ours.restart()? {
            return Err(format!("{} died or hangs after {line}", self.ours.addr));
        }
        let ours = b"(died or hangs)".to_vec();
        Ok(Difference { at: 0, command: step.command(), line, ours, theirs: b"(lives)".to_vec() })
    }

    /// A question on the control connection; the keyspace is compared with such.
    pub(super) fn ask(
        &mut self,
        argv: &[Vec<u8>],
        compare: Compare,
        case: &mut Vec<String>,
    ) -> Result<Result<Vec<u8>, Difference>, Fatal> {
        self.control.send(&encode(argv));
        let line = format!("{}z: {}", mark(compare), quote(argv));
        let (Some(theirs), Some(ours)) = (self.control.theirs.receive(), self.control.ours.receive()) else {
            return Err(format!("no answer to {line}"));
        };
        if same(&ours, &theirs, compare) {
            return Ok(Ok(theirs));
        }
        let command = format!("{} behind the last step", String::from_utf8_lossy(&argv[0]));
        case.push(line.clone());
        Ok(Err(Difference { at: 0, command, line, ours, theirs }))
    }
}

/// Who does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silent {
    Ours,
    Theirs,
}

/// Whether both servers have sent the same to a connection: `step` is what it was asked, if it was.
fn agree(pair: &Pair, step: Option<&Step>, version: Version) -> bool {
    if pair.ours.closed != pair.theirs.closed {
        return false;
    }
    let (ours, theirs) = (&pair.ours.received, &pair.theirs.received);
    if ours == theirs || step.is_some_and(|step| same(ours, theirs, step.compare)) {
        return true;
    }
    // Before 7.2 the messages of a client's own commands came within the reply to EXEC.
    let mixed = || version < Version::V7_2 && memchr::memmem::find(theirs, b"\r\n>").is_some();
    if step.is_some_and(|step| step.command() == "EXEC") && (pair.has_unframed || mixed()) {
        return same(ours, theirs, Compare::Kind);
    }
    let (mut ours, mut theirs) = (values(ours), values(theirs));
    sort_pattern_messages(&mut ours);
    sort_pattern_messages(&mut theirs);
    if version < Version::V7_2 {
        move_pushes_behind(&mut ours);
        move_pushes_behind(&mut theirs);
    }
    let same_value = |ours: &[u8], theirs: &[u8]| match step {
        Some(step) if !is_push(theirs) => {
            same(ours, theirs, step.compare) || same_transaction(pair, step, ours, theirs)
        }
        _ => ours == theirs,
    };
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(ours, theirs)| same_value(ours, theirs))
}

fn ends_transaction(command: &str, reply: &[u8]) -> bool {
    command == "EXEC" || matches!(command, "DISCARD" | "RESET") && reply.starts_with(b"+")
}

/// The reply to EXEC: every part as its command asks.
fn same_transaction(pair: &Pair, step: &Step, ours: &[u8], theirs: &[u8]) -> bool {
    let (ours, theirs) = (elements(ours), elements(theirs));
    step.command() == "EXEC"
        && ours.len() == pair.queued.len()
        && theirs.len() == pair.queued.len()
        && ours
            .iter()
            .zip(&theirs)
            .zip(&pair.queued)
            .all(|((ours, theirs), compare)| same(ours, theirs, *compare))
}

/// The line of a case for a step: one that is not answered is only sent.
fn own_line(step: &Step, pair: Option<&Pair>) -> String {
    let name = client_name(step.client);
    let argv = quote(&step.argv);
    match pair {
        Some(pair) if pair.theirs.received.is_empty() && !pair.theirs.closed => format!("{name}> {argv}"),
        Some(pair) if pair.theirs.received == pair.ours.received => format!("{name}: {argv}"),
        _ => format!("{}{name}: {argv}", mark(step.compare)),
    }
}

/// The text of a bulk string.
pub(super) fn bulk_text(value: &[u8]) -> Option<Vec<u8>> {
    let header = memchr::memchr(b'\n', value)? + 1;
    value.get(header..value.len() - 2).map(<[u8]>::to_vec)
}
