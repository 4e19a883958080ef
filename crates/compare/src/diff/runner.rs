//! Sends the same steps to both servers and compares everything that they send.

use std::time::Duration;

use super::compare::{elements, same};
use super::exclusions::Compare;
use super::link::{Link, take_in};
use super::pair::Pair;
use super::step::{Step, client_name, mark, quote};
use super::target::Target;
use redlatch_core::wire::client::encode;

/// A difference between the servers.
pub struct Difference {
    /// The index of the step; the number of steps if the keyspaces differ after them.
    pub at: usize,
    /// The command, which distinguishes this difference from others.
    pub command: String,
    /// The last line of the case.
    pub line: String,
    pub ours: Vec<u8>,
    pub theirs: Vec<u8>,
}

/// The outcome of a run of steps.
pub struct Outcome {
    pub difference: Option<Difference>,
    /// The steps that were run, as the lines of a case.
    pub case: Vec<String>,
    pub sent: usize,
}

/// Why the comparison has to stop, as a sentence.
pub type Fatal = String;

/// How steps are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Sends consecutive steps of a connection together. A difference does not tell the step.
    Pipelined,
    /// Sends each step after all connections have received the results of the previous one.
    OneByOne,
    /// Like `OneByOne`, but accepts differences sooner: for shrinking.
    Hurried,
}

impl Pace {
    /// Returns how often a difference is checked again, so that neither a slow process nor a key that Redis deletes in its next cycle
    /// counts as one.
    fn looks(self) -> u32 {
        if self == Pace::Hurried { 15 } else { 80 }
    }
}

/// The most steps that are sent together.
const BATCH: usize = 50;

/// The settings that rounds change. Each round begins with the original values.
const SETTINGS: &[&str] = &[
    "notify-keyspace-events",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "list-max-listpack-size",
    "hll-sparse-max-bytes",
    "set-max-intset-entries",
    "stream-node-max-entries",
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
    pub pace: Pace,
}

fn open(ours: &Target, theirs: &Target) -> Result<Pair, Fatal> {
    Ok(Pair::new(Link::open(ours.addr)?, Link::open(theirs.addr)?))
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
        Ok(Runner { ours, theirs, control, pairs: Vec::new(), settings, pace: Pace::OneByOne })
    }

    /// Runs steps on empty databases with new connections, up to the first difference. `keyspace`: also compare the keyspaces after the
    /// last step.
    pub fn run(&mut self, steps: &[Step], keyspace: bool) -> Result<Outcome, Fatal> {
        self.reset()?;
        let mut outcome = Outcome { difference: None, case: Vec::new(), sent: 0 };
        let mut at = 0;
        while at < steps.len() && outcome.difference.is_none() {
            let batch = &steps[at..at + self.batch_len(&steps[at..])];
            let difference = match self.batch(batch, &mut outcome) {
                Ok(difference) => difference,
                Err(silent) => Some(self.silence(batch, silent)?),
            };
            outcome.difference = difference.map(|difference| Difference { at, ..difference });
            at += batch.len();
        }
        if keyspace && outcome.difference.is_none() {
            let difference = self.compare_keyspaces(&mut outcome.case)?;
            outcome.difference = difference.map(|difference| Difference { at: steps.len(), ..difference });
        }
        self.restore_settings(steps, &mut outcome.case);
        Ok(outcome)
    }

    /// Adds lines to a case that restore the settings that it has changed.
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

    /// Flushes both servers and restores their settings.
    pub fn reset(&mut self) -> Result<(), Fatal> {
        self.pairs.clear();
        self.control = open(&self.ours, &self.theirs)?;
        // After the barrier the servers have noticed all closed connections.
        let _ = self.barrier();
        let mut requests: Vec<Vec<Vec<u8>>> = [
            &["FLUSHALL"][..],
            &["SCRIPT", "FLUSH"],
            &["FUNCTION", "FLUSH"],
            &["ACL", "DELUSER", "alice", "bob"],
        ]
        .map(|words| words.iter().map(|word| word.as_bytes().to_vec()).collect())
        .into();
        for (name, value) in &self.settings {
            requests.push(vec![b"CONFIG".to_vec(), b"SET".to_vec(), name.as_bytes().to_vec(), value.clone()]);
        }
        self.control.send(&requests.iter().flat_map(|argv| encode(argv)).collect::<Vec<u8>>());
        for argv in requests {
            for (link, target) in
                [(&mut self.control.theirs, &self.theirs), (&mut self.control.ours, &self.ours)]
            {
                match link.receive() {
                    Some(reply) if reply.starts_with(b"-") => {
                        let why = String::from_utf8_lossy(&reply[1..]).trim_end().to_owned();
                        return Err(format!("{} refuses {}: {why}", target.addr, quote(&argv)));
                    }
                    Some(_) => {}
                    None => return Err(format!("{} does not answer {}", target.addr, quote(&argv))),
                }
            }
        }
        Ok(())
    }

    /// Waits until both servers have processed everything sent before, and have sent the results: a server answers a PING after earlier
    /// requests, and a second PING after the output of the first turn was sent. The error names the server that does not answer.
    fn barrier(&mut self) -> Result<(), Silent> {
        for _ in 0..2 {
            self.control.send(&encode(&["PING"]));
            for (link, who) in
                [(&mut self.control.theirs, Silent::Theirs), (&mut self.control.ours, Silent::Ours)]
            {
                // Any other reply comes from a server that is busy with a script.
                link.receive().filter(|reply| reply == b"+PONG\r\n").ok_or(who)?;
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
                Ok(slot.insert(Pair::new(ours, theirs)))
            }
        }
    }

    /// Returns how many of the steps are sent together.
    fn batch_len(&self, steps: &[Step]) -> usize {
        let client = steps[0].client;
        let is_asked_singly =
            self.pairs.get(client).and_then(Option::as_ref).is_some_and(Pair::is_asked_singly);
        if self.pace != Pace::Pipelined || is_asked_singly || steps[0].stands_alone {
            return 1;
        }
        steps.iter().take(BATCH).take_while(|step| step.client == client && !step.stands_alone).count()
    }

    fn batch(&mut self, batch: &[Step], outcome: &mut Outcome) -> Result<Option<Difference>, Silent> {
        let pair = self.pair(batch[0].client)?;
        if pair.waiting {
            return Ok(None);
        }
        let requests: Vec<u8> = batch.iter().flat_map(|step| encode(&step.argv)).collect();
        pair.send(&requests);
        outcome.sent += batch.len();
        if batch[0].wait_ms > 0 {
            std::thread::sleep(Duration::from_millis(batch[0].wait_ms));
        }
        // Events of keys that expired meanwhile come with the step that accesses the key.
        let listeners_later = batch[0].then.is_some();
        if let Some(difference) = self.settle(batch, listeners_later, &mut outcome.case)? {
            return Ok(Some(difference));
        }
        match &batch[0].then {
            Some(then) => self.batch(std::slice::from_ref(then), outcome),
            None => Ok(None),
        }
    }

    /// Receives and compares what both servers have sent, and adds the lines of the case.
    fn settle(
        &mut self,
        batch: &[Step],
        only_own: bool,
        case: &mut Vec<String>,
    ) -> Result<Option<Difference>, Silent> {
        let asked = batch[0].client;
        let version = self.theirs.version();
        let mut look = 0;
        let differing = loop {
            self.barrier()?;
            take_in(self.pairs.iter_mut().flatten().flat_map(|pair| [&mut pair.ours, &mut pair.theirs]));
            let differs = |(client, pair): (usize, &Option<Pair>)| {
                let own = client == asked;
                let steps = if own { batch } else { &[] };
                ((own || !only_own) && !pair.as_ref()?.agrees(steps, version)).then_some(client)
            };
            match self.pairs.iter().enumerate().find_map(differs) {
                Some(client) if look == self.pace.looks() => break Some(client),
                Some(_) => std::thread::sleep(Duration::from_millis(2)),
                None => break None,
            }
            look += 1;
        };
        // A case has one command per line.
        if let [step] = batch {
            case.push(own_line(step, self.pairs[asked].as_ref()));
            if step.wait_ms > 0 {
                case.push(format!("sleep {}", step.wait_ms));
            }
        }
        if let Some(client) = differing {
            let line = if client == asked {
                own_line(&batch[0], self.pairs[asked].as_ref())
            } else {
                let line = format!("{}<", client_name(client));
                case.push(line.clone());
                line
            };
            let (ours, theirs) = self.pairs[client].as_ref().map(Pair::shown).unwrap_or_default();
            return Ok(Some(Difference { at: 0, command: batch[0].command(), line, ours, theirs }));
        }
        for client in 0..self.pairs.len() {
            let own = client == asked;
            if own || !only_own {
                self.consume(client, if own { batch } else { &[] }, case);
            }
        }
        Ok(None)
    }

    /// Discards what a connection has received, and adds lines for it to the case.
    fn consume(&mut self, client: usize, asked: &[Step], case: &mut Vec<String>) {
        let Some(pair) = &mut self.pairs[client] else { return };
        let extra = pair.consume(asked);
        case.extend((0..extra).map(|_| format!("{}<", client_name(client))));
        if pair.theirs.closed {
            self.pairs[client] = None;
        }
    }

    /// Handles a server that no longer answers. Restarts it if it is a redlatch that this program has started.
    fn silence(&mut self, batch: &[Step], silent: Silent) -> Result<Difference, Fatal> {
        let lines: Vec<String> = batch.iter().map(|step| own_line(step, None)).collect();
        let line = lines.join("; ");
        if silent == Silent::Theirs {
            return Err(format!("{} crashed or hangs after {line}", self.theirs.addr));
        }
        if !self.ours.restart()? {
            return Err(format!("{} crashed or hangs after {line}", self.ours.addr));
        }
        let ours = b"(crashed or hangs)".to_vec();
        Ok(Difference { at: 0, command: batch[0].command(), line, ours, theirs: b"(lives)".to_vec() })
    }

    /// Sends commands together on the control connection, to compare the keyspaces. Returns the replies, or the first difference.
    pub(super) fn ask(
        &mut self,
        questions: &[(Vec<Vec<u8>>, Compare)],
        case: &mut Vec<String>,
    ) -> Result<Result<Vec<Vec<u8>>, Difference>, Fatal> {
        self.control.send(&questions.iter().flat_map(|(argv, _)| encode(argv)).collect::<Vec<u8>>());
        let mut replies = Vec::new();
        let mut difference = None;
        for (argv, compare) in questions {
            let line = || format!("{}z: {}", mark(*compare), quote(argv));
            let (Some(theirs), Some(ours)) = (self.control.theirs.receive(), self.control.ours.receive())
            else {
                return Err(format!("no answer to {}", line()));
            };
            if difference.is_none() && !same(&ours, &theirs, *compare) {
                let command = format!("{} after the last step", String::from_utf8_lossy(&argv[0]));
                case.push(line());
                difference = Some(Difference { at: 0, command, line: line(), ours, theirs });
            } else {
                replies.push(theirs);
            }
        }
        Ok(difference.map_or(Ok(replies), Err))
    }
}

/// The server that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silent {
    Ours,
    Theirs,
}

/// Returns the line of a case for a step. A step without a reply is only sent (`b> …`).
fn own_line(step: &Step, pair: Option<&Pair>) -> String {
    let name = client_name(step.client);
    let argv = quote(&step.argv);
    match pair {
        Some(pair) if pair.theirs.received.is_empty() && !pair.theirs.closed => format!("{name}> {argv}"),
        Some(pair) if pair.theirs.received == pair.ours.received => format!("{name}: {argv}"),
        _ => format!("{}{name}: {argv}", mark(step.compare)),
    }
}

/// Returns the text of a bulk string.
pub(super) fn bulk_text(value: &[u8]) -> Option<Vec<u8>> {
    let header = memchr::memchr(b'\n', value)? + 1;
    value.get(header..value.len() - 2).map(<[u8]>::to_vec)
}
