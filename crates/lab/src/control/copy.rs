//! Copies of a lab: its world, and everything that a test has done to it.

use std::rc::Rc;

use super::{Lab, Staging};
use redlatch_core::stages::Stages;
use redlatch_core::world::ClockMode;

impl Lab {
    /// Lets the clock stand still from here on: only SIM.CLOCK moves it.
    pub fn stand_still(&mut self) {
        self.world.clock_mut().set_mode(ClockMode::Manual);
    }

    /// Returns a copy, which goes on as this lab does. It opens no files: SIM.TRACE START is refused there.
    ///
    /// # Errors
    ///
    /// Why a copy would not go on as this lab does.
    pub fn copy(&self) -> Result<Lab, &'static str> {
        if let Some(why) = self.world.uncopyable() {
            return Err(why);
        }
        let staging = Rc::new(Staging::clone(&self.staging));
        let stages: Rc<dyn Stages> = staging.clone();
        Ok(Lab {
            world: self.world.copy(stages),
            staging,
            seed: self.seed,
            elapsed_us: self.elapsed_us,
            is_behind: self.is_behind,
            snapshots: self.snapshots.clone(),
            registers: self.registers.clone(),
            command_jump_ms: self.command_jump_ms,
            has_command: self.has_command,
            command_stands: self.command_stands.clone(),
            ask_command: None,
            checks: self.checks.clone(),
            findings: self.findings.clone(),
            kinds: self.kinds.clone(),
            judges_owners: self.judges_owners,
            keeps_history: self.keeps_history,
            awaits: self.awaits.clone(),
            recorder: self.recorder.clone(),
            may_have_resumed: self.may_have_resumed,
            keeps_old_clock: self.keeps_old_clock,
            open_trace: None,
            trace_ends: self.trace_ends,
        })
    }
}
