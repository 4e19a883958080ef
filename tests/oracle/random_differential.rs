//! Sends random commands of every family to Redlatch and to the real redis-server, by `redlatch diff`.
//!
//! The seed is fixed, so that a failure repeats; its output can be pasted into `tests/differential/`.

#![allow(clippy::disallowed_methods)]

use std::process::{Command, Output};

use crate::support::client::Client;
use crate::support::server::Server;

fn diff(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_redlatch")).arg("diff").args(args).output().unwrap()
}

fn compare(release: &str, families: &[&str]) {
    let Some(oracle) = Server::redis(release, &[]) else { return };
    let address = format!("127.0.0.1:{}", oracle.port);
    let mut args = vec!["--against", &address, "--commands", "3000", "--seed", "1"];
    args.extend(families.iter().flat_map(|family| ["--family", *family]));
    let output = diff(&args);
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}{why}");
    println!("{said}");
}

#[test]
fn random_commands_are_answered_as_redis_7_0_does() {
    compare("7.0", &[]);
}

#[test]
fn random_commands_are_answered_as_redis_7_4_does() {
    compare("7.4", &[]);
}

#[test]
fn random_commands_are_answered_as_redis_8_6_does() {
    compare("8.6", &[]);
}

#[test]
fn random_commands_are_answered_as_valkey_9_1_does() {
    // All but `lua`: the order of a Lua table's keys is another one there.
    const FAMILIES: [&str; 12] = [
        "strings",
        "hashes",
        "lists",
        "sets",
        "sorted-sets",
        "keys",
        "blocking",
        "pubsub",
        "transactions",
        "scripting",
        "connection",
        "server",
    ];
    compare("valkey-9.1", &FAMILIES);
}

#[test]
fn a_server_that_cannot_be_compared_is_one_line_and_keeps_its_keys() {
    let refused = |args: &[&str], said: &str| {
        let output = diff(args);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{why}");
        assert!(why.contains(said) && why.lines().count() == 1, "{why}");
    };
    refused(&["--against", "127.0.0.1:1"], "cannot connect");
    refused(&["--against", "nowhere"], "is not HOST:PORT");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    refused(&["--against", &silent.local_addr().unwrap().to_string()], "does not answer");

    let full = Server::redlatch("7.4", &[]);
    let mut client = Client::connect(full.port);
    client.call(&["SET", "k", "v"]);
    refused(&["--against", &format!("127.0.0.1:{}", full.port)], "holds keys");
    assert_eq!(client.call(&["GET", "k"]), b"$1\r\nv\r\n");

    let locked = Server::redlatch("7.4", &["--requirepass", "secret"]);
    refused(&["--against", &format!("127.0.0.1:{}", locked.port)], "NOAUTH");
}

#[test]
fn a_difference_is_shrunk_to_a_case() {
    // 7.0 has no hash-field expiry, so a server that emulates it differs from one that emulates 7.4.
    let (old, new) = (Server::redlatch("7.0", &[]), Server::redlatch("7.4", &[]));
    let address = |server: &Server| format!("127.0.0.1:{}", server.port);
    let output = diff(&[
        "--against",
        &address(&new),
        "--subject",
        &address(&old),
        "--family",
        "hashes",
        "--commands",
        "600",
    ]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last_line_of_first_case = said.lines().take_while(|line| !line.is_empty()).last().unwrap_or_default();
    assert!(last_line_of_first_case.contains(": "), "{said}");
    assert!(said.contains("unknown command"), "{said}");
}

#[test]
fn the_documentation_lists_what_is_not_compared() {
    let documented = include_str!("../../docs/compatibility.md");
    let lists = redlatch_compare::diff::exclusions::as_markdown();
    assert!(documented.contains(&lists), "docs/compatibility.md has to contain:\n{lists}");
}

#[test]
fn the_documentation_has_the_table_of_commands() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
    let text = std::fs::read_to_string(&page).unwrap_or_default();
    let table = redlatch_compare::diff::verdicts::as_markdown();
    let begin = text.find("| command |").unwrap_or(text.len());
    if std::env::var_os("REDLATCH_UPDATE_DOCS").is_some() {
        std::fs::write(&page, format!("{}{table}", &text[..begin])).unwrap();
    } else {
        assert!(text[begin..] == table, "run this test with REDLATCH_UPDATE_DOCS=1");
    }
}
