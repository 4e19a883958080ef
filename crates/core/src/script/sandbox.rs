//! The globals that scripts can access.

use super::api;
use super::bridge::{Function, LuaType, Raised, Stack};
use crate::version::{Version, release_number};

/// Functions of Lua's base library that scripts do not have.
const REMOVED: &[&str] = &["dofile", "loadfile", "print"];

/// Functions that releases with security fixes do not have either, such as 7.0.15; those of 7.2.6 and 7.4.1 came before.
const UNSAFE: &[&str] = &["getfenv", "setfenv", "newproxy"];

/// The libraries that scripts cannot modify.
const LIBRARIES: &[&str] =
    &["redis", "string", "math", "table", "coroutine", "cjson", "cmsgpack", "struct", "bit", "os"];

/// Fills the table of globals at 1, and pushes the table that scripts get as `_G`.
pub(super) fn globals(lua: &mut Stack) -> Raised<usize> {
    let version = lua.shared.version;
    fill_globals(lua, version, api::FUNCTIONS);
    set_function(lua, 1, "__redis__err__handler", api::on_error);
    if version.is_valkey() {
        set_function(lua, 1, "__server__err__handler", api::on_error);
    }
    protect(lua);
    Ok(1)
}

/// Fills the table of globals at 1 for functions of libraries, and replaces it by the environment of libraries, which
/// it pushes too: an empty read-only table that finds names in one of two tables. While a library is loaded, they are
/// `redis` alone, with what a library may use then; once it is loaded, they are those of scripts.
pub(super) fn function_globals(lua: &mut Stack) -> Raised<usize> {
    let version = lua.shared.version;
    let functions: Vec<(&str, Function)> =
        api::FUNCTIONS.iter().filter(|(name, _)| !api::ONLY_IN_SCRIPTS.contains(name)).copied().collect();
    fill_globals(lua, version, &functions);
    protect(lua);
    lua.pop(1);
    lua.push_nil();
    lua.push_table(0, 0);
    lua.protect();
    lua.push_metatable(-1);
    lua.push_copy(1);
    lua.raw_set_field(-2, b"loaded");
    push_loading_globals(lua, version);
    lua.raw_set_field(-2, b"loading");
    lua.pop(1);
    choose_globals(lua, false);
    lua.push_copy(-1);
    lua.replace(1);
    Ok(1)
}

/// Sets the names that libraries find: while one is loaded, or afterwards.
pub(super) fn choose_globals(lua: &mut Stack, loading: bool) {
    if lua.len() == 0 {
        lua.push_globals();
    }
    lua.push_metatable(-1);
    lua.raw_get_field(-1, if loading { b"loading" } else { b"loaded" });
    lua.raw_set_field(-2, b"__index");
    lua.pop(1);
}

/// Pushes the table with the names that a library finds while it is loaded.
fn push_loading_globals(lua: &mut Stack, version: Version) {
    lua.push_table(0, 1);
    push_redis(lua, version, api::WHILE_LOADING);
    push_missing_metatable(lua);
    lua.push_nil();
    lua.insert(-2);
    lua.protect();
    if version.is_valkey() {
        lua.push_copy(-1);
        lua.raw_set_field(-3, b"server");
    }
    lua.raw_set_field(-2, b"redis");
    push_missing_metatable(lua);
}

/// Makes access to undefined names of the table on top an error.
fn push_missing_metatable(lua: &mut Stack) {
    lua.push_table(0, 1);
    set_function(lua, -1, "__index", missing_global);
    lua.set_metatable();
}

/// Fills the table of globals at 1, with these functions in `redis`.
fn fill_globals(lua: &mut Stack, version: Version, functions: &[(&str, Function)]) {
    replace_functions(lua);
    let keeps_unsafe = version == Version::V7_2 || version == Version::V7_4;
    let removed_by_version = if keeps_unsafe { &[] } else { UNSAFE };
    for name in REMOVED.iter().chain(removed_by_version) {
        lua.push_nil();
        lua.raw_set_field(1, name.as_bytes());
    }
    push_redis(lua, version, functions);
    if version.is_valkey() {
        // The same table has two names.
        lua.push_copy(-1);
        lua.raw_set_field(1, b"server");
    }
    lua.raw_set_field(1, b"redis");
    add_library(lua, "bit", super::bit::FUNCTIONS);
    add_library(lua, "struct", super::struct_pack::FUNCTIONS);
    super::cjson::push_library(lua);
    lua.raw_set_field(1, b"cjson");
    super::cmsgpack::push_library(lua);
    lua.raw_set_field(1, b"cmsgpack");
    if version > Version::V7_2 {
        add_library(lua, "os", &[("clock", clock)]);
    }
    for (name, function) in [("random", random as Function), ("randomseed", randomseed)] {
        lua.raw_get_field(1, b"math");
        set_function(lua, -1, name, function);
        lua.pop(1);
    }
    set_function(lua, 1, "collectgarbage", collectgarbage);
}

/// Replaces library functions by versions that respect read-only tables.
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
    push_functions(lua, functions);
    lua.raw_set_field(1, name.as_bytes());
}

fn push_functions(lua: &mut Stack, functions: &[(&str, Function)]) {
    lua.push_table(0, functions.len() as i32);
    for &(name, function) in functions {
        set_function(lua, -1, name, function);
    }
}

/// Pushes the table `redis` with these functions.
fn push_redis(lua: &mut Stack, version: Version, functions: &[(&str, Function)]) {
    push_functions(lua, functions);
    for &(name, number) in api::NUMBERS {
        lua.push_number(number as f64);
        lua.raw_set_field(-2, name.as_bytes());
    }
    let redis_number = release_number(version.redis_release());
    push_version(lua, "REDIS", version.redis_release(), redis_number);
    if version.is_valkey() {
        push_version(lua, "VALKEY", version.full(), version.number());
        lua.push_bytes(version.product().as_bytes());
        lua.raw_set_field(-2, b"SERVER_NAME");
    }
}

/// Sets the two fields of a product's release in the table on the top.
fn push_version(lua: &mut Stack, product: &str, release: &str, number: u32) {
    lua.push_bytes(release.as_bytes());
    lua.raw_set_field(-2, format!("{product}_VERSION").as_bytes());
    lua.push_number(f64::from(number));
    lua.raw_set_field(-2, format!("{product}_VERSION_NUM").as_bytes());
}

/// Makes the libraries and the globals read-only, and pushes the proxy of the globals.
fn protect(lua: &mut Stack) {
    for name in LIBRARIES {
        lua.push_nil();
        lua.raw_get_field(1, name.as_bytes());
        if lua.kind(-1) == LuaType::Table {
            lua.protect();
            lua.raw_set_field(1, name.as_bytes());
        } else {
            lua.pop(2);
        }
    }
    // String methods are looked up in the real table; scripts that ask for the metatable get a protected one.
    lua.push_nil();
    lua.push_table(0, 1);
    lua.raw_get_field(1, b"string");
    lua.raw_set_field(-2, b"__index");
    lua.protect();
    lua.show_as_string_metatable();
    // Sets the metatable that handles undefined names.
    lua.push_copy(1);
    lua.push_table(0, 1);
    set_function(lua, -1, "__index", missing_global);
    lua.push_assignment_guard();
    lua.raw_set_field(-2, b"__newindex");
    lua.set_metatable();
    lua.pop(1);
    // The metatable that scripts get for `_G`, which is read-only too.
    lua.push_nil();
    lua.push_table(0, 1);
    set_function(lua, -1, "__index", missing_global);
    lua.protect();
    lua.push_copy(1);
    lua.protect();
    lua.push_copy(-1);
    lua.raw_set_field(1, b"_G");
}

/// Handles access to an undefined global (`__index`): raises Redis's error.
fn missing_global(lua: &mut Stack) -> Raised<usize> {
    let Some(name) = lua.text(2) else {
        return lua.raise_text("Second argument to luaProtectedTableError must be a string or number");
    };
    // As a C string, the name ends at its first NUL.
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

/// Returns simulated processor seconds: one second per 1000 slices plus a microsecond per call. A loop that waits for
/// time to pass always ends at the same point.
fn clock(lua: &mut Stack) -> Raised<usize> {
    let shared = lua.shared;
    let looks = shared.clock_reads.get() + 1;
    shared.clock_reads.set(looks);
    lua.push_number((shared.slices.get() * 1000 + looks) as f64 / 1e6);
    Ok(1)
}

/// Returns the size of the state for "count". Ignores all other options: scripts cannot control the collector.
fn collectgarbage(lua: &mut Stack) -> Raised<usize> {
    let option = if lua.kind(1) == LuaType::None || lua.kind(1) == LuaType::Nil {
        b"collect".to_vec()
    } else {
        lua.check_bytes(1)?;
        // As a C string, the option ends at its first NUL.
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
