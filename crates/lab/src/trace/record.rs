//! Writes the lines of a trace. Every request passes here while a trace is recorded, so lines are written without intermediate values.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::secrets::Secrets;
use super::{FORMAT, clock_name};
use crate::control::Lab;
use redlatch_core::commands::table;
use redlatch_core::node::Config;
use redlatch_core::node::secrets::{hidden, is_secret_parameter};
use redlatch_core::version::Version;
use redlatch_core::world::ConnId;
use redlatch_locks::check::Finding;

/// Lines that wait for the driver to take them.
#[derive(Clone, Default)]
pub struct Recorder {
    buf: Vec<u8>,
    secrets: Secrets,
    /// The first event after which a digest is due.
    digest_from: u64,
    /// In a replay: the events after which the recorded trace has digests, as far as it was read.
    recorded_digests: Option<VecDeque<u64>>,
}

/// How many bytes of a string are looked at together.
const CHUNK: usize = 16;

/// The fewest events between two digests.
const DIGEST_EVERY: u64 = 64;
/// The fewest events for each key and client whose state goes into a digest, so that digests stay a small part of the cost.
const EVENTS_PER_ITEM: u64 = 4;

/// The time and the number of an event.
#[derive(Clone, Copy, Debug)]
pub struct When {
    pub event: u64,
    pub mono_us: u64,
}

impl Recorder {
    /// Begins a trace.
    pub fn new(lab: &Lab) -> Recorder {
        let digest_from = lab.world().events() + DIGEST_EVERY;
        let mut recorder = Recorder { digest_from, ..Recorder::default() };
        recorder.head(lab);
        recorder
    }

    /// Writes the header: how the world began.
    fn head(&mut self, lab: &Lab) {
        let (world, clock) = (lab.world(), lab.world().clock());
        self.buf.extend_from_slice(b"{\"k\":\"head\"");
        self.field("format");
        self.number(FORMAT.into());
        self.field("version");
        self.text(env!("CARGO_PKG_VERSION"));
        self.field("seed");
        self.number(lab.seed);
        self.field("wall_ms");
        self.buf.extend_from_slice(itoa::Buffer::new().format(clock.now().wall_offset_ms).as_bytes());
        self.field("clock");
        self.text(&clock_name(clock.mode()));
        self.field("e");
        self.number(world.events());
        self.field("t");
        self.number(clock.now().mono_us);
        self.field("nodes");
        self.list(world.nodes(), |recorder, node| recorder.node(&node.config));
        if let Some(topology) = world.topology() {
            self.field("topology");
            self.text(&topology.to_string());
        }
        self.field("start_ms");
        self.buf.extend_from_slice(itoa::Buffer::new().format(clock.start_ms()).as_bytes());
        self.field("command");
        self.buf.extend_from_slice(if lab.has_command { b"true" } else { b"false" });
        if let Some(checks) = &lab.checks {
            self.field("checks");
            self.list(&checks.words, |recorder, word| recorder.text(word));
        }
        if lab.judges_owners {
            self.field("judges_owners");
            self.buf.extend_from_slice(b"true");
        }
        self.field("hides_passwords");
        self.buf.extend_from_slice(b"true");
        if lab.serves_control_anywhere() {
            self.field("control_anywhere");
            self.buf.extend_from_slice(b"true");
        }
        self.finish();
    }

    /// Shows passwords, as older releases did, so that their traces replay.
    #[cfg(feature = "replay")]
    pub(crate) fn show_passwords(&mut self) {
        self.secrets.is_off = true;
    }

    /// Writes the release that a node emulates, and all its settings.
    fn node(&mut self, config: &Config) {
        self.buf.extend_from_slice(b"{\"release\":");
        self.text(&config.version.to_string());
        self.field("process_id");
        self.number(config.process_id.into());
        self.field("config");
        self.list(config.matching(b"*"), |recorder, (name, value)| {
            let hidden =
                is_secret_parameter(name.as_bytes()).then(|| recorder.secrets.stored(value.as_bytes()));
            let value =
                hidden.map_or(value.into(), |hidden| String::from_utf8_lossy(&hidden).into_owned().into());
            recorder.list([name.into(), value], |recorder, text: Cow<str>| recorder.text(&text));
        });
        if let Some(sentinel) = &config.sentinel {
            self.field("sentinel");
            self.list(sentinel.lines(), |recorder, line| {
                recorder.list(line, |recorder, word| recorder.text(&word));
            });
        }
        if let Some(file) = &config.config_file {
            self.field("config_file");
            self.text(file);
        }
        if config.has_driver {
            self.field("has_driver");
            self.buf.extend_from_slice(b"true");
        }
        self.buf.push(b'}');
    }

    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Recorder, T)) {
        self.buf.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.buf.push(b',');
            }
            write(self, item);
        }
        self.buf.push(b']');
    }

    /// Writes text as a JSON string. Unlike [`string`](Self::string) it keeps characters beyond ASCII as they are.
    fn text(&mut self, text: &str) {
        self.buf.push(b'"');
        for c in text.chars() {
            match c {
                '"' => self.buf.extend_from_slice(b"\\\""),
                '\\' => self.buf.extend_from_slice(b"\\\\"),
                '\n' => self.buf.extend_from_slice(b"\\n"),
                '\r' => self.buf.extend_from_slice(b"\\r"),
                '\t' => self.buf.extend_from_slice(b"\\t"),
                '\u{8}' => self.buf.extend_from_slice(b"\\b"),
                '\u{c}' => self.buf.extend_from_slice(b"\\f"),
                '\0'..' ' => self.buf.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
                _ => self.buf.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self.buf.push(b'"');
    }

    /// The lines so far.
    pub fn take(&mut self, into: &mut Vec<u8>) {
        into.append(&mut self.buf);
    }

    pub fn len(&self) -> usize {
        self.buf.len()
    }

    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    fn begin(&mut self, kind: &str, when: When) {
        self.buf.extend_from_slice(b"{\"k\":\"");
        self.buf.extend_from_slice(kind.as_bytes());
        self.buf.extend_from_slice(b"\",\"e\":");
        self.number(when.event);
        self.buf.extend_from_slice(b",\"t\":");
        self.number(when.mono_us);
    }

    fn conn(&mut self, conn: ConnId) {
        self.buf.extend_from_slice(b",\"c\":\"");
        self.number(conn.node as u64);
        self.buf.push(b':');
        self.number(conn.session.number);
        self.buf.push(b'"');
    }

    fn number(&mut self, n: u64) {
        self.buf.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
    }

    fn field(&mut self, name: &str) {
        self.buf.extend_from_slice(b",\"");
        self.buf.extend_from_slice(name.as_bytes());
        self.buf.extend_from_slice(b"\":");
    }

    /// Bytes as a JSON string of the characters of the same number.
    fn string(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.buf.push(b'"');
        let mut rest = bytes;
        loop {
            let (plain, special) = rest.split_at(plain_len(rest));
            self.buf.extend_from_slice(plain);
            let Some((&byte, behind)) = special.split_first() else { break };
            match byte {
                b'"' | b'\\' => self.buf.extend_from_slice(&[b'\\', byte]),
                b'\n' => self.buf.extend_from_slice(b"\\n"),
                b'\r' => self.buf.extend_from_slice(b"\\r"),
                _ => {
                    let digits = [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]];
                    self.buf.extend_from_slice(b"\\u00");
                    self.buf.extend_from_slice(&digits);
                }
            }
            rest = behind;
        }
        self.buf.push(b'"');
    }

    fn finish(&mut self) {
        self.buf.extend_from_slice(b"}\n");
    }

    pub fn open(&mut self, when: When, conn: ConnId, control: bool, addr: &str, laddr: &str) {
        self.begin("open", when);
        self.conn(conn);
        self.field("addr");
        self.string(addr.as_bytes());
        self.field("laddr");
        self.string(laddr.as_bytes());
        if control {
            self.field("control");
            self.buf.extend_from_slice(b"true");
        }
        self.finish();
    }

    /// A request; `elapsed_us` is the driver's time, for SIM commands.
    pub fn request(&mut self, kind: &str, when: When, conn: ConnId, argv: &[&[u8]], elapsed_us: Option<u64>) {
        self.begin(kind, when);
        self.conn(conn);
        self.field("a");
        let hidden = hidden(argv);
        // The error for a command that does not exist shows its arguments.
        let exists = |&version: &Version| table::find(argv, version).is_some();
        if hidden.is_empty() || !Version::ALL.iter().any(exists) {
            self.list(argv, |recorder, word| recorder.string(word));
        } else {
            let shown = self.secrets.hide(argv, &hidden);
            self.list(&shown, |recorder, word| recorder.string(word));
        }
        self.secrets.look_at(argv);
        if let Some(elapsed_us) = elapsed_us {
            self.field("el");
            self.number(elapsed_us);
        }
        self.finish();
    }

    /// A line of the state in which the trace begins.
    pub fn state(&mut self, when: When, words: &[&[u8]]) {
        self.secrets.look_at_state(words);
        self.begin("state", when);
        self.field("a");
        self.list(words, |recorder, word| recorder.string(word));
        self.finish();
    }

    /// A line with a connection and no more: `close`, `cut`.
    pub fn of_conn(&mut self, kind: &str, when: When, conn: ConnId) {
        self.begin(kind, when);
        self.conn(conn);
        self.finish();
    }

    pub fn bad(&mut self, when: When, conn: ConnId, why: &str) {
        self.begin("bad", when);
        self.conn(conn);
        self.field("why");
        self.string(why.as_bytes());
        self.finish();
    }

    pub fn slice(&mut self, when: When, node: usize, ran_ms: u64) {
        self.begin("slice", when);
        self.field("n");
        self.number(node as u64);
        self.field("ms");
        self.number(ran_ms);
        self.finish();
    }

    pub fn awaited(&mut self, when: When, elapsed_us: u64) {
        self.begin("await", when);
        self.field("el");
        self.number(elapsed_us);
        self.finish();
    }

    pub fn report(&mut self, when: When, node: usize, outcome: Result<&[u8], &[u8]>) {
        self.secrets.look_at_file(outcome.unwrap_or_default());
        self.begin("report", when);
        self.field("n");
        self.number(node as u64);
        self.field("ok");
        self.buf.extend_from_slice(if outcome.is_ok() { b"true" } else { b"false" });
        self.field("text");
        self.string(outcome.unwrap_or_else(|why| why));
        self.finish();
    }

    pub fn mark(&mut self, when: When, text: &[u8]) {
        self.begin("mark", when);
        self.field("text");
        self.string(text);
        self.finish();
    }

    pub fn end(&mut self, when: When) {
        self.begin("end", when);
        self.finish();
    }

    pub fn output(&mut self, event: u64, conn: ConnId, bytes: &[u8]) {
        self.buf.extend_from_slice(b"{\"k\":\"out\",\"e\":");
        self.number(event);
        self.conn(conn);
        self.field("b");
        match self.secrets.hide_in_reply(bytes) {
            Some(shown) => self.string(&shown),
            None => self.string(bytes),
        }
        self.finish();
    }

    pub fn finding(&mut self, finding: &Finding) {
        self.buf.extend_from_slice(b"{\"k\":\"check\",\"e\":");
        self.number(finding.event);
        self.field("n");
        self.number(finding.node as u64);
        for (name, text) in [
            ("promise", finding.promise().as_bytes()),
            ("object", finding.object.as_bytes()),
            ("key", &finding.key),
            ("owner", &finding.owner),
            ("text", finding.violation.text.as_bytes()),
        ] {
            self.field(name);
            self.string(text);
        }
        self.finish();
    }

    /// Whether a digest is due after this event, in a world of so many keys and clients.
    pub fn wants_digest(&mut self, event: u64, items: impl FnOnce() -> u64) -> bool {
        if let Some(recorded) = &mut self.recorded_digests {
            return recorded.pop_front_if(|next| *next <= event).is_some();
        }
        if event < self.digest_from {
            return false;
        }
        self.digest_from = event + (EVENTS_PER_ITEM * items()).max(DIGEST_EVERY);
        true
    }

    /// Adds events after which the recorded trace of a replay has digests.
    #[cfg(feature = "replay")]
    pub fn digests_at(&mut self, events: impl Iterator<Item = u64>) {
        self.recorded_digests.get_or_insert_default().extend(events);
    }

    pub fn digest(&mut self, event: u64, digest: &str) {
        self.buf.extend_from_slice(b"{\"k\":\"dig\",\"e\":");
        self.number(event);
        self.field("h");
        self.string(digest.as_bytes());
        self.finish();
    }
}

/// How many bytes at the start stand for themselves in a JSON string.
fn plain_len(bytes: &[u8]) -> usize {
    let is_plain = |&byte: &u8| (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\');
    // Whole chunks are compared without a branch for each byte.
    let chunks = bytes
        .chunks_exact(CHUNK)
        .take_while(|chunk| chunk.iter().fold(true, |all, byte| all & is_plain(byte)));
    let sure = chunks.count() * CHUNK;
    sure + bytes[sure..].iter().take_while(|byte| is_plain(byte)).count()
}

#[cfg(all(test, feature = "replay"))]
mod tests {
    use redlatch_core::world::{ClockMode, WorldOptions};
    use redlatch_locks::check::Checks;

    use super::*;
    use crate::trace::Line;

    #[test]
    fn the_head_is_what_serde_writes() {
        let mut config = Config::new(Version::V7_2);
        config.set_at_start("requirepass", "\"\\ \u{1}\u{8}\t\n\u{c}\r\u{1f}\u{7f}é→🔒".as_bytes()).unwrap();
        config.process_id = 7;
        (config.config_file, config.has_driver) = (Some("/etc/ü.conf".to_owned()), true);
        let nodes = vec![Config::new(Version::V7_0), config];
        let options = WorldOptions {
            seed: u64::MAX,
            clock: ClockMode::Rate(0.5),
            wall_start_ms: -3,
            nodes,
            topology: None,
        };
        let mut lab = Lab::new(options);
        let words = vec!["RLOCK".to_owned(), "own\n[x]".to_owned()];
        for checks in [None, Some(Checks { words, ..Checks::default() })] {
            lab.checks = checks;
            let written = String::from_utf8(Recorder::new(&lab).buf).unwrap();
            let line: Line = serde_json::from_str(&written).unwrap();
            assert!(matches!(&line, Line::Head(head) if head.nodes.len() == 2));
            assert_eq!(written, serde_json::to_string(&line).unwrap() + "\n");
            assert!(!written.contains("🔒"), "the password is in the trace");
            lab.serve_control_anywhere(true);
        }
    }
}
