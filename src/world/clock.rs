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
}

impl Clock {
    pub fn new(mode: ClockMode, wall_start_ms: i64) -> Clock {
        Clock { mode, now: Now { mono_us: 0, wall_offset_ms: wall_start_ms } }
    }

    pub fn now(&self) -> Now {
        self.now
    }

    pub fn mode(&self) -> ClockMode {
        self.mode
    }

    /// Where this clock is to be when the driver's has come to `elapsed_us`; `None` on a manual clock.
    pub(super) fn target_us(&self, elapsed_us: u64) -> Option<u64> {
        match self.mode {
            ClockMode::Real => Some(elapsed_us),
            ClockMode::Rate(rate) => Some((elapsed_us as f64 * rate) as u64),
            ClockMode::Manual => None,
        }
    }

    /// When the driver's clock brings this one to `mono_us`; `None` if it never does.
    pub(super) fn elapsed_us_at(&self, mono_us: u64) -> Option<u64> {
        match self.mode {
            ClockMode::Real => Some(mono_us),
            ClockMode::Rate(rate) => Some((mono_us as f64 / rate).ceil() as u64),
            ClockMode::Manual => None,
        }
    }

    /// Time never goes back.
    pub(super) fn move_to(&mut self, mono_us: u64) {
        self.now.mono_us = self.now.mono_us.max(mono_us);
    }
}
