//! A place in a trace that moves forwards and backwards.
//!
//! Going back means going forward from an earlier copy of the state. Copies only save time: where a state cannot be
//! copied (a script is suspended, say) there is none, and the way from the copy before it is longer.

use std::fmt;

use super::predicate::{Judge, Predicate};
use crate::control::Lab;
use crate::trace::{Player, ReplayError, Tape};

/// The most copies that are kept. From then on every second one is dropped.
const MAX_COPIES: usize = 256;

/// About how many bytes all copies may take together.
const MAX_BYTES: usize = 512 << 20;

/// The fewest events between two copies.
const COPY_EVERY: u64 = 1_000;

/// How many bytes of a copy go with each event, so that copying stays a small part of the time.
const BYTES_PER_EVENT: u64 = 1024;

/// What a connection takes in a copy, in bytes.
const CLIENT_BYTES: usize = 1024;

/// Why a place cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TravelError {
    /// The trace does not replay up to there.
    Replay(ReplayError),
    /// The trace has no such event.
    NoSuchEvent { event: u64, first: u64, last: u64 },
    /// The state cannot be copied at that place.
    Uncopyable { event: u64, why: &'static str },
    /// The script that judges the state has failed.
    Script(String),
}

impl fmt::Display for TravelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TravelError::Replay(error) => write!(f, "{error}"),
            TravelError::NoSuchEvent { event, first, last } => {
                write!(f, "there is no event {event}: the trace has events {first} to {last}")
            }
            TravelError::Uncopyable { event, why } => {
                write!(f, "the state after event {event} cannot be copied: {why}")
            }
            TravelError::Script(error) => write!(f, "the script of the predicate fails: {error}"),
        }
    }
}

impl std::error::Error for TravelError {}

impl From<ReplayError> for TravelError {
    fn from(error: ReplayError) -> TravelError {
        TravelError::Replay(error)
    }
}

/// A place in a trace: the replay up to it, and what is known about the predicate.
pub struct Place<'a> {
    pub(super) player: Player<'a>,
    pub(super) judge: Option<Judge>,
    /// The line of the last input, and the last event that it led to.
    input: (usize, u64),
}

impl<'a> Place<'a> {
    fn start(tape: &'a Tape<'a>, predicate: Option<&Predicate>) -> Result<Place<'a>, TravelError> {
        let mut player = Player::new(tape)?;
        if let Some(predicate) = predicate {
            predicate.prepare(&mut player);
        }
        player.lab_mut().keep_history();
        let input = (0, player.event());
        Ok(Place { player, judge: predicate.map(Judge::new), input })
    }

    pub(super) fn copy(&self) -> Result<Place<'a>, &'static str> {
        Ok(Place { player: self.player.copy()?, judge: self.judge.clone(), input: self.input })
    }

    /// Moves by one line or one timer, not beyond the event. Returns false if nothing is left.
    fn step_to(&mut self, event: u64) -> Result<bool, ReplayError> {
        let has_moved = self.player.step_to(event)?;
        if has_moved {
            if self.player.has_input() {
                self.input = (self.player.at() - 1, self.player.event());
            }
            if let Some(judge) = &mut self.judge {
                judge.watch(self.player.lab());
            }
        }
        Ok(has_moved)
    }

    fn go_to(&mut self, event: u64) -> Result<(), ReplayError> {
        while self.step_to(event)? {}
        Ok(())
    }
}

/// A journey through a trace. It is at one event at a time, beginning before the first.
pub struct Journey<'a> {
    tape: &'a Tape<'a>,
    predicate: Option<Predicate>,
    place: Place<'a>,
    copies: Vec<Place<'a>>,
    /// The fewest events between two copies, and the event from which on the next one is made.
    spacing: u64,
    copy_from: u64,
    first: u64,
    last: u64,
}

impl<'a> Journey<'a> {
    /// Begins before the first event of a trace.
    ///
    /// # Errors
    /// The text has no header that this release can replay.
    pub fn new(tape: &'a Tape<'a>) -> Result<Journey<'a>, TravelError> {
        Journey::begin(tape, None)
    }

    /// Begins before the first event of a trace, to look for a predicate.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the predicate names an invariant that does not exist.
    pub fn looking_for(tape: &'a Tape<'a>, predicate: Predicate) -> Result<Journey<'a>, TravelError> {
        Journey::begin(tape, Some(predicate))
    }

    fn begin(tape: &'a Tape<'a>, predicate: Option<Predicate>) -> Result<Journey<'a>, TravelError> {
        let place = Place::start(tape, predicate.as_ref())?;
        let (first, last) = tape.events().unwrap_or_default();
        Ok(Journey {
            tape,
            predicate,
            place,
            copies: Vec::new(),
            spacing: COPY_EVERY,
            copy_from: first,
            first,
            last,
        })
    }

    /// Returns the number of the last event that has happened. Where a request fires timers (SIM.CLOCK ADVANCE), this may
    /// be later than the event that was asked for.
    pub fn event(&self) -> u64 {
        self.place.player.event()
    }

    /// Returns the number of the last event before the trace.
    pub fn first_event(&self) -> u64 {
        self.first
    }

    pub(super) fn tape(&self) -> &'a Tape<'a> {
        self.tape
    }

    /// Returns the number of the trace's last event.
    pub fn last_event(&self) -> u64 {
        self.last
    }

    /// Returns the lab at this place.
    pub fn lab(&self) -> &Lab {
        self.place.player.lab()
    }

    pub(super) fn place(&self) -> &Place<'a> {
        &self.place
    }

    /// Ends the journey here, and returns the lab: it goes on from here without the trace.
    pub fn into_lab(self) -> Lab {
        self.place.player.into_lab()
    }

    /// Returns how many copies are kept.
    pub fn copies(&self) -> usize {
        self.copies.len()
    }

    /// Goes to the moment after an event, forwards or backwards.
    ///
    /// # Errors
    /// The trace has no such event, or does not replay up to there.
    pub fn go_to(&mut self, event: u64) -> Result<(), TravelError> {
        if !(self.first..=self.last).contains(&event) {
            return Err(TravelError::NoSuchEvent { event, first: self.first, last: self.last });
        }
        self.jump_near(event)?;
        while self.event() < event && self.advance(event)? {}
        self.finish_event()?;
        if self.event() < event {
            // A trace that was cut off may have what timers led to, but not the input that tells how late it was.
            return Err(TravelError::NoSuchEvent { event, first: self.first, last: self.event() });
        }
        Ok(())
    }

    /// Goes to the last moment that can be reached.
    ///
    /// # Errors
    /// The trace does not replay up to there.
    pub fn go_to_end(&mut self) -> Result<(), TravelError> {
        while self.advance(u64::MAX)? {}
        Ok(())
    }

    /// Passes everything else that has the number of the last event: outputs, marks, the end.
    fn finish_event(&mut self) -> Result<(), TravelError> {
        Ok(self.place.go_to(self.event())?)
    }

    /// Goes forward by some events, at most to the end.
    ///
    /// # Errors
    /// As [`go_to`](Self::go_to).
    pub fn step(&mut self, events: u64) -> Result<(), TravelError> {
        self.go_to(self.event().saturating_add(events).min(self.last))
    }

    /// Goes back by some events, at most to the beginning.
    ///
    /// # Errors
    /// As [`go_to`](Self::go_to).
    pub fn back(&mut self, events: u64) -> Result<(), TravelError> {
        let from = self.event();
        let mut target = from.saturating_sub(events).max(self.first);
        self.go_to(target)?;
        // One request may cover several events.
        while self.event() >= from && target > self.first {
            target -= 1;
            self.go_to(target)?;
        }
        Ok(())
    }

    /// Goes forward to the next event that grants, renews or releases a lock. Returns false if there is none.
    ///
    /// # Errors
    /// As [`go_to`](Self::go_to).
    pub fn next_lock_event(&mut self) -> Result<bool, TravelError> {
        let from = self.event();
        while self.advance_one()? {
            let last_event = self.lab().with_history(|history| history.last_event);
            if last_event.is_some_and(|event| event > from) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes forward to the first moment at which the predicate holds. Returns false if it does not hold until the end.
    ///
    /// Looks after each event: a predicate that held for a moment is found, where a bisection could miss it.
    ///
    /// # Errors
    /// The trace does not replay, or the script of the predicate fails.
    pub fn find(&mut self) -> Result<bool, TravelError> {
        self.find_until(self.last)
    }

    /// Goes forward to the first moment at which the predicate holds, up to an event.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_until(&mut self, event: u64) -> Result<bool, TravelError> {
        loop {
            let Place { player, judge, .. } = &mut self.place;
            if let Some(judge) = judge
                && judge.holds(player.lab_mut()).map_err(TravelError::Script)?
            {
                return Ok(true);
            }
            if self.event() >= event || !self.advance_one()? {
                return Ok(false);
            }
        }
    }

    /// Goes forward to the next event. Returns false at the end.
    fn advance_one(&mut self) -> Result<bool, TravelError> {
        let from = self.event();
        while self.event() == from && self.advance(from + 1)? {}
        self.finish_event()?;
        Ok(self.event() > from)
    }

    /// Moves by one line or one timer, and keeps a copy now and then.
    fn advance(&mut self, event: u64) -> Result<bool, TravelError> {
        if self.event() >= self.copy_from {
            self.keep_copy();
        }
        Ok(self.place.step_to(event)?)
    }

    /// Moves to the last copy before the event, unless this place is nearer.
    fn jump_near(&mut self, event: u64) -> Result<(), TravelError> {
        let here = self.event();
        // A copy may stand in front of lines of its own event: one that is asked for is reached from the copy.
        let near = self.copies.iter().rev().find(|copy| copy.player.event() <= event);
        let is_back = event < here;
        match near {
            Some(copy) if is_back || copy.player.event() > here => {
                self.place = copy.copy().map_err(|why| TravelError::Uncopyable { event, why })?;
            }
            None if is_back => self.place = Place::start(self.tape, self.predicate.as_ref())?,
            _ => {}
        }
        Ok(())
    }

    /// Keeps a copy of this place, if its state can be copied. Drops others if there are too many.
    fn keep_copy(&mut self) {
        let event = self.event();
        let Ok(copy) = self.place.copy() else { return };
        let weight = weight(self.lab());
        // The more there is to copy, the fewer copies.
        self.copy_from = event + self.spacing.max(weight as u64 / BYTES_PER_EVENT);
        self.copies.push(copy);
        if self.copies.len() > MAX_COPIES || self.copies.len() * weight > MAX_BYTES {
            let mut index = 0;
            self.copies.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.spacing *= 2;
        }
    }

    /// Returns the lines of the trace that made this moment what it is: the last input with its outputs, or the outputs of
    /// a timer.
    pub fn lines(&self) -> impl Iterator<Item = &'a str> {
        let (tape, event) = (self.tape, self.event());
        let (row, led_to) = self.place.input;
        let has_input = event <= led_to;
        let rows =
            (row..self.place.player.at()).filter(move |row| has_input || tape.rows()[*row].event >= event);
        rows.map(|row| tape.text(row))
    }
}

/// Returns about how many bytes a copy of a lab takes.
fn weight(lab: &Lab) -> usize {
    let nodes = lab.world().nodes().iter();
    nodes
        .map(|node| {
            let data = node.store.dbs.iter().flat_map(|db| db.iter());
            data.map(|(_, key, entry)| key.len() + entry.value.memory_bytes(5)).sum::<usize>()
                + node.sessions.len() * CLIENT_BYTES
        })
        .sum()
}
