//! The operators: how a script is changed.
//!
//! | operator | what it changes |
//! |---|---|
//! | `delete call` | a statement that is a call (`redis.call`, `table.insert`) is removed: a write, an expiry or a message is missing |
//! | `delete assignment` | an assignment to a variable that exists is removed |
//! | `delete return` | a `return` at the end of a block is removed, so that the script goes on |
//! | `delete expiry` | `'px'` and the time after it are removed from a call |
//! | `swap command` | a command is replaced by a similar one: [`COMMANDS`] |
//! | `change index` | the index in `KEYS[i]` or `ARGV[i]` is replaced by the next, the last one by the one before |
//! | `change constant` | a number is one greater; a number in quotes has the other sign, or 1 instead of 0 |
//! | `change word` | `read` becomes `write` and `write` becomes `read` |
//! | `change reply` | `return nil` becomes `return 1`, any other reply `nil` |
//! | `flip comparison` | `==` and `~=` are exchanged, as are `<` and `<=`, `>` and `>=` |
//! | `negate condition` | the condition of an `if` or `while`, unless it is a single `==` or `~=` |
//! | `swap logic` | `and` and `or` are exchanged |
//! | `swap arithmetic` | `+` and `-` are exchanged, a sign before an expression is removed |
//! | `swap bound` | `math.max` and `math.min` are exchanged |
//!
//! The position of a mutation is the number of the first token that it changes, from 1.

use crate::fuzz::tokens::Tokens;

/// One change of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    pub operator: &'static str,
    /// The number of the first changed token, from 1.
    pub at: usize,
    /// What the script has there, and what the mutant has.
    pub old: String,
    pub new: String,
    /// The whole text of the mutant.
    pub text: String,
}

/// Commands with similar ones of the same form.
const COMMANDS: &[(&str, &str)] = &[
    ("decr", "incr"),
    ("decrby", "incrby"),
    ("del", "exists"),
    ("hdel", "hexists"),
    ("hset", "hsetnx"),
    ("hsetnx", "hset"),
    ("hkeys", "hvals"),
    ("incr", "decr"),
    ("incrby", "decrby"),
    ("lpop", "rpop"),
    ("pexpire", "expire"),
    ("pttl", "ttl"),
    ("rpush", "lpush"),
    ("zrange", "zrevrange"),
    ("zrem", "zscore"),
];

/// Returns all mutations of a script, in the order of their operators.
pub fn mutations(script: &str) -> Vec<Mutation> {
    let tokens: Vec<(usize, &str)> = Tokens::of(script).collect();
    let mut mutator = Mutator { script, tokens, found: Vec::new() };
    mutator.delete_statements();
    mutator.replace_tokens();
    mutator.change_replies();
    mutator.negate_conditions();
    mutator.found
}

struct Mutator<'a> {
    script: &'a str,
    tokens: Vec<(usize, &'a str)>,
    found: Vec<Mutation>,
}

impl<'a> Mutator<'a> {
    /// Returns a token, or an empty text before the first and after the last.
    fn token(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |(_, token)| token)
    }

    fn before(&self, at: usize) -> &'a str {
        at.checked_sub(1).map_or("", |at| self.token(at))
    }

    /// Replaces the tokens from `first` up to and without `end`.
    fn replace(&mut self, operator: &'static str, (first, end): (usize, usize), new: String) {
        let start = self.tokens[first].0;
        let stop = self.tokens[end - 1].0 + self.tokens[end - 1].1.len();
        self.found.push(Mutation {
            operator,
            at: first + 1,
            old: self.script[start..stop].to_owned(),
            text: [&self.script[..start], &new, &self.script[stop..]].concat(),
            new,
        });
    }

    /// Returns the position after the bracket that closes the one at `open`.
    fn closed(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.tokens.len() {
            match self.token(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        self.tokens.len()
    }

    /// Returns the position after the expression that begins at `first`.
    fn expression_end(&self, first: usize) -> usize {
        let mut at = first;
        let mut needs_operand = true;
        while at < self.tokens.len() {
            let token = self.token(at);
            let next = match token {
                "(" | "{" => self.closed(at),
                "[" if !needs_operand => self.closed(at),
                "not" | "-" | "#" if needs_operand => {
                    at += 1;
                    continue;
                }
                "nil" | "true" | "false" => at + 1,
                _ if is_operator(token) => {
                    (at, needs_operand) = (at + 1, true);
                    continue;
                }
                _ if needs_operand && is_operand(token) => at + 1,
                _ => break,
            };
            // Two operands in a row belong to two statements; a call follows its function at once.
            if !needs_operand && !matches!(token, "(" | "[" | "{") {
                break;
            }
            (at, needs_operand) = (next, false);
        }
        at
    }

    fn delete_statements(&mut self) {
        for at in 0..self.tokens.len() {
            let name = self.token(at);
            let is_call = matches!(name, "redis" | "table") && self.token(at + 1) == ".";
            if is_call && begins_statement(self.before(at)) {
                self.delete("delete call", at, self.closed(at + 3));
            }
            let is_variable = is_operand(name) && !name.starts_with(['\'', '"']) && self.token(at + 1) == "=";
            if is_variable && begins_statement(self.before(at)) {
                self.delete("delete assignment", at, self.expression_end(at + 2));
            }
            // At the end of the script there is nothing to go on with.
            if name == "return" {
                let end = self.expression_end(at + 1);
                let end = end + usize::from(self.token(end) == ";");
                if end < self.tokens.len() {
                    self.delete("delete return", at, end);
                }
            }
            if name == "'px'" {
                // After the comma.
                let end = self.expression_end(at + 2);
                self.replace("delete expiry", (at - 1, end), String::new());
            }
        }
    }

    fn delete(&mut self, operator: &'static str, first: usize, end: usize) {
        let end = end + usize::from(self.token(end) == ";");
        // White space keeps the tokens around it apart.
        self.replace(operator, (first, end), " ".to_owned());
    }

    fn replace_tokens(&mut self) {
        let highest = |table: &str| {
            let indexes = self.tokens.windows(3).filter(|three| three[0].1 == table && three[1].1 == "[");
            indexes.filter_map(|three| three[2].1.parse().ok()).max().unwrap_or(0)
        };
        let highest = [("KEYS", highest("KEYS")), ("ARGV", highest("ARGV"))];
        for at in 0..self.tokens.len() {
            let token = self.token(at);
            let is_index = self.before(at) == "["
                && self.token(at + 1) == "]"
                && matches!(at.checked_sub(2).map_or("", |at| self.token(at)), "KEYS" | "ARGV");
            let is_command = self.before(at) == "(" && at >= 2 && self.token(at - 2) == "call";
            let (operator, new) = match token {
                "==" => ("flip comparison", "~=".to_owned()),
                "~=" => ("flip comparison", "==".to_owned()),
                "<" => ("flip comparison", "<=".to_owned()),
                "<=" => ("flip comparison", "<".to_owned()),
                ">" => ("flip comparison", ">=".to_owned()),
                ">=" => ("flip comparison", ">".to_owned()),
                "and" => ("swap logic", "or".to_owned()),
                "or" => ("swap logic", "and".to_owned()),
                "+" => ("swap arithmetic", "-".to_owned()),
                "-" if !is_operand(self.before(at)) && !matches!(self.before(at), ")" | "]") => {
                    match self.token(at + 1).parse::<i64>() {
                        // `change constant` changes it.
                        Ok(_) => continue,
                        Err(_) => ("swap arithmetic", String::new()),
                    }
                }
                "-" => ("swap arithmetic", "+".to_owned()),
                "max" => ("swap bound", "min".to_owned()),
                "min" => ("swap bound", "max".to_owned()),
                "'read'" => ("change word", "'write'".to_owned()),
                "'write'" => ("change word", "'read'".to_owned()),
                _ if is_index => {
                    let Ok(index) = token.parse::<usize>() else { continue };
                    let last = highest.iter().find(|(table, _)| *table == self.token(at - 2));
                    let new = match last {
                        Some((_, last)) if index < *last => index + 1,
                        _ if index > 1 => index - 1,
                        _ => continue,
                    };
                    ("change index", new.to_string())
                }
                _ if is_command => {
                    let name = token.trim_matches(['\'', '"']).to_ascii_lowercase();
                    let Some((_, other)) = COMMANDS.iter().find(|(command, _)| *command == name) else {
                        continue;
                    };
                    ("swap command", format!("'{other}'"))
                }
                _ => match (token.parse::<i64>(), token.trim_matches('\'').parse::<i64>()) {
                    (Ok(number), _) => ("change constant", (number + 1).to_string()),
                    (_, Ok(0)) => ("change constant", "'1'".to_owned()),
                    (_, Ok(number)) => ("change constant", format!("'{}'", -number)),
                    _ => continue,
                },
            };
            self.replace(operator, (at, at + 1), new);
        }
    }

    fn change_replies(&mut self) {
        for at in 0..self.tokens.len() {
            if self.token(at) != "return" {
                continue;
            }
            let end = self.expression_end(at + 1);
            let new = if self.token(at + 1) == "nil" { "1" } else { "nil" };
            if end > at + 1 {
                self.replace("change reply", (at + 1, end), new.to_owned());
            }
        }
    }

    fn negate_conditions(&mut self) {
        for at in 0..self.tokens.len() {
            let last = match self.token(at) {
                "if" | "elseif" => "then",
                "while" => "do",
                _ => continue,
            };
            let Some(end) = (at..self.tokens.len()).find(|end| self.token(*end) == last) else { continue };
            let condition = &self.tokens[at + 1..end];
            let count = |words: &[&str]| condition.iter().filter(|(_, token)| words.contains(token)).count();
            if count(&["==", "~="]) == 1 && count(&["and", "or", "not", "<", ">", "<=", ">="]) == 0 {
                continue;
            }
            let (start, stop) = (condition[0].0, self.tokens[end].0);
            let new = format!("not ({})", self.script[start..stop].trim_end());
            self.replace("negate condition", (at + 1, end), new);
        }
    }
}

fn is_operator(token: &str) -> bool {
    matches!(
        token,
        "+" | "-"
            | "*"
            | "/"
            | "%"
            | "^"
            | ".."
            | "=="
            | "~="
            | "<"
            | "<="
            | ">"
            | ">="
            | "and"
            | "or"
            | "."
            | ":"
    )
}

/// Returns whether a token is a name, a number or a text.
fn is_operand(token: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
        "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
    ];
    token.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '\'' | '"'))
        && !KEYWORDS.contains(&token)
}

/// Returns whether a statement can begin after a token.
fn begins_statement(before: &str) -> bool {
    matches!(before, "" | ";" | "then" | "do" | "else" | "repeat" | "end" | ")" | "]" | "}")
        || is_operand(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants(script: &str, operator: &str) -> Vec<String> {
        let all = mutations(script).into_iter().filter(|mutation| mutation.operator == operator);
        all.map(|mutation| mutation.text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn statements_are_deleted_whole() {
        let script = "local a = redis.call('get', KEYS[1]); a = tonumber(a) + 1 redis.call('set', KEYS[1], f(a)); return a;";
        assert_eq!(
            mutants(script, "delete call"),
            ["local a = redis.call('get', KEYS[1]); a = tonumber(a) + 1 return a;"]
        );
        assert_eq!(
            mutants(script, "delete assignment"),
            ["local a = redis.call('get', KEYS[1]); redis.call('set', KEYS[1], f(a)); return a;"]
        );
        assert_eq!(
            mutants("if a then return {1, b} end return 2", "delete return"),
            ["if a then end return 2"]
        );
    }

    #[test]
    fn tokens_are_replaced_one_at_a_time() {
        assert_eq!(
            mutants("f(KEYS[1], KEYS[2])", "change index"),
            ["f(KEYS[2], KEYS[2])", "f(KEYS[1], KEYS[1])"]
        );
        assert_eq!(mutants("return -1 + '-1'", "change constant"), ["return -2 + '-1'", "return -1 + '1'"]);
        assert_eq!(
            mutants("return -tonumber(a) - 1", "swap arithmetic"),
            ["return tonumber(a) - 1", "return -tonumber(a) + 1"]
        );
        assert_eq!(mutants("redis.call('set', a, 1, 'px', b)", "delete expiry"), ["redis.call('set', a, 1)"]);
    }

    #[test]
    fn replies_and_conditions_change() {
        assert_eq!(
            mutants("if a then return nil end return {-1, b}", "change reply"),
            ["if a then return 1 end return {-1, b}", "if a then return nil end return nil"]
        );
        assert_eq!(
            mutants("if a == 1 then end if a < 1 then end", "negate condition"),
            ["if a == 1 then end if not (a < 1) then end"]
        );
    }
}
