//! Redlatch under the name of a real server, side by side with that server.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::support::client::{Client, PATIENCE};
use crate::support::oracle;
use crate::support::server::{self, Server};

const RELEASE: &str = "7.4";

/// Runs a program that ends by itself.
fn run(mut command: Command, args: &[&str]) -> Output {
    let child = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the program starts");
    let began = std::time::Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it serves, although it was started with {args:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.wait_with_output().expect("its output")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns an empty folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn a_start_that_fails_says_the_same() {
    let Some(real) = oracle::server(&format!("redis-{RELEASE}")) else { return };
    let folder = folder("bad-starts");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (unknown, open_quote) =
        (file("unknown.conf", "port 7777\nfoo bar\n"), file("quote.conf", "port 7\nmaxclients \"10\n"));
    let includes = file("includes.conf", &format!("# a comment\n\ninclude {unknown}\n"));
    let with_args = file("fine.conf", "port 7777\n\n# the end\n");
    let cases: &[&[&str]] = &[
        &["--port", "abc"],
        &["--port", "70000"],
        &["--port", "7777", "extra"],
        &["--foo", "bar"],
        &["--maxclients"],
        &["--maxclients", "50", "60"],
        &["--save", "a"],
        &["--dir", "/nonexistent"],
        &["--maxmemory-policy", "foo"],
        &["--replicaof", "localhost"],
        &["--notify-keyspace-events", "Q"],
        &["--requirepass"],
        &["--cluster-enabled", "maybe"],
        &["--daemonize", "maybe"],
        &["--supervised", "x"],
        &["--loglevel", "x"],
        &["--appendonly", "x"],
        &["--hz", "a"],
        &["--client-output-buffer-limit", "normal"],
        &["--rename-command", "FLUSHALL"],
        &["--rename-command", "NOSUCH", "OTHER"],
        &["--rename-command", "FLUSHALL", "GET"],
        &["--logfile", "/nonexistent/file"],
        &[&unknown],
        &[&open_quote],
        &[&includes],
        &[&with_args, "--maxclients", "50", "--timeout", "x"],
    ];
    for args in cases {
        let (ours, theirs) = (run(server::drop_in(RELEASE), args), run(Command::new(&real), args));
        assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{args:?}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{args:?}");
    }
}

#[test]
fn the_log_has_the_lines_that_harnesses_wait_for() {
    let Some(real) = oracle::server(&format!("redis-{RELEASE}")) else { return };
    let folder = folder("logs");
    let lines_of = |mut command: Command, name: &str| -> Vec<String> {
        let log = folder.join(name);
        let (port, log_arg) = (server::free_port().to_string(), log.display().to_string());
        let mut child = command
            .args([
                "--port",
                &port,
                "--save",
                "",
                "--logfile",
                &log_arg,
                "--dir",
                &folder.display().to_string(),
            ])
            .stdin(Stdio::null())
            .spawn()
            .expect("the server starts");
        let read = || std::fs::read_to_string(&log).unwrap_or_default();
        while !read().contains("Ready to accept connections tcp\n") {
            std::thread::sleep(std::time::Duration::from_millis(10));
            assert!(child.try_wait().expect("a child").is_none(), "it ended: {}", read());
        }
        Client::connect(port.parse().expect("a port")).send(&["SHUTDOWN", "NOSAVE"]);
        assert!(child.wait().expect("it ends").success());
        let pid = child.id().to_string();
        // Without the number of the process and the time, which are compared as to their form.
        read()
            .lines()
            .map(|line| {
                let (stamp, said) =
                    line.split_at_checked(line.find(['*', '#']).unwrap_or(0)).unwrap_or_default();
                let form: String = stamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
                let said = said.replace(&pid, "PID").replace(&port, "PORT");
                format!("{} {said}", form.trim_start_matches('0'))
            })
            .collect()
    };
    let theirs = lines_of(Command::new(real), "theirs.log");
    let ours = lines_of(server::drop_in(RELEASE), "ours.log");
    let month = |line: &String| line.replace(char::is_alphabetic, "");
    assert_eq!(
        month(&ours[0]),
        month(&theirs[theirs.len() - ours.len().min(theirs.len())]),
        "the form of a line"
    );
    for said in [
        "oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo",
        "Redis version=7.4.1, bits=64, commit=00000000, modified=0, pid=PID, just started",
        "Configuration loaded",
        "Running mode=standalone, port=PORT.",
        "Server initialized",
        "Ready to accept connections tcp",
        "User requested shutdown...",
        "Redis is now ready to exit, bye bye...",
    ] {
        let has = |lines: &[String]| lines.iter().any(|line| line.ends_with(said));
        assert!(has(&theirs), "redis-server does not say '{said}': {theirs:#?}");
        assert!(has(&ours), "'{said}' is missing: {ours:#?}");
    }
}

/// Returns the line of the log that names the mode.
fn mode_line(mut command: Command, args: &[&str]) -> String {
    let folder = folder("mode");
    let (log, port) = (folder.join("server.log"), server::free_port().to_string());
    let (log_arg, dir) = (log.display().to_string(), folder.display().to_string());
    let all = [&["--port", &port, "--save", "", "--logfile", &log_arg, "--dir", &dir], args].concat();
    let mut child = command.args(all).stdin(Stdio::null()).spawn().expect("the server starts");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    while !read().contains("Ready to accept connections tcp\n") {
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert!(child.try_wait().expect("a child").is_none(), "it ended: {}", read());
    }
    let _ = child.kill();
    let _ = child.wait();
    let text = read();
    let line = text.lines().find_map(|line| line.find("Running mode").map(|at| &line[at..]));
    line.unwrap_or_default().replace(&port, "PORT")
}

#[test]
fn the_log_names_the_mode() {
    let Some(real) = oracle::server(&format!("redis-{RELEASE}")) else { return };
    for args in [&["--cluster-enabled", "yes"][..], &["--cluster-enabled", "no"]] {
        assert_eq!(
            mode_line(server::drop_in(RELEASE), args),
            mode_line(Command::new(&real), args),
            "{args:?}"
        );
    }
}

#[test]
fn a_small_limit_of_output_lets_small_replies_pass() {
    let args = ["--client-output-buffer-limit", "normal", "1", "2", "3"];
    let Some(theirs) = Server::redis(RELEASE, &args) else { return };
    let ours = Server::drop_in(RELEASE, &args);
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    for request in [&["CONFIG", "GET", "client-output-buffer-limit"][..], &["PING"]] {
        ours.send(request);
        theirs.send(request);
        assert_eq!(text(&ours.receive()), text(&theirs.receive()), "{request:?}");
    }
}

#[test]
fn renamed_commands_answer_the_same() {
    let args = [
        "--rename-command",
        "FLUSHALL",
        "",
        "--rename-command",
        "get",
        "fetch",
        "--rename-command",
        "CONFIG",
        "setup",
    ];
    let Some(theirs) = Server::redis(RELEASE, &args) else { return };
    let ours = Server::drop_in(RELEASE, &args);
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    for request in [
        &["SET", "k", "v"][..],
        &["FETCH", "k"],
        &["fetch"],
        &["GET", "k"],
        &["flushall"],
        &["flushall", "x"],
        &["CONFIG", "GET", "maxclients"],
        &["Setup", "GET", "maxclients"],
        &["setup", "nosuch"],
        &["EVAL", "return redis.call('fetch', KEYS[1])", "1", "k"],
        &["EVAL", "return redis.call('get', KEYS[1])", "1", "k"],
        &["MULTI"],
        &["FETCH", "k"],
        &["EXEC"],
        &["MULTI"],
        &["GET", "k"],
        &["EXEC"],
    ] {
        ours.send(request);
        theirs.send(request);
        assert_eq!(text(&ours.receive()), text(&theirs.receive()), "{request:?}");
    }
}

/// Fills a server with values of all types and encodings, and returns the names of the keys.
fn fill(client: &mut Client, is_new: bool) -> Vec<&'static str> {
    let large = "x".repeat(3000);
    let requests: &[&[&str]] = &[
        &["SET", "text", "value"],
        &["SET", "number", "-12345"],
        &["SET", "large", &large],
        &["SET", "leased", "v", "PX", "100000000"],
        &["RPUSH", "list", "a", "1", "70000", &large],
        &["SADD", "numbers", "1", "2", "300000"],
        &["SADD", "set", &large],
        &["ZADD", "sorted", "1.5", "a", "-inf", "b"],
        &["ZADD", "large sorted", "1", &large],
        &["HSET", "hash", "f", "v", "g", "2"],
        &["HSET", "large hash", "f", &large],
        &["XADD", "stream", "5-1", "f", "v"],
        &["XGROUP", "CREATE", "stream", "group", "0"],
        &["PFADD", "counted", "a", "b", "c"],
        &["SELECT", "9"],
        &["SET", "elsewhere", "v"],
        &["SELECT", "0"],
        &["FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"],
    ];
    for request in requests {
        client.send(request);
        let reply = text(&client.receive());
        assert!(!reply.starts_with('-'), "{request:?}: {reply}");
    }
    if is_new {
        client.send(&["HPEXPIRE", "hash", "100000000", "FIELDS", "1", "f"]);
        client.receive();
    }
    requests
        .iter()
        .filter(|request| request.len() > 2 && request[0] != "XGROUP")
        .map(|request| request[1].to_owned().leak() as &str)
        .collect()
}

/// Returns everything that can be seen of the data.
fn contents(client: &mut Client, keys: &[&str]) -> Vec<String> {
    let mut seen = Vec::new();
    for request in
        [&["FUNCTION", "DUMP"][..], &["SELECT", "9"], &["DUMP", "elsewhere"], &["SELECT", "0"], &["DBSIZE"]]
    {
        client.send(request);
        seen.push(client.receive().escape_ascii().to_string());
    }
    for key in keys {
        for name in ["DUMP", "PEXPIRETIME", "TYPE"] {
            client.send(&[name, key]);
            seen.push(format!("{name} {key}: {}", client.receive().escape_ascii()));
        }
    }
    seen
}

fn assert_same(found: &[String], expected: &[String], reader: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "as read by {reader}");
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn files_of_data_go_both_ways() {
    for release in ["7.0", "7.4", "8.6", "valkey-9.1"] {
        let folder = folder(&format!("data-{release}"));
        let dir = folder.display().to_string();
        let Some(theirs) = Server::redis(release, &["--dir", &dir]) else { return };
        let mut client = theirs.connect();
        let keys = fill(&mut client, !["7.0"].contains(&release));
        client.send(&["SAVE"]);
        assert_eq!(text(&client.receive()), "+OK\r\n");
        let expected = contents(&mut client, &keys);
        drop(theirs);

        let ours = Server::drop_in(release, &["--dir", &dir]);
        let mut client = ours.connect();
        assert_same(&contents(&mut client, &keys), &expected, &format!("Redlatch, the file of {release}"));
        std::fs::remove_file(folder.join("dump.rdb")).expect("the file is there");
        client.send(&["SAVE"]);
        assert_eq!(text(&client.receive()), "+OK\r\n");
        drop(ours);

        let Some(theirs) = Server::redis(release, &["--dir", &dir]) else { return };
        assert_same(
            &contents(&mut theirs.connect(), &keys),
            &expected,
            &format!("{release}, the file of Redlatch"),
        );
    }
}
