//! SIM.TRACE: the run written to a file, to be replayed.

use super::{Answer, Lab};
use crate::control::words::{SimError, Words, state};

pub const USAGE: &[&str] =
    &["SIM.TRACE START <file>", "SIM.TRACE STOP", "SIM.TRACE MARK <text>", "SIM.TRACE DIGEST"];

#[derive(Clone, Debug, PartialEq)]
pub enum TraceCommand {
    /// From here on everything is written to a file. There may be no keys.
    Start(String),
    Stop,
    /// A remark in the trace.
    Mark(Vec<u8>),
    /// The hash over the state of all nodes.
    Digest,
}

/// What the driver, who has the files, is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceFile {
    Open(String),
    Close,
}

impl TraceCommand {
    pub fn parse(words: &mut Words) -> Result<TraceCommand, SimError> {
        Ok(match &words.word("START, STOP, MARK or DIGEST")?.to_ascii_uppercase()[..] {
            b"START" => TraceCommand::Start(words.text("a file")?),
            b"STOP" => TraceCommand::Stop,
            b"MARK" => TraceCommand::Mark(words.word("a text")?.to_vec()),
            b"DIGEST" => TraceCommand::Digest,
            _ => return Err(words.not_known()),
        })
    }
}

impl Lab {
    /// Begins a trace. There may be no keys, and no other trace.
    pub(crate) fn begin_trace(&mut self) -> Result<(), SimError> {
        if self.is_traced() {
            return Err(state("a trace is being written already: SIM.TRACE STOP ends it"));
        }
        if self.world.nodes().iter().any(|node| node.store.dbs.iter().any(|db| !db.is_empty())) {
            return Err(state("a trace begins without keys: SIM.RUN RESET removes them"));
        }
        self.start_trace();
        Ok(())
    }

    pub(super) fn apply_trace(&mut self, command: TraceCommand) -> Result<Answer, SimError> {
        Ok(match command {
            TraceCommand::Start(file) => {
                self.begin_trace()?;
                self.trace_file = Some(TraceFile::Open(file));
                Answer::Ok
            }
            TraceCommand::Stop => {
                if !self.is_traced() {
                    return Err(state("no trace is being written"));
                }
                self.trace_file = Some(TraceFile::Close);
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
