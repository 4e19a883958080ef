//! A trace for people: who took which lock, who waited, which messages went where.

use std::collections::BTreeMap;

use super::line::{Conn, Line, to_bytes};
use super::replay::read;
use crate::control::commands::is_sim_command;
use crate::control::matching::{Request, Script, is_eval};
use crate::control::staging::summary;
use redlatch_core::script::sha1_hex;
use redlatch_locks::role::{Recognised, recognise};

/// One thing that happened, on the lane of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub event: u64,
    /// ms since the beginning of the world.
    pub at_ms: u64,
    pub conn: Option<Conn>,
    pub what: Happening,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    Request,
    Reply,
    Control,
    Connection,
    Remark,
}

/// The moments of a trace and the names of its clients.
#[derive(Clone, Debug, Default)]
pub struct Story {
    pub moments: Vec<Moment>,
    pub names: BTreeMap<Conn, String>,
}

impl Story {
    /// Reads a trace. The error names the line.
    pub fn of(text: &str) -> Result<Story, String> {
        let mut story = Story::default();
        let mut scripts: BTreeMap<[u8; 40], Option<Recognised>> = BTreeMap::new();
        let mut now_ms = 0;
        for (number, _, line) in read(text) {
            let line = line.map_err(|why| format!("line {number}: {why}"))?;
            let mut tell = |event, us: Option<u64>, conn, what, text| {
                now_ms = us.map_or(now_ms, |us| us / 1000);
                story.moments.push(Moment { event, at_ms: now_ms, conn, what, text });
            };
            match line {
                Line::Head(_)
                | Line::Dig { .. }
                | Line::Setup { .. }
                | Line::Slice { .. }
                | Line::Await { .. } => {}
                Line::Open { e, t, c, addr, .. } => {
                    tell(e, Some(t), Some(c), Happening::Connection, format!("connects from {addr}"));
                }
                Line::Close { e, t, c } => {
                    tell(e, Some(t), Some(c), Happening::Connection, "leaves".to_owned())
                }
                Line::Cut { e, t, c } => {
                    tell(e, Some(t), Some(c), Happening::Connection, "is cut off".to_owned())
                }
                Line::Bad { e, t, c, why } => {
                    tell(
                        e,
                        Some(t),
                        Some(c),
                        Happening::Connection,
                        format!("sends what is no request: {why}"),
                    );
                }
                Line::Mark { e, t, text } => tell(e, Some(t), None, Happening::Remark, text),
                Line::Check { e, promise, key, text, .. } => {
                    let found = String::from_utf8_lossy(&to_bytes(&text)?).into_owned();
                    tell(e, None, None, Happening::Remark, format!("{promise} broken, {key}: {found}"));
                }
                Line::End { e, t } => tell(e, Some(t), None, Happening::Remark, "end".to_owned()),
                Line::Req { e, t, c, a, .. } => {
                    let words = a.iter().map(|word| to_bytes(word)).collect::<Result<Vec<_>, _>>()?;
                    let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                    if let [command, sub, name] = argv[..]
                        && command.eq_ignore_ascii_case(b"CLIENT")
                        && sub.eq_ignore_ascii_case(b"SETNAME")
                    {
                        story.names.insert(c, String::from_utf8_lossy(name).into_owned());
                    }
                    let (what, text) = match argv.first() {
                        Some(name) if is_sim_command(name) => (Happening::Control, summary(&argv)),
                        _ => (Happening::Request, describe(&argv, &mut scripts)),
                    };
                    now_ms = t / 1000;
                    story.moments.push(Moment { event: e, at_ms: now_ms, conn: Some(c), what, text });
                }
                Line::Out { e, c, b } => {
                    tell(e, None, Some(c), Happening::Reply, shorten(&b.escape_debug().to_string()));
                }
            }
        }
        Ok(story)
    }

    /// The client as people call it.
    pub fn name(&self, conn: Conn) -> String {
        match self.names.get(&conn) {
            Some(name) => format!("{name} ({conn})"),
            None => conn.to_string(),
        }
    }
}

impl std::fmt::Display for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width =
            self.moments.iter().filter_map(|moment| moment.conn).map(|conn| self.name(conn).len()).max();
        for Moment { event, at_ms, conn, what, text } in &self.moments {
            let who = conn.map_or(String::new(), |conn| self.name(conn));
            let arrow = match what {
                Happening::Request => "→",
                Happening::Reply => "←",
                Happening::Control => "⚙",
                Happening::Connection => "·",
                Happening::Remark => "#",
            };
            writeln!(
                f,
                "{event:>7} {at_ms:>9} ms  {who:<width$} {arrow} {text}",
                width = width.unwrap_or(0)
            )?;
        }
        Ok(())
    }
}

/// A request in one line: lock scripts by their role, object and owner.
fn describe(argv: &[&[u8]], scripts: &mut BTreeMap<[u8; 40], Option<Recognised>>) -> String {
    let Some((&name, &word)) = argv.first().zip(argv.get(1)) else { return summary(argv) };
    let is_load = name.eq_ignore_ascii_case(b"SCRIPT") && word.eq_ignore_ascii_case(b"LOAD");
    let body = match argv.get(2) {
        Some(&body) if is_load => Some(body),
        _ if is_eval(name) && name.len() == b"EVAL".len() => Some(word),
        _ => None,
    };
    if let Some(body) = body {
        scripts.insert(sha1_hex(body), recognise(body));
    }
    let sha = match body {
        Some(body) => sha1_hex(body),
        None => match word.to_ascii_lowercase().try_into() {
            Ok(sha) => sha,
            Err(_) => return summary(argv),
        },
    };
    let Some(Some(lock)) = scripts.get(&sha) else { return summary(argv) };
    if is_load {
        return format!("loads {}", lock.role.name());
    }
    let request = Request::new(argv, Some(Script { sha: &sha, lock: Some(*lock) }));
    let Some(words) = request.script_words() else { return summary(argv) };
    let text =
        |word: Option<&&[u8]>| word.map_or(String::new(), |word| String::from_utf8_lossy(word).into_owned());
    let object = text(lock.lock.and_then(|place| words.keys.get(place - 1)));
    match request.owner() {
        Some(owner) => format!("{} {object} by {}", lock.role.name(), String::from_utf8_lossy(owner)),
        None => format!("{} {object}", lock.role.name()),
    }
}

fn shorten(text: &str) -> String {
    const SHOWN: usize = 100;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
