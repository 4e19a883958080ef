//! The `cmsgpack` library: MessagePack, compatible with lua-cmsgpack 0.4.

use super::bridge::{Function, LuaType, Raised, Stack};

const FUNCTIONS: &[(&str, Function)] =
    &[("pack", pack), ("unpack", unpack), ("unpack_one", unpack_one), ("unpack_limit", unpack_limit)];

const TEXTS: &[(&str, &str)] = &[
    ("_NAME", "cmsgpack"),
    ("_VERSION", "lua-cmsgpack 0.4.0"),
    ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
    ("_DESCRIPTION", "MessagePack C implementation for Lua"),
];

/// Tables nested deeper than this are packed as nil.
const MAX_NESTING: usize = 16;

pub(super) fn push_library(lua: &mut Stack) {
    lua.push_table(0, 8);
    for &(name, function) in FUNCTIONS {
        lua.push_function(function);
        lua.raw_set_field(-2, name.as_bytes());
    }
    for (name, text) in TEXTS {
        lua.push_bytes(text.as_bytes());
        lua.raw_set_field(-2, name.as_bytes());
    }
}

fn pack(lua: &mut Stack) -> Raised<usize> {
    let arguments = lua.len();
    if arguments == 0 {
        return lua.argument_error(0, "MessagePack pack needs input.");
    }
    if !lua.reserve(arguments) {
        return lua.argument_error(0, "Too many arguments for MessagePack pack.");
    }
    let mut packed = Vec::new();
    for i in 1..=arguments {
        lua.push_copy(i);
        pack_value(lua, 0, &mut packed)?;
        lua.pop(1);
    }
    lua.push_bytes(&packed);
    Ok(1)
}

/// Appends the value on top of the stack.
fn pack_value(lua: &mut Stack, level: usize, out: &mut Vec<u8>) -> Raised<()> {
    match lua.kind(-1) {
        LuaType::String => {
            let text = lua.bytes(-1).unwrap_or_default();
            pack_header(text.len(), out, (0xa0, 31), Some(0xd9), 0xda);
            out.extend_from_slice(text);
        }
        LuaType::Boolean => out.push(if lua.truth(-1) { 0xc3 } else { 0xc2 }),
        LuaType::Number => pack_number(lua.number(-1).unwrap_or(0.0), out),
        LuaType::Table if level < MAX_NESTING => {
            if !lua.reserve(6) {
                return lua.raise_text("stack overflow (in function mp_encode_lua_table)");
            }
            if is_array(lua)? { pack_array(lua, level, out)? } else { pack_map(lua, level, out)? }
        }
        _ => out.push(0xc0),
    }
    lua.check_size(out.len())
}

/// Appends the type and length of a string, array or map: in the short form up to a limit, then with 8, 16 or 32 bits.
/// The number of the 32-bit type is that of the 16-bit type plus one.
fn pack_header(len: usize, out: &mut Vec<u8>, short: (u8, usize), eight: Option<u8>, sixteen: u8) {
    match (len, eight) {
        (len, _) if len <= short.1 => out.push(short.0 | len as u8),
        (0..=0xff, Some(eight)) => out.extend_from_slice(&[eight, len as u8]),
        (0..=0xffff, _) => {
            out.push(sixteen);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            out.push(sixteen + 1);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn pack_number(value: f64, out: &mut Vec<u8>) {
    let integer = super::bridge::truncate(value);
    if value.is_finite() && integer as f64 == value {
        return pack_integer(integer, out);
    }
    let single = value as f32;
    if single as f64 == value {
        out.push(0xca);
        out.extend_from_slice(&single.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

fn pack_integer(n: i64, out: &mut Vec<u8>) {
    let (kind, len) = match n {
        -32..=127 => return out.push(n as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        ..-0x8000_0000 => (0xd3, 8),
    };
    out.push(kind);
    out.extend_from_slice(&n.to_be_bytes()[8 - len..]);
}

/// Returns whether the keys of the table on top are exactly 1 to n.
fn is_array(lua: &mut Stack) -> Raised<bool> {
    let mut max = 0f64;
    let mut count = 0f64;
    let mut only_indexes = true;
    lua.each_until(-1, |lua| {
        let key = lua.number(-2).filter(|_| lua.kind(-2) == LuaType::Number);
        match key {
            Some(key) if key > 0.0 && key.floor() == key => {
                max = max.max(key);
                count += 1.0;
            }
            _ => only_indexes = false,
        }
        Ok(only_indexes)
    })?;
    Ok(only_indexes && max == count)
}

fn pack_array(lua: &mut Stack, level: usize, out: &mut Vec<u8>) -> Raised<()> {
    let len = lua.raw_len(-1);
    pack_header(len, out, (0x90, 15), None, 0xdc);
    for i in 1..=len {
        lua.raw_get_at(-1, i as i32);
        pack_value(lua, level + 1, out)?;
        lua.pop(1);
    }
    Ok(())
}

fn pack_map(lua: &mut Stack, level: usize, out: &mut Vec<u8>) -> Raised<()> {
    let mut len = 0;
    lua.each(-1, |_| {
        len += 1;
        Ok(())
    })?;
    pack_header(len, out, (0x80, 15), None, 0xde);
    lua.each(-1, |lua| {
        lua.push_copy(-2);
        pack_value(lua, level + 1, out)?;
        lua.pop(1);
        pack_value(lua, level + 1, out)
    })
}

fn unpack(lua: &mut Stack) -> Raised<usize> {
    lua.check_bytes(1)?;
    let data = lua.bytes(1).unwrap_or_default().to_vec();
    let mut input = &data[..];
    let mut results = 0;
    while !input.is_empty() {
        unpack_checked(lua, &mut input)?;
        results += 1;
    }
    Ok(results)
}

fn unpack_one(lua: &mut Stack) -> Raised<usize> {
    let offset = optional_integer(lua, 2)?;
    unpack_some(lua, 1, offset)
}

fn unpack_limit(lua: &mut Stack) -> Raised<usize> {
    let limit = lua.check_integer(2)?;
    let offset = optional_integer(lua, 3)?;
    unpack_some(lua, limit, offset)
}

fn optional_integer(lua: &mut Stack, n: i32) -> Raised<i64> {
    if matches!(lua.kind(n), LuaType::None | LuaType::Nil) { Ok(0) } else { lua.check_integer(n) }
}

/// Unpacks at most `limit` values. Pushes the offset after them (-1 at the end of the data), then the values.
fn unpack_some(lua: &mut Stack, limit: i64, offset: i64) -> Raised<usize> {
    lua.check_bytes(1)?;
    lua.set_len(1);
    if limit == 0 && offset == 0 {
        return unpack(lua);
    }
    let data = lua.bytes(1).unwrap_or_default().to_vec();
    let len = data.len();
    // Error texts print the offset as an `int`.
    let shown = offset as i32;
    if offset < 0 || limit < 0 {
        return lua
            .raise_text(&format!("Invalid request to unpack with offset of {shown} and limit of {len}."));
    }
    let Some(mut input) = data.get(offset as usize..) else {
        return lua.raise_text(&format!("Start offset {shown} greater than input length {len}."));
    };
    let mut results = 0;
    while !input.is_empty() && i64::from(results) < limit {
        unpack_checked(lua, &mut input)?;
        results += 1;
    }
    if !lua.reserve(1) {
        return lua.raise_text("stack overflow (in function mp_unpack_full)");
    }
    lua.push_number(if input.is_empty() { -1.0 } else { (len - input.len()) as f64 });
    lua.insert(2);
    Ok(results as usize + 1)
}

/// The reason why data cannot be unpacked.
enum Bad {
    End,
    Format,
    Raised(super::bridge::Raise),
}

impl From<super::bridge::Raise> for Bad {
    fn from(raise: super::bridge::Raise) -> Bad {
        Bad::Raised(raise)
    }
}

fn unpack_checked(lua: &mut Stack, input: &mut &[u8]) -> Raised<()> {
    match unpack_value(lua, input) {
        Ok(()) => Ok(()),
        Err(Bad::End) => lua.raise_text("Missing bytes in input."),
        Err(Bad::Format) => lua.raise_text("Bad data format in input."),
        Err(Bad::Raised(raise)) => Err(raise),
    }
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], Bad> {
    let (taken, rest) = input.split_at_checked(len).ok_or(Bad::End)?;
    *input = rest;
    Ok(taken)
}

fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], Bad> {
    take(input, N)?.try_into().map_err(|_| Bad::End)
}

/// Reads a big-endian unsigned integer of `len` bytes.
fn take_unsigned(input: &mut &[u8], len: usize) -> Result<u64, Bad> {
    Ok(take(input, len)?.iter().fold(0, |value, &byte| value << 8 | byte as u64))
}

fn unpack_value(lua: &mut Stack, input: &mut &[u8]) -> Result<(), Bad> {
    if !lua.reserve(1) {
        let why = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";
        return Err(lua.raise_text::<()>(why).map_or_else(Bad::Raised, |()| Bad::Format));
    }
    let [kind] = take_array(input)?;
    match kind {
        0x00..=0x7f => lua.push_number(kind as f64),
        0xe0..=0xff => lua.push_number(kind as i8 as f64),
        0xa0..=0xbf => lua.push_bytes(take(input, kind as usize & 0x1f)?),
        0x90..=0x9f => unpack_array(lua, input, kind as u64 & 0xf)?,
        0x80..=0x8f => unpack_map(lua, input, kind as u64 & 0xf)?,
        0xc0 => lua.push_nil(),
        0xc2 | 0xc3 => lua.push_boolean(kind == 0xc3),
        0xca => lua.push_number(f32::from_be_bytes(take_array(input)?) as f64),
        0xcb => lua.push_number(f64::from_be_bytes(take_array(input)?)),
        // Integers above `i64::MAX` come out negative, as in Redis.
        0xcc..=0xcf => lua.push_number(take_unsigned(input, 1 << (kind - 0xcc))? as i64 as f64),
        0xd0 => lua.push_number(i8::from_be_bytes(take_array(input)?) as f64),
        0xd1 => lua.push_number(i16::from_be_bytes(take_array(input)?) as f64),
        0xd2 => lua.push_number(i32::from_be_bytes(take_array(input)?) as f64),
        0xd3 => lua.push_number(i64::from_be_bytes(take_array(input)?) as f64),
        0xd9..=0xdb => {
            let len = take_unsigned(input, 1 << (kind - 0xd9))?;
            lua.push_bytes(take(input, len as usize)?);
        }
        0xdc | 0xdd => {
            let len = take_unsigned(input, 2 << (kind - 0xdc))?;
            unpack_array(lua, input, len)?;
        }
        0xde | 0xdf => {
            let len = take_unsigned(input, 2 << (kind - 0xde))?;
            unpack_map(lua, input, len)?;
        }
        _ => return Err(Bad::Format),
    }
    lua.check_memory()?;
    Ok(())
}

/// Reserves as many stack slots for a nesting level as Redis does: for the table, the key and the value.
fn nest(lua: &mut Stack, context: &str) -> Result<(), Bad> {
    if lua.reserve(2) {
        return Ok(());
    }
    Err(lua
        .raise_text::<()>(&format!("stack overflow ({context})"))
        .map_or_else(Bad::Raised, |()| Bad::Format))
}

fn unpack_array(lua: &mut Stack, input: &mut &[u8], len: u64) -> Result<(), Bad> {
    lua.push_table(0, 0);
    nest(lua, "in function mp_decode_to_lua_array")?;
    for i in 1..=len {
        lua.push_number(i as f64);
        unpack_value(lua, input)?;
        lua.raw_set(-3);
    }
    Ok(())
}

fn unpack_map(lua: &mut Stack, input: &mut &[u8], len: u64) -> Result<(), Bad> {
    lua.push_table(0, 0);
    for _ in 0..len {
        unpack_value(lua, input)?;
        unpack_value(lua, input)?;
        if !lua.is_key(-2) {
            let why = if lua.kind(-2) == LuaType::Nil { "table index is nil" } else { "table index is NaN" };
            lua.raise_plain::<()>(why.as_bytes())?;
        }
        lua.raw_set(-3);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(value: f64) -> Vec<u8> {
        let mut out = Vec::new();
        pack_number(value, &mut out);
        out
    }

    #[test]
    fn integers_take_the_shortest_form() {
        assert_eq!(packed(127.0), [0x7f]);
        assert_eq!(packed(128.0), [0xcc, 0x80]);
        assert_eq!(packed(-32.0), [0xe0]);
        assert_eq!(packed(-33.0), [0xd0, 0xdf]);
        assert_eq!(packed(65536.0), [0xce, 0, 1, 0, 0]);
        assert_eq!(packed(-2147483649.0)[0], 0xd3);
    }

    #[test]
    fn fractions_are_single_when_that_loses_nothing() {
        assert_eq!(packed(1.5), [0xca, 0x3f, 0xc0, 0, 0]);
        assert_eq!(packed(0.1)[0], 0xcb);
    }
}
