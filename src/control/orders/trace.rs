//! SIM.TRACE: the run written to a file, to be replayed.

use super::super::words::{SimError, Words, state};
use super::{Answer, World};

pub const USAGE: &[&str] =
    &["SIM.TRACE START <file>", "SIM.TRACE STOP", "SIM.TRACE MARK <text>", "SIM.TRACE DIGEST"];

#[derive(Clone, Debug, PartialEq)]
pub enum TraceOrder {
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

impl TraceOrder {
    pub fn parse(words: &mut Words) -> Result<TraceOrder, SimError> {
        Ok(match &words.word("START, STOP, MARK or DIGEST")?.to_ascii_uppercase()[..] {
            b"START" => TraceOrder::Start(words.text("a file")?),
            b"STOP" => TraceOrder::Stop,
            b"MARK" => TraceOrder::Mark(words.word("a text")?.to_vec()),
            b"DIGEST" => TraceOrder::Digest,
            _ => return Err(words.not_known()),
        })
    }
}

impl World {
    pub(super) fn obey_trace(&mut self, order: TraceOrder) -> Result<Answer, SimError> {
        Ok(match order {
            TraceOrder::Start(file) => {
                if self.is_traced() {
                    return Err(state("a trace is being written already: SIM.TRACE STOP ends it"));
                }
                if self.nodes.iter().any(|node| node.store.dbs.iter().any(|db| !db.is_empty())) {
                    return Err(state("a trace begins without keys: SIM.RUN RESET removes them"));
                }
                self.start_trace();
                self.trace_file = Some(TraceFile::Open(file));
                Answer::Ok
            }
            TraceOrder::Stop => {
                if !self.is_traced() {
                    return Err(state("no trace is being written"));
                }
                self.trace_file = Some(TraceFile::Close);
                Answer::Ok
            }
            TraceOrder::Mark(text) => {
                self.mark(&text);
                Answer::Ok
            }
            TraceOrder::Digest => self.digest().into(),
        })
    }
}
