//! Benchmarks of servers side by side, over their sockets.
//!
//! All servers are measured in one run, in rounds that go from server to server, so that whatever else the machine does
//! meets them alike; what is compared is each round's rates. Processor time for each request is measured as well: it
//! tells what a server costs even where the load is the limit.
//!
//! | file | concept |
//! |---|---|
//! | `workload`, `scripts` | what is sent |
//! | `load` | the connections that send it |
//! | `server` | the servers, and what the system says about them |
//! | `speed` | rates and latencies |
//! | `footprint` | memory |

// A driver: it talks to servers over sockets and measures time.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod footprint;
mod load;
mod server;
mod speed;
pub mod workload;

use std::io::Write;

use server::Server;

/// What to measure.
pub enum Measure {
    Speed(Speed),
    Footprint,
}

/// Which rates to measure, and how long.
pub struct Speed {
    /// Names of workloads; all if there are none.
    pub workloads: Vec<String>,
    pub connections: Vec<usize>,
    pub pipelines: Vec<usize>,
    /// For each row.
    pub seconds: f64,
    /// For each row, in the place of `seconds`.
    pub requests: Option<u64>,
    pub rounds: u32,
}

pub struct Options {
    /// The server that the others are compared with; one of our own if there is none.
    pub subject: Option<String>,
    pub against: Vec<String>,
    pub measure: Measure,
}

impl Options {
    /// The most connections that are open at once.
    pub fn connections(&self) -> usize {
        let servers = self.against.len() + 1;
        match &self.measure {
            Measure::Speed(speed) => speed.connections.iter().max().map_or(0, |most| (most + 1) * servers),
            Measure::Footprint => footprint::connections(servers),
        }
    }
}

/// Measures, and writes Markdown tables to `out`.
///
/// # Errors
/// One line: why a server cannot be measured.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<(), String> {
    let mut servers = vec![match &options.subject {
        Some(address) => Server::at(address)?,
        None => Server::spawn()?,
    }];
    for address in &options.against {
        servers.push(Server::at(address)?);
    }
    match &options.measure {
        Measure::Speed(speed) => speed::run(&servers, speed, out),
        Measure::Footprint => footprint::run(&servers, out),
    }
}

/// A line of a table; a reader that has gone away is no error.
fn say(out: &mut dyn Write, line: impl AsRef<str>) {
    let _ = writeln!(out, "{}", line.as_ref());
    let _ = out.flush();
}

/// What stands between the headings of a Markdown table and its rows.
fn rule(headings: &str) -> String {
    headings.chars().map(|c| if c == '|' { '|' } else { '-' }).collect()
}

/// A whole number in groups of three digits.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_grouped() {
        assert_eq!(super::grouped(999.4), "999");
        assert_eq!(super::grouped(1_234_567.0), "1,234,567");
    }
}
