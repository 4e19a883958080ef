//! The options of a `cjson` instance, and the functions that read and set them.

use crate::script::bridge::{LuaType, Raised, Stack};

/// How `encode` handles NaN and the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidNumbers {
    Refuse,
    Write,
    Null,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub sparse_convert: bool,
    pub sparse_ratio: i32,
    pub sparse_safe: i32,
    pub encode_max_depth: i32,
    pub decode_max_depth: i32,
    pub number_precision: i32,
    /// Can be read and set, but has no effect: there is no buffer to keep.
    pub keep_buffer: bool,
    pub encode_invalid_numbers: InvalidNumbers,
    pub decode_invalid_numbers: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_max_depth: 1000,
            decode_max_depth: 1000,
            number_precision: 14,
            keep_buffer: true,
            encode_invalid_numbers: InvalidNumbers::Refuse,
            decode_invalid_numbers: true,
        }
    }
}

/// The number of words in the block of bytes that stores the options in Lua.
const WORDS: usize = 9;

impl Options {
    pub fn to_bytes(&self) -> [u8; WORDS * 4] {
        let words = [
            self.sparse_convert as i32,
            self.sparse_ratio,
            self.sparse_safe,
            self.encode_max_depth,
            self.decode_max_depth,
            self.number_precision,
            self.keep_buffer as i32,
            self.encode_invalid_numbers as i32,
            self.decode_invalid_numbers as i32,
        ];
        let mut bytes = [0; WORDS * 4];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Options {
        let mut words =
            bytes.chunks_exact(4).map(|word| i32::from_ne_bytes(word.try_into().unwrap_or_default()));
        let mut next = || words.next().unwrap_or_default();
        Options {
            sparse_convert: next() != 0,
            sparse_ratio: next(),
            sparse_safe: next(),
            encode_max_depth: next(),
            decode_max_depth: next(),
            number_precision: next(),
            keep_buffer: next() != 0,
            encode_invalid_numbers: match next() {
                0 => InvalidNumbers::Refuse,
                1 => InvalidNumbers::Write,
                _ => InvalidNumbers::Null,
            },
            decode_invalid_numbers: next() != 0,
        }
    }

    /// Returns the options bound to the running function.
    pub fn bound(lua: &mut Stack) -> Options {
        lua.push_upvalue(1);
        let options = lua.block_mut(-1).map(|bytes| Options::from_bytes(bytes)).unwrap_or_default();
        lua.pop(1);
        options
    }

    fn bind(&self, lua: &mut Stack) {
        lua.shared.leaves_state.set(true);
        lua.push_upvalue(1);
        if let Some(bytes) = lua.block_mut(-1) {
            bytes.copy_from_slice(&self.to_bytes());
        }
        lua.pop(1);
    }
}

/// Checks that there are at most `n` arguments, and fills up with nil. Returns the options.
fn at_most(lua: &mut Stack, n: i32) -> Raised<Options> {
    if lua.len() > n {
        return lua.argument_error(n + 1, "found too many arguments");
    }
    lua.set_len(n);
    Ok(Options::bound(lua))
}

/// Sets `setting` to argument `n`, if it is given.
fn integer_option(lua: &mut Stack, n: i32, setting: &mut i32, min: i32, max: i32) -> Raised<()> {
    if lua.kind(n) != LuaType::Nil {
        let value = lua.check_integer(n)? as i32;
        if !(min..=max).contains(&value) {
            return lua.argument_error(1, format!("expected integer between {min} and {max}"));
        }
        *setting = value;
    }
    Ok(())
}

fn boolean_option(lua: &mut Stack, n: i32, setting: &mut bool) -> Raised<()> {
    match lua.kind(n) {
        LuaType::Nil => {}
        LuaType::Boolean => *setting = lua.truth(n),
        _ => {
            lua.check_bytes(n)?;
            let option = String::from_utf8_lossy(lua.bytes(n).unwrap_or_default()).into_owned();
            return lua.argument_error(n, format!("invalid option '{option}'"));
        }
    }
    Ok(())
}

pub(super) fn encode_sparse_array(lua: &mut Stack) -> Raised<usize> {
    let mut options = at_most(lua, 3)?;
    boolean_option(lua, 1, &mut options.sparse_convert)?;
    options.bind(lua);
    integer_option(lua, 2, &mut options.sparse_ratio, 0, i32::MAX)?;
    options.bind(lua);
    integer_option(lua, 3, &mut options.sparse_safe, 0, i32::MAX)?;
    options.bind(lua);
    lua.push_boolean(options.sparse_convert);
    lua.push_number(options.sparse_ratio as f64);
    lua.push_number(options.sparse_safe as f64);
    Ok(3)
}

/// Returns the integer option that `select` returns, after setting it to the argument, if given.
fn one_integer(lua: &mut Stack, max: i32, select: fn(&mut Options) -> &mut i32) -> Raised<usize> {
    let mut options = at_most(lua, 1)?;
    integer_option(lua, 1, select(&mut options), 1, max)?;
    options.bind(lua);
    lua.push_number(*select(&mut options) as f64);
    Ok(1)
}

/// Returns the boolean option that `select` returns, after setting it to the argument, if given.
fn one_boolean(lua: &mut Stack, select: fn(&mut Options) -> &mut bool) -> Raised<usize> {
    let mut options = at_most(lua, 1)?;
    boolean_option(lua, 1, select(&mut options))?;
    options.bind(lua);
    lua.push_boolean(*select(&mut options));
    Ok(1)
}

pub(super) fn encode_max_depth(lua: &mut Stack) -> Raised<usize> {
    one_integer(lua, i32::MAX, |options| &mut options.encode_max_depth)
}

pub(super) fn decode_max_depth(lua: &mut Stack) -> Raised<usize> {
    one_integer(lua, i32::MAX, |options| &mut options.decode_max_depth)
}

pub(super) fn encode_number_precision(lua: &mut Stack) -> Raised<usize> {
    one_integer(lua, 14, |options| &mut options.number_precision)
}

pub(super) fn encode_keep_buffer(lua: &mut Stack) -> Raised<usize> {
    one_boolean(lua, |options| &mut options.keep_buffer)
}

pub(super) fn decode_invalid_numbers(lua: &mut Stack) -> Raised<usize> {
    one_boolean(lua, |options| &mut options.decode_invalid_numbers)
}

pub(super) fn encode_invalid_numbers(lua: &mut Stack) -> Raised<usize> {
    let mut options = at_most(lua, 1)?;
    let setting = &mut options.encode_invalid_numbers;
    match lua.kind(1) {
        LuaType::Nil => {}
        LuaType::Boolean if lua.truth(1) => *setting = InvalidNumbers::Write,
        LuaType::Boolean => *setting = InvalidNumbers::Refuse,
        _ => {
            lua.check_bytes(1)?;
            *setting = match lua.bytes(1).unwrap_or_default() {
                b"off" => InvalidNumbers::Refuse,
                b"on" => InvalidNumbers::Write,
                b"null" => InvalidNumbers::Null,
                other => {
                    let option = String::from_utf8_lossy(other).into_owned();
                    return lua.argument_error(1, format!("invalid option '{option}'"));
                }
            };
        }
    }
    options.bind(lua);
    match options.encode_invalid_numbers {
        InvalidNumbers::Refuse => lua.push_boolean(false),
        InvalidNumbers::Write => lua.push_boolean(true),
        InvalidNumbers::Null => lua.push_bytes(b"null"),
    }
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_their_block() {
        let options = Options {
            sparse_convert: true,
            encode_invalid_numbers: InvalidNumbers::Null,
            number_precision: 3,
            ..Options::default()
        };
        assert_eq!(Options::from_bytes(&options.to_bytes()), options);
    }
}
