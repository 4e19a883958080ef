//! The scripts of a node: its script cache, and the script that may be running.
//!
//! A script runs in slices. Clients cannot notice this until the first slice is used up. From then on the script is
//! *running*: its client waits, and the driver resumes the script slice by slice. Once it has run for
//! `busy-reply-threshold` it is *busy*: other clients get an error, and may kill it. Requests that reach the node in
//! between wait, wherever the script began: after a pause, behind a gate or in another client's request.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Node;
use super::admission::Access;
use super::output::OpenReply;
use super::session::{OwnedArgs, SessionId, TimeoutReply, Wait};
use crate::commands::command::{Command, READONLY};
use crate::error::{self, Error, Outcome};
use crate::script::{self, Legacy, LogLevel, SLICE, Script, ScriptTag, Step, Vm, sha1_hex};
use crate::stages::{ScriptEnd, ScriptStart};
use crate::store::Now;
use crate::version::Version;
use crate::wire::Reply;

/// A SHA-1 in lower-case hex.
pub type Sha = [u8; 40];

/// Reads a SHA-1 in hex, in any case.
pub fn parse_sha(text: &[u8]) -> Option<Sha> {
    let mut sha: Sha = text.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

/// How many scripts loaded by EVAL the cache keeps, since 7.4. A script loaded by SCRIPT LOAD stays until the cache is
/// flushed.
const KEPT_EVAL_SCRIPTS: usize = 500;

/// The scripts of a node.
pub struct Scripts {
    version: Version,
    /// Absent while a script executes, which borrows it.
    vm: Option<Box<Vm>>,
    /// What the Lua state continues once it is made.
    legacy: Legacy,
    cache: HashMap<Sha, Cached, FixedState>,
    /// The scripts that were only loaded by EVAL, least recently used first.
    by_eval: VecDeque<Sha>,
    running: Option<Running>,
    /// What TIME adds to the time at which the running script began.
    shown_us: i64,
    /// The clients whose requests came while a script ran that was not busy yet, in the order of arrival.
    pub(super) waiting: VecDeque<SessionId>,
}

#[derive(Clone)]
struct Cached {
    script: Script,
    /// Whether the script was only loaded by EVAL.
    by_eval: bool,
}

/// A script that is suspended between two slices.
struct Running {
    client: SessionId,
    script: Call,
    /// The name of the function and the request that calls it, unless an ordinary script is running.
    function: Option<(Box<[u8]>, OwnedArgs)>,
    /// How long the script has run, in ms, at the beginning of its last slice.
    ran_ms: u64,
    started: Now,
    slices: u64,
    busy: bool,
    /// Whether the client has disconnected; it is removed when the script ends.
    client_left: bool,
    /// The part of the client's reply that is already written.
    reply: Reply,
    /// The commands that follow the script in its transaction.
    after: VecDeque<OwnedArgs>,
}

/// The state of one execution of a script.
#[derive(Clone, Copy)]
struct Call {
    /// The command that runs the script.
    command: &'static Command,
    access: Access,
    /// Whether the script's reply has an error.
    has_failed: bool,
    /// The database that the client had selected.
    db: usize,
}

impl Running {
    /// Returns by how much TIME has moved on inside the script since it began. Before 7.2 it is the time of the call, here
    /// that of the instructions before this slice, so that it does not depend on the machine. Since then it stands still
    /// until the script is busy, and moves on whenever others are served. Nothing else in a script sees it.
    fn shown_us(&self, version: Version, now: Now) -> i64 {
        const INSTRUCTION_NS: i64 = 10;
        if version < Version::V7_2 {
            self.slices as i64 * i64::from(SLICE) * INSTRUCTION_NS / 1000
        } else if self.busy {
            now.wall_us() - self.started.wall_us()
        } else {
            0
        }
    }
}

impl Clone for Scripts {
    /// Copies the cache. The copy makes a Lua state of its own, and compiles scripts again when they run.
    ///
    /// # Panics
    ///
    /// If a script is suspended: [`Node::uncopyable`] tells.
    fn clone(&self) -> Scripts {
        assert!(self.running.is_none(), "a suspended script cannot be copied");
        Scripts {
            version: self.version,
            vm: None,
            legacy: self.vm.as_ref().map_or(self.legacy, |vm| vm.legacy()),
            cache: self.cache.clone(),
            by_eval: self.by_eval.clone(),
            running: None,
            shown_us: self.shown_us,
            waiting: self.waiting.clone(),
        }
    }
}

impl Scripts {
    /// Creates an empty script cache.
    pub fn new(version: Version) -> Scripts {
        Scripts {
            version,
            vm: None,
            legacy: Legacy::default(),
            cache: HashMap::default(),
            by_eval: VecDeque::new(),
            shown_us: 0,
            running: None,
            waiting: VecDeque::new(),
        }
    }

    /// Returns by how much TIME differs from the time at which the running script began, in µs.
    pub fn shown_us(&self) -> i64 {
        self.shown_us
    }

    /// Returns how many scripts are cached.
    pub fn len(&self) -> usize {
        self.cache.len()
    }

    /// Returns whether no scripts are cached.
    pub fn is_empty(&self) -> bool {
        self.cache.is_empty()
    }

    /// Returns whether a script is cached.
    pub fn contains(&self, sha: &Sha) -> bool {
        self.cache.contains_key(sha)
    }

    /// Returns what a copy of these scripts would lack, or `None` if it would behave as they do.
    pub(super) fn uncopyable(&self) -> Option<&'static str> {
        match (&self.running, &self.vm) {
            (Some(_), _) => Some("a script is suspended"),
            (None, Some(vm)) if vm.leaves_state() => {
                Some("a script has set options of cjson, or has shown a table with tostring")
            }
            _ => None,
        }
    }

    /// Returns whether a script is suspended between two slices.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns whether a script has run for so long that other clients get the BUSY error.
    pub fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.busy)
    }

    /// Returns whether requests have to wait because a script is running that is not busy yet.
    pub fn holds_requests(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.busy)
    }

    /// Returns the client whose script is suspended between two slices.
    pub fn client(&self) -> Option<SessionId> {
        self.running.as_ref().map(|running| running.client)
    }

    /// Returns whether the script that is suspended between two slices is a function.
    pub fn runs_function(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.function.is_some())
    }

    /// Returns the name of the running function, the request that calls it, and how long it has run in ms.
    pub fn running_function(&self) -> Option<(&[u8], &OwnedArgs, u64)> {
        let running = self.running.as_ref()?;
        running.function.as_ref().map(|(name, request)| (&**name, request, running.ran_ms))
    }

    /// Returns the error that other clients get while a script is busy.
    pub fn busy_error(&self) -> Error {
        error::busy(self.version, self.runs_function())
    }

    /// Returns when the running script began, and how many slices it has used since.
    pub fn progress(&self) -> Option<(Now, u64)> {
        self.running.as_ref().map(|running| (running.started, running.slices))
    }

    /// Returns the Lua state. Creates it for the first script.
    pub(crate) fn vm(&mut self) -> &mut Vm {
        let (version, legacy) = (self.version, self.legacy);
        self.vm.get_or_insert_with(|| Box::new(Vm::continuing(version, legacy)))
    }

    /// Returns a cached script and counts this as a use.
    pub fn find(&mut self, sha: &Sha) -> Option<Script> {
        let script = &self.cache.get(sha)?.script;
        if self.vm.as_ref().is_none_or(|vm| !vm.knows(script)) {
            // The cache is the copy of another one, whose Lua state has compiled the script.
            let script = script.clone();
            let again = self.vm().load_tagged(script.text(), *sha, script.tag()).ok()?;
            self.cache.get_mut(sha)?.script = again;
        }
        let cached = self.cache.get(sha)?;
        if cached.by_eval && self.by_eval.back() != Some(sha) {
            self.by_eval.retain(|known| known != sha);
            self.by_eval.push_back(*sha);
        }
        Some(cached.script.clone())
    }

    /// Returns a cached script without counting this as a use.
    pub fn peek(&self, sha: &Sha) -> Option<&Script> {
        self.cache.get(sha).map(|cached| &cached.script)
    }

    /// Returns the flags that a cached script declares.
    pub(super) fn flags_of(&self, sha: &[u8]) -> Option<script::Flags> {
        self.peek(&parse_sha(sha)?).map(|script| script.flags()).filter(|flags| flags.declared)
    }

    /// Compiles and caches a script, unless it is cached already.
    fn load(
        &mut self,
        body: &[u8],
        by_eval: bool,
        recognise: impl FnOnce() -> Option<ScriptTag>,
    ) -> Result<Script, Error> {
        let sha = sha1_hex(body);
        if let Some(script) = self.find(&sha) {
            if let Some(cached) = self.cache.get_mut(&sha).filter(|cached| cached.by_eval && !by_eval) {
                cached.by_eval = false;
                self.by_eval.retain(|known| *known != sha);
            }
            return Ok(script);
        }
        let script = self.vm().load_tagged(body, sha, recognise())?;
        let by_eval = by_eval && self.version > Version::V7_2;
        self.cache.insert(sha, Cached { script: script.clone(), by_eval });
        if by_eval {
            self.by_eval.push_back(sha);
            if self.by_eval.len() > KEPT_EVAL_SCRIPTS
                && let Some(oldest) = self.by_eval.pop_front()
                && let Some(cached) = self.cache.remove(&oldest)
            {
                self.vm().unload(&cached.script);
            }
        }
        Ok(script)
    }

    /// Returns the texts of the cached scripts, each with whether only EVAL has loaded it: such scripts last, the least recently
    /// used first.
    pub(super) fn texts(&self) -> impl Iterator<Item = (bool, &[u8])> {
        let mut kept: Vec<(&Sha, &Cached)> =
            self.cache.iter().filter(|(_, cached)| !cached.by_eval).collect();
        kept.sort_by_key(|(sha, _)| **sha);
        let by_eval = self.by_eval.iter().filter_map(|sha| self.cache.get_key_value(sha));
        kept.into_iter().chain(by_eval).map(|(_, cached)| (cached.by_eval, cached.script.text()))
    }

    /// Asserts that the cache agrees with the order of use.
    pub(super) fn check(&self) {
        for sha in &self.by_eval {
            let is_kept = self.cache.get(sha).is_some_and(|cached| cached.by_eval);
            assert!(is_kept, "the order of use has a script that was not loaded by EVAL");
        }
        let by_eval = self.cache.values().filter(|cached| cached.by_eval).count();
        assert_eq!(by_eval, self.by_eval.len(), "wrong number of scripts loaded by EVAL");
    }

    /// Empties the script cache, as SCRIPT FLUSH does. A running script goes on.
    pub fn flush(&mut self) {
        let cache = std::mem::take(&mut self.cache);
        self.by_eval.clear();
        if let Some(vm) = &mut self.vm
            && self.running.is_none()
        {
            vm.forget_all(cache.values().map(|cached| &cached.script));
        }
    }

    /// Kills the running script, as SCRIPT KILL does, or the running function, as FUNCTION KILL does.
    ///
    /// # Errors
    ///
    /// Fails if nothing is running, if it has already written, or if it is the other of the two.
    pub fn kill(&mut self, function: bool) -> Outcome {
        let is_other = self.runs_function() != function;
        match (&self.running, &mut self.vm) {
            (Some(running), _) if running.script.access.wrote => Err(error::UNKILLABLE),
            (Some(_), _) if is_other => Err(self.busy_error()),
            (Some(_), Some(vm)) => {
                vm.kill();
                Ok(())
            }
            _ => Err(error::NOT_BUSY),
        }
    }

    /// Notes that a client has disconnected. Returns whether its script is running.
    pub fn client_left(&mut self, id: SessionId) -> bool {
        match &mut self.running {
            Some(running) if running.client == id => {
                running.client_left = true;
                true
            }
            _ => false,
        }
    }

    /// Stores the commands that follow the suspended script in its transaction.
    pub fn run_after(&mut self, queue: VecDeque<OwnedArgs>) {
        if let Some(running) = &mut self.running {
            running.after = queue;
        }
    }
}

impl Node {
    /// Compiles and caches a script, unless it is cached already. A script that is only loaded `by_eval` may be evicted
    /// later.
    ///
    /// # Errors
    ///
    /// Fails if the script does not compile.
    pub fn load_script(&mut self, body: &[u8], by_eval: bool) -> Result<Script, Error> {
        let stages = &self.stages;
        self.scripts.load(body, by_eval, || stages.recognise(body))
    }

    /// Runs a script or a function for a client: the first `keys` words of the request after the third are keys, the others
    /// arguments. If the script does not end in its first slice, it is *running* from then on.
    pub fn run_script(
        &mut self,
        id: SessionId,
        command: &'static Command,
        script: &Script,
        request: &[&[u8]],
        keys: usize,
        reply: &mut Reply,
    ) {
        let (keys, argv) = request[3..].split_at(keys);
        let db = self.sessions[id].db;
        let flags = script.flags();
        let access = Access {
            read_only: command.has(READONLY) || flags.no_writes,
            allow_oom: flags.allow_oom,
            wrote: false,
            cross_slot: flags.allow_cross_slot_keys || !flags.declared,
        };
        self.enter_script_slot(keys);
        let mut call = Call { command, access, has_failed: false, db };
        let Some(mut vm) = self.scripts.vm.take() else { return };
        self.show_script_start(id, script, keys, argv, db);
        let start = reply.len();
        let step = vm.start(script, keys, argv, &mut ScriptHost { node: self, id, call: &mut call }, reply);
        let instructions = vm.instructions();
        self.scripts.vm = Some(vm);
        match step {
            Step::Done => {
                self.show_script_end(instructions, &reply.as_bytes()[start..]);
                self.leave_script(id, call);
            }
            Step::Suspended => {
                let reply = Reply::new(reply.protocol, self.config.version);
                let (started, after) = (self.store.now, VecDeque::new());
                let function = script.function().map(|name| (name.into(), OwnedArgs::new(request)));
                self.scripts.running = Some(Running {
                    client: id,
                    script: call,
                    function,
                    ran_ms: 0,
                    started,
                    slices: 1,
                    busy: false,
                    client_left: false,
                    reply,
                    after,
                });
            }
        }
    }

    /// Turns counting of the scripts' Lua instructions on or off. Scripts run slower while it is on.
    pub fn count_instructions(&mut self, on: bool) {
        self.scripts.vm().count_instructions(on);
    }

    /// Turns recording of the executed lines of scripts on or off.
    pub fn note_lines(&mut self, on: bool) {
        self.scripts.vm().note_lines(on);
    }

    /// Returns whether the script that ran last has reached a line, if lines were recorded. The first line is 1.
    pub fn has_reached(&self, line: usize) -> bool {
        self.scripts.vm.as_ref().is_some_and(|vm| vm.has_reached(line))
    }

    fn show_script_start(&self, id: SessionId, script: &Script, keys: &[&[u8]], argv: &[&[u8]], db: usize) {
        if !self.interest.scripts && !script.tag().is_some_and(|tag| tag.watched) {
            return;
        }
        let session = &self.sessions[id];
        let client = if session.name.is_empty() { session.addr.as_bytes() } else { &session.name };
        let store = &self.store;
        let conn = self.conn(id);
        self.stages.script_begins(&ScriptStart { conn, client, db, script, keys, argv, store });
    }

    fn show_script_end(&mut self, instructions: u64, reply: &[u8]) {
        if self.interest.scripts {
            let vm = self.scripts.vm();
            let (sha, tag) = (vm.running(), vm.running_tag());
            let (node, event, store) = (self.index, self.event, &self.store);
            self.stages.script_ended(&ScriptEnd { node, event, sha, tag, reply, instructions, store });
        }
    }

    /// Restores the client's database: a SELECT inside the script affects only the script.
    fn leave_script(&mut self, id: SessionId, call: Call) {
        self.sessions[id].db = call.db;
    }

    /// Blocks the client whose request ended with a suspended script. The reply written so far is kept with the script.
    pub(super) fn hold_for_script(&mut self, id: SessionId, argv: &[&[u8]], open: OpenReply) {
        if let Some(running) = &mut self.scripts.running {
            running.reply.raw(&self.sessions[id].output.suspend(open));
        }
        self.block(id, Wait::Script, argv, Vec::new(), None, TimeoutReply::Null);
        self.sessions.mark_dirty(id);
    }

    /// Makes a request wait until the running script ends or becomes busy.
    pub(super) fn wait_for_script(&mut self, id: SessionId, argv: &[&[u8]]) {
        self.block(id, Wait::OtherScript, argv, Vec::new(), None, TimeoutReply::Null);
        self.scripts.waiting.push_back(id);
    }

    /// Executes the requests that waited for the running script.
    fn run_waiting(&mut self) {
        for id in std::mem::take(&mut self.scripts.waiting) {
            if let Some(blocked) = self.unblock(id) {
                self.execute(id, &blocked.argv.args());
            }
        }
    }

    /// Ends the running script, if there is one, even if it has written. The rest of its transaction does not run.
    pub fn abort_script(&mut self) {
        if let (Some(running), Some(vm)) = (&mut self.scripts.running, &mut self.scripts.vm) {
            running.after.clear();
            vm.kill();
            self.resume_script(0);
        }
    }

    /// Resumes the running script for one slice. `ran_ms` is how long it has run, in ms.
    pub fn resume_script(&mut self, ran_ms: u64) {
        let Some(mut running) = self.scripts.running.take() else { return };
        let Some(mut vm) = self.scripts.vm.take() else { return };
        // The script sees the time at which it began.
        let now = std::mem::replace(&mut self.store.now, running.started);
        let id = running.client;
        self.executing = Some(id);
        let start = running.reply.len();
        self.scripts.shown_us = running.shown_us(self.config.version, now);
        let mut host = ScriptHost { node: self, id, call: &mut running.script };
        let step = vm.resume(&mut host, &mut running.reply);
        let instructions = vm.instructions();
        self.scripts.vm = Some(vm);
        if step == Step::Done {
            self.show_script_end(instructions, &running.reply.as_bytes()[start..]);
        }
        self.scripts.shown_us = 0;
        self.store.now = now;
        self.executing = None;
        match step {
            Step::Suspended => {
                running.slices += 1;
                let becomes_busy = !running.busy && ran_ms >= self.config.busy_reply_threshold_ms;
                running.ran_ms = ran_ms;
                running.busy |= becomes_busy;
                self.scripts.running = Some(running);
                if becomes_busy {
                    self.run_waiting();
                }
            }
            Step::Done => self.script_ended(running),
        }
    }

    /// Finishes a script: runs the rest of its transaction, if any, then sends the client's reply.
    fn script_ended(&mut self, running: Running) {
        let Running { client: id, script, started, client_left, mut reply, after, .. } = running;
        self.leave_script(id, script);
        let duration_us = (self.store.now.mono_us - started.mono_us) as i64;
        let blocked = self.sessions[id].blocked.as_ref();
        if let Some(argv) = blocked.map(|blocked| blocked.argv.clone()) {
            self.log_slow(id, &argv.args(), duration_us);
        }
        self.executing = Some(id);
        self.run_queued(id, after, &mut reply);
        self.executing = None;
        if let Some(again) = &mut self.scripts.running {
            again.reply = reply;
            again.client_left = client_left;
            return;
        }
        if client_left {
            self.send_pending_invalidations(id);
            self.close(id);
        } else {
            self.unblock(id);
            self.write_reply(id, |out| out.raw(reply.as_bytes()));
        }
        self.serve_ready_keys();
        self.run_postponed();
        self.run_waiting();
    }
}

/// A node as its scripts access it.
struct ScriptHost<'a> {
    node: &'a mut Node,
    id: SessionId,
    call: &'a mut Call,
}

impl script::Host for ScriptHost<'_> {
    fn call(&mut self, argv: &[&[u8]], reply: &mut Reply) {
        let start = reply.len();
        self.call.access.wrote |= self.node.call_from_script(self.id, argv, reply, self.call.access);
        if self.node.interest.calls {
            let call = self.node.script_call(self.id, argv);
            self.node.stages.script_called(&call, reply.len().saturating_sub(start));
        }
    }

    fn count_error(&mut self, text: &[u8], was_counted: bool) {
        let has_failed = std::mem::replace(&mut self.call.has_failed, true);
        if !was_counted {
            self.node.stats.count_error(text);
        }
        if was_counted || !has_failed {
            self.node.stats.count_failure(self.call.command);
        }
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        log_line(level, message);
    }

    fn may_run(&mut self, argv: &[&[u8]]) -> Option<bool> {
        let command = self.node.config.find_command(argv)?;
        Some(self.node.sessions[self.id].user.check(command, argv, self.node.config.version).is_ok())
    }

    fn may_ask(&mut self, argv: &[&[u8]]) -> bool {
        let version = self.node.config.version;
        let accepts = |command: &Command| command.accepts(argv.len(), version);
        version < Version::V8_6 || self.node.config.find_command(argv).is_none_or(accepts)
    }
}

/// Writes a line of a script to the log.
pub(super) fn log_line(level: LogLevel, message: &[u8]) {
    let message = on_one_line(message);
    match level {
        LogLevel::Debug | LogLevel::Verbose => tracing::debug!(target: "script", "{message}"),
        LogLevel::Notice => tracing::info!(target: "script", "{message}"),
        LogLevel::Warning => tracing::warn!(target: "script", "{message}"),
    }
}

/// Returns a message as text that cannot look like several lines of a log.
fn on_one_line(message: &[u8]) -> String {
    let ends_line = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(message.len());
    for c in String::from_utf8_lossy(message).chars() {
        match c {
            c if ends_line(c) => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}
