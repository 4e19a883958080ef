//! The lines of a trace, found but not yet parsed: a trace of a million events is parsed as far as it is replayed.

use super::line::{Line, LineError};

/// What a line is for, as far as the order of lines matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Head,
    /// It drives a replay.
    Input,
    Mark,
    /// The reply or message that a client received, or a violation.
    Output,
    Cut,
    Digest,
    End,
    /// Not the line of a trace.
    Unknown,
}

/// A line: where it begins, what it is for, and the number of its event.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    start: usize,
    pub event: u64,
    pub kind: Kind,
}

/// The text of a trace, with the places of its lines.
pub struct Tape<'a> {
    text: &'a str,
    rows: Vec<Row>,
}

impl<'a> Tape<'a> {
    /// Finds the lines of a trace. Leaves out a last line that a killed process has not finished.
    pub fn of(text: &'a str) -> Tape<'a> {
        let text = whole_lines(text);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            rows.push(row(start, line.trim_end_matches(['\n', '\r'])));
            start += line.len();
        }
        Tape { text, rows }
    }

    /// Returns all lines.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the text of a line, given its index.
    pub fn text(&self, row: usize) -> &'a str {
        let end = self.rows.get(row + 1).map_or(self.text.len(), |next| next.start);
        self.text[self.rows[row].start..end].trim_end_matches(['\n', '\r'])
    }

    /// Parses a line, given its index.
    ///
    /// # Errors
    /// It is not the line of a trace.
    pub fn line(&self, row: usize) -> Result<Line, LineError> {
        serde_json::from_str(self.text(row)).map_err(|error| LineError::Syntax(error.to_string()))
    }

    /// Returns the numbers of the last event before the trace and of its last event, or `None` if the trace has no header.
    pub fn events(&self) -> Option<(u64, u64)> {
        let (first, rest) = self.rows.split_first()?;
        let last = rest.iter().map(|row| row.event).max().unwrap_or(first.event);
        (first.kind == Kind::Head).then_some((first.event, last))
    }
}

/// Returns the text without a last line that a killed process has left unfinished.
pub(super) fn whole_lines(text: &str) -> &str {
    match text.rsplit_once('\n') {
        Some((whole, last)) if serde_json::from_str::<Line>(last).is_err_and(|error| error.is_eof()) => whole,
        _ => text,
    }
}

/// Finds out what a line is. Lines that this project has written show it at their beginning; others are parsed.
fn row(start: usize, line: &str) -> Row {
    let (kind, event) = quick(line).unwrap_or_else(|| match serde_json::from_str(line) {
        Ok(line) => slow(&line),
        Err(_) => (Kind::Unknown, 0),
    });
    Row { start, event, kind }
}

fn quick(line: &str) -> Option<(Kind, u64)> {
    let (name, rest) = line.strip_prefix("{\"k\":\"")?.split_once("\",\"e\":")?;
    let kind = match name {
        "open" | "req" | "setup" | "state" | "bad" | "close" | "slice" | "await" | "report" => Kind::Input,
        "out" | "check" => Kind::Output,
        "dig" => Kind::Digest,
        "cut" => Kind::Cut,
        "mark" => Kind::Mark,
        "end" => Kind::End,
        _ => return None,
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((kind, rest[..digits].parse().ok()?))
}

fn slow(line: &Line) -> (Kind, u64) {
    match line {
        Line::Head(head) => (Kind::Head, head.e),
        Line::Open { e, .. }
        | Line::Setup { e, .. }
        | Line::State { e, .. }
        | Line::Req { e, .. }
        | Line::Bad { e, .. }
        | Line::Close { e, .. }
        | Line::Slice { e, .. }
        | Line::Await { e, .. }
        | Line::Report { e, .. } => (Kind::Input, *e),
        Line::Mark { e, .. } => (Kind::Mark, *e),
        Line::Cut { e, .. } => (Kind::Cut, *e),
        Line::Out { e, .. } | Line::Check { e, .. } => (Kind::Output, *e),
        Line::Dig { e, .. } => (Kind::Digest, *e),
        Line::End { e, .. } => (Kind::End, *e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_its_kind_and_event_however_it_is_written() {
        for (line, kind, event) in [
            (r#"{"k":"req","e":7,"t":0,"c":"0:1","a":["PING"]}"#, Kind::Input, 7),
            (r#"{"e":7,"t":0,"c":"0:1","a":["PING"],"k":"req"}"#, Kind::Input, 7),
            (r#"{"k":"out","e":12,"c":"0:1","b":"+PONG\r\n"}"#, Kind::Output, 12),
            (r#"{"k":"dig","e":3,"h":""}"#, Kind::Digest, 3),
            ("{}", Kind::Unknown, 0),
        ] {
            let row = row(0, line);
            assert_eq!((row.kind, row.event), (kind, event), "{line}");
        }
    }

    #[test]
    fn an_unfinished_line_is_left_out() {
        let text = "{\"k\":\"end\",\"e\":1,\"t\":0}\n{\"k\":\"end\",\"e\":2";
        assert_eq!(Tape::of(text).rows().len(), 1);
    }
}
