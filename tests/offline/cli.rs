//! The program: how it starts, what it prints, how it exits.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::client::Client;
use crate::support::server::Server;

fn redlatch(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_redlatch")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_and_version_are_worth_reading() {
    let help = redlatch(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success());
    for word in ["--port", "--redis-version", "--requirepass", "--clock", "--seed", "independent master"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
    assert!(String::from_utf8_lossy(&redlatch(&["--version"]).stdout).starts_with("redlatch "));
}

#[test]
fn help_names_the_whole_command_and_fits_100_columns() {
    for name in ["", "bench", "demo", "diff", "fuzz", "replay", "run", "scripts", "trace"] {
        let help = redlatch(&[name, "--help"][name.is_empty() as usize..]);
        let text = String::from_utf8_lossy(&help.stdout);
        let usage = format!("Usage: redlatch {name}");
        assert!(text.contains(usage.trim_end()), "no '{usage}' in:\n{text}");
        let too_long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(too_long, None, "redlatch {name} --help");
    }
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = redlatch(&["--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        format!(
            "redlatch: cannot listen on 127.0.0.1:{port}: the address is in use; use --port to choose another port\n"
        )
    );
}

#[test]
fn what_is_wrong_with_the_options_is_one_line() {
    for (args, said) in [
        (&["/nonexistent.conf"][..], "cannot read /nonexistent.conf"),
        (&["--maxclients", "many"], "--maxclients: argument couldn't be parsed into an integer"),
        (&["--bind", "nowhere"], "'nowhere' is not an address to bind to"),
        (&["--databases", "0"], "--databases"),
        (&["--log", "=x=y"], "log filter"),
    ] {
        let output = redlatch(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?} said {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{args:?} said {}", stderr(&output));
    }
    assert_ne!(redlatch(&["--redis-version", "6.2"]).status.code(), Some(0));
    assert_ne!(redlatch(&["--no-such-option"]).status.code(), Some(0));
}

#[test]
fn a_configuration_file_is_read_and_its_bad_line_named() {
    let path = std::env::temp_dir().join(format!("redlatch-{}.conf", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    writeln!(file, "# a comment\nmaxclients 77\n\nsave \"\"\nnotify-keyspace-events \"KEA\"").unwrap();
    let server = Server::redlatch("7.4", &[path.to_str().unwrap()]);
    assert_eq!(
        server.connect().call(&["CONFIG", "GET", "maxclients"]),
        b"*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n"
    );
    writeln!(file, "nosuchdirective 1").unwrap();
    let output = redlatch(&[path.to_str().unwrap(), "--port", "0"]);
    assert!(stderr(&output).contains(":6: Bad directive"), "{}", stderr(&output));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn several_ports_are_independent_masters_with_one_password() {
    let second = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server::redlatch("7.4", &["--port", &second.to_string(), "--requirepass", "a123456"]);
    let mut first = server.connect();
    let mut second = Client::connect(second);
    assert_eq!(first.call(&["GET", "k"]), b"-NOAUTH Authentication required.\r\n");
    for client in [&mut first, &mut second] {
        assert_eq!(client.call(&["AUTH", "a123456"]), b"+OK\r\n");
    }
    first.call(&["SET", "k", "v"]);
    assert_eq!(second.call(&["GET", "k"]), b"$-1\r\n");
}

#[test]
fn a_unix_socket_serves_and_is_gone_afterwards() {
    let path = std::env::temp_dir().join(format!("redlatch-{}.sock", std::process::id()));
    let server = Server::redlatch("7.4", &["--unixsocket", path.to_str().unwrap()]);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    std::io::Read::read_exact(&mut stream, &mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
    server.terminate();
    assert!(!path.exists());
}

#[test]
fn a_clock_at_a_rate_ends_leases_sooner() {
    let server = Server::redlatch("7.4", &["--clock", "1000"]);
    let mut client = server.connect();
    client.call(&["SET", "lease", "me", "PX", "30000"]);
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(client.call(&["GET", "lease"]), b"$-1\r\n");
}

#[test]
fn a_shell_with_few_file_descriptors_does_not_limit_the_clients() {
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -Sn 64; exec \"$0\" --port 0", env!("CARGO_BIN_EXE_redlatch")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let listening = lines.next().unwrap().unwrap();
    let port = listening.rsplit(':').next().unwrap().parse().unwrap();
    let mut clients: Vec<Client> = (0..200).map(|_| Client::connect(port)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.call(&["PING"]), b"+PONG\r\n"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn sigterm_and_shutdown_end_it_cleanly() {
    let server = Server::redlatch("7.4", &[]);
    assert_eq!(server.terminate().code(), Some(0));
    let server = Server::redlatch("7.4", &[]);
    server.connect().send(&["SHUTDOWN", "NOSAVE"]);
    assert_eq!(server.wait(Duration::from_secs(5)).and_then(|status| status.code()), Some(0));
}

#[test]
fn a_server_that_cannot_be_measured_is_one_line() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let deaf_addr = deaf.local_addr().unwrap().to_string();
    let locked = Server::redlatch("7.4", &["--requirepass", "secret"]);
    let locked_addr = format!("127.0.0.1:{}", locked.port);
    for (address, said) in [
        (dead.as_str(), "cannot connect to"),
        (&deaf_addr, "does not answer as a Redis server"),
        (&locked_addr, "NOAUTH Authentication required."),
        ("nowhere", "is not HOST:PORT"),
    ] {
        let output = redlatch(&["bench", "--against", address, "--workload", "ping"]);
        assert_eq!(output.status.code(), Some(2), "{address}");
        assert!(stderr(&output).contains(said), "{address} said {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{address} said {}", stderr(&output));
    }
}

#[test]
fn a_benchmark_measures_both_servers_and_leaves_no_keys() {
    let other = Server::redlatch("7.4", &[]);
    let address = format!("127.0.0.1:{}", other.port);
    let workloads = ["--workload", "lock", "--workload", "fair", "--workload", "wakeup"];
    let sizes = ["--connections", "3", "--pipeline", "2", "--requests", "600", "--rounds", "2"];
    let output = redlatch(&[&["bench", "--against", &address][..], &workloads, &sizes].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert_eq!(text.lines().filter(|line| line.contains(" × ")).count(), 3, "{text}");
    assert_eq!(other.connect().call(&["DBSIZE"]), b":0\r\n");
}

#[test]
fn a_soak_leaves_the_server_as_it_was() {
    let output = redlatch(&["bench", "--soak", "0.05"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    for what in ["resident memory", "file descriptors", "sessions", "timers", "keys"] {
        let row = text.lines().find(|line| line.starts_with(&format!("| {what}")));
        assert!(row.is_some_and(|row| row.contains("as before")), "{what}: {text}");
    }
    for what in ["requests to locks", "CLIENT KILL", "SCRIPT KILL", "expired keys"] {
        let row = text.lines().find(|line| line.starts_with(&format!("| {what} "))).expect(what);
        assert!(!row.contains(" 0 |"), "{what}: {text}");
    }
}

#[test]
fn a_mistyped_subcommand_is_not_read_as_a_configuration_file() {
    let help = String::from_utf8(redlatch(&["--help"]).stdout).unwrap();
    for name in ["bench", "demo", "diff", "fuzz", "replay", "run", "scripts", "trace"] {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(&format!("{name} "))),
            "{name} in\n{help}"
        );
    }
    for (word, meant) in
        [("reply", "did you mean 'replay'?"), ("trce", "did you mean 'trace'?"), ("frobnicate", "--help")]
    {
        let output = redlatch(&[word]);
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(
            said.starts_with(&format!(
                "redlatch: '{word}' is neither a subcommand nor a configuration file: "
            ))
        );
        assert!(said.contains(meant), "{said}");
    }
    assert!(stderr(&redlatch(&["./nosuch.conf"])).starts_with("redlatch: cannot read ./nosuch.conf: "));
}

/// Sends writes until the server has acknowledged some, kills it, and returns how many of the acknowledged ones its trace lacks.
fn lost_by_a_kill(args: &[&str], writes: usize) -> usize {
    let file =
        std::env::temp_dir().join(format!("redlatch-kill-{}-{}.jsonl", std::process::id(), args.len()));
    let path = file.to_str().unwrap();
    let server = Server::redlatch("7.4", &[&["--trace", path], args].concat());
    let mut client = server.connect();
    for i in 0..writes {
        assert_eq!(client.call(&["SET", "k", &format!("value-{i}-")]), b"+OK\r\n");
    }
    if args.is_empty() {
        std::thread::sleep(Duration::from_millis(100));
    }
    // Dropping the server kills it.
    drop(server);
    let trace = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let replay = redlatch_lab::trace::Replay::run(&trace).unwrap_or_else(|error| panic!("{error}"));
    assert!(!replay.complete);
    (0..writes).filter(|i| !trace.contains(&format!("value-{i}-"))).count()
}

#[test]
fn a_killed_server_leaves_a_trace_of_what_it_has_acknowledged() {
    assert_eq!(lost_by_a_kill(&[], 500), 0, "older than 100 ms");
    for _ in 0..3 {
        assert_eq!(lost_by_a_kill(&["--trace-sync"], 500), 0);
    }
}

#[test]
fn a_replay_against_a_silent_server_ends() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let file = std::env::temp_dir().join(format!("redlatch-silent-{}.jsonl", std::process::id()));
    let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
    sim.start_trace();
    let client = sim.connect(0);
    (0..20).for_each(|_| drop(sim.call(client, &["PING"])));
    std::fs::write(&file, sim.finish_trace()).unwrap();
    // It accepts, and answers the first question only.
    std::thread::spawn(move || {
        let mut held: Vec<_> = Vec::new();
        for mut stream in silent.incoming().flatten() {
            if held.is_empty() {
                stream.write_all(b":0\r\n").unwrap();
            }
            held.push(stream);
        }
    });
    let began = std::time::Instant::now();
    let output = redlatch(&["replay", file.to_str().unwrap(), "--against", &address, "--timeout", "0.5"]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("has not replied within 0.5 s to 3 requests in a row"),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains(" requests, "), "no progress: {}", stderr(&output));
    assert!(began.elapsed() < Duration::from_secs(8));
}
