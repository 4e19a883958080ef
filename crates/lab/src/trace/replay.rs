//! Runs a trace again in this process and compares everything that comes out.

use std::collections::VecDeque;

use super::FORMAT;
use super::line::{Conn, Header, Line, clock_mode, to_bytes};
use crate::control::Lab;
use crate::control::commands::check::parse_checks;
use crate::control::words::Words;
use redlatch_core::world::{ConnId, WorldOptions};

/// A replay ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The text is no trace.
    Malformed { line: usize, why: String },
    /// Something else came out than what the trace has there.
    Differs { line: usize, recorded: Option<String>, replayed: Option<String>, last_digest: Option<u64> },
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayError::Malformed { line, why } => write!(f, "line {line}: {why}"),
            ReplayError::Differs { line, recorded, replayed, last_digest } => {
                writeln!(f, "line {line}: the replay differs")?;
                writeln!(f, "  recorded: {}", recorded.as_deref().unwrap_or("nothing"))?;
                writeln!(f, "  replayed: {}", replayed.as_deref().unwrap_or("nothing"))?;
                match last_digest {
                    Some(event) => write!(f, "  the states were equal up to event {event}"),
                    None => write!(f, "  no digest came before"),
                }
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// What a replay that came to its end has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    pub events: u64,
    pub inputs: u64,
    pub outputs: u64,
    pub digests: u64,
    /// The trace has its last line.
    pub complete: bool,
}

impl Replay {
    /// Replays the text of a trace.
    pub fn run(text: &str) -> Result<Replay, ReplayError> {
        Replay::run_in(text, |_| {}).map(|(report, _)| report)
    }

    /// The same with the costs of scripts counted; gives the lab as it is at the end too.
    pub fn run_counting(text: &str) -> Result<(Replay, Lab), ReplayError> {
        Replay::run_in(text, |lab| lab.count_costs(true))
    }

    fn run_in(text: &str, prepare: impl FnOnce(&mut Lab)) -> Result<(Replay, Lab), ReplayError> {
        let mut lines = read(text);
        let malformed = |line, why: &str| ReplayError::Malformed { line, why: why.to_owned() };
        let header = match lines.next() {
            Some((_, _, Ok(Line::Head(header)))) => header,
            Some((line, _, Err(why))) => return Err(malformed(line, &why)),
            _ => return Err(malformed(1, "a trace begins with its head")),
        };
        let mut lab = build(&header).map_err(|why| ReplayError::Malformed { line: 1, why })?;
        prepare(&mut lab);
        let mut report = Replay::default();
        let mut produced = Vec::new();
        // Lines of the trace, and of the replay, that the other side has not come to yet: what timers put out stands
        // before the input at whose time the replay lets them fire.
        let mut recorded: VecDeque<(usize, &str)> = VecDeque::new();
        let mut replayed: VecDeque<String> = VecDeque::new();
        let mut last_digest = None;
        while let Some((number, source, line)) = lines.next() {
            let line = line.map_err(|why| ReplayError::Malformed { line: number, why })?;
            if report.complete {
                return Err(malformed(number, "nothing comes after the end"));
            }
            recorded.push_back((number, source));
            match line {
                Line::Out { .. } | Line::Check { .. } => report.outputs += 1,
                Line::Dig { .. } => report.digests += 1,
                Line::Cut { c, .. } => lab.expect_cut(c.node, c.number),
                _ => {
                    // How fast clients read is not in the trace, only that they were too slow.
                    for conn in cuts_before_next_input(lines.clone()) {
                        lab.expect_cut(conn.node, conn.number);
                    }
                    apply(&mut lab, &line).map_err(|why| ReplayError::Malformed { line: number, why })?;
                    report.inputs += 1;
                    report.complete = matches!(line, Line::End { .. });
                    lab.take_trace(&mut produced);
                    replayed.extend(String::from_utf8_lossy(&produced).lines().map(str::to_owned));
                    produced.clear();
                }
            }
            while let (Some(&(line, expected)), Some(line_replayed)) = (recorded.front(), replayed.front()) {
                if expected != line_replayed {
                    return Err(ReplayError::Differs {
                        line,
                        recorded: Some(expected.to_owned()),
                        replayed: replayed.pop_front(),
                        last_digest,
                    });
                }
                if let Ok(Line::Dig { e, .. }) = serde_json::from_str(expected) {
                    last_digest = Some(e);
                }
                recorded.pop_front();
                replayed.pop_front();
            }
        }
        report.events = lab.world().events();
        // Of a trace that was cut off the outputs of the last input, or their cause, may be missing.
        if report.complete && (!recorded.is_empty() || !replayed.is_empty()) {
            let line = recorded.front().map_or_else(|| text.lines().count() + 1, |&(line, _)| line);
            let recorded = recorded.pop_front().map(|(_, line)| line.to_owned());
            return Err(ReplayError::Differs { line, recorded, replayed: replayed.pop_front(), last_digest });
        }
        Ok((report, lab))
    }
}

/// The clients that the present event cuts off.
fn cuts_before_next_input<'a>(
    lines: impl Iterator<Item = (usize, &'a str, Result<Line, String>)>,
) -> impl Iterator<Item = Conn> {
    let outputs = lines.map_while(|(_, _, line)| match line {
        Ok(Line::Cut { c, .. }) => Some(Some(c)),
        Ok(Line::Out { .. } | Line::Check { .. } | Line::Dig { .. }) => Some(None),
        _ => None,
    });
    outputs.flatten()
}

/// The lines of a trace with their numbers.
pub fn read(text: &str) -> impl Iterator<Item = (usize, &str, Result<Line, String>)> + Clone {
    text.lines().enumerate().map(|(index, line)| {
        let parsed = serde_json::from_str(line).map_err(|error| format!("no line of a trace: {error}"));
        (index + 1, line, parsed)
    })
}

/// A lab as the head of a trace describes it, recording.
fn build(header: &Header) -> Result<Lab, String> {
    if header.format != FORMAT {
        return Err(format!("the format is {}, and this release reads {FORMAT}", header.format));
    }
    if header.nodes.is_empty() {
        return Err("there are no nodes".to_owned());
    }
    let nodes = header.nodes.iter().map(|node| node.config()).collect::<Result<Vec<_>, _>>()?;
    let mut lab = Lab::new(WorldOptions {
        seed: header.seed,
        clock: clock_mode(&header.clock)?,
        wall_start_ms: header.wall_ms,
        nodes,
    });
    lab.begin_at(header.e, header.t);
    if let Some(words) = &header.checks {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        lab.start_checks(parse_checks(&mut Words::new(&words)).map_err(|error| error.text)?);
    }
    lab.start_trace();
    // The head is compared by what it makes.
    lab.take_trace(&mut Vec::new());
    Ok(lab)
}

fn conn_id(lab: &Lab, conn: Conn) -> Result<ConnId, String> {
    lab.world().conn(conn.node, conn.number).ok_or_else(|| format!("connection {conn} is not open"))
}

/// Puts an input into the lab at its time.
fn apply(lab: &mut Lab, line: &Line) -> Result<(), String> {
    let (&t, bytes) = match line {
        Line::Open { t, .. }
        | Line::Bad { t, .. }
        | Line::Close { t, .. }
        | Line::Slice { t, .. }
        | Line::Await { t, .. }
        | Line::Mark { t, .. }
        | Line::End { t, .. } => (t, Vec::new()),
        Line::Setup { t, a, .. } | Line::Req { t, a, .. } => {
            (t, a.iter().map(|word| to_bytes(word)).collect::<Result<Vec<_>, _>>()?)
        }
        Line::Head(_) | Line::Cut { .. } | Line::Out { .. } | Line::Check { .. } | Line::Dig { .. } => {
            return Err("not expected here".to_owned());
        }
    };
    let argv: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    lab.replay_to(t);
    match line {
        Line::Open { c, addr, laddr, control, .. } => {
            lab.open_numbered(c.node, c.number, *control, addr.clone(), laddr.clone())
                .ok_or("there is no such node")?;
        }
        Line::Setup { c, .. } => {
            let conn = conn_id(lab, *c)?;
            lab.set_up(conn, &argv);
        }
        Line::Req { c, el, .. } => {
            let conn = conn_id(lab, *c)?;
            lab.elapsed_us = (*el).max(lab.elapsed_us);
            lab.request(conn, &argv);
        }
        Line::Bad { c, why, .. } => {
            let conn = conn_id(lab, *c)?;
            lab.protocol_error_text(conn, why);
        }
        Line::Close { c, .. } => {
            let conn = conn_id(lab, *c)?;
            lab.close(conn);
        }
        Line::Slice { n, ms, .. } => {
            if *n >= lab.world().nodes().len() {
                return Err(format!("there is no node {n}"));
            }
            lab.run_slice_for(*n, *ms);
        }
        Line::Await { el, .. } => lab.awaited(*el),
        Line::Mark { text, .. } => lab.mark(&to_bytes(text)?),
        Line::End { .. } => lab.end_trace(),
        Line::Head(_) | Line::Cut { .. } | Line::Out { .. } | Line::Check { .. } | Line::Dig { .. } => {}
    }
    lab.drain();
    Ok(())
}
