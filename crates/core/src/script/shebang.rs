//! The first line of a script: `#!lua name=… flags=…`.

use crate::error::Error;
use crate::version::Version;

/// The flags that a script declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Whether the script declares flags at all. Redis treats a script without a declaration leniently, as before 7.0.
    pub declared: bool,
    pub no_writes: bool,
    pub allow_oom: bool,
    pub allow_stale: bool,
    pub no_cluster: bool,
    pub allow_cross_slot_keys: bool,
}

/// Returns the flags that a script declares, unless it declares none or its first line is wrong.
pub fn declared_flags(body: &[u8], version: Version) -> Option<Flags> {
    parse(body, version).ok().map(|(flags, _)| flags).filter(|flags| flags.declared)
}

/// Parses the first line if it is a shebang. Returns the flags and the number of bytes before the code. The code begins
/// with the line's end, so line numbers stay the same.
pub(super) fn parse(body: &[u8], version: Version) -> Result<(Flags, usize), Error> {
    if !body.starts_with(b"#!") {
        return Ok((Flags::default(), 0));
    }
    let Some(len) = memchr::memchr(b'\n', body) else {
        return Err(Error::new("ERR Invalid script shebang"));
    };
    let words = split_words(&body[..len]).ok_or(Error::new("ERR Invalid engine in script shebang"))?;
    let mut words = words.iter().map(|word| String::from_utf8_lossy(word));
    let engine = words.next().unwrap_or_default();
    match engine.strip_prefix("#!") {
        Some("lua") => {}
        Some(name) if version.is_valkey() && name.eq_ignore_ascii_case("lua") => {}
        Some(name) if version.is_valkey() => {
            return Err(format!("ERR Could not find scripting engine '{name}'").into());
        }
        _ => return Err(format!("ERR Unexpected engine in script shebang: {engine}").into()),
    }
    let mut flags = Flags { declared: true, ..Flags::default() };
    for word in words {
        let Some(list) = word.strip_prefix("flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {word}").into());
        };
        for flag in list.split(',').filter(|_| !list.is_empty()) {
            *flags.named(flag).ok_or_else(|| format!("ERR Unexpected flag in script shebang: {flag}"))? =
                true;
        }
    }
    Ok((flags, len))
}

/// Splits a line at blanks; words may have quoted parts. Returns `None` if a quote is not closed or has text directly
/// after it.
pub(super) fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let mut word = Vec::new();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                quote @ (b'"' | b'\'') => {
                    let end = memchr::memchr(quote, rest)?;
                    word.extend_from_slice(&rest[..end]);
                    rest = &rest[end + 1..];
                    if rest.first().is_some_and(|next| !next.is_ascii_whitespace()) {
                        return None;
                    }
                }
                byte if byte.is_ascii_whitespace() => break,
                byte => word.push(byte),
            }
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

impl Flags {
    /// Returns the names of the flags that are set, in Redis's order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("no-writes", self.no_writes),
            ("allow-oom", self.allow_oom),
            ("allow-stale", self.allow_stale),
            ("no-cluster", self.no_cluster),
            ("allow-cross-slot-keys", self.allow_cross_slot_keys),
        ];
        flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }

    /// Returns the flag with a name in lower case.
    pub(super) fn named(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "no-writes" => &mut self.no_writes,
            "allow-oom" => &mut self.allow_oom,
            "allow-stale" => &mut self.allow_stale,
            "no-cluster" => &mut self.no_cluster,
            "allow-cross-slot-keys" => &mut self.allow_cross_slot_keys,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_end_belongs_to_the_code() {
        let (flags, skip) = parse(b"#!lua flags=no-writes,allow-oom\nreturn 1", Version::V7_4).unwrap();
        assert!(flags.declared && flags.no_writes && flags.allow_oom && !flags.no_cluster);
        assert_eq!(skip, 31);
        assert_eq!(parse(b"return 1", Version::V7_4).unwrap(), (Flags::default(), 0));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let text =
            |body: &[u8]| String::from_utf8(parse(body, Version::V7_4).unwrap_err().text().to_vec()).unwrap();
        assert_eq!(text(b"#!lua"), "ERR Invalid script shebang");
        assert_eq!(text(b"#!py\n"), "ERR Unexpected engine in script shebang: #!py");
        assert_eq!(text(b"#!lua x=1\n"), "ERR Unknown lua shebang option: x=1");
        assert_eq!(text(b"#!lua flags='a\n"), "ERR Invalid engine in script shebang");
        assert_eq!(text(b"#!lua flags=no-writes,\n"), "ERR Unexpected flag in script shebang: ");
        assert_eq!(text(b"#!lua flags=a\n"), "ERR Unexpected flag in script shebang: a");
    }
}
