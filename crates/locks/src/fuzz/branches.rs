//! Finds the branches of a script, and makes a copy of the script in which each branch is on its own line.
//!
//! Lua can report which lines a run reaches, but lock scripts consist of a single line. In the copy every branch begins
//! with a line that does nothing, `MARK`; the lines of this kind that were reached show which branches were taken.
//!
//! | | |
//! |---|---|
//! | `if … then` | the code under `then`, `elseif` and `else` |
//! | `past if … then` | the condition was false and there is no `else`: the copy adds one |
//! | `while … do`, `for … do` | the loop was entered |
//! | `function (…)` | it was called |
//!
//! Not distinguished: how often a loop ran, whether it was skipped, and which part of an `and` or `or` decided.

use super::tokens::Tokens;

/// The line with which a branch begins in the copy.
const MARK: &str = "\ndo local _ = 0 end\n";

/// The most characters of a condition in a branch's name.
const WIDTH: usize = 100;

/// A script with marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    pub text: String,
    pub branches: Vec<Branch>,
}

/// A branch of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The kind of the branch and the source of its condition. Unique within a script.
    pub name: String,
    /// The line of its mark in the copy, from 1.
    pub line: usize,
}

/// A block that has begun and not ended. `start` is the position of its condition's source.
enum Open {
    If {
        start: usize,
        condition: (usize, usize),
        has_else: bool,
    },
    /// A `while` or `for` before its `do`, or a `function` before the end of its parameters.
    Head {
        start: usize,
        last: &'static str,
    },
    /// Any other block that `end` or `until` closes.
    Block,
}

/// Marks the branches of a script.
pub fn mark(script: &str) -> Marked {
    let mut marker = Marker { script, copied: 0, lines: 1, marked: Marked::default() };
    let mut open: Vec<Open> = Vec::new();
    for (start, word) in Tokens::of(script) {
        let end = start + word.len();
        if matches!(word, "end" | "until") {
            if let Some(Open::If { condition, has_else: false, .. }) = open.pop() {
                marker.copy(start);
                marker.write("\nelse");
                marker.mark(start, "past ", condition);
            }
            continue;
        }
        match (word, open.last_mut()) {
            ("if", _) => open.push(Open::If { start, condition: (start, start), has_else: false }),
            ("elseif", Some(Open::If { start: condition, .. })) => *condition = start,
            ("then", Some(Open::If { start, condition, .. })) => {
                *condition = (*start, end);
                marker.mark(end, "", (*start, end));
            }
            ("else", Some(Open::If { condition, has_else, .. })) => {
                *has_else = true;
                marker.mark(end, "else of ", *condition);
            }
            ("while" | "for", _) => open.push(Open::Head { start, last: "do" }),
            ("function", _) => open.push(Open::Head { start, last: ")" }),
            (_, Some(Open::Head { start, last })) if word == *last => {
                marker.mark(end, "", (*start, end));
                open.pop();
                open.push(Open::Block);
            }
            ("do" | "repeat", _) => open.push(Open::Block),
            _ => {}
        }
    }
    marker.copy(script.len());
    marker.marked
}

/// The state of writing the copy.
struct Marker<'a> {
    script: &'a str,
    /// How much of the script is already copied.
    copied: usize,
    /// The line that is being written.
    lines: usize,
    marked: Marked,
}

impl Marker<'_> {
    fn write(&mut self, text: &str) {
        self.lines += text.matches('\n').count();
        self.marked.text.push_str(text);
    }

    fn copy(&mut self, to: usize) {
        let script = self.script;
        self.write(&script[self.copied..to]);
        self.copied = to;
    }

    /// Marks a branch that begins after `at`. `condition` is the range of its condition in the source.
    fn mark(&mut self, at: usize, kind: &str, condition: (usize, usize)) {
        self.copy(at);
        let line = self.lines + 1;
        self.write(MARK);
        let source = &self.script[condition.0..condition.1];
        let name = cut(&format!("{kind}{}", source.split_whitespace().collect::<Vec<_>>().join(" ")));
        let branches = &mut self.marked.branches;
        let mut others = 1;
        let mut numbered = name.clone();
        while branches.iter().any(|branch| branch.name == numbered) {
            others += 1;
            numbered = format!("{name} ({others})");
        }
        branches.push(Branch { name: numbered, line });
    }
}

/// Returns `text`, shortened to at most [`WIDTH`] characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(script: &str) -> Vec<String> {
        mark(script).branches.into_iter().map(|branch| branch.name).collect()
    }

    #[test]
    fn every_branch_has_a_line() {
        let script = "local t = f(function () return 1 end) \
                      if a then return 1 elseif b then return 2 end \
                      for i = 1, 2 do if (c) then d() else e() end end \
                      while g(function (x) do local y end end) do break end \
                      repeat local z until z do local w end return 3";
        let marked = mark(script);
        let expected = [
            "function ()",
            "if a then",
            "elseif b then",
            "past elseif b then",
            "for i = 1, 2 do",
            "if (c) then",
            "else of if (c) then",
            "function (x)",
            "while g(function (x) do local y end end) do",
        ];
        assert_eq!(names(script), expected);
        let lines: Vec<&str> = marked.text.lines().collect();
        for branch in &marked.branches {
            assert_eq!(lines[branch.line - 1], MARK.trim(), "{}", marked.text);
        }
    }

    #[test]
    fn words_in_texts_and_comments_do_not_count() {
        for nothing in ["x = 'if a then'", "x = \"\\\" if a then\"", "x = 'a\\\\' y = ' if a then'"] {
            assert!(names(nothing).is_empty(), "{nothing}");
        }
        assert!(names("x = [[ if a then ]] y = [==[ if ]] a then ]==] z = t[1]").is_empty());
        assert!(names("--[[ if a\nthen ]] -- if b then\n--[=[ if ]=]").is_empty());
        assert_eq!(names("-- if a then\nif b then end"), ["if b then", "past if b then"]);
        assert_eq!(names("if t['end'] then end"), ["if t['end'] then", "past if t['end'] then"]);
        assert_eq!(mark("#!lua name=if\nreturn 1").text, "#!lua name=if\nreturn 1");
        assert_eq!(names("local functional, iffy = 1, then_2"), [""; 0]);
    }

    #[test]
    fn names_are_short_and_differ() {
        let long = format!("if {} then end", "a".repeat(200));
        assert!(names(&long).iter().all(|name| name.chars().count() == WIDTH + 1));
        assert_eq!(
            names("if a then end if\n  a  then end"),
            ["if a then", "past if a then", "if a then (2)", "past if a then (2)"]
        );
    }
}
