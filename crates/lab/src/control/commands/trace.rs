//! SIM.TRACE: records the run to a file, for a replay.

use super::{Answer, Lab};
use crate::control::args::{Args, SimError, state};

pub const USAGE: &[&str] =
    &["SIM.TRACE START <file>", "SIM.TRACE STOP", "SIM.TRACE MARK <text>", "SIM.TRACE DIGEST"];

/// A parsed SIM.TRACE.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceCommand {
    /// Records everything to this file from now on.
    Start(String),
    Stop,
    /// Adds a comment to the trace.
    Mark(Vec<u8>),
    /// Returns a digest of the state of all nodes.
    Digest,
}

/// Opens the file of a trace for the driver, which writes it. The error says why it cannot be written.
pub type OpenTrace = Box<dyn FnMut(&str) -> Result<(), String>>;

impl TraceCommand {
    pub fn parse(args: &mut Args) -> Result<TraceCommand, SimError> {
        Ok(match &args.required("START, STOP, MARK or DIGEST")?.to_ascii_uppercase()[..] {
            b"START" => TraceCommand::Start(args.text("a file")?),
            b"STOP" => TraceCommand::Stop,
            b"MARK" => TraceCommand::Mark(args.required("a text")?.to_vec()),
            b"DIGEST" => TraceCommand::Digest,
            _ => return Err(args.not_known()),
        })
    }
}

impl Lab {
    /// Begins a trace. Fails if a script is running, or another trace is being written.
    pub(crate) fn begin_trace(&mut self) -> Result<(), SimError> {
        self.check_may_trace()?;
        self.start_trace();
        Ok(())
    }

    fn check_may_trace(&self) -> Result<(), SimError> {
        if self.is_traced() {
            return Err(state("a trace is being written already: SIM.TRACE STOP ends it"));
        }
        if let Some(what) = self.untraceable() {
            return Err(state(format!("a trace cannot begin with {what}: SIM.RUN RESET ends it")));
        }
        Ok(())
    }

    pub(super) fn apply_trace(&mut self, command: TraceCommand) -> Result<Answer, SimError> {
        Ok(match command {
            TraceCommand::Start(file) => {
                self.check_may_trace()?;
                let Some(open) = &mut self.open_trace else {
                    return Err(state(
                        "clients may write traces only below the directory that --trace-dir names",
                    ));
                };
                open(&file).map_err(state)?;
                self.start_trace();
                Answer::Ok
            }
            TraceCommand::Stop => {
                if !self.is_traced() {
                    return Err(state("no trace is being written"));
                }
                self.trace_ends = true;
                Answer::Ok
            }
            TraceCommand::Mark(text) => {
                self.mark(&text);
                Answer::Ok
            }
            TraceCommand::Digest => self.world.digest().into(),
        })
    }
}
