//! The `redis` table that scripts use.

use smallvec::SmallVec;

use super::bridge::{Function, LuaType, Raised, Stack, truncate_to_i32};
use super::{LogLevel, Propagation, convert, library};
use crate::num;
use crate::version::Version;
use crate::wire::reply::Protocol;

/// The functions in `redis`.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("call", call),
    ("pcall", pcall),
    ("log", log),
    ("sha1hex", sha1hex),
    ("error_reply", error_reply),
    ("status_reply", status_reply),
    ("replicate_commands", replicate_commands),
    ("set_repl", set_repl),
    ("setresp", setresp),
    ("breakpoint", breakpoint),
    ("debug", debug),
    ("acl_check_cmd", acl_check_cmd),
];

/// Those of them that functions of libraries do not have.
pub(super) const ONLY_IN_SCRIPTS: &[&str] = &["replicate_commands", "breakpoint", "debug"];

/// The functions in `redis` while a library is loaded.
pub(super) const WHILE_LOADING: &[(&str, Function)] =
    &[("register_function", library::register_function), ("log", log)];

/// The numbers in `redis`.
pub(super) const NUMBERS: &[(&str, i32)] = &[
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
    ("REPL_NONE", 0),
    ("REPL_AOF", 1),
    ("REPL_SLAVE", 2),
    ("REPL_REPLICA", 2),
    ("REPL_ALL", 3),
];

/// Returns the error for a call without arguments.
fn no_arguments(version: Version) -> &'static str {
    match version.is_valkey() {
        true => "Please specify at least one argument for this call",
        false => "Please specify at least one argument for this redis lib call",
    }
}

/// Returns the error for an argument that is neither a string nor a number.
fn bad_arguments(version: Version) -> &'static str {
    match version.is_valkey() {
        true => "Command arguments must be strings or integers",
        false => "Lua redis lib command arguments must be strings or integers",
    }
}

/// Returns the name of the library that the errors of its functions have.
fn library(lua: &Stack) -> &'static str {
    if lua.shared.version.is_valkey() { "server" } else { "redis" }
}

/// Calls with at most this many arguments need no allocation.
const FEW_WORDS: usize = 8;

fn call(lua: &mut Stack) -> Raised<usize> {
    if run_command(lua) { lua.raise() } else { Ok(1) }
}

fn pcall(lua: &mut Stack) -> Raised<usize> {
    run_command(lua);
    Ok(1)
}

/// Runs the command given by the arguments and pushes its reply. Returns whether the reply is an error.
fn run_command(lua: &mut Stack) -> bool {
    let shared = lua.shared;
    let mut scratch = shared.scratch.borrow_mut();
    scratch.clear();
    scratch.protocol = shared.protocol.get();
    let called = with_arguments(lua, |argv| shared.with_host(|host| host.call(argv, &mut scratch)));
    if let Err(problem) = called {
        convert::push_error(lua, problem.as_bytes(), false);
        return true;
    }
    let mut wire = scratch.as_bytes();
    let is_error = wire.first() == Some(&b'-');
    convert::push_reply(lua, &mut wire).is_err() || is_error
}

/// Calls `run` with the arguments as bytes. Returns Redis's error text if an argument is neither a string nor a number.
fn with_arguments<R>(lua: &Stack, run: impl FnOnce(&[&[u8]]) -> R) -> Result<R, &'static str> {
    if lua.len() == 0 {
        return Err(no_arguments(lua.shared.version));
    }
    let words = lua.len() as usize;
    let (mut few, mut many) = ([&b""[..]; FEW_WORDS], Vec::new());
    // All numbers go to one buffer as text. It has to be complete before slices of it can be taken.
    let shared = lua.shared;
    let mut digits = shared.digits.borrow_mut();
    let mut numbers: SmallVec<[(usize, usize); FEW_WORDS]> = SmallVec::new();
    digits.clear();
    let argv = match few.get_mut(..words) {
        Some(argv) => argv,
        None => {
            many.resize(words, &b""[..]);
            &mut many[..]
        }
    };
    for (i, word) in argv.iter_mut().enumerate() {
        let index = i as i32 + 1;
        match lua.bytes(index) {
            Some(bytes) => *word = bytes,
            None => {
                let is_number = lua.kind(index) == LuaType::Number;
                let number =
                    lua.number(index).filter(|_| is_number).ok_or_else(|| bad_arguments(shared.version))?;
                write_number(number, shared.version, &mut digits);
                numbers.push((i, digits.len()));
            }
        }
    }
    let mut start = 0;
    for &(i, end) in &numbers {
        argv[i] = &digits[start..end];
        start = end;
    }
    Ok(run(argv))
}

/// Appends a number in the form in which `redis.call` passes it on.
fn write_number(value: f64, version: Version, out: &mut Vec<u8>) {
    let integer = value as i64;
    let limit = if version >= Version::V7_2 { 1u64 << 62 } else { 100_000_000_000_000_000 - 1 };
    let signed_zero = integer == 0 && value.is_sign_negative() && version < Version::V7_2;
    if integer as f64 == value && integer.unsigned_abs() <= limit && !signed_zero {
        out.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
    } else if version >= Version::V7_2 && value.is_finite() {
        out.extend_from_slice(num::shortest(value).as_bytes());
    } else {
        out.extend_from_slice(num::format_g(value, 17).as_bytes());
    }
}

/// Raises an error table with the code ERR and the message `text`.
pub(super) fn raise_error<T>(lua: &mut Stack, text: &str) -> Raised<T> {
    convert::push_error(lua, text.as_bytes(), false);
    lua.raise()
}

fn log(lua: &mut Stack) -> Raised<usize> {
    if lua.len() < 2 {
        let text = format!("{}.log() requires two arguments or more.", library(lua));
        return raise_error(lua, &text);
    }
    if lua.number(1).is_none() {
        return raise_error(lua, "First argument must be a number (log level).");
    }
    let level = match lua.number(1).map(truncate_to_i32) {
        Some(0) => LogLevel::Debug,
        Some(1) => LogLevel::Verbose,
        Some(2) => LogLevel::Notice,
        Some(3) => LogLevel::Warning,
        _ if lua.shared.version >= Version::V7_2 => return raise_error(lua, "Invalid log level."),
        _ => return raise_error(lua, "Invalid debug level."),
    };
    let mut message = Vec::new();
    for i in 2..=lua.len() {
        if let Some(text) = lua.text(i) {
            if i > 2 {
                message.push(b' ');
            }
            message.extend_from_slice(text);
        }
        lua.check_size(message.len())?;
    }
    lua.shared.with_host(|host| host.log(level, &message));
    Ok(0)
}

fn sha1hex(lua: &mut Stack) -> Raised<usize> {
    if lua.len() != 1 {
        return raise_error(lua, "wrong number of arguments");
    }
    let digest = super::sha1_hex(lua.text(1).unwrap_or_default());
    lua.push_bytes(&digest);
    Ok(1)
}

const BAD_REPLY_ARGUMENTS: &[u8] = b"wrong number or type of arguments";

/// Returns the string argument of `error_reply` and `status_reply` up to its first NUL.
fn reply_text(lua: &Stack) -> Option<Vec<u8>> {
    let text = lua.bytes(1).filter(|_| lua.len() == 1)?;
    Some(text[..memchr::memchr(0, text).unwrap_or(text.len())].to_vec())
}

fn error_reply(lua: &mut Stack) -> Raised<usize> {
    match reply_text(lua) {
        Some(text) => convert::push_error(lua, text.strip_prefix(b"-").unwrap_or(&text), true),
        None => convert::push_error(lua, BAD_REPLY_ARGUMENTS, false),
    }
    Ok(1)
}

fn status_reply(lua: &mut Stack) -> Raised<usize> {
    if lua.len() != 1 || lua.bytes(1).is_none() {
        convert::push_error(lua, BAD_REPLY_ARGUMENTS, false);
        return Ok(1);
    }
    lua.push_table(0, 1);
    lua.push_copy(1);
    lua.raw_set_field(-2, b"ok");
    Ok(1)
}

/// Returns true: scripts always replicate their effects. The function remains from versions in which this was a choice.
fn replicate_commands(lua: &mut Stack) -> Raised<usize> {
    lua.push_boolean(true);
    Ok(1)
}

fn set_repl(lua: &mut Stack) -> Raised<usize> {
    if lua.len() != 1 {
        let count = if lua.shared.version >= Version::V7_2 { "one argument" } else { "two arguments" };
        let text = format!("{}.set_repl() requires {count}.", library(lua));
        return raise_error(lua, &text);
    }
    let flags = truncate_to_i32(lua.number(1).unwrap_or(0.0));
    if flags & !3 != 0 {
        return raise_error(
            lua,
            "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        );
    }
    let propagation = Propagation { append_only_file: flags & 1 != 0, replicas: flags & 2 != 0 };
    lua.shared.with_host(|host| host.set_propagation(propagation));
    Ok(0)
}

fn setresp(lua: &mut Stack) -> Raised<usize> {
    if lua.len() != 1 {
        let text = format!("{}.setresp() requires one argument.", library(lua));
        return raise_error(lua, &text);
    }
    let protocol = match truncate_to_i32(lua.number(1).unwrap_or(0.0)) {
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return raise_error(lua, "RESP version must be 2 or 3."),
    };
    lua.shared.protocol.set(protocol);
    Ok(0)
}

/// Returns false, "did not stop": there is no script debugger.
fn breakpoint(lua: &mut Stack) -> Raised<usize> {
    lua.push_boolean(false);
    Ok(1)
}

fn debug(_: &mut Stack) -> Raised<usize> {
    Ok(0)
}

fn acl_check_cmd(lua: &mut Stack) -> Raised<usize> {
    let shared = lua.shared;
    match with_arguments(lua, |argv| shared.with_host(|host| (host.may_run(argv), host.may_ask(argv)))) {
        Ok((Some(_), false)) => {
            let text = format!("Wrong number of args for {}.acl_check_cmd()", library(lua));
            raise_error(lua, &text)
        }
        Ok((Some(allowed), true)) => {
            lua.push_boolean(allowed);
            Ok(1)
        }
        Ok((None, _)) => {
            let text = format!("Invalid command passed to {}.acl_check_cmd()", library(lua));
            raise_error(lua, &text)
        }
        Err(problem) => raise_error(lua, problem),
    }
}

/// Handles every error of a script: turns it into a table with the field `err`, and adds where it was raised.
pub(super) fn on_error(lua: &mut Stack) -> Raised<usize> {
    lua.set_len(1);
    if lua.kind(1) != LuaType::Table {
        let text = lua.describe(1);
        convert::push_single(lua, b"err", |lua| lua.push_bytes(&[b"ERR ", &text[..]].concat()));
        lua.replace(1);
    }
    if let Some((source, line)) = lua.location(1) {
        lua.push_bytes(&source);
        lua.raw_set_field(1, b"source");
        lua.push_number(line as f64);
        lua.raw_set_field(1, b"line");
    }
    lua.set_len(1);
    Ok(1)
}
