//! Parsing and printing of numbers as Redis does it.

use crate::grisu;
use crate::version::Version;

/// Reads a decimal integer as strictly as Redis does: no blanks, no `+`, no leading zeros, no overflow.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [b'0'] => return (!negative).then_some(0),
        // Nineteen digits fit the unsigned magnitude.
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude * 10 + (digit - b'0') as u64;
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Reads the cursor of a scan: any unsigned decimal number, possibly with leading zeros. Versions before 7.2 also
/// accept a sign, as C's `strtoul` does.
pub fn parse_cursor(text: &[u8], version: Version) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix('-') {
        Some(magnitude) if version < Version::V7_2 => magnitude.parse().ok().map(u64::wrapping_neg),
        _ => text.parse().ok(),
    }
}

/// Reads a double as Redis reads the operands of commands: as [`strtod`] does, but refuses leading blanks, the empty
/// text and numbers outside the range of doubles.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let value = strtod_all(text)?;
    (starts_as_number(text) && !is_beyond_range(text, value)).then_some(value)
}

/// Returns whether C's `strtod` reports ERANGE for finite text that reads as `value`: the number overflows or
/// underflows.
pub fn is_beyond_range(text: &[u8], value: f64) -> bool {
    if value.is_infinite() {
        return !text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    }
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E' | b'p' | b'P')).next().unwrap_or_default();
    value == 0.0 && mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Returns whether a text may be an operand: Redis refuses the empty text and leading blanks.
pub fn starts_as_number(text: &[u8]) -> bool {
    text.first().is_some_and(|&first| !is_space(first))
}

/// Returns what C's `isspace` returns.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads a whole text as C's `strtod` does, but refuses NaN. Accepts leading blanks, decimal and hexadecimal numbers,
/// and `inf`/`infinity` in any case; the empty text is zero. Redis 8.0 and Valkey 9.0 have a parser of their own, which
/// accepts neither blanks nor hexadecimal numbers.
pub fn strtod(text: &[u8], version: Version) -> Option<f64> {
    // A C string ends at the first NUL.
    let text = text.split(|byte| *byte == 0).next()?;
    let refuses =
        uses_fast_float(version) && (text.first().is_some_and(|&byte| is_space(byte)) || is_hex(text));
    strtod_all(text).filter(|_| !refuses)
}

/// Returns whether a release reads doubles with a parser of its own instead of C's `strtod`.
pub fn uses_fast_float(version: Version) -> bool {
    version >= Version::V8_0 || version.is_valkey_since(Version::Valkey9_0)
}

/// Returns whether a text is a hexadecimal number.
fn is_hex(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    unsigned.len() > 1 && unsigned[..2].eq_ignore_ascii_case(b"0x")
}

/// Reads the operand of a command as [`parse_f64`] does. Valkey 9.0 accepts no hexadecimal numbers.
pub fn parse_operand(text: &[u8], version: Version) -> Option<f64> {
    let refuses = version.is_valkey_since(Version::Valkey9_0) && is_hex(text);
    parse_f64(text).filter(|_| !refuses)
}

fn strtod_all(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let blanks = text.iter().take_while(|&&byte| is_space(byte)).count();
    let text = std::str::from_utf8(&text[blanks..]).ok()?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with("0x") || unsigned.starts_with("0X") {
        let magnitude = parse_hex_f64(&unsigned[2..])?;
        return Some(if text.starts_with('-') { -magnitude } else { magnitude });
    }
    // Rust's parser accepts the same decimal grammar, and also `nan`, which Redis refuses.
    let value: f64 = text.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

/// Reads what follows the `0x` of a hexadecimal float: digits, a point, a binary exponent.
fn parse_hex_f64(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + digit.to_digit(16)? as f64;
    }
    let value = value * 2f64.powi(exponent.saturating_sub(4 * fraction.len() as i32));
    value.is_finite().then_some(value)
}

/// Returns a double in the form of Redis's replies: integers without a point; other numbers as `%.17g` before 7.2, and
/// in the shortest form that reads back since 7.2.
pub fn format_double(value: f64, version: Version) -> String {
    if version < Version::V7_2 {
        return format_g(value, 17);
    }
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    match as_integer(value) {
        Some(integer) => integer.to_string(),
        None => shortest(value),
    }
}

/// Returns the integer that equals the double, if it lies within the range that Redis considers safe: half that of an
/// `i64`.
pub fn as_integer(value: f64) -> Option<i64> {
    let half = (i64::MAX / 2) as f64;
    (value.fract() == 0.0 && (-half..=half).contains(&value)).then_some(value as i64)
}

/// Returns a decimal text that reads back as the finite `value`, in the layout of Redis's `fpconv`.
pub fn shortest(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    // The value is `digits`, read as an integer, times ten to the power of `k`.
    let (digits, k) = grisu::digits(value.abs());
    let n = digits.len() as i32;
    let exp = (k + n - 1).abs();
    let body = if k >= 0 && exp < n + 7 {
        format!("{digits}{}", "0".repeat(k as usize))
    } else if k < 0 && (k > -7 || exp < 4) {
        let point = n + k;
        if point <= 0 {
            format!("0.{}{digits}", "0".repeat(-point as usize))
        } else {
            format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
        }
    } else {
        let sign = if k + n - 1 < 0 { '-' } else { '+' };
        let tail = if n > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{tail}e{sign}{exp}", &digits[..1])
    };
    if value < 0.0 { format!("-{body}") } else { body }
}

/// Returns what C's `%.{precision}g` prints.
pub fn format_g(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan".into() } else { "nan".into() };
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let mantissa = trim_zeros(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    } else {
        let fixed = format!("{value:.*}", (precision as i32 - 1 - exponent) as usize);
        trim_zeros(&fixed).to_string()
    }
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Appends a string in double quotes with escapes, in the form that MONITOR and redis-cli print.
pub fn quote(bytes: &[u8], into: &mut Vec<u8>) {
    into.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => into.extend_from_slice(&[b'\\', byte]),
            b'\n' => into.extend_from_slice(b"\\n"),
            b'\r' => into.extend_from_slice(b"\\r"),
            b'\t' => into.extend_from_slice(b"\\t"),
            7 => into.extend_from_slice(b"\\a"),
            8 => into.extend_from_slice(b"\\b"),
            b' '..=b'~' => into.push(byte),
            _ => into.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    into.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        for bad in ["", "-", "+1", " 1", "1 ", "01", "-0", "9223372036854775808", "1a"] {
            assert_eq!(parse_i64(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn doubles_print_by_version() {
        assert_eq!(format_double(0.1, Version::V7_0), "0.10000000000000001");
        assert_eq!(format_double(0.1, Version::V7_4), "0.1");
        assert_eq!(format_double(922337203685477.0, Version::V7_0), "922337203685477");
        assert_eq!(format_double(1e300, Version::V7_0), "1.0000000000000001e+300");
        assert_eq!(format_double(1e300, Version::V7_4), "1e+300");
        assert_eq!(format_double(1e17, Version::V7_0), "1e+17");
        assert_eq!(format_double(1e17, Version::V7_4), "100000000000000000");
    }
}
