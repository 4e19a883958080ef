//! A trace as a readable timeline: who took which lock, who waited, which messages went where.

use std::collections::BTreeMap;

use super::line::{Conn, Line, LineError, to_bytes};
use super::replay::read;
use crate::control::commands::is_sim_command;
use crate::control::matching::{Request, Script, is_eval};
use crate::control::staging::summary;
use redlatch_core::script::sha1_hex;
use redlatch_locks::role::{Recognised, recognise};

/// One line of a timeline: something that happened, usually to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub event: u64,
    /// Time since the world began, in ms.
    pub at_ms: u64,
    pub conn: Option<Conn>,
    pub kind: EntryKind,
    pub text: String,
}

/// What an [`Entry`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Request,
    Reply,
    Control,
    Connection,
    Comment,
}

/// What happened in a trace, in order, and the names of its clients.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub entries: Vec<Entry>,
    pub names: BTreeMap<Conn, String>,
}

impl Timeline {
    /// Reads the text of a trace.
    pub fn of(text: &str) -> Result<Timeline, TimelineError> {
        let mut timeline = Timeline::default();
        let mut scripts: BTreeMap<[u8; 40], Option<Recognised>> = BTreeMap::new();
        let mut now_ms = 0;
        for (number, _, line) in read(text) {
            let malformed = |error| TimelineError { line: number, error };
            let line = line.map_err(malformed)?;
            let mut add = |event, us: Option<u64>, conn, kind, text| {
                now_ms = us.map_or(now_ms, |us| us / 1000);
                timeline.entries.push(Entry { event, at_ms: now_ms, conn, kind, text });
            };
            match line {
                Line::Head(_)
                | Line::Dig { .. }
                | Line::Setup { .. }
                | Line::State { .. }
                | Line::Slice { .. }
                | Line::Await { .. }
                | Line::Report { .. } => {}
                Line::Open { e, t, c, addr, .. } => {
                    add(e, Some(t), Some(c), EntryKind::Connection, format!("connects from {addr}"));
                }
                Line::Close { e, t, c } => {
                    add(e, Some(t), Some(c), EntryKind::Connection, "disconnects".to_owned())
                }
                Line::Cut { e, t, c } => add(
                    e,
                    Some(t),
                    Some(c),
                    EntryKind::Connection,
                    "is disconnected as a slow reader".to_owned(),
                ),
                Line::Bad { e, t, c, why } => {
                    add(
                        e,
                        Some(t),
                        Some(c),
                        EntryKind::Connection,
                        format!("sends a malformed request: {why}"),
                    );
                }
                Line::Mark { e, t, text } => add(e, Some(t), None, EntryKind::Comment, text),
                Line::Check { e, promise, key, text, .. } => {
                    let found = String::from_utf8_lossy(&to_bytes(&text).map_err(malformed)?).into_owned();
                    add(e, None, None, EntryKind::Comment, format!("{promise} violated, {key}: {found}"));
                }
                Line::End { e, t } => add(e, Some(t), None, EntryKind::Comment, "end".to_owned()),
                Line::Req { e, t, c, a, .. } => {
                    let args = a.iter().map(|arg| to_bytes(arg)).collect::<Result<Vec<_>, _>>();
                    let args = args.map_err(malformed)?;
                    let argv: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                    if let [command, sub, name] = argv[..]
                        && command.eq_ignore_ascii_case(b"CLIENT")
                        && sub.eq_ignore_ascii_case(b"SETNAME")
                    {
                        timeline.names.insert(c, String::from_utf8_lossy(name).into_owned());
                    }
                    let (kind, text) = match argv.first() {
                        Some(name) if is_sim_command(name) => (EntryKind::Control, summary(&argv)),
                        _ => (EntryKind::Request, describe(&argv, &mut scripts)),
                    };
                    now_ms = t / 1000;
                    timeline.entries.push(Entry { event: e, at_ms: now_ms, conn: Some(c), kind, text });
                }
                Line::Out { e, c, b } => {
                    add(e, None, Some(c), EntryKind::Reply, shorten(&b.escape_debug().to_string()));
                }
            }
        }
        Ok(timeline)
    }

    /// Returns the name that a client has set, with its connection; without a name only the connection.
    pub fn name(&self, conn: Conn) -> String {
        match self.names.get(&conn) {
            Some(name) => format!("{name} ({conn})"),
            None => conn.to_string(),
        }
    }
}

/// A line of a trace that cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineError {
    /// The number of the line, from 1.
    pub line: usize,
    pub error: LineError,
}

impl std::fmt::Display for TimelineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.error)
    }
}

impl std::error::Error for TimelineError {}

impl std::fmt::Display for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width =
            self.entries.iter().filter_map(|entry| entry.conn).map(|conn| self.name(conn).len()).max();
        for Entry { event, at_ms, conn, kind, text } in &self.entries {
            let who = conn.map_or(String::new(), |conn| self.name(conn));
            let arrow = match kind {
                EntryKind::Request => "→",
                EntryKind::Reply => "←",
                EntryKind::Control => "⚙",
                EntryKind::Connection => "·",
                EntryKind::Comment => "#",
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

/// Renders a request in one line: a lock script as its role, object and owner.
fn describe(argv: &[&[u8]], scripts: &mut BTreeMap<[u8; 40], Option<Recognised>>) -> String {
    let Some((&name, &arg)) = argv.first().zip(argv.get(1)) else { return summary(argv) };
    let is_load = name.eq_ignore_ascii_case(b"SCRIPT") && arg.eq_ignore_ascii_case(b"LOAD");
    let body = match argv.get(2) {
        Some(&body) if is_load => Some(body),
        _ if is_eval(name) && name.len() == b"EVAL".len() => Some(arg),
        _ => None,
    };
    if let Some(body) = body {
        scripts.insert(sha1_hex(body), recognise(body));
    }
    let sha = match body {
        Some(body) => sha1_hex(body),
        None => match arg.to_ascii_lowercase().try_into() {
            Ok(sha) => sha,
            Err(_) => return summary(argv),
        },
    };
    let Some(Some(lock)) = scripts.get(&sha) else { return summary(argv) };
    if is_load {
        return format!("loads {}", lock.role.name());
    }
    let request = Request::new(argv, Some(Script { sha: &sha, lock: Some(*lock) }));
    let Some(args) = request.script_args() else { return summary(argv) };
    let text =
        |arg: Option<&&[u8]>| arg.map_or(String::new(), |arg| String::from_utf8_lossy(arg).into_owned());
    let object = text(lock.lock.and_then(|place| args.keys.get(place - 1)));
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
