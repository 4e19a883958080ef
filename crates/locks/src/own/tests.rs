//! Tests that descriptions are parsed, and that the model reports violations, and only violations.

use std::sync::Arc;

use super::answer::{Answer, Pattern};
use super::description::{broken, no_files, parse};
use super::lock::{Kind, Lease, Lock};
use super::model::OwnLock;
use super::roles;
use crate::invariant::Invariant;
use crate::model::Reply;
use crate::testing::{Keys, NO_MESSAGES};
use redlatch_core::store::{StringValue, Value};

const SET_NX: &str = include_str!("../../../../docs/locks/set-nx.toml");

fn lock(description: &str) -> Lock {
    parse(description, &mut no_files).unwrap_or_else(|error| panic!("{error}\n{description}"))
}

fn error(description: &str) -> String {
    parse(description, &mut no_files).expect_err(description).to_string()
}

#[test]
fn a_short_description_has_defaults() {
    let lock = lock(
        "[acquire]\nscript = 'return 1'\nkeys = ['lock']\nargs = ['owner', 'lease_ms']\n\
         [release]\nscript = 'return 1'\nkeys = ['{lock}:x']\nargs = []\n",
    );
    assert_eq!((lock.kind, lock.lease, lock.parts.len()), (Kind::Lock, Lease::Key, 2));
    let release = lock.part(roles::RELEASE).unwrap();
    assert_eq!(release.answers, [(Answer::Released, Pattern::Int(1)), (Answer::NotHeld, Pattern::Anything)]);
    assert!(!lock.parts[0].resend);
}

#[test]
fn an_invalid_description_names_the_place_of_its_error() {
    let acquire = "[acquire]\ncommand = [\"SET\", \"{lock}\", \"{owner}\", \"NX\", \"PX\", \"{lease_ms}\"]\n";
    let release = "[release]\nscript = \"return 1\"\nkeys = [\"lock\"]\nargs = []\n";
    let both = |top: &str, more: &str| format!("{top}\n{acquire}{release}{more}");
    for (description, expected) in [
        (String::new(), "[acquire]: is missing"),
        ("kind = \"mutex\"".to_owned(), "kind: \"mutex\" is not one of \"lock\", \"queue\""),
        ("kind = 7".to_owned(), "kind: 7 is not one of"),
        ("acquire = 1".to_owned(), "[acquire]: 1 is not a table"),
        ("[renew]".to_owned(), "renew: unknown; there are acquire,"),
        (acquire.to_owned(), "[release]: is missing"),
        ("[acquire]".to_owned(), "[acquire]: has neither a command nor a script"),
        ("[acquire]\nscript = ''\nkeys = []\nargs = []".to_owned(), "[acquire] script: is empty"),
        ("[acquire]\nscript = 'return 1'".to_owned(), "[acquire] keys: is missing"),
        ("[acquire]\nscript = 1".to_owned(), "[acquire] script: 1 is not a text"),
        ("[acquire]\ncommand = 'SET'".to_owned(), "[acquire] command: \"SET\" is not a list of texts"),
        ("[acquire]\ncommand = []".to_owned(), "[acquire] command: is empty"),
        ("[acquire]\ncommand = ['SETT']".to_owned(), "[acquire] command: Redis 7.4.1 has no command SETT"),
        ("[acquire]\ncommand = ['DELEX', '{lock}']".to_owned(), "redis_version chooses another release"),
        ("[acquire]\ncommand = ['GET']".to_owned(), "[acquire] command: GET with 0 arguments"),
        ("[acquire]\ncommand = ['BLPOP', 'x', '0']".to_owned(), "[acquire] command: BLPOP blocks"),
        ("[acquire]\ncommand = ['SET', 'lock', '1']".to_owned(), "write \"{lock}\" for its value"),
        ("[acquire]\ncommand = ['SET', '{look}', '1']".to_owned(), "{look} is none of the slots lock,"),
        ("[acquire]\ncommand = ['SET', '{lock', '1']".to_owned(), "has no counterpart; write {{ for a brace"),
        ("[acquire]\nscript = 'return 1'\nkeys = ['lok']".to_owned(), "[acquire] keys: \"lok\" names no lock"),
        ("[acquire]\nscript = 'return 1'\nkeys = [1]".to_owned(), "[acquire] keys: this array is not a list of texts"),
        (format!("{acquire}lease = 1"), "[acquire] lease: belongs to the whole lock: write it before"),
        (format!("{acquire}granted = 'OKAY'"), "[acquire] granted: \"OKAY\" is none of nil, number,"),
        (format!("{acquire}granted = 1.5"), "[acquire] granted: this float is none of"),
        (format!("{acquire}granted = []"), "[acquire] granted: this array has no elements"),
        (format!("{acquire}granted = {{ one = 1 }}"), "[acquire] granted: this table is not { any = [ … ] }"),
        (format!("{acquire}refused = 'nil'"), "[acquire] granted: is missing"),
        (format!("{acquire}resend = 1"), "[acquire] resend: 1 is not true or false"),
        (both("redis_version = \"9.9\"", ""), "redis_version: '9.9' is not one of 7.0,"),
        (both("lease = \"none\"", ""), "lease: [acquire] passes one"),
        (both("reentrant = true", ""), "reentrant: true is not false, \"counts\" or \"renews\""),
        (both("message = \"0\"", ""), "message: there is no channel"),
        (both("stays = [\"{owner}\"]", ""), "stays: {owner} cannot stand here"),
        (both("permits = 2", ""), "permits: unknown; there are"),
        (both("kind = \"semaphore\"", ""), "permits: is missing"),
        (both("kind = \"semaphore\"\npermits = 99999999", ""), "permits: 99999999 is not a number from 1 to 1000"),
        (both("kind = \"queue\"", ""), "waiter_ms: is missing"),
        (both("kind = \"queue\"\nwaiter_ms = -1", ""), "waiter_ms: -1 is not a number from 1 to 600000"),
        (both("", "[extend]\nscript = 'return'\nkeys = []\nargs = ['fence']"), "[extend]: {fence} has no value here"),
        (both("", "[[broken]]\nwhy = 'x'"), "[[broken]] 1 violates: is missing"),
        (both("broken = 1", ""), "broken: 1 is not a list of tables"),
        (acquire.replace("{lease_ms}", "5") + release, "[acquire]: passes no lease"),
        (format!("kind = 'limiter'\nlimit = 1\nper_ms = 1000\n{}", acquire), "window: is missing"),
        ("kind = 'latch'\n[reset]\ncommand = ['SET', '{lock}', '3']\n[count_down]\ncommand = ['DECR', '{lock}']"
            .to_owned(), "[reset]: passes no {count}"),
    ] {
        let error = error(&description);
        assert!(error.contains(expected), "{error}\ninstead of {expected}\n{description}");
    }
    assert!(error("[").contains("TOML parse error at line 1"));
}

#[test]
fn a_script_that_does_not_compile_is_an_error_with_its_line() {
    let error = error(
        "[acquire]\nscript = '''\nlocal x = 1\nif x then retrun 1 end'''\nkeys = []\nargs = ['lease_ms']\n\
         [release]\nscript = 'return 1'\nkeys = []\nargs = []",
    );
    assert_eq!(error, "[acquire] script: line 2: '=' expected near '1'");
}

#[test]
fn a_script_is_read_from_a_file_or_a_part_of_one() {
    let description = "[acquire]\nscript_file = 'a.py'\nscript_from = 'S = \"'\nscript_to = '\"'\nkeys = []\n\
        args = ['lease_ms']\n[release]\nscript_file = 'b.lua'\nkeys = []\nargs = []\n";
    let mut files = |name: &str| match name {
        "a.py" => Ok("x = 1\nS = \"return 2\"\n".to_owned()),
        "b.lua" => Ok("return 3".to_owned()),
        _ => Err("not there".to_owned()),
    };
    let scripts: Vec<String> =
        parse(description, &mut files).unwrap().parts.into_iter().map(|part| part.script).collect();
    assert_eq!(scripts, ["return 2", "return 3"]);
    let missing = parse(&description.replace("b.lua", "c.lua"), &mut files).unwrap_err();
    assert_eq!(missing.to_string(), "[release] script_file: c.lua: not there");
    let missing = parse(&description.replace("S = ", "T = "), &mut files).unwrap_err();
    assert_eq!(missing.to_string(), "[acquire] script_from: the file does not contain \"T = \\\"\"");
}

#[test]
fn a_change_that_breaks_a_lock_changes_what_stands_before_it() {
    let lock = "# a = 1\n[[broken]]\nwhy = 'x'\nreplace = 'a = 1'\nwith = 'a = 2'\nviolates = 'M1@acquire'\n";
    let all = broken(lock).unwrap();
    assert_eq!(all[0].violates, (Invariant::M1, Some("acquire".to_owned())));
    assert!(all[0].apply(lock).starts_with("# a = 2\n"));
    let wrong = broken(&lock.replace("# a = 1\n", "")).unwrap_err();
    assert_eq!(wrong.to_string(), "[[broken]] 1 replace: \"a = 1\" does not stand before [[broken]]");
}

#[test]
fn two_owners_at_once_violate_m1() {
    let (mut keys, mut model) = (Keys::new(), OwnLock::new(Arc::new(lock(SET_NX))));
    let acquire = |owner, keys: &mut Keys, model: &mut OwnLock| {
        keys.judge(model, ("acquire", owner, 0), (Reply::Text(b"OK"), NO_MESSAGES), |keys, call| {
            keys.set("my:lock", Value::String(StringValue::new(b"x")), Some(call.lease_ms));
        })
    };
    assert_eq!(acquire(0, &mut keys, &mut model), None);
    assert_eq!(acquire(1, &mut keys, &mut model), Some(Invariant::M1));
    keys.advance(10_001);
    assert_eq!(acquire(0, &mut keys, &mut model), None);
}
