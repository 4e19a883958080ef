//! The state of a node as lines of words, and back: what a trace that begins in the middle of a run has of each node.
//!
//! A node that [begins anew](Node::begin_anew) and takes the lines of another becomes like it. So a recorded run does the
//! same when its trace begins: whatever depends on how the state came about (the order of a hash table, that of timers with
//! the same deadline) is then what the replay has too. Settings, and clients with their names and subscriptions, are not
//! part of the lines.

mod clients;
mod cluster;
mod data;
mod replication;
mod sentinel;

use super::states::{STATES, State};
use super::{Node, Pause, Session};
use crate::image::{Reader, Words, named};
use crate::store::Timer;

pub(crate) use data::{read_value, write_value};

impl Node {
    /// Returns the lines, in the order in which they have to be taken.
    pub fn image(&self) -> Vec<Words> {
        let mut lines = Vec::new();
        self.image_of_modes(&mut lines);
        self.image_of_users(&mut lines);
        self.image_of_data(&mut lines);
        self.image_of_replication(&mut lines);
        self.image_of_sentinel(&mut lines);
        self.image_of_clients(&mut lines);
        self.image_of_cluster(&mut lines);
        lines
    }

    /// Begins a line about something of this node.
    fn about(&self, what: &str) -> Words {
        Words::about(what).value(self.index)
    }

    /// Begins a line about something of a client.
    fn about_client(&self, what: &str, session: &Session) -> Words {
        self.about(what).value(session.id.number)
    }

    /// Takes a line; `what` is its first word. Returns `None` if it is malformed.
    pub fn take_image(&mut self, what: &[u8], line: &mut Reader) -> Option<()> {
        match what {
            b"PAUSE" => {
                let (writes_only, until_ms) = (line.flag()?, line.value()?);
                self.pause = Some(Pause { writes_only, until_ms });
                self.store.timers.arm(until_ms, Timer::Unpause);
            }
            b"KEEPS-EXPIRED" => self.active_expire = false,
            b"STATES" => {
                for name in line.rest() {
                    self.states.set(named(STATES, name)?, true);
                }
            }
            b"ACKS" => self.replication.forced_acks = Some(line.value()?),
            b"PAUSED" => self.paused = true,
            b"STOPPED" => self.stopped = true,
            b"USER" => self.take_user(line)?,
            b"KEY" | b"LIBRARIES" | b"SCRIPT" => self.take_data(what, line)?,
            b"REPLICA" | b"STRAY" | b"OFFSET" | b"TRANSIT" => self.take_replication(what, line)?,
            b"MEMBER" | b"SLOTS" | b"REPORT" | b"MIGRATING" | b"IMPORTING" | b"REDIRECTED" | b"CLUSTER" => {
                self.take_cluster(what, line)?;
            }
            b"SENTINEL" => self.take_sentinel(line)?,
            _ => self.take_client(what, line)?,
        }
        Some(())
    }

    fn image_of_modes(&self, lines: &mut Vec<Words>) {
        // The first line: expiry follows the wall clock.
        if self.wall_jump_ms != 0 {
            lines.push(self.about("JUMP").value(self.wall_jump_ms));
        }
        if let Some(Pause { writes_only, until_ms }) = self.pause {
            lines.push(self.about("PAUSE").flag(writes_only).value(until_ms));
        }
        if !self.active_expire {
            lines.push(self.about("KEEPS-EXPIRED"));
        }
        let states = STATES.iter().filter(|(_, state): &&(&str, State)| self.states.has(*state));
        let states: Vec<&[u8]> = states.map(|(name, _)| name.as_bytes()).collect();
        if !states.is_empty() {
            lines.push(self.about("STATES").words(states));
        }
        if let Some(acks) = self.replication.forced_acks {
            lines.push(self.about("ACKS").value(acks));
        }
        if self.paused {
            lines.push(self.about("PAUSED"));
        }
        if self.stopped {
            lines.push(self.about("STOPPED"));
        }
    }
}
