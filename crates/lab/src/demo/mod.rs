//! Schedules that show how distributed locks fail, each a text that a person can read and a test can check.
//!
//! A schedule is lines:
//!
//! ```text
//! # title                            the first line
//! nodes 5                            how many nodes there are; 1 without this line
//! let NAME = text                    $NAME stands for the text in commands
//! > text                             what is told
//! c1: SET lock c1 NX PX 10000        client c1 sends a command to node 0
//! c1@2: GET lock                     the same client at node 2
//! = OK                               what it receives, one line for each reply or message
//! = waits                            nothing yet
//! c1 <- OK                           what it receives later
//! mark / elapsed 11000               ms of the world's clock since the mark
//! outcome: text                      the last line
//! ```

use std::collections::BTreeMap;

use crate::sim::{Client, Sim, SimOptions};
use redlatch_core::wire::Value;
use redlatch_core::wire::request::split_words;

/// A schedule that comes with the program.
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

pub const DEMOS: &[Demo] =
    demos!["k1", "k1f", "k2", "k3", "k4", "k5", "a1", "a2", "r1", "r2", "r3", "f1", "f2", "f3", "f4", "s1",];

impl Demo {
    pub fn find(name: &str) -> Option<Demo> {
        DEMOS.iter().copied().find(|demo| demo.name.eq_ignore_ascii_case(name))
    }

    /// The first line.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// Runs the schedule and tells what happens. The error names the line whose outcome was another.
    pub fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
        run(self.text, tell).map_err(|(line, why)| format!("{}, line {line}: {why}", self.name))
    }
}

/// A run of a schedule.
struct Stage {
    sim: Sim,
    clients: BTreeMap<String, Client>,
    texts: BTreeMap<String, String>,
    marked_ms: u64,
    /// Who was spoken of last, and what it received that no line has told yet.
    last: Option<String>,
    unread: BTreeMap<String, Vec<String>>,
}

/// Runs the text of a schedule.
pub fn run(text: &str, tell: &mut dyn FnMut(&str)) -> Result<(), (usize, String)> {
    let nodes = text.lines().find_map(|line| line.strip_prefix("nodes ")?.trim().parse().ok()).unwrap_or(1);
    let mut stage = Stage {
        sim: Sim::new(SimOptions::default().nodes(nodes)),
        clients: BTreeMap::new(),
        texts: BTreeMap::new(),
        marked_ms: 0,
        last: None,
        unread: BTreeMap::new(),
    };
    for (index, line) in text.lines().enumerate() {
        stage.act(line.trim_end(), tell).map_err(|why| (index + 1, why))?;
    }
    stage.nothing_unread().map_err(|why| (text.lines().count(), why))
}

impl Stage {
    fn act(&mut self, line: &str, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') || line.starts_with("nodes ") {
            return Ok(());
        }
        if let Some(text) = line.strip_prefix("> ") {
            tell("");
            tell(text);
        } else if let Some(text) = line.strip_prefix("outcome: ") {
            self.nothing_unread()?;
            tell("");
            tell(&format!("Outcome: {text}"));
        } else if let Some(definition) = line.strip_prefix("let ") {
            let (name, text) = definition.split_once(" = ").ok_or("let NAME = text")?;
            self.texts.insert(name.to_owned(), text.to_owned());
        } else if line == "mark" {
            self.marked_ms = self.now_ms();
        } else if let Some(ms) = line.strip_prefix("elapsed ") {
            let elapsed_ms = self.now_ms() - self.marked_ms;
            if ms.parse() != Ok(elapsed_ms) {
                return Err(format!("{elapsed_ms} ms have passed"));
            }
            tell(&format!("  (its clock: {elapsed_ms} ms have passed)"));
        } else if let Some(expected) = line.strip_prefix("= ") {
            let who = self.last.clone().ok_or("nobody has sent anything")?;
            self.expect(&who, expected, tell)?;
        } else if let Some((who, expected)) = line.split_once(" <- ") {
            self.last = Some(who.to_owned());
            self.receive(who);
            self.expect(who, expected, tell)?;
        } else if let Some((who, command)) = line.split_once(": ") {
            tell(&format!("  {line}"));
            self.send(who, command)?;
        } else {
            return Err(format!("'{line}' is not understood"));
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.sim.world().clock().now().mono_ms()
    }

    fn send(&mut self, who: &str, command: &str) -> Result<(), String> {
        let client = match self.clients.get(who) {
            Some(&client) => client,
            None => {
                let (name, node) = who.split_once('@').unwrap_or((who, "0"));
                let node = node.parse().map_err(|_| "a node is a number")?;
                let client = self.sim.try_connect(node).map_err(|error| error.to_string())?;
                self.sim.call(client, &["CLIENT", "SETNAME", name]);
                self.clients.insert(who.to_owned(), client);
                client
            }
        };
        let words = split_words(command.as_bytes()).ok_or("unbalanced quotes")?;
        let words: Vec<Vec<u8>> = words.into_iter().map(|word| self.expand(word)).collect();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.sim.try_send(client, &words).map_err(|error| format!("{who}: {error}"))?;
        self.receive(who);
        self.last = Some(who.to_owned());
        Ok(())
    }

    fn expand(&self, word: Vec<u8>) -> Vec<u8> {
        let text = word.strip_prefix(b"$").and_then(|name| self.texts.get(&*String::from_utf8_lossy(name)));
        text.map_or(word, |text| text.clone().into_bytes())
    }

    fn receive(&mut self, who: &str) {
        let Some(&client) = self.clients.get(who) else { return };
        let shown = match self.sim.values(client) {
            Ok(values) => values.iter().map(Value::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        self.unread.entry(who.to_owned()).or_default().extend(shown);
    }

    fn expect(&mut self, who: &str, expected: &str, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
        let unread = self.unread.entry(who.to_owned()).or_default();
        let got = if unread.is_empty() { "waits".to_owned() } else { unread.remove(0) };
        tell(&format!("    {who} <- {got}"));
        if got == expected { Ok(()) } else { Err(format!("{who} receives {got}, and not {expected}")) }
    }

    /// A schedule tells all that its clients receive, but for what those of the control plane do.
    fn nothing_unread(&mut self) -> Result<(), String> {
        let clients: Vec<String> = self.clients.keys().cloned().collect();
        clients.iter().for_each(|who| self.receive(who));
        let unread =
            self.unread.iter().find(|(who, frames)| !who.starts_with("control") && !frames.is_empty());
        match unread {
            Some((who, frames)) => Err(format!("{who} receives {} as well", frames.join(", "))),
            None => Ok(()),
        }
    }
}
