//! A hostile client cannot crash the process, hang it, make it grow without bound, or disturb other clients.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::support::client::{Client, encode};
use crate::support::server::Server;

/// Returns the resident memory of a server, in bytes.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn assert_alive(server: &Server) {
    assert_eq!(server.connect().call(&["PING"]), b"+PONG\r\n");
}

/// Runs a script and returns its reply as text.
fn eval(client: &mut Client, body: &str) -> String {
    String::from_utf8_lossy(&client.call(&["EVAL", body, "0"])).into_owned()
}

#[test]
fn headers_that_announce_too_much_cost_nothing() {
    let server = Server::redlatch("7.4", &[]);
    let before = resident(&server);
    let mut clients = Vec::new();
    for bytes in ["*1000000000\r\n", "*2147483647\r\n$3\r\nGET\r\n", "*2\r\n$3\r\nGET\r\n$536870912\r\n"] {
        let mut client = server.connect();
        client.send_bytes(bytes.as_bytes());
        clients.push(client);
    }
    assert_alive(&server);
    assert!(resident(&server) < before + (64 << 20));
}

#[test]
fn a_request_cut_anywhere_leaves_the_others_in_peace() {
    let server = Server::redlatch("7.4", &[]);
    let request = encode(&["EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", "k", "v"]);
    for cut in 0..request.len() {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.write_all(&request[..cut]).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    }
    let mut client = server.connect();
    assert_eq!(client.call(&["GET", "k"]), b"$-1\r\n");
    // Sent byte by byte, it is still the same request.
    for byte in &request {
        client.send_bytes(std::slice::from_ref(byte));
    }
    assert_eq!(client.receive(), b"+OK\r\n");
}

#[test]
fn garbage_gets_an_error_and_the_connection_ends() {
    let server = Server::redlatch("7.4", &[]);
    for bytes in
        [&b"*1\r\n:5\r\n"[..], b"*1\r\n$x\r\n", b"GET \"\r\n", &[0xff; 70_000], b"*99999999999999999999\r\n"]
    {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut said = Vec::new();
        // The server may reset the connection while garbage is unread, but its reply comes before.
        let _ = stream.read_to_end(&mut said);
        assert!(said.starts_with(b"-ERR Protocol error: ") || said.is_empty(), "{}", said.escape_ascii());
    }
    assert_alive(&server);
}

#[test]
fn a_client_that_does_not_read_is_not_served_for_ever() {
    let server = Server::redlatch("7.4", &[]);
    server.connect().call(&["SET", "big", &"x".repeat(100_000)]);
    let before = resident(&server);
    let mut deaf = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    deaf.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let requests = encode(&["GET", "big"]).repeat(1000);
    // 100 MB of replies per round.
    for _ in 0..20 {
        if deaf.write_all(&requests).is_err() {
            break;
        }
    }
    assert_alive(&server);
    assert!(resident(&server) < before + (64 << 20), "{} bytes more", resident(&server) - before);
}

#[test]
fn a_subscriber_that_does_not_read_is_ended_at_its_limit() {
    let server = Server::redlatch("7.4", &["--client-output-buffer-limit", "pubsub 1mb 0 0"]);
    let mut publisher = server.connect();
    let mut deaf = server.connect();
    deaf.call(&["SUBSCRIBE", "news"]);
    let message = "x".repeat(100_000);
    let began = Instant::now();
    loop {
        let receivers = publisher.call(&["PUBLISH", "news", &message]);
        if receivers == b":0\r\n" {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "the subscriber is still there");
    }
}

#[test]
fn absurd_counts_are_refused() {
    let server = Server::redlatch("7.4", &[]);
    let mut client = server.connect();
    client.call(&["SADD", "set", "a", "b"]);
    client.call(&["HSET", "hash", "f", &"x".repeat(1_000_000)]);
    client.call(&["ZADD", "zset", "1", "m"]);
    for argv in [
        &["SRANDMEMBER", "set", "-2000000000"][..],
        &["HRANDFIELD", "hash", "-2000000000"],
        &["HRANDFIELD", "hash", "-10000000", "WITHVALUES"],
        &["ZRANDMEMBER", "zset", "-9000000000000000000"],
    ] {
        assert_eq!(client.call(argv), b"-ERR value is out of range\r\n", "{argv:?}");
    }
    assert_alive(&server);
}

#[test]
fn scripts_meet_their_limits_as_errors() {
    let server = Server::redlatch("7.4", &[]);
    let mut client = server.connect();
    for body in [
        "return string.rep('x', 1e10)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end",
        "local function f() return 1 + f() end return f()",
        "return {unpack({}, 1, 8000)}",
        "return {unpack({}, 1, 1e9)}",
        "error({})",
        "error(nil)",
        "error()",
        "local t = {} t[1] = t return t",
        "local t = {} for i = 1, 100000 do t = {t} end return t",
        "return string.format('%99999d', 1)",
        "return ('a'):rep(100000):find(('a?'):rep(10000) .. ('a'):rep(10000))",
        "return loadstring(string.dump(function() end))",
        "local c = coroutine.wrap(function() error('x') end) c()",
        "local function f() return coroutine.wrap(f)() end return f()",
        "return cjson.decode(string.rep('[', 100000))",
        "return cmsgpack.unpack(string.rep('\\145', 100000))",
        "return redis.call(string.rep('x', 1000000))",
        "return setmetatable({}, {__index = function(t, k) return t[k] end})[1]",
        "return table.concat({}, 'x', 1, 1e9)",
    ] {
        eval(&mut client, body);
        assert_eq!(client.call(&["PING"]), b"+PONG\r\n", "after {body}");
    }
    assert_eq!(eval(&mut client, "return 1"), ":1\r\n");
}

#[test]
fn ranges_that_overflow_are_refused() {
    let server = Server::redlatch("7.4", &[]);
    let mut client = server.connect();
    for (first, last) in [
        ("-1", "2147483647"),
        ("0", "2147483647"),
        ("1", "2147483647"),
        ("1", "2147483646"),
        ("-2147483648", "2147483647"),
        ("-2147483648", "0"),
        ("-2147483648", "-1"),
        ("-2147483647", "1"),
        ("2", "-2147483648 - 1"),
        ("1", "8000"),
    ] {
        for body in [
            format!("return unpack({{}}, {first}, {last})"),
            format!("return coroutine.wrap(function() return unpack({{}}, {first}, {last}) end)()"),
            format!("return {{pcall(unpack, {{}}, {first}, {last})}}"),
        ] {
            let reply = eval(&mut client, &body);
            assert!(reply.contains("too many results to unpack"), "{body}: {reply}");
        }
    }
    for body in [
        "return table.insert({}, 2147483647, 1)",
        "return table.insert({1, 2, 3}, -5, 1)",
        "return table.concat({}, 'x', -2147483648, 2147483647)",
        "return table.concat({}, 'x', 2147483647, 2147483647)",
        "return table.remove({}, -2147483648)",
        "return table.remove({1}, 2147483647)",
        "return select(-2147483648, 1)",
        "return select(2147483647, 1)",
        "return string.rep('x', -2147483648)",
        "return string.sub('x', -2147483648, 2147483647)",
        "return string.byte('x', -2147483648, 2147483647)",
        "return string.byte(('x'):rep(10000), 1, -1)",
        "return string.find('x', 'x', -2147483648)",
        "return string.format('%99.99f', -1e308)",
        "return string.char(unpack({}, 1, 7000))",
        "return bit.tohex(1, -2147483648)",
        "return struct.pack('i2147483647', 1)",
        "return struct.unpack('c2147483647', 'x')",
        "return struct.unpack('i4', 'xxxx', 9007199254740992)",
        "return cmsgpack.unpack_limit('\\1', 2147483647, 2147483647)",
        "return cmsgpack.unpack_one('\\1', -2147483648)",
        "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
        "return math.random(-2147483648, 2147483647)",
        "return tonumber('1', -2147483648)",
    ] {
        eval(&mut client, body);
        assert_eq!(client.call(&["PING"]), b"+PONG\r\n", "after {body}");
    }
}

/// The corpus is also run with every allocation refused and every instruction the last one: `crates/core/src/script/tests.rs`.
#[test]
fn the_corpus_of_hostile_scripts_leaves_a_working_server() {
    let server = Server::redlatch("7.4", &[]);
    let mut client = server.connect();
    let scripts: Vec<&str> =
        include_str!("../../crates/core/src/script/hostile.lua").split("\n----\n").collect();
    assert!(scripts.len() >= 40, "{} scripts", scripts.len());
    for round in 0..3 {
        for script in &scripts {
            let reply = eval(&mut client, script);
            assert!(!reply.is_empty(), "round {round}: {script}");
            assert_eq!(client.call(&["PING"]), b"+PONG\r\n", "after {script}");
        }
    }
    assert_eq!(eval(&mut client, "return cjson.encode({1, 'x'})"), "$7\r\n[1,\"x\"]\r\n");
}

/// Nests to depths around the one at which Lua's stack of 8,000 values is full.
#[test]
fn nesting_that_fills_the_stack_is_refused() {
    let server = Server::redlatch("7.4", &[]);
    let mut client = server.connect();
    client.call(&["CONFIG", "SET", "busy-reply-threshold", "60000"]);
    for depth in (7970..8005).chain([3990, 3995, 3999, 4000, 4001, 20_000]) {
        for body in [
            "local t = {map = redis} for i = 1, DEPTH do t = {t} end return t",
            "local t = {set = string} for i = 1, DEPTH do t = {t} end return t",
            "local t = {map = _G} for i = 1, DEPTH do t = {t} end return t",
            "local t = redis for i = 1, DEPTH do t = {t} end return t",
            "local t = {} for i = 1, DEPTH do t = {map = {a = t}} end return t",
            "local t = {err = 'x'} for i = 1, DEPTH do t = {t} end return t",
            "local t = {verbatim_string = {string = 's', format = 'txt'}} for i = 1, DEPTH do t = {t} end return t",
            "cjson.encode_max_depth(100000) local t = redis for i = 1, DEPTH do t = {t} end return cjson.encode(t)",
            "cjson.encode_max_depth(100000) local t = {} for i = 1, DEPTH do t = {a = t} end return cjson.encode(t)",
            "cjson.decode_max_depth(100000) return cjson.decode(('['):rep(DEPTH) .. (']'):rep(DEPTH))",
            "cjson.decode_max_depth(100000) return cjson.decode(('{\"a\":'):rep(DEPTH) .. '1' .. ('}'):rep(DEPTH))",
            "local t = {} for i = 1, DEPTH do t[i] = redis end return cmsgpack.pack(unpack(t))",
            "return {cmsgpack.unpack(('\\1'):rep(DEPTH))}",
            "return {cmsgpack.unpack_limit(('\\1'):rep(30000), DEPTH)}",
            "return {cmsgpack.unpack_limit(('\\1'):rep(DEPTH), DEPTH)}",
            "return cmsgpack.unpack(('\\145'):rep(DEPTH) .. '\\1')",
            "return cmsgpack.unpack(('\\129\\1'):rep(DEPTH) .. '\\1')",
            "return {struct.unpack(('b'):rep(DEPTH), ('x'):rep(DEPTH))}",
            "return {struct.unpack(('s'):rep(DEPTH), ('\\0'):rep(DEPTH))}",
            "local t = {} for i = 1, DEPTH do t[i] = 1 end return struct.pack(('b'):rep(DEPTH), unpack(t))",
            "local t = {} for i = 1, DEPTH do t[i] = 'x' end return redis.call('mget', unpack(t))",
            "local t = {} for i = 1, DEPTH do t[i] = 'x' end return redis.sha1hex(unpack(t))",
            "local t = {} for i = 1, DEPTH do t[i] = 'x' end return redis.log(1, unpack(t))",
            "local t = {} for i = 1, DEPTH do t[i] = 1 end return bit.bor(unpack(t))",
            "local t = {} for i = 1, DEPTH do t[i] = {} end return tostring(unpack(t))",
            "local t = {} for i = 1, DEPTH do t[i] = {} end return coroutine.wrap(function(...) return ... end)(unpack(t))",
            "local t = {} for i = 1, DEPTH do t[i] = {} end return pcall(error, unpack(t))",
            // More arguments than the stack limit, by 240 that do not come from `unpack`.
            "local call = loadstring('local f, t = ... return f(' .. ('1, '):rep(240) .. 'unpack(t))')
            local t = {} for i = 1, math.min(DEPTH, 7990) do t[i] = 'x' end
            for _, f in ipairs({redis.call, redis.pcall, redis.log, redis.sha1hex, redis.error_reply, redis.setresp, redis.acl_check_cmd,
                cjson.encode, cjson.decode, cjson.encode_max_depth, cmsgpack.pack, cmsgpack.unpack, cmsgpack.unpack_limit,
                struct.pack, struct.unpack, struct.size, bit.bor, bit.tohex, tostring, next, unpack, rawget, setmetatable, load,
                loadstring, table.insert, string.find, math.random, coroutine.wrap, collectgarbage}) do pcall(call, f, t) end",
        ] {
            let body = body.replace("DEPTH", &depth.to_string());
            eval(&mut client, &body);
            assert_eq!(client.call(&["PING"]), b"+PONG\r\n", "after {body}");
        }
    }
}

#[test]
fn scripts_of_every_evil_shape_can_be_killed() {
    let server = Server::redlatch("7.4", &["--busy-reply-threshold", "50"]);
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return pcall(f) end while true do f() end",
        "local c = coroutine.wrap(function() while true do pcall(function() while true do end end) end end) c()",
        "local c = coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end",
        "local t = {} for i = 1, 100 do t[i] = i end while true do table.sort(t, function(a, b) return a < b end) end",
        "while true do ('x'):rep(100):gsub('x', function() return 'y' end) end",
        "xpcall(function() while true do end end, function() while true do end end)",
        "while true do redis.pcall('get', 'k') end",
        "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
        "while true do xpcall(error, function() while true do pcall(error) end end) end",
    ] {
        let mut looping = server.connect();
        looping.send(&["EVAL", body, "0"]);
        let mut other = server.connect();
        let began = Instant::now();
        while !other.call(&["GET", "k"]).starts_with(b"-BUSY ") {
            assert!(began.elapsed() < Duration::from_secs(10), "never busy: {body}");
        }
        assert_eq!(other.call(&["SCRIPT", "KILL"]), b"+OK\r\n", "{body}");
        let reply = looping.receive();
        assert!(reply.starts_with(b"-ERR Script killed by user"), "{body}: {}", reply.escape_ascii());
        assert_eq!(looping.call(&["PING"]), b"+PONG\r\n");
    }
}

#[test]
fn a_busy_server_can_be_shut_down() {
    let server = Server::redlatch("7.4", &["--busy-reply-threshold", "50"]);
    let mut looping = server.connect();
    looping.send(&["EVAL", "redis.call('set', 'k', 'v') while true do end", "0"]);
    let mut other = server.connect();
    assert!(other.call(&["PING"]).starts_with(b"-BUSY "));
    assert!(other.call(&["SCRIPT", "KILL"]).starts_with(b"-UNKILLABLE "));
    other.send(&["SHUTDOWN", "NOSAVE"]);
    assert_eq!(server.wait(Duration::from_secs(5)).and_then(|status| status.code()), Some(0));
}

#[test]
fn many_clients_at_once() {
    let server = Server::redlatch("7.4", &["--maxclients", "20000"]);
    // As many as this process may open, up to 10,000.
    let limit = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = limit.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: usize = files.split_whitespace().nth(3).unwrap().parse().unwrap();
    let count = 10_000.min(files - 200);
    let mut clients: Vec<Client> = (0..count).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(&["SUBSCRIBE", "all"]));
    clients.iter_mut().for_each(|client| assert!(client.receive().starts_with(b"*3\r\n$9\r\nsubscribe")));
    let receivers = server.connect().call(&["PUBLISH", "all", "hello"]);
    assert_eq!(receivers, format!(":{count}\r\n").as_bytes());
    clients.iter_mut().for_each(|client| assert!(client.receive().starts_with(b"*3\r\n$7\r\nmessage")));
    drop(clients);
    let began = Instant::now();
    while server.connect().call(&["PUBSUB", "CHANNELS"]) != b"*0\r\n" {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "subscriptions of clients that left are still there"
        );
    }
}

#[test]
fn too_many_clients_are_told_so() {
    let server = Server::redlatch("7.4", &["--maxclients", "3"]);
    let mut kept: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    kept.iter_mut().for_each(|client| assert_eq!(client.call(&["PING"]), b"+PONG\r\n"));
    assert_eq!(server.connect().receive(), b"-ERR max number of clients reached\r\n");
    kept.pop();
    let began = Instant::now();
    while server.connect().call(&["PING"]) != b"+PONG\r\n" {
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn library_functions_that_loop_can_be_killed() {
    let server = Server::redlatch("7.4", &["--busy-reply-threshold", "50"]);
    let sparse = "local t = {} for i = 29, 0, -1 do t[2^i] = 1 end ";
    let numbers = "local t = {} for i = 1, 8000000 do t[i] = (i * 7919) % 8000009 end ";
    let pattern = "('a?'):rep(50)..('a'):rep(50)";
    for script in [
        format!("return ('a'):rep(50):find({pattern})"),
        format!("return ('a'):rep(50):match({pattern})"),
        format!("return ('a'):rep(50):gsub({pattern}, '')"),
        format!("for x in ('a'):rep(50):gmatch({pattern}) do end"),
        "return ('a'):rep(2^22):find('.-.-.-.-b')".to_owned(),
        "return ('('):rep(2^22):find('%b()')".to_owned(),
        "local set = '[' .. ('b'):rep(2^20) .. ']' return ('a'):rep(2^20):find(set)".to_owned(),
        format!("{sparse} table.insert(t, 1, 1)"),
        format!("{sparse} return table.remove(t, 1)"),
        format!("{sparse} table.sort(t, function() return false end)"),
        format!("{numbers} while true do table.sort(t) end"),
        format!("{numbers} while true do table.concat(t) end"),
        "while true do local _ = (''):rep(2^31 - 1) end".to_owned(),
    ] {
        let mut looping = server.connect();
        looping.send(&["EVAL", &script, "0"]);
        let began = Instant::now();
        let mut other = server.connect();
        while other.call(&["SCRIPT", "KILL"]) != b"+OK\r\n" {
            assert!(began.elapsed() < Duration::from_secs(10), "{script}: not killed");
        }
        let reply = String::from_utf8_lossy(&looping.receive()).into_owned();
        assert!(reply.starts_with("-ERR ") && reply.contains("killed by user"), "{script}: {reply}");
        let asked = Instant::now();
        assert_eq!(other.call(&["PING"]), b"+PONG\r\n", "{script}");
        assert!(asked.elapsed() < Duration::from_secs(1), "{script}: {:?}", asked.elapsed());
    }
}
