//! The tokens of a script.

/// Iterates over the tokens of a Lua script with their positions, without white space and comments.
pub struct Tokens<'a> {
    script: &'a str,
    at: usize,
}

/// Operators of more than one character, longest first.
const LONG: [&str; 6] = ["...", "..", "==", "~=", "<=", ">="];

impl<'a> Tokens<'a> {
    /// Returns the tokens of a script.
    pub fn of(script: &'a str) -> Tokens<'a> {
        // The line that names the engine is not Lua.
        let first = if script.starts_with("#!") { script.find('\n').unwrap_or(script.len()) } else { 0 };
        Tokens { script, at: first }
    }

    /// Returns the length of the text up to and including `end`.
    fn behind(&self, end: &str) -> usize {
        let rest = &self.script[self.at..];
        rest.find(end).map_or(rest.len(), |at| at + end.len())
    }

    /// Returns the length of `[[…]]` or `[=[…]=]`, if one begins here.
    fn long_bracket(&self) -> Option<usize> {
        let rest = self.script[self.at..].strip_prefix('[')?;
        let level = rest.len() - rest.trim_start_matches('=').len();
        rest[level..].starts_with('[').then(|| self.behind(&format!("]{}]", "=".repeat(level))))
    }

    fn quoted(&self, quote: char) -> usize {
        let mut escaped = true;
        let end = self.script[self.at..].find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        end.map_or(self.script.len() - self.at, |end| end + 1)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        loop {
            let start = self.at;
            let rest = &self.script[start..];
            let first = rest.chars().next()?;
            if let Some(comment) = rest.strip_prefix("--") {
                self.at += 2;
                let newline = comment.find('\n').unwrap_or(comment.len());
                self.at += self.long_bracket().unwrap_or(newline);
                continue;
            }
            if first.is_whitespace() {
                self.at += first.len_utf8();
                continue;
            }
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            self.at += match first {
                '"' | '\'' => self.quoted(first),
                '[' => self.long_bracket().unwrap_or(1),
                _ if is_part(first) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
                _ => {
                    let long = LONG.iter().find(|operator| rest.starts_with(**operator));
                    long.map_or(first.len_utf8(), |operator| operator.len())
                }
            };
            return Some((start, &self.script[start..self.at]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_comments_and_operators_are_whole() {
        let tokens: Vec<&str> =
            Tokens::of("#!lua\na[1]~='x\\'y' -- b\n<=[[ c ]]..--[[ d ]]10").map(|(_, token)| token).collect();
        assert_eq!(tokens, ["a", "[", "1", "]", "~=", "'x\\'y'", "<=", "[[ c ]]", "..", "10"]);
    }
}
