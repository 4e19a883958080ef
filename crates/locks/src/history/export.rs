//! The operations of a history, as Jepsen and Porcupine write them.
//!
//! The process of an operation is its owner. A process does one thing at a time, and nothing after an operation that was cut
//! off; an owner who does (his watchdog renews while he releases, say) gets a further process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::log::{Function, Operation};
use super::{History, LockId};
use crate::datum::{Datum, Form};
use crate::linearize::Outcome;

/// The format of an exported history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Entries of Jepsen, one in a line.
    Edn,
    /// Operations of Porcupine, one in a line.
    Json,
    /// For people: the operations of each lock.
    #[default]
    Text,
}

/// Operations in the order of their requests.
struct Export<'a> {
    rows: Vec<Row<'a>>,
    /// How many older operations were dropped, and how many are about keys of which only NX says that they may be locks.
    dropped: u64,
    doubtful: usize,
}

/// An operation as it is written.
struct Row<'a> {
    operation: &'a Operation,
    number: u64,
    process: i64,
    /// The places of request and reply in the order of all of them.
    from: i64,
    to: Option<i64>,
}

impl History {
    /// Writes the last operations; older ones are dropped, and counted.
    pub fn export(&self, format: Format) -> String {
        let (began, operations) = self.log.last();
        Export::of(operations.collect(), began, self.log.dropped()).write(format)
    }

    /// Writes all operations that were kept.
    pub fn export_all(&self, format: Format) -> String {
        Export::of(self.log.all().collect(), 0, 0).write(format)
    }
}

impl<'a> Export<'a> {
    fn of(mut operations: Vec<&'a Operation>, began: u64, dropped: u64) -> Export<'a> {
        let all = operations.len();
        let proven: BTreeSet<&LockId> = operations
            .iter()
            .filter(|operation| operation.is_lock)
            .map(|operation| &operation.lock)
            .collect();
        operations.retain(|operation| proven.contains(&operation.lock));
        operations.sort_by_key(|operation| (operation.asked_at.event, operation.number));
        let mut order: Vec<(u64, bool, usize)> = Vec::with_capacity(operations.len() * 2);
        for (index, operation) in operations.iter().enumerate() {
            order.push((operation.asked_at.event, false, index));
            order.extend(operation.answered_at.map(|at| (at.event, true, index)));
        }
        order.sort_unstable();
        let row = |operation: &&'a Operation| Row {
            operation,
            number: operation.number - began,
            process: 0,
            from: 0,
            to: None,
        };
        let mut rows: Vec<Row> = operations.iter().map(row).collect();
        let mut free: BTreeMap<&[u8], BTreeSet<i64>> = BTreeMap::new();
        let mut processes = 0;
        for (place, (_, is_reply, index)) in order.into_iter().enumerate() {
            let row = &mut rows[index];
            let free = free.entry(&row.operation.owner).or_default();
            if is_reply {
                row.to = Some(place as i64);
                free.insert(row.process);
            } else {
                row.from = place as i64;
                row.process = free.pop_first().unwrap_or(processes);
                processes = processes.max(row.process + 1);
            }
        }
        Export { doubtful: all - rows.len(), rows, dropped }
    }
}

fn word(word: &str) -> Datum {
    Datum::Word(word.to_owned())
}

fn int(n: u64) -> Datum {
    Datum::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Converts a time in ms to ns.
fn ns(ms: u64) -> Datum {
    int(ms.saturating_mul(1_000_000))
}

fn map<const N: usize>(pairs: [(&str, Datum); N]) -> Vec<(Datum, Datum)> {
    pairs.into_iter().map(|(name, value)| (word(name), value)).collect()
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Fail => "fail",
        Outcome::Info => "info",
    }
}

impl Row<'_> {
    /// Returns the result: the token of a grant.
    fn result(&self) -> Datum {
        self.operation.answer.token.map_or(Datum::Nil, Datum::Int)
    }

    fn held(&self) -> Datum {
        self.operation.answer.is_held.map_or(Datum::Nil, Datum::Bool)
    }

    fn client(&self) -> Datum {
        Datum::Text(self.operation.conn.to_string())
    }

    fn invocation(&self) -> Vec<(Datum, Datum)> {
        let operation = self.operation;
        map([
            ("index", Datum::Int(self.from)),
            ("type", word("invoke")),
            ("process", Datum::Int(self.process)),
            ("f", word(operation.function.name())),
            ("key", Datum::of_bytes(&operation.lock.1)),
            ("value", Datum::Nil),
            ("time", ns(operation.asked_at.now_ms)),
            ("op", int(self.number)),
            ("event", int(operation.asked_at.event)),
            ("db", int(operation.lock.0 as u64)),
            ("group", int(operation.group as u64)),
            ("node", int(operation.conn.node as u64)),
            ("client", self.client()),
            ("object", Datum::Text(operation.object.to_owned())),
            ("owner", Datum::of_bytes(&operation.owner)),
            ("lease", operation.lease_ms.map_or(Datum::Nil, int)),
        ])
    }

    fn completion(&self, index: i64) -> Vec<(Datum, Datum)> {
        let operation = self.operation;
        let at = operation.answered_at.unwrap_or(operation.asked_at);
        map([
            ("index", Datum::Int(index)),
            ("type", word(outcome_name(operation.answer.outcome))),
            ("process", Datum::Int(self.process)),
            ("f", word(operation.function.name())),
            ("key", Datum::of_bytes(&operation.lock.1)),
            ("value", self.result()),
            ("time", ns(at.now_ms)),
            ("op", int(self.number)),
            ("event", int(at.event)),
            ("held", self.held()),
        ])
    }

    fn porcupine(&self) -> Datum {
        let operation = self.operation;
        let at = operation.answered_at;
        let input = map([
            ("Op", int(self.number)),
            ("F", word(operation.function.name())),
            ("Key", Datum::of_bytes(&operation.lock.1)),
            ("Object", Datum::Text(operation.object.to_owned())),
            ("Owner", Datum::of_bytes(&operation.owner)),
            ("Lease", operation.lease_ms.map_or(Datum::Nil, int)),
            ("Db", int(operation.lock.0 as u64)),
            ("Group", int(operation.group as u64)),
            ("Node", int(operation.conn.node as u64)),
            ("Client", self.client()),
            ("Event", int(operation.asked_at.event)),
            ("Time", ns(operation.asked_at.now_ms)),
        ]);
        let output = map([
            ("Type", word(outcome_name(operation.answer.outcome))),
            ("Value", self.result()),
            ("Held", self.held()),
            ("Event", at.map_or(Datum::Nil, |at| int(at.event))),
            ("Time", at.map_or(Datum::Nil, |at| ns(at.now_ms))),
        ]);
        Datum::Map(map([
            ("ClientId", Datum::Int(self.process)),
            ("Input", Datum::Map(input)),
            ("Call", Datum::Int(self.from)),
            ("Output", Datum::Map(output)),
            // It may have run at any time later.
            ("Return", Datum::Int(self.to.unwrap_or(i64::MAX))),
        ]))
    }

    fn line(&self) -> String {
        let operation = self.operation;
        let (owner, name, asked_at) =
            (operation.owner.escape_ascii(), operation.function.name(), operation.asked_at);
        let mut line = format!(
            "  {} event {} at {} ms, client {}, process {}: {name}",
            self.number, asked_at.event, asked_at.now_ms, operation.conn, self.process
        );
        let mut add = |text: std::fmt::Arguments| line.push_str(&text.to_string());
        if !operation.owner.is_empty() {
            add(format_args!(" by {owner}"));
        }
        if let (Some(lease_ms), Function::Acquire | Function::Renew) =
            (operation.lease_ms, operation.function)
        {
            add(format_args!(", lease {lease_ms} ms"));
        }
        let answer = operation.answer;
        match (answer.outcome, operation.answered_at) {
            (Outcome::Ok, Some(at)) => add(format_args!("; ok by event {} at {} ms", at.event, at.now_ms)),
            (Outcome::Fail, _) => add(format_args!("; refused")),
            _ => add(format_args!("; no reply that tells")),
        }
        if let Some(token) = answer.token {
            add(format_args!(", token {token}"));
        }
        if answer.is_held == Some(true) {
            add(format_args!(", held still"));
        }
        line.push('\n');
        line
    }
}

impl Export<'_> {
    /// Returns what is left out, a sentence for each reason.
    fn left_out(&self) -> impl Iterator<Item = String> {
        let dropped = (self.dropped > 0).then(|| format!("{} older operations were dropped", self.dropped));
        let doubtful = (self.doubtful > 0).then(|| {
            format!("{} operations on keys that nothing but NX shows to be locks are left out", self.doubtful)
        });
        dropped.into_iter().chain(doubtful)
    }

    fn write(&self, format: Format) -> String {
        match format {
            Format::Edn => self.edn(),
            Format::Json => {
                let rows: Vec<String> =
                    self.rows.iter().map(|row| row.porcupine().write(Form::Json)).collect();
                format!("[{}]\n", rows.join(",\n"))
            }
            Format::Text => self.text(),
        }
    }

    fn edn(&self) -> String {
        let mut entries: Vec<(i64, Datum)> = Vec::with_capacity(self.rows.len() * 2);
        for row in &self.rows {
            entries.push((row.from, Datum::Map(row.invocation())));
            entries.extend(row.to.map(|to| (to, Datum::Map(row.completion(to)))));
        }
        entries.sort_by_key(|(place, _)| *place);
        // Those that were cut off are completed last, where it does not matter when.
        let cut_off = self.rows.iter().filter(|row| row.to.is_none());
        let places = entries.len() as i64..;
        entries.extend(places.zip(cut_off).map(|(place, row)| (place, Datum::Map(row.completion(place)))));
        let mut text: String = self.left_out().map(|why| format!("; {why}\n")).collect();
        for (_, entry) in entries {
            text.push_str(&entry.write(Form::Edn));
            text.push('\n');
        }
        text
    }

    fn text(&self) -> String {
        let mut by_lock: BTreeMap<(usize, &LockId), Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            by_lock.entry((row.operation.group, &row.operation.lock)).or_default().push(row);
        }
        let mut text: String = self.left_out().map(|why| format!("{why}\n")).collect();
        for ((group, (db, key)), rows) in by_lock {
            let object = rows[0].operation.object;
            let _ = writeln!(text, "lock {} ({object}, database {db}, node {group})", key.escape_ascii());
            rows.iter().for_each(|row| text.push_str(&row.line()));
        }
        text
    }
}
