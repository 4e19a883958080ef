//! One step of a schedule: its line of text, and what the line means.

use std::fmt;

use super::failure::Failure;
use super::words::{At, Variables, column_of, expand, is_name, quote, split};

/// A client: its name and its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Who {
    pub name: String,
    /// The node that the text names. Without one it is node 0.
    pub node: Option<usize>,
}

impl Who {
    /// Returns whether the client is the test itself: its replies need no expectation, unless they are errors.
    pub fn is_control(&self) -> bool {
        self.name.starts_with("control")
    }

    /// Returns whether the client uses the control port, which is there while nodes are stopped.
    pub fn has_control_port(&self) -> bool {
        self.is_control() && self.node.is_none()
    }

    fn parse(text: &str) -> Option<Who> {
        let (name, node) = match text.split_once('@') {
            Some((name, node)) => (name, Some(node.parse().ok()?)),
            None => (text, None),
        };
        let is_valid = name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        // The same client, with and without its node.
        let node = node.filter(|node| *node != 0 || name.starts_with("control"));
        is_valid.then(|| Who { name: name.to_owned(), node })
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.node.map_or(Ok(()), |node| write!(f, "@{node}"))
    }
}

/// What a client is expected to have received next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Exactly this, as [`shown`](super::shown) shows it.
    Text(String),
    /// A text in which `*` stands for any text.
    Pattern(String),
    /// Nothing.
    Waits,
    /// Nothing, and the server has closed the connection.
    Closed,
}

impl Expected {
    fn of(text: &str) -> Expected {
        match text {
            "waits" => Expected::Waits,
            "closed" => Expected::Closed,
            _ => Expected::Text(text.to_owned()),
        }
    }

    /// Returns whether a received reply is the expected one.
    pub fn fits(&self, received: &str) -> bool {
        match self {
            Expected::Text(text) => text == received,
            Expected::Pattern(pattern) => fits(pattern, received),
            Expected::Waits | Expected::Closed => false,
        }
    }

    fn sign(&self) -> char {
        if matches!(self, Expected::Pattern(_)) { '~' } else { '=' }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Text(text) | Expected::Pattern(text) => f.write_str(text),
            Expected::Waits => f.write_str("waits"),
            Expected::Closed => f.write_str("closed"),
        }
    }
}

/// Returns whether a text fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(text) = text.strip_prefix(first).and_then(|text| text.strip_suffix(last)) else { return false };
    let mut text = text;
    middle.split('*').all(|part| match text.split_once(part) {
        Some((_, behind)) => {
            text = behind;
            true
        }
        None => false,
    })
}

/// What must hold at this point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The text of a [predicate](crate::travel::Predicate).
    pub predicate: String,
    pub is_negated: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Say(String),
    Outcome(String),
    /// A client connects. Unless `is_unnamed`, its connection has its name. `id`: its CLIENT ID.
    Connect {
        who: Who,
        is_unnamed: bool,
        id: Option<u64>,
    },
    Disconnect(Who),
    /// A client sends a command. `text` is how the schedule writes it.
    Send {
        who: Who,
        argv: Vec<Vec<u8>>,
        text: String,
    },
    /// `None`: the client of the last step.
    Expect {
        who: Option<Who>,
        expected: Expected,
    },
    Advance {
        us: u64,
    },
    Idle {
        us: u64,
    },
    /// A line of the state in which a recorded run began. `text` is how the schedule writes its words.
    State {
        words: Vec<Vec<u8>>,
        text: String,
    },
    Mark,
    Elapsed {
        us: u64,
    },
    /// The invariants of which the checks have found violations so far.
    Violations(Vec<String>),
    Holds(Claim),
}

/// The forms of a line, for error texts.
const LINE: &str = "one of: CLIENT: COMMAND, = REPLY, ~ PATTERN, CLIENT <- REPLY, CLIENT <~ PATTERN, connect, disconnect, \
    advance, idle, state, mark, elapsed, violations, holds, repeat, end, let, script, include, nodes, topology, seed, start, event, version, config, check, \
    > text, outcome: text, # comment";

const WHO: &str = "a client: NAME or NAME@NODE, of letters, digits, '_', '-' and '.'";
const MS: &str = "ms, with at most three decimals: 1500 or 0.25";

/// The longest time of one step: 100 years.
const MAX_US: u64 = 100 * 366 * 86_400 * 1_000_000;

impl Step {
    /// Parses a line. `line` is the whole line, for columns; `text` is the part of it without blanks around.
    ///
    /// # Errors
    /// The column, and what is wrong there.
    pub fn parse(line: &str, text: &str, variables: &Variables) -> Result<Step, At> {
        let column = column_of(line, text);
        let head = text.split_whitespace().next().unwrap_or_default();
        let rest = text[head.len()..].trim_start();
        let expanded = |part: &str| expand(part, variables).map_err(|why| (column_of(line, part), why));
        match head {
            ">" => return Ok(Step::Say(expanded(rest)?)),
            "outcome:" => return Ok(Step::Outcome(expanded(rest)?)),
            "=" => return Ok(Step::Expect { who: None, expected: Expected::of(&expanded(rest)?) }),
            "~" => return Ok(Step::Expect { who: None, expected: Expected::Pattern(expanded(rest)?) }),
            _ => {}
        }
        let client = |part: &str| {
            let found = || (column_of(line, part), syntax(part, WHO));
            Who::parse(&expanded(part)?).ok_or_else(found)
        };
        if let Some(name) = head.strip_suffix(':') {
            let who = client(name)?;
            let argv = split(line, rest, variables)?;
            if argv.is_empty() {
                return Err((column_of(line, rest), syntax("", "a command and its arguments")));
            }
            return Ok(Step::Send { who, argv, text: expanded(rest)? });
        }
        let sign = rest.split_whitespace().next().unwrap_or_default();
        if let "<-" | "<~" = sign {
            let who = Some(client(head)?);
            let reply = expanded(rest[sign.len()..].trim_start())?;
            let expected = if sign == "<-" { Expected::of(&reply) } else { Expected::Pattern(reply) };
            return Ok(Step::Expect { who, expected });
        }
        let us = || {
            let text = expanded(rest)?;
            us_of(&text).ok_or_else(|| (column_of(line, rest), syntax(&text, MS)))
        };
        match head {
            "connect" => {
                let name = rest.split_whitespace().next().unwrap_or(rest);
                let who = client(name)?;
                let options: Vec<&str> = rest[name.len()..].split_whitespace().collect();
                let (is_unnamed, id) = match options[..] {
                    [] => (false, None),
                    ["unnamed"] => (true, None),
                    ["id", id] => (false, id_of(id)),
                    ["unnamed", "id", id] => (true, id_of(id)),
                    _ => (false, None),
                };
                if id.is_none() && options.len() > usize::from(is_unnamed) {
                    return Err((column_of(line, rest), syntax(rest, "CLIENT [unnamed] [id N]")));
                }
                Ok(Step::Connect { who, is_unnamed, id })
            }
            "disconnect" => client(rest).map(Step::Disconnect),
            "advance" => us().map(|us| Step::Advance { us }),
            "idle" => us().map(|us| Step::Idle { us }),
            "elapsed" => us().map(|us| Step::Elapsed { us }),
            "state" => {
                let words = split(line, rest, variables)?;
                if words.is_empty() {
                    return Err((column_of(line, rest), syntax("", "the words of a line of state")));
                }
                Ok(Step::State { words, text: expanded(rest)? })
            }
            "mark" if rest.is_empty() => Ok(Step::Mark),
            "mark" => Err((column_of(line, rest), syntax(rest, "nothing behind 'mark'"))),
            "violations" => {
                let names = expanded(rest)?;
                let mut names: Vec<String> =
                    names.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect();
                if names.is_empty() {
                    let expected = "'none', or the names of invariants: H1@acquire, H2@unlock";
                    return Err((column_of(line, rest), syntax("", expected)));
                }
                names.retain(|name| name != "none");
                names.sort();
                Ok(Step::Violations(names))
            }
            "holds" => {
                let text = expanded(rest)?;
                let negated = text.strip_prefix("not ");
                let predicate = negated.unwrap_or(&text).trim().to_owned();
                Ok(Step::Holds(Claim { is_negated: negated.is_some(), predicate }))
            }
            _ => Err((column, syntax(text, LINE))),
        }
    }
}

pub(super) fn syntax(found: &str, expected: &'static str) -> Failure {
    Failure::Syntax { found: found.to_owned(), expected }
}

/// Parses a CLIENT ID: large ones are left for the clients that come later.
fn id_of(text: &str) -> Option<u64> {
    text.parse().ok().filter(|id| *id < 1 << 53)
}

/// Parses a number of ms with up to three decimals.
fn us_of(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 3 {
        return None;
    }
    let whole_us = whole.parse::<u64>().ok()?.checked_mul(1000)?;
    let us = whole_us.checked_add(format!("{decimals:0<3}").parse().ok()?)?;
    (us <= MAX_US).then_some(us)
}

/// Shows µs as ms.
pub fn ms_of(us: u64) -> String {
    let text = format!("{}.{:03}", us / 1000, us % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The line of the step, without a line end.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Say(text) => write!(f, "> {text}"),
            Step::Outcome(text) => write!(f, "outcome: {text}"),
            Step::Connect { who, is_unnamed, id } => {
                write!(f, "connect {who}{}", if *is_unnamed { " unnamed" } else { "" })?;
                id.map_or(Ok(()), |id| write!(f, " id {id}"))
            }
            Step::Disconnect(who) => write!(f, "disconnect {who}"),
            Step::Send { who, text, .. } => write!(f, "{who}: {text}"),
            Step::Expect { who: None, expected } => write!(f, "{} {expected}", expected.sign()),
            Step::Expect { who: Some(who), expected } => {
                write!(f, "{who} <{} {expected}", if expected.sign() == '=' { '-' } else { '~' })
            }
            Step::Advance { us } => write!(f, "advance {}", ms_of(*us)),
            Step::Idle { us } => write!(f, "idle {}", ms_of(*us)),
            Step::State { text, .. } => write!(f, "state {text}"),
            Step::Mark => f.write_str("mark"),
            Step::Elapsed { us } => write!(f, "elapsed {}", ms_of(*us)),
            Step::Violations(names) if names.is_empty() => f.write_str("violations none"),
            Step::Violations(names) => write!(f, "violations {}", names.join(", ")),
            Step::Holds(Claim { predicate, is_negated }) => {
                write!(f, "holds {}{predicate}", if *is_negated { "not " } else { "" })
            }
        }
    }
}

/// A definition, a setting, or the beginning or end of a loop: lines that are no steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive<'a> {
    Let {
        name: &'a str,
        text: String,
    },
    /// The script of a file, or the one that has a role in a jar.
    Script {
        name: &'a str,
        role: Option<&'a str>,
        file: &'a str,
    },
    Include(&'a str),
    Repeat {
        times: u64,
        variable: Option<&'a str>,
    },
    End,
    Setting {
        name: &'a str,
        value: &'a str,
    },
}

impl<'a> Directive<'a> {
    /// Parses a line that is no step. Returns `None` if it has the form of a step.
    ///
    /// # Errors
    /// The column, and what is wrong there.
    pub fn parse(line: &str, text: &'a str) -> Result<Option<Directive<'a>>, At> {
        let (head, rest) = text.split_once(char::is_whitespace).unwrap_or((text, &text[text.len()..]));
        let rest = rest.trim();
        let wrong = |part: &str, expected| Err((column_of(line, part), syntax(part, expected)));
        let definition = || {
            let parts = rest.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
            parts.filter(|(name, value)| is_name(name) && !value.is_empty())
        };
        Ok(Some(match head {
            "let" => match definition() {
                Some((name, text)) => Directive::Let { name, text: unquoted(line, text)? },
                None => return wrong(rest, "NAME = TEXT"),
            },
            "script" => match definition() {
                Some((name, file)) => match file.split_once(" of ") {
                    Some((role, jar)) => {
                        Directive::Script { name, role: Some(role.trim()), file: jar.trim() }
                    }
                    None => Directive::Script { name, role: None, file },
                },
                None => return wrong(rest, "NAME = FILE or NAME = ROLE of JAR"),
            },
            "include" if rest.is_empty() => return wrong(rest, "the name of a file"),
            "include" => Directive::Include(rest),
            "repeat" => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                let (times, variable) = match words[..] {
                    [times] => (times.parse(), None),
                    [times, "as", name] if is_name(name) => (times.parse(), Some(name)),
                    _ => return wrong(rest, "N or N as NAME"),
                };
                match times {
                    Ok(times) => Directive::Repeat { times, variable },
                    Err(_) => return wrong(rest, "N or N as NAME"),
                }
            }
            "end" if rest.is_empty() => Directive::End,
            "nodes" | "topology" | "seed" | "start" | "event" | "version" if rest.is_empty() => {
                return wrong(rest, "a value");
            }
            "nodes" | "topology" | "seed" | "start" | "event" | "version" | "check" => {
                Directive::Setting { name: head, value: rest }
            }
            _ if head == "config" || head.starts_with("config@") => {
                Directive::Setting { name: head, value: rest }
            }
            _ => return Ok(None),
        }))
    }
}

/// Returns the text of a definition: as it stands, or what quotes around all of it contain.
fn unquoted(line: &str, text: &str) -> Result<String, At> {
    if !(text.starts_with('"') && text.ends_with('"') && text.len() > 1) {
        return Ok(text.to_owned());
    }
    let column = column_of(line, text);
    let mut words = split(line, text, &Variables::new())?;
    match (words.pop(), words.is_empty()) {
        (Some(word), true) => String::from_utf8(word).map_err(|_| (column, Failure::MixedWord)),
        _ => Ok(text.to_owned()),
    }
}

/// Writes a command as a line has it.
pub fn command_text(argv: &[Vec<u8>]) -> String {
    argv.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_as_they_are_read() {
        for line in [
            "> some text",
            "outcome: fine",
            "connect c1@2",
            "connect c1 unnamed",
            "connect c1 unnamed id 7",
            "connect c1 id 7",
            "disconnect c1",
            "c1@2: SET k \"v w\"",
            "= OK",
            "= waits",
            "= closed",
            "~ (error) ERR*",
            "c1 <- [a, b]",
            "c1@2 <~ *x",
            "advance 1500",
            "advance 0.25",
            "idle 7",
            "state KEY 0 0 \"k 1\"",
            "mark",
            "elapsed 11000",
            "violations none",
            "violations H1@acquire, M1@unlock",
            "holds two-owners",
            "holds not key k == v",
        ] {
            let step = Step::parse(line, line, &Variables::new())
                .unwrap_or_else(|error| panic!("{line}: {error:?}"));
            assert_eq!(step.to_string(), line);
        }
    }

    #[test]
    fn a_pattern_fits_any_text_at_its_stars() {
        for (pattern, text, does) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "a", false),
            ("ab*ba", "aba", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("[*, *]", "[1, 2]", true),
            ("a", "ab", false),
        ] {
            assert_eq!(fits(pattern, text), does, "{pattern} {text}");
        }
    }

    #[test]
    fn times_have_up_to_three_decimals() {
        assert_eq!(us_of("0.5"), Some(500));
        assert_eq!(us_of("12"), Some(12_000));
        for wrong in ["", ".", "1.", ".5", "1.2345", "-1", "1e3", "99999999999999999999", "9999999999999999"]
        {
            assert_eq!(us_of(wrong), None, "{wrong}");
        }
        assert_eq!(
            (ms_of(250), ms_of(1_000), ms_of(10_001_000)),
            ("0.25".into(), "1".into(), "10001".into())
        );
    }
}
