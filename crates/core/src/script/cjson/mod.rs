//! The `cjson` library: JSON, compatible with lua-cjson 2.1.

mod decode;
mod encode;
mod options;

use super::bridge::{Function, Raised, Stack};
use options::Options;

/// The functions of the library. The options of an instance are bound to each of its functions.
const FUNCTIONS: &[(&str, Function)] = &[
    ("encode", encode),
    ("decode", decode),
    ("encode_sparse_array", options::encode_sparse_array),
    ("encode_max_depth", options::encode_max_depth),
    ("decode_max_depth", options::decode_max_depth),
    ("encode_number_precision", options::encode_number_precision),
    ("encode_keep_buffer", options::encode_keep_buffer),
    ("encode_invalid_numbers", options::encode_invalid_numbers),
    ("decode_invalid_numbers", options::decode_invalid_numbers),
    ("new", new),
];

/// Pushes a new instance of the library, with its own options.
pub(super) fn push_library(lua: &mut Stack) {
    lua.push_table(0, FUNCTIONS.len() as i32 + 3);
    lua.push_block(&Options::default().to_bytes());
    for &(name, function) in FUNCTIONS {
        lua.push_copy(-1);
        lua.push_bound_function(function, 1);
        lua.raw_set_field(-3, name.as_bytes());
    }
    lua.pop(1);
    lua.push_null_pointer();
    lua.raw_set_field(-2, b"null");
    for (name, text) in [("_NAME", "cjson"), ("_VERSION", "2.1.0")] {
        lua.push_bytes(text.as_bytes());
        lua.raw_set_field(-2, name.as_bytes());
    }
}

fn new(lua: &mut Stack) -> Raised<usize> {
    push_library(lua);
    Ok(1)
}

fn one_argument(lua: &mut Stack) -> Raised<()> {
    if lua.len() == 1 { Ok(()) } else { lua.argument_error(1, "expected 1 argument") }
}

fn encode(lua: &mut Stack) -> Raised<usize> {
    one_argument(lua)?;
    let options = Options::bound(lua);
    let json = encode::encode(lua, &options)?;
    lua.push_bytes(&json);
    Ok(1)
}

fn decode(lua: &mut Stack) -> Raised<usize> {
    one_argument(lua)?;
    let options = Options::bound(lua);
    lua.check_bytes(1)?;
    // Decoding pushes values while it reads, so the text cannot remain borrowed from the stack.
    let text = lua.bytes(1).unwrap_or_default().to_vec();
    decode::decode(lua, &options, &text)?;
    Ok(1)
}
