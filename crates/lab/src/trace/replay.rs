//! Replays a trace in this process and compares every output.

use super::FORMAT;
use super::line::{Conn, Header, Line, LineError, clock_mode, to_bytes};
use super::player::Player;
use super::tape::{Tape, whole_lines};
use crate::control::Lab;
use crate::control::args::{Args, SimError};
use crate::control::commands::check::parse_checks;
use redlatch_core::topology::{Topology, UnknownTopology};
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
    UnknownTopology(UnknownTopology),
    /// The topology has another number of nodes than the header.
    WrongTopology(Topology),
    /// The arguments of SIM.CHECK ON in the header are wrong.
    BadChecks(SimError),
    NoSuchNode(usize),
    /// No client has this connection at that time.
    NotOpen(Conn),
    /// The client still waits for the reply to an earlier request, or its connection is being closed.
    NotReady(Conn),
    /// A line of the state at the beginning, about this, is malformed or does not fit.
    BadState(String),
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
            TraceError::UnknownTopology(error) => write!(f, "{error}"),
            TraceError::WrongTopology(topology) => {
                write!(f, "the topology {topology} does not have the number of nodes in the header")
            }
            TraceError::BadChecks(error) => write!(f, "{}", error.text),
            TraceError::NoSuchNode(node) => write!(f, "there is no node {node}"),
            TraceError::NotOpen(conn) => write!(f, "connection {conn} is not open"),
            TraceError::NotReady(conn) => write!(f, "connection {conn} cannot send a request now"),
            TraceError::BadState(what) => write!(f, "no state of a lab: {what}"),
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
        let tape = Tape::of(text);
        let mut player = Player::new(&tape)?;
        prepare(player.lab_mut());
        while player.step()? {}
        player.finish()
    }
}

/// Parses the lines of a trace: the number of each, its text, and the parsed line.
///
/// A last line that a killed process has left unfinished is left out.
pub fn read(text: &str) -> impl Iterator<Item = (usize, &str, Result<Line, LineError>)> + Clone {
    whole_lines(text).lines().enumerate().map(|(index, line)| {
        let parsed = serde_json::from_str(line).map_err(|error| LineError::Syntax(error.to_string()));
        (index + 1, line, parsed)
    })
}

/// Creates a lab from the header of a trace, and starts recording.
pub(super) fn build(header: &Header) -> Result<Lab, TraceError> {
    if header.format != FORMAT {
        return Err(TraceError::UnsupportedFormat(header.format));
    }
    if header.nodes.is_empty() {
        return Err(TraceError::NoNodes);
    }
    let nodes = header.nodes.iter().map(|node| node.config()).collect::<Result<Vec<_>, _>>()?;
    let topology = header.topology.as_deref().map(str::parse::<Topology>);
    let topology = topology.transpose().map_err(TraceError::UnknownTopology)?;
    if let Some(topology) = topology.filter(|topology| topology.parts().len() != nodes.len()) {
        return Err(TraceError::WrongTopology(topology));
    }
    let mut lab = Lab::new(WorldOptions {
        seed: header.seed,
        clock: clock_mode(&header.clock)?,
        wall_start_ms: header.wall_ms,
        nodes,
        topology,
    });
    match header.start_ms {
        Some(start_ms) => lab.world.clock_mut().set_start_ms(start_ms),
        None => lab.keeps_old_clock = true,
    }
    lab.world.nodes_mut().for_each(|node| node.acl.accepts_hashes = true);
    lab.has_command = header.command.unwrap_or(true);
    lab.judges_owners = header.judges_owners;
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
pub(super) fn apply(lab: &mut Lab, line: &Line) -> Result<(), TraceError> {
    let (t, last_event) = match line {
        Line::Open { e, t, .. }
        | Line::Req { e, t, .. }
        | Line::Bad { e, t, .. }
        | Line::Close { e, t, .. }
        | Line::Slice { e, t, .. }
        | Line::Await { e, t, .. }
        | Line::Report { e, t, .. } => (*t, e.saturating_sub(1)),
        // Timers that are due wait until the state is complete.
        Line::Mark { e, t, .. } | Line::End { e, t } | Line::State { e, t, .. } => (*t, *e),
        Line::Setup { t, .. } => (*t, u64::MAX),
        Line::Head(_) | Line::Cut { .. } | Line::Out { .. } | Line::Check { .. } | Line::Dig { .. } => {
            return Err(TraceError::Unexpected);
        }
    };
    lab.replay_to(t, last_event);
    feed(lab, line)
}

/// Feeds an input into the lab, at the present time. Outputs are no inputs: they have no effect.
pub(crate) fn feed(lab: &mut Lab, line: &Line) -> Result<(), TraceError> {
    let words = match line {
        Line::Req { a, .. } | Line::Setup { a, .. } | Line::State { a, .. } => &a[..],
        _ => &[],
    };
    let bytes = words.iter().map(|word| to_bytes(word)).collect::<Result<Vec<_>, _>>()?;
    let argv: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    match line {
        Line::Open { c, addr, laddr, control, .. } => {
            lab.open_numbered(c.node, c.number, *control, addr.clone(), laddr.clone())
                .ok_or(TraceError::NoSuchNode(c.node))?;
        }
        Line::Setup { c, .. } => {
            let conn = ready_conn(lab, *c)?;
            lab.set_up(conn, &argv);
        }
        Line::State { .. } => {
            let what = || TraceError::BadState(words.first().cloned().unwrap_or_default());
            lab.set_state(&argv).ok_or_else(what)?;
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
        Line::Report { n, ok, text, .. } => {
            if *n >= lab.world().nodes().len() {
                return Err(TraceError::NoSuchNode(*n));
            }
            let text = to_bytes(text)?;
            lab.report(*n, if *ok { Ok(&text) } else { Err(&text) });
        }
        Line::Mark { text, .. } => lab.mark(&to_bytes(text)?),
        Line::End { .. } => lab.end_trace(),
        Line::Head(_) | Line::Cut { .. } | Line::Out { .. } | Line::Check { .. } | Line::Dig { .. } => {}
    }
    Ok(())
}
