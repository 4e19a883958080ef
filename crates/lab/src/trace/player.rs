//! Replays a trace line by line. A player can stop between any two lines, and be copied there.

use std::collections::VecDeque;

use super::line::{Conn, Line};
use super::replay::{Replay, ReplayError, TraceError, apply, build};
use super::tape::{Kind, Row, Tape};
use crate::control::Lab;

/// Feeds the inputs of a trace into a lab, one line after the other, and compares every output.
pub struct Player<'a> {
    tape: &'a Tape<'a>,
    lab: Lab,
    /// The index of the next line.
    at: usize,
    report: Replay,
    /// Lines of one side that the other has not reached yet: the trace has the outputs of timers before the input whose
    /// time makes the replay fire them.
    recorded: VecDeque<usize>,
    replayed: VecDeque<String>,
    last_digest: Option<u64>,
    /// The event of the last SIM.HELP, and its client.
    helped: Option<(u64, Conn)>,
    /// Whether the lab checks locks that the recorded run did not check: violations are not compared then.
    has_own_checks: bool,
    /// Whether the last step has applied an input, and did not only fire timers.
    has_input: bool,
    produced: Vec<u8>,
}

impl<'a> Player<'a> {
    /// Stands at the beginning of a trace.
    ///
    /// # Errors
    /// The trace has no header that this release can replay.
    pub fn new(tape: &'a Tape<'a>) -> Result<Player<'a>, ReplayError> {
        let malformed = |error| ReplayError::Malformed { line: 1, error };
        let header = match tape.rows().first().map(|_| tape.line(0)) {
            Some(Ok(Line::Head(header))) => header,
            Some(Err(error)) => return Err(malformed(error.into())),
            _ => return Err(malformed(TraceError::NoHeader)),
        };
        Ok(Player {
            tape,
            lab: build(&header).map_err(malformed)?,
            at: 1,
            report: Replay::default(),
            recorded: VecDeque::new(),
            replayed: VecDeque::new(),
            last_digest: None,
            helped: None,
            has_own_checks: false,
            has_input: false,
            produced: Vec::new(),
        })
    }

    /// Returns the lab in its present state.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    pub(crate) fn lab_mut(&mut self) -> &mut Lab {
        &mut self.lab
    }

    /// Returns the lab in its present state, without a recorder.
    pub fn into_lab(mut self) -> Lab {
        self.lab.stop_trace();
        self.lab
    }

    /// Returns the trace.
    pub fn tape(&self) -> &'a Tape<'a> {
        self.tape
    }

    /// Returns the index of the next line.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the number of the last event.
    pub fn event(&self) -> u64 {
        self.lab.world().events()
    }

    /// Returns whether the last step has applied an input, and did not only fire timers.
    pub fn has_input(&self) -> bool {
        self.has_input
    }

    /// Checks locks from here on, although the recorded run did not.
    pub fn check(&mut self, checks: redlatch_locks::check::Checks) {
        self.has_own_checks = true;
        self.lab.start_checks(checks);
    }

    /// Returns a copy that stands at the same place.
    ///
    /// # Errors
    /// Why the state cannot be copied here.
    pub fn copy(&self) -> Result<Player<'a>, &'static str> {
        Ok(Player {
            tape: self.tape,
            lab: self.lab.copy()?,
            at: self.at,
            report: self.report.clone(),
            recorded: self.recorded.clone(),
            replayed: self.replayed.clone(),
            last_digest: self.last_digest,
            helped: self.helped,
            has_own_checks: self.has_own_checks,
            has_input: false,
            produced: Vec::new(),
        })
    }

    /// Moves by one line, or to the event if timers reach it before the next input. Returns false if the next input comes
    /// after the event, and everything up to the event has happened.
    ///
    /// # Errors
    /// The line cannot be replayed, or an output differs.
    pub fn step_to(&mut self, event: u64) -> Result<bool, ReplayError> {
        let rows = &self.tape.rows()[self.at..];
        if rows.first().is_none_or(|row| row.event <= event) {
            return self.step();
        }
        let from = self.event();
        let is_output = |row: &Row| matches!(row.kind, Kind::Output | Kind::Cut | Kind::Digest);
        if from < event
            && let Some(outputs) = rows.iter().position(|row| !is_output(row))
        {
            self.has_input = false;
            let mono_us = self.time_of(self.at + outputs)?;
            self.lab.fire_until(event, mono_us);
            self.take_outputs();
            self.compare()?;
        }
        Ok(self.event() > from)
    }

    /// Moves by one line. Returns false at the end.
    ///
    /// # Errors
    /// The line cannot be replayed, or an output differs.
    pub fn step(&mut self) -> Result<bool, ReplayError> {
        let Some(&row) = self.tape.rows().get(self.at) else { return Ok(false) };
        self.has_input = false;
        let at = self.at;
        if self.report.complete {
            return Err(malformed(at, TraceError::AfterEnd));
        }
        self.recorded.push_back(at);
        match row.kind {
            Kind::Output => self.report.outputs += 1,
            Kind::Digest => self.report.digests += 1,
            Kind::Cut => self.expect_cut(at),
            Kind::Head => return Err(malformed(at, TraceError::Unexpected)),
            Kind::Input | Kind::Mark | Kind::End | Kind::Unknown => self.input(at)?,
        }
        self.at += 1;
        self.compare()?;
        Ok(true)
    }

    fn input(&mut self, at: usize) -> Result<(), ReplayError> {
        let line = self.tape.line(at).map_err(|error| malformed(at, error.into()))?;
        let is_mark = matches!(line, Line::Mark { .. });
        self.look_ahead(at, is_mark);
        // A request has already written the mark that it asks for.
        let is_written = is_mark
            && self.replayed.get(self.recorded.len() - 1).is_some_and(|mark| mark == self.tape.text(at));
        if let Line::Req { e, c, a, .. } = &line
            && a.first().is_some_and(|name| name.eq_ignore_ascii_case("SIM.HELP"))
        {
            self.helped = Some((*e, *c));
        }
        if !is_written {
            apply(&mut self.lab, &line).map_err(|error| malformed(at, error))?;
        }
        self.report.inputs += 1;
        self.report.complete = matches!(line, Line::End { .. });
        self.has_input = true;
        self.take_outputs();
        Ok(())
    }

    /// Tells the lab what the trace has up to the next input: a trace does not have how fast clients read, only which of
    /// them were disconnected as too slow.
    fn look_ahead(&mut self, at: usize, is_mark: bool) {
        let rows = &self.tape.rows()[at + 1..];
        let until_input = rows
            .iter()
            .take_while(|row| matches!(row.kind, Kind::Output | Kind::Cut | Kind::Digest | Kind::Mark))
            .count();
        for (index, row) in rows[..until_input].iter().enumerate() {
            match row.kind {
                Kind::Cut => self.expect_cut(at + 1 + index),
                // The input before a mark has seen those behind it.
                Kind::Digest if !is_mark => self.lab.expect_digests([row.event].into_iter()),
                _ => {}
            }
        }
    }

    fn expect_cut(&mut self, at: usize) {
        if let Ok(Line::Cut { c, .. }) = self.tape.line(at) {
            self.lab.expect_cut(c.node, c.number);
        }
    }

    /// Returns the time of an input.
    fn time_of(&self, at: usize) -> Result<u64, ReplayError> {
        let line = self.tape.line(at).map_err(|error| malformed(at, error.into()))?;
        let at_us = line.at_us().filter(|_| !matches!(line, Line::Cut { .. }));
        at_us.ok_or_else(|| malformed(at, TraceError::Unexpected))
    }

    fn take_outputs(&mut self) {
        self.lab.drain(|_, _| {});
        self.lab.take_trace(&mut self.produced);
        let produced = String::from_utf8_lossy(&self.produced);
        let lines = produced.lines().filter(|line| !(self.has_own_checks && is_check(line)));
        self.replayed.extend(lines.map(str::to_owned));
        self.produced.clear();
    }

    /// Compares the lines that both sides have reached.
    fn compare(&mut self) -> Result<(), ReplayError> {
        while let (Some(&line), Some(replayed)) = (self.recorded.front(), self.replayed.front()) {
            let recorded = self.tape.text(line);
            if recorded != replayed && !is_about_release(recorded, replayed, self.helped) {
                return Err(self.difference());
            }
            let row = self.tape.rows()[line];
            if row.kind == Kind::Digest {
                self.last_digest = Some(row.event);
            }
            self.recorded.pop_front();
            self.replayed.pop_front();
        }
        Ok(())
    }

    /// Returns the first difference of both sides.
    fn difference(&mut self) -> ReplayError {
        let recorded = self.recorded.pop_front();
        // Outputs are only parsed here.
        if let Some(line) = recorded
            && let Err(error) = self.tape.line(line)
        {
            return malformed(line, error.into());
        }
        ReplayError::Differs {
            line: recorded.unwrap_or(self.tape.rows().len()) + 1,
            recorded: recorded.map(|line| self.tape.text(line).to_owned()),
            replayed: self.replayed.pop_front(),
            last_digest: self.last_digest,
        }
    }

    /// Ends a replay of all lines. Returns its counts, and the lab in its final state.
    ///
    /// # Errors
    /// One side has more outputs than the other.
    pub fn finish(mut self) -> Result<(Replay, Lab), ReplayError> {
        self.report.events = self.event();
        // An interrupted trace may lack the outputs of its last input, or the input whose outputs it has.
        if self.report.complete && (!self.recorded.is_empty() || !self.replayed.is_empty()) {
            return Err(self.difference());
        }
        Ok((self.report, self.lab))
    }
}

fn malformed(at: usize, error: TraceError) -> ReplayError {
    ReplayError::Malformed { line: at + 1, error }
}

fn is_check(line: &str) -> bool {
    line.starts_with("{\"k\":\"check\"")
}

/// Returns whether two lines are the reply to SIM.HELP, which tells about the release and not about the run.
/// `helped`: the event of the last SIM.HELP, and its client.
fn is_about_release(recorded: &str, replayed: &str, helped: Option<(u64, Conn)>) -> bool {
    helped.is_some()
        && [recorded, replayed].iter().all(
            |line| matches!(serde_json::from_str(line), Ok(Line::Out { e, c, .. }) if Some((e, c)) == helped),
        )
}
