//! SIM.GATE: holds requests, replies and messages, and releases them in any order.

use super::super::Await;
use super::super::gates::{Gate, Ticket};
use super::{Answer, Context, Lab};
use crate::control::args::{Args, SimError, quoted, state, unknown};
use redlatch_core::node::session::{TimeoutReply, Wait};
use redlatch_core::world::ConnId;

pub const USAGE: &[&str] = &[
    "SIM.GATE ADD <match> AT PRE | POST | PUSH [TIMES <n>] [LABEL <label>] [KEEP]",
    "SIM.GATE LIST",
    "SIM.GATE AWAIT <gate> [COUNT <n>] [TIMEOUT <real_ms>]",
    "SIM.GATE RELEASE <ticket> | <gate> | ALL [LAST]",
    "SIM.GATE STEP [<n>]",
    "SIM.GATE DEL <gate>",
    "  <match> is that of SIM.FAULT. Without KEEP a gate is removed when the connection that added it closes.",
];

/// A parsed SIM.GATE.
#[derive(Clone, Debug, PartialEq)]
pub enum GateCommand {
    /// Returns the number of the gate.
    Add(Gate),
    List,
    /// Waits until a gate holds `count` items, for at most `timeout_ms` of the driver's clock.
    Await {
        gate: String,
        count: usize,
        timeout_ms: Option<u64>,
    },
    Release {
        what: Released,
        last_first: bool,
    },
    /// Releases this many of the oldest tickets.
    Step(usize),
    /// Removes a gate and releases what it holds.
    Delete(String),
}

/// The tickets that SIM.GATE RELEASE names.
#[derive(Clone, Debug, PartialEq)]
pub enum Released {
    Ticket(u64),
    Gate(String),
    All,
}

impl GateCommand {
    pub fn parse(args: &mut Args, context: &Context) -> Result<GateCommand, SimError> {
        Ok(match &args.required("ADD, LIST, AWAIT, RELEASE, STEP or DEL")?.to_ascii_uppercase()[..] {
            b"ADD" => GateCommand::Add(Gate::parse(args, context.nodes)?),
            b"LIST" => GateCommand::List,
            b"AWAIT" => {
                let gate = args.text("a gate")?;
                let (mut count, mut timeout_ms) = (1, None);
                while let Some(arg) = args.pop() {
                    match &arg.to_ascii_uppercase()[..] {
                        b"COUNT" => count = args.int("COUNT", 1, i64::MAX)? as usize,
                        b"TIMEOUT" => timeout_ms = Some(args.ms("TIMEOUT in ms")?),
                        _ => return Err(args.not_known()),
                    }
                }
                GateCommand::Await { gate, count, timeout_ms }
            }
            b"RELEASE" => {
                let name = args.text("a ticket, a gate or ALL")?;
                let what = match name.strip_prefix(TICKET).and_then(|number| number.parse().ok()) {
                    Some(ticket) => Released::Ticket(ticket),
                    None if name.eq_ignore_ascii_case("ALL") => Released::All,
                    None => Released::Gate(name),
                };
                GateCommand::Release { what, last_first: args.take("LAST") }
            }
            b"STEP" => GateCommand::Step(match args.is_empty() {
                true => 1,
                false => args.int("how many", 1, i64::MAX)? as usize,
            }),
            b"DEL" => GateCommand::Delete(args.text("a gate")?),
            _ => return Err(args.not_known()),
        })
    }
}

/// The prefix of ticket names, which distinguishes them from the numbers of gates.
const TICKET: &str = "t";

fn name_of(ticket: u64) -> Answer {
    format!("{TICKET}{ticket}").into()
}

impl Lab {
    pub(super) fn apply_gate(
        &mut self,
        command: GateCommand,
        from: Option<ConnId>,
    ) -> Result<Answer, SimError> {
        match command {
            GateCommand::Add(gate) => {
                let gate = self.staging.control.borrow_mut().gates.add(gate, from);
                self.refresh_interest();
                Ok(gate.into())
            }
            GateCommand::List => {
                let control = self.staging.control.borrow();
                Ok(control.gates.tickets().map(|ticket| self.describe(ticket)).collect::<Vec<_>>().into())
            }
            GateCommand::Await { gate, count, timeout_ms } => {
                let gate = self.gate_named(&gate)?;
                let held: Vec<u64> = self.staging.control.borrow().gates.held_by(gate).collect();
                if held.len() >= count {
                    return Ok(held.into_iter().map(name_of).collect::<Vec<_>>().into());
                }
                let conn = from.ok_or_else(|| {
                    state(format!("the gate holds {} and not {count}, and nobody can wait here", held.len()))
                })?;
                let deadline_us =
                    timeout_ms.map(|ms| self.elapsed_us.saturating_add(ms.saturating_mul(1000)));
                self.world.node_mut(conn.node).block(
                    conn.session,
                    Wait::Gate,
                    &[],
                    Vec::new(),
                    None,
                    TimeoutReply::Null,
                );
                self.awaits.push(Await { conn, gate, count, deadline_us });
                Ok(Answer::Later)
            }
            GateCommand::Release { what, last_first } => {
                let mut tickets: Vec<u64> = match what {
                    Released::Ticket(ticket) => vec![ticket],
                    Released::Gate(name) => {
                        let gate = self.gate_named(&name)?;
                        self.staging.control.borrow().gates.held_by(gate).collect()
                    }
                    Released::All => self.held(),
                };
                if last_first {
                    tickets.reverse();
                }
                let known = tickets.iter().map(|&ticket| self.release(ticket)).filter(|&known| known).count();
                match known {
                    0 if tickets.len() == 1 => {
                        Err(unknown(format!("there is no ticket {TICKET}{}", tickets[0])))
                    }
                    _ => Ok((known as u64).into()),
                }
            }
            GateCommand::Step(count) => {
                let oldest: Vec<u64> = self.held().into_iter().take(count).collect();
                let released = oldest.into_iter().filter(|&ticket| self.release(ticket)).count();
                Ok((released as u64).into())
            }
            GateCommand::Delete(name) => {
                let gate = self.gate_named(&name)?;
                self.remove_gate(gate);
                Ok(Answer::Ok)
            }
        }
    }

    fn describe(&self, ticket: &Ticket) -> Answer {
        let gate = ticket.gate.map_or_else(|| "delay".to_owned(), |gate| gate.to_string());
        vec![
            name_of(ticket.id),
            gate.into(),
            ticket.conn.session.number.into(),
            ticket.at.name().into(),
            ticket.summary.clone().into(),
        ]
        .into()
    }

    fn gate_named(&self, name: &str) -> Result<u64, SimError> {
        let control = self.staging.control.borrow();
        control.gates.find(name).ok_or_else(|| {
            let why = match control.gates.has_left(name) {
                true => ": it was removed with the connection that added it, because it had no KEEP",
                false => "",
            };
            unknown(format!("there is no gate {}{why}", quoted(name.as_bytes())))
        })
    }

    /// Returns the tickets that gates hold, without those of delays, which end by themselves.
    fn held(&self) -> Vec<u64> {
        let control = self.staging.control.borrow();
        control.gates.tickets().filter(|ticket| ticket.gate.is_some()).map(|ticket| ticket.id).collect()
    }

    /// Removes a gate and releases what it holds.
    pub(crate) fn remove_gate(&mut self, gate: u64) {
        let held: Vec<u64> = {
            let mut control = self.staging.control.borrow_mut();
            control.gates.remove(gate);
            control.gates.held_by(gate).collect()
        };
        for ticket in held {
            self.release(ticket);
        }
        self.refresh_interest();
    }

    /// Answers the connections in SIM.GATE AWAIT whose tickets have arrived or whose timeout has passed.
    pub(crate) fn answer_awaits(&mut self) {
        for waiting in std::mem::take(&mut self.awaits) {
            let held: Vec<u64> = self.staging.control.borrow().gates.held_by(waiting.gate).collect();
            let is_late = waiting.deadline_us.is_some_and(|deadline_us| deadline_us <= self.elapsed_us);
            if held.len() < waiting.count && !is_late {
                self.awaits.push(waiting);
                continue;
            }
            let node = self.world.node_mut(waiting.conn.node);
            if node.unblock(waiting.conn.session).is_some() {
                let answer = Answer::List(held.into_iter().map(name_of).collect());
                node.write_reply(waiting.conn.session, |reply| answer.write(reply));
            }
        }
    }
}
