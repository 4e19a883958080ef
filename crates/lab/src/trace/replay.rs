//! Replays a trace in this process and compares every output.

use std::collections::VecDeque;

use super::FORMAT;
use super::line::{Conn, Header, Line, LineError, clock_mode, to_bytes};
use crate::control::Lab;
use crate::control::args::{Args, SimError};
use crate::control::commands::check::parse_checks;
use redlatch_core::world::{ConnId, WorldOptions};

/// Why a replay stopped before the end of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The text is not a trace that this release can replay.
    Malformed { line: usize, error: TraceError },
    /// The replay produced another output than the trace has. `last_digest`: the last event after which the states were equal.
    Differs { line: usize, recorded: Option<String>, replayed: Option<String>, last_digest: Option<u64> },
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayError::Malformed { line, error } => write!(f, "line {line}: {error}"),
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

/// Why a line cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    Line(LineError),
    /// The first line is not a header.
    NoHeader,
    UnsupportedFormat(u32),
    NoNodes,
    /// The arguments of SIM.CHECK ON in the header are wrong.
    BadChecks(SimError),
    NoSuchNode(usize),
    /// No client has this connection at that time.
    NotOpen(Conn),
    /// The client still waits for the reply to an earlier request, or its connection is being closed.
    NotReady(Conn),
    /// A line of this kind cannot stand here.
    Unexpected,
    /// There is a line after the last one of a complete trace.
    AfterEnd,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TraceError::Line(error) => write!(f, "{error}"),
            TraceError::NoHeader => write!(f, "a trace begins with its header"),
            TraceError::UnsupportedFormat(format) => {
                write!(f, "the format is {format}, and this release reads {FORMAT}")
            }
            TraceError::NoNodes => write!(f, "there are no nodes"),
            TraceError::BadChecks(error) => write!(f, "{}", error.text),
            TraceError::NoSuchNode(node) => write!(f, "there is no node {node}"),
            TraceError::NotOpen(conn) => write!(f, "connection {conn} is not open"),
            TraceError::NotReady(conn) => write!(f, "connection {conn} cannot send a request now"),
            TraceError::Unexpected => write!(f, "not expected here"),
            TraceError::AfterEnd => write!(f, "nothing can follow the end"),
        }
    }
}

impl std::error::Error for TraceError {}

impl From<LineError> for TraceError {
    fn from(error: LineError) -> TraceError {
        TraceError::Line(error)
    }
}

/// The counts of a replay without a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    pub events: u64,
    pub inputs: u64,
    pub outputs: u64,
    pub digests: u64,
    /// Whether the trace has its last line. A run that was interrupted has none.
    pub complete: bool,
}

impl Replay {
    /// Replays the text of a trace.
    ///
    /// # Errors
    /// The text is not a trace, or an output differs.
    pub fn run(text: &str) -> Result<Replay, ReplayError> {
        Replay::run_in(text, |_| {}).map(|(report, _)| report)
    }

    /// Replays the text of a trace with script costs counted. Returns the lab in its final state as well.
    ///
    /// # Errors
    /// As [`Replay::run`].
    pub fn run_counting(text: &str) -> Result<(Replay, Lab), ReplayError> {
        Replay::run_in(text, |lab| lab.count_costs(true))
    }

    fn run_in(text: &str, prepare: impl FnOnce(&mut Lab)) -> Result<(Replay, Lab), ReplayError> {
        let mut lines = read(text);
        let header = match lines.next() {
            Some((_, _, Ok(Line::Head(header)))) => header,
            Some((line, _, Err(error))) => return Err(ReplayError::Malformed { line, error: error.into() }),
            _ => return Err(ReplayError::Malformed { line: 1, error: TraceError::NoHeader }),
        };
        let mut lab = build(&header).map_err(|error| ReplayError::Malformed { line: 1, error })?;
        prepare(&mut lab);
        let mut report = Replay::default();
        let mut produced = Vec::new();
        // Lines of one side that the other has not reached yet: the trace has the outputs of timers before the input
        // whose time makes the replay fire them.
        let mut recorded: VecDeque<(usize, &str)> = VecDeque::new();
        let mut replayed: VecDeque<String> = VecDeque::new();
        let mut last_digest = None;
        let mut helped = None;
        while let Some((number, source, line)) = lines.next() {
            let malformed = |error| ReplayError::Malformed { line: number, error };
            let line = line.map_err(|error| malformed(error.into()))?;
            if report.complete {
                return Err(malformed(TraceError::AfterEnd));
            }
            recorded.push_back((number, source));
            match line {
                Line::Out { .. } | Line::Check { .. } => report.outputs += 1,
                Line::Dig { .. } => report.digests += 1,
                Line::Cut { c, .. } => lab.expect_cut(c.node, c.number),
                _ => {
                    // A trace does not have how fast clients read, only which of them were disconnected as too slow.
                    let (cuts, digests) = outputs_before_next_input(lines.clone());
                    for conn in cuts {
                        lab.expect_cut(conn.node, conn.number);
                    }
                    // The input before a mark has seen those behind it.
                    if !matches!(line, Line::Mark { .. }) {
                        lab.expect_digests(digests.into_iter());
                    }
                    // A request has already written the mark that it asks for.
                    let is_written = matches!(line, Line::Mark { .. })
                        && replayed.get(recorded.len() - 1).is_some_and(|mark| mark == source);
                    if let Line::Req { e, c, a, .. } = &line
                        && a.first().is_some_and(|name| name.eq_ignore_ascii_case("SIM.HELP"))
                    {
                        helped = Some((*e, *c));
                    }
                    if !is_written {
                        apply(&mut lab, &line).map_err(malformed)?;
                    }
                    report.inputs += 1;
                    report.complete = matches!(line, Line::End { .. });
                    lab.take_trace(&mut produced);
                    replayed.extend(String::from_utf8_lossy(&produced).lines().map(str::to_owned));
                    produced.clear();
                }
            }
            while let (Some(&(line, expected)), Some(line_replayed)) = (recorded.front(), replayed.front()) {
                if expected != line_replayed && !is_about_release(expected, line_replayed, helped) {
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
        // An interrupted trace may lack the outputs of its last input, or the input whose outputs it has.
        if report.complete && (!recorded.is_empty() || !replayed.is_empty()) {
            let line = recorded.front().map_or_else(|| text.lines().count() + 1, |&(line, _)| line);
            let recorded = recorded.pop_front().map(|(_, line)| line.to_owned());
            return Err(ReplayError::Differs { line, recorded, replayed: replayed.pop_front(), last_digest });
        }
        Ok((report, lab))
    }
}

/// Returns the slow readers that the outputs up to the next input disconnect, and the events after which there are digests.
fn outputs_before_next_input<'a>(
    lines: impl Iterator<Item = (usize, &'a str, Result<Line, LineError>)>,
) -> (Vec<Conn>, Vec<u64>) {
    let (mut cuts, mut digests) = (Vec::new(), Vec::new());
    for (_, _, line) in lines {
        match line {
            Ok(Line::Cut { c, .. }) => cuts.push(c),
            Ok(Line::Dig { e, .. }) => digests.push(e),
            Ok(Line::Out { .. } | Line::Check { .. } | Line::Mark { .. }) => {}
            _ => break,
        }
    }
    (cuts, digests)
}

/// Returns whether two lines are the reply to SIM.HELP, which tells about the release and not about the run.
/// `helped`: the event of the last SIM.HELP, and its client.
fn is_about_release(recorded: &str, replayed: &str, helped: Option<(u64, Conn)>) -> bool {
    [recorded, replayed].iter().all(|line| match serde_json::from_str(line) {
        Ok(Line::Out { e, c, .. }) => Some((e, c)) == helped,
        _ => false,
    })
}

/// Parses the lines of a trace: the number of each, its text, and the parsed line.
///
/// A last line that a killed process has left unfinished is left out.
pub fn read(text: &str) -> impl Iterator<Item = (usize, &str, Result<Line, LineError>)> + Clone {
    let whole = match text.rsplit_once('\n') {
        Some((whole, last)) if serde_json::from_str::<Line>(last).is_err_and(|error| error.is_eof()) => whole,
        _ => text,
    };
    whole.lines().enumerate().map(|(index, line)| {
        let parsed = serde_json::from_str(line).map_err(|error| LineError::Syntax(error.to_string()));
        (index + 1, line, parsed)
    })
}

/// Creates a lab from the header of a trace, and starts recording.
fn build(header: &Header) -> Result<Lab, TraceError> {
    if header.format != FORMAT {
        return Err(TraceError::UnsupportedFormat(header.format));
    }
    if header.nodes.is_empty() {
        return Err(TraceError::NoNodes);
    }
    let nodes = header.nodes.iter().map(|node| node.config()).collect::<Result<Vec<_>, _>>()?;
    let mut lab = Lab::new(WorldOptions {
        seed: header.seed,
        clock: clock_mode(&header.clock)?,
        wall_start_ms: header.wall_ms,
        nodes,
    });
    match header.start_ms {
        Some(start_ms) => lab.world.clock_mut().set_start_ms(start_ms),
        None => lab.keeps_old_clock = true,
    }
    lab.begin_at(header.e, header.t);
    lab.serve_control_anywhere(header.control_anywhere);
    if let Some(args) = &header.checks {
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        lab.start_checks(parse_checks(&mut Args::new(&args)).map_err(TraceError::BadChecks)?);
    }
    lab.start_trace();
    if !header.hides_passwords {
        lab.show_passwords_in_trace();
    }
    // The header is not compared: a wrong one shows in the outputs.
    lab.take_trace(&mut Vec::new());
    Ok(lab)
}

fn conn_id(lab: &Lab, conn: Conn) -> Result<ConnId, TraceError> {
    lab.world().conn(conn.node, conn.number).ok_or(TraceError::NotOpen(conn))
}

/// Returns a connection that may send its next request.
fn ready_conn(lab: &Lab, conn: Conn) -> Result<ConnId, TraceError> {
    let id = conn_id(lab, conn)?;
    if lab.world().is_ready(id) { Ok(id) } else { Err(TraceError::NotReady(conn)) }
}

/// Feeds an input into the lab, at its time.
fn apply(lab: &mut Lab, line: &Line) -> Result<(), TraceError> {
    let (t, last_event, words) = match line {
        Line::Open { e, t, .. }
        | Line::Bad { e, t, .. }
        | Line::Close { e, t, .. }
        | Line::Slice { e, t, .. }
        | Line::Await { e, t, .. } => (*t, e.saturating_sub(1), &[][..]),
        Line::Req { e, t, a, .. } => (*t, e.saturating_sub(1), &a[..]),
        Line::Mark { e, t, .. } | Line::End { e, t } => (*t, *e, &[][..]),
        Line::Setup { t, a, .. } => (*t, u64::MAX, &a[..]),
        Line::Head(_) | Line::Cut { .. } | Line::Out { .. } | Line::Check { .. } | Line::Dig { .. } => {
            return Err(TraceError::Unexpected);
        }
    };
    let bytes = words.iter().map(|word| to_bytes(word)).collect::<Result<Vec<_>, _>>()?;
    let argv: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    lab.replay_to(t, last_event);
    match line {
        Line::Open { c, addr, laddr, control, .. } => {
            lab.open_numbered(c.node, c.number, *control, addr.clone(), laddr.clone())
                .ok_or(TraceError::NoSuchNode(c.node))?;
        }
        Line::Setup { c, .. } => {
            let conn = ready_conn(lab, *c)?;
            lab.set_up(conn, &argv);
        }
        Line::Req { c, el, .. } => {
            let conn = ready_conn(lab, *c)?;
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
                return Err(TraceError::NoSuchNode(*n));
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
