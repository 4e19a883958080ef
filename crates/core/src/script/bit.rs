//! The `bit` library: operations on 32-bit words, as BitOp defines them.

use super::bridge::{Function, Raised, Stack};

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("tobit", tobit),
    ("bnot", bnot),
    ("band", |lua| fold(lua, |a, b| a & b)),
    ("bor", |lua| fold(lua, |a, b| a | b)),
    ("bxor", |lua| fold(lua, |a, b| a ^ b)),
    ("lshift", |lua| shift(lua, |word, n| word << n)),
    ("rshift", |lua| shift(lua, |word, n| (word as u32 >> n) as i32)),
    ("arshift", |lua| shift(lua, |word, n| word >> n)),
    ("rol", |lua| shift(lua, |word, n| word.rotate_left(n))),
    ("ror", |lua| shift(lua, |word, n| word.rotate_right(n))),
    ("bswap", bswap),
    ("tohex", tohex),
];

/// Returns the low 32 bits of a number. The addition rounds numbers up to 2^51 to the nearest integer, ties to even.
fn word(value: f64) -> i32 {
    const ROUNDER: f64 = 6755399441055744.0;
    (value + ROUNDER).to_bits() as u32 as i32
}

fn argument(lua: &mut Stack, n: i32) -> Raised<i32> {
    lua.check_number(n).map(word)
}

fn give(lua: &mut Stack, value: i32) -> Raised<usize> {
    lua.push_number(value as f64);
    Ok(1)
}

fn tobit(lua: &mut Stack) -> Raised<usize> {
    let value = argument(lua, 1)?;
    give(lua, value)
}

fn bnot(lua: &mut Stack) -> Raised<usize> {
    let value = argument(lua, 1)?;
    give(lua, !value)
}

fn bswap(lua: &mut Stack) -> Raised<usize> {
    let value = argument(lua, 1)?;
    give(lua, value.swap_bytes())
}

fn fold(lua: &mut Stack, combine: fn(i32, i32) -> i32) -> Raised<usize> {
    let mut value = argument(lua, 1)?;
    // In descending order, which decides which of several bad arguments the error names.
    for n in (2..=lua.len()).rev() {
        value = combine(value, argument(lua, n)?);
    }
    give(lua, value)
}

fn shift(lua: &mut Stack, operation: fn(i32, u32) -> i32) -> Raised<usize> {
    let value = argument(lua, 1)?;
    let by = argument(lua, 2)? as u32 & 31;
    give(lua, operation(value, by))
}

fn tohex(lua: &mut Stack) -> Raised<usize> {
    let value = argument(lua, 1)? as u32;
    let digits = if lua.len() < 2 { 8 } else { argument(lua, 2)? };
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let len = digits.unsigned_abs().min(8) as usize;
    lua.push_bytes(&text.as_bytes()[8 - len..]);
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn numbers_wrap_and_round_to_even() {
        assert_eq!(word(4294967295.0), -1);
        assert_eq!(word(-1.0), -1);
        assert_eq!(word(2.5), 2);
        assert_eq!(word(3.5), 4);
        assert_eq!(word(1e15), -1530494976);
    }
}
