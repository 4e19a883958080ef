//! The globals that scripts see.

use super::api;
use super::bridge::{Function, Kind, Raised, Stack};
use crate::version::Version;

/// What Lua's base library has and scripts do not.
const REMOVED: &[&str] = &["dofile", "loadfile", "print"];

/// What 7.0.15, with its security fixes, does not have either.
const REMOVED_BEFORE_7_2: &[&str] = &["getfenv", "setfenv", "newproxy"];

/// Libraries that are read-only to scripts.
const LIBRARIES: &[&str] =
    &["redis", "string", "math", "table", "coroutine", "cjson", "cmsgpack", "struct", "bit", "os"];

/// Fills the table of globals at 1, and pushes what scripts hold as `_G`.
pub(super) fn globals(lua: &mut Stack) -> Raised<usize> {
    let version = lua.shared.version;
    replace_functions(lua);
    let removed_by_version = if version < Version::V7_2 { REMOVED_BEFORE_7_2 } else { &[] };
    for name in REMOVED.iter().chain(removed_by_version) {
        lua.push_nil();
        lua.raw_set_field(1, name.as_bytes());
    }
    add_redis(lua, version);
    add_library(lua, "bit", super::bit::FUNCTIONS);
    add_library(lua, "struct", super::struct_pack::FUNCTIONS);
    super::cjson::push_library(lua);
    lua.raw_set_field(1, b"cjson");
    super::cmsgpack::push_library(lua);
    lua.raw_set_field(1, b"cmsgpack");
    if version >= Version::V7_4 {
        add_library(lua, "os", &[("clock", clock)]);
    }
    set_function(lua, 1, "__redis__err__handler", api::on_error);
    for (name, function) in [("random", random as Function), ("randomseed", randomseed)] {
        lua.raw_get_field(1, b"math");
        set_function(lua, -1, name, function);
        lua.pop(1);
    }
    set_function(lua, 1, "collectgarbage", collectgarbage);
    protect(lua);
    Ok(1)
}

/// Puts the functions that know read-only tables in their places.
fn replace_functions(lua: &mut Stack) {
    lua.each_guarded(|lua, library, name| {
        if library.is_empty() {
            return lua.raw_set_field(1, name.as_bytes());
        }
        lua.raw_get_field(1, library.as_bytes());
        lua.insert(-2);
        lua.raw_set_field(-2, name.as_bytes());
        lua.pop(1);
    });
}

fn set_function(lua: &mut Stack, table: i32, name: &str, function: Function) {
    lua.push_copy(table);
    lua.push_function(function);
    lua.raw_set_field(-2, name.as_bytes());
    lua.pop(1);
}

fn add_library(lua: &mut Stack, name: &str, functions: &[(&str, Function)]) {
    lua.push_table(0, functions.len() as i32);
    for &(name, function) in functions {
        set_function(lua, -1, name, function);
    }
    lua.raw_set_field(1, name.as_bytes());
}

fn add_redis(lua: &mut Stack, version: Version) {
    add_library(lua, "redis", api::FUNCTIONS);
    lua.raw_get_field(1, b"redis");
    for &(name, number) in api::NUMBERS {
        lua.push_number(number as f64);
        lua.raw_set_field(-2, name.as_bytes());
    }
    lua.push_bytes(version.full().as_bytes());
    lua.raw_set_field(-2, b"REDIS_VERSION");
    lua.push_number(version.number() as f64);
    lua.raw_set_field(-2, b"REDIS_VERSION_NUM");
    lua.pop(1);
}

/// Makes the libraries and the globals read-only, and pushes the proxy of the globals.
fn protect(lua: &mut Stack) {
    for name in LIBRARIES {
        lua.push_nil();
        lua.raw_get_field(1, name.as_bytes());
        if lua.kind(-1) == Kind::Table {
            lua.protect();
            lua.raw_set_field(1, name.as_bytes());
        } else {
            lua.pop(2);
        }
    }
    // Strings find their methods in the real table; scripts that ask for the metatable see a protected one.
    lua.push_nil();
    lua.push_table(0, 1);
    lua.raw_get_field(1, b"string");
    lua.raw_set_field(-2, b"__index");
    lua.protect();
    lua.show_as_string_metatable();
    // Names that nobody has defined.
    lua.push_copy(1);
    lua.push_table(0, 1);
    set_function(lua, -1, "__index", missing_global);
    lua.push_assignment_guard();
    lua.raw_set_field(-2, b"__newindex");
    lua.set_metatable();
    lua.pop(1);
    // `_G`, whose metatable is shown, read-only as well.
    lua.push_nil();
    lua.push_table(0, 1);
    set_function(lua, -1, "__index", missing_global);
    lua.protect();
    lua.push_copy(1);
    lua.protect();
    lua.push_copy(-1);
    lua.raw_set_field(1, b"_G");
}

/// `__index` of the globals.
fn missing_global(lua: &mut Stack) -> Raised<usize> {
    let Some(name) = lua.text(2) else {
        return lua.raise_text("Second argument to luaProtectedTableError must be a string or number");
    };
    // A C string: it ends at the first NUL.
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = [b"Script attempted to access nonexistent global variable '", name, b"'"].concat();
    lua.raise_bytes(&text)
}

fn random(lua: &mut Stack) -> Raised<usize> {
    let unit = lua.shared.random.borrow_mut().unit();
    let value = match lua.len() {
        0 => unit,
        1 => {
            let high = lua.check_integer(1)? as i32;
            if high < 1 {
                return lua.argument_error(1, "interval is empty");
            }
            (unit * high as f64).floor() + 1.0
        }
        2 => {
            let low = lua.check_integer(1)? as i32;
            let high = lua.check_integer(2)? as i32;
            if low > high {
                return lua.argument_error(2, "interval is empty");
            }
            (unit * high.wrapping_sub(low).wrapping_add(1) as f64).floor() + low as f64
        }
        _ => return lua.raise_text("wrong number of arguments"),
    };
    lua.push_number(value);
    Ok(1)
}

fn randomseed(lua: &mut Stack) -> Raised<usize> {
    let seed = lua.check_integer(1)? as i32;
    lua.shared.random.borrow_mut().seed(seed);
    Ok(0)
}

/// Processor seconds, made up: a second per 1000 slices, and a microsecond per look, so that a loop that waits for time to
/// pass ends at the same place every time.
fn clock(lua: &mut Stack) -> Raised<usize> {
    let shared = lua.shared;
    let looks = shared.clock_reads.get() + 1;
    shared.clock_reads.set(looks);
    lua.push_number((shared.slices.get() * 1000 + looks) as f64 / 1e6);
    Ok(1)
}

/// Returns the collector belongs to the server: scripts may ask for the size of the state, and the rest does nothing.
fn collectgarbage(lua: &mut Stack) -> Raised<usize> {
    let option = if lua.kind(1) == Kind::None || lua.kind(1) == Kind::Nil {
        b"collect".to_vec()
    } else {
        lua.check_bytes(1)?;
        // A C string: it ends at the first NUL.
        lua.bytes(1).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
    };
    match &option[..] {
        b"count" => {
            let used = lua.memory_used();
            lua.push_number(used as f64 / 1024.0);
        }
        b"step" => lua.push_boolean(true),
        b"collect" | b"stop" | b"restart" => lua.push_number(0.0),
        b"setpause" | b"setstepmul" => lua.push_number(200.0),
        _ => {
            return lua.argument_error(1, [b"invalid option '", &option[..], b"'"].concat());
        }
    }
    Ok(1)
}
