//! The lab's side of traces: recording a run, and feeding a recorded run in again.

use super::Lab;
use super::staging::conn_of;
use crate::trace::Recorder;
use crate::trace::record::When;
use redlatch_core::node::session::{ReplyMode, SubscriptionKind};
use redlatch_core::node::{Node, SessionId};
use redlatch_core::world::ConnId;
use redlatch_locks::history::Moment;

impl Lab {
    /// Returns the number of the next event, and the present time.
    pub(super) fn when(&self) -> When {
        When { event: self.world.events() + 1, mono_us: self.world.clock().now().mono_us }
    }

    /// Records an input that is about to be applied.
    pub(super) fn record(&mut self, write: impl FnOnce(&mut Recorder, When)) {
        if self.recorder.is_some() {
            let when = self.when();
            if let Some(recorder) = &mut self.recorder {
                write(recorder, when);
            }
        }
    }

    /// Records the outputs of an event, and shows them to the history of locks.
    pub(super) fn record_outputs(&mut self) {
        self.show_nodes();
        let mut recorder = self.recorder.take();
        let mut history = self.staging.history.borrow_mut().take();
        let event = self.world.events();
        let now = self.world.clock().now();
        let cut_off = std::mem::take(&mut *self.staging.cut_off.borrow_mut());
        for node in self.world.nodes_mut() {
            for &conn in cut_off.iter().filter(|conn| conn.node == node.index) {
                if let Some(recorder) = &mut recorder {
                    recorder.of_conn("cut", When { event, mono_us: now.mono_us }, conn);
                }
            }
            // By client number: the order in which a driver takes output is not part of the run.
            for session in node.sessions.with_new_output() {
                let conn = node.conn(session);
                let Some(session) = node.sessions.get_mut(session) else { continue };
                let bytes = session.output.take_untraced();
                if let Some(history) = &mut history {
                    history.received(Moment { event, now_ms: now.mono_ms() }, conn_of(conn), bytes);
                }
                if let Some(recorder) = &mut recorder {
                    recorder.output(event, conn, bytes);
                }
            }
        }
        let items =
            |node: &Node| node.sessions.len() + node.store.dbs.iter().map(|db| db.len()).sum::<usize>();
        if let Some(recorder) = &mut recorder
            && recorder.wants_digest(event, || self.world.nodes().iter().map(|node| items(node) as u64).sum())
        {
            recorder.digest(event, &self.world.digest());
        }
        self.recorder = recorder;
        let found = history.as_mut().map(|history| history.take_findings()).unwrap_or_default();
        *self.staging.history.borrow_mut() = history;
        if !found.is_empty() {
            self.judge_history(found);
        }
    }

    /// Begins a trace. So that a replay can begin from the same state, random streams, checks, statistics and ages begin anew;
    /// clients that are connected are recorded with the requests that bring a new connection to their state, and everything
    /// else with the lines of an image.
    ///
    /// # Panics
    ///
    /// May panic later if a script is running.
    pub fn start_trace(&mut self) {
        self.remove_abandoned();
        let image = self.image();
        self.begin_anew();
        self.recorder = None;
        let mut recorder = Box::new(Recorder::new(self));
        for node in 0..self.world.nodes().len() {
            let sessions = self.world.nodes()[node].sessions.iter();
            for id in sessions.map(|session| session.id).collect::<Vec<SessionId>>() {
                let conn = ConnId { node, session: id };
                // In the replay each of these connections is opened by an event.
                let opened = self.when();
                self.world.set_events(opened.event);
                let when = self.when();
                let node = self.world.node_mut(node);
                let password = node.config.requirepass.clone();
                if let Some(session) = node.sessions.get_mut(id) {
                    session.output.take_untraced();
                    recorder.open(opened, conn, session.is_control, &session.addr, &session.laddr);
                    for argv in setup_requests(session, &password) {
                        let argv: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
                        recorder.request("setup", when, conn, &argv, None);
                    }
                }
            }
        }
        // The setup itself leaves nothing behind.
        let all = self
            .world
            .nodes()
            .iter()
            .flat_map(|node| node.sessions.iter().map(|session| node.conn(session.id)));
        if let Some(last) = all.last() {
            recorder.request("setup", self.when(), last, &BEGIN, None);
        }
        self.recorder = Some(recorder);
        self.staging.is_recording.set(true);
        for line in &image {
            let words: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
            let taken = self.set_state(&words);
            debug_assert!(taken.is_some(), "{}", words.concat().escape_ascii());
        }
    }

    /// Takes a line of an image, and records it. Returns `None` if it is malformed.
    pub(crate) fn set_state(&mut self, words: &[&[u8]]) -> Option<()> {
        self.record(|recorder, when| recorder.state(When { event: when.event - 1, ..when }, words));
        self.take_image(words)
    }

    /// Lets everything begin anew. [`take_image`](Self::take_image) brings back what a trace has of it.
    pub(super) fn begin_anew(&mut self) {
        self.reseed(self.seed);
        for watch in self.staging.watches.borrow_mut().iter_mut() {
            watch.skews = Default::default();
            watch.costs = Default::default();
        }
        self.registers.clear();
        self.snapshots.clear();
        self.awaits.clear();
        self.world.begin_anew();
        self.staging.control.borrow_mut().restart();
        self.reset_checks();
        self.refresh_interest();
    }

    /// Ends a trace with its last line.
    pub fn end_trace(&mut self) {
        self.record(|recorder, when| recorder.end(When { event: when.event - 1, ..when }));
    }

    /// Stops recording.
    pub fn stop_trace(&mut self) {
        self.recorder = None;
        self.staging.is_recording.set(false);
    }

    /// Ends the trace and returns its lines.
    pub fn finish_trace(&mut self) -> String {
        let mut lines = Vec::new();
        self.end_trace();
        self.take_trace(&mut lines);
        self.stop_trace();
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// Returns whether a trace is being recorded.
    pub fn is_traced(&self) -> bool {
        self.recorder.is_some()
    }

    /// Appends the lines recorded so far to `into`.
    pub fn take_trace(&mut self, into: &mut Vec<u8>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.take(into);
        }
    }

    /// Returns how many bytes of the trace wait to be taken.
    pub fn trace_len(&self) -> usize {
        self.recorder.as_ref().map_or(0, |recorder| recorder.len())
    }

    /// Records a comment.
    pub fn mark(&mut self, text: &[u8]) {
        self.record(|recorder, when| recorder.mark(When { event: when.event - 1, ..when }, text));
    }
}

/// What a replay calls.
#[cfg(feature = "replay")]
impl Lab {
    /// Moves a new world to the event and the time at which its trace begins.
    pub(crate) fn begin_at(&mut self, event: u64, mono_us: u64) {
        self.world.set_events(event);
        self.replay_to(mono_us, event);
    }

    /// Records passwords as they are.
    pub(crate) fn show_passwords_in_trace(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.show_passwords();
        }
    }

    /// Advances the clock to the time of the next input, which comes after event number `last_event`. Timers that are due
    /// have fired by then, but where very many were due, the input came between two of them.
    pub(crate) fn replay_to(&mut self, mono_us: u64, last_event: u64) {
        let (_, is_there) = self.advance_while(mono_us, |lab, _| lab.world.events() < last_event);
        self.is_behind = !is_there;
        self.world.clock_mut().move_to(mono_us);
    }

    /// Connects a client and gives it this number. Returns `None` if there is no such node.
    pub(crate) fn open_numbered(
        &mut self,
        node: usize,
        number: u64,
        control: bool,
        addr: String,
        laddr: String,
    ) -> Option<ConnId> {
        (node < self.world.nodes().len()).then(|| self.world.node_mut(node).sessions.number_next(number))?;
        Some(self.open_as(node, control, addr, laddr))
    }

    /// Runs a request that brings a client to its state at the beginning of the trace, and discards the reply.
    pub(crate) fn set_up(&mut self, conn: ConnId, argv: &[&[u8]]) {
        self.record(|recorder, when| recorder.request("setup", when, conn, argv, None));
        if argv == BEGIN {
            self.begin_anew();
        } else {
            self.world.set_up(conn, argv);
        }
        self.drain(|_, _| {});
    }

    /// Makes the trace of the replay have digests after these events, as the replayed one has.
    pub(crate) fn expect_digests(&mut self, events: impl Iterator<Item = u64>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.digests_at(events);
        }
    }

    /// Receives bytes that did not parse as a request, for the reason that the trace gives.
    pub(crate) fn protocol_error_text(&mut self, conn: ConnId, why: &str) {
        self.protocol_error(conn, &redlatch_core::wire::ProtocolError(why.to_owned()));
    }

    /// Marks a client as a slow reader, which is disconnected at its next output.
    pub(crate) fn expect_cut(&mut self, node: usize, number: u64) {
        if let Some(conn) = self.world.conn(node, number)
            && let Some(session) = self.world.node_mut(node).sessions.get_mut(conn.session)
        {
            session.reads_nothing = true;
        }
    }

    /// Takes all output, like a driver whose clients read at once, and shows it to `each`.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(ConnId, &[u8])) {
        let mut dirty = Vec::new();
        self.take_dirty(&mut dirty);
        let mut bytes = Vec::new();
        for conn in dirty {
            bytes.clear();
            self.take_output(conn, &mut bytes);
            if !bytes.is_empty() {
                each(conn, &bytes);
            }
        }
    }

    /// Fires the timers that are due up to `mono_us`, until event number `event` has happened. The clock stops there.
    pub(crate) fn fire_until(&mut self, event: u64, mono_us: u64) {
        while self.world.events() < event
            && let Some(due_us) = self.next_due_ms().map(|due_ms| due_ms.saturating_mul(1000))
            && due_us <= mono_us
        {
            let now_us = self.world.clock().now().mono_us;
            self.advance_while(due_us.max(now_us), |lab, _| lab.world.events() < event);
        }
    }
}

/// The setup line after which the run begins.
const BEGIN: [&[u8]; 2] = [b"SIM.TRACE", b"START"];

/// Returns the requests that bring a new connection to the state of this one. `password`: that of its node.
fn setup_requests(session: &redlatch_core::node::Session, password: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let owned = |argv: &[&[u8]]| argv.iter().map(|arg| arg.to_vec()).collect::<Vec<_>>();
    let mut all = Vec::new();
    if !password.is_empty() && session.authenticated {
        all.push(owned(&[b"AUTH", password]));
    }
    if session.protocol() == redlatch_core::wire::Protocol::Resp3 {
        all.push(owned(&[b"HELLO", b"3"]));
    }
    if !session.name.is_empty() {
        all.push(owned(&[b"CLIENT", b"SETNAME", &session.name]));
    }
    if session.db > 0 {
        all.push(owned(&[b"SELECT", session.db.to_string().as_bytes()]));
    }
    for (name, value) in [(&b"LIB-NAME"[..], &session.lib_name), (b"LIB-VER", &session.lib_ver)] {
        if !value.is_empty() {
            all.push(owned(&[b"CLIENT", b"SETINFO", name, value]));
        }
    }
    if session.no_evict {
        all.push(owned(&[b"CLIENT", b"NO-EVICT", b"ON"]));
    }
    if session.no_touch {
        all.push(owned(&[b"CLIENT", b"NO-TOUCH", b"ON"]));
    }
    if session.monitor {
        all.push(owned(&[b"MONITOR"]));
    }
    for (kind, command) in [
        (SubscriptionKind::Channel, &b"SUBSCRIBE"[..]),
        (SubscriptionKind::Pattern, b"PSUBSCRIBE"),
        (SubscriptionKind::Shard, b"SSUBSCRIBE"),
    ] {
        all.extend(session.subscriptions(kind).iter().map(|name| owned(&[command, name])));
    }
    match session.reply_mode {
        ReplyMode::On | ReplyMode::Skip => {}
        ReplyMode::Off => all.push(owned(&[b"CLIENT", b"REPLY", b"OFF"])),
        ReplyMode::SkipNext => all.push(owned(&[b"CLIENT", b"REPLY", b"SKIP"])),
    }
    all
}
