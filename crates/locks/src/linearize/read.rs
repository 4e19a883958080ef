//! The operations of a history, as Jepsen and Porcupine write it.
//!
//! Jepsen writes two entries for an operation, its invocation and its completion (`:ok`, `:fail`, `:info`), in the order in which
//! they happened. Porcupine writes one, with the numbers `Call` and `Return`.

use std::collections::BTreeMap;

use crate::datum::Datum;

/// How an operation has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// It has not happened.
    Fail,
    /// Nobody knows: it may have happened, at any time since its invocation.
    #[default]
    Info,
}

/// An operation of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the run, if the history has such numbers.
    pub number: Option<u64>,
    pub process: i64,
    pub function: String,
    /// The object: its name, with the database and the group of nodes if there are several.
    pub key: (i64, i64, String),
    /// The kind of lock.
    pub object: String,
    /// Who acts; the process if nobody is named.
    pub owner: String,
    /// The argument of the invocation, and the result.
    pub argument: Datum,
    pub result: Datum,
    pub lease_ms: Option<u64>,
    /// After a release: whether its owner holds the lock still.
    pub is_held: Option<bool>,
    pub outcome: Outcome,
    /// The places of invocation and completion in the order of all of them, and their times.
    pub from: u64,
    pub to: Option<u64>,
    pub from_ms: u64,
    pub to_ms: Option<u64>,
    /// The events of the run.
    pub events: (Option<i64>, Option<i64>),
}

/// Reads the text of a history.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &str) -> Result<Vec<Entry>, String> {
    let mut values = Datum::read_all(text).map_err(|error| error.to_string())?;
    // One vector with all entries, or one entry after the other.
    if let [Datum::List(items)] = &mut values[..] {
        values = std::mem::take(items);
    }
    if values.is_empty() {
        return Err("there are no operations".to_owned());
    }
    match values.iter().any(|value| value.get("Call").is_some()) {
        true => values.iter().enumerate().map(|(index, value)| operation(index, value)).collect(),
        false => entries(&values),
    }
}

/// Converts a time in ns.
fn ms(value: &Datum) -> Option<u64> {
    Some(u64::try_from(value.get("time")?.int()?).ok()? / 1_000_000)
}

fn unsigned(value: &Datum, name: &str) -> Option<u64> {
    value.get(name)?.int().and_then(|n| u64::try_from(n).ok())
}

fn outcome(value: &Datum) -> Option<Outcome> {
    match value.get("type")?.text()? {
        "ok" => Some(Outcome::Ok),
        "fail" => Some(Outcome::Fail),
        "info" => Some(Outcome::Info),
        _ => None,
    }
}

/// Returns what an invocation says.
fn invoked(value: &Datum, process: i64, from: u64) -> Option<Entry> {
    let text = |name: &str| value.get(name).and_then(Datum::text).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(Datum::int);
    let key = match value.get("key") {
        Some(Datum::Text(key) | Datum::Word(key)) => key.clone(),
        Some(Datum::Int(key)) => key.to_string(),
        _ => String::new(),
    };
    Some(Entry {
        number: unsigned(value, "op"),
        process,
        function: text("f")?,
        key: (number("group").unwrap_or(0), number("db").unwrap_or(0), key),
        object: text("object").unwrap_or_default(),
        owner: text("owner").unwrap_or_else(|| process.to_string()),
        argument: value.get("value").cloned().unwrap_or_default(),
        lease_ms: unsigned(value, "lease"),
        from,
        from_ms: ms(value).unwrap_or(0),
        events: (number("event"), None),
        ..Entry::default()
    })
}

impl Entry {
    fn complete(&mut self, value: &Datum, outcome: Outcome, to: u64) {
        self.outcome = outcome;
        if outcome != Outcome::Info {
            self.result = value.get("value").cloned().unwrap_or_default();
            self.is_held = value.get("held").and_then(Datum::bool);
            (self.to, self.to_ms) = (Some(to), ms(value));
            self.events.1 = value.get("event").and_then(Datum::int);
        }
    }
}

/// Reads the entries of Jepsen. Those of the nemesis are left out.
fn entries(values: &[Datum]) -> Result<Vec<Entry>, String> {
    let mut all = Vec::new();
    let mut open: BTreeMap<i64, usize> = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {
        let wrong =
            |what: &str| format!("entry {}: {what}: {}", index + 1, value.write(crate::datum::Form::Edn));
        let Some(kind) = value.get("type").and_then(Datum::text) else {
            return Err(wrong("there is no :type"));
        };
        let Some(process) = value.get("process").and_then(Datum::int) else { continue };
        if kind == "invoke" {
            let entry = invoked(value, process, index as u64).ok_or_else(|| wrong("there is no :f"))?;
            if open.insert(process, all.len()).is_some() {
                return Err(wrong("the process has not completed its operation before"));
            }
            all.push(entry);
            continue;
        }
        let outcome = outcome(value).ok_or_else(|| wrong("the :type is unknown"))?;
        // An operation that was cut off is not open any more: its process goes on, or another does.
        let entry = open.remove(&process).ok_or_else(|| wrong("the process has invoked nothing"))?;
        all[entry].complete(value, outcome, index as u64);
    }
    Ok(all)
}

/// Reads an operation of Porcupine.
fn operation(index: usize, value: &Datum) -> Result<Entry, String> {
    let number = |name: &str| {
        let number = value.get(name).and_then(Datum::int);
        number.ok_or_else(|| format!("operation {}: there is no integer {name}", index + 1))
    };
    // Times may be negative.
    let place = |time: i64| (time as u64) ^ (1 << 63);
    let nothing = Datum::Nil;
    let (input, output) = (value.get("Input").unwrap_or(&nothing), value.get("Output").unwrap_or(&nothing));
    let mut entry = invoked(input, number("ClientId")?, place(number("Call")?))
        .ok_or_else(|| format!("operation {}: there is no F in Input", index + 1))?;
    entry.complete(output, outcome(output).unwrap_or(Outcome::Ok), place(number("Return")?));
    Ok(entry)
}
