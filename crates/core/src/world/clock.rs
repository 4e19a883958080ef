//! The clock of a world.

use crate::store::Now;

/// How a world's clock follows the driver's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockMode {
    /// At the same speed.
    Real,
    /// At this multiple of its speed.
    Rate(f64),
    /// Not at all: a test moves the clock.
    Manual,
}

/// Monotonic time since the world began. Unix time is at a distance from it that only a test changes.
#[derive(Clone, Debug)]
pub struct Clock {
    mode: ClockMode,
    now: Now,
    /// The Unix time in ms at which the world began.
    start_ms: i64,
    /// The driver's time and this clock's time when the mode was set, in µs.
    since: (u64, u64),
    /// The driver's time at the last update, in µs.
    elapsed_us: u64,
}

impl Clock {
    /// Creates a clock that begins at the Unix time `wall_start_ms`.
    pub fn new(mode: ClockMode, wall_start_ms: i64) -> Clock {
        let now = Now { mono_us: 0, wall_offset_ms: wall_start_ms };
        Clock { mode, now, start_ms: wall_start_ms, since: (0, 0), elapsed_us: 0 }
    }

    /// Returns the Unix time in ms at which the world began.
    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }

    /// Sets the Unix time in ms at which the world began. The present time does not change.
    pub fn set_start_ms(&mut self, start_ms: i64) {
        self.start_ms = start_ms;
    }

    /// Moves Unix time by `ms`. Monotonic time does not change.
    pub(super) fn jump(&mut self, ms: i64) {
        self.now.wall_offset_ms = self.now.wall_offset_ms.saturating_add(ms);
    }

    /// Returns by how many ms Unix time is ahead of what it would be had the clock always followed the driver's in the
    /// present mode. `elapsed_us`: the driver's time. A manual clock would stand at the time at which the world began.
    pub fn ahead_ms(&self, elapsed_us: u64) -> i64 {
        let elapsed_us = match self.mode {
            ClockMode::Real => elapsed_us,
            ClockMode::Rate(rate) => (elapsed_us as f64 * rate) as u64,
            ClockMode::Manual => 0,
        };
        self.now.wall_ms().saturating_sub(self.start_ms.saturating_add((elapsed_us / 1000) as i64))
    }

    /// Returns the present time.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Returns how the clock follows the driver's clock.
    pub fn mode(&self) -> ClockMode {
        self.mode
    }

    /// Changes the mode. The clock continues from its present time.
    pub fn set_mode(&mut self, mode: ClockMode) {
        self.mode = mode;
        self.since = (self.elapsed_us, self.now.mono_us);
    }

    /// Returns the time in µs that this clock has to reach when the driver's clock is at `elapsed_us`, or `None` for a
    /// manual clock.
    pub fn target_us(&mut self, elapsed_us: u64) -> Option<u64> {
        self.elapsed_us = elapsed_us;
        let (elapsed_then_us, then_us) = self.since;
        let passed_us = elapsed_us.saturating_sub(elapsed_then_us);
        match self.mode {
            ClockMode::Real => Some(then_us + passed_us),
            ClockMode::Rate(rate) => Some(then_us + (passed_us as f64 * rate) as u64),
            ClockMode::Manual => None,
        }
    }

    /// Returns the driver's time in µs at which this clock reaches `mono_us`, or `None` if it never does.
    pub fn elapsed_us_at(&self, mono_us: u64) -> Option<u64> {
        let (elapsed_then_us, then_us) = self.since;
        let passed_us = mono_us.saturating_sub(then_us);
        match self.mode {
            ClockMode::Real => Some(elapsed_then_us.saturating_add(passed_us)),
            ClockMode::Rate(rate) => {
                Some(elapsed_then_us.saturating_add((passed_us as f64 / rate).ceil() as u64))
            }
            ClockMode::Manual => None,
        }
    }

    /// Moves the clock forward to `mono_us`. Time never goes back.
    pub fn move_to(&mut self, mono_us: u64) {
        self.now.mono_us = self.now.mono_us.max(mono_us);
    }
}
