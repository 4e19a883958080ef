//! A soak: for minutes, clients do everything that could leave something behind. Afterwards the server has to be as it was before.
//!
//! | file | concept |
//! |---|---|
//! | `traffic` | what the clients do |
//! | `census` | what the server holds |
//!
//! A short run of the same traffic comes first, because a process keeps some memory that it has once used. Then the clients leave, their
//! keys expire, and the first census is taken; the second one after the soak, in the same way.

mod census;
mod traffic;

use std::io::Write;
use std::time::{Duration, Instant};

use super::server::Server;
use super::{grouped, rule, say};
use crate::diff::link::Link;
use census::Census;

/// The options of a soak.
pub struct Soak {
    pub length: Duration,
}

/// How much of the length the first, short run takes, and how long it is at most.
const WARM_UP: f64 = 0.2;
const LONGEST_WARM_UP: Duration = Duration::from_secs(60);

/// How long the server may take until everything that the clients did is over.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the server has to stay the same to count as quiet.
const QUIET: Duration = Duration::from_millis(500);

/// Runs the soak and writes a table to `out`. Returns whether the server is as it was before.
///
/// # Errors
/// The server does not answer any more, or is no redlatch of this machine.
pub fn run(server: &Server, soak: &Soak, out: &mut dyn Write) -> Result<bool, String> {
    let mut link = server.link()?;
    for setting in [
        ["busy-reply-threshold", "20"],
        ["client-output-buffer-limit", "pubsub 1mb 0 0"],
        ["notify-keyspace-events", "KEA"],
    ] {
        let reply = link.call(&["CONFIG", "SET", setting[0], setting[1]]);
        reply
            .filter(|reply| reply.starts_with(b"+OK"))
            .ok_or_else(|| format!("cannot set {}", setting[0]))?;
    }
    traffic::run(server, soak.length.mul_f64(WARM_UP).min(LONGEST_WARM_UP))?;
    let before = quiet(server, &mut link)?;
    let done = traffic::run(server, soak.length)?;
    let after = quiet(server, &mut link)?;

    say(out, format!("soak of {:.0} s on {}\n", soak.length.as_secs_f64(), server.name));
    let headings = format!("| {:42} | {:>12} |", "what the clients did", "times");
    say(out, &headings);
    say(out, rule(&headings));
    for (what, count) in done.iter().copied().chain(after.done_since(&before)) {
        say(out, format!("| {what:42} | {:>12} |", grouped(count as f64)));
    }
    say(out, "");
    let headings =
        format!("| {:42} | {:>12} | {:>12} | {:14} |", "what the server holds", "before", "after", "");
    say(out, &headings);
    say(out, rule(&headings));
    let rows = after.compared_with(&before);
    for row in &rows {
        let verdict = if row.is_fine() { "as before" } else { "MORE" };
        let (before, after) = (grouped(row.before as f64), grouped(row.after as f64));
        say(out, format!("| {:42} | {before:>12} | {after:>12} | {verdict:14} |", row.what));
    }
    Ok(rows.iter().all(census::Row::is_fine))
}

/// Waits until nothing changes any more on a server whose clients have left.
fn quiet(server: &Server, link: &mut Link) -> Result<Census, String> {
    let began = Instant::now();
    let mut last = Census::take(server, link)?;
    loop {
        std::thread::sleep(QUIET);
        let census = Census::take(server, link)?;
        let is_over = census.is_idle() && census.holds_as_much_as(&last);
        if is_over || began.elapsed() > PATIENCE {
            return Ok(census);
        }
        last = census;
    }
}
