//! Other futures of one moment of a run: the same past, and what could have happened instead.
//!
//! A future has the requests that the recorded clients sent. Each client's requests keep their order. Requests of different
//! clients that came within a short time of each other were on their way at once, so that nothing forced their order: they
//! arrive in any order, and timers fire before or after them. SIM.* commands are the test's own script: they keep their
//! place, but a fault that they inject may not happen.

use std::collections::BTreeMap;
use std::fmt;

use super::journey::{Journey, Place, TravelError};
use super::predicate::Judge;
use crate::control::Lab;
use crate::control::commands::is_sim_command;
use crate::trace::replay::feed;
use crate::trace::{Conn, Line, Tape};
use redlatch_core::rng::Rng;
use redlatch_core::world::ClockMode;

/// How other futures differ from the recorded one.
#[derive(Clone, Copy, Debug)]
pub struct ForkOptions {
    /// The seed of the first run; each further one has the next.
    pub seed: u64,
    /// How many futures to try.
    pub runs: u64,
    /// The last event whose input belongs to the futures; `None`: that of the trace.
    pub until: Option<u64>,
    /// By how many µs a request may come earlier or later.
    pub window_us: u64,
    /// Whether faults that the run injects later (SIM.NODE, SIM.KEY, SIM.FAULT, clock jumps) happen with a probability of one half.
    pub may_skip_faults: bool,
}

impl Default for ForkOptions {
    fn default() -> ForkOptions {
        ForkOptions { seed: 0, runs: 100, until: None, window_us: 1_000, may_skip_faults: false }
    }
}

/// How often a predicate held in other futures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forks {
    pub event: u64,
    pub runs: u64,
    /// The seeds of the runs in which the predicate held.
    pub seeds: Vec<u64>,
    /// The last requests of the first of them.
    pub example: Vec<String>,
}

/// How many requests of an example are shown.
const SHOWN: usize = 12;

/// How many seeds are shown.
const SHOWN_SEEDS: usize = 10;

impl fmt::Display for Forks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, runs) = (self.seeds.len(), self.runs);
        writeln!(f, "it holds in {shown} of {runs} futures from event {}", self.event)?;
        if let Some(first) = self.seeds.first() {
            let seeds: Vec<String> = self.seeds.iter().take(SHOWN_SEEDS).map(u64::to_string).collect();
            let more = if shown > SHOWN_SEEDS { " …" } else { "" };
            writeln!(f, "seeds: {}{more}", seeds.join(" "))?;
            writeln!(f, "the last requests with seed {first}:")?;
            self.example.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        Ok(())
    }
}

/// An input of the recorded future.
struct Input {
    line: Line,
    mono_us: u64,
    conn: Conn,
    /// Whether it is a SIM command, which keeps its place.
    is_fixed: bool,
    is_fault: bool,
}

impl Input {
    /// Returns an input that a future repeats; slices of scripts, marks and the end come by themselves.
    fn of(line: Line) -> Option<Input> {
        let (mono_us, conn) = match &line {
            Line::Open { t, c, .. }
            | Line::Req { t, c, .. }
            | Line::Bad { t, c, .. }
            | Line::Close { t, c, .. } => (*t, *c),
            _ => return None,
        };
        let words: Vec<String> = match &line {
            Line::Req { a, .. } => a.iter().take(2).map(|word| word.to_ascii_uppercase()).collect(),
            _ => Vec::new(),
        };
        let is_fixed = words.first().is_some_and(|name| is_sim_command(name.as_bytes()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_fault = matches!(
            words[..],
            ["SIM.NODE", "STOP" | "PAUSE" | "STATE" | "LINK" | "PROMOTE"]
                | ["SIM.KEY", "LOSE" | "TTL"]
                | ["SIM.FAULT", "ADD"]
                | ["SIM.CLOCK", "JUMP"]
        );
        Some(Input { line, mono_us, conn, is_fixed, is_fault })
    }

    fn shown(&self) -> String {
        match &self.line {
            Line::Req { c, a, .. } => {
                let words: Vec<String> = a.iter().map(|word| word.chars().take(40).collect()).collect();
                format!("{c} {}", words.join(" ").replace(['\n', '\r'], " "))
            }
            Line::Open { c, .. } => format!("{c} connects"),
            Line::Close { c, .. } => format!("{c} disconnects"),
            _ => format!("{} sends a malformed request", self.conn),
        }
    }
}

/// Returns the inputs of a trace from a line on, up to an event.
fn inputs(tape: &Tape, from: usize, until: u64) -> Vec<Input> {
    let rows = (from..tape.rows().len()).filter(|row| tape.rows()[*row].event <= until);
    rows.filter_map(|row| Input::of(tape.line(row).ok()?)).collect()
}

impl<'a> Journey<'a> {
    /// Tries other futures of this place, and counts those in which the predicate comes to hold.
    ///
    /// # Errors
    /// The state cannot be copied here, or the script of the predicate fails.
    pub fn fork(&self, options: &ForkOptions) -> Result<Forks, TravelError> {
        let inputs = self.future(options);
        let mut forks =
            Forks { event: self.event(), runs: options.runs, seeds: Vec::new(), example: Vec::new() };
        for seed in (options.seed..).take(options.runs as usize) {
            let mut shown = Vec::new();
            if self.try_future(&inputs, seed, options, &mut shown)? {
                if forks.seeds.is_empty() {
                    let last = shown.iter().skip(shown.len().saturating_sub(SHOWN));
                    forks.example = last.map(|input| input.shown()).collect();
                }
                forks.seeds.push(seed);
            }
        }
        Ok(forks)
    }

    /// Returns whether the predicate comes to hold in all futures of this place.
    fn is_inevitable(&self, options: &ForkOptions) -> Result<bool, TravelError> {
        let inputs = self.future(options);
        for seed in (options.seed..).take(options.runs as usize) {
            if !self.try_future(&inputs, seed, options, &mut Vec::new())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn future(&self, options: &ForkOptions) -> Vec<Input> {
        inputs(self.tape(), self.place().player.at(), options.until.unwrap_or(u64::MAX))
    }

    /// Returns whether the predicate comes to hold in the future with this seed. Collects its inputs in `shown`.
    fn try_future<'i>(
        &self,
        inputs: &'i [Input],
        seed: u64,
        options: &ForkOptions,
        shown: &mut Vec<&'i Input>,
    ) -> Result<bool, TravelError> {
        let event = self.event();
        let place = self.place().copy().map_err(|why| TravelError::Uncopyable { event, why })?;
        let order = order(inputs, Rng::new(seed), options);
        Fork::new(place).run(order, shown).map_err(TravelError::Script)
    }
}

/// Chooses a time for each input, and returns them in the order of these times.
fn order<'i>(inputs: &'i [Input], mut rng: Rng, options: &ForkOptions) -> Vec<(u64, &'i Input)> {
    let mut last: BTreeMap<Conn, u64> = BTreeMap::new();
    let mut ordered: Vec<(u64, &Input)> = Vec::with_capacity(inputs.len());
    let mut begin = 0;
    // Nothing comes before a SIM command that it followed, nor after one that it preceded.
    let mut floor_us = 0;
    let sort = |part: &mut [(u64, &Input)]| part.sort_by_key(|(mono_us, _)| *mono_us);
    for input in inputs {
        if input.is_fixed {
            sort(&mut ordered[begin..]);
            floor_us = ordered.last().map_or(0, |(mono_us, _)| *mono_us).max(input.mono_us).max(floor_us);
            if !(input.is_fault && options.may_skip_faults && rng.below(2) == 0) {
                ordered.push((floor_us, input));
            }
            begin = ordered.len();
            continue;
        }
        let moved_us = rng.next_u64() % (2 * options.window_us + 1);
        let at_us = (input.mono_us + moved_us).saturating_sub(options.window_us);
        let last = last.entry(input.conn).or_default();
        *last = at_us.max(*last).max(floor_us);
        ordered.push((*last, input));
    }
    sort(&mut ordered[begin..]);
    ordered
}

/// One future.
struct Fork<'a> {
    lab: Lab,
    judge: Option<Judge>,
    /// Inputs of clients that still wait for a reply.
    waiting: Vec<&'a Input>,
}

impl<'a> Fork<'a> {
    fn new(place: Place) -> Fork<'a> {
        let Place { player, judge, .. } = place;
        Fork { lab: player.into_lab(), judge, waiting: Vec::new() }
    }

    /// Runs the inputs, each at its time, until the predicate holds. Returns whether it does.
    fn run(mut self, inputs: Vec<(u64, &'a Input)>, shown: &mut Vec<&'a Input>) -> Result<bool, String> {
        // What is moved by hand moves as in the recorded run.
        let is_manual = self.lab.world().clock().mode() == ClockMode::Manual;
        if self.holds()? {
            return Ok(true);
        }
        for (mono_us, input) in inputs {
            let now_us = self.lab.world().clock().now().mono_us;
            let mono_us = if is_manual { input.mono_us } else { mono_us };
            if mono_us > now_us {
                self.lab.replay_to(mono_us, u64::MAX);
                self.lab.drain(|_, _| {});
                if self.holds()? {
                    return Ok(true);
                }
            }
            self.waiting.push(input);
            while let Some(next) = self.next_ready() {
                shown.push(next);
                self.apply(next);
                if self.holds()? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Removes and returns the first input whose client does not wait for a reply.
    fn next_ready(&mut self) -> Option<&'a Input> {
        let mut busy: Vec<Conn> = Vec::new();
        for (index, input) in self.waiting.iter().enumerate() {
            let world = self.lab.world();
            let is_ready = match input.line {
                Line::Req { .. } | Line::Bad { .. } => {
                    let conn = world.conn(input.conn.node, input.conn.number);
                    conn.is_none_or(|conn| world.is_ready(conn) || world.is_closing(conn))
                }
                _ => true,
            };
            if is_ready && !busy.contains(&input.conn) {
                return Some(self.waiting.remove(index));
            }
            busy.push(input.conn);
        }
        None
    }

    /// Applies an input. One that this future has no place for, as of a client that was disconnected, has no effect.
    fn apply(&mut self, input: &Input) {
        if feed(&mut self.lab, &input.line).is_ok() {
            self.lab.run_scripts();
            self.lab.drain(|_, _| {});
        }
    }

    fn holds(&mut self) -> Result<bool, String> {
        let Some(judge) = &mut self.judge else { return Ok(false) };
        judge.watch(&self.lab);
        judge.holds(&mut self.lab)
    }
}

/// The event after which a violation was inevitable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The first event after which the predicate held in the recorded run.
    pub found: u64,
    /// The event after which it comes to hold in all futures that were tried; `None`: from the beginning.
    pub event: Option<u64>,
}

impl<'a> Journey<'a> {
    /// Finds the first moment at which the predicate holds, then the event from which on all futures lead there, and goes to that
    /// event. Returns `None` if the predicate never holds.
    ///
    /// Takes for granted that what is inevitable stays so, and looks backwards in growing steps, so that most futures are short.
    ///
    /// # Errors
    /// The trace does not replay, or the script of the predicate fails.
    pub fn blame(&mut self, options: &ForkOptions) -> Result<Option<Blame>, TravelError> {
        if !self.find()? {
            return Ok(None);
        }
        let found = self.event();
        let options = ForkOptions { until: Some(found), may_skip_faults: true, ..*options };
        let first = self.first_event();
        let mut inevitable = found;
        let mut distance = 1;
        let mut avoidable = loop {
            let at = found.saturating_sub(distance).max(first);
            if !self.is_inevitable_at(at, inevitable, &options)? {
                break at;
            }
            inevitable = inevitable.min(self.event());
            if at == first {
                return Ok(Some(Blame { found, event: None }));
            }
            distance *= 2;
        };
        while inevitable - avoidable > 1 {
            let middle = avoidable + (inevitable - avoidable) / 2;
            match self.is_inevitable_at(middle, inevitable, &options)? {
                true if self.event() < inevitable => inevitable = self.event(),
                _ => avoidable = middle,
            }
        }
        self.go_to(inevitable)?;
        Ok(Some(Blame { found, event: Some(inevitable) }))
    }

    /// Goes to an event, or to the next one before `before` at which the state can be copied, and returns whether the predicate
    /// comes to hold in all futures from there.
    fn is_inevitable_at(
        &mut self,
        event: u64,
        before: u64,
        options: &ForkOptions,
    ) -> Result<bool, TravelError> {
        self.go_to(event)?;
        loop {
            match self.is_inevitable(options) {
                Err(TravelError::Uncopyable { .. }) if self.event() + 1 < before => self.step(1)?,
                result => return result,
            }
        }
    }
}
