//! Redis's glob patterns over bytes: `*`, `?`, `[a-z]`, `[^a]` and escapes with `\`.

/// Returns whether a pattern contains special characters, so that it can match more than its literal text.
pub fn is_pattern(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[\\".contains(byte))
}

/// Returns whether `text` matches `pattern`.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let mut skip_longer = false;
    match_here(pattern, text, ignore_case, &mut skip_longer, 0)
}

/// The deepest nesting of `*` that the matcher follows; deeper patterns match nothing, as in Redis.
const MAX_DEPTH: usize = 1000;

/// Matches the rest of a pattern against the rest of a text. Sets `skip_longer` once the text has run out inside a `*`:
/// no longer skip of an outer `*` can match either. This keeps patterns such as `a*a*a*b` from taking exponential time.
fn match_here(mut pattern: &[u8], mut text: &[u8], fold: bool, skip_longer: &mut bool, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    while let (Some(&first), false) = (pattern.first(), text.is_empty()) {
        match first {
            b'*' => {
                while pattern.get(1) == Some(&b'*') {
                    pattern = &pattern[1..];
                }
                if pattern.len() == 1 {
                    return true;
                }
                while !text.is_empty() {
                    if match_here(&pattern[1..], text, fold, skip_longer, depth + 1) {
                        return true;
                    }
                    if *skip_longer {
                        return false;
                    }
                    text = &text[1..];
                }
                *skip_longer = true;
                return false;
            }
            b'?' => pattern = &pattern[1..],
            b'[' => {
                let (matched, rest) = match_class(&pattern[1..], text[0], fold);
                if !matched {
                    return false;
                }
                pattern = rest;
            }
            _ => {
                let literal = if first == b'\\' && pattern.len() >= 2 {
                    pattern = &pattern[1..];
                    pattern[0]
                } else {
                    first
                };
                if !same(literal, text[0], fold) {
                    return false;
                }
                pattern = &pattern[1..];
            }
        }
        text = &text[1..];
        if text.is_empty() {
            while pattern.first() == Some(&b'*') {
                pattern = &pattern[1..];
            }
            break;
        }
    }
    pattern.is_empty() && text.is_empty()
}

/// Matches one byte against the character class that follows `[`. Returns whether it matches, and the pattern after the
/// class's `]`.
fn match_class(mut pattern: &[u8], byte: u8, fold: bool) -> (bool, &[u8]) {
    let negated = pattern.first() == Some(&b'^');
    if negated {
        pattern = &pattern[1..];
    }
    let mut matched = false;
    loop {
        match *pattern {
            // An unclosed class ends with the pattern.
            [] => return (matched != negated, pattern),
            [b']', ref rest @ ..] => return (matched != negated, rest),
            [b'\\', literal, ref rest @ ..] => {
                matched |= literal == byte;
                pattern = rest;
            }
            [start, b'-', end, ref rest @ ..] => {
                let lower = |b: u8| if fold { b.to_ascii_lowercase() } else { b };
                let (start, end) = (lower(start.min(end)), lower(start.max(end)));
                matched |= (start..=end).contains(&lower(byte));
                pattern = rest;
            }
            [literal, ref rest @ ..] => {
                matched |= same(literal, byte, fold);
                pattern = rest;
            }
        }
    }
}

fn same(a: u8, b: u8, fold: bool) -> bool {
    if fold { a.eq_ignore_ascii_case(&b) } else { a == b }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            // As in Redis, not even `*` matches the empty text; KEYS and SCAN handle `*` themselves before they match.
            ("*", "", false),
            ("a*c", "abbc", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hello", true),
            ("h[^e]llo", "hello", false),
            ("h[a-f]llo", "hello", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[abc", "b", true),
            ("a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            let actual = matches(pattern.as_bytes(), text.as_bytes(), false);
            assert_eq!(actual, expected, "{pattern} {text}");
        }
    }
}
