//! Executes a request inside a node: Redis's checks in Redis's order, the handler, and what follows.

use super::admission::{Access, Caller, is_http};
use super::cluster::is_redirection;
use super::output::OpenReply;
use super::permissions::Source;
use super::secrets::redacted;
use super::session::{Blocked, OwnedArgs, ReplyMode, SessionId, TimeoutReply, Wait};
use super::{Node, Pause};
use crate::commands::command::{ADMIN, Command, MAY_REPLICATE, SKIP_MONITOR, SKIP_SLOWLOG, WRITE};
use crate::commands::ctx::{Ctx, Origin};
use crate::error::{Error, Outcome};
use crate::stages::{HeldReply, ScriptCall};
use crate::version::Version;
use crate::wire::Reply;

/// Commands that run at once inside a transaction instead of being queued.
const NOT_QUEUED: [&str; 6] = ["exec", "discard", "multi", "watch", "quit", "reset"];

/// The bytes of output that Redis keeps with the client and does not count against its limit.
const UNCOUNTED_OUTPUT: u64 = 16 << 10;

impl Node {
    /// Executes one request of a client that is ready for it.
    pub fn execute(&mut self, id: SessionId, argv: &[&[u8]]) {
        let now_us = self.store.now.mono_us;
        let was_running = self.scripts.is_running();
        if was_running && self.scripts.holds_requests() && self.sessions.get(id).is_some() {
            return self.wait_for_script(id, argv);
        }
        // A driver may name a client that has disconnected.
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.active_us = now_us;
        let mut open = session.output.open();
        let caller = self.executing.replace(id);
        if let Err(error) = self.process(id, argv, &mut open.reply) {
            open.discard();
            self.write_error(&mut open.reply, &error);
            self.settle_reply(id, &mut open.reply, open.start);
        }
        self.executing = caller;
        // A request may also have begun another client's script: CLIENT UNPAUSE does.
        if !was_running && self.scripts.client() == Some(id) {
            return self.hold_for_script(id, argv, open);
        }
        self.finish_reply(id, open);
        self.end_caching(id, argv);
        self.end_asking(id, argv);
        self.serve_ready_keys();
        if self.eviction.is_due {
            self.eviction.is_due = false;
            self.evict();
        }
    }

    /// Sends a reply to its client, followed by the messages that the request caused for that client.
    pub(super) fn finish_reply(&mut self, id: SessionId, mut open: OpenReply) {
        let (conn, now_ms) = (self.conn(id), self.store.now.mono_ms());
        let session = &mut self.sessions[id];
        // The reply to a blocked client comes later.
        let is_complete = session.blocked.is_none() || !open.bytes().is_empty();
        let stages = &self.stages;
        let hold = |until, bytes: &[u8]| stages.reply_held(&HeldReply { conn, until, bytes, now_ms });
        if is_complete && session.output.apply_effects(&mut open, hold) {
            session.closing = true;
        }
        session.reply_mode = match session.reply_mode {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip if session.blocked.is_none() => ReplyMode::On,
            mode => mode,
        };
        session.output.close(open);
        self.sessions.mark_dirty(id);
        self.limit_output(id);
        if self.executing.is_none() {
            self.send_pending_invalidations(id);
        }
    }

    /// Drops what a command wrote after `start` if the client wants no replies. Before 7.2 the messages that a command
    /// causes for its own client precede its reply; inserts them there.
    fn settle_reply(&mut self, id: SessionId, reply: &mut Reply, start: usize) {
        let pushes_first = self.config.version < Version::V7_2;
        let session = &mut self.sessions[id];
        if session.wants_no_reply() {
            reply.truncate(start);
        } else if pushes_first {
            let own = session.output.take_own();
            if !own.is_empty() {
                reply.insert(start, &own);
            }
        }
    }

    /// Writes to a client outside its own requests.
    pub fn write_reply(&mut self, id: SessionId, write: impl FnOnce(&mut Reply)) {
        let session = &mut self.sessions[id];
        let mut open = session.output.open();
        write(&mut open.reply);
        self.settle_reply(id, &mut open.reply, open.start);
        self.finish_reply(id, open);
    }

    /// Runs the request of a blocked client again. Returns true if it still has to wait.
    pub(super) fn run_again(&mut self, id: SessionId, blocked: &Blocked, key: &[u8]) -> bool {
        let argv = blocked.argv.args();
        let Some(command) = self.config.find_command(&argv) else { return false };
        let session = &mut self.sessions[id];
        let mut open = session.output.open();
        let caller = self.executing.replace(id);
        // Since 7.2, a request that runs again needs the permissions of that time.
        let permitted = match self.config.version >= Version::V7_2 {
            true => self.authorize(id, command, &argv, Source::Request),
            false => Ok(()),
        };
        let mut ctx = Ctx::new(self, id, command, &argv, &mut open.reply, Origin::Blocked);
        ctx.ready_key = Some(key);
        let outcome = permitted.and_then(|()| (command.run)(&mut ctx));
        let waits = ctx.waits_again;
        if let Err(error) = outcome {
            open.discard();
            self.write_error(&mut open.reply, &error);
        }
        self.executing = caller;
        if waits {
            self.sessions[id].output.suspend(open);
        } else {
            self.settle_reply(id, &mut open.reply, open.start);
            let reply_len = open.bytes().len();
            self.finish_reply(id, open);
            self.stats.count_call(command);
            self.note_slow(id, &argv, reply_len);
        }
        waits
    }

    /// Makes the checks of Redis's `processCommand`, in that order, then queues or calls the command.
    fn process(&mut self, id: SessionId, argv: &[&[u8]], reply: &mut Reply) -> Outcome {
        let command = match self.admit(id, argv, Caller::Client) {
            Ok(command) => command,
            Err(_) if is_http(argv) => {
                self.end_http(id);
                return Ok(());
            }
            Err(error) => return Err(self.refuse(id, argv, error)),
        };
        self.sessions[id].last_command = command.name;
        if self.must_postpone(id, command, argv) {
            self.block(id, Wait::Postponed, argv, Vec::new(), None, TimeoutReply::Null);
            return Ok(());
        }
        let session = &mut self.sessions[id];
        if let Some(multi) = &mut session.multi
            && !NOT_QUEUED.contains(&command.name)
        {
            multi.commands.push(OwnedArgs::new(argv));
            let start = reply.len();
            reply.status("QUEUED");
            self.settle_reply(id, reply, start);
            return Ok(());
        }
        self.call(id, command, argv, reply, Origin::Client)
    }

    /// Refuses a command before it runs: a transaction that is being queued will abort, and an EXEC ends its
    /// transaction.
    fn refuse(&mut self, id: SessionId, argv: &[&[u8]], error: Error) -> Error {
        let command = self.config.find_command(argv);
        if let Some(command) = command {
            self.stats.count_rejection(command);
        }
        self.sessions[id].last_command = command.map_or("NULL", |command| command.name);
        let is_redirected = self.cluster.is_some() && is_redirection(&error);
        let is_exec = argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"EXEC"));
        let session = &mut self.sessions[id];
        if is_exec {
            session.multi = None;
            self.unwatch(id);
            if is_redirected {
                return error;
            }
            // Redis keeps the code only of errors that are constant texts; it composes the arity error.
            let why = error.text().strip_prefix(b"ERR ").unwrap_or(error.text());
            return Error::owned([b"EXECABORT Transaction discarded because of: ", why].concat());
        }
        if let Some(multi) = &mut session.multi {
            multi.refused = true;
        }
        error
    }

    /// Returns whether CLIENT PAUSE holds a request back.
    fn must_postpone(&self, id: SessionId, command: &Command, argv: &[&[u8]]) -> bool {
        self.pause.is_some_and(|Pause { writes_only, .. }| {
            !writes_only || self.flags_with_queue(id, command, argv) & (WRITE | MAY_REPLICATE) != 0
        })
    }

    /// Calls a handler and does what follows every command. Does not write errors to the reply: returns them.
    ///
    /// # Errors
    ///
    /// Fails with the error that the handler returns.
    pub fn call(
        &mut self,
        id: SessionId,
        command: &'static Command,
        argv: &[&[u8]],
        reply: &mut Reply,
        origin: Origin,
    ) -> Outcome {
        let monitored = !self.monitors.is_empty() && !command.has(SKIP_MONITOR | ADMIN);
        let session = &self.sessions[id];
        let (db, wants_no_reply) = (session.db, session.wants_no_reply());
        self.stats.commands_processed += 1;
        let start = reply.len();
        let mut ctx = Ctx::new(self, id, command, argv, reply, origin);
        let outcome = (command.run)(&mut ctx);
        // Commands run by EXEC have already settled their replies one by one; the reply to a script's call goes to the
        // script.
        if origin != Origin::Script && (command.name != "exec" || wants_no_reply) {
            self.settle_reply(id, reply, start);
        }
        let is_blocked = self.sessions[id].blocked.is_some();
        if !is_blocked {
            self.stats.count_call(command);
        }
        if outcome.is_err() {
            self.stats.count_failure(command);
        }
        if self.tracking.observers > 0 {
            self.remember_reads(id, command, argv, origin, reply.len().saturating_sub(start));
        }
        if monitored {
            self.feed_monitors(id, db, argv, origin == Origin::Script);
        }
        // A blocked command is counted and logged when it is served.
        if !command.has(SKIP_SLOWLOG) && !is_blocked {
            self.note_slow(id, argv, reply.len().saturating_sub(start));
        }
        outcome
    }

    /// Executes one command of a script. Returns whether it is a write command.
    pub(super) fn call_from_script(
        &mut self,
        id: SessionId,
        argv: &[&[u8]],
        reply: &mut Reply,
        access: Access,
    ) -> bool {
        let start = reply.len();
        let admitted = self.admit(id, argv, Caller::Script(access));
        if admitted.is_err()
            && let Some(command) = self.config.find_command(argv)
        {
            self.stats.count_rejection(command);
        }
        let writes = admitted.as_ref().is_ok_and(|command| command.has(WRITE));
        let outcome = admitted.and_then(|command| self.call(id, command, argv, reply, Origin::Script));
        if let Err(error) = outcome
            && !self.answers_foreign_call(id, argv, reply)
        {
            reply.truncate(start);
            self.write_error(reply, &error);
        }
        writes
    }

    /// Offers a command that Redis does not have to the stages. Returns whether they have answered it.
    fn answers_foreign_call(&self, id: SessionId, argv: &[&[u8]], reply: &mut Reply) -> bool {
        self.config.find_command(argv).is_none()
            && self.stages.foreign_call(&self.script_call(id, argv), reply)
    }

    /// Returns a command of a script in the form that stages receive.
    pub(super) fn script_call<'a>(&self, id: SessionId, argv: &'a [&'a [u8]]) -> ScriptCall<'a> {
        let db = self.sessions[id].db;
        ScriptCall { node: self.index, db, is_trusted: self.is_trusted(id), argv }
    }

    /// Writes an error reply and counts it by its code.
    pub fn write_error(&mut self, reply: &mut Reply, error: &Error) {
        self.stats.count_error(error.text());
        reply.error(error.text());
    }

    /// Sends a command to the clients that MONITOR.
    pub fn feed_monitors(&mut self, id: SessionId, db: usize, argv: &[&[u8]], from_script: bool) {
        if self.monitors.is_empty() {
            return;
        }
        let session = &self.sessions[id];
        let wall_us = self.store.now.wall_us();
        let source = if from_script { "lua" } else { &session.addr };
        let mut line =
            format!("{}.{:06} [{db} {source}]", wall_us / 1_000_000, wall_us % 1_000_000).into_bytes();
        for arg in redacted(argv, self.config.version) {
            line.push(b' ');
            crate::num::quote(arg, &mut line);
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        for monitor in self.monitors.clone() {
            self.push_to(monitor, |out| out.status(&line));
        }
    }

    /// Disconnects a client whose unread output exceeds `client-output-buffer-limit`.
    pub(super) fn limit_output(&mut self, id: SessionId) {
        let session = &mut self.sessions[id];
        let limit = match self.config.output_limit(session) {
            0 => 0,
            bytes => bytes.max(UNCOUNTED_OUTPUT),
        };
        let too_much = limit > 0 && session.output.len() as u64 > limit || session.reads_nothing;
        if too_much && !session.closing {
            self.kill_session(id);
            self.stages.cut_off(self.conn(id));
            self.stats.output_limit_disconnections += 1;
        }
    }
}
