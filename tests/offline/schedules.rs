//! Schedules: the examples of docs/schedules.md, what is wrong with a text and limits.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use redlatch_lab::schedule::{NoFiles, Schedule};

fn run(text: &str) -> Result<String, String> {
    let mut report = String::new();
    let mut tell = |line: &str| {
        report.push_str(line);
        report.push('\n');
    };
    let schedule =
        Schedule::parse("s.txt", text.as_bytes(), &mut NoFiles).map_err(|error| error.to_string())?;
    schedule.run(&mut NoFiles, &mut tell).map_err(|error| error.to_string())?;
    Ok(report)
}

#[track_caller]
fn error(text: &str) -> String {
    run(text).expect_err("no error")
}

/// Returns the examples of a page.
fn examples(page: &str) -> Vec<&str> {
    page.split("```schedule\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

#[test]
fn every_example_of_the_page_runs() {
    let page = fs::read_to_string("docs/schedules.md").unwrap();
    let examples = examples(&page);
    assert_eq!(examples.len(), 14);
    for example in &examples {
        run(example).unwrap_or_else(|error| panic!("{error} in:\n{example}"));
    }
    // Each kind of line has one.
    let lines: Vec<&str> = examples.iter().flat_map(|example| example.lines()).map(str::trim_start).collect();
    for kind in [
        "nodes ",
        "seed ",
        "start ",
        "event ",
        "version ",
        "config ",
        "config@",
        "check",
        "include ",
        "let ",
        "repeat ",
        "end",
        "> ",
        "outcome: ",
        "= ",
        "~ ",
        "connect ",
        "disconnect ",
        "advance ",
        "idle ",
        "state ",
        "mark",
        "elapsed ",
        "violations ",
        "holds ",
        "holds not ",
        "# ",
        "c1@1: ",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(kind)), "no example of '{kind}'");
    }
    for sign in [" <- ", " <~ "] {
        assert!(lines.iter().any(|line| line.contains(sign)), "no example of '{sign}'");
    }
}

#[test]
fn another_outcome_is_noticed() {
    for (text, said) in [
        ("c1: INCR n\n= 2", "s.txt:2:1: c1 receives 1, not 2"),
        ("c1: INCR n\noutcome: fine", "s.txt:2:1: c1 receives 1 as well"),
        ("c1: INCR n", "s.txt:1:1: c1 receives 1 as well"),
        ("c1: GET k\n  = waits", "s.txt:2:3: c1 receives nil, not waits"),
        ("c1: BLPOP q 0\n= nil", "s.txt:2:1: c1 receives waits, not nil"),
        (
            "c1: BLPOP q 0\n= waits\nc1: PING",
            "s.txt:3:1: c1: the client still waits for the reply to an earlier request",
        ),
        ("c1: QUIT\n= OK\nc1: PING", "s.txt:3:1: c1: the connection of the client is closed"),
        ("c1: GET k\n~ v*", "s.txt:2:1: c1 receives nil, not v*"),
        ("c1 <- OK", "s.txt:1:1: c1 is not connected"),
        ("connect c1\nconnect c1", "s.txt:2:1: c1 is connected already"),
        ("disconnect c1", "s.txt:1:1: c1 is not connected"),
        ("mark\nadvance 2\nelapsed 1.5", "s.txt:3:1: 2 ms have passed, not 1.5"),
        (
            "control: SIM.GATE DEL x\ncontrol: SIM.CLOCK NOW",
            "s.txt:2:1: control receives (error) SIMERR UNKNOWN there is no gate \"x\" as well",
        ),
        (
            "control: SIM.GATE DEL x",
            "s.txt:1:1: control receives (error) SIMERR UNKNOWN there is no gate \"x\" as well",
        ),
        ("violations none", "s.txt:1:1: the locks are not checked; expected 'check' before the first step"),
        ("check\nviolations H1@acquire", "s.txt:2:1: the checks have found no violation, not H1@acquire"),
        ("holds two-owners", "s.txt:1:1: two-owners does not hold"),
        ("c1: SET k v\n= OK\nholds not key k == v", "s.txt:3:1: key k == v holds"),
        (
            "repeat 3 as i\nc1: INCR n\n= ${i}\nend\nrepeat 2\nc1: INCR n\n= 4\nend",
            "s.txt:7:1: c1 receives 5, not 4",
        ),
    ] {
        assert_eq!(error(text), said, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_text_is_told_with_its_place() {
    for (text, said) in [
        ("\n  what is this", "s.txt:2:3: found 'what is this', expected one of: CLIENT: COMMAND, = REPLY"),
        ("c1:", "s.txt:1:4: found nothing, expected a command and its arguments"),
        ("c1: GET \"x", "s.txt:1:9: unbalanced quotes: expected a closing quote"),
        ("é1: GET x", "s.txt:1:1: found 'é1', expected a client: NAME or NAME@NODE"),
        ("c1@x: GET x", "s.txt:1:1: found 'c1@x', expected a client"),
        ("c1@7: GET x", "s.txt:1:1: there is no node 7: there are 1, numbered from 0; 'nodes N' adds more"),
        ("= OK", "s.txt:1:1: no client has sent anything yet"),
        ("advance 10s", "s.txt:1:9: found '10s', expected ms, with at most three decimals: 1500 or 0.25"),
        ("advance -1", "s.txt:1:9: found '-1', expected ms"),
        ("advance 99999999999999999", "s.txt:1:9: found '99999999999999999', expected ms"),
        ("elapsed", "s.txt:1:8: found nothing, expected ms"),
        ("mark me", "s.txt:1:6: found 'me', expected nothing behind 'mark'"),
        ("violations", "s.txt:1:11: found nothing, expected 'none', or the names of invariants"),
        ("holds", "s.txt:1:1: '' is not a predicate; the forms are: key NAME == VALUE"),
        (
            "c1: GET k\n= nil\nholds fine",
            "s.txt:3:1: 'fine' is not a predicate; the forms are: key NAME == VALUE",
        ),
        ("connect", "s.txt:1:8: found nothing, expected a client"),
        ("connect a named", "s.txt:1:9: found 'a named', expected CLIENT [unnamed] [id N]"),
        ("connect a id x", "s.txt:1:9: found 'a id x', expected CLIENT [unnamed] [id N]"),
        ("connect a id 9\nconnect b id 9", "s.txt:2:1: the id 9 is too low"),
        (
            "connect a id 18446744073709551615\nconnect b",
            "s.txt:1:9: found 'a id 18446744073709551615', expected CLIENT",
        ),
        ("event -1", "s.txt:1:7: found '-1', expected the number of an event"),
        ("disconnect a b", "s.txt:1:12: found 'a b', expected a client"),
        ("let x", "s.txt:1:5: found 'x', expected NAME = TEXT"),
        ("let 1x = y", "s.txt:1:5: found '1x = y', expected NAME = TEXT"),
        ("c1: SET k ${x}", "s.txt:1:11: $x is not defined; expected 'let x = TEXT' before"),
        ("c1: SET k $x", "s.txt:1:11: $x is not defined"),
        ("c1: GET k\n= ${x}", "s.txt:2:3: $x is not defined"),
        ("c1: PING\n= PONG\nnodes 2", "s.txt:3:1: 'nodes' has to come before the first step"),
        ("nodes 0", "s.txt:1:7: found '0', expected a number of nodes from 1 to 64"),
        ("nodes 65", "s.txt:1:7: found '65', expected a number of nodes from 1 to 64"),
        ("nodes", "s.txt:1:6: found nothing, expected a value"),
        ("version 1.0", "s.txt:1:9: "),
        ("config nosuch 1", "s.txt:1:1: the setting 'nosuch': "),
        ("config hz", "s.txt:1:8: found 'hz', expected NAME VALUE"),
        ("config@3 hz 20", "s.txt:1:1: there is no node 3"),
        ("config@x hz 20", "s.txt:1:1: found 'config@x', expected config or config@NODE"),
        ("config save \"x", "s.txt:1:1: unbalanced quotes"),
        ("seed x", "s.txt:1:6: found 'x', expected a number"),
        ("start x", "s.txt:1:7: found 'x', expected a Unix time in ms"),
        ("check nosuch", "s.txt:1:7: \"nosuch\" is neither an object nor a promise of one"),
        ("repeat 2\nc1: PING\n= PONG", "s.txt:1:1: 'repeat' has no 'end'"),
        ("end", "s.txt:1:1: 'end' has no 'repeat'"),
        ("repeat x\nend", "s.txt:1:8: found 'x', expected N or N as NAME"),
        ("repeat -1\nend", "s.txt:1:8: found '-1', expected N or N as NAME"),
        ("repeat 2\nlet x = y\nend", "s.txt:2:1: found 'let x = y', expected a step: definitions"),
        ("include nosuch.txt", "s.txt:1:9: cannot read nosuch.txt: this schedule has no files"),
        ("include", "s.txt:1:8: found nothing, expected the name of a file"),
        ("script X = a.lua", "s.txt:1:12: cannot read a.lua"),
        ("script X = rlock.acquire of a.jar", "s.txt:1:29: cannot read a.jar"),
        ("script X", "s.txt:1:8: found 'X', expected NAME = FILE or NAME = ROLE of JAR"),
    ] {
        let error = error(text);
        assert!(error.starts_with(said), "{text}\n  said {error}\n  not  {said}");
    }
    let error = Schedule::parse("s.txt", b"# \xc3\xa9\nc1: SET \xc3\xa9 \xff", &mut NoFiles).unwrap_err();
    assert_eq!(
        error.to_string(),
        "s.txt:2:11: the bytes from here on are not UTF-8; \"\\xff\" in quotes is any byte"
    );
}

#[test]
fn line_ends_and_a_byte_order_mark_do_not_matter() {
    let report = run("\u{feff}# title\r\nc1: SET k v  \r\n\t= OK\r\n\r\nrepeat 2\r\n  c1: GET k\r\n  = v\r\nend\r\noutcome: fine\r").unwrap();
    assert!(report.ends_with("\nOutcome: fine\n"), "{report}");
    assert_eq!(run(""), Ok(String::new()));
}

#[test]
fn everything_has_a_limit() {
    let deep = |n| "repeat 1\n".repeat(n) + &"end\n".repeat(n);
    assert_eq!(run(&deep(16)), Ok(String::new()));
    assert_eq!(error(&deep(17)), "s.txt:17:1: more than 16 loops and files in each other");
    for endless in [
        "repeat 18446744073709551615\nend",
        "repeat 99999999\nrepeat 99999999\nend\nend",
        "repeat 9999999\nmark\nend",
    ] {
        let error = error(endless);
        assert!(error.ends_with("the schedule has more than 1000000 steps"), "{error}");
    }
    let mut doubled = "let a0 = 0123456789\n".to_owned();
    (1..64).for_each(|n| doubled += &format!("let a{n} = ${{a{}}}${{a{}}}\n", n - 1, n - 1));
    assert!(error(&doubled).contains("MiB"), "{}", error(&doubled));
    let endless = "config busy-reply-threshold 5\nc1: EVAL \"while true do end\" 0\n= waits\nadvance 100000";
    assert!(
        error(endless).starts_with("s.txt:4:1: scripts have run for 600 million instructions"),
        "{}",
        error(endless)
    );
    let waits = "c1: BLPOP q 0\n= waits\nadvance 3155760000000\nc1 <- nil";
    assert_eq!(error(waits), "s.txt:4:1: c1 receives waits, not nil");
}

fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("redlatch-schedules-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn redlatch(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_redlatch")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn files_are_run_from_their_folder() {
    let folder = folder();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(path("three.lua"), "-- a script\nreturn 3\n").unwrap();
    fs::write(path("more.txt"), "let MORE = 4\nscript THREE = three.lua\n").unwrap();
    fs::write(path("good.txt"), "# Good\ninclude more.txt\nc: EVAL $THREE 0\n= 3\noutcome: good.\n").unwrap();
    fs::write(path("again.txt"), "include again.txt\n").unwrap();
    fs::write(path("other.txt"), "include more.txt\nc: EVAL $THREE 0\n= ${MORE}\n").unwrap();
    fs::write(path("wrong.txt"), "include rlock\nnonsense\n").unwrap();
    let good = redlatch(&["demo", &path("good.txt"), "--quiet", "--trace", &path("run.jsonl")]);
    assert_eq!((good.status.code(), text(&good.stdout)), (Some(0), "Good\nOutcome: good.\n\n\n".to_owned()));
    assert!(redlatch(&["replay", &path("run.jsonl")]).status.success());
    let other = redlatch(&["demo", &path("other.txt")]);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stdout).contains("other.txt:3:1: c receives 3, not 4"), "{}", text(&other.stdout));
    for (name, said) in [
        ("wrong.txt", "wrong.txt:2:1: found 'nonsense', expected one of: CLIENT: COMMAND"),
        ("again.txt", "again.txt:1:9: more than 16 files in each other"),
        ("nosuch.txt", "no such file"),
    ] {
        let output = redlatch(&["demo", &path(name)]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(text(&output.stderr).contains(said), "{name} said {}", text(&output.stderr));
    }
    assert_eq!(redlatch(&["demo", folder.to_str().unwrap()]).status.code(), Some(2), "a folder");
    assert_eq!(redlatch(&["demo", "/dev/zero"]).status.code(), Some(2), "a file without an end");
    let shown = text(&redlatch(&["demo", "K1", "--text"]).stdout);
    run(&shown).unwrap();
    fs::remove_dir_all(folder).unwrap();
}
