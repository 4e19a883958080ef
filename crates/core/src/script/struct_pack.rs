//! The `struct` library: packs values into strings with the layout of C structures.

use super::bridge::{Function, LuaType, Raised, Stack, truncate};

pub(super) const FUNCTIONS: &[(&str, Function)] = &[("pack", pack), ("unpack", unpack), ("size", size)];

/// The size of the largest integer, in bytes.
const MAX_INTEGER: i32 = 32;

/// The alignment that `!` without a number sets.
const MAX_ALIGNMENT: i32 = 8;

/// A format string that is being read, with the modes it has set so far.
struct Format {
    text: Vec<u8>,
    at: usize,
    big_endian: bool,
    alignment: i32,
}

/// One option of a format.
struct Item {
    option: u8,
    /// The size in bytes, or 0 if it depends on the value.
    size: usize,
    /// The number of padding bytes before the item.
    padding: usize,
}

impl Format {
    /// Returns the format in argument 1 up to its first NUL.
    fn argument(lua: &mut Stack) -> Raised<Format> {
        lua.check_bytes(1)?;
        let text = lua.bytes(1).unwrap_or_default();
        let text = text[..memchr::memchr(0, text).unwrap_or(text.len())].to_vec();
        Ok(Format { text, at: 0, big_endian: cfg!(target_endian = "big"), alignment: 1 })
    }

    /// Returns the next option, for an item at offset `at` of the data.
    fn next(&mut self, lua: &mut Stack, at: usize) -> Raised<Option<Item>> {
        let Some(&option) = self.text.get(self.at) else { return Ok(None) };
        self.at += 1;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(lua, 1)?,
            b'i' | b'I' => {
                let size = self.number(lua, 4)?;
                if size > MAX_INTEGER {
                    let text = format!("integral size {size} is larger than limit of {MAX_INTEGER}");
                    return lua.raise_text(&text);
                }
                size
            }
            _ => 0,
        } as usize;
        let padding = if size == 0 || option == b'c' {
            0
        } else {
            let unit = size.min(self.alignment as usize);
            // A size that is not a power of two gives the same odd alignment as in C.
            unit.wrapping_sub(at & unit.wrapping_sub(1)) & unit.wrapping_sub(1)
        };
        Ok(Some(Item { option, size, padding }))
    }

    fn number(&mut self, lua: &mut Stack, default: i32) -> Raised<i32> {
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let text = &self.text[self.at..self.at + digits];
        self.at += digits;
        match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(number),
            None => lua.raise_text("integral size overflow"),
        }
    }

    /// Applies an option that sets a mode.
    fn control(&mut self, lua: &mut Stack, option: u8) -> Raised<()> {
        match option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let alignment = self.number(lua, MAX_ALIGNMENT)?;
                if alignment <= 0 || alignment & (alignment - 1) != 0 {
                    return lua.raise_text(&format!("alignment {alignment} is not a power of 2"));
                }
                self.alignment = alignment;
            }
            _ => {
                return lua.argument_error(1, [&b"invalid format option '"[..], &[option], b"'"].concat());
            }
        }
        Ok(())
    }

    fn in_order(&self, bytes: &mut [u8]) {
        if self.big_endian != cfg!(target_endian = "big") {
            bytes.reverse();
        }
    }
}

fn is_integer(option: u8) -> bool {
    matches!(option, b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I')
}

/// Converts a number to 64 bits as C's casts do on x86-64.
fn to_word(value: f64) -> u64 {
    const TWO_63: f64 = 9223372036854775808.0;
    if value >= TWO_63 { truncate(value - TWO_63) as u64 ^ 1 << 63 } else { truncate(value) as u64 }
}

fn pack(lua: &mut Stack) -> Raised<usize> {
    let mut format = Format::argument(lua)?;
    // Redis also marks the end of the arguments with nil; a missing argument reads as nil.
    lua.push_nil();
    let mut packed = Vec::new();
    let mut argument = 2;
    while let Some(item) = format.next(lua, packed.len())? {
        packed.resize(packed.len() + item.padding, 0);
        match item.option {
            option if is_integer(option) => {
                let mut word = to_word(lua.check_number(argument)?);
                argument += 1;
                let start = packed.len();
                for _ in 0..item.size {
                    packed.push(word as u8);
                    word >>= 8;
                }
                if format.big_endian {
                    packed[start..].reverse();
                }
            }
            b'x' => packed.push(0),
            b'f' => {
                let mut bytes = (lua.check_number(argument)? as f32).to_ne_bytes();
                argument += 1;
                format.in_order(&mut bytes);
                packed.extend_from_slice(&bytes);
            }
            b'd' => {
                let mut bytes = lua.check_number(argument)?.to_ne_bytes();
                argument += 1;
                format.in_order(&mut bytes);
                packed.extend_from_slice(&bytes);
            }
            b'c' | b's' => {
                lua.check_bytes(argument)?;
                let text = lua.bytes(argument).unwrap_or_default();
                argument += 1;
                let len = if item.size == 0 { text.len() } else { item.size };
                match text.get(..len) {
                    Some(text) => packed.extend_from_slice(text),
                    None => return lua.argument_error(argument, "string too short"),
                }
                if item.option == b's' {
                    packed.push(0);
                }
            }
            option => format.control(lua, option)?,
        }
        lua.check_size(packed.len())?;
    }
    lua.push_bytes(&packed);
    Ok(1)
}

fn unpack(lua: &mut Stack) -> Raised<usize> {
    let mut format = Format::argument(lua)?;
    lua.check_bytes(2)?;
    let data = lua.bytes(2).unwrap_or_default().to_vec();
    let position =
        if matches!(lua.kind(3), LuaType::None | LuaType::Nil) { 1 } else { lua.check_integer(3)? };
    if position == 0 {
        return lua.argument_error(3, "offset must be 1 or greater");
    }
    let mut at = (position as usize).wrapping_sub(1);
    let mut results = 0;
    while let Some(mut item) = format.next(lua, at)? {
        at = at.wrapping_add(item.padding);
        if !fits(&data, at, item.size) {
            return lua.argument_error(2, "data string too short");
        }
        if !lua.reserve(2) {
            return lua.raise_text("stack overflow (too many results)");
        }
        match item.option {
            option if is_integer(option) => {
                let value =
                    read_integer(&data[at..at + item.size], format.big_endian, option.is_ascii_lowercase());
                lua.push_number(value);
                results += 1;
            }
            b'x' => {}
            b'f' => {
                let mut bytes: [u8; 4] = data[at..at + 4].try_into().unwrap_or_default();
                format.in_order(&mut bytes);
                lua.push_number(f32::from_ne_bytes(bytes) as f64);
                results += 1;
            }
            b'd' => {
                let mut bytes: [u8; 8] = data[at..at + 8].try_into().unwrap_or_default();
                format.in_order(&mut bytes);
                lua.push_number(f64::from_ne_bytes(bytes));
                results += 1;
            }
            b'c' => {
                if item.size == 0 {
                    let Some(len) = lua.number(-1).filter(|_| results > 0) else {
                        return lua.raise_text("format 'c0' needs a previous size");
                    };
                    lua.pop(1);
                    results -= 1;
                    item.size = to_word(len) as usize;
                    if !fits(&data, at, item.size) {
                        return lua.argument_error(2, "data string too short");
                    }
                }
                lua.push_bytes(&data[at..at + item.size]);
                results += 1;
            }
            b's' => {
                let Some(len) = memchr::memchr(0, &data[at..]) else {
                    return lua.raise_text("unfinished string in data");
                };
                lua.push_bytes(&data[at..at + len]);
                results += 1;
                item.size = len + 1;
            }
            option => format.control(lua, option)?,
        }
        at += item.size;
    }
    lua.push_number(at.wrapping_add(1) as i64 as f64);
    Ok(results + 1)
}

fn fits(data: &[u8], at: usize, size: usize) -> bool {
    size <= data.len() && at <= data.len() - size
}

fn read_integer(bytes: &[u8], big_endian: bool, signed: bool) -> f64 {
    let push = |word: u64, &byte: &u8| word << 8 | byte as u64;
    let mut word = if big_endian { bytes.iter().fold(0, push) } else { bytes.iter().rev().fold(0, push) };
    if !signed {
        return word as f64;
    }
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32).wrapping_mul(8).wrapping_sub(1));
    if word & mask != 0 {
        word |= mask;
    }
    word as i64 as f64
}

fn size(lua: &mut Stack) -> Raised<usize> {
    let mut format = Format::argument(lua)?;
    let mut at = 0usize;
    while let Some(item) = format.next(lua, at)? {
        at += item.padding;
        match item.option {
            b's' => return lua.argument_error(1, "option 's' has no fixed size"),
            b'c' if item.size == 0 => return lua.argument_error(1, "option 'c0' has no fixed size"),
            option if !option.is_ascii_alphanumeric() => format.control(lua, option)?,
            _ => {}
        }
        at += item.size;
    }
    lua.push_number(at as f64);
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_extend_their_sign() {
        assert_eq!(read_integer(&[0xff, 0xff], false, true), -1.0);
        assert_eq!(read_integer(&[0xff, 0xff], false, false), 65535.0);
        assert_eq!(read_integer(&[0x01, 0x02], true, true), 258.0);
    }

    #[test]
    fn numbers_wrap_as_casts_do() {
        assert_eq!(to_word(-1.0), u64::MAX);
        assert_eq!(to_word(9223372036854775808.0), 1 << 63);
        assert_eq!(to_word(2e19), 0);
        assert_eq!(to_word(3.9), 3);
    }
}
