//! A reader may close the pipe at any time: the program does not panic, and its exit code tells the result.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::server::Server;

const TRACE: &str = "tests/traces/two-nodes.jsonl";

/// Runs a subcommand whose standard output is closed. Returns its exit code and its standard error.
fn unread(args: &[&str]) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("redlatch starts");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    (child.wait().expect("it ends").code(), said)
}

#[test]
fn subcommands_end_quietly_with_the_code_of_their_work() {
    let cases: &[(&[&str], i32)] = &[
        (&["--help"], 0),
        (&["run", "--help"], 0),
        (&["demo"], 0),
        (&["demo", "all"], 0),
        (&["replay", TRACE], 0),
        (&["trace", "show", TRACE], 0),
        (&["trace", "cost", TRACE], 0),
        (&["fuzz", "--list"], 0),
        (&["fuzz", "--scripts", "docs/locks/broken.toml", "--runs", "500"], 1),
        (&["bench", "--workload", "ping", "--requests", "500", "--rounds", "1"], 0),
    ];
    for (args, code) in cases {
        assert_eq!(unread(args), (Some(*code), String::new()), "{args:?}");
    }
}

#[test]
fn scripts_are_listed_for_a_reader_that_has_gone() {
    // An empty jar is enough: the subcommands print a summary for it.
    let jar = std::env::temp_dir().join(format!("redlatch-{}.jar", std::process::id()));
    std::fs::write(&jar, EMPTY_JAR).expect("a file");
    let path = jar.to_str().expect("a path of plain characters");
    for args in [&["scripts", "list", path][..], &["scripts", "diff", path, path]] {
        assert_eq!(unread(args), (Some(0), String::new()), "{args:?}");
    }
    std::fs::remove_file(jar).expect("the file is there");
}

/// The end record of an archive without entries.
const EMPTY_JAR: &[u8] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn differences_are_counted_for_a_reader_that_has_gone() {
    let server = Server::redlatch("7.4", &[]);
    let address = format!("127.0.0.1:{}", server.port);
    let (code, said) = unread(&["diff", "--against", &address, "--family", "strings", "--commands", "200"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(unread(&["replay", TRACE, "--against", "127.0.0.1:1"]).0, Some(2));
}

#[test]
fn errors_without_a_reader_keep_their_exit_code() {
    let cases: &[(&[&str], i32)] = &[
        (&["replay", "no/such/file"], 2),
        (&["scripts", "list", "Cargo.toml"], 2),
        (&["--port", "nonsense"], 1),
    ];
    for (args, code) in cases {
        let mut child = Command::new(env!("CARGO_BIN_EXE_redlatch"))
            .args(*args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("redlatch starts");
        drop(child.stderr.take());
        assert_eq!(child.wait().expect("it ends").code(), Some(*code), "{args:?}");
    }
}

#[test]
fn a_server_goes_on_without_a_reader() {
    let server = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(["--port", "0", "--log", "trace"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut server = server.expect("redlatch starts");
    drop((server.stdout.take(), server.stderr.take()));
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(server.try_wait().expect("its state"), None, "the server has ended");
    let stopped = Command::new("kill").arg(server.id().to_string()).status();
    assert!(stopped.is_ok_and(|status| status.success()));
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
}
