//! SIM.RUN: the run as a whole, snapshots of its data, and a store that checks fencing tokens.

use super::{Answer, Lab};
use crate::control::args::{Args, SimError, quoted, unknown};
use redlatch_core::world::snapshot::Snapshot;

pub const USAGE: &[&str] = &[
    "SIM.RUN INFO",
    "SIM.RUN SEED <seed>",
    "SIM.RUN RESET [SEED <seed>]",
    "SIM.RUN SNAPSHOT <name>",
    "SIM.RUN RESTORE <name>",
    "SIM.RUN STORE WRITE <key> <value> [TOKEN <token>] [MODE NONE | GE | GT]",
    "SIM.RUN STORE READ <key>",
];

/// Which writes the fenced store accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// All writes.
    None,
    /// Writes with a token at least as large as the largest seen.
    GreaterOrEqual,
    /// Writes with a token larger than the largest seen.
    Greater,
}

/// A parsed SIM.RUN.
#[derive(Clone, Debug, PartialEq)]
pub enum RunCommand {
    Info,
    /// Seeds the random streams anew.
    Seed(u64),
    /// Removes all data, rules, gates and states; makes all nodes running masters; keeps connections. With a seed: seeds anew.
    Reset(Option<u64>),
    /// Saves the data of all nodes under a name.
    Snapshot(String),
    /// Restores the data of a snapshot, with the TTLs of that time.
    Restore(String),
    /// Writes to the fenced store, a resource that clients protect with locks. Returns 1 if it accepts the write.
    StoreWrite {
        key: Vec<u8>,
        value: Vec<u8>,
        token: u64,
        fence: Fence,
    },
    StoreRead(Vec<u8>),
}

impl RunCommand {
    pub fn parse(args: &mut Args) -> Result<RunCommand, SimError> {
        Ok(match &args.required("INFO, SEED, RESET, SNAPSHOT, RESTORE or STORE")?.to_ascii_uppercase()[..] {
            b"INFO" => RunCommand::Info,
            b"SEED" => RunCommand::Seed(args.int("a seed", 0, i64::MAX)? as u64),
            b"RESET" => RunCommand::Reset(match args.take("SEED") {
                true => Some(args.int("a seed", 0, i64::MAX)? as u64),
                false => None,
            }),
            b"SNAPSHOT" => RunCommand::Snapshot(args.text("a name")?),
            b"RESTORE" => RunCommand::Restore(args.text("a name")?),
            b"STORE" => match &args.required("WRITE or READ")?.to_ascii_uppercase()[..] {
                b"WRITE" => parse_write(args)?,
                b"READ" => RunCommand::StoreRead(args.required("a key")?.to_vec()),
                _ => return Err(args.not_known()),
            },
            _ => return Err(args.not_known()),
        })
    }
}

fn parse_write(args: &mut Args) -> Result<RunCommand, SimError> {
    let (key, value) = (args.required("a key")?.to_vec(), args.required("a value")?.to_vec());
    let (mut token, mut fence) = (0, None);
    while let Some(arg) = args.pop() {
        match &arg.to_ascii_uppercase()[..] {
            b"TOKEN" => token = args.int("a token", 0, i64::MAX)? as u64,
            b"MODE" => {
                let modes = [("NONE", Fence::None), ("GE", Fence::GreaterOrEqual), ("GT", Fence::Greater)];
                fence = Some(args.one_of("a mode", &modes)?);
            }
            _ => return Err(args.not_known()),
        }
    }
    let by_token = if token > 0 { Fence::GreaterOrEqual } else { Fence::None };
    Ok(RunCommand::StoreWrite { key, value, token, fence: fence.unwrap_or(by_token) })
}

/// A value of the fenced store, and the largest token of an accepted write.
#[derive(Clone, Debug, Default)]
pub struct Register {
    value: Vec<u8>,
    token: u64,
}

impl Register {
    /// Creates a register with a value and a token.
    pub(crate) fn new(value: Vec<u8>, token: u64) -> Register {
        Register { value, token }
    }

    /// Returns the value and the token.
    pub(crate) fn parts(&self) -> (Vec<u8>, u64) {
        (self.value.clone(), self.token)
    }
}

impl Lab {
    pub(super) fn apply_run(&mut self, command: RunCommand) -> Result<Answer, SimError> {
        Ok(match command {
            RunCommand::Info => {
                let now = self.world.clock().now();
                Answer::facts([
                    ("version", env!("CARGO_PKG_VERSION").into()),
                    ("seed", self.seed.into()),
                    ("event", self.world.events().into()),
                    ("wall_ms", Answer::Int(now.wall_ms())),
                    ("mono_ms", now.mono_ms().into()),
                    ("nodes", (self.world.nodes().len() as u64).into()),
                    ("digest", self.world.digest().into()),
                ])
            }
            RunCommand::Seed(seed) => {
                self.reseed(seed);
                Answer::Ok
            }
            RunCommand::Reset(seed) => {
                self.reset();
                if let Some(seed) = seed {
                    self.reseed(seed);
                }
                Answer::Ok
            }
            RunCommand::Snapshot(name) => {
                let snapshot = Snapshot::of(&self.world);
                self.snapshots.insert(name, snapshot);
                Answer::Ok
            }
            RunCommand::Restore(name) => {
                let snapshot = self
                    .snapshots
                    .remove(&name)
                    .ok_or_else(|| unknown(format!("there is no snapshot {}", quoted(name.as_bytes()))))?;
                snapshot.restore(&mut self.world);
                self.snapshots.insert(name, snapshot);
                Answer::Ok
            }
            RunCommand::StoreWrite { key, value, token, fence } => {
                let register = self.registers.entry(key).or_default();
                let takes = match fence {
                    Fence::None => true,
                    Fence::GreaterOrEqual => token >= register.token,
                    Fence::Greater => token > register.token,
                };
                if takes {
                    *register = Register { value, token: token.max(register.token) };
                }
                Answer::Int(takes as i64)
            }
            RunCommand::StoreRead(key) => match self.registers.get(&key) {
                Some(register) => vec![Answer::Bytes(register.value.clone()), register.token.into()].into(),
                None => Vec::new().into(),
            },
        })
    }
}
