//! Schedules that show how distributed locks fail: text files that people can read and tests can check.
//!
//! A schedule is lines:
//!
//! ```text
//! # title                            the first line
//! nodes 5                            how many nodes there are; 1 without this line
//! let NAME = text                    defines $NAME, an argument of later commands
//! > text                             a comment for the reader
//! c1: SET lock c1 NX PX 10000        client c1 sends a command to node 0
//! c1@2: GET lock                     the same client at node 2
//! = OK                               expects that the client receives this reply or message
//! = waits                            expects that the client has not received anything
//! c1 <- OK                           expects that a client receives this later
//! mark                               remembers the time of the world's clock
//! elapsed 11000                      expects that so many ms have passed since the mark
//! outcome: text                      the last line
//! ```

use std::collections::BTreeMap;

use crate::sim::{CallError, Client, Sim, SimOptions};
use redlatch_core::wire::Value;
use redlatch_core::wire::request::split_words;

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
pub const DEMOS: &[Demo] =
    demos!["k1", "k1f", "k2", "k3", "k4", "k5", "a1", "a2", "r1", "r2", "r3", "f1", "f2", "f3", "f4", "s1",];

impl Demo {
    /// Returns the demo with this name, in upper or lower case.
    pub fn find(name: &str) -> Option<Demo> {
        DEMOS.iter().copied().find(|demo| demo.name.eq_ignore_ascii_case(name))
    }

    /// Returns the title: the first line of the schedule.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// Runs the schedule and passes each line of the report to `tell`.
    ///
    /// # Errors
    /// The first line whose outcome differs from the expected one.
    pub fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<(), ScheduleError> {
        run(self.text, tell)
    }
}

/// A line of a schedule that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// The number of the line, from 1.
    pub line: usize,
    pub cause: Failure,
}

/// Why a line of a schedule failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The line is not of any form that a schedule has.
    Syntax(String),
    /// The node in `client@node` is not the number of a node.
    NoSuchNode(String),
    UnbalancedQuotes,
    /// An expectation comes before any command.
    NothingSent,
    /// A client sends while it waits for a reply, or after its connection was closed.
    NotSent {
        client: String,
        error: CallError,
    },
    WrongTime {
        elapsed_ms: u64,
    },
    WrongReply {
        client: String,
        received: String,
        expected: String,
    },
    /// A client received something that the schedule does not mention.
    UnexpectedReplies {
        client: String,
        received: Vec<String>,
    },
}

impl std::fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.cause)
    }
}

impl std::error::Error for ScheduleError {}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Syntax(line) => write!(f, "'{line}' is not a line of a schedule"),
            Failure::NoSuchNode(node) => write!(f, "there is no node '{node}'"),
            Failure::UnbalancedQuotes => write!(f, "unbalanced quotes"),
            Failure::NothingSent => write!(f, "no client has sent anything yet"),
            Failure::NotSent { client, error } => write!(f, "{client}: {error}"),
            Failure::WrongTime { elapsed_ms } => write!(f, "{elapsed_ms} ms have passed"),
            Failure::WrongReply { client, received, expected } => {
                write!(f, "{client} receives {received}, not {expected}")
            }
            Failure::UnexpectedReplies { client, received } => {
                write!(f, "{client} receives {} as well", received.join(", "))
            }
        }
    }
}

/// The state of a schedule that is running.
struct ScheduleRun {
    sim: Sim,
    clients: BTreeMap<String, Client>,
    texts: BTreeMap<String, String>,
    marked_ms: u64,
    /// The client of the last line.
    last: Option<String>,
    /// What each client has received and no line has mentioned yet.
    unread: BTreeMap<String, Vec<String>>,
}

/// Runs the text of a schedule and passes each line of the report to `tell`.
///
/// # Errors
/// The first line whose outcome differs from the expected one.
pub fn run(text: &str, tell: &mut dyn FnMut(&str)) -> Result<(), ScheduleError> {
    let nodes = text.lines().find_map(|line| line.strip_prefix("nodes ")?.trim().parse().ok()).unwrap_or(1);
    let mut schedule = ScheduleRun {
        sim: Sim::new(SimOptions::default().nodes(nodes)),
        clients: BTreeMap::new(),
        texts: BTreeMap::new(),
        marked_ms: 0,
        last: None,
        unread: BTreeMap::new(),
    };
    for (index, line) in text.lines().enumerate() {
        schedule.run_line(line.trim_end(), tell).map_err(|cause| ScheduleError { line: index + 1, cause })?;
    }
    schedule.check_nothing_unread().map_err(|cause| ScheduleError { line: text.lines().count(), cause })
}

impl ScheduleRun {
    fn run_line(&mut self, line: &str, tell: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        if line.is_empty() || line.starts_with('#') || line.starts_with("nodes ") {
            return Ok(());
        }
        if let Some(text) = line.strip_prefix("> ") {
            tell("");
            tell(text);
        } else if let Some(text) = line.strip_prefix("outcome: ") {
            self.check_nothing_unread()?;
            tell("");
            tell(&format!("Outcome: {text}"));
        } else if let Some(definition) = line.strip_prefix("let ") {
            let (name, text) =
                definition.split_once(" = ").ok_or_else(|| Failure::Syntax(line.to_owned()))?;
            self.texts.insert(name.to_owned(), text.to_owned());
        } else if line == "mark" {
            self.marked_ms = self.now_ms();
        } else if let Some(ms) = line.strip_prefix("elapsed ") {
            let elapsed_ms = self.now_ms() - self.marked_ms;
            if ms.parse() != Ok(elapsed_ms) {
                return Err(Failure::WrongTime { elapsed_ms });
            }
            tell(&format!("  (its clock: {elapsed_ms} ms have passed)"));
        } else if let Some(expected) = line.strip_prefix("= ") {
            let who = self.last.clone().ok_or(Failure::NothingSent)?;
            self.expect(&who, expected, tell)?;
        } else if let Some((who, expected)) = line.split_once(" <- ") {
            self.last = Some(who.to_owned());
            self.receive(who);
            self.expect(who, expected, tell)?;
        } else if let Some((who, command)) = line.split_once(": ") {
            tell(&format!("  {line}"));
            self.send(who, command)?;
        } else {
            return Err(Failure::Syntax(line.to_owned()));
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.sim.world().clock().now().mono_ms()
    }

    fn send(&mut self, who: &str, command: &str) -> Result<(), Failure> {
        let client = match self.clients.get(who) {
            Some(&client) => client,
            None => {
                let (name, node) = who.split_once('@').unwrap_or((who, "0"));
                let index = node.parse().map_err(|_| Failure::NoSuchNode(node.to_owned()))?;
                let connected = self.sim.try_connect(index);
                let client = connected.map_err(|_| Failure::NoSuchNode(node.to_owned()))?;
                self.sim.call(client, &["CLIENT", "SETNAME", name]);
                self.clients.insert(who.to_owned(), client);
                client
            }
        };
        let args = split_words(command.as_bytes()).ok_or(Failure::UnbalancedQuotes)?;
        let args: Vec<Vec<u8>> = args.into_iter().map(|arg| self.expand(arg)).collect();
        let argv: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        self.sim
            .try_send(client, &argv)
            .map_err(|error| Failure::NotSent { client: who.to_owned(), error })?;
        self.receive(who);
        self.last = Some(who.to_owned());
        Ok(())
    }

    /// Replaces `$NAME` by its definition.
    fn expand(&self, arg: Vec<u8>) -> Vec<u8> {
        let text = arg.strip_prefix(b"$").and_then(|name| self.texts.get(&*String::from_utf8_lossy(name)));
        text.map_or(arg, |text| text.clone().into_bytes())
    }

    /// Takes what a client has received.
    fn receive(&mut self, who: &str) {
        let Some(&client) = self.clients.get(who) else { return };
        let shown = match self.sim.values(client) {
            Ok(values) => values.iter().map(Value::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        self.unread.entry(who.to_owned()).or_default().extend(shown);
    }

    /// Checks the next thing that a client has received.
    fn expect(&mut self, who: &str, expected: &str, tell: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        let unread = self.unread.entry(who.to_owned()).or_default();
        let received = if unread.is_empty() { "waits".to_owned() } else { unread.remove(0) };
        tell(&format!("    {who} <- {received}"));
        if received == expected {
            return Ok(());
        }
        Err(Failure::WrongReply { client: who.to_owned(), received, expected: expected.to_owned() })
    }

    /// Checks that the schedule has mentioned everything that its clients received, except clients of the control plane.
    fn check_nothing_unread(&mut self) -> Result<(), Failure> {
        let clients: Vec<String> = self.clients.keys().cloned().collect();
        clients.iter().for_each(|who| self.receive(who));
        let unread =
            self.unread.iter().find(|(who, frames)| !who.starts_with("control") && !frames.is_empty());
        match unread {
            Some((who, frames)) => {
                Err(Failure::UnexpectedReplies { client: who.clone(), received: frames.clone() })
            }
            None => Ok(()),
        }
    }
}
