//! Schedules that show how distributed locks fail. They are text files, in the language of every other
//! [schedule](crate::schedule).

use crate::schedule::{NoFiles, Schedule, ScheduleError};

/// A built-in schedule.
#[derive(Clone, Copy, Debug)]
pub struct Demo {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! demos {
    ($($name:literal),* $(,)?) => {
        &[$(Demo { name: $name, text: include_str!(concat!("schedules/", $name, ".txt")) }),*]
    };
}

/// All built-in schedules.
pub const DEMOS: &[Demo] = demos![
    "k1", "k1f", "k2", "k3", "k4", "k5", "a1", "a2", "r1", "r2", "r3", "f1", "f2", "f3", "f4", "s1", "c1",
    "c2", "n1"
];

impl Demo {
    /// Returns the demo with this name, in upper or lower case.
    pub fn find(name: &str) -> Option<Demo> {
        DEMOS.iter().copied().find(|demo| demo.name.eq_ignore_ascii_case(name))
    }

    /// Returns the title: the first line of the schedule.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// Reads the schedule.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn schedule(&self) -> Result<Schedule, ScheduleError> {
        Schedule::parse(&format!("{}.txt", self.name), self.text.as_bytes(), &mut NoFiles)
    }
}
