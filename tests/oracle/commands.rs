//! What COMMAND and the HELP subcommands say: every name and every row, and the forms of subcommands.

#![allow(clippy::disallowed_methods)]

use std::collections::BTreeSet;

use redlatch_core::wire::Value;

use crate::support::client::Client;
use crate::support::server::Server;

const RELEASES: [&str; 4] = ["7.0", "7.4", "8.6", "valkey-9.1"];

/// The commands of the module that 8.x brings with it, which is not here.
const VECTOR_SETS: [&str; 13] = [
    "VADD",
    "VCARD",
    "VDIM",
    "VEMB",
    "VGETATTR",
    "VINFO",
    "VISMEMBER",
    "VLINKS",
    "VRANDMEMBER",
    "VRANGE",
    "VREM",
    "VSETATTR",
    "VSIM",
];

fn ask(client: &mut Client, words: &[&str]) -> Value {
    Value::decode(&client.call(words)).unwrap().unwrap().0
}

fn texts(value: &Value) -> Vec<String> {
    let parts = value.as_slice().unwrap_or_default().iter();
    parts.map(|part| String::from_utf8_lossy(part.as_bytes().unwrap_or_default()).into_owned()).collect()
}

fn names(client: &mut Client) -> BTreeSet<String> {
    let names = texts(&ask(client, &["COMMAND", "LIST"]));
    names.into_iter().filter(|name| !VECTOR_SETS.contains(&name.as_str())).collect()
}

#[test]
fn every_command_has_its_row() {
    for release in RELEASES {
        let Some(theirs) = Server::redis(release, &[]) else { return };
        let ours = Server::redlatch(release, &[]);
        let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
        for client in [&mut ours, &mut theirs] {
            ask(client, &["HELLO", "3"]);
        }
        let all = names(&mut theirs);
        assert_eq!(names(&mut ours), all, "{release}");
        for name in all {
            // The order of subcommands is that of a hash table; each has its own row.
            let row = |client: &mut Client| {
                let reply = ask(client, &["COMMAND", "INFO", &name]);
                let row = reply.as_slice().unwrap_or_default()[0].as_slice().unwrap_or_default().to_vec();
                row[..9].to_vec()
            };
            assert_eq!(row(&mut ours), row(&mut theirs), "{release}: {name}");
        }
    }
}

/// Returns the lines that say how subcommands are written, and the numbers of lines between them.
fn forms(lines: &[String]) -> Vec<(String, usize)> {
    let mut forms: Vec<(String, usize)> = Vec::new();
    for line in lines {
        match forms.last_mut() {
            Some((_, explained)) if line.starts_with("    ") => *explained += 1,
            _ => forms.push((line.clone(), 0)),
        }
    }
    forms
}

#[test]
fn help_has_the_forms_and_the_length_of_the_release() {
    for release in RELEASES {
        let Some(theirs) = Server::redis(release, &[]) else { return };
        let ours = Server::redlatch(release, &[]);
        let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
        for name in names(&mut theirs).iter().filter_map(|name| name.strip_suffix("|help")).chain(["debug"]) {
            let [ours, theirs] = [&mut ours, &mut theirs].map(|client| ask(client, &[name, "HELP"]));
            assert_eq!(ours.as_error(), theirs.as_error(), "{release}: {name}");
            assert_eq!(forms(&texts(&ours)), forms(&texts(&theirs)), "{release}: {name}");
        }
    }
}

/// Takes the words out of COMMAND DOCS: what remains are names, releases, flags and arguments.
fn without_words(value: &Value) -> Value {
    match value {
        Value::Map(fields) => {
            // Two arguments of Valkey have a summary.
            let is_argument = fields.iter().any(|(name, _)| name.as_bytes() == Some(b"type"));
            let fields =
                fields.iter().filter(|(name, _)| !is_argument || name.as_bytes() != Some(b"summary"));
            let kept = fields.map(|(name, value)| match name.as_bytes() {
                Some(b"summary" | b"complexity" | b"subcommands") => (name.clone(), Value::Nil),
                Some(b"history") => {
                    let entries = value.as_slice().unwrap_or_default().iter();
                    let releases = entries.map(|entry| entry.as_slice().unwrap_or_default()[0].clone());
                    (name.clone(), Value::Array(releases.collect()))
                }
                _ => (name.clone(), without_words(value)),
            });
            Value::Map(kept.collect())
        }
        Value::Array(parts) => Value::Array(parts.iter().map(without_words).collect()),
        value => value.clone(),
    }
}

#[test]
fn docs_have_the_fields_and_the_arguments_of_the_release() {
    for release in ["7.0", "7.4", "8.0", "8.6", "valkey-8.1", "valkey-9.1"] {
        let Some(theirs) = Server::redis(release, &[]) else { return };
        let ours = Server::redlatch(release, &[]);
        let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
        for client in [&mut ours, &mut theirs] {
            ask(client, &["HELLO", "3"]);
        }
        for name in names(&mut ours) {
            let [ours, theirs] =
                [&mut ours, &mut theirs].map(|client| match ask(client, &["COMMAND", "DOCS", &name]) {
                    Value::Map(docs) => docs.iter().map(|(_, docs)| without_words(docs)).collect::<Vec<_>>(),
                    other => panic!("{other:?}"),
                });
            assert_eq!(ours, theirs, "{release}: {name}");
        }
    }
}

#[test]
fn info_has_the_fields_of_the_release() {
    for release in ["7.0", "7.4", "8.0", "8.6", "valkey-8.1", "valkey-9.1"] {
        let Some(theirs) = Server::redis(release, &[]) else { return };
        let ours = Server::redlatch(release, &[]);
        for sections in [&["INFO"][..], &["INFO", "everything"]] {
            let [ours, theirs] = [&ours, &theirs].map(|server| {
                let mut client = server.connect();
                client.call(&["CONFIG", "RESETSTAT"]);
                client.call(&["SET", "k", "v"]);
                client.call(&["GET"]);
                let reply = ask(&mut client, sections);
                let text = String::from_utf8_lossy(reply.as_bytes().unwrap()).into_owned();
                let fields = text.lines().map(|line| line.split(':').next().unwrap_or_default().to_owned());
                // The sizes of values are not counted; the statistics of commands come in hash-table order.
                let is_kept = |name: &String| {
                    !["db0_distrib", "cmdstat_", "latency_percentiles"]
                        .iter()
                        .any(|known| name.starts_with(known))
                };
                fields.filter(is_kept).collect::<Vec<_>>()
            });
            assert_eq!(ours, theirs, "{release}: {sections:?}");
        }
    }
}
