//! Targets that test the script engine and its libraries, without a server.

use redlatch_compare::diff::{lua as grammar, pools::Pools};
use redlatch_core::script::{Host, LogLevel, Step, Vm};
use redlatch_core::version::Version;
use redlatch_core::wire::client::value_len;
use redlatch_core::wire::reply::{Protocol, Reply};

/// The instructions in a slice, and the slices after which a script is killed.
const SLICE: u32 = 10_000;
const SLICES: usize = 50;

/// The most memory that the Lua state may hold, in bytes.
const MEMORY: usize = 16 << 20;

/// A host that answers every command with its arguments.
struct Echo;

impl Host for Echo {
    fn call(&mut self, argv: &[&[u8]], reply: &mut Reply) {
        reply.array(argv.len());
        argv.iter().for_each(|word| reply.bulk(word));
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn may_run(&mut self, _: &[&[u8]]) -> Option<bool> {
        Some(true)
    }
}

/// Runs a script to its end, or kills it. Returns its reply, or `None` if it cannot be compiled.
fn run(vm: &mut Vm, body: &[u8], argv: &[&[u8]]) -> Option<Vec<u8>> {
    let script = vm.load(body).ok()?;
    let mut reply = Reply::new(Protocol::Resp2, Version::V7_4);
    let mut step = vm.start(&script, &[], argv, &mut Echo, &mut reply);
    let mut slices = 0;
    while step == Step::Suspended {
        slices += 1;
        if slices > SLICES {
            vm.kill();
        }
        assert!(slices <= SLICES + 1, "a killed script continues");
        step = vm.resume(&mut Echo, &mut reply);
    }
    assert!(!vm.is_busy());
    vm.unload(&script);
    let bytes = reply.as_bytes().to_vec();
    // As in Redis, an error that a script raises itself may contain a line feed.
    let is_error = bytes.starts_with(b"-") && bytes.ends_with(b"\r\n");
    assert!(is_error || value_len(&bytes) == Some(bytes.len()), "not one reply: {}", bytes.escape_ascii());
    Some(bytes)
}

fn vm() -> Vm {
    Vm::with_limits(Version::V7_4, SLICE, MEMORY)
}

/// Runs a script that returns whether its own check holds, and fails if not.
fn holds(body: &str, argv: &[&[u8]]) {
    let reply = run(&mut vm(), body.as_bytes(), argv).expect("the script is well-formed");
    let is_limit = reply.starts_with(b"-") && memchr::memmem::find(&reply, b"not enough memory").is_some();
    assert!(reply.starts_with(b"+OK") || is_limit, "{}", reply.escape_ascii());
}

/// Fails if unpacking, packing and unpacking again does not yield the same values, apart from inexact numbers.
pub fn struct_pack(bytes: &[u8]) {
    let at = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let (format, data) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    holds(
        "local format, data = ARGV[1], ARGV[2]
         pcall(struct.size, format)
         local all = {pcall(struct.unpack, format, data)}
         if all[1] and #all > 2 then
             table.remove(all, 1)
             table.remove(all)
             local ok, packed = pcall(struct.pack, format, unpack(all))
             if ok then
                 local again = {pcall(struct.unpack, format, packed)}
                 for n = 1, #all do
                     local is_exact = type(all[n]) ~= 'number' or math.abs(all[n]) < 2^53
                     if again[1] and all[n] ~= again[n + 1] and all[n] == all[n] and is_exact then
                         return redis.error_reply(n .. ': ' .. tostring(all[n]) .. ', ' .. tostring(again[n + 1]))
                     end
                 end
             end
         end
         return redis.status_reply('OK')",
        &[format, data],
    );
}

/// Fails if unpacking, packing, unpacking and packing again does not yield the same bytes. As in Redis, packing
/// replaces tables that are nested too deeply by nil, which cannot be a key; so only values that have been packed once
/// are compared.
pub fn cmsgpack(bytes: &[u8]) {
    holds(
        "local all = {pcall(cmsgpack.unpack, ARGV[1])}
         pcall(cmsgpack.unpack_one, ARGV[1], 1)
         pcall(cmsgpack.unpack_limit, ARGV[1], 2, 0)
         local function again(packed) return cmsgpack.pack(cmsgpack.unpack(packed)) end
         if all[1] and #all > 1 then
             local ok, once = pcall(again, cmsgpack.pack(unpack(all, 2)))
             if not ok and tostring(once):find('table index is nil', 1, true) then
                 return redis.status_reply('OK')
             end
             local twice = again(once)
             -- The order of a table's fields is not part of it.
             if #once ~= #twice then
                 return redis.error_reply(#once .. ' bytes became ' .. #twice)
             end
         end
         return redis.status_reply('OK')",
        &[bytes],
    );
}

/// Fails if decoding and encoding twice yields texts of different lengths.
pub fn cjson(bytes: &[u8]) {
    holds(
        "local ok, value = pcall(cjson.decode, ARGV[1])
         if ok then
             local encoded, once = pcall(cjson.encode, value)
             if encoded then
                 local twice = cjson.encode(cjson.decode(once))
                 if #once ~= #twice then
                     return redis.error_reply(once .. ' became ' .. twice)
                 end
             end
         end
         return redis.status_reply('OK')",
        &[bytes],
    );
}

/// Describes what scripts find in a state that no script has changed.
const PROBE: &[u8] = b"local names = {}
    for name, value in pairs(_G) do
        names[#names + 1] = name .. ':' .. type(value)
        if type(value) == 'table' and value ~= _G then
            for field, inner in pairs(value) do names[#names + 1] = name .. '.' .. tostring(field) .. ':' .. type(inner) end
        end
    end
    table.sort(names)
    return {#KEYS, #ARGV, table.concat(names, ' '), tostring(getmetatable('')), pcall(loadstring, 'return 1') and 1 or 0,
        string.format('%d %s', 7, 'x'), ('x'):rep(3), #tostring(math.random)}";

/// Runs a script made of arbitrary bytes or generated from a grammar. Fails unless the script ends or is killed,
/// replies once, keeps within its memory limit, and leaves nothing behind for the next script.
pub fn lua(bytes: &[u8]) {
    let mut vm = vm();
    let strip = |reply: Option<Vec<u8>>| reply.expect("the probe is well-formed");
    let before = strip(run(&mut vm, PROBE, &[]));
    match bytes.split_first() {
        Some((b'#', seed)) => {
            let seed = seed.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(257).wrapping_add(byte.into()));
            run(&mut vm, &grammar::script(&mut Pools::new(seed)), &[b"a", b"b"]);
        }
        _ => {
            run(&mut vm, bytes, &[b"a", b"b"]);
        }
    }
    let after = strip(run(&mut vm, PROBE, &[]));
    assert_eq!(before, after, "{} became {}", before.escape_ascii(), after.escape_ascii());
}
