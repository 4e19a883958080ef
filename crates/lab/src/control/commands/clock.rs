//! SIM.CLOCK: the one clock of all nodes, and the offset of each node's wall clock from it.

use super::super::Due;
use super::{Answer, Lab};
use crate::control::args::{Args, MAX_MS, SimError, quoted, syntax};
use crate::handle::{Advanced, PendingTimer};
use redlatch_core::store::Timer;
use redlatch_core::world::ClockMode;

pub const USAGE: &[&str] = &[
    "SIM.CLOCK NOW",
    "SIM.CLOCK MODE REAL | MANUAL | RATE <k>",
    "SIM.CLOCK ADVANCE <ms> | TO <wall_ms> | NEXT [<max_ms>]",
    "SIM.CLOCK JUMP <ms> [NODE <n> | COMMAND] | HOST",
    "SIM.CLOCK TIMERS [COUNT <n>]",
    "SIM.CLOCK SKEW",
];

/// A parsed SIM.CLOCK.
#[derive(Clone, Debug, PartialEq)]
pub enum ClockCommand {
    /// Returns the number of the last event, Unix time and monotonic time in ms, and the mode.
    Now,
    Mode(ClockMode),
    /// Advances the clock by this many ms; every timer on the way fires at its exact due time.
    Advance(u64),
    /// Advances the clock to this Unix time in ms.
    To(i64),
    /// Advances the clock to the next timer, by at most this many ms.
    Next(u64),
    /// Moves the wall clock of one node or of all nodes by this many ms. Keys whose end has then passed expire; nothing else fires.
    Jump {
        ms: i64,
        node: Option<usize>,
    },
    /// Moves the clock of the command that `redlatch run` has started, by this many ms.
    JumpCommand(i64),
    /// Moves the wall clocks of all nodes back to the host's time: undoes what ADVANCE, MODE and JUMP have done to them.
    JumpToHost,
    Timers {
        count: usize,
    },
    /// Returns the skew between clients' clocks and their node's, measured from the times in lock scripts.
    Skew,
}

impl ClockCommand {
    pub fn parse(args: &mut Args) -> Result<ClockCommand, SimError> {
        Ok(
            match &args.required("NOW, MODE, ADVANCE, TO, NEXT, JUMP, TIMERS or SKEW")?.to_ascii_uppercase()[..]
            {
                b"NOW" => ClockCommand::Now,
                b"MODE" => ClockCommand::Mode(parse_mode(args)?),
                b"ADVANCE" if args.take("TO") => ClockCommand::To(args.ms("a Unix time in ms")? as i64),
                b"ADVANCE" if args.take("NEXT") => parse_next(args)?,
                b"ADVANCE" => ClockCommand::Advance(args.ms("the time to advance by, in ms")?),
                b"TO" => ClockCommand::To(args.ms("a Unix time in ms")? as i64),
                b"NEXT" => parse_next(args)?,
                b"JUMP" if args.take("HOST") => ClockCommand::JumpToHost,
                b"JUMP" => {
                    let ms = args.int("the jump in ms", -MAX_MS, MAX_MS)?;
                    if args.take("COMMAND") {
                        return Ok(ClockCommand::JumpCommand(ms));
                    }
                    let node = match args.take("NODE") {
                        true => Some(args.int("the number of a node", 0, i64::MAX)? as usize),
                        false => None,
                    };
                    ClockCommand::Jump { ms, node }
                }
                b"TIMERS" => ClockCommand::Timers {
                    count: match args.take("COUNT") {
                        true => args.int("COUNT", 1, i64::MAX)? as usize,
                        false => 100,
                    },
                },
                b"SKEW" => ClockCommand::Skew,
                _ => return Err(args.not_known()),
            },
        )
    }
}

fn parse_next(args: &mut Args) -> Result<ClockCommand, SimError> {
    Ok(ClockCommand::Next(match args.is_empty() {
        true => MAX_MS as u64,
        false => args.ms("the most to advance by, in ms")?,
    }))
}

fn parse_mode(args: &mut Args) -> Result<ClockMode, SimError> {
    Ok(match &args.required("REAL, MANUAL or RATE")?.to_ascii_uppercase()[..] {
        b"REAL" => ClockMode::Real,
        b"MANUAL" => ClockMode::Manual,
        b"RATE" => {
            let arg = args.required("a rate")?;
            let rate = std::str::from_utf8(arg).ok().and_then(|arg| arg.parse::<f64>().ok());
            match rate {
                Some(rate) if rate.is_finite() && rate > 0.0 && rate <= 1e6 => ClockMode::Rate(rate),
                _ => return Err(syntax(format!("{} is not a rate: a positive number", quoted(arg)))),
            }
        }
        _ => return Err(args.not_known()),
    })
}

impl From<Advanced> for Answer {
    fn from(advanced: Advanced) -> Answer {
        vec![
            advanced.event.into(),
            Answer::Int(advanced.wall_ms),
            advanced.fired.into(),
            advanced.expired.into(),
        ]
        .into()
    }
}

impl Lab {
    pub(super) fn apply_clock(&mut self, command: ClockCommand) -> Result<Answer, SimError> {
        let now = self.world.clock().now();
        match command {
            ClockCommand::Now => {
                let mode = match self.world.clock().mode() {
                    ClockMode::Real => "REAL".to_owned(),
                    ClockMode::Manual => "MANUAL".to_owned(),
                    ClockMode::Rate(rate) => format!("RATE {rate}"),
                };
                Ok(vec![
                    self.world.events().into(),
                    Answer::Int(now.wall_ms()),
                    now.mono_ms().into(),
                    mode.into(),
                ]
                .into())
            }
            ClockCommand::Mode(mode) => {
                self.world.clock_mut().set_mode(mode);
                Ok(vec![self.world.events().into()].into())
            }
            ClockCommand::Advance(ms) => Ok(self.advance_and_count(ms).into()),
            ClockCommand::To(wall_ms) => Ok(self.advance_to_wall(wall_ms)?.into()),
            ClockCommand::Next(max_ms) => Ok(self.advance_to_next(max_ms).into()),
            ClockCommand::Jump { ms, node } => {
                let wall_ms = match node {
                    Some(node) => {
                        self.check_node(node)?;
                        self.world.jump(node, ms)
                    }
                    None if self.keeps_old_clock => (0..self.world.nodes().len())
                        .map(|node| self.world.jump(node, ms))
                        .last()
                        .unwrap_or(0),
                    None => self.world.jump_all(ms),
                };
                Ok(vec![self.world.events().into(), Answer::Int(wall_ms)].into())
            }
            ClockCommand::JumpToHost => {
                self.jump_to_host();
                let wall_ms = self.world.clock().now().wall_ms();
                Ok(vec![self.world.events().into(), Answer::Int(wall_ms)].into())
            }
            ClockCommand::JumpCommand(ms) => {
                if let Some(why) = &self.command_stands {
                    return Err(super::state(why.clone()));
                }
                if !self.has_command {
                    return Err(super::state("there is no command: redlatch run starts one"));
                }
                self.command_jump_ms = Some(self.command_jump_ms.unwrap_or(0).saturating_add(ms));
                Ok(vec![self.world.events().into(), Answer::Int(now.wall_ms().saturating_add(ms))].into())
            }
            ClockCommand::Timers { count } => {
                let timers = self.pending_timers(count).into_iter();
                let row = |timer: PendingTimer| {
                    vec![timer.due_ms.into(), timer.kind.into(), Answer::Bytes(timer.what)].into()
                };
                Ok(timers.map(row).collect::<Vec<_>>().into())
            }
            ClockCommand::Skew => Ok(self.skews().into()),
        }
    }

    /// Moves the wall clocks of all nodes back to the host's time.
    pub(crate) fn jump_to_host(&mut self) {
        self.world.nodes_mut().for_each(|node| node.wall_jump_ms = 0);
        let ahead_ms = self.world.clock().ahead_ms(self.elapsed_us);
        self.world.jump_all(ahead_ms.saturating_neg());
    }

    /// Advances the clock to a Unix time in ms; fails if that time has passed.
    pub(crate) fn advance_to_wall(&mut self, wall_ms: i64) -> Result<Advanced, SimError> {
        let now_ms = self.world.clock().now().wall_ms();
        match u64::try_from(wall_ms.saturating_sub(now_ms)) {
            Ok(ms) => Ok(self.advance_and_count(ms)),
            Err(_) => Err(super::state(format!(
                "it is {now_ms} already: time does not go back, but a wall clock can JUMP"
            ))),
        }
    }

    /// Advances the clock to the next timer, but by at most `max_ms`.
    pub(crate) fn advance_to_next(&mut self, max_ms: u64) -> Advanced {
        let now_ms = self.world.clock().now().mono_ms();
        let until_next = self.next_due_ms().map(|due_ms| due_ms.saturating_sub(now_ms));
        self.advance_and_count(until_next.unwrap_or(0).min(max_ms))
    }

    /// Advances the clock and counts the timers fired and the keys expired.
    pub(crate) fn advance_and_count(&mut self, ms: u64) -> Advanced {
        let expired = |lab: &Lab| lab.world.nodes().iter().map(|node| node.stats.expired_keys).sum::<u64>();
        let before = expired(self);
        let fired = self.advance(ms);
        Advanced {
            event: self.world.events(),
            wall_ms: self.world.clock().now().wall_ms(),
            fired,
            expired: expired(self) - before,
        }
    }

    /// Lists the next timers, earliest first: due time (monotonic, ms), kind, subject.
    pub(crate) fn pending_timers(&self, count: usize) -> Vec<PendingTimer> {
        let mut timers: Vec<(u64, &'static str, Vec<u8>)> = Vec::new();
        for (due_ms, due) in self.staging.control.borrow().due() {
            timers.push(match due {
                Due::Release(ticket) => (due_ms, "ticket", ticket.to_string().into_bytes()),
                Due::Start(node) => (due_ms, "start", node.to_string().into_bytes()),
            });
        }
        for node in self.world.nodes() {
            for (due_ms, timer) in node.store.timers.iter() {
                timers.push(match timer {
                    Timer::Key { db, slot } => {
                        let key = node.store.dbs[db as usize].key(slot).unwrap_or_default();
                        (due_ms, "key", key.to_vec())
                    }
                    Timer::Blocked { slot } | Timer::Claim { slot } => {
                        let client = node.sessions.at(slot).map(|session| session.id.number);
                        let kind = if matches!(timer, Timer::Claim { .. }) { "claim" } else { "blocked" };
                        (due_ms, kind, client.unwrap_or(0).to_string().into_bytes())
                    }
                    Timer::Sentinel => (due_ms, "sentinel", node.index.to_string().into_bytes()),
                    Timer::Unpause => (due_ms, "unpause", Vec::new()),
                    Timer::Cluster => (due_ms, "cluster", node.index.to_string().into_bytes()),
                });
            }
        }
        timers.sort();
        let shown = timers.into_iter().take(count);
        shown.map(|(due_ms, kind, what)| PendingTimer { due_ms, kind, what }).collect()
    }

    fn skews(&self) -> Vec<Answer> {
        let watches = self.staging.watches.borrow();
        let all = watches.iter().flat_map(|watch| watch.skews.iter());
        all.map(|(client, skew)| {
            vec![Answer::Bytes(client.to_vec()), Answer::Int(skew.last_ms), skew.samples.into()].into()
        })
        .collect()
    }
}
