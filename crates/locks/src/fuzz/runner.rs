//! Runs schedules against the scripts of a release, and compares every step with a model.

use std::fmt::Write;

use super::OperationReport;
use super::bench::{Bench, Exchange};
use super::corpus::{self, Reached};
use super::request::Script;
use super::schedule::{Common, Step};
use crate::invariant::{Invariant, Rules};
use crate::model::*;
use crate::script_set::ScriptSet;
use crate::show::{shorten, show_value};
use crate::view::{FOREVER, View};
use redlatch_core::version::Version;

/// The errors of clients' clocks, in ms.
const SKEWS_MS: [i64; 4] = [0, 3_000, -3_000, 60_000];

/// The time after the last step after which everything has expired, in ms.
const REST_MS: u64 = 3_600_000;

/// Counts of what was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// For each operation, the number of replies of each kind.
    pub replies: Vec<[u64; REPLIES.len()]>,
    /// For each operation, how often each branch of its script was taken, in the schedules in which branches are
    /// counted.
    pub branches: Vec<Vec<u64>>,
    pub scripts: u64,
    pub steps: u64,
}

/// The kinds of replies that the coverage distinguishes.
pub const REPLIES: [&str; 7] = ["nil", "0", "1", "number", "text", "list", "error"];

fn reply_kind(reply: Reply) -> usize {
    match reply {
        Reply::Nil => 0,
        Reply::Int(0) => 1,
        Reply::Int(1) => 2,
        Reply::Int(_) => 3,
        Reply::Text(_) => 4,
        Reply::Array(_) => 5,
        Reply::Error(_) => 6,
    }
}

/// One step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The index in the schedule.
    pub step: usize,
    pub at_ms: i64,
    pub who: String,
    pub what: String,
    pub reply: String,
    pub messages: Vec<String>,
    pub keys: Vec<String>,
    /// How far the clock moved, in ms.
    pub advanced_ms: u64,
    /// The requests and replies.
    pub exchanges: Vec<Exchange>,
}

/// Returns the number of nodes that a run has used.
pub fn nodes(lines: &[Line]) -> usize {
    let exchanges = lines.iter().flat_map(|line| &line.exchanges);
    exchanges.map(|exchange| exchange.node + 1).max().unwrap_or(1)
}

/// The result of a step.
enum Event {
    Advanced {
        ms: u64,
    },
    /// Time passed until all leases had ended.
    Rested,
    ScriptsFlushed,
    /// A command deleted a companion key.
    Lost {
        command: String,
    },
    ClockSet {
        owner: usize,
        skew_ms: i64,
    },
    Called {
        call: Call,
        /// Whether the client repeated an earlier request.
        again: bool,
    },
}

/// The last request of an owner, which its client would repeat.
#[derive(Default)]
struct Sent {
    call: Call,
    args: Args,
    reply: Vec<u8>,
    at_ms: i64,
    is_valid: bool,
}

/// Runs schedules of one object.
pub struct Runner {
    bench: Bench,
    model: Box<dyn Model>,
    /// For each operation, its script if it sends one.
    scripts: Vec<Option<Script>>,
    /// For each operation, whether clients of the release send its request.
    can: Vec<bool>,
    /// For each operation, whether they send a script that cannot be run.
    refused: Vec<bool>,
    sent: [Sent; OWNERS],
    /// The number of interrupted scripts before the run.
    interrupted: u64,
    skew_ms: [i64; OWNERS],
    args: Args,
    requests: u64,
    times: Vec<i64>,
    dumps: [Vec<u8>; 2],
    /// What the last schedule reached, with the index of the step, if that is noted.
    reached: Vec<(usize, Reached)>,
    notes_states: bool,
    /// What the last schedule has covered.
    covered: Covered,
    pub coverage: Coverage,
}

/// What one schedule covers.
#[derive(Default)]
struct Covered {
    /// The operation and the kind of each reply.
    replies: Vec<(usize, usize)>,
    /// The operation of each branch.
    branches: Vec<(usize, usize)>,
    scripts: u64,
    steps: u64,
}

impl Runner {
    /// Creates a runner for one object.
    pub fn new(scripts: &ScriptSet, model: Box<dyn Model>, version: Version) -> Runner {
        let script = |operation: &Operation| scripts.find(operation.sends).map(Script::new);
        let can = model.operations().iter().map(|operation| scripts.sends(operation.sends)).collect();
        let refused = model.operations().iter().map(|operation| scripts.refuses(operation.sends)).collect();
        let scripts: Vec<_> = model.operations().iter().map(script).collect();
        let branches =
            |script: &Option<Script>| script.as_ref().map_or(0, |script| script.loaded.branches.len());
        let coverage = Coverage {
            replies: vec![[0; REPLIES.len()]; scripts.len()],
            branches: scripts.iter().map(|script| vec![0; branches(script)]).collect(),
            ..Coverage::default()
        };
        Runner {
            bench: Bench::new(version, model.nodes()),
            model,
            scripts,
            can,
            refused,
            sent: Default::default(),
            interrupted: 0,
            skew_ms: [0; OWNERS],
            args: Args::default(),
            requests: 0,
            times: Vec::new(),
            dumps: Default::default(),
            reached: Vec::new(),
            notes_states: false,
            covered: Covered::default(),
            coverage,
        }
    }

    /// Returns the operations of the object.
    pub fn operations(&self) -> &'static [Operation] {
        self.model.operations()
    }

    /// Returns the description of an operation.
    pub fn describe(&self, operation: usize) -> OperationReport {
        let script = self.scripts[operation].as_ref();
        let branches = script.map(|script| &script.loaded.branches[..]).unwrap_or_default();
        OperationReport {
            name: self.model.operations()[operation].name,
            is_present: self.can(operation),
            is_refused: self.refused[operation],
            script: script.map_or(String::new(), |script| script.name.clone()),
            branches: branches.iter().map(|branch| branch.name.clone()).collect(),
        }
    }

    /// Sets whether to count the branches that scripts take, and whether to note what each step reaches. Scripts run slower meanwhile.
    pub fn watch(&mut self, branches: bool, states: bool) {
        self.bench.watch_branches(branches);
        self.notes_states = states;
    }

    /// Adds what the last schedule has covered to the coverage.
    pub fn count(&mut self) {
        self.coverage.count(&self.covered);
    }

    /// Returns what the last schedule reached, with the indexes of the steps.
    pub fn reached(&self) -> &[(usize, Reached)] {
        &self.reached
    }

    /// Returns whether clients of the release send the request of an operation.
    pub fn can(&self, operation: usize) -> bool {
        self.can[operation]
    }

    /// Runs a schedule on an empty server. Returns the first selected violation, with the index of its step.
    pub fn run(
        &mut self,
        steps: &[Step],
        rules: Rules,
        wanted: &Wanted,
        mut trace: Option<&mut Vec<Line>>,
    ) -> Option<(usize, Violation)> {
        if trace.is_some() {
            self.bench.record();
        }
        self.bench.reset();
        self.model.reset();
        self.skew_ms = [0; OWNERS];
        self.requests = 0;
        self.reached.clear();
        self.covered.clear();
        self.sent.iter_mut().for_each(|sent| sent.is_valid = false);
        let start_ms = self.bench.now_ms();
        for (index, step) in steps.iter().enumerate() {
            let mut verdict = Verdict::new(rules, wanted).at(index);
            let event = self.step(*step, &mut verdict);
            self.covered.steps += 1;
            if self.notes_states
                && let Some(Event::Called { call, again }) = &event
            {
                let request = (call.operation, *again);
                let reached = corpus::reached(request, reply_kind(self.bench.reply()), self.bench.view());
                self.reached.push((index, reached));
            }
            if let (Some(trace), Some(event)) = (&mut trace, event) {
                self.note(index, start_ms, event, trace);
            }
            if let Some(violation) = verdict.found {
                return Some((index, violation));
            }
        }
        let mut verdict = Verdict::new(rules, wanted).at(steps.len());
        self.rest(&mut verdict);
        if let Some(trace) = trace
            && verdict.found.is_some()
        {
            self.bench.command(&[b"ECHO", b"-"]);
            self.note(steps.len(), start_ms, Event::Rested, trace);
        }
        verdict.found.map(|violation| (steps.len(), violation))
    }

    /// Executes a step. Returns `None` if it has no effect.
    fn step(&mut self, step: Step, verdict: &mut Verdict) -> Option<Event> {
        let owner = step.owner as usize % OWNERS;
        match step.common() {
            Some(Common::Advance) => {
                let ms = self.distance_ms(step.choice);
                self.bench.advance(ms);
                Some(Event::Advanced { ms })
            }
            Some(Common::Again) => self.again(owner, verdict),
            Some(Common::Lose) => self.lose(step.choice),
            Some(Common::Forget) => {
                self.bench.command(&[b"SCRIPT", b"FLUSH"]);
                Some(Event::ScriptsFlushed)
            }
            Some(Common::Skew) => {
                self.skew_ms[owner] = SKEWS_MS[step.choice as usize % SKEWS_MS.len()];
                self.model.disturbed();
                Some(Event::ClockSet { owner, skew_ms: self.skew_ms[owner] })
            }
            None => self.operation(step.operation()?, owner, step.choice, verdict),
        }
    }

    fn operation(
        &mut self,
        operation: usize,
        owner: usize,
        choice: u8,
        verdict: &mut Verdict,
    ) -> Option<Event> {
        if operation >= self.model.operations().len() || !self.can(operation) {
            return None;
        }
        let mut call = Call {
            operation,
            owner,
            count: 1,
            now_ms: self.bench.now_ms(),
            skew_ms: self.skew_ms[owner],
            request: self.requests,
            ..Call::default()
        };
        if !self.model.ask(&mut call, choice) {
            return None;
        }
        let row = &self.model.operations()[call.operation];
        self.requests += 1;
        self.bench.speak_to(call.node);
        self.model.before(&call, self.bench.view());
        match call.fate {
            Fate::Lost => self.bench.keep_silent(),
            _ => self.send(&call),
        }
        verdict.operation = row.name;
        let sent = &mut self.sent[owner];
        sent.is_valid = match row.retried {
            Retried::Never => false,
            Retried::Always => true,
            Retried::WithReplicas => verdict.is_strict(),
        };
        if sent.is_valid {
            sent.call = call;
            std::mem::swap(&mut sent.args, &mut self.args);
            sent.reply.clear();
            sent.reply.extend_from_slice(self.bench.reply_bytes());
            sent.at_ms = call.now_ms;
        }
        self.check(&call, false, verdict);
        Some(Event::Called { call, again: false })
    }

    /// Sends the request of an operation.
    fn send(&mut self, call: &Call) {
        let row = &self.model.operations()[call.operation];
        let names = self.model.names();
        if let Some(script) = &self.scripts[call.operation] {
            self.args.clear();
            script.write(&*self.model, call, &mut self.args);
            self.bench.run(&script.loaded, script.objects(call), &self.args);
            return self.covered.ran(call.operation, self.bench.branches_taken(&script.loaded));
        }
        let mut digits = itoa::Buffer::new();
        let lease = digits.format(call.lease_ms).as_bytes();
        match row.sends {
            Sends::ScriptOrPexpire(_) => {
                self.bench.command(&[b"PEXPIRE", names.lock.as_bytes(), lease]);
            }
            Sends::ScriptOrGet(_) => {
                self.bench.command(&[b"GET", names.lock.as_bytes()]);
            }
            Sends::ScriptOrMode(_) => {
                self.bench.command(&[b"HGET", names.lock.as_bytes(), b"mode"]);
            }
            Sends::Pexpire => {
                for key in self.model.expiring() {
                    self.bench.command(&[b"PEXPIRE", key.as_bytes(), lease]);
                }
            }
            Sends::Event(NodeEvent::Restart) => {
                self.bench.command(&[b"FLUSHDB"]);
            }
            Sends::Event(NodeEvent::Jump) => self.bench.jump(call.lease_ms),
            // Nothing is sent, and nobody reads the reply.
            _ => {
                self.bench.command(&[b"ECHO", b"-"]);
            }
        }
    }

    fn check(&mut self, call: &Call, again: bool, verdict: &mut Verdict) {
        let reply = self.bench.reply();
        self.covered.replies.push((call.operation, reply_kind(reply)));
        let interrupted = self.bench.interrupted() - self.interrupted;
        self.interrupted += interrupted;
        verdict.expect(Invariant::G1, interrupted == 0, || {
            "the script runs for so long that others are served in between".to_owned()
        });
        self.check_keys(call, again, verdict);
        let reply = match &self.scripts[call.operation] {
            Some(script) => script.part(call, reply, verdict),
            None => reply,
        };
        let out = Outcome { reply, messages: self.bench.messages(), again };
        judge(&mut *self.model, Observation { call, out, view: self.bench.view() }, verdict);
    }

    /// Expects that a script uses only keys of its object, that all of them belong to one hash slot, because a script in
    /// a cluster may not use others, and that the key which remembers the request remembers the reply.
    fn check_keys(&self, call: &Call, again: bool, verdict: &mut Verdict) {
        let slot = hash_tag(self.model.names().lock.as_bytes());
        for (key, value, ttl_ms) in self.bench.view().keys() {
            verdict.expect(Invariant::G6, hash_tag(key) == slot || !self.model.is_in_cluster(), || {
                format!("{} has another slot than {}", shorten(key), self.model.names().lock)
            });
            let Some(request) = key.strip_prefix(MEMORY) else {
                verdict.expect(Invariant::G8, self.model.has_key(key), || {
                    format!("{} = {}", shorten(key), show_value(value))
                });
                continue;
            };
            let is_this = !again && self.bench.reply() != Reply::Nil && ends_with_hex(request, call.request);
            verdict.expect(Invariant::G2, !is_this || ttl_ms == LATCH_TTL_MS, || {
                format!("the reply is remembered for {ttl_ms} ms instead of {LATCH_TTL_MS} ms")
            });
        }
    }

    /// Repeats the last request of the owner's client, while the server may still remember the first one.
    fn again(&mut self, owner: usize, verdict: &mut Verdict) -> Option<Event> {
        let sent = &self.sent[owner];
        if !sent.is_valid || self.bench.now_ms() >= sent.at_ms + LATCH_TTL_MS {
            return None;
        }
        let call = Call { now_ms: self.bench.now_ms(), ..sent.call };
        // Repeating a refused request is a new request.
        if self.model.is_refusal(&call, Reply::parse(&sent.reply)) || !self.model.is_repeated(&call) {
            return None;
        }
        let row = &self.model.operations()[call.operation];
        let Script { loaded, .. } = self.scripts[call.operation].as_ref()?;
        let is_gone = !self.bench.view().exists(self.model.names().lock.as_bytes());
        self.model.before(&call, self.bench.view());
        dump(self.bench.view(), &mut self.dumps[0]);
        self.bench.run(loaded, 1, &sent.args);
        self.covered.ran(call.operation, self.bench.branches_taken(loaded));
        dump(self.bench.view(), &mut self.dumps[1]);
        verdict.operation = row.name;
        let second = self.bench.reply();
        // The object may have expired in between.
        let ended = (second.is_error() || is_gone) && self.model.is_refusal(&call, second);
        let first = if ended { second } else { Reply::parse(&sent.reply) };
        expect_same(verdict, first, second, self.dumps[0] == self.dumps[1]);
        self.check(&call, true, verdict);
        Some(Event::Called { call, again: true })
    }

    /// Deletes a companion key, or one of its members.
    fn lose(&mut self, choice: u8) -> Option<Event> {
        let keys = self.model.companions();
        let key = keys.get(choice as usize / 2 % keys.len().max(1))?;
        if !self.bench.view().exists(key) {
            return None;
        }
        let name = String::from_utf8_lossy(key);
        let last = self.bench.view().sorted_set(key).and_then(|set| set.get(set.len() - 1));
        let what = match (choice % 2, last.map(|(member, _)| member.to_vec())) {
            (1, Some(member)) => {
                self.bench.command(&[b"ZREM", key, &member]);
                format!("ZREM {name} {}", shorten(&member))
            }
            _ => {
                self.bench.command(&[b"DEL", key]);
                format!("DEL {name}")
            }
        };
        self.model.disturbed();
        Some(Event::Lost { command: what })
    }

    fn is_fault(&self, call: &Call) -> bool {
        self.model.operations()[call.operation].is_fault()
    }

    /// Returns the actor and the description of an event.
    fn show(&self, event: &Event) -> (String, String) {
        let nobody = String::new();
        match event {
            Event::Advanced { ms } => (nobody, format!("+{ms} ms")),
            Event::Rested => (nobody, "an hour later".to_owned()),
            Event::ScriptsFlushed => (nobody, "SCRIPT FLUSH".to_owned()),
            Event::Lost { command } => (nobody, format!("lost: {command}")),
            Event::ClockSet { owner, skew_ms } => {
                (owner_name(*owner).to_string(), format!("clock {skew_ms:+} ms"))
            }
            Event::Called { call, again } => {
                let who = if self.is_fault(call) { nobody } else { owner_name(call.owner).to_string() };
                let what = describe(&*self.model, call);
                (who, if *again { format!("{what} again") } else { what })
            }
        }
    }

    /// Returns how far to move the clock: often to just before, at, or just after the next relevant time.
    fn distance_ms(&mut self, choice: u8) -> u64 {
        let now = self.bench.now_ms();
        self.times.clear();
        let ends = self.bench.view().all().flat_map(View::keys).filter(|(.., ttl_ms)| *ttl_ms > FOREVER);
        self.times.extend(ends.map(|(.., ttl_ms)| now + ttl_ms));
        self.model.deadlines(self.bench.view(), &mut self.times);
        let next = self.times.iter().copied().filter(|time| *time >= now).min();
        let next_ms = next.map_or(1_000, |time| time - now);
        let last_ms = self.times.iter().copied().max().map_or(1_000, |time| time - now);
        let ms = match choice {
            0 => next_ms + 1,
            1 => next_ms,
            2 => next_ms - 1,
            3 => 1_000,
            4 => 3_000,
            5 => 11_000,
            6 => WATCHDOG_MS / 3,
            _ => last_ms + 1,
        };
        ms.clamp(1, 600_000) as u64
    }

    /// Lets everything expire, runs the closing operations, and expects that no keys are left.
    fn rest(&mut self, verdict: &mut Verdict) {
        self.bench.advance(REST_MS);
        for operation in self.model.closing() {
            let mut ignored = Verdict::new(verdict.rules, &NOTHING);
            self.operation(*operation, 0, 0, &mut ignored);
        }
        self.bench.advance(REST_MS);
        verdict.operation = "rest";
        let mut keys = self.bench.view().all().flat_map(View::keys);
        let left = keys.find(|(key, ..)| !self.model.may_stay(key));
        verdict.expect(Invariant::G5, left.is_none(), || {
            let key = left.map(|(key, ..)| String::from_utf8_lossy(key).into_owned());
            format!("{} is still there", key.unwrap_or_default())
        });
    }

    fn note(&mut self, step: usize, start_ms: i64, event: Event, trace: &mut Vec<Line>) {
        let (who, what) = self.show(&event);
        let is_request = matches!(&event, Event::Called { call, .. } if !self.is_fault(call));
        let show_message = |message: &Message| {
            format!("{} ← {}", String::from_utf8_lossy(&message.channel), message.payload.escape_ascii())
        };
        let before_ms = trace.last().map_or(0, |line| line.at_ms);
        let advanced_ms = (self.bench.now_ms() - start_ms - before_ms) as u64;
        trace.push(Line {
            step,
            at_ms: self.bench.now_ms() - start_ms,
            reply: if is_request { self.bench.reply().to_string() } else { String::new() },
            messages: if is_request {
                self.bench.messages().iter().map(show_message).collect()
            } else {
                Vec::new()
            },
            keys: describe_keys(self.bench.view()),
            advanced_ms,
            exchanges: self.bench.recorded(),
            who,
            what,
        });
    }
}

/// Selects no violations.
static NOTHING: std::sync::LazyLock<Wanted> = std::sync::LazyLock::new(Wanted::nothing);

/// Describes a request and, if there are several nodes, its node.
fn describe(model: &dyn Model, call: &Call) -> String {
    let row = &model.operations()[call.operation];
    let mut text = row.name.to_owned();
    if call.lease_ms != 0 && row.kind != Kind::Other {
        let _ = write!(text, " {} ms", call.lease_ms);
    }
    if call.count != 1 {
        let _ = write!(text, " ×{}", call.count);
    }
    model.describe(call, &mut text);
    if model.nodes() > 1 {
        let _ = write!(text, " at node {}", call.node);
    }
    text.push_str(match call.fate {
        Fate::Answered => "",
        Fate::ReplyLost => ", and the reply is lost",
        Fate::Lost => ", which does not arrive",
    });
    text
}

/// The prefix of the keys that remember replies to requests.
const MEMORY: &[u8] = b"redisson_unlock_latch";

/// Returns whether a key ends with the digits that [`Args::extend_hex`] writes for a number.
fn ends_with_hex(key: &[u8], number: u64) -> bool {
    let digits = key.len().checked_sub(16).and_then(|at| std::str::from_utf8(&key[at..]).ok());
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) == Some(number)
}

/// Returns the keyspace in readable form, one line for each key, without the keys that remember replies.
fn describe_keys(view: View) -> Vec<String> {
    let several = view.all().count() > 1;
    let mut lines = Vec::new();
    for (node, view) in view.all().enumerate() {
        let keys = view.keys().filter(|(key, ..)| !key.starts_with(MEMORY));
        lines.extend(keys.map(|(key, value, ttl_ms)| {
            let node = if several { format!("node {node}: ") } else { String::new() };
            let ttl = if ttl_ms == FOREVER { "no end".to_owned() } else { format!("{ttl_ms} ms") };
            format!("{node}{} = {}, {ttl}", shorten(key), show_value(value))
        }));
    }
    lines.sort();
    lines
}

/// Returns the part of a key from which its hash slot in a cluster is computed.
fn hash_tag(key: &[u8]) -> &[u8] {
    let tag = memchr::memchr(b'{', key).map(|open| &key[open + 1..]);
    match tag.and_then(|tag| Some(&tag[..memchr::memchr(b'}', tag)?])) {
        Some(tag) if !tag.is_empty() => tag,
        _ => key,
    }
}

/// Appends the keyspace, for comparison, without the keys that remember replies.
fn dump(view: View, into: &mut Vec<u8>) {
    into.clear();
    for (key, value, ttl_ms) in view.keys().filter(|(key, ..)| !key.starts_with(MEMORY)) {
        into.extend_from_slice(key);
        into.extend_from_slice(&ttl_ms.to_le_bytes());
        into.extend_from_slice(show_value(value).as_bytes());
    }
}

impl Covered {
    /// Counts a run of a script, and notes the branches that it has taken.
    fn ran(&mut self, operation: usize, branches: impl Iterator<Item = usize>) {
        self.scripts += 1;
        self.branches.extend(branches.map(|branch| (operation, branch)));
    }

    fn clear(&mut self) {
        self.replies.clear();
        self.branches.clear();
        (self.scripts, self.steps) = (0, 0);
    }
}

impl Coverage {
    /// Counts what a schedule has covered.
    fn count(&mut self, covered: &Covered) {
        covered.replies.iter().for_each(|(operation, kind)| self.replies[*operation][*kind] += 1);
        covered.branches.iter().for_each(|(operation, branch)| self.branches[*operation][*branch] += 1);
        self.scripts += covered.scripts;
        self.steps += covered.steps;
    }

    /// Adds the counts of another coverage.
    pub fn add(&mut self, other: &Coverage) {
        for (mine, theirs) in self.replies.iter_mut().zip(&other.replies) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        for (mine, theirs) in self.branches.iter_mut().flatten().zip(other.branches.iter().flatten()) {
            *mine += theirs;
        }
        self.scripts += other.scripts;
        self.steps += other.steps;
    }
}
