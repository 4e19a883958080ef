//! The text of a schedule: lines, loops, definitions, settings and included files.

use super::failure::{Failure, Place, ScheduleError};
use super::step::{Claim, Directive, Step, syntax};
use super::words::{At, Variables, column_of, expand};
use crate::control::args::Args;
use crate::control::commands::check::parse_checks;
use crate::sim::SimOptions;
use redlatch_core::node::Config;
use redlatch_locks::check::Checks;

/// The most bytes of a schedule, of each file that it includes, and of all definitions together.
pub const MAX_BYTES: usize = 64 << 20;
/// The most steps that a run carries out, loops included.
const MAX_STEPS: u64 = 1_000_000;
/// How deep loops and files may be nested.
const MAX_DEPTH: usize = 16;
/// The most files that a schedule includes.
const MAX_FILES: usize = 256;
/// The most nodes.
const MAX_NODES: usize = 64;

/// Definitions that every schedule can include by name.
const LIBRARY: &[(&str, &str)] =
    &[("rlock", include_str!("library/rlock.txt")), ("fair", include_str!("library/fair.txt"))];

/// How a schedule reads the files that it names.
pub trait Files {
    /// Reads a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String>;

    /// Returns the script that has a role in a jar.
    ///
    /// # Errors
    /// Why there is none.
    fn script(&mut self, jar: &str, role: &str) -> Result<String, String>;
}

/// No files: for schedules that name none.
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("cannot read {path}: this schedule has no files"))
    }

    fn script(&mut self, jar: &str, _: &str) -> Result<String, String> {
        Err(format!("cannot read {jar}: this schedule has no files"))
    }
}

/// A line, or a loop of lines.
#[derive(Clone, Debug)]
enum Item {
    Line { line: usize, file: usize },
    Loop { line: usize, file: usize, times: u64, variable: Option<String>, body: Vec<Item> },
}

/// A text with its lines.
#[derive(Clone, Debug)]
struct File {
    name: String,
    lines: Vec<String>,
}

/// A schedule that can be run: every line has been read once, and has one of the forms that there are.
#[derive(Clone, Debug)]
pub struct Schedule {
    files: Vec<File>,
    items: Vec<Item>,
    /// The definitions of the whole text, as far as they do not depend on loops.
    variables: Variables,
    pub(super) options: SimOptions,
    pub(super) configs: Vec<Config>,
    /// What must hold at some point, and where the text says so.
    pub(super) claims: Vec<(Place, Claim)>,
    /// The number of the last event before the run.
    pub(super) event: u64,
    /// The checks that are on from the beginning.
    pub(super) checks: Option<Checks>,
    /// Whether the schedule turns checks on or off itself.
    pub(super) has_checks: bool,
}

impl Schedule {
    /// Reads the text of a schedule. `name` is that of its file, for messages.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(name: &str, text: &[u8], files: &mut dyn Files) -> Result<Schedule, ScheduleError> {
        let mut reader = Reader {
            source: files,
            files: Vec::new(),
            variables: Variables::new(),
            options: SimOptions::default(),
            settings: Vec::new(),
            claims: Vec::new(),
            event: 0,
            checks: None,
            has_checks: false,
            has_steps: false,
            defined_bytes: 0,
        };
        let items = reader.file(name, text, 0)?;
        let configs = reader.configs()?;
        let Reader { files, variables, options, claims, event, checks, has_checks, .. } = reader;
        Ok(Schedule { files, items, variables, options, configs, claims, event, checks, has_checks })
    }

    /// Returns the title: the comment in the first line, if there is one.
    pub fn title(&self) -> Option<&str> {
        let first = self.files.first()?.lines.first()?.strip_prefix('#')?;
        Some(first.trim())
    }

    /// Passes each step to `each`, with its place, as often as loops say.
    ///
    /// # Errors
    /// The first error of `each`, or that there are too many steps.
    pub(super) fn walk(
        &self,
        each: &mut dyn FnMut(&Step) -> Result<(), Failure>,
    ) -> Result<(), ScheduleError> {
        let mut variables = self.variables.clone();
        let mut steps = 0;
        self.walk_items(&self.items, &mut variables, &mut steps, each)
    }

    fn walk_items(
        &self,
        items: &[Item],
        variables: &mut Variables,
        steps: &mut u64,
        each: &mut dyn FnMut(&Step) -> Result<(), Failure>,
    ) -> Result<(), ScheduleError> {
        let error =
            |file, line, (column, cause)| ScheduleError { place: self.place(file, line, column), cause };
        for item in items {
            match item {
                Item::Line { line, file } => {
                    self.count(steps, *file, *line)?;
                    let error = |at| error(*file, *line, at);
                    let line = &self.files[*file].lines[*line];
                    let text = line.trim();
                    let step = Step::parse(line, text, variables).map_err(error)?;
                    each(&step).map_err(|cause| error((column_of(line, text), cause)))?;
                }
                Item::Loop { line, file, times, variable, body } => {
                    for number in 1..=*times {
                        self.count(steps, *file, *line)?;
                        if let Some(variable) = variable {
                            variables.insert(variable.clone(), number.to_string());
                        }
                        self.walk_items(body, variables, steps, each)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts a step, or one round of a loop.
    fn count(&self, steps: &mut u64, file: usize, line: usize) -> Result<(), ScheduleError> {
        *steps += 1;
        match *steps > MAX_STEPS {
            true => Err(ScheduleError { place: self.place(file, line, 1), cause: too_many_steps() }),
            false => Ok(()),
        }
    }

    fn place(&self, file: usize, line: usize, column: usize) -> Place {
        Place { file: self.files[file].name.clone(), line: line + 1, column }
    }

    /// Returns the place of the last line.
    pub(super) fn end(&self) -> Place {
        self.place(0, self.files[0].lines.len().saturating_sub(1), 1)
    }
}

fn too_many_steps() -> Failure {
    Failure::Limit(format!("the schedule has more than {MAX_STEPS} steps"))
}

/// A setting, and where it is.
struct Setting {
    place: Place,
    name: String,
    value: String,
}

/// Reads texts.
struct Reader<'a> {
    source: &'a mut dyn Files,
    files: Vec<File>,
    variables: Variables,
    options: SimOptions,
    settings: Vec<Setting>,
    claims: Vec<(Place, Claim)>,
    event: u64,
    checks: Option<Checks>,
    has_checks: bool,
    has_steps: bool,
    /// How many bytes all definitions have.
    defined_bytes: usize,
}

/// A loop that has not ended yet.
struct Open {
    place: Place,
    times: u64,
    variable: Option<String>,
    body: Vec<Item>,
}

impl Reader<'_> {
    /// Reads a text. `depth` files include it.
    fn file(&mut self, name: &str, text: &[u8], depth: usize) -> Result<Vec<Item>, ScheduleError> {
        let text = lines_of(name, text)?;
        let index = self.files.len();
        self.files.push(File { name: name.to_owned(), lines: text.lines().map(str::to_owned).collect() });
        let mut open: Vec<Open> = Vec::new();
        let mut items = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let at = |(column, cause)| ScheduleError {
                place: Place { file: name.to_owned(), line: number + 1, column },
                cause,
            };
            let text = line.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let here = |cause| at((column_of(line, text), cause));
            let into = open.last_mut().map_or(&mut items, |innermost: &mut Open| &mut innermost.body);
            match Directive::parse(line, text).map_err(at)? {
                None => {
                    let step = Step::parse(line, text, &self.variables).map_err(at)?;
                    let place = here(Failure::NotUtf8).place;
                    self.see(&step, place);
                    into.push(Item::Line { line: number, file: index });
                }
                Some(Directive::Repeat { times, variable }) => {
                    if open.len() + depth >= MAX_DEPTH {
                        return Err(here(Failure::Limit(format!(
                            "more than {MAX_DEPTH} loops and files in each other"
                        ))));
                    }
                    let variable = variable.map(str::to_owned);
                    // Every line is read once, with the first number.
                    variable
                        .iter()
                        .for_each(|name| drop(self.variables.insert(name.clone(), "1".to_owned())));
                    open.push(Open {
                        place: here(Failure::NotUtf8).place,
                        times,
                        variable,
                        body: Vec::new(),
                    });
                }
                Some(Directive::End) => {
                    let Some(Open { place, times, variable, body }) = open.pop() else {
                        return Err(here(Failure::Unpaired("end")));
                    };
                    let into = open.last_mut().map_or(&mut items, |outer| &mut outer.body);
                    into.push(Item::Loop { line: place.line - 1, file: index, times, variable, body });
                }
                Some(_) if !open.is_empty() => {
                    return Err(here(syntax(
                        text,
                        "a step: definitions, settings and files come before 'repeat'",
                    )));
                }
                Some(Directive::Include(file)) => {
                    let included = self.include(file, depth).map_err(|error| match error {
                        Included::Unreadable(cause) => at((column_of(line, file), cause)),
                        Included::Wrong(error) => error,
                    })?;
                    items.extend(included);
                }
                Some(Directive::Setting { name: setting, value }) => {
                    if self.has_steps {
                        return Err(here(Failure::TooLate(setting.to_owned())));
                    }
                    let place = here(Failure::NotUtf8).place;
                    let column = column_of(line, value);
                    let (name, value) = (setting.to_owned(), value.to_owned());
                    self.set(&name, &value).map_err(|cause| at((column, cause)))?;
                    self.settings.push(Setting { place, name, value });
                }
                Some(directive) => self.define(line, directive).map_err(at)?,
            }
        }
        match open.pop() {
            Some(open) => Err(ScheduleError { place: open.place, cause: Failure::Unpaired("repeat") }),
            None => Ok(items),
        }
    }

    /// Notes what a step needs from the beginning.
    fn see(&mut self, step: &Step, place: Place) {
        self.has_steps = true;
        match step {
            Step::Holds(claim) => self.claims.push((place, claim.clone())),
            Step::Send { argv, .. } => {
                self.has_checks |= argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SIM.CHECK"));
            }
            _ => {}
        }
    }

    fn define(&mut self, line: &str, directive: Directive) -> Result<(), At> {
        let (name, text) = match directive {
            Directive::Let { name, text } => {
                let text = expand(&text, &self.variables);
                (name, text.map_err(|cause| (column_of(line, name), cause))?)
            }
            Directive::Script { name, role, file } => {
                let unreadable = |why| (column_of(line, file), Failure::Unreadable(why));
                let text = match role {
                    Some(role) => self.source.script(file, role).map_err(unreadable)?,
                    None => {
                        let bytes = self.source.read(file).map_err(unreadable)?;
                        String::from_utf8(bytes).map_err(|_| unreadable(format!("{file} is not UTF-8")))?
                    }
                };
                (name, text)
            }
            _ => return Ok(()),
        };
        self.defined_bytes += text.len();
        if self.defined_bytes > MAX_BYTES {
            let here = |cause| (column_of(line, name), cause);
            return Err(here(Failure::Limit(format!(
                "the definitions have more than {} MiB",
                MAX_BYTES >> 20
            ))));
        }
        self.variables.insert(name.to_owned(), text);
        Ok(())
    }

    fn include(&mut self, file: &str, depth: usize) -> Result<Vec<Item>, Included> {
        if depth + 1 >= MAX_DEPTH || self.files.len() > MAX_FILES {
            let why = format!("more than {MAX_DEPTH} files in each other, or {MAX_FILES} in all");
            return Err(Included::Unreadable(Failure::Limit(why)));
        }
        let known = LIBRARY.iter().find(|(name, _)| *name == file);
        let text = match known {
            Some((_, text)) => text.as_bytes().to_vec(),
            None => self.source.read(file).map_err(|why| Included::Unreadable(Failure::Unreadable(why)))?,
        };
        self.file(file, &text, depth + 1).map_err(Included::Wrong)
    }

    /// Applies a setting of the world. Those of nodes are applied when all are known.
    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let number = |expected| Err(syntax(value, expected));
        match name {
            "nodes" => match value.parse() {
                Ok(nodes) if (1..=MAX_NODES).contains(&nodes) => self.options.nodes = nodes,
                _ => return number("a number of nodes from 1 to 64"),
            },
            "topology" => match value.parse() {
                Ok(topology) => self.options = std::mem::take(&mut self.options).topology(topology),
                Err(error) => return Err(Failure::Wrong(format!("{error}"))),
            },
            "seed" => match value.parse() {
                Ok(seed) => self.options.seed = seed,
                Err(_) => return number("a number"),
            },
            "event" => match value.parse() {
                Ok(event) if event < 1 << 53 => self.event = event,
                _ => return number("the number of an event"),
            },
            "start" => match value.parse() {
                Ok(ms) if (0..1 << 53).contains(&ms) => self.options.wall_start_ms = ms,
                _ => return number("a Unix time in ms"),
            },
            "version" => match value.parse() {
                Ok(version) => self.options.version = version,
                Err(error) => return Err(Failure::Wrong(format!("{error}"))),
            },
            "check" => {
                let words: Vec<&[u8]> = value.split_whitespace().map(str::as_bytes).collect();
                let checks =
                    parse_checks(&mut Args::new(&words)).map_err(|error| Failure::Wrong(error.text))?;
                (self.checks, self.has_checks) = (Some(checks), true);
            }
            _ if value.split_once(char::is_whitespace).is_none() => return number("NAME VALUE"),
            _ => {}
        }
        Ok(())
    }

    /// Returns the settings of each node.
    fn configs(&self) -> Result<Vec<Config>, ScheduleError> {
        let nodes = self.options.nodes;
        let mut configs = self.options.configs().map_err(|error| ScheduleError {
            place: Place::default(),
            cause: Failure::Wrong(error.to_string()),
        })?;
        for Setting { place, name, value } in &self.settings {
            let Some(of) = name.strip_prefix("config") else { continue };
            let error = |cause| ScheduleError { place: place.clone(), cause };
            let of = match of.strip_prefix('@') {
                Some(node) => match node.parse() {
                    Ok(node) if node < nodes => node..node + 1,
                    Ok(node) => return Err(error(Failure::NoSuchNode { node, nodes })),
                    Err(_) => return Err(error(syntax(name, "config or config@NODE"))),
                },
                None => 0..nodes,
            };
            let (parameter, value) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
            let value = match unquote(value.trim()) {
                Some(value) => value,
                None => return Err(error(Failure::UnbalancedQuotes)),
            };
            for config in &mut configs[of] {
                let set = config.set_at_start(parameter, &value);
                set.map_err(|why| error(Failure::Wrong(format!("the setting '{parameter}': {why}"))))?;
            }
        }
        Ok(configs)
    }
}

/// Returns the value of a setting without its quotes.
fn unquote(value: &str) -> Option<Vec<u8>> {
    if !value.starts_with(['"', '\'']) {
        return Some(value.as_bytes().to_vec());
    }
    let words = redlatch_core::wire::request::split_words(value.as_bytes())?;
    Some(words.join(&b' '))
}

/// Why a file cannot be included.
enum Included {
    Unreadable(Failure),
    Wrong(ScheduleError),
}

/// Returns the text of a file without a byte order mark.
fn lines_of<'t>(name: &str, text: &'t [u8]) -> Result<&'t str, ScheduleError> {
    let error =
        |line, column, cause| ScheduleError { place: Place { file: name.to_owned(), line, column }, cause };
    if text.len() > MAX_BYTES {
        let why = format!("the file has more than {} MiB", MAX_BYTES >> 20);
        return Err(error(1, 1, Failure::Limit(why)));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    std::str::from_utf8(text).map_err(|wrong| {
        let before = String::from_utf8_lossy(&text[..wrong.valid_up_to()]).into_owned();
        let last = before.rsplit_once('\n').map_or(&*before, |(_, last)| last);
        error(before.matches('\n').count() + 1, last.chars().count() + 1, Failure::NotUtf8)
    })
}
