//! Converts replies to Lua values and Lua values to replies.

use super::bridge::{LuaType, Raised, Stack};
use crate::num;
use crate::version::Version;
use crate::wire::reply::{Protocol, Reply};

const STACK_LIMIT: &[u8] = b"reached lua stack limit";

/// Pushes the reply at the start of `wire` as a Lua value, and advances `wire` past the reply.
pub(super) fn push_reply(lua: &mut Stack, wire: &mut &[u8]) -> Raised<()> {
    let Some((kind, line)) = take_line(wire) else {
        debug_assert!(false, "a complete reply");
        lua.push_nil();
        return Ok(());
    };
    match kind {
        b':' => lua.push_number(integer(line).unwrap_or(0) as f64),
        b'$' => match length(line) {
            Some(len) => lua.push_bytes(take_bulk(wire, len)),
            None => lua.push_boolean(false),
        },
        b'+' => push_single(lua, b"ok", |lua| lua.push_bytes(line)),
        b'-' => push_error_reply(lua, line),
        b'*' | b'>' => match length(line) {
            Some(len) => return push_list(lua, wire, len),
            None => lua.push_boolean(false),
        },
        b'%' => return push_map(lua, wire, length(line).unwrap_or(0)),
        b'~' => return push_set(lua, wire, length(line).unwrap_or(0)),
        b'_' => lua.push_nil(),
        b'#' => lua.push_boolean(line == b"t"),
        b',' => push_single(lua, b"double", |lua| lua.push_number(read_double(line))),
        b'(' => push_single(lua, b"big_number", |lua| lua.push_bytes(line)),
        b'=' => push_verbatim(lua, take_bulk(wire, length(line).unwrap_or(0))),
        _ => lua.push_nil(),
    }
    Ok(())
}

/// Returns the type byte and the rest of the first line.
fn take_line<'a>(wire: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    // Nearly every line is a number or length of one digit.
    if let [kind, b'0'..=b'9', b'\r', _, rest @ ..] = *wire {
        let line = &wire[1..2];
        *wire = rest;
        return Some((*kind, line));
    }
    let end = memchr::memchr(b'\r', wire)?;
    let (line, rest) = wire.split_at(end);
    *wire = rest.get(2..)?;
    line.split_first().map(|(&kind, line)| (kind, line))
}

fn integer(line: &[u8]) -> Option<i64> {
    match line {
        [digit @ b'0'..=b'9'] => Some((digit - b'0') as i64),
        _ => num::parse_i64(line),
    }
}

fn length(line: &[u8]) -> Option<usize> {
    integer(line).and_then(|n| usize::try_from(n).ok())
}

fn take_bulk<'a>(wire: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (bytes, rest) = wire.split_at(len.min(wire.len()));
    *wire = rest.get(2..).unwrap_or_default();
    bytes
}

fn read_double(line: &[u8]) -> f64 {
    match line {
        b"nan" => f64::NAN,
        b"-nan" => -f64::NAN,
        _ => num::parse_f64(line).unwrap_or(0.0),
    }
}

/// Pushes a table with one entry.
pub(super) fn push_single(lua: &mut Stack, key: &[u8], push: impl FnOnce(&mut Stack)) {
    lua.push_table(0, 1);
    push(lua);
    lua.raw_set_field(-2, key);
}

fn push_list(lua: &mut Stack, wire: &mut &[u8], len: usize) -> Raised<()> {
    room(lua)?;
    lua.push_table(len.min(wire.len()) as i32, 0);
    for i in 1..=len {
        push_reply(lua, wire)?;
        lua.raw_set_at(-2, i as i32);
    }
    Ok(())
}

fn push_map(lua: &mut Stack, wire: &mut &[u8], pairs: usize) -> Raised<()> {
    room(lua)?;
    lua.push_table(0, 1);
    lua.push_table(0, pairs.min(wire.len()) as i32);
    for _ in 0..pairs {
        push_reply(lua, wire)?;
        push_reply(lua, wire)?;
        set_entry(lua);
    }
    lua.raw_set_field(-2, b"map");
    Ok(())
}

fn push_set(lua: &mut Stack, wire: &mut &[u8], len: usize) -> Raised<()> {
    room(lua)?;
    lua.push_table(0, 1);
    lua.push_table(0, len.min(wire.len()) as i32);
    for _ in 0..len {
        push_reply(lua, wire)?;
        lua.push_boolean(true);
        set_entry(lua);
    }
    lua.raw_set_field(-2, b"set");
    Ok(())
}

/// Sets an entry of the table at -3 to the key and value on top, unless the key is one that no table can have.
fn set_entry(lua: &mut Stack) {
    if lua.is_key(-2) { lua.raw_set(-3) } else { lua.pop(2) }
}

fn push_verbatim(lua: &mut Stack, text: &[u8]) {
    let (format, text) = text.split_at_checked(4).unwrap_or((b"txt:", text));
    push_single(lua, b"verbatim_string", |lua| {
        lua.push_table(0, 2);
        lua.push_bytes(text);
        lua.raw_set_field(-2, b"string");
        lua.push_bytes(&format[..3]);
        lua.raw_set_field(-2, b"format");
    });
}

fn room(lua: &mut Stack) -> Raised<()> {
    if lua.reserve(8) { Ok(()) } else { lua.raise_plain(STACK_LIMIT) }
}

/// Pushes `{err = …}` for an error line of a command.
fn push_error_reply(lua: &mut Stack, line: &[u8]) {
    push_error(lua, line, true);
    lua.push_boolean(true);
    lua.raw_set_field(-2, b"ignore_error_stats_update");
}

/// Pushes `{err = "CODE text"}`. The code is the first word of a text `with_code`; otherwise, and for a text of one
/// word, it is ERR.
pub(super) fn push_error(lua: &mut Stack, text: &[u8], with_code: bool) {
    let text = trim_line_ends(text);
    let (code, text) = match memchr::memchr(b' ', text) {
        Some(blank) if with_code => (&text[..blank], trim_line_ends(&text[blank + 1..])),
        _ => (&b"ERR"[..], text),
    };
    push_single(lua, b"err", |lua| lua.push_bytes(&[code, b" ", text].concat()));
}

fn trim_line_ends(mut text: &[u8]) -> &[u8] {
    while let [b'\r' | b'\n', rest @ ..] = text {
        text = rest;
    }
    trim_line_end(text)
}

fn trim_line_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r' | b'\n'] = text {
        text = rest;
    }
    text
}

/// Writes a script's reply: the value on top of the stack, or, if it `failed`, the error there. The code of a library
/// has no reply; if it failed, writes the error's text.
pub(super) fn finish(lua: &mut Stack, failed: bool, reply: &mut Reply) {
    if lua.shared.library.borrow().is_some() {
        if failed {
            // No handler sees an error of memory, which is a plain text.
            let text = match lua.kind(-1) {
                LuaType::Table => field_text(lua, b"err"),
                _ => lua.text(-1).map(|text| [b"ERR ", text].concat()),
            };
            reply.raw(&text.unwrap_or_else(|| b"ERR unknown error".to_vec()));
        }
    } else if failed {
        write_failure(lua, reply);
    } else {
        let start = reply.len();
        let script_protocol = lua.shared.protocol.get();
        write_value(lua, script_protocol, reply);
        if is_too_large(lua, reply) {
            reply.truncate(start);
            reply.error(b"ERR not enough memory for the reply of the script");
        }
    }
}

/// Returns whether a reply exceeds the memory limit. A table can refer to one long string any number of times, so
/// replies have no natural limit.
fn is_too_large(lua: &Stack, reply: &Reply) -> bool {
    reply.len() > lua.memory_limit()
}

/// Writes the error value on top of the stack as a reply.
fn write_failure(lua: &mut Stack, reply: &mut Reply) {
    let name = lua.shared.name.borrow().clone();
    if lua.kind(-1) != LuaType::Table {
        let text = lua.text(-1).unwrap_or(b"execution failure");
        let text = &text[..text.len().min(100)];
        return reply.error(&[b"ERR Error running script ", &name[..], b", ", text].concat());
    }
    count_error(lua);
    // A Redis server of these versions crashes on an error table without a text.
    let mut text = field_text(lua, b"err").unwrap_or_else(|| b"ERR unknown error".to_vec());
    truncate_at_nul(&mut text);
    if let (Some(source), Some(line)) = (field_text(lua, b"source"), field_text(lua, b"line")) {
        text.extend_from_slice(&location(&name, &source, &line, lua.shared.version));
    }
    let version = lua.shared.version;
    let keeps_lines = version >= Version::V7_2 && version < Version::V8_0;
    if keeps_lines && !(version.is_valkey_since(Version::Valkey9_0)) {
        write_raw_error(&text, reply);
    } else {
        reply.error(&text);
    }
}

/// Counts the error table on top.
fn count_error(lua: &mut Stack) {
    lua.raw_get_field(-1, b"ignore_error_stats_update");
    let was_counted = lua.truth(-1);
    lua.pop(1);
    if let Some(text) = field_text(lua, b"err") {
        lua.shared.with_host(|host| host.count_error(&text, was_counted));
    }
}

/// Writes an error line that keeps its line feeds, which Redis sends unchanged from 7.2 to 7.4. A carriage return before a
/// line feed would end the line, so it becomes a blank.
fn write_raw_error(text: &[u8], reply: &mut Reply) {
    reply.raw(b"-");
    for (i, &byte) in text.iter().enumerate() {
        reply.raw(&[if byte == b'\r' && text.get(i + 1) == Some(&b'\n') { b' ' } else { byte }]);
    }
    reply.raw(b"\r\n");
}

/// Writes the reply to the client whose script was killed `at` a source and line.
pub(super) fn write_killed(name: &[u8], at: Option<(Vec<u8>, i32)>, version: Version, reply: &mut Reply) {
    let is_function = at.as_ref().is_some_and(|(source, _)| source == b"@user_function");
    let mut text = match version.is_valkey() {
        true if is_function => b"ERR Script killed by user with FUNCTION KILL.".to_vec(),
        true => b"ERR Script killed by user with SCRIPT KILL.".to_vec(),
        false => b"ERR Script killed by user with SCRIPT KILL...".to_vec(),
    };
    if let Some((source, line)) = at {
        text.extend_from_slice(&location(name, &source, line.to_string().as_bytes(), version));
    }
    reply.error(&text);
}

/// Returns the end of an error text that says where a script failed. Valkey 9.1 does not name the script.
fn location(name: &[u8], source: &[u8], line: &[u8], version: Version) -> Vec<u8> {
    let name = match version.is_valkey_since(Version::Valkey9_1) {
        true => Vec::new(),
        false => [name, b", "].concat(),
    };
    [b" script: ", &name[..], b"on ", source, b":", line, b"."].concat()
}

/// Returns a field of the table on top, if it is a string or a number.
fn field_text(lua: &mut Stack, key: &[u8]) -> Option<Vec<u8>> {
    lua.raw_get_field(-1, key);
    let text = lua.text(-1).map(<[u8]>::to_vec);
    lua.pop(1);
    text
}

/// Writes the value on top of the stack. `script` is the protocol that the script has set; the reply has the client's
/// protocol.
fn write_value(lua: &mut Stack, script: Protocol, reply: &mut Reply) {
    // As many slots as Redis reserves, so that replies can nest as deeply.
    if !lua.reserve(4) {
        return reply.error(&[b"ERR ", STACK_LIMIT].concat());
    }
    match lua.kind(-1) {
        LuaType::String => reply.bulk(lua.bytes(-1).unwrap_or_default()),
        LuaType::Number => reply.int(super::bridge::truncate(lua.number(-1).unwrap_or(0.0))),
        LuaType::Boolean => match (script, lua.truth(-1)) {
            (Protocol::Resp2, true) => reply.int(1),
            (Protocol::Resp2, false) => reply.null(),
            (Protocol::Resp3, value) => reply.boolean(value),
        },
        LuaType::Table => {
            if !write_marked_table(lua, script, reply) {
                write_list(lua, script, reply);
            }
        }
        _ => reply.null(),
    }
}

/// Writes a table that represents another type by its only field (`err`, `ok`, `double`, `map`, …). Returns false if
/// the table is an ordinary list.
fn write_marked_table(lua: &mut Stack, script: Protocol, reply: &mut Reply) -> bool {
    if let Some(text) = c_field(lua, b"err") {
        count_error(lua);
        reply.error(trim_line_end(&text));
    } else if let Some(text) = c_field(lua, b"ok") {
        reply.raw(b"+");
        reply.raw(&one_line(&text));
        reply.raw(b"\r\n");
    } else if let Some(value) = number_field(lua, b"double") {
        reply.double(value);
    } else if let Some(digits) = string_field(lua, b"big_number") {
        reply.big_number(&one_line(&digits));
    } else if let Some((format, text)) = verbatim_field(lua) {
        reply.verbatim(&format, &text);
    } else if enter_table_field(lua, b"map") {
        write_map(lua, script, reply);
        lua.pop(1);
    } else if enter_table_field(lua, b"set") {
        write_set(lua, script, reply);
        lua.pop(1);
    } else {
        return false;
    }
    true
}

/// Returns a field of the table on top, if it is a string and not a number.
fn string_field(lua: &mut Stack, key: &[u8]) -> Option<Vec<u8>> {
    lua.raw_get_field(-1, key);
    let text = lua.bytes(-1).map(<[u8]>::to_vec);
    lua.pop(1);
    text
}

/// Returns such a field up to its first NUL, because Redis reads it as a C string.
fn c_field(lua: &mut Stack, key: &[u8]) -> Option<Vec<u8>> {
    let mut text = string_field(lua, key)?;
    truncate_at_nul(&mut text);
    Some(text)
}

fn truncate_at_nul(text: &mut Vec<u8>) {
    text.truncate(memchr::memchr(0, text).unwrap_or(text.len()));
}

fn number_field(lua: &mut Stack, key: &[u8]) -> Option<f64> {
    lua.raw_get_field(-1, key);
    let value = if lua.kind(-1) == LuaType::Number { lua.number(-1) } else { None };
    lua.pop(1);
    value
}

/// Pushes a field of the table on top if the field is a table. Returns whether it is.
fn enter_table_field(lua: &mut Stack, key: &[u8]) -> bool {
    lua.raw_get_field(-1, key);
    let is_table = lua.kind(-1) == LuaType::Table;
    if !is_table {
        lua.pop(1);
    }
    is_table
}

fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|&b| if b == b'\r' || b == b'\n' { b' ' } else { b }).collect()
}

fn write_list(lua: &mut Stack, script: Protocol, reply: &mut Reply) {
    let header = reply.defer();
    let mut len = 0;
    loop {
        lua.raw_get_at(-1, len + 1);
        if lua.kind(-1) == LuaType::Nil || is_too_large(lua, reply) {
            lua.pop(1);
            break;
        }
        write_value(lua, script, reply);
        lua.pop(1);
        len += 1;
    }
    reply.end_array(header, len as usize);
}

fn write_map(lua: &mut Stack, script: Protocol, reply: &mut Reply) {
    let header = reply.defer();
    let mut pairs = 0;
    let _ = lua.each_until(-1, |lua| {
        lua.push_copy(-2);
        write_value(lua, script, reply);
        lua.pop(1);
        write_value(lua, script, reply);
        pairs += 1;
        Ok(!is_too_large(lua, reply))
    });
    reply.end_map(header, pairs);
}

fn write_set(lua: &mut Stack, script: Protocol, reply: &mut Reply) {
    let header = reply.defer();
    let mut len = 0;
    let _ = lua.each_until(-1, |lua| {
        lua.pop(1);
        // Redis writes a copy, which takes one more stack slot.
        lua.push_copy(-1);
        write_value(lua, script, reply);
        len += 1;
        Ok(!is_too_large(lua, reply))
    });
    reply.end_set(header, len);
}

/// Returns the format and text of a verbatim string, if the table has both.
fn verbatim_field(lua: &mut Stack) -> Option<([u8; 3], Vec<u8>)> {
    if !enter_table_field(lua, b"verbatim_string") {
        return None;
    }
    let parts = string_field(lua, b"format").zip(string_field(lua, b"string"));
    lua.pop(1);
    let (format, text) = parts?;
    let mut tag = [b' '; 3];
    for (to, &from) in tag.iter_mut().zip(&format) {
        *to = from;
    }
    Some((tag, text))
}
