//! The state of a lab as lines of words, and back: what a trace that begins in the middle of a run has.
//!
//! When a trace begins, the lab [begins anew](Lab::begin_anew) and takes its own lines, as a replay does. So both go on from the
//! same state, down to the order of hash tables and of timers with the same deadline.

use super::commands::run::Register;
use super::gates::Gate;
use super::rules::Rule;
use super::{Await, Control, Due, Lab};
use redlatch_core::image::{Reader, Words};
use redlatch_core::world::World;

/// The first and the last line.
const BEGIN: &str = "BEGIN";
const END: &str = "END";

impl Lab {
    /// Returns the lines, in the order in which they have to be taken; none if there is no state.
    pub(super) fn image(&self) -> Vec<Vec<Vec<u8>>> {
        let mut lines = self.world.image();
        self.staging.control.borrow().image(&mut lines);
        for Await { conn, gate, count, deadline_us } in &self.awaits {
            let line = Words::about("AWAIT").value(conn.node).value(conn.session.number);
            lines.push(line.value(gate).value(count).option(*deadline_us));
        }
        for (key, register) in &self.registers {
            let (value, token) = register.parts();
            lines.push(Words::about("REGISTER").word(key).word(&value).value(token));
        }
        for (name, snapshot) in &self.snapshots {
            let begin = Words::about("SNAPSHOT").word(name.as_bytes());
            lines.extend(snapshot.image(&self.world, &begin));
        }
        if let Some(why) = &self.command_stands {
            lines.push(Words::about("COMMAND").word(why.as_bytes()));
        }
        if self.counts_costs() {
            lines.push(Words::about("COSTS"));
        }
        if lines.is_empty() {
            return Vec::new();
        }
        let all = [Words::about(BEGIN)].into_iter().chain(lines).chain([Words::about(END)]);
        all.map(Words::finish).collect()
    }

    /// Takes a line. Returns `None` if it is malformed.
    pub(crate) fn take_image(&mut self, words: &[&[u8]]) -> Option<()> {
        let mut line = Reader::new(words);
        match line.word()? {
            b"BEGIN" => self.begin_anew(),
            b"END" => {
                self.world.finish_image();
                self.reset_checks();
                self.refresh_interest();
            }
            b"AWAIT" => {
                let conn = self.world.conn(line.value()?, line.value()?)?;
                let (gate, count, deadline_us) = (line.value()?, line.value()?, line.option()?);
                self.awaits.push(Await { conn, gate, count, deadline_us });
            }
            b"REGISTER" => {
                let (key, value) = (line.word()?.to_vec(), line.word()?.to_vec());
                self.registers.insert(key, Register::new(value, line.value()?));
            }
            b"SNAPSHOT" => {
                self.snapshots.entry(line.text()?).or_default().take_image(&self.world, &mut line)?;
            }
            b"COMMAND" => self.command_stands = Some(line.text()?).filter(|why| !why.is_empty()),
            b"COSTS" => self.count_costs(true),
            what @ (b"RULE" | b"HIT" | b"RULES" | b"GATE" | b"TICKET" | b"LEFT" | b"GATES" | b"RELEASE"
            | b"START") => {
                self.staging.control.borrow_mut().take_image(what, &mut line, &self.world)?;
            }
            what => self.world.take_image(what, &mut line)?,
        }
        Some(())
    }

    /// Returns why the lines would not bring back this state; `None`: they would.
    pub(crate) fn untraceable(&self) -> Option<&'static str> {
        let control = self.staging.control.borrow();
        let nodes = self.world.nodes();
        let is_lost_rule =
            |rule: &Rule| Rule::from_text(rule.to_string().as_bytes(), nodes.len()).as_ref() != Some(rule);
        let is_lost_gate = |gate: &Gate| {
            let read = Gate::from_text(gate.to_string().as_bytes(), nodes.len());
            read.is_none_or(|read| (read.matching, read.at) != (gate.matching.clone(), gate.at))
        };
        let found = [
            ("a running script", nodes.iter().any(|node| node.scripts.is_running())),
            (
                "a fault rule whose arguments are longer than 64 bytes",
                control.rules.iter().any(|active| is_lost_rule(&active.rule)),
            ),
            (
                "a gate whose arguments are longer than 64 bytes",
                control.gates.iter().any(|active| is_lost_gate(&active.gate)),
            ),
        ];
        found.into_iter().find(|(_, is_there)| *is_there).map(|(what, _)| what)
    }
}

impl Control {
    fn image(&self, lines: &mut Vec<Words>) {
        self.rules.image(lines);
        self.gates.image(lines);
        lines.extend(self.due().map(|(due_ms, due)| match due {
            Due::Release(ticket) => Words::about("RELEASE").value(due_ms).value(ticket),
            Due::Start(node) => Words::about("START").value(due_ms).value(node),
        }));
    }

    fn take_image(&mut self, what: &[u8], line: &mut Reader, world: &World) -> Option<()> {
        match what {
            b"RELEASE" => self.arm(line.value()?, Due::Release(line.value()?)),
            b"START" => {
                let (due_ms, node) = (line.value()?, line.value()?);
                world.nodes().get::<usize>(node)?;
                self.arm(due_ms, Due::Start(node));
            }
            b"RULE" | b"HIT" | b"RULES" => self.rules.take_image(what, line, world.nodes().len())?,
            _ => self.gates.take_image(what, line, world)?,
        }
        Some(())
    }
}
