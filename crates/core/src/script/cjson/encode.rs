//! Converts Lua values to JSON.

use super::options::{InvalidNumbers, Options};
use crate::num;
use crate::script::bridge::{LuaType, Raised, Stack};

/// Returns the JSON of the value on top of the stack.
pub(super) fn encode(lua: &mut Stack, options: &Options) -> Raised<Vec<u8>> {
    let mut json = Vec::new();
    append_value(lua, options, 0, &mut json)?;
    Ok(json)
}

fn append_value(lua: &mut Stack, options: &Options, depth: i32, json: &mut Vec<u8>) -> Raised<()> {
    match lua.kind(-1) {
        LuaType::String => append_string(lua.bytes(-1).unwrap_or_default(), json),
        LuaType::Number => append_number(lua, -1, options, json)?,
        LuaType::Boolean => json.extend_from_slice(if lua.truth(-1) { b"true" } else { b"false" }),
        LuaType::Table => {
            let depth = depth + 1;
            if depth > options.encode_max_depth || !lua.reserve(3) {
                return lua.raise_text(&format!("Cannot serialise, excessive nesting ({depth})"));
            }
            match array_length(lua, options)? {
                Some(len) if len > 0 => append_array(lua, options, depth, len, json)?,
                _ => append_object(lua, options, depth, json)?,
            }
        }
        LuaType::Nil | LuaType::None => json.extend_from_slice(b"null"),
        _ if lua.is_null_pointer(-1) => json.extend_from_slice(b"null"),
        _ => return refuse(lua, -1, "type not supported"),
    }
    lua.check_size(json.len())
}

fn refuse<T>(lua: &mut Stack, index: i32, why: &str) -> Raised<T> {
    let kind = lua.kind(index).name();
    lua.raise_text(&format!("Cannot serialise {kind}: {why}"))
}

/// Returns the length of the table on top as an array, or `None` if it has keys that arrays do not have, or is too
/// sparse.
fn array_length(lua: &mut Stack, options: &Options) -> Raised<Option<i32>> {
    let mut max = 0i32;
    let mut items = 0i64;
    let mut is_array = true;
    lua.each_until(-1, |lua| {
        match lua.number(-2).filter(|_| lua.kind(-2) == LuaType::Number) {
            Some(key) if key >= 1.0 && key.floor() == key => {
                if key > max as f64 {
                    max = to_int(key);
                }
                items += 1;
            }
            _ => is_array = false,
        }
        Ok(is_array)
    })?;
    if !is_array {
        return Ok(None);
    }
    let ratio = options.sparse_ratio as i64;
    if ratio > 0 && max as i64 > items * ratio && max > options.sparse_safe {
        if !options.sparse_convert {
            return refuse(lua, -1, "excessively sparse array");
        }
        return Ok(None);
    }
    Ok(Some(max))
}

/// Converts a double as C casts it to an `int` on x86-64. A number that does not fit becomes `i32::MIN`; a table with
/// such a key is an object.
fn to_int(value: f64) -> i32 {
    if value <= i32::MAX as f64 { value as i32 } else { i32::MIN }
}

fn append_array(lua: &mut Stack, options: &Options, depth: i32, len: i32, json: &mut Vec<u8>) -> Raised<()> {
    json.push(b'[');
    for i in 1..=len {
        if i > 1 {
            json.push(b',');
        }
        lua.raw_get_at(-1, i);
        append_value(lua, options, depth, json)?;
        lua.pop(1);
    }
    json.push(b']');
    Ok(())
}

fn append_object(lua: &mut Stack, options: &Options, depth: i32, json: &mut Vec<u8>) -> Raised<()> {
    json.push(b'{');
    let mut first = true;
    lua.each(-1, |lua| {
        if !first {
            json.push(b',');
        }
        first = false;
        match lua.kind(-2) {
            LuaType::Number => {
                json.push(b'"');
                append_number(lua, -2, options, json)?;
                json.push(b'"');
            }
            LuaType::String => append_string(lua.bytes(-2).unwrap_or_default(), json),
            _ => return refuse(lua, -2, "table key must be a number or string"),
        }
        json.push(b':');
        append_value(lua, options, depth, json)
    })?;
    json.push(b'}');
    Ok(())
}

fn append_number(lua: &mut Stack, index: i32, options: &Options, json: &mut Vec<u8>) -> Raised<()> {
    let value = lua.number(index).unwrap_or(0.0);
    if !value.is_finite() {
        match options.encode_invalid_numbers {
            InvalidNumbers::Refuse => return refuse(lua, index, "must not be NaN or Inf"),
            InvalidNumbers::Write if value.is_nan() => json.extend_from_slice(b"nan"),
            InvalidNumbers::Write => json.extend_from_slice(num::format_g(value, 14).as_bytes()),
            InvalidNumbers::Null => json.extend_from_slice(b"null"),
        }
        return Ok(());
    }
    let integer = value as i64;
    if integer as f64 == value
        && integer.unsigned_abs() < 10u64.pow(options.number_precision as u32)
        && integer != 0
    {
        json.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
    } else {
        json.extend_from_slice(num::format_g(value, options.number_precision as usize).as_bytes());
    }
    Ok(())
}

fn append_string(text: &[u8], json: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    json.push(b'"');
    for &byte in text {
        match byte {
            b'"' => json.extend_from_slice(b"\\\""),
            b'\\' => json.extend_from_slice(b"\\\\"),
            b'/' => json.extend_from_slice(b"\\/"),
            8 => json.extend_from_slice(b"\\b"),
            b'\t' => json.extend_from_slice(b"\\t"),
            b'\n' => json.extend_from_slice(b"\\n"),
            12 => json.extend_from_slice(b"\\f"),
            b'\r' => json.extend_from_slice(b"\\r"),
            0..32 | 127 => {
                json.extend_from_slice(b"\\u00");
                json.extend_from_slice(&[HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]);
            }
            _ => json.push(byte),
        }
    }
    json.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::append_string;

    #[test]
    fn strings_are_escaped_as_lua_cjson_escapes_them() {
        let mut json = Vec::new();
        append_string(b"a\"\\/\x08\t\n\x0c\r\0\x1f\x7f\xff", &mut json);
        assert_eq!(json, b"\"a\\\"\\\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\\u007f\xff\"");
    }
}
