//! Tests of the bridge's rules, on a machine with a few functions.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use mlua_sys as ffi;

use super::*;
use crate::script::random::Random;
use crate::script::{Host, LogLevel};
use crate::version::Version;
use crate::wire::reply::{Protocol, Reply};

struct Nobody;

impl Host for Nobody {
    fn call(&mut self, _: &[&[u8]], reply: &mut Reply) {
        reply.ok();
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn may_run(&mut self, _: &[&[u8]]) -> Option<bool> {
        None
    }
}

thread_local! {
    static DROPPED: Rc<Cell<u32>> = Rc::default();
}

struct Owned(Rc<Cell<u32>>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn owned() -> Owned {
    Owned(DROPPED.with(Rc::clone))
}

fn raise_while_owning(lua: &mut Stack) -> Raised<usize> {
    let _owned = owned();
    lua.raise_text("raised")
}

fn panic_while_owning(_: &mut Stack) -> Raised<usize> {
    let _owned = owned();
    panic!("broken")
}

/// Returns the keys of a table, joined.
fn keys(lua: &mut Stack) -> Raised<usize> {
    let mut all = Vec::new();
    lua.each(1, |lua| {
        all.extend_from_slice(&lua.describe(-2));
        all.push(b' ');
        Ok(())
    })?;
    lua.push_bytes(&all);
    Ok(1)
}

fn globals(lua: &mut Stack) -> Raised<usize> {
    lua.each_guarded(|lua, library, name| match library {
        "" => lua.raw_set_field(1, name.as_bytes()),
        _ => lua.pop(1),
    });
    for (name, function) in
        [("raise", raise_while_owning as Function), ("fail", panic_while_owning), ("keys", keys)]
    {
        lua.push_function(function);
        lua.raw_set_field(1, name.as_bytes());
    }
    lua.push_nil();
    lua.push_table(0, 1);
    lua.push_boolean(true);
    lua.raw_set_field(-2, b"inside");
    lua.protect();
    lua.raw_set_field(1, b"sealed");
    lua.push_nil();
    lua.push_copy(1);
    lua.protect();
    Ok(1)
}

fn finish(lua: &mut Stack, failed: bool, reply: &mut Reply) {
    assert!(lua.bytes(-1) != Some(b"unwritable"), "unwritable");
    reply.raw(if failed { b"error: " } else { b"" });
    reply.raw(&lua.describe(-1));
}

fn machine() -> Machine {
    Machine::new(Setup {
        version: Version::V7_4,
        slice: 1000,
        memory_limit: 16 << 20,
        random: Random::default(),
        globals,
        on_error: |lua| {
            lua.set_len(1);
            Ok(1)
        },
        finish,
    })
}

fn run(machine: &mut Machine, body: &str) -> String {
    let chunk = machine.compile(body.as_bytes(), c"@test").expect("it compiles");
    let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
    let mut signal = machine.start(chunk, b"test", Input::Nothing, &mut Nobody, &mut reply);
    while signal == Signal::Slice {
        signal = machine.resume(&mut Nobody, &mut reply);
    }
    machine.forget(chunk);
    String::from_utf8_lossy(reply.as_bytes()).into_owned()
}

#[test]
fn a_function_drops_its_values_before_it_raises() {
    let mut machine = machine();
    let before = owned().0.get();
    assert_eq!(run(&mut machine, "raise()"), "error: test:1: raised");
    assert_eq!(run(&mut machine, "for i = 1, 10 do pcall(raise) end return 1"), "1");
    assert_eq!(owned().0.get() - before, 12);
}

#[test]
fn a_function_drops_its_values_when_it_panics() {
    let mut machine = machine();
    let before = owned().0.get();
    let caught = catch_unwind(AssertUnwindSafe(|| run(&mut machine, "pcall(fail)")));
    assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&"broken"));
    assert_eq!(owned().0.get() - before, 2);
    assert_eq!(run(&mut machine, "return 1"), "1");
}

#[test]
fn a_panic_in_writing_the_reply_leaves_a_working_machine() {
    let mut machine = machine();
    for body in ["return 'unwritable'", "for i = 1, 5000 do end return 'unwritable'"] {
        let caught = catch_unwind(AssertUnwindSafe(|| run(&mut machine, body)));
        assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&"unwritable"));
        assert!(!machine.is_suspended());
        machine.abandon();
        assert_eq!(run(&mut machine, "for i = 1, 5000 do end return 1"), "1");
    }
    let caught = catch_unwind(AssertUnwindSafe(|| run(&mut machine, "return 'unwritable'")));
    assert!(caught.is_err());
    drop(machine);
}

#[test]
fn chunks_that_assign_to_globals_are_guarded() {
    let mut machine = machine();
    let refused = "Attempt to modify a readonly table";
    assert_eq!(run(&mut machine, "keys = 1"), format!("error: test:1: {refused}"));
    assert_eq!(
        run(&mut machine, "(function() local a = 1 keys = a end)()"),
        format!("error: test:1: {refused}")
    );
    assert_eq!(run(&mut machine, "local keys = 1 keys = 2 return keys"), "2");
    assert_eq!(run(&mut machine, "local s = 'keys' .. 1.5 .. tostring(true) return s"), "keys1.5true");
}

#[test]
fn protected_tables_show_their_entries() {
    let mut machine = machine();
    assert_eq!(run(&mut machine, "return keys(sealed)"), "inside ");
    assert_eq!(run(&mut machine, "return tostring(sealed.inside)"), "true");
    assert_eq!(run(&mut machine, "return next(sealed)"), "inside");
    assert_eq!(run(&mut machine, "sealed.inside = 1"), "error: test:1: Attempt to modify a readonly table");
    assert_eq!(run(&mut machine, "rawset(sealed, 'x', 1)"), "error: Attempt to modify a readonly table");
}

#[test]
fn byte_code_is_read_as_text() {
    let mut machine = machine();
    assert!(
        machine.compile(b"\x1bLua", c"@test").is_err_and(|message| message.ends_with(b"near 'char(27)'"))
    );
}

#[test]
fn a_text_too_long_for_the_lexer_is_refused() {
    let text = vec![0; 1 << 30];
    assert_eq!(machine().compile(&text, c"@test"), Err(b"not enough memory".to_vec()));
}

#[test]
fn an_ended_script_leaves_a_working_thread() {
    let mut machine = machine();
    let chunk = machine.compile(b"while true do pcall(raise) end", c"@test").expect("it compiles");
    let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
    assert_eq!(machine.start(chunk, b"test", Input::Nothing, &mut Nobody, &mut reply), Signal::Slice);
    assert_eq!(machine.location(), Some((b"@test".to_vec(), 1)));
    machine.abandon();
    assert!(!machine.is_suspended());
    assert_eq!(run(&mut machine, "return 1"), "1");
}

/// Runs only in a process that the next test starts.
#[test]
#[ignore = "ends the process"]
fn raise_outside_a_protected_call() {
    let machine = machine();
    let state = machine.main();
    // SAFETY: nothing runs in the state. Nothing catches what is raised, and the process ends.
    unsafe {
        ffi::lua_pushstring_(state, c"for nobody".as_ptr());
        ffi::lua_error(state)
    }
}

#[test]
#[allow(clippy::disallowed_methods)]
fn an_error_that_nothing_catches_aborts_with_a_message() {
    let this = std::env::current_exe().expect("this program");
    let name = concat!(module_path!(), "::raise_outside_a_protected_call");
    let name = name.split_once("::").map_or(name, |(_, path)| path);
    let output = std::process::Command::new(this)
        .args(["--exact", name, "--ignored", "--nocapture"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Lua raised an error outside a protected call: for nobody"), "{said}");
    assert_eq!(output.status.code(), None, "a signal ends it");
}
