//! Properties of the script engine that no comparison with a server shows: suspension, kills, memory and stack bombs, panics of the
//! host, determinism.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use redlatch::Version;
use redlatch_core::script::{Host, LogLevel, Script, Step, Vm};
use redlatch_core::wire::reply::{Protocol, Reply};

/// A host that replies to every command with its name, and counts the calls.
#[derive(Default)]
struct Echo {
    calls: usize,
    logged: Vec<(LogLevel, Vec<u8>)>,
}

impl Host for Echo {
    fn call(&mut self, argv: &[&[u8]], reply: &mut Reply) {
        self.calls += 1;
        match argv[0] {
            b"panic" => panic!("the host fails"),
            b"error" => reply.error(b"ERR on demand"),
            b"nested" => (0..200).for_each(|_| reply.array(1)),
            name => reply.bulk(name),
        }
        if argv[0] == b"nested" {
            reply.int(1);
        }
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        self.logged.push((level, message.to_vec()));
    }

    fn may_run(&mut self, _: &[&[u8]]) -> Option<bool> {
        Some(true)
    }
}

const SLICE: u32 = 10_000;
const MEMORY: usize = 32 << 20;

fn vm() -> Vm {
    Vm::with_limits(Version::V7_4, SLICE, MEMORY)
}

fn reply() -> Reply {
    Reply::new(Protocol::Resp2, Version::V7_4)
}

fn load(vm: &mut Vm, body: &str) -> Script {
    vm.load(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {}", error.text().escape_ascii()))
}

/// Runs a script to its end and returns the reply.
fn run(vm: &mut Vm, body: &str) -> String {
    let script = load(vm, body);
    let mut host = Echo::default();
    let mut reply = reply();
    let mut step = vm.start(&script, &[b"k"], &[b"a"], &mut host, &mut reply);
    while step == Step::Suspended {
        step = vm.resume(&mut host, &mut reply);
    }
    vm.unload(&script);
    String::from_utf8_lossy(reply.as_bytes()).into_owned()
}

/// Starts an endless script, runs some slices of it, kills it, and returns the reply.
fn run_and_kill(vm: &mut Vm, body: &str) -> String {
    let script = load(vm, body);
    let mut host = Echo::default();
    let mut reply = reply();
    let mut step = vm.start(&script, &[], &[], &mut host, &mut reply);
    for _ in 0..20 {
        assert_eq!(step, Step::Suspended, "{body}: {}", reply.as_bytes().escape_ascii());
        step = vm.resume(&mut host, &mut reply);
    }
    vm.kill();
    assert_eq!(vm.resume(&mut host, &mut reply), Step::Done);
    assert!(!vm.is_busy());
    String::from_utf8_lossy(reply.as_bytes()).into_owned()
}

#[test]
fn a_suspended_script_goes_on_with_another_host_and_reply() {
    let mut vm = vm();
    let script = load(&mut vm, "for i = 1, 100000 do end redis.call('x') return redis.call('y')");
    let (mut first, mut second) = (Echo::default(), Echo::default());
    let (mut unused, mut used) = (reply(), reply());
    assert_eq!(vm.start(&script, &[], &[], &mut first, &mut unused), Step::Suspended);
    drop(unused);
    drop(first);
    let mut slices = 1;
    while vm.resume(&mut second, &mut used) == Step::Suspended {
        slices += 1;
    }
    assert!(slices >= 10, "{slices} slices");
    assert_eq!(used.as_bytes(), b"$1\r\ny\r\n");
    assert_eq!(second.calls, 2);
}

#[test]
fn nothing_in_a_script_can_prevent_its_end() {
    let mut vm = vm();
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function loop() while true do end end while true do xpcall(loop, loop) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.wrap(function() end)() end",
        "local function nest(n) if n == 0 then while true do end end coroutine.wrap(nest)(n - 1) end nest(50)",
        "setmetatable({}, {__index = function() while true do end end}).x = setmetatable({}, {__index = function() while true do end end}).y",
        "table.sort({3, 2, 1}, function() while true do end end)",
        "string.gsub('abc', '.', function() while true do end end)",
        "load(function() while true do end end)",
        "while true do redis.call('x') end",
        "while true do pcall(redis.call, 'error') end",
        "local t = {} while true do t[#t % 100 + 1] = {} end",
    ] {
        let reply = run_and_kill(&mut vm, body);
        assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{body}: {reply}");
        assert_eq!(run(&mut vm, "return redis.call('next')"), "$4\r\nnext\r\n", "after {body}");
    }
}

#[test]
fn the_reply_to_a_killed_script_says_where_it_was() {
    let mut vm = vm();
    let reply = run_and_kill(&mut vm, "local function f()\nwhile true do end\nend\nf()");
    let sha = load(&mut vm, "local function f()\nwhile true do end\nend\nf()").sha().to_owned();
    let expected =
        format!("-ERR Script killed by user with SCRIPT KILL... script: {sha}, on @user_script:2.\r\n");
    assert_eq!(reply, expected);
}

#[test]
fn a_kill_without_a_script_has_no_effect() {
    let mut vm = vm();
    vm.kill();
    let script = load(&mut vm, "for i = 1, 100000 do end return 7");
    let mut host = Echo::default();
    let mut reply = reply();
    assert_eq!(vm.start(&script, &[], &[], &mut host, &mut reply), Step::Suspended);
    while vm.resume(&mut host, &mut reply) == Step::Suspended {}
    assert_eq!(reply.as_bytes(), b":7\r\n");
}

#[test]
fn memory_bombs_are_ordinary_errors() {
    let mut vm = vm();
    for body in [
        "return #string.rep('x', 1e9)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t[#t + 1] = {} end",
        "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = ('x'):rep(3e6) return cjson.encode({s, s, s, s, s, s, s, s, s, s, s, s, s, s})",
        "return cmsgpack.unpack(('\\145'):rep(3) .. '\\221\\255\\255\\255\\255' .. ('\\1'):rep(3e6))",
        "return struct.pack(('i32'):rep(2e6), 1)",
        "local co = {} while true do co[#co + 1] = coroutine.wrap(function() coroutine.yield() end) co[#co]() end",
        "return assert(loadstring('return {' .. ('{1},'):rep(2e6) .. '}'))",
        "local t = {} for i = 1, 1e7 do t[i] = tostring({}) end",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t[i] = s end return t",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t['k' .. i] = s end return {map = t}",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t[i] = s end return cjson.encode(t)",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t[i] = s end return cmsgpack.pack(t)",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t[i] = s end return cmsgpack.pack(unpack(t))",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t[i] = s end return struct.pack(('s'):rep(1000), unpack(t))",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t[i] = s end return redis.log(1, unpack(t))",
        "local s, t = ('x'):rep(1e4):rep(100), {} for i = 1, 1000 do t[i] = s end return table.concat(t)",
    ] {
        let reply = run(&mut vm, body);
        assert!(reply.starts_with("-"), "{body}: {}", &reply[..reply.len().min(100)]);
        assert_eq!(run(&mut vm, "return redis.call('next')"), "$4\r\nnext\r\n", "after {body}");
        assert_eq!(run(&mut vm, "return #('x'):rep(4e4):rep(100)"), ":4000000\r\n", "after {body}");
    }
}

/// Returns the memory that the Lua state uses while no script runs, in KB.
fn held(vm: &mut Vm) -> u64 {
    // A kill collects all garbage, and each collection halves the buffer that Lua keeps for concatenation.
    for _ in 0..16 {
        run_and_kill(vm, "while true do end");
    }
    let used = run(vm, "return math.floor(collectgarbage('count'))");
    used.trim_matches([':', '\r', '\n']).parse().expect("a number")
}

#[test]
fn an_error_on_a_full_stack_leaves_the_memory_limit_on() {
    let mut vm = vm();
    for fail in [
        "cjson.encode_max_depth(100000) local q = redis for i = 1, DEPTH do q = {q} end pcall(cjson.encode, q)",
        "local q = redis for i = 1, 15 do q = {q} end pcall(cmsgpack.pack, q, unpack({}, 1, DEPTH - 2))",
        "pcall(cmsgpack.unpack_limit, ('\\1'):rep(9000), DEPTH)",
        "pcall(cmsgpack.unpack, ('\\145'):rep(DEPTH / 2))",
        "pcall(struct.unpack, ('b'):rep(DEPTH), ('x'):rep(DEPTH))",
    ] {
        for depth in 7975..8000 {
            let body = format!("{fail} return #('x'):rep(1e4):rep(1e4)").replace("DEPTH", &depth.to_string());
            let reply = run(&mut vm, &body);
            assert!(reply.contains("not enough memory"), "{body}: {reply}");
        }
    }
}

#[test]
fn a_kill_loses_nothing() {
    let mut vm = vm();
    let before = held(&mut vm);
    for body in [
        // The parser holds the long string in a buffer that the collector does not know.
        "local n = 0 load(function() n = n + 1 if n == 1 then return 'return [[' .. ('x'):rep(3e6) end while true do end end)",
        "local n = 0 load(function() n = n + 1 if n < 30 then return 'x' .. n .. '=1 ' end return load(function() while true do end end) end)",
        "coroutine.wrap(function() load(function() while true do end end) end)()",
        "while true do local t = {} for i = 1, 1000 do t[i] = {('x'):rep(i)} end end",
        "('x'):rep(1e4):gsub('x', function() while true do end end)",
        "table.sort({3, 2, 1}, function() while true do end end)",
    ] {
        for _ in 0..10 {
            run_and_kill(&mut vm, body);
        }
        let after = held(&mut vm);
        assert!(after < before + 100, "{before} KiB before and {after} KiB after {body}");
        assert_eq!(run(&mut vm, "return #('x'):rep(5e4):rep(100)"), ":5000000\r\n", "after {body}");
    }
}

#[test]
fn a_flush_of_a_suspended_parser_leaves_a_working_engine() {
    let mut vm = vm();
    let script = load(&mut vm, "load(function() while true do end end)");
    let (mut host, mut reply) = (Echo::default(), reply());
    assert_eq!(vm.start(&script, &[], &[], &mut host, &mut reply), Step::Suspended);
    vm.flush();
    assert_eq!(run(&mut vm, "return 1"), ":1\r\n");
}

/// Lua's parser holds the name of a chunk, unknown to the collector, until it has read something. A reader that returns nothing first and
/// then creates garbage could have the name collected.
#[test]
fn the_name_of_a_chunk_survives_its_reader() {
    let mut vm = vm();
    let body = "local calls = 0
        local function read()
            calls = calls + 1
            for i = 1, 20000 do local garbage = {('x'):rep(i % 50) .. i} end
            if calls == 1 then return '' end
            if calls == 2 then return ' local x =' end
        end
        local results = {}
        for i = 1, 20 do
            calls = 0
            local chunk, message = load(read, '@' .. ('n'):rep(i) .. '\\0rest')
            results[i] = tostring(chunk) .. message
        end
        return results";
    let reply = run(&mut vm, body);
    for i in 1..=20 {
        let expected = format!("\r\nnil{}:1: unexpected symbol near '<eof>'\r\n", "n".repeat(i));
        assert!(reply.contains(&expected), "{i}: {reply}");
    }
}

#[test]
fn vararg_functions_have_room_for_their_parameters() {
    let mut vm = vm();
    // Many parameters, few arguments, at every depth up to a stack of a few thousand values.
    let body = "local names = {}
        for i = 1, 190 do names[i] = 'p' .. i end
        local f = loadstring('return function(' .. table.concat(names, ', ') .. ', ...) return p190, ... end')()
        local function nest(n) if n == 0 then return select('#', f(), f(1, 2)) end return (nest(n - 1)) end
        for depth = 0, 150 do
            nest(depth)
            coroutine.wrap(function(...) return f() end)(unpack({}, 1, depth * 7))
        end
        return select('#', f(unpack({}, 1, 200)))";
    assert_eq!(run(&mut vm, body), ":11\r\n");
}

#[test]
fn no_object_has_a_finalizer() {
    let mut vm = vm();
    assert!(run(&mut vm, "return newproxy(true)").contains("newproxy gives no metatable here"));
    assert!(run(&mut vm, "return newproxy(newproxy())").starts_with('-'));
    let reply = run(&mut vm, "setmetatable({}, {__gc = function() redis.call('x') end}) return 1");
    assert_eq!(reply, ":1\r\n");
}

#[test]
fn extreme_keys_are_ordinary_keys() {
    let mut vm = vm();
    for key in
        ["-2147483648", "2147483647", "-2147483649", "2147483648", "-9007199254740992", "1e300", "-1/0", "0"]
    {
        let body = format!(
            "local t = {{1, 2, 3}} local before = t[{key}] t[{key}] = 'x'
            return {{before == nil, t[{key}], rawget(t, {key}), #t, (next(t))}}"
        );
        assert_eq!(run(&mut vm, &body), "*5\r\n:1\r\n$1\r\nx\r\n$1\r\nx\r\n:3\r\n:1\r\n", "{key}");
    }
}

#[test]
fn long_brackets_meet_the_memory_limit() {
    let mut vm = vm();
    for body in [
        "local level = ('='):rep(1e6) return #loadstring('return [' .. level .. '[text]' .. level .. ']')()",
        "local n = 0 return #load(function() n = n + 1 if n == 1 then return 'return [' end if n < 4 then return ('='):rep(1e5) end if n == 4 then return '[text]' end if n < 7 then return ('='):rep(1e5) end if n == 7 then return ']' end end)()",
    ] {
        assert_eq!(run(&mut vm, body), ":4\r\n", "{body}");
    }
    let endless = "local piece, n = ('='):rep(1e6), 0 return select(2, load(function() n = n + 1 return n == 1 and '[' or piece end))";
    assert_eq!(run(&mut vm, endless), "$17\r\nnot enough memory\r\n");
}

#[test]
fn the_debug_library_is_absent() {
    let mut vm = vm();
    for name in ["debug", "io", "package", "require", "module", "dofile", "loadfile"] {
        let reply = run(&mut vm, &format!("return {name}"));
        assert!(reply.contains(&format!("nonexistent global variable '{name}'")), "{reply}");
    }
}

#[test]
fn nothing_of_a_script_runs_after_its_kill() {
    let mut vm = vm();
    for body in [
        "pcall(function() while true do end end) redis.call('after')",
        "pcall(pcall, function() while true do end end) redis.call('after')",
        "xpcall(function() while true do end end, redis.call)",
        "xpcall(function() while true do end end, function() redis.call('after') while true do end end)",
        "xpcall(error, function() while true do end end) redis.call('after')",
        "load(function() while true do end end) redis.call('after')",
        "coroutine.resume(coroutine.create(function() while true do end end)) redis.call('after')",
        "coroutine.wrap(function() pcall(function() while true do end end) redis.call('after') end)()",
        "local c = coroutine.wrap(function() while true do coroutine.yield() end end) pcall(function() while true do c() end end) redis.call('after')",
        "pcall(tostring, setmetatable({}, {__tostring = function() while true do end end})) redis.call('after')",
        "local function f() while true do end end pcall(table.sort, {f, f, f, f}, pcall) redis.call('after')",
        "local function f() while true do end end pcall(table.sort, {f, f, f, f}, xpcall) redis.call('after')",
        "table.foreach({[function() while true do end end] = 1}, pcall) redis.call('after')",
        "local t = setmetatable({}, {__index = function() while true do end end}) pcall(function() return t.x end) redis.call('after')",
        "('x'):rep(100):gsub('x', function() pcall(function() while true do end end) redis.call('after') end)",
    ] {
        let script = load(&mut vm, body);
        let (mut host, mut reply) = (Echo::default(), reply());
        let mut step = vm.start(&script, &[], &[], &mut host, &mut reply);
        for _ in 0..5 {
            assert_eq!(step, Step::Suspended, "{body}");
            step = vm.resume(&mut host, &mut reply);
        }
        vm.kill();
        assert_eq!(vm.resume(&mut host, &mut reply), Step::Done);
        assert_eq!(host.calls, 0, "{body}");
        assert!(reply.as_bytes().starts_with(b"-ERR Script killed by user"), "{body}");
    }
}

/// Runs slices of one instruction, so that a kill can come before any instruction.
#[test]
fn a_kill_may_come_at_every_instruction() {
    let mut vm = Vm::with_limits(Version::V7_4, 1, MEMORY);
    let before = held(&mut vm);
    for body in [
        "local function f(n) if n == 0 then error('x') end return 1 + f(n - 1) end for i = 1, 9 do pcall(f, i) end",
        "for i = 1, 9 do xpcall(function() local x = nil + 1 end, function(e) return {e} end) end",
        "local n = 0 while true do n = n + 1 load(function() n = n + 1 if n % 5 > 0 then return ' do local x = 1 end' end end) end",
        "while true do coroutine.wrap(function(...) coroutine.yield(...) pcall(error, {}) end)(1, 2) end",
        "while true do ('abc'):gsub('.', function(c) return redis.call(c) end) end",
        "while true do local t = {3, 1, 2} table.sort(t, function(a, b) return a < b end) cjson.encode(t) end",
    ] {
        for instruction in 0..150 {
            let script = load(&mut vm, body);
            let (mut host, mut reply) = (Echo::default(), reply());
            let mut step = vm.start(&script, &[], &[], &mut host, &mut reply);
            for _ in 0..instruction {
                if step == Step::Suspended {
                    step = vm.resume(&mut host, &mut reply);
                }
            }
            if step == Step::Suspended {
                let calls = host.calls;
                vm.kill();
                assert_eq!(vm.resume(&mut host, &mut reply), Step::Done);
                assert_eq!(host.calls, calls, "{body}, instruction {instruction}");
            }
            vm.unload(&script);
        }
        assert_eq!(run(&mut vm, "return redis.call('next')"), "$4\r\nnext\r\n", "after {body}");
    }
    let after = held(&mut vm);
    assert!(after < before + 100, "{before} KiB before and {after} KiB after");
}

#[test]
fn garbage_is_no_bomb() {
    let mut vm = vm();
    assert_eq!(run(&mut vm, "for i = 1, 2000 do local s = ('x'):rep(1e5) .. i end return 1"), ":1\r\n");
    assert_eq!(
        run(&mut vm, "local keep = ('x'):rep(8e4):rep(100) for i = 1, 200000 do local t = {i} end return 1"),
        ":1\r\n"
    );
    for _ in 0..100 {
        assert_eq!(run(&mut vm, "return #('x'):rep(5e4):rep(100)"), ":5000000\r\n");
    }
}

#[test]
fn stack_bombs_are_ordinary_errors() {
    let mut vm = vm();
    for body in [
        "local function f() return 1 + f() end return f()",
        "local function f() f() end f()",
        "local function f() return coroutine.wrap(f)() end return f()",
        "local function f(...) return pcall(f, ...) end error(select('#', f()))",
        "local function f() string.gsub('x', 'x', f) end f()",
        "local function f() coroutine.wrap(function() string.gsub('x', 'x', f) end)() end f()",
        "local function f() table.sort({1, 2}, f) end f()",
        "local t = {} for i = 1, 300000 do t = {t} end return cjson.encode(t)",
        "return cjson.decode(('['):rep(1e6))",
        "return cmsgpack.unpack(('\\145'):rep(1e6))",
        "return string.find(('a'):rep(5000), ('a?'):rep(50000) .. 'b')",
        "return string.find('a', ('('):rep(50000))",
        "return loadstring(('('):rep(50000))()",
        "return loadstring('return ' .. ('not '):rep(50000) .. '1')()",
        "return loadstring(('do '):rep(50000))()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x.y",
        "local t = {} for i = 1, 200 do t = setmetatable({}, {__index = t}) end return t.x.y",
        "local t t = setmetatable({}, {__index = function(_, k) return t[k] end}) return t.x",
        "local t t = setmetatable({}, {__tostring = function() return tostring(t) end}) return tostring(t)",
        "error({})",
        "error({err = {}})",
        "return redis.call('nested')[1][1][1] .. ''",
        "return unpack({}, 1, 1e8)",
        "return string.char(unpack({}, 1, 8000))",
    ] {
        let reply = run(&mut vm, body);
        assert!(reply.starts_with("-"), "{body}: {}", &reply[..reply.len().min(100)]);
        assert_eq!(run(&mut vm, "return redis.call('next')"), "$4\r\nnext\r\n", "after {body}");
    }
}

#[test]
fn an_error_table_without_a_text_is_an_ordinary_error() {
    let mut vm = vm();
    let reply = run(&mut vm, "error({})");
    assert!(
        reply.starts_with("-ERR unknown error script: ") && reply.ends_with(", on @user_script:1.\r\n"),
        "{reply}"
    );
}

#[test]
fn a_panic_of_the_host_reaches_the_driver_and_leaves_a_working_engine() {
    let mut vm = vm();
    for body in [
        "redis.call('panic')",
        "pcall(redis.call, 'panic')",
        "coroutine.wrap(function() pcall(redis.pcall, 'panic') end)()",
        "for i = 1, 50000 do end redis.call('panic')",
    ] {
        let script = load(&mut vm, body);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let mut host = Echo::default();
            let mut reply = reply();
            let mut step = vm.start(&script, &[], &[], &mut host, &mut reply);
            while step == Step::Suspended {
                step = vm.resume(&mut host, &mut reply);
            }
        }));
        let payload = caught.expect_err("the panic is passed on");
        assert_eq!(payload.downcast_ref(), Some(&"the host fails"));
        assert_eq!(run(&mut vm, "return redis.call('next')"), "$4\r\nnext\r\n", "after {body}");
    }
}

#[test]
fn an_engine_can_be_dropped_and_flushed_while_a_script_is_suspended() {
    let mut vm = vm();
    let script = load(&mut vm, "pcall(function() while true do end end)");
    let mut host = Echo::default();
    let mut reply = reply();
    assert_eq!(vm.start(&script, &[], &[], &mut host, &mut reply), Step::Suspended);
    assert!(vm.is_busy());
    vm.flush();
    assert!(!vm.is_busy());
    let script = load(&mut vm, "while true do end");
    assert_eq!(vm.start(&script, &[], &[], &mut host, &mut reply), Step::Suspended);
}

#[test]
fn an_engine_can_move_to_another_thread_with_its_suspended_script() {
    let mut vm = vm();
    let script = load(&mut vm, "for i = 1, 100000 do pcall(error, 'x') end return 'done'");
    let (mut host, mut first) = (Echo::default(), reply());
    assert_eq!(vm.start(&script, &[], &[], &mut host, &mut first), Step::Suspended);
    let text = std::thread::spawn(move || {
        let (mut host, mut second) = (Echo::default(), reply());
        while vm.resume(&mut host, &mut second) == Step::Suspended {}
        String::from_utf8_lossy(second.as_bytes()).into_owned()
    })
    .join()
    .expect("the thread ends");
    assert_eq!(text, "$4\r\ndone\r\n");
}

#[test]
fn scripts_can_be_compiled_while_one_is_suspended() {
    let mut vm = vm();
    let script = load(&mut vm, "for i = 1, 100000 do end return 'first'");
    let (mut host, mut reply) = (Echo::default(), reply());
    assert_eq!(vm.start(&script, &[], &[], &mut host, &mut reply), Step::Suspended);
    for i in 0..500 {
        let other = load(&mut vm, &format!("return {{ {i} }}"));
        vm.unload(&other);
    }
    while vm.resume(&mut host, &mut reply) == Step::Suspended {}
    assert_eq!(reply.as_bytes(), b"$5\r\nfirst\r\n");
}

#[test]
fn two_engines_do_the_same() {
    let bodies = [
        "local t = {} for i = 1, 50 do t[{}] = i end local out = {} for _, v in pairs(t) do out[#out + 1] = v end return out",
        "local t = {} for i = 1, 50 do t[function() end] = i end local out = {} for _, v in pairs(t) do out[#out + 1] = v end return out",
        "local t = {} for i = 1, 50 do t[coroutine.create(function() end)] = i end local out = {} for _, v in pairs(t) do out[#out + 1] = v end return out",
        "return {tostring({}), tostring(redis.call), tostring(coroutine.create(function() end))}",
        "return tostring(collectgarbage('count'))",
        "local a = os.clock() while os.clock() - a < 0.01 do end return tostring(os.clock())",
        "local out = {} for i = 1, 20 do out[i] = math.random(1000) end return out",
        "local out = {} for k in pairs(_G) do out[#out + 1] = tostring(k) end return out",
        "local out = {} for k, v in pairs(_G) do out[#out + 1] = tostring(v) end return out",
        "return cjson.encode({a = 1, b = {c = 2}, d = {1, 2}})",
    ];
    let mut engines = [vm(), vm()];
    // The second engine has its memory at other addresses.
    let _ballast: Vec<Vec<u8>> = (1..200).map(|n| vec![0; n * 37]).collect();
    for _ in 0..3 {
        for body in bodies {
            let [first, second] = engines.each_mut().map(|vm| run(vm, body));
            assert_eq!(first, second, "{body}");
        }
    }
}

#[test]
fn memory_stays_bounded_at_speed() {
    let mut vm = vm();
    let script = load(&mut vm, "local t = {} for i = 1, 20 do t[i] = KEYS[1] .. i end return #t");
    let mut host = Echo::default();
    for i in 0..100_000u32 {
        let key = i.to_le_bytes();
        let mut reply = reply();
        assert_eq!(vm.start(&script, &[&key], &[], &mut host, &mut reply), Step::Done);
    }
    let used = run(&mut vm, "return math.floor(collectgarbage('count'))");
    let kilobytes: u64 = used.trim_matches([':', '\r', '\n']).parse().expect("a number");
    assert!(kilobytes < 16 << 10, "{kilobytes} KiB");
}

#[test]
fn lines_are_logged_at_their_levels() {
    let mut vm = vm();
    let script = load(&mut vm, "redis.log(redis.LOG_WARNING, 'a', 1, 'b') redis.log(redis.LOG_DEBUG, 'c')");
    let (mut host, mut reply) = (Echo::default(), reply());
    vm.start(&script, &[], &[], &mut host, &mut reply);
    assert_eq!(host.logged, [(LogLevel::Warning, b"a 1 b".to_vec()), (LogLevel::Debug, b"c".to_vec())]);
}

#[test]
fn one_script_leaves_nothing_to_the_next() {
    let mut vm = vm();
    for body in [
        "getmetatable('').__index = nil",
        "string.rep = nil",
        "rawset(string, 'rep', nil)",
        "getmetatable(_G).__index = {}",
        "getfenv(0).x = 1",
        "setfenv(0, {})",
        "rawset(getfenv(1), 'x', 1)",
        "for k, v in pairs(_G) do if type(v) == 'table' then rawset(v, 'x', 1) end end",
        "for k, v in next, _G do if type(v) == 'table' then v.x = 1 end end",
        "table.foreach(_G, function(k, v) if type(v) == 'table' then v.x = 1 end end)",
        "loadstring('x = 1')()",
        "local f = loadstring('x = 1') setfenv(f, getfenv(redis.call)) f()",
        "coroutine.wrap(function() x = 1 end)()",
        "KEYS.leak = 1",
        "tostring(redis).x = 1",
        "cjson.encode_max_depth(1000)",
    ] {
        run(&mut vm, body);
        let checks = "return {#('x'):rep(3), type(string.rep), rawget(_G, 'x') == nil, KEYS.leak == nil, \
            rawget(string, 'x') == nil, type(setfenv), pcall(function() return y end)}";
        let reply = run(&mut vm, checks);
        assert!(
            reply.starts_with("*8\r\n:3\r\n$8\r\nfunction\r\n:1\r\n:1\r\n:1\r\n$8\r\nfunction\r\n$-1\r\n"),
            "after {body}: {reply}"
        );
    }
}
