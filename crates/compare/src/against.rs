//! Sends the requests of a trace to a real server, at the times of the trace, and compares the replies.

// A driver: it talks to another server in real time.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

use crate::diff::link::Link;
use redlatch_core::wire::client::value_len;
use redlatch_lab::control::commands::is_sim_command;
use redlatch_lab::control::staging::summary;
use redlatch_lab::trace::line::{Conn, Line, to_bytes};
use redlatch_lab::trace::replay::read;

/// The differences between a trace and the replies of a real server.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub requests: u64,
    /// The number of requests that only Redlatch supports, or whose replies depend on the server or the time.
    pub not_comparable: u64,
    pub differences: Vec<String>,
    /// How many of the last expected replies did not come in time.
    silent: usize,
}

/// After so many replies in a row that did not come, the server counts as dead.
pub const MAX_SILENT: usize = 3;

/// The lines of the state at the beginning that no reply of another server depends on.
const LEFT_OUT: [&str; 6] = ["BEGIN", "END", "COMMAND", "COSTS", "RULES", "GATES"];

/// Commands whose replies depend on the server, its clients or the time.
const NOT_COMPARABLE: [&str; 22] = [
    "acl",
    "bgsave",
    "client",
    "command",
    "config",
    "debug",
    "hello",
    "info",
    "lastsave",
    "latency",
    "memory",
    "monitor",
    "object",
    "randomkey",
    "role",
    "shutdown",
    "slowlog",
    "spop",
    "srandmember",
    "hrandfield",
    "zrandmember",
    "time",
];

/// The largest difference between integers that count as equal: most are times to live, which a real clock never reads exactly.
const TOLERANCE: i64 = 100;

struct Client {
    link: Link,
    /// Output in the trace that has not been compared yet.
    expected: Vec<u8>,
    request: String,
    line: usize,
    comparable: bool,
}

/// Replays the text of a trace against `address`, `HOST:PORT`. `timeout`: how long the server may take for a reply.
/// `progress` gets the number of the line about to be replayed, and the report so far.
///
/// # Errors
/// The text is not a trace, the server cannot be reached or holds keys, or it does not reply in time to any of
/// [`MAX_SILENT`] requests in a row.
pub fn replay(
    text: &str,
    address: &str,
    timeout: Duration,
    progress: &mut dyn FnMut(usize, &Report),
) -> Result<Report, String> {
    let addr = address
        .to_socket_addrs()
        .ok()
        .and_then(|mut addrs| addrs.next())
        .ok_or_else(|| format!("{address} is not an address"))?;
    let mut control = Link::open(addr)?;
    match control.call(&["DBSIZE"]).as_deref() {
        Some(b":0\r\n") => {}
        Some(reply) if reply.starts_with(b":") => {
            return Err(format!("{address} holds keys: they would be lost"));
        }
        Some(reply) => return Err(format!("{address} answers {}", String::from_utf8_lossy(reply).trim())),
        None => return Err(format!("{address} does not answer")),
    }
    let mut report = Report::default();
    let mut clients: BTreeMap<Conn, Client> = BTreeMap::new();
    let mut began: Option<(Instant, u64)> = None;
    for (number, _, line) in read(text) {
        progress(number, &report);
        if report.silent >= MAX_SILENT {
            let seconds = timeout.as_secs_f64();
            return Err(format!(
                "line {number}: {address} has not replied within {seconds} s to {MAX_SILENT} requests in a row"
            ));
        }
        let line = line.map_err(|why| format!("line {number}: {why}"))?;
        if let Line::Open { t, .. } | Line::Setup { t, .. } | Line::Req { t, .. } | Line::Close { t, .. } =
            line
        {
            settle(&mut clients, &mut report);
            let (start, first_us) = *began.get_or_insert((Instant::now(), t));
            let due = start + Duration::from_micros(t.saturating_sub(first_us));
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        match line {
            Line::Open { c, .. } => {
                let link = Link::open_with(addr, timeout)?;
                let client = Client {
                    link,
                    expected: Vec::new(),
                    request: String::new(),
                    line: number,
                    comparable: true,
                };
                clients.insert(c, client);
            }
            Line::Close { c, .. } => {
                clients.remove(&c);
            }
            Line::State { a, .. } => {
                let what = a.first().map_or("", String::as_str);
                if !LEFT_OUT.contains(&what) {
                    return Err(format!(
                        "line {number}: {address} does not have the state in which the trace begins: {what}"
                    ));
                }
            }
            Line::Setup { c, a, .. } | Line::Req { c, a, .. } => {
                let args = a.iter().map(|arg| to_bytes(arg)).collect::<Result<Vec<_>, _>>();
                let args = args.map_err(|error| error.to_string())?;
                let argv: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                let Some(client) = clients.get_mut(&c) else { continue };
                let Some(name) = argv.first().filter(|name| !is_sim_command(name)) else {
                    report.not_comparable += 1;
                    client.comparable = false;
                    continue;
                };
                let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                client.comparable = !NOT_COMPARABLE.contains(&name.as_str());
                report.not_comparable += !client.comparable as u64;
                report.requests += 1;
                client.request = summary(&argv);
                client.line = number;
                client.link.send(&redlatch_core::wire::client::encode(&argv));
            }
            Line::Out { c, b, .. } => {
                if let Some(client) = clients.get_mut(&c) {
                    client.expected.extend(to_bytes(&b).map_err(|error| error.to_string())?);
                }
            }
            _ => {}
        }
    }
    settle(&mut clients, &mut report);
    Ok(report)
}

/// Waits for the output that the trace has, and compares it value by value.
fn settle(clients: &mut BTreeMap<Conn, Client>, report: &mut Report) {
    for (conn, client) in clients {
        while let Some(len) = value_len(&client.expected) {
            let expected: Vec<u8> = client.expected.drain(..len).collect();
            let real = client.link.receive();
            report.silent = if real.is_some() { 0 } else { report.silent + 1 };
            if report.silent >= MAX_SILENT {
                return;
            }
            if client.comparable && !real.as_ref().is_some_and(|real| are_equal(&expected, real)) {
                let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
                report.differences.push(format!(
                    "line {}: {} of {conn}\n  here:   {}\n  server: {}",
                    client.line,
                    client.request,
                    shown(&expected),
                    real.as_deref().map_or("nothing".to_owned(), shown)
                ));
            }
        }
    }
}

fn are_equal(a: &[u8], b: &[u8]) -> bool {
    let number = |bytes: &[u8]| {
        let digits = bytes.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
        redlatch_core::num::parse_i64(digits)
    };
    a == b
        || match (number(a), number(b)) {
            (Some(a), Some(b)) => a > TOLERANCE && b > TOLERANCE && a.abs_diff(b) <= TOLERANCE as u64,
            _ => false,
        }
}
