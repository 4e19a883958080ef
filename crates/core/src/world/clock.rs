//! The one clock of a world.

use crate::store::Now;

/// How a world's clock follows the driver's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockMode {
    /// As fast as the driver's.
    Real,
    /// This many times as fast.
    Rate(f64),
    /// Only when told.
    Manual,
}

/// Monotonic time since the world began, and Unix time at a fixed distance from it.
#[derive(Clone, Debug)]
pub struct Clock {
    mode: ClockMode,
    now: Now,
    /// The driver's time and this clock's when the mode was chosen, in µs.
    since: (u64, u64),
    /// The driver's time when it was last looked at.
    elapsed_us: u64,
}

impl Clock {
    pub fn new(mode: ClockMode, wall_start_ms: i64) -> Clock {
        Clock { mode, now: Now { mono_us: 0, wall_offset_ms: wall_start_ms }, since: (0, 0), elapsed_us: 0 }
    }

    pub fn now(&self) -> Now {
        self.now
    }

    pub fn mode(&self) -> ClockMode {
        self.mode
    }

    /// From here on time goes otherwise; what the clock shows stays.
    pub fn set_mode(&mut self, mode: ClockMode) {
        self.mode = mode;
        self.since = (self.elapsed_us, self.now.mono_us);
    }

    /// Returns where this clock is to be when the driver's has come to `elapsed_us`; `None` on a manual clock.
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

    /// Returns when the driver's clock brings this one to `mono_us`; `None` if it never does.
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

    /// Time never goes back.
    pub fn move_to(&mut self, mono_us: u64) {
        self.now.mono_us = self.now.mono_us.max(mono_us);
    }
}
