//! Parses the file that describes a lock. docs/own-locks.md explains the form.

use std::fmt;

use super::answer::{Answer, Pattern};
use super::lock::{DEFAULT_VERSION, Kind, Lease, Limit, Lock, Part, Reentry, Window};
use super::roles;
use super::template::{Slot, Template};
use crate::invariant::Invariant;
use crate::model::Wanted;
use crate::role::Role;
use redlatch_core::commands::command::{BLOCKING, NOSCRIPT};
use redlatch_core::commands::table;
use redlatch_core::script::Vm;
use redlatch_core::version::Version;

/// The reason why a description is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    /// Where in the file: `[acquire] granted`. Empty if the whole file is meant.
    pub place: String,
    pub problem: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.place.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}", self.place, self.problem)
    }
}

impl std::error::Error for DescriptionError {}

type Result<T> = std::result::Result<T, DescriptionError>;

fn fail<T>(place: impl Into<String>, problem: impl Into<String>) -> Result<T> {
    Err(DescriptionError { place: place.into(), problem: problem.into() })
}

/// Reads a file that a description names. Fails with the reason.
pub type Files<'a> = dyn FnMut(&str) -> std::result::Result<String, String> + 'a;

/// Refuses to read files.
pub fn no_files(_: &str) -> std::result::Result<String, String> {
    Err("files cannot be read here".to_owned())
}

/// The form of a request in the file.
struct Form {
    role: Role,
    /// The kinds of locks that have it, and those that need it.
    kinds: &'static [Kind],
    needed: &'static [Kind],
    answers: &'static [(&'static str, Answer)],
    /// What the reply means if the file does not say it.
    default: fn() -> Vec<(Answer, Pattern)>,
    flags: &'static [&'static str],
}

const HOLDERS: &[Kind] = &[Kind::Lock, Kind::Queue, Kind::Semaphore];
const TAKERS: &[Kind] = &[Kind::Lock, Kind::Queue, Kind::Semaphore, Kind::Limiter];

fn one_is(answer: Answer) -> Vec<(Answer, Pattern)> {
    vec![(answer, Pattern::Int(1)), (Answer::NotHeld, Pattern::Anything)]
}

fn granted() -> Vec<(Answer, Pattern)> {
    let granted = Pattern::Any(vec![Pattern::Int(1), Pattern::Text("OK".to_owned())]);
    vec![(Answer::Granted, granted), (Answer::Refused, Pattern::Anything)]
}

const FORMS: &[Form] = &[
    Form {
        role: roles::ACQUIRE,
        kinds: TAKERS,
        needed: TAKERS,
        answers: &[("granted", Answer::Granted), ("refused", Answer::Refused)],
        default: granted,
        flags: &[],
    },
    Form {
        role: roles::TRY,
        kinds: HOLDERS,
        needed: &[],
        answers: &[("granted", Answer::Granted), ("refused", Answer::Refused)],
        default: granted,
        flags: &["overtakes"],
    },
    Form {
        role: roles::RELEASE,
        kinds: HOLDERS,
        needed: HOLDERS,
        answers: &[
            ("released", Answer::Released),
            ("still_held", Answer::StillHeld),
            ("not_held", Answer::NotHeld),
        ],
        default: || one_is(Answer::Released),
        flags: &[],
    },
    Form {
        role: roles::EXTEND,
        kinds: HOLDERS,
        needed: &[],
        answers: &[("extended", Answer::Extended), ("not_held", Answer::NotHeld)],
        default: || one_is(Answer::Extended),
        flags: &["adds", "acquires"],
    },
    Form {
        role: roles::FORCE,
        kinds: &[Kind::Lock, Kind::Queue],
        needed: &[],
        answers: &[("released", Answer::Released), ("not_held", Answer::NotHeld)],
        default: || vec![(Answer::Released, Pattern::Anything)],
        flags: &[],
    },
    Form {
        role: roles::LEAVE,
        kinds: &[Kind::Queue],
        needed: &[],
        answers: &[("done", Answer::Done)],
        default: || vec![(Answer::Done, Pattern::Anything)],
        flags: &[],
    },
    Form {
        role: roles::RESET,
        kinds: &[Kind::Semaphore, Kind::Latch, Kind::Limiter],
        needed: &[Kind::Latch],
        answers: &[("done", Answer::Done), ("refused", Answer::Refused)],
        default: || vec![(Answer::Done, Pattern::Anything)],
        flags: &[],
    },
    Form {
        role: roles::COUNT_DOWN,
        kinds: &[Kind::Latch],
        needed: &[Kind::Latch],
        answers: &[("counted", Answer::Counted), ("opened", Answer::Opened)],
        default: || vec![(Answer::Counted, Pattern::Anything)],
        flags: &[],
    },
    Form {
        role: roles::GET,
        kinds: &[Kind::Semaphore, Kind::Latch],
        needed: &[],
        answers: &[("answer", Answer::Done)],
        default: || vec![(Answer::Done, Pattern::Any(vec![Pattern::Left, Pattern::Nil]))],
        flags: &[],
    },
];

impl Form {
    fn name(&self) -> &'static str {
        self.role.name().strip_prefix("own.").unwrap_or_default()
    }
}

const KINDS: &[(&str, Kind)] = &[
    ("lock", Kind::Lock),
    ("queue", Kind::Queue),
    ("semaphore", Kind::Semaphore),
    ("latch", Kind::Latch),
    ("limiter", Kind::Limiter),
];

const WINDOWS: &[(&str, Window)] = &[
    ("sliding", Window::Sliding),
    ("fixed", Window::Fixed),
    ("clock", Window::Clock),
    ("bucket", Window::Bucket),
];

/// The fields that are not requests, and the kinds of locks that have them.
const FIELDS: &[(&str, &[Kind])] = &[
    ("kind", ALL),
    ("redis_version", ALL),
    ("key", ALL),
    ("stays", ALL),
    ("may_be_lost", ALL),
    ("cluster", ALL),
    ("broken", ALL),
    ("lease", HOLDERS),
    ("reentrant", &[Kind::Lock]),
    ("channel", &[Kind::Lock, Kind::Queue, Kind::Semaphore, Kind::Latch]),
    ("message", &[Kind::Lock, Kind::Queue, Kind::Semaphore, Kind::Latch]),
    ("signal", HOLDERS),
    ("permits", &[Kind::Semaphore]),
    ("waiter_ms", &[Kind::Queue]),
    ("limit", &[Kind::Limiter]),
    ("per_ms", &[Kind::Limiter]),
    ("burst", &[Kind::Limiter]),
    ("window", &[Kind::Limiter]),
];

const ALL: &[Kind] = &[Kind::Lock, Kind::Queue, Kind::Semaphore, Kind::Latch, Kind::Limiter];

/// The longest time that a file may state, in ms.
const MAX_MS: i64 = 600_000;
/// The most permits, requests in an interval, and words of a request.
const MAX_PERMITS: i64 = 1_000;
const MAX_LIMIT: i64 = 1_000_000;
const MAX_WORDS: usize = 64;

/// A table of the file, and its place.
struct Fields<'a> {
    place: String,
    table: &'a toml::Table,
}

impl<'a> Fields<'a> {
    fn place(&self, name: &str) -> String {
        format!("{}{}{name}", self.place, if self.place.is_empty() { "" } else { " " })
    }

    fn only(&self, names: &[&str]) -> Result<()> {
        match self.table.keys().find(|key| !names.contains(&&key[..])) {
            Some(misplaced) if FIELDS.iter().any(|(name, _)| name == misplaced) && !self.place.is_empty() => {
                fail(self.place(misplaced), "belongs to the whole lock: write it before the first request")
            }
            Some(unknown) => fail(self.place(unknown), format!("unknown; there are {}", names.join(", "))),
            None => Ok(()),
        }
    }

    fn get<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a toml::Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.table.get(name) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => fail(self.place(name), format!("{} is not {expected}", shown(value))),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.get(name, "a text", |value| value.as_str())
    }

    fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.get(name, "true or false", |value| value.as_bool())?.unwrap_or(false))
    }

    fn number(&self, name: &str, most: i64) -> Result<Option<i64>> {
        let expected = format!("a number from 1 to {most}");
        self.get(name, &expected, |value| value.as_integer().filter(|n| (1..=most).contains(n)))
    }

    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let names: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let find = |value: &toml::Value| {
            words.iter().find(|(word, _)| value.as_str() == Some(word)).map(|(_, found)| *found)
        };
        self.get(name, &format!("one of {}", names.join(", ")), find)
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        let texts = |value: &'a toml::Value| {
            value.as_array()?.iter().map(|word| word.as_str()).collect::<Option<Vec<&str>>>()
        };
        let texts = self.get(name, "a list of texts", texts)?;
        match &texts {
            Some(texts) if texts.len() > MAX_WORDS => {
                fail(self.place(name), format!("more than {MAX_WORDS} words"))
            }
            _ => Ok(texts),
        }
    }

    fn template(&self, name: &str, text: &str) -> Result<Template> {
        Template::parse(text).or_else(|problem| fail(self.place(name), problem))
    }

    /// Reads a key or a channel, whose name is the same in all requests.
    fn constant(&self, name: &str, text: &str) -> Result<Template> {
        let template = self.template(name, text)?;
        let other = template.slots().find(|slot| *slot != Slot::Lock);
        match other {
            Some(slot) => {
                fail(self.place(name), format!("{{{}}} cannot stand here, only {{lock}}", slot.name()))
            }
            None => Ok(template),
        }
    }

    fn constants(&self, name: &str) -> Result<Vec<Template>> {
        self.texts(name)?.unwrap_or_default().into_iter().map(|text| self.constant(name, text)).collect()
    }
}

fn shown(value: &toml::Value) -> String {
    let text = match value {
        toml::Value::String(text) => format!("{text:?}"),
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Boolean(flag) => flag.to_string(),
        other => format!("this {}", other.type_str()),
    };
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Parses the description of a lock.
///
/// # Errors
/// Fails if the text is not TOML, does not describe a lock completely, or contains a script that does not compile.
pub fn parse(description: &str, files: &mut Files) -> Result<Lock> {
    let table = toml_table(description)?;
    let file = Fields { place: String::new(), table: &table };
    let kind = file.word("kind", KINDS)?.unwrap_or_default();
    let fields = FIELDS.iter().filter(|(_, kinds)| kinds.contains(&kind)).map(|(name, _)| *name);
    let forms: Vec<&Form> = FORMS.iter().filter(|form| form.kinds.contains(&kind)).collect();
    let known: Vec<&str> = forms.iter().map(|form| form.name()).chain(fields).collect();
    file.only(&known)?;
    broken_of(&file)?;
    let version = match file.text("redis_version")? {
        Some(text) => text.parse::<Version>().or_else(|error| fail("redis_version", error.to_string()))?,
        None => DEFAULT_VERSION,
    };
    let mut parts = Vec::new();
    for form in forms {
        let name = format!("[{}]", form.name());
        match table.get(form.name()) {
            Some(toml::Value::Table(table)) => {
                parts.push(part(&Fields { place: name, table }, form, version, files)?);
            }
            Some(other) => return fail(name, format!("{} is not a table", shown(other))),
            None if form.needed.contains(&kind) => return fail(name, "is missing"),
            None => {}
        }
    }
    compile(&parts, version)?;
    let channel = file.text("channel")?.map(|text| file.constant("channel", text)).transpose()?;
    let signal = file.text("signal")?.map(|text| file.constant("signal", text)).transpose()?;
    let mut lock = Lock {
        kind,
        version,
        key: main_key(&file, &parts[0])?,
        channel,
        message: file.text("message")?.map(str::to_owned),
        signal,
        stays: file.constants("stays")?,
        may_be_lost: file.constants("may_be_lost")?,
        is_in_cluster: file.flag("cluster")?,
        parts,
        ..Lock::default()
    };
    if lock.message.is_some() && lock.channel.is_none() {
        return fail("message", "there is no channel");
    }
    if HOLDERS.contains(&kind) {
        lock.lease = lease(&file, &lock)?;
        lock.reentry = reentry(&file)?;
    }
    match kind {
        Kind::Queue => {
            let ms = file.number("waiter_ms", MAX_MS)?;
            lock.waiter_ms = ms.map_or_else(|| fail("waiter_ms", "is missing"), Ok)?;
        }
        Kind::Semaphore => {
            let permits = file.number("permits", MAX_PERMITS)?;
            match (permits, lock.part(roles::RESET)) {
                (None, None) => return fail("permits", "is missing"),
                (Some(_), Some(_)) => return fail("permits", "[reset] sets their number"),
                (permits, _) => lock.permits = permits.unwrap_or(0),
            }
        }
        Kind::Limiter => lock.limit = Some(limit(&file)?),
        Kind::Lock | Kind::Latch => {}
    }
    check_slots(&lock)?;
    Ok(lock)
}

fn toml_table(description: &str) -> Result<toml::Table> {
    description.parse().or_else(|error: toml::de::Error| fail("", error.to_string().trim_end()))
}

fn lease(file: &Fields, lock: &Lock) -> Result<Lease> {
    let words = [("key", Lease::Key), ("stored", Lease::Stored), ("none", Lease::Endless)];
    let is_passed = lock.part(roles::ACQUIRE).is_some_and(|part| part.slots().any(Slot::is_lease));
    match (file.word("lease", &words)?, is_passed, lock.kind) {
        (Some(Lease::Endless), true, _) => fail("lease", "[acquire] passes one"),
        (Some(Lease::Key | Lease::Stored), false, _) | (None, false, Kind::Lock | Kind::Queue) => fail(
            "[acquire]",
            "passes no lease: use {lease_ms} or {lease_s}, or state lease = \"none\" if it never ends",
        ),
        (Some(lease), ..) => Ok(lease),
        (None, false, _) => Ok(Lease::Endless),
        (None, true, Kind::Semaphore) => Ok(Lease::Stored),
        (None, true, _) => Ok(Lease::Key),
    }
}

fn reentry(file: &Fields) -> Result<Reentry> {
    let read = |value: &toml::Value| match value {
        toml::Value::Boolean(false) => Some(Reentry::Refused),
        toml::Value::String(word) if word == "counts" => Some(Reentry::Counts),
        toml::Value::String(word) if word == "renews" => Some(Reentry::Renews),
        _ => None,
    };
    Ok(file.get("reentrant", "false, \"counts\" or \"renews\"", read)?.unwrap_or_default())
}

fn limit(file: &Fields) -> Result<Limit> {
    let needed = |name: &str, found: Option<i64>| found.map_or_else(|| fail(name, "is missing"), Ok);
    let limit = needed("limit", file.number("limit", MAX_LIMIT)?)?;
    let per_ms = needed("per_ms", file.number("per_ms", MAX_MS)?)?;
    let Some(window) = file.word("window", WINDOWS)? else { return fail("window", "is missing") };
    let burst = file.number("burst", MAX_LIMIT)?;
    if burst.is_some() && window != Window::Bucket {
        return fail("burst", "only window = \"bucket\" has one");
    }
    Ok(Limit { limit, per_ms, burst: burst.unwrap_or(limit), window })
}

/// Returns the key that the file names, or the first key of the first request.
fn main_key(file: &Fields, first: &Part) -> Result<Template> {
    if let Some(text) = file.text("key")? {
        return file.constant("key", text);
    }
    let names_lock = |word: &&Template| word.slots().any(|slot| slot == Slot::Lock);
    let mut words = if first.script.is_empty() { first.args.iter() } else { first.keys.iter() };
    Ok(words.find(names_lock).cloned().unwrap_or_else(|| Template::of(Slot::Lock)))
}

fn part(fields: &Fields, form: &Form, version: Version, files: &mut Files) -> Result<Part> {
    let request = ["command", "script", "script_file", "script_from", "script_to", "keys", "args", "resend"];
    let answers = form.answers.iter().map(|(name, _)| *name);
    let known: Vec<&str> = request.into_iter().chain(answers).chain(form.flags.iter().copied()).collect();
    fields.only(&known)?;
    let mut part = Part {
        role: form.role,
        script: String::new(),
        keys: Vec::new(),
        args: Vec::new(),
        answers: Vec::new(),
        resend: fields.flag("resend")?,
        adds: fields.flag("adds")?,
        acquires: fields.flag("acquires")?,
        overtakes: fields.flag("overtakes")?,
    };
    match fields.texts("command")? {
        Some(words) => {
            let of_scripts = ["script", "script_file", "script_from", "script_to", "keys", "args"];
            if let Some(other) = of_scripts.iter().find(|name| fields.table.contains_key(**name)) {
                return fail(fields.place(other), "a command has no script, keys or args");
            }
            check_command(fields, &words, version)?;
            let template = |word: &&str| match Slot::find(word) {
                Some(_) => {
                    fail(fields.place("command"), format!("\"{word}\": write \"{{{word}}}\" for its value"))
                }
                None => fields.template("command", word),
            };
            part.args = words.iter().map(template).collect::<Result<_>>()?;
        }
        None => {
            part.script = script(fields, files)?;
            part.keys = words(fields, "keys")?;
            part.args = words(fields, "args")?;
        }
    }
    for (name, answer) in form.answers {
        if let Some(value) = fields.table.get(*name) {
            part.answers.push((*answer, pattern(&fields.place(name), value, 0)?));
        }
    }
    for (answer, pattern) in (form.default)() {
        // The first kind of reply that a request has by default is needed; what else there is, is everything else.
        if !part.has(answer) && (part.answers.is_empty() || pattern == Pattern::Anything) {
            part.answers.push((answer, pattern));
        }
    }
    let first = form.answers[0];
    if !part.has(first.1) {
        return fail(fields.place(first.0), "is missing");
    }
    part.answers.sort_by_key(|(_, pattern)| pattern.generality());
    Ok(part)
}

/// Reads the keys or the arguments of a script. A word that is the name of a slot needs no braces.
fn words(fields: &Fields, name: &str) -> Result<Vec<Template>> {
    let Some(words) = fields.texts(name)? else { return fail(fields.place(name), "is missing") };
    let word = |word: &str| {
        let template = match Slot::find(word) {
            Some(slot) => Template::of(slot),
            None => fields.template(name, word)?,
        };
        let names_lock = template.slots().any(|slot| matches!(slot, Slot::Lock | Slot::Channel));
        if name == "keys" && !names_lock {
            return fail(
                fields.place(name),
                format!("{word:?} names no lock: write {{lock}} where its name belongs"),
            );
        }
        Ok(template)
    };
    words.into_iter().map(word).collect()
}

fn script(fields: &Fields, files: &mut Files) -> Result<String> {
    let text = match (fields.text("script")?, fields.text("script_file")?) {
        (Some(_), Some(_)) => return fail(fields.place("script_file"), "there is a script already"),
        (Some(text), None) => text.to_owned(),
        (None, Some(path)) => {
            let text = files(path);
            text.or_else(|problem| fail(fields.place("script_file"), format!("{path}: {problem}")))?
        }
        (None, None) => return fail(&fields.place, "has neither a command nor a script"),
    };
    let mut script = &text[..];
    if let Some(from) = fields.text("script_from")? {
        let Some((_, after)) = script.split_once(from) else {
            return fail(fields.place("script_from"), format!("the file does not contain {from:?}"));
        };
        script = after;
    }
    if let Some(to) = fields.text("script_to")? {
        let Some((before, _)) = script.split_once(to) else {
            return fail(fields.place("script_to"), format!("the rest of the file does not contain {to:?}"));
        };
        script = before;
    }
    match script.trim().is_empty() {
        true => fail(fields.place("script"), "is empty"),
        false => Ok(script.to_owned()),
    }
}

fn check_command(fields: &Fields, words: &[&str], version: Version) -> Result<()> {
    let place = fields.place("command");
    let Some(name) = words.first() else { return fail(place, "is empty") };
    let Some(command) = table::find_by_name(name.as_bytes(), version) else {
        let release = version.title();
        return fail(
            place,
            format!("{release} has no command {name}; redis_version chooses another release"),
        );
    };
    if command.flags & (NOSCRIPT | BLOCKING) != 0 {
        return fail(place, format!("{name} blocks, or changes the connection or the server"));
    }
    let (arity, count) = (command.arity, words.len() as i32);
    if arity >= 0 && count != arity || count < -arity {
        return fail(place, format!("{name} with {} arguments", words.len() - 1));
    }
    Ok(())
}

fn compile(parts: &[Part], version: Version) -> Result<()> {
    let mut vm = None;
    for part in parts.iter().filter(|part| !part.script.is_empty()) {
        let vm = vm.get_or_insert_with(|| Vm::new(version));
        if let Err(error) = vm.load(part.script.as_bytes()) {
            let error = String::from_utf8_lossy(&error.0);
            let message = error.strip_prefix("ERR Error compiling script (new function): ").unwrap_or(&error);
            let message = match message.strip_prefix("user_script:").and_then(|rest| rest.split_once(": ")) {
                Some((line, message)) => format!("line {line}: {message}"),
                None => message.to_owned(),
            };
            return fail(format!("[{}] script", part.name()), message);
        }
    }
    Ok(())
}

fn pattern(place: &str, value: &toml::Value, depth: usize) -> Result<Pattern> {
    let words = || {
        let words: Vec<&str> = Pattern::WORDS.iter().map(|(word, _)| *word).collect();
        format!("{} is none of {}, OK, text:…, error, error:…", shown(value), words.join(", "))
    };
    let all = |values: &[toml::Value]| -> Result<Vec<Pattern>> {
        if values.is_empty() || values.len() > MAX_WORDS || depth > 4 {
            return fail(place, format!("{} has no elements, too many, or too deep ones", shown(value)));
        }
        values.iter().map(|value| pattern(place, value, depth + 1)).collect()
    };
    match value {
        toml::Value::Integer(n) => Ok(Pattern::Int(*n)),
        toml::Value::String(word) => Pattern::of_word(word).map_or_else(|| fail(place, words()), Ok),
        toml::Value::Array(values) => all(values).map(Pattern::List),
        toml::Value::Table(table) => match (table.len(), table.get("any")) {
            (1, Some(toml::Value::Array(values))) => all(values).map(Pattern::Any),
            _ => fail(place, format!("{} is not {{ any = [ … ] }}", shown(value))),
        },
        _ => fail(place, words()),
    }
}

/// Expects that each slot has a value in a lock of this kind.
fn check_slots(lock: &Lock) -> Result<()> {
    let has_fence = lock.part(roles::ACQUIRE).is_some_and(|part| {
        part.answers.iter().any(|(_, pattern)| pattern.contains(&|pattern| *pattern == Pattern::Fence))
    });
    for part in &lock.parts {
        let has_value = |slot: &Slot| match slot {
            Slot::Channel => lock.channel.is_some(),
            Slot::Fence => has_fence,
            Slot::WaiterMs => lock.kind == Kind::Queue,
            Slot::Count => matches!(lock.kind, Kind::Semaphore | Kind::Latch | Kind::Limiter),
            Slot::Permits => lock.permits > 0 && lock.kind == Kind::Semaphore,
            Slot::Limit | Slot::PerMs | Slot::PerS | Slot::Burst => lock.limit.is_some(),
            Slot::LeaseMs | Slot::LeaseS | Slot::UntilMs | Slot::UntilS => HOLDERS.contains(&lock.kind),
            _ => true,
        };
        if let Some(slot) = part.slots().find(|slot| !has_value(slot)) {
            return fail(
                format!("[{}]", part.name()),
                format!("{{{}}} has no value here; docs/own-locks.md says what it needs", slot.name()),
            );
        }
    }
    if lock.kind == Kind::Latch && !lock.uses(roles::RESET, Slot::Count) {
        return fail("[reset]", "passes no {count}");
    }
    Ok(())
}

/// A change that breaks the lock, and the invariant that it violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub why: String,
    pub replace: String,
    pub with: String,
    pub violates: (Invariant, Option<String>),
}

/// The heading of the changes in a file. They stand behind everything else.
const HEADING: &str = "[[broken]]";

/// Returns the changes that a file says to break the lock.
///
/// # Errors
/// Fails if the text is not TOML, or one of the changes is not complete or changes nothing.
pub fn broken(description: &str) -> Result<Vec<Broken>> {
    let table = toml_table(description)?;
    let all = broken_of(&Fields { place: String::new(), table: &table })?;
    let sound = description.split(HEADING).next().unwrap_or_default();
    for (index, broken) in all.iter().enumerate() {
        if broken.replace.is_empty() || !sound.contains(&broken.replace) {
            let problem = format!("{:?} does not stand before {HEADING}", broken.replace);
            return fail(format!("{HEADING} {} replace", index + 1), problem);
        }
    }
    Ok(all)
}

fn broken_of(file: &Fields) -> Result<Vec<Broken>> {
    let Some(all) = file.get("broken", "a list of tables", |value| value.as_array())? else {
        return Ok(Vec::new());
    };
    let read = |(index, value): (usize, &toml::Value)| {
        let place = format!("{HEADING} {}", index + 1);
        let Some(table) = value.as_table() else { return fail(place, "is not a table") };
        let fields = Fields { place, table };
        fields.only(&["why", "replace", "with", "violates"])?;
        let needed = |name: &str| {
            fields
                .text(name)?
                .map_or_else(|| fail(fields.place(name), "is missing"), |text| Ok(text.to_owned()))
        };
        let violates = needed("violates")?;
        let Some(violates) = Wanted::parse(&violates) else {
            return fail(fields.place("violates"), format!("there is no invariant {violates:?}"));
        };
        Ok(Broken { why: needed("why")?, replace: needed("replace")?, with: needed("with")?, violates })
    };
    all.iter().enumerate().map(read).collect()
}

impl Broken {
    /// Returns the description with the change.
    pub fn apply(&self, description: &str) -> String {
        description.replacen(&self.replace, &self.with, 1)
    }
}
