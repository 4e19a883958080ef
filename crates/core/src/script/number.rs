//! Reads a number from the start of a text, as C's `strtod` does.

/// Returns the number at the start of `text`, which must not begin with blanks, and its length in bytes. The number may
/// be decimal, hexadecimal, `inf`, `infinity` or `nan`.
pub(super) fn read_prefix(text: &[u8]) -> Option<(f64, usize)> {
    let signed = matches!(text.first(), Some(b'+' | b'-')) as usize;
    let negative = text.first() == Some(&b'-');
    let body = &text[signed..];
    let (magnitude, len) =
        read_word(body).or_else(|| read_hexadecimal(body)).or_else(|| read_decimal(body))?;
    Some((if negative { -magnitude } else { magnitude }, signed + len))
}

fn starts_with_word(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn read_word(text: &[u8]) -> Option<(f64, usize)> {
    if starts_with_word(text, b"infinity") {
        return Some((f64::INFINITY, 8));
    }
    if starts_with_word(text, b"inf") {
        return Some((f64::INFINITY, 3));
    }
    if !starts_with_word(text, b"nan") {
        return None;
    }
    // `nan` may be followed by a word in parentheses.
    let payload = text[3..].strip_prefix(b"(").and_then(|rest| {
        let len = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        (rest.get(len) == Some(&b')')).then_some(len + 2)
    });
    Some((f64::NAN, 3 + payload.unwrap_or(0)))
}

fn digits(text: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_digit(byte)).count()
}

/// Returns the length of a mantissa: digits, a point and digits, with at least one digit.
fn mantissa_len(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<usize> {
    let whole = digits(text, is_digit);
    let fraction = match text.get(whole) {
        Some(b'.') => digits(&text[whole + 1..], is_digit) + 1,
        _ => 0,
    };
    match whole + fraction {
        0 => None,
        1 if fraction == 1 => None,
        len => Some(len),
    }
}

/// Returns the length of an exponent that begins with `letter`, or 0 if there is none.
fn exponent_len(text: &[u8], letter: u8) -> usize {
    if !text.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&letter)) {
        return 0;
    }
    let signed = matches!(text.get(1), Some(b'+' | b'-')) as usize;
    match digits(&text[1 + signed..], u8::is_ascii_digit) {
        0 => 0,
        len => 1 + signed + len,
    }
}

fn read_decimal(text: &[u8]) -> Option<(f64, usize)> {
    let mantissa = mantissa_len(text, u8::is_ascii_digit)?;
    let len = mantissa + exponent_len(&text[mantissa..], b'e');
    let value = std::str::from_utf8(&text[..len]).ok()?.parse().ok()?;
    Some((value, len))
}

fn read_hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let [b'0', b'x' | b'X', body @ ..] = text else { return None };
    let mantissa = mantissa_len(body, u8::is_ascii_hexdigit)?;
    let exponent = exponent_len(&body[mantissa..], b'p');
    let mut value = 0f64;
    let mut scale = 0i32;
    let mut in_fraction = false;
    for &byte in &body[..mantissa] {
        match (byte as char).to_digit(16) {
            Some(digit) => {
                value = value * 16.0 + digit as f64;
                scale -= 4 * in_fraction as i32;
            }
            None => in_fraction = true,
        }
    }
    let power = match exponent {
        0 => 0,
        len => {
            std::str::from_utf8(&body[mantissa + 1..mantissa + len]).ok()?.parse::<i32>().unwrap_or(i32::MAX)
        }
    };
    Some((value * 2f64.powi(power.saturating_add(scale)), 2 + mantissa + exponent))
}

#[cfg(test)]
mod tests {
    use super::read_prefix;

    #[test]
    fn the_longest_number_is_taken() {
        for (text, value, len) in [
            ("12abc", 12.0, 2),
            ("-1.5e3,", -1500.0, 6),
            ("1e", 1.0, 1),
            ("1e+", 1.0, 1),
            (".5", 0.5, 2),
            ("5.", 5.0, 2),
            ("0x1F]", 31.0, 4),
            ("0x", 0.0, 1),
            ("0x1.8p1", 3.0, 7),
            ("-inf", f64::NEG_INFINITY, 4),
            ("Infinity", f64::INFINITY, 8),
        ] {
            assert_eq!(read_prefix(text.as_bytes()), Some((value, len)), "{text}");
        }
        assert!(read_prefix(b"nan(1)x").is_some_and(|(value, len)| value.is_nan() && len == 6));
        for text in ["", "-", ".", "e5", "x"] {
            assert_eq!(read_prefix(text.as_bytes()), None, "{text}");
        }
    }
}
