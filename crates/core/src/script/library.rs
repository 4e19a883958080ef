//! Libraries of functions: the first line of a library's text, and `redis.register_function`.

use std::collections::BTreeMap;

use super::Flags;
use super::api::raise_error;
use super::bridge::{Loaded, LuaType, Raised, Stack};
use super::shebang::split_words;
use crate::error::Error;

const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least one \
                        character long";

/// What counts for each function against the memory limit, in bytes. It also bounds the time of a loop that registers
/// functions: one call takes far longer than the few instructions that the slices count.
const FUNCTION_BYTES: usize = 1024;

/// The functions that a library has registered, by name.
#[derive(Default)]
pub(super) struct Registry {
    pub functions: BTreeMap<Vec<u8>, Registered>,
    /// The size of the functions with their names and descriptions, in bytes.
    bytes: usize,
}

/// A function that a library has registered.
pub(super) struct Registered {
    pub description: Option<Vec<u8>>,
    pub flags: Flags,
    pub callback: Loaded,
}

/// The first line of a library's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub name: Vec<u8>,
    /// The number of bytes before the code, which begins with the line's end.
    pub len: usize,
}

/// Parses the first line of a library's text: `#!lua name=…`.
///
/// # Errors
///
/// Fails with the error that `FUNCTION LOAD` replies.
pub(crate) fn parse_header(text: &[u8]) -> Result<Header, Error> {
    if !text.starts_with(b"#!") {
        return Err(Error::new("ERR Missing library metadata"));
    }
    // As a C string, the text ends at its first NUL.
    let invalid = Error::new("ERR Invalid library metadata");
    let Some(len) = memchr::memchr2(b'\n', 0, text).filter(|at| text[*at] == b'\n') else {
        return Err(invalid);
    };
    let Some(words) = split_words(&text[..len]) else { return Err(invalid) };
    let mut words = words.into_iter();
    let engine = words.next().unwrap_or_default();
    let mut name = None;
    for word in words {
        if !word.get(..5).is_some_and(|key| key.eq_ignore_ascii_case(b"name=")) {
            return Err(Error::owned([b"ERR Invalid metadata value given: ", &word[..]].concat()));
        }
        if name.replace(word[5..].to_vec()).is_some() {
            return Err(Error::new("ERR Invalid metadata value, name argument was given multiple times"));
        }
    }
    let name = name.ok_or(Error::new("ERR Library name was not given"))?;
    if !is_name(&name) {
        return Err(format!("ERR {BAD_NAME}").into());
    }
    let engine = engine.get(2..).unwrap_or_default();
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(Error::owned([b"ERR Engine '", engine, b"' not found"].concat()));
    }
    Ok(Header { name, len })
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

const TWICE: &str = "Function already exists in the library";

/// Valkey's text for a function's name.
const BAD_FUNCTION_NAME: &str = "Function names can only contain letters, numbers, or underscores(_) and must be at least \
                                 one character long";

/// Returns whether a reply refuses the name of a function. Valkey adds nothing to such a reply.
pub(super) fn refuses_function(reply: &[u8]) -> bool {
    let text = reply.strip_prefix(b"ERR ").unwrap_or(reply);
    [TWICE.as_bytes(), BAD_FUNCTION_NAME.as_bytes()].contains(&text)
}

/// Raises an error of `register_function`, which is Valkey's `server.register_function`.
fn refuse(lua: &mut Stack, problem: &str) -> Raised<usize> {
    match lua.shared.version.is_valkey() {
        true => raise_error(lua, &problem.replace("redis.", "server.")),
        false => raise_error(lua, problem),
    }
}

/// `redis.register_function(name, callback)`, or with one table of named arguments.
pub(super) fn register_function(lua: &mut Stack) -> Raised<usize> {
    let shared = lua.shared;
    if shared.library.borrow().is_none() {
        return refuse(lua, "redis.register_function can only be called on FUNCTION LOAD command");
    }
    // The callback is on top of the stack then.
    let arguments = match lua.len() {
        1 => named_arguments(lua),
        2 => positional_arguments(lua),
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let (name, description, flags) = match arguments {
        Ok(arguments) => arguments,
        Err(problem) => return refuse(lua, problem),
    };
    if !is_name(&name) {
        let text = if shared.version.is_valkey() { BAD_FUNCTION_NAME } else { BAD_NAME };
        return raise_error(lua, text);
    }
    let mut library = shared.library.borrow_mut();
    let Some(registry) = library.as_mut() else { return Ok(0) };
    if registry.functions.contains_key(&name) {
        return raise_error(lua, TWICE);
    }
    registry.bytes += FUNCTION_BYTES + name.len() + description.as_ref().map_or(0, Vec::len);
    lua.check_size(registry.bytes)?;
    let callback = lua.keep_function(-1);
    registry.functions.insert(name, Registered { description, flags, callback });
    Ok(0)
}

/// The name, the description and the flags, or Redis's error text.
type Arguments = Result<(Vec<u8>, Option<Vec<u8>>, Flags), &'static str>;

fn positional_arguments(lua: &mut Stack) -> Arguments {
    let name = lua.text(1).ok_or("first argument to redis.register_function must be a string")?.to_vec();
    if lua.kind(2) != LuaType::Function {
        return Err("second argument to redis.register_function must be a function");
    }
    Ok((name, None, Flags { declared: true, ..Flags::default() }))
}

fn named_arguments(lua: &mut Stack) -> Arguments {
    if lua.kind(1) != LuaType::Table {
        return Err(
            "calling redis.register_function with a single argument is only applicable to Lua table \
                    (representing named arguments).",
        );
    }
    let (mut name, mut description) = (None, None);
    // The key of the entry with the callback.
    let mut callback = None;
    let mut flags = Flags { declared: true, ..Flags::default() };
    let mut problem = None;
    let _ = lua.each_until(1, |lua| {
        let outcome = read_argument(lua, &mut name, &mut description, &mut callback, &mut flags);
        problem = outcome.err();
        Ok(problem.is_none())
    });
    if let Some(problem) = problem {
        return Err(problem);
    }
    let name = name.ok_or("redis.register_function must get a function name argument")?;
    let key: Vec<u8> = callback.ok_or("redis.register_function must get a callback argument")?;
    lua.raw_get_field(1, &key);
    Ok((name, description, flags))
}

/// Reads the named argument whose key is at -2 and whose value is at -1.
fn read_argument(
    lua: &mut Stack,
    name: &mut Option<Vec<u8>>,
    description: &mut Option<Vec<u8>>,
    callback: &mut Option<Vec<u8>>,
    flags: &mut Flags,
) -> Result<(), &'static str> {
    let key = match lua.kind(-2) {
        LuaType::String => lua.bytes(-2).unwrap_or_default().to_vec(),
        LuaType::Number => return Err("unknown argument given to redis.register_function"),
        _ => return Err("named argument key given to redis.register_function is not a string"),
    };
    // As a C string, the key ends at its first NUL.
    let word = key.split(|byte| *byte == 0).next().unwrap_or_default().to_ascii_lowercase();
    lua.push_copy(-1);
    match &word[..] {
        b"function_name" => {
            let text = lua.text(-1).map(<[u8]>::to_vec);
            *name =
                Some(text.ok_or("function_name argument given to redis.register_function must be a string")?);
        }
        b"description" => {
            let text = lua.text(-1).map(<[u8]>::to_vec);
            *description =
                Some(text.ok_or("description argument given to redis.register_function must be a string")?);
        }
        b"callback" => {
            if lua.kind(-1) != LuaType::Function {
                return Err("callback argument given to redis.register_function must be a function");
            }
            *callback = Some(key);
        }
        b"flags" => {
            if lua.kind(-1) != LuaType::Table {
                return Err(
                    "flags argument to redis.register_function must be a table representing function flags",
                );
            }
            read_flags(lua, flags).ok_or("unknown flag given")?;
        }
        _ => return Err("unknown argument given to redis.register_function"),
    }
    lua.pop(1);
    Ok(())
}

/// Reads the list of flags on top. Returns `None` if one is unknown.
fn read_flags(lua: &mut Stack, flags: &mut Flags) -> Option<()> {
    for at in 1.. {
        lua.raw_get_at(-1, at);
        if lua.kind(-1) == LuaType::Nil {
            break;
        }
        let name = String::from_utf8_lossy(lua.text(-1)?).to_ascii_lowercase();
        *flags.named(&name)? = true;
        lua.pop(1);
    }
    lua.pop(1);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_the_library() {
        let header = parse_header(b"#!LUA NAME=locks\nreturn").unwrap();
        assert_eq!(header, Header { name: b"locks".to_vec(), len: 16 });
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let text = |text: &[u8]| String::from_utf8(parse_header(text).unwrap_err().text().to_vec()).unwrap();
        assert_eq!(text(b"return"), "ERR Missing library metadata");
        assert_eq!(text(b"#!lua name=a"), "ERR Invalid library metadata");
        assert_eq!(text(b"#!lua name='a\n"), "ERR Invalid library metadata");
        assert_eq!(text(b"#!py name=a\n"), "ERR Engine 'py' not found");
        assert_eq!(text(b"#!lua\n"), "ERR Library name was not given");
        assert_eq!(text(b"#!lua nam=a\n"), "ERR Invalid metadata value given: nam=a");
    }
}
