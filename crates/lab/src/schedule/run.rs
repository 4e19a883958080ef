//! Carries the steps of a schedule out: a server in process, whose clock only the schedule moves.

use std::collections::{BTreeMap, VecDeque};

use super::failure::{Failure, ScheduleError};
use super::shown::{shown, shown_bytes};
use super::step::{Claim, Expected, Step, Who, ms_of};
use super::text::{Files, Schedule};
use crate::control::Lab;
use crate::sim::CallError;
use crate::travel::predicate::{Judge, Predicate};
use redlatch_core::wire::Value;
use redlatch_core::world::{ClockMode, ConnId, WorldOptions};
use redlatch_locks::check::Checks;

/// The most slices of 100,000 instructions that all scripts of a run may take together.
const MAX_SLICES: u64 = 6_000;

/// What a client has received.
#[derive(Default)]
pub struct Connection {
    /// Its connection. `None` after the end of that.
    conn: Option<ConnId>,
    /// The beginning of a reply that has not arrived as a whole.
    bytes: Vec<u8>,
    /// What it has received and no step has mentioned yet.
    unread: VecDeque<String>,
}

/// A running schedule.
pub struct Stage {
    lab: Lab,
    clients: BTreeMap<Who, Connection>,
    /// The clients by node and number.
    by_conn: BTreeMap<(usize, u64), Who>,
    /// The client of the last step.
    last: Option<Who>,
    marked_us: u64,
    judges: Vec<(String, Judge)>,
    elapsed_us: u64,
    slices: u64,
    opened: u64,
}

/// What a run has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first line whose outcome differs from the expected one, or cannot be carried out.
    pub error: Option<ScheduleError>,
    /// The lines of the run's trace, if it was asked for.
    pub trace: Option<String>,
}

impl Schedule {
    /// Runs the schedule and passes each line of the report to `tell`.
    ///
    /// # Errors
    /// The first line whose outcome differs from the expected one.
    pub fn run(&self, files: &mut dyn Files, tell: &mut dyn FnMut(&str)) -> Result<(), ScheduleError> {
        self.run_on(&mut self.stage(files)?, tell)
    }

    /// Runs the schedule as [`run`](Self::run) does, and records a trace.
    pub fn run_traced(&self, files: &mut dyn Files, tell: &mut dyn FnMut(&str)) -> Report {
        let mut stage = match self.stage(files) {
            Ok(stage) => stage,
            Err(error) => return Report { error: Some(error), trace: None },
        };
        stage.lab.start_trace();
        let error = self.run_on(&mut stage, tell).err();
        Report { error, trace: Some(stage.lab.finish_trace()) }
    }

    fn run_on(&self, stage: &mut Stage, tell: &mut dyn FnMut(&str)) -> Result<(), ScheduleError> {
        self.walk(&mut |step| stage.perform(step, tell))?;
        stage.check_nothing_unread().map_err(|cause| ScheduleError { place: self.end(), cause })
    }

    /// Creates the server, and what judges its state.
    pub(super) fn stage(&self, files: &mut dyn Files) -> Result<Stage, ScheduleError> {
        let mut stage = Stage::new(WorldOptions {
            seed: self.options.seed,
            clock: ClockMode::Manual,
            wall_start_ms: self.options.wall_start_ms,
            nodes: self.configs.clone(),
            topology: self.options.topology,
        });
        if self.event > 0 {
            stage.lab.begin_at(self.event, 0);
        }
        if let Some(checks) = &self.checks {
            stage.lab.start_checks(checks.clone());
        }
        for (place, claim) in &self.claims {
            let judged = stage.judge(claim, !self.has_checks, files);
            judged.map_err(|why| ScheduleError { place: place.clone(), cause: Failure::Wrong(why) })?;
        }
        Ok(stage)
    }
}

impl Stage {
    /// Creates a server without clients.
    pub fn new(options: WorldOptions) -> Stage {
        Stage {
            lab: Lab::new(options),
            clients: BTreeMap::new(),
            by_conn: BTreeMap::new(),
            last: None,
            marked_us: 0,
            judges: Vec::new(),
            elapsed_us: 0,
            slices: 0,
            opened: 0,
        }
    }

    /// Prepares to judge a predicate. `may_check`: whether locks may be checked for it.
    fn judge(&mut self, claim: &Claim, may_check: bool, files: &mut dyn Files) -> Result<(), String> {
        if self.judges.iter().any(|(text, _)| *text == claim.predicate) {
            return Ok(());
        }
        let predicate = Predicate::parse(&claim.predicate, |path| files.read(path))?;
        self.add_judge(claim.predicate.clone(), &predicate, may_check);
        Ok(())
    }

    /// Judges a predicate from here on.
    pub fn add_judge(&mut self, text: String, predicate: &Predicate, may_check: bool) {
        match predicate {
            Predicate::TwoOwners => self.lab.keep_history(),
            Predicate::Invariant { checks, .. } if may_check && !self.lab.is_checking() => {
                self.lab.start_checks(Checks::clone(checks));
            }
            _ => {}
        }
        self.judges.push((text, Judge::new(predicate)));
    }

    /// Returns whether the predicate with this text holds now.
    ///
    /// # Errors
    /// There is no such predicate, or its script fails.
    pub fn holds(&mut self, text: &str) -> Result<bool, Failure> {
        let found = self.judges.iter_mut().find(|(known, _)| known == text);
        let (_, judge) = found
            .ok_or_else(|| Failure::Wrong(format!("the predicate '{text}' may not depend on a loop")))?;
        judge.holds(&mut self.lab).map_err(Failure::Wrong)
    }

    /// Returns the clock's time in µs.
    pub fn now_us(&self) -> u64 {
        self.lab.world().clock().now().mono_us
    }

    /// Returns how much time has passed for the driver, in µs.
    pub fn elapsed_us(&self) -> u64 {
        self.elapsed_us
    }

    /// Returns the id of the next connection to a node.
    pub fn next_id(&self, node: usize) -> Option<u64> {
        self.lab.world().nodes().get(node).map(|node| node.sessions.next_number())
    }

    /// Returns whether a client is connected.
    pub fn is_connected(&self, who: &Who) -> bool {
        self.clients.get(who).is_some_and(|client| client.conn.is_some())
    }

    /// Carries out a step.
    ///
    /// # Errors
    /// The step cannot be carried out, or its outcome differs from the expected one.
    pub fn perform(&mut self, step: &Step, tell: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        match step {
            Step::Say(text) => {
                tell("");
                tell(text);
            }
            Step::Outcome(text) => {
                self.check_nothing_unread()?;
                tell("");
                tell(&format!("Outcome: {text}"));
            }
            Step::Connect { who, is_unnamed, id } => {
                tell(&format!("  {step}"));
                self.connect(who, !is_unnamed, *id)?;
            }
            Step::Disconnect(who) => {
                tell(&format!("  {step}"));
                let client = self.clients.get_mut(who);
                let conn = client.and_then(|client| client.conn.take());
                let conn = conn.ok_or_else(|| Failure::NeverConnected(who.to_string()))?;
                self.by_conn.remove(&(conn.node, conn.session.number));
                self.lab.close(conn);
                self.after_input()?;
            }
            Step::Send { who, argv, .. } => {
                tell(&format!("  {step}"));
                self.send(who, argv)?;
            }
            Step::Expect { who, expected } => {
                let who = who.clone().or_else(|| self.last.clone()).ok_or(Failure::NothingSent)?;
                self.expect(&who, expected, tell)?;
                self.last = Some(who);
            }
            Step::Advance { us } => {
                tell(&format!("  {step}"));
                self.advance(*us)?;
            }
            Step::Idle { us } => {
                tell(&format!("  {step}"));
                self.pass(*us);
                self.after_input()?;
            }
            Step::State { words, text } => {
                tell(&format!("  {step}"));
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                let wrong = || Failure::Wrong(format!("this is not a line of state: {text}"));
                self.lab.set_state(&words).ok_or_else(wrong)?;
            }
            Step::Mark => self.marked_us = self.now_us(),
            Step::Elapsed { us } => {
                let elapsed_us = self.now_us().saturating_sub(self.marked_us);
                if elapsed_us != *us {
                    let (elapsed, expected) = (ms_of(elapsed_us), ms_of(*us));
                    return Err(Failure::WrongTime { elapsed, expected });
                }
                tell(&format!("  (its clock: {} ms have passed)", ms_of(elapsed_us)));
            }
            Step::Violations(names) => self.check_violations(names, tell)?,
            Step::Holds(claim) => {
                let holds = self.holds(&claim.predicate)?;
                if holds == claim.is_negated {
                    return Err(Failure::Predicate { text: claim.predicate.clone(), holds });
                }
                tell(&format!("  ({}{})", claim.predicate, if holds { " holds" } else { " does not hold" }));
            }
        }
        Ok(())
    }

    /// Connects a client. `names`: whether it also gets its name.
    fn connect(&mut self, who: &Who, names: bool, id: Option<u64>) -> Result<ConnId, Failure> {
        let (node, nodes) = (who.node.unwrap_or(0), self.lab.world().nodes().len());
        if node >= nodes {
            return Err(Failure::NoSuchNode { node, nodes });
        }
        if let Some(id) = id.filter(|id| self.next_id(node).is_none_or(|next| *id < next)) {
            return Err(Failure::Wrong(format!(
                "the id {id} is too low: other clients have had it or a higher one"
            )));
        }
        let client = self.clients.entry(who.clone()).or_default();
        if client.conn.is_some() {
            return Err(Failure::AlreadyConnected(who.to_string()));
        }
        self.opened += 1;
        let addr = format!("127.0.0.1:{}", 50_000 + self.opened);
        let laddr = format!("127.0.0.1:{}", 6379 + node);
        let has_control_port = who.has_control_port();
        let conn = match id {
            Some(id) => self.lab.open_numbered(node, id, has_control_port, addr, laddr),
            None if has_control_port => Some(self.lab.open_control(addr, laddr)),
            None => Some(self.lab.open(node, addr, laddr)),
        };
        let conn = conn.ok_or(Failure::NoSuchNode { node, nodes })?;
        client.conn = Some(conn);
        client.bytes.clear();
        self.by_conn.insert((conn.node, conn.session.number), who.clone());
        self.last = Some(who.clone());
        self.after_input()?;
        if names && self.lab.world().is_ready(conn) {
            self.lab.set_up(conn, &[b"CLIENT", b"SETNAME", who.name.as_bytes()]);
        }
        Ok(conn)
    }

    fn send(&mut self, who: &Who, argv: &[Vec<u8>]) -> Result<(), Failure> {
        let known = self.clients.get(who);
        let not_sent = |error| Failure::NotSent { client: who.to_string(), error };
        let conn = match known {
            Some(client) => client.conn.ok_or_else(|| not_sent(CallError::Closed))?,
            None => self.connect(who, true, None)?,
        };
        self.last = Some(who.clone());
        self.forget_replies_to_control(who)?;
        let world = self.lab.world();
        if !world.is_ready(conn) {
            let is_closed = world.is_closing(conn);
            return Err(not_sent(if is_closed { CallError::Closed } else { CallError::Waiting }));
        }
        let argv: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
        self.lab.request(conn, &argv);
        self.after_input()
    }

    /// Discards the replies that a client of the control plane has received. Errors have to be mentioned.
    fn forget_replies_to_control(&mut self, who: &Who) -> Result<(), Failure> {
        let Some(client) = self.clients.get_mut(who).filter(|_| who.is_control()) else { return Ok(()) };
        let errors: Vec<String> = client.unread.drain(..).filter(|text| is_error(text)).collect();
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Failure::UnexpectedReplies { client: who.to_string(), received: errors }),
        }
    }

    /// Advances the clock, and the time of the waits at gates.
    fn advance(&mut self, us: u64) -> Result<(), Failure> {
        self.lab.advance_us(us);
        if self.lab.world().clock().mode() == ClockMode::Manual {
            // SIM.GATE AWAIT counts the driver's time.
            self.pass(us);
        }
        self.after_input()?;
        // A script that is busy runs on in the meantime.
        for _ in 0..us / 1000 {
            if !(0..self.lab.world().nodes().len()).any(|node| self.lab.world().is_running_script(node)) {
                break;
            }
            self.after_input()?;
        }
        Ok(())
    }

    /// Lets the driver's time pass.
    fn pass(&mut self, us: u64) {
        self.elapsed_us = self.elapsed_us.saturating_add(us);
        self.lab.tick(self.elapsed_us);
        self.lab.catch_up_fully();
    }

    /// Runs scripts until they end or are busy, and those that are by one slice; takes what clients have received, and looks
    /// at the state.
    fn after_input(&mut self) -> Result<(), Failure> {
        for node in 0..self.lab.world().nodes().len() {
            if self.lab.world().is_busy(node) {
                self.run_slice(node)?;
            }
        }
        while let Some(node) = self.lab.urgent_script() {
            self.run_slice(node)?;
        }
        let mut dirty = Vec::new();
        loop {
            self.lab.take_dirty(&mut dirty);
            if dirty.is_empty() {
                break;
            }
            dirty.drain(..).for_each(|conn| self.receive(conn));
        }
        self.judges.iter_mut().for_each(|(_, judge)| judge.watch(&self.lab));
        Ok(())
    }

    fn run_slice(&mut self, node: usize) -> Result<(), Failure> {
        self.slices += 1;
        if self.slices > MAX_SLICES {
            let instructions = MAX_SLICES / 10;
            let why =
                format!("scripts have run for {instructions} million instructions: this one may never end");
            return Err(Failure::Limit(why));
        }
        self.lab.run_slice(node);
        Ok(())
    }

    /// Takes what a client has received. Ends its connection if the server closes it.
    fn receive(&mut self, conn: ConnId) {
        let key = (conn.node, conn.session.number);
        let Some(client) = self.by_conn.get(&key).and_then(|who| self.clients.get_mut(who)) else { return };
        let is_killed = self.lab.world().is_killed(conn);
        let is_closing = is_killed || self.lab.world().is_closing(conn);
        if !is_killed {
            self.lab.take_output(conn, &mut client.bytes);
        }
        client.decode(is_closing);
        if is_closing {
            client.conn = None;
            self.by_conn.remove(&key);
            self.lab.close(conn);
        }
    }

    /// Checks the next thing that a client has received.
    fn expect(&mut self, who: &Who, expected: &Expected, tell: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        let client = self.clients.get_mut(who).ok_or_else(|| Failure::NeverConnected(who.to_string()))?;
        let received = client.unread.pop_front();
        let (shown, fits) = match (received, client.conn) {
            (Some(received), _) => (received.clone(), expected.fits(&received)),
            (None, Some(_)) => ("waits".to_owned(), *expected == Expected::Waits),
            (None, None) => ("closed".to_owned(), *expected == Expected::Closed),
        };
        tell(&format!("    {who} <- {shown}"));
        match fits {
            true => Ok(()),
            false => Err(Failure::WrongReply {
                client: who.to_string(),
                received: shown,
                expected: expected.to_string(),
            }),
        }
    }

    /// Checks that the schedule has mentioned everything that its clients received. Of clients of the control plane, only errors count.
    fn check_nothing_unread(&self) -> Result<(), Failure> {
        for (who, client) in &self.clients {
            let is_news = |text: &&String| !who.is_control() || is_error(text);
            let received: Vec<String> = client.unread.iter().filter(is_news).cloned().collect();
            if !received.is_empty() {
                return Err(Failure::UnexpectedReplies { client: who.to_string(), received });
            }
        }
        Ok(())
    }

    fn check_violations(&self, expected: &[String], tell: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        if !self.lab.is_checking() {
            return Err(Failure::ChecksAreOff);
        }
        let mut names: Vec<String> =
            self.lab.violation_kinds().iter().map(|(kind, _)| kind.promise.clone()).collect();
        names.sort();
        names.dedup();
        if names != expected {
            let expected = if expected.is_empty() { "none".to_owned() } else { expected.join(", ") };
            let found = self.lab.findings().iter();
            let found = found.map(|finding| finding.to_string().trim_end().replace("\n  ", "; ")).collect();
            return Err(Failure::Violations { found, expected });
        }
        self.lab.check_report().iter().for_each(|line| tell(&format!("  {line}")));
        Ok(())
    }

    /// Removes and returns what each client has received and no step has mentioned, by client.
    pub fn take_unread(&mut self) -> Vec<(Who, Vec<String>)> {
        let clients = self.clients.iter_mut().filter(|(_, client)| !client.unread.is_empty());
        clients.map(|(who, client)| (who.clone(), client.unread.drain(..).collect())).collect()
    }
}

/// Returns whether a reply is an error, as it is shown.
fn is_error(shown: &str) -> bool {
    shown.starts_with("(error)")
}

impl Connection {
    /// Receives bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.decode(false);
    }

    /// Returns everything that was received, at the end of the connection.
    pub fn into_replies(mut self) -> VecDeque<String> {
        self.decode(true);
        self.unread
    }

    /// Reads the replies that have arrived. What is left at the end of the connection is no reply.
    fn decode(&mut self, is_closing: bool) {
        let mut from = 0;
        loop {
            let rest = &self.bytes[from..];
            match Value::decode(rest) {
                Ok(Some((value, len))) if !rest.is_empty() => {
                    self.unread.push_back(shown(&value));
                    from += len;
                }
                Ok(None) if !is_closing || rest.is_empty() => break,
                _ => {
                    if !rest.is_empty() {
                        self.unread.push_back(shown_bytes(rest));
                    }
                    from = self.bytes.len();
                    break;
                }
            }
        }
        self.bytes.drain(..from);
    }
}
