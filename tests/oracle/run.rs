//! `redlatch run`: a command and a server that share one clock. tests/install installs libfaketime.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::process::{Command, Output};

use crate::support::oracle;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_redlatch")).arg("run").args(args).output().unwrap()
}

/// A command that prints the server's time and its own, in ms.
const BOTH_CLOCKS: &str = r#"
import os, socket, time, sys
s = socket.create_connection(("127.0.0.1", int(os.environ["REDLATCH_PORT"])))
f = s.makefile("rb")
def call(*words):
    s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
    line = f.readline()
    if line.startswith(b"*"):
        return [item() for _ in range(int(line[1:]))]
    return line
def item():
    line = f.readline()
    if line.startswith(b":"):
        return int(line[1:])
    return f.read(int(line[1:]) + 2)[:-2]
def both():
    seconds, us = call("TIME")
    return int(seconds) * 1000 + int(us) // 1000, int(time.time() * 1000)
"#;

#[test]
fn both_clocks_go_at_the_same_rate_from_the_same_beginning() {
    let Some(()) = oracle::program("faketime") else { return };
    let script = format!(
        "{BOTH_CLOCKS}
a = both(); time.sleep(20); b = both()
print(b[0] - a[0] >= 19500, abs(a[0] - a[1]) < 3000, abs(b[0] - b[1]) < 3000)"
    );
    let output = run(&["--speed", "20", "--", "python3", "-c", &script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "True True True\n", "{output:?}");
}

#[test]
fn the_commands_clock_jumps_when_it_is_told_to() {
    let Some(()) = oracle::program("faketime") else { return };
    let script = format!(
        "{BOTH_CLOCKS}
a = both(); call('SIM.CLOCK', 'JUMP', '20000', 'COMMAND')
while both()[1] - both()[0] < 19000: time.sleep(0.01)
print('jumped'); sys.exit(7)"
    );
    let output = run(&["--start-at", "1700000000", "--", "python3", "-c", &script]);
    assert_eq!((output.stdout, output.status.code()), (b"jumped\n".to_vec(), Some(7)));
}

/// A program that Debian and Ubuntu link statically.
const STATIC: &str = "/sbin/ldconfig";

#[test]
fn a_program_that_cannot_be_moved_is_refused() {
    let Some(()) = oracle::program("faketime") else { return };
    let why = format!(
        "redlatch run: the clock of {STATIC} does not move: it is statically linked, so no library can be loaded into it\n"
    );
    for args in [&["--speed", "10", "--", STATIC, "-V"][..], &["--", STATIC, "-V"]] {
        let output = run(args);
        assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(2), &*why));
        assert_eq!(output.stdout, b"", "it did not run");
    }
    // The command becomes another program while it runs.
    let output = run(&["--", "sh", "-c", "exec env -i sleep 9"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("does not move"), "{output:?}");
}

#[test]
fn a_clock_that_cannot_jump_does_not() {
    let Some(()) = oracle::program("faketime") else { return };
    let script =
        format!("{BOTH_CLOCKS}\nprint(call('SIM.CLOCK', 'JUMP', '20000', 'COMMAND').decode().strip())");
    let output = run(&["--speed", "2", "--", "python3", "-c", &script]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "-SIMERR STATE with --speed the clock of the command cannot jump\n", "{output:?}");
    // A child that was started without the library.
    let script = format!(
        "{BOTH_CLOCKS}
import subprocess
child = subprocess.Popen(['sleep', '5'], env={{}})
time.sleep(0.2)
print(call('SIM.CLOCK', 'JUMP', '20000', 'COMMAND').decode().strip())
child.kill()"
    );
    let trace = std::env::temp_dir().join(format!("redlatch-jump-{}.jsonl", std::process::id()));
    let output = run(&["--trace", trace.to_str().unwrap(), "--", "python3", "-c", &script]);
    let replay = Command::new(env!("CARGO_BIN_EXE_redlatch")).arg("replay").arg(&trace).output().unwrap();
    std::fs::remove_file(&trace).unwrap();
    assert!(replay.status.success(), "{replay:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("-SIMERR STATE the clock of ") && text.contains("LD_PRELOAD"), "{output:?}");
}

#[test]
fn an_interactive_client_does_not_hang() {
    let Some(()) = oracle::program("faketime") else { return };
    let began = std::time::Instant::now();
    let output = run(&["--", "redis-cli", "--version"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(10));
    // Where it cannot run under libfaketime, that is said.
    let (out, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("redis-cli") || why.contains("hangs") || why.contains("cannot run"), "{output:?}");
}

#[test]
fn invalid_arguments_are_refused() {
    let Some(()) = oracle::program("faketime") else { return };
    for (args, why) in [
        (&["--speed", "10"][..], "the command after -- is missing"),
        (&["--speed", "-1", "--", "true"], "--speed takes a positive number"),
        (&["--", "/no/such/program"], "cannot run /no/such/program: No such file or directory (os error 2)"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("redlatch run: {why}\n"));
    }
}
