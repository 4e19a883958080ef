//! The text of a script: the commands that it calls, and other parts.

use smallvec::SmallVec;

/// The commands in the order in which the script's text has them.
pub type Commands<'a> = SmallVec<[&'a [u8]; 32]>;

/// Returns the commands in a script's text, or `None` if there are more than any known script has.
pub fn commands(script: &[u8]) -> Option<Commands<'_>> {
    let mut commands = Commands::new();
    let mut rest = script;
    while let Some(at) = memchr::memmem::find(rest, b"call(") {
        rest = rest[at + 5..].trim_ascii_start();
        let command = match rest.split_first()? {
            (quote @ (b'\'' | b'"'), rest) => &rest[..memchr::memchr(*quote, rest)?],
            _ if rest.starts_with(b"ARGV[") => b"publish",
            _ => return None,
        };
        if commands.len() == commands.inline_size() {
            return None;
        }
        commands.push(command);
    }
    Some(commands)
}

/// Returns whether commands match a shape such as `get? hexists del|unlink`.
pub fn matches(shape: &str, commands: &[&[u8]]) -> bool {
    let (step, rest) = shape.split_once(' ').unwrap_or((shape, ""));
    if step.is_empty() {
        return commands.is_empty();
    }
    let (names, optional) = step.strip_suffix('?').map_or((step, false), |names| (names, true));
    let takes = commands
        .first()
        .is_some_and(|command| names.split('|').any(|name| name.as_bytes().eq_ignore_ascii_case(command)));
    takes && matches(rest, &commands[1..]) || optional && matches(rest, commands)
}

/// Returns whether a text contains `words`, ignoring white space.
pub fn contains(text: &[u8], words: &[u8]) -> bool {
    end_of(text, words).is_some()
}

/// Returns the digit that follows `words` in a text.
pub fn digit_after(text: &[u8], words: &str) -> Option<usize> {
    let digit = text[end_of(text, words.as_bytes())?..].trim_ascii_start().first()?;
    char::from(*digit).to_digit(10).map(|digit| digit as usize)
}

/// Returns the highest index that a script uses after a text such as `KEYS[`, or 0 if there is none.
pub fn highest_index(script: &[u8], words: &[u8]) -> usize {
    let digits = memchr::memmem::find_iter(script, words).filter_map(|at| script.get(at + words.len()));
    digits.filter_map(|digit| char::from(*digit).to_digit(10)).max().unwrap_or(0) as usize
}

/// Returns the position after `words` in a text, ignoring white space.
fn end_of(text: &[u8], words: &[u8]) -> Option<usize> {
    let Some((first, words)) = words.split_first() else { return Some(0) };
    memchr::memchr_iter(*first, text).find_map(|start| {
        let mut words = words.iter();
        let mut at = start + 1;
        for byte in &text[at..] {
            match words.as_slice().first() {
                None => break,
                Some(word) if word == byte => drop(words.next()),
                Some(_) if byte.is_ascii_whitespace() => {}
                Some(_) => return None,
            }
            at += 1;
        }
        words.as_slice().is_empty().then_some(at)
    })
}
