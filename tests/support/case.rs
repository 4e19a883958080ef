//! Test cases without expected values: two servers get the same commands and have to give the same replies.
//!
//! A file has cases, separated by blank lines. Each case begins with empty databases and new connections.
//!
//! ```text
//! # a comment; the first one of a case is its name
//! SET k v                a command, with arguments quoted as in redis-cli; its reply is compared byte for byte
//! b: GET k               a command on another connection
//! ~ SMEMBERS s           the elements of the reply may come in any order
//! % PTTL k               numbers in the reply may differ by 100
//! @cmd=,flags= CLIENT LIST  of each line only the parts with one of these texts are compared; lines come in any order
//! b> BLPOP l 0           sends without waiting for a reply
//! b<                     compares what the connection receives next
//! sleep 20               waits this many ms
//! raw *1\r\n$4\r\nPING\r\n  sends bytes unchanged, with the escapes of a double-quoted argument
//! since 7.2              runs the case only on servers of this release and later
//! until 7.0              runs the case only on servers of this release and earlier
//! except 7.0             runs the case on servers of all other releases
//!
//! The releases of Valkey stand between 7.2 and 7.4: a case since valkey-8.1 and until valkey-9.1 is for Valkey alone.
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redlatch_core::version::Version;
use redlatch_core::wire::request::split_words;

use super::client::{self, Client, elements};
use super::server::Server;

/// How the replies to a step are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Compare {
    Exactly,
    AnyOrder,
    Nearly,
    Parts(Vec<String>),
}

enum Step {
    Call { client: String, argv: Vec<Vec<u8>>, compare: Compare },
    Send { client: String, argv: Vec<Vec<u8>> },
    Receive { client: String, compare: Compare },
    Raw { client: String, bytes: Vec<u8> },
    Sleep(Duration),
}

struct Case {
    steps: Vec<(usize, Step)>,
    since: Option<Version>,
    until: Option<Version>,
    except: Option<Version>,
}

/// Runs the cases of a file on both servers. The error lists every difference.
pub fn run_file(text: &str, release: Version, ours: &Server, theirs: &Server) -> Result<usize, String> {
    let mut failures = Vec::new();
    let mut count = 0;
    for case in parse(text) {
        if case.since.is_some_and(|since| release < since)
            || case.until.is_some_and(|until| release > until)
            || case.except == Some(release)
        {
            continue;
        }
        count += 1;
        if let Err(failure) = run_case(&case, ours, theirs) {
            failures.push(failure);
        }
    }
    if failures.is_empty() { Ok(count) } else { Err(failures.join("\n")) }
}

/// A pair of connections, one to each server.
struct Pair {
    ours: Client,
    theirs: Client,
}

impl Pair {
    fn open(ours: &Server, theirs: &Server) -> Pair {
        Pair { ours: ours.connect(), theirs: theirs.connect() }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.ours.send_bytes(bytes);
        self.theirs.send_bytes(bytes);
    }

    fn compare(&mut self, how: &Compare) -> Result<(), String> {
        let (ours, theirs) = (self.ours.receive(), self.theirs.receive());
        if same(&ours, &theirs, how) {
            return Ok(());
        }
        Err(format!("      ours:   {}\n      theirs: {}", ours.escape_ascii(), theirs.escape_ascii()))
    }
}

fn run_case(case: &Case, ours: &Server, theirs: &Server) -> Result<(), String> {
    let mut control = Pair::open(ours, theirs);
    control.send(&super::client::encode(&["FLUSHALL"]));
    control.compare(&Compare::Exactly)?;
    let mut pairs: BTreeMap<&str, Pair> = BTreeMap::new();
    let mut failures = Vec::new();
    for (line, step) in &case.steps {
        let outcome = match step {
            Step::Sleep(time) => {
                std::thread::sleep(*time);
                Ok(())
            }
            Step::Call { client, argv, compare } => {
                let pair = pairs.entry(client).or_insert_with(|| Pair::open(ours, theirs));
                pair.send(&super::client::encode(argv));
                pair.compare(compare)
            }
            Step::Send { client, argv } => {
                let pair = pairs.entry(client).or_insert_with(|| Pair::open(ours, theirs));
                pair.send(&super::client::encode(argv));
                // Both servers have to run requests of different connections in the same order.
                std::thread::sleep(Duration::from_millis(15));
                Ok(())
            }
            Step::Raw { client, bytes } => {
                let pair = pairs.entry(client).or_insert_with(|| Pair::open(ours, theirs));
                pair.send(bytes);
                Ok(())
            }
            Step::Receive { client, compare } => {
                let began = Instant::now();
                let outcome =
                    pairs.entry(client).or_insert_with(|| Pair::open(ours, theirs)).compare(compare);
                match began.elapsed() {
                    waited if waited < client::PATIENCE => outcome,
                    _ => outcome.and(Err("      nothing came, on either side".to_owned())),
                }
            }
        };
        if let Err(difference) = outcome {
            failures.push(format!("  line {line}: {}\n{difference}", describe(step)));
        }
    }
    for (name, pair) in &mut pairs {
        let quiet = Duration::from_millis(2);
        let (ours, theirs) = (pair.ours.drain(quiet), pair.theirs.drain(quiet));
        if ours != theirs {
            failures.push(format!(
                "  after the last line, connection {name}:\n      ours:   {}\n      theirs: {}",
                ours.escape_ascii(),
                theirs.escape_ascii()
            ));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn same(ours: &[u8], theirs: &[u8], how: &Compare) -> bool {
    match how {
        Compare::Exactly => ours == theirs,
        Compare::AnyOrder => {
            let (mut a, mut b) = (elements(ours), elements(theirs));
            a.sort();
            b.sort();
            ours.len() == theirs.len() && ours.first() == theirs.first() && a == b
        }
        Compare::Parts(wanted) => parts_of(ours, wanted) == parts_of(theirs, wanted),
        Compare::Nearly => {
            let number = |bytes: &[u8]| {
                String::from_utf8_lossy(bytes.trim_ascii()).trim_start_matches([':', '$']).parse::<i64>()
            };
            // Line by line, because numbers may be deep inside.
            let lines =
                |bytes: &'_ [u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
            let (a, b) = (lines(ours), lines(theirs));
            a.len() == b.len()
                && a.iter().zip(&b).all(|(a, b)| match (number(a), number(b)) {
                    (Ok(a), Ok(b)) => (a - b).abs() <= 100 && (a < 0) == (b < 0),
                    _ => a == b,
                })
        }
    }
}

/// Returns of each line the words between blanks and commas that contain a wanted text, sorted by line.
fn parts_of(reply: &[u8], wanted: &[String]) -> Vec<Vec<String>> {
    let text = String::from_utf8_lossy(reply);
    let is_wanted = |part: &&str| wanted.iter().any(|wanted| part.contains(wanted.as_str()));
    let parts = |line: &str| -> Vec<String> {
        line.split([' ', ',', '\r']).filter(is_wanted).map(str::to_owned).collect()
    };
    let mut lines: Vec<Vec<String>> = text.lines().map(parts).filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines
}

fn describe(step: &Step) -> String {
    let words = |argv: &[Vec<u8>]| {
        let words: Vec<String> = argv.iter().map(|word| word.escape_ascii().to_string()).collect();
        words.join(" ")
    };
    match step {
        Step::Call { client, argv, .. } => format!("{client}: {}", words(argv)),
        Step::Send { client, argv } => format!("{client}> {}", words(argv)),
        Step::Receive { client, .. } => format!("{client}<"),
        Step::Raw { client, bytes } => format!("{client} raw {}", bytes.escape_ascii()),
        Step::Sleep(time) => format!("sleep {}", time.as_millis()),
    }
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = Case { steps: Vec::new(), since: None, until: None, except: None };
    let lines = text.lines().map(str::trim).chain(std::iter::once(""));
    for (index, line) in lines.enumerate() {
        if line.is_empty() {
            if !case.steps.is_empty() {
                let next = Case { steps: Vec::new(), since: None, until: None, except: None };
                cases.push(std::mem::replace(&mut case, next));
            }
        } else if let Some(release) = line.strip_prefix("since ") {
            case.since = Some(release.parse().unwrap());
        } else if let Some(release) = line.strip_prefix("except ") {
            case.except = Some(release.parse().unwrap());
        } else if let Some(release) = line.strip_prefix("until ") {
            case.until = Some(release.parse().unwrap());
        } else if !line.starts_with('#') {
            let step = parse_step(line).unwrap_or_else(|| panic!("line {}: cannot read '{line}'", index + 1));
            case.steps.push((index + 1, step));
        }
    }
    cases
}

fn parse_step(line: &str) -> Option<Step> {
    if let Some(ms) = line.strip_prefix("sleep ") {
        return Some(Step::Sleep(Duration::from_millis(ms.parse().ok()?)));
    }
    let (compare, line) = match (line.strip_prefix("~ "), line.strip_prefix("% ")) {
        (Some(rest), _) => (Compare::AnyOrder, rest),
        (_, Some(rest)) => (Compare::Nearly, rest),
        _ => match line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((parts, rest)) => (Compare::Parts(parts.split(',').map(str::to_owned).collect()), rest),
            None => (Compare::Exactly, line),
        },
    };
    let first = line.split_ascii_whitespace().next()?;
    let name = |word: &str| word[..word.len() - 1].to_owned();
    let is_name =
        |word: &str| word.len() > 1 && word[..word.len() - 1].bytes().all(|byte| byte.is_ascii_lowercase());
    let rest = line[first.len()..].trim_start();
    if first.ends_with('<') && is_name(first) {
        return Some(Step::Receive { client: name(first), compare });
    }
    if first.ends_with('>') && is_name(first) {
        return Some(Step::Send { client: name(first), argv: split_words(rest.as_bytes())? });
    }
    let (client, rest) =
        if first.ends_with(':') && is_name(first) { (name(first), rest) } else { ("a".to_owned(), line) };
    if let Some(bytes) = rest.strip_prefix("raw ") {
        let quoted = format!("\"{}\"", bytes.replace('"', "\\\""));
        return Some(Step::Raw { client, bytes: split_words(quoted.as_bytes())?.pop()? });
    }
    Some(Step::Call { client, argv: split_words(rest.as_bytes())?, compare })
}
