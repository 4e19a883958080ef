//! Makes a schedule of a recorded run.
//!
//! The recorded inputs become steps, and times become steps of the clock. The steps are carried out at once, so that the
//! schedule expects what it will see: where that is not what the recorded clients received (it names an event, or a time that
//! was real), the expectation is a pattern, and the difference is counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use super::failure::{Failure, ScheduleError};
use super::run::{Connection, Stage};
use super::shrink::{Search, fewer};
use super::step::{Claim, Expected, Step, Who, command_text};
use super::text::{NoFiles, Schedule};
use super::words::{in_quotes, quote};
use crate::sim::SimOptions;
use crate::trace::line::{Header, LineError, to_bytes};
use crate::trace::{Conn, Line, ReplayError, Tape, TraceError};
use crate::travel::Predicate;
use redlatch_core::node::Config;
use redlatch_locks::role::role;

/// How many recorded replies may be passed over when one does not come.
const AHEAD: usize = 16;

/// The least length of an argument that is written once, as a definition.
const LONG: usize = 60;

/// The schedule of a recorded run.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The lines before the first step: nodes, release, seed, time, settings.
    settings: String,
    steps: Vec<Written>,
    /// How many replies and messages the schedule expects as they were recorded.
    pub exact: usize,
    /// How many it expects that were not recorded like that.
    pub different: usize,
    /// How many were recorded and do not come: gates hold them or rules lose them, or the schedule differs.
    pub missing: usize,
    /// How many inputs the schedule leaves out: requests that could not be sent again, and malformed ones.
    pub left_out: usize,
}

/// A schedule that was shrunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    pub text: String,
    /// How many steps the run has, and how many are left.
    pub steps: usize,
    pub left: usize,
}

/// A step, and what clients are expected to have received after it.
#[derive(Clone, Debug)]
struct Written {
    step: Step,
    expected: Vec<(Who, Vec<Expected>)>,
}

/// What each connection has received, in order.
type Received = BTreeMap<Conn, VecDeque<String>>;

impl Recorded {
    /// Makes a schedule of a trace.
    ///
    /// # Errors
    /// The text is not a trace, or its nodes cannot be set up.
    pub fn of(tape: &Tape) -> Result<Recorded, ReplayError> {
        let malformed = |line, error| ReplayError::Malformed { line, error };
        let header = match tape.rows().first().map(|_| tape.line(0)) {
            Some(Ok(Line::Head(header))) => header,
            Some(Err(error)) => return Err(malformed(1, error.into())),
            _ => return Err(malformed(1, TraceError::NoHeader)),
        };
        let settings = settings_of(&header).map_err(|error| malformed(1, error.into()))?;
        let (inputs, received) = inputs(tape).map_err(|(line, error)| malformed(line, error.into()))?;
        let stage = stage(&settings).map_err(|error| {
            let why = error.cause.to_string();
            malformed(1, LineError::BadSetting { name: "settings".to_owned(), why }.into())
        })?;
        let (names, named) = names_of(&inputs);
        let received =
            received.into_iter().filter_map(|(conn, replies)| Some((names.get(&conn)?.clone(), replies)));
        let mut conversion = Conversion {
            received: received.collect(),
            names,
            named,
            stage,
            recorded: Recorded {
                settings,
                steps: Vec::new(),
                exact: 0,
                different: 0,
                missing: 0,
                left_out: 0,
            },
            began_us: None,
            setup: BTreeSet::new(),
        };
        for (index, line) in inputs.iter().enumerate() {
            conversion.advance_to(line.at_us().unwrap_or(0));
            conversion.input(line).map_err(|error| malformed(index + 2, error.into()))?;
        }
        conversion.recorded.missing += conversion.received.values().map(VecDeque::len).sum::<usize>();
        Ok(conversion.recorded)
    }

    /// Returns the text of the schedule.
    pub fn text(&self) -> String {
        let title = format!("# Recorded by redlatch {}\n", env!("CARGO_PKG_VERSION"));
        write(title + &self.settings, &self.steps)
    }

    /// Returns the shortest schedule found after which a predicate still holds, or `None` if it never holds.
    ///
    /// # Errors
    /// The predicate is wrong, or its script fails.
    pub fn shrink(
        &self,
        text: &str,
        read: impl FnOnce(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Option<Shrunk>, String> {
        let predicate = Predicate::parse(text, read)?;
        let may_check = !self.settings.lines().any(|line| line.starts_with("check"))
            && !self.steps.iter().any(|written| turns_checks(&written.step));
        let judged = |settings: &str| {
            let mut stage = stage(settings).map_err(|error| Failure::Wrong(error.to_string()))?;
            stage.add_judge(text.to_owned(), &predicate, may_check);
            Ok(stage)
        };
        let failed = |failure: Failure| failure.to_string();
        let steps: Vec<Step> = self.steps.iter().map(|written| written.step.clone()).collect();
        let mut search = Search::new(text);
        let begin = || judged(&self.settings);
        let Some(shortest) = search.shortest(&begin, &steps).map_err(failed)? else { return Ok(None) };
        let settings = fewer(self.settings.lines().collect(), |lines: &[&str]| {
            let settings = joined(lines);
            // A line about a node needs that which adds the node.
            Ok(stage(&settings).is_ok() && search.shows(&|| judged(&settings), &shortest)?)
        });
        let settings = joined(&settings.map_err(failed)?);
        let mut stage = judged(&settings).map_err(failed)?;
        // What has no effect in the shortest run is gone; a client may still wait when it should send.
        let mut left: Vec<Written> =
            shortest.into_iter().filter_map(|step| carry_out(&mut stage, step)).collect();
        let claim = Claim { predicate: text.trim().to_owned(), is_negated: false };
        let count = left.len();
        left.push(Written { step: Step::Holds(claim), expected: Vec::new() });
        let title = format!("# The shortest run found for: {}\n", text.trim());
        Ok(Some(Shrunk { text: write(title + &settings, &left), steps: steps.len(), left: count }))
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

fn turns_checks(step: &Step) -> bool {
    matches!(step, Step::Send { argv, .. } if argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SIM.CHECK")))
}

/// Creates the server that the settings describe.
fn stage(settings: &str) -> Result<Stage, ScheduleError> {
    Schedule::parse("settings", settings.as_bytes(), &mut NoFiles)?.stage(&mut NoFiles)
}

/// Returns the settings of a run, as a schedule has them.
fn settings_of(header: &Header) -> Result<String, LineError> {
    let mut text = String::new();
    let mut add = |name: &str, value: &str| {
        text.push_str(format!("{name} {value}").trim_end());
        text.push('\n');
    };
    let nodes = header.nodes.iter().map(|node| node.config()).collect::<Result<Vec<Config>, _>>()?;
    let defaults = SimOptions::default();
    let release = nodes.first().map_or(defaults.version, |config| config.version);
    if let Some(topology) = &header.topology {
        add("topology", topology);
    } else if nodes.len() > 1 {
        add("nodes", &nodes.len().to_string());
    }
    if release != defaults.version {
        add("version", &release.to_string());
    }
    if header.seed != defaults.seed {
        add("seed", &header.seed.to_string());
    }
    if header.wall_ms != defaults.wall_start_ms {
        add("start", &header.wall_ms.to_string());
    }
    if header.e > 0 {
        add("event", &header.e.to_string());
    }
    if let Some(checks) = &header.checks {
        add("check", &checks.join(" "));
    }
    let standard = defaults.version(release).configs().unwrap_or_default();
    let standard = standard.first();
    for (index, config) in nodes.iter().enumerate() {
        let is_standard =
            |name: &str, value: &str| standard.and_then(|config| config.get(name)) == Some(value);
        for (name, value) in config.matching(b"*") {
            let is_shared = nodes.iter().all(|other| other.get(name) == Some(value));
            if is_standard(name, value) || (is_shared && index > 0) {
                continue;
            }
            let of = if is_shared { "config".to_owned() } else { format!("config@{index}") };
            add(&of, &format!("{name} {}", quote(value.as_bytes())));
        }
    }
    Ok(text)
}

/// Returns the inputs of a trace, and what its clients have received.
fn inputs(tape: &Tape) -> Result<(Vec<Line>, Received), (usize, LineError)> {
    let mut inputs = Vec::new();
    let mut readers: BTreeMap<Conn, Connection> = BTreeMap::new();
    for row in 1..tape.rows().len() {
        let line = tape.line(row).map_err(|error| (row + 1, error))?;
        match line {
            Line::Out { c, b, .. } => {
                let bytes = to_bytes(&b).map_err(|error| (row + 1, error))?;
                readers.entry(c).or_default().read(&bytes);
            }
            Line::Head(_)
            | Line::Check { .. }
            | Line::Dig { .. }
            | Line::Slice { .. }
            | Line::Report { .. } => {}
            line => inputs.push(line),
        }
    }
    let received = readers.into_iter().map(|(conn, reader)| (conn, reader.into_replies()));
    Ok((inputs, received.collect()))
}

/// Gives each connection a name: that of CLIENT SETNAME, or its number. Returns also those that had it from the beginning.
fn names_of(inputs: &[Line]) -> (BTreeMap<Conn, Who>, BTreeSet<Conn>) {
    let mut wanted: BTreeMap<Conn, String> = BTreeMap::new();
    let mut named = BTreeSet::new();
    let mut order: Vec<(Conn, bool)> = Vec::new();
    for line in inputs {
        match line {
            Line::Open { c, control, .. } => order.push((*c, *control)),
            Line::Req { c, a, .. } | Line::Setup { c, a, .. } => {
                let is = |index: usize, word: &str| {
                    a.get(index).is_some_and(|arg: &String| arg.eq_ignore_ascii_case(word))
                };
                let name = match (is(0, "CLIENT") && is(1, "SETNAME"), is(0, "HELLO")) {
                    (true, _) => a.get(2),
                    (_, true) => a
                        .iter()
                        .position(|arg| arg.eq_ignore_ascii_case("SETNAME"))
                        .and_then(|at| a.get(at + 1)),
                    _ => None,
                };
                if let Some(name) = name
                    && !wanted.contains_key(c)
                {
                    wanted.insert(*c, name.clone());
                    if matches!(line, Line::Setup { .. }) {
                        named.insert(*c);
                    }
                }
            }
            _ => {}
        }
    }
    let mut taken: BTreeSet<Who> = BTreeSet::new();
    let mut names = BTreeMap::new();
    for (conn, is_control) in order {
        let node = Some(conn.node).filter(|node| *node != 0);
        let wish = match wanted.get(&conn) {
            _ if is_control => "control".to_owned(),
            Some(name) => {
                name.chars().filter(|c| c.is_ascii_alphanumeric() || "_-.".contains(*c)).take(40).collect()
            }
            None => String::new(),
        };
        let is_usable = wish.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
        let base = match is_usable && (is_control || !wish.starts_with("control")) {
            true => wish,
            false => format!("c{}", conn.number),
        };
        let mut who = Who { name: base.clone(), node };
        let mut number = 1;
        while !taken.insert(who.clone()) {
            number += 1;
            who.name = format!("{base}-{number}");
        }
        if wanted.get(&conn) != Some(&who.name) {
            named.remove(&conn);
        }
        names.insert(conn, who);
    }
    (names, named)
}

/// A conversion on its way.
struct Conversion {
    names: BTreeMap<Conn, Who>,
    /// What the recorded clients have received, as far as it has not been compared.
    received: BTreeMap<Who, VecDeque<String>>,
    /// The connections that have their names from the beginning.
    named: BTreeSet<Conn>,
    stage: Stage,
    recorded: Recorded,
    /// The driver's time of the run at which that of the stage began.
    began_us: Option<u64>,
    /// The clients that are being brought to their state at the beginning of the trace.
    setup: BTreeSet<Who>,
}

impl Conversion {
    /// Carries an input out.
    fn input(&mut self, line: &Line) -> Result<(), LineError> {
        if let Some(step) = self.step(line)?
            && !self.perform(step)
        {
            self.recorded.left_out += 1;
        }
        Ok(())
    }

    fn advance_to(&mut self, at_us: u64) {
        let later_us = at_us.saturating_sub(self.stage.now_us());
        if later_us > 0 {
            self.perform(Step::Advance { us: later_us });
        }
    }

    /// Returns the step that an input is, if it is one.
    fn step(&mut self, line: &Line) -> Result<Option<Step>, LineError> {
        Ok(match line {
            Line::Open { c, .. } => {
                let is_unnamed = !self.named.contains(c);
                let id = Some(c.number).filter(|id| self.stage.next_id(c.node) != Some(*id));
                self.names.get(c).map(|who| Step::Connect { who: who.clone(), is_unnamed, id })
            }
            Line::Setup { a, c, .. }
                if self.named.contains(c) && a.get(1).is_some_and(|word| word == "SETNAME") =>
            {
                None
            }
            Line::Setup { c, a, .. } => {
                self.setup.extend(self.names.get(c).cloned());
                self.request(c, a)?
            }
            Line::Req { c, a, el, .. } => {
                if let Some(who) = self.names.get(c) {
                    self.setup.remove(who);
                }
                if *el > 0 {
                    self.began_us.get_or_insert(el.saturating_sub(self.stage.elapsed_us()));
                }
                self.request(c, a)?
            }
            Line::State { a, .. } => {
                let words = a.iter().map(|word| to_bytes(word)).collect::<Result<Vec<_>, _>>()?;
                let text = command_text(&words);
                Some(Step::State { words, text })
            }
            Line::Close { c, .. } | Line::Bad { c, .. } | Line::Cut { c, .. } => {
                let who = self.names.get(c).filter(|who| self.stage.is_connected(who));
                self.recorded.left_out += usize::from(matches!(line, Line::Bad { .. }));
                who.cloned().map(Step::Disconnect)
            }
            Line::Await { el, .. } => {
                let passed_us = self.stage.elapsed_us().saturating_add(self.began_us.unwrap_or(*el));
                Some(Step::Idle { us: el.saturating_sub(passed_us) })
            }
            Line::Mark { text, .. } => {
                let text = String::from_utf8_lossy(&to_bytes(text)?).into_owned();
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                Some(Step::Say(text.replace("${", "$ {")))
            }
            _ => None,
        })
    }

    /// Returns the step of a request. What only this run's trace is about has none.
    fn request(&mut self, conn: &Conn, words: &[String]) -> Result<Option<Step>, LineError> {
        let argv = words.iter().map(|word| to_bytes(word)).collect::<Result<Vec<_>, _>>()?;
        let is_about_trace = argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SIM.TRACE"))
            && !argv.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"DIGEST"));
        let Some(who) = self.names.get(conn).filter(|_| !argv.is_empty()) else { return Ok(None) };
        if is_about_trace {
            self.received.get_mut(who).map(VecDeque::pop_front);
            return Ok(None);
        }
        Ok(Some(Step::Send { who: who.clone(), text: command_text(&argv), argv }))
    }

    /// Carries a step out, and keeps it with what clients receive. Returns false if it cannot be carried out.
    fn perform(&mut self, step: Step) -> bool {
        let Some(mut written) = carry_out(&mut self.stage, step) else { return false };
        for (who, expected) in &mut written.expected {
            // The replies to these requests are not recorded.
            if !self.setup.contains(who) {
                expected.iter_mut().for_each(|expected| self.compare(who, expected));
            }
        }
        self.recorded.steps.push(written);
        true
    }

    /// Compares a reply with what was recorded next. Makes a pattern of it if that is something else.
    fn compare(&mut self, who: &Who, expected: &mut Expected) {
        let Expected::Text(text) = &*expected else { return };
        let known = self.received.entry(who.clone()).or_default();
        let pattern = known.front().map(|reply| common(text, reply));
        if pattern.as_deref() == Some("*")
            && let Some(ahead) = known.iter().take(AHEAD).position(|reply| reply == text)
        {
            self.recorded.missing += known.drain(..ahead).count();
        }
        match known.pop_front() {
            Some(reply) if reply == *text => self.recorded.exact += 1,
            _ => {
                self.recorded.different += 1;
                *expected = Expected::Pattern(pattern.unwrap_or_else(|| "*".to_owned()));
            }
        }
    }
}

/// Carries a step out, and expects what clients receive. Returns `None` if it cannot be carried out.
fn carry_out(stage: &mut Stage, step: Step) -> Option<Written> {
    let outcome = stage.perform(&step, &mut |_| {});
    let received = stage.take_unread();
    outcome.ok()?;
    let exactly = |replies: Vec<String>| replies.into_iter().map(Expected::Text).collect();
    let mut expected: Vec<(Who, Vec<Expected>)> =
        received.into_iter().map(|(who, replies)| (who, exactly(replies))).collect();
    if let Step::Send { who, .. } = &step
        && !expected.iter().any(|(to, _)| to == who)
    {
        let nothing = if stage.is_connected(who) { Expected::Waits } else { Expected::Closed };
        expected.push((who.clone(), vec![nothing]));
    }
    Some(Written { step, expected })
}

/// Returns a pattern that both texts fit: equal but for their numbers, or anything.
fn common(one: &str, other: &str) -> String {
    let (ones, others) = (parts(one), parts(other));
    let are_alike = ones.len() == others.len()
        && ones.iter().zip(&others).all(|(one, other)| one == other || (is_number(one) && is_number(other)));
    if !are_alike {
        return "*".to_owned();
    }
    ones.iter().zip(&others).map(|(one, other)| if one == other { one } else { "*" }).collect()
}

fn is_number(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_digit())
}

/// Splits a text into its numbers and what is between them.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| c.is_ascii_digit() != first.is_ascii_digit()).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts
}

/// Writes settings and steps. Long arguments become definitions.
fn write(mut text: String, steps: &[Written]) -> String {
    let definitions = define(steps, &mut text);
    for Written { step, expected } in steps {
        let mut sender = None;
        match step {
            Step::Send { who, argv, .. } => {
                let words: Vec<String> = argv
                    .iter()
                    .map(|word| definitions.get(word).map_or_else(|| quote(word), |name| format!("${name}")))
                    .collect();
                let _ = writeln!(text, "{who}: {}", words.join(" "));
                sender = Some(who);
            }
            step => {
                let _ = writeln!(text, "{step}");
            }
        }
        let own = expected.iter().filter(|(who, _)| Some(who) == sender);
        for expected in own.flat_map(|(_, expected)| expected) {
            let _ = writeln!(text, "{}", Step::Expect { who: None, expected: expected.clone() });
        }
        for (who, expected) in expected.iter().filter(|(who, _)| Some(who) != sender) {
            for expected in expected {
                let _ =
                    writeln!(text, "{}", Step::Expect { who: Some(who.clone()), expected: expected.clone() });
            }
        }
    }
    text
}

/// Writes the definitions of long arguments, and returns their names.
fn define(steps: &[Written], text: &mut String) -> BTreeMap<Vec<u8>, String> {
    let mut names = BTreeMap::new();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for written in steps {
        let Step::Send { argv, .. } = &written.step else { continue };
        for word in argv.iter().filter(|word| word.len() >= LONG && std::str::from_utf8(word).is_ok()) {
            if names.contains_key(word) {
                continue;
            }
            let base = role(word).map_or("text".to_owned(), |role| role.name().replace(['.', '-'], "_"));
            let mut name = base.clone();
            let mut number = 1;
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{base}_{number}");
            }
            let _ = writeln!(text, "let {name} = {}", defined(word));
            names.insert(word.clone(), name);
        }
    }
    names
}

/// Writes the text of a definition: as it stands if it can, in quotes otherwise.
fn defined(word: &[u8]) -> String {
    match std::str::from_utf8(word) {
        Ok(text)
            if text.trim() == text
                && !text.chars().any(char::is_control)
                && !text.starts_with('"')
                && !text.contains("${") =>
        {
            text.to_owned()
        }
        _ => in_quotes(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_numbers_have_a_pattern() {
        for (one, other, pattern) in [
            ("[7, 1700, manual]", "[9, 1700, manual]", "[*, 1700, manual]"),
            ("id=3 age=1", "id=3 age=20", "id=3 age=*"),
            ("OK", "nil", "*"),
            ("a1", "1a", "*"),
        ] {
            assert_eq!(common(one, other), pattern);
        }
    }
}
