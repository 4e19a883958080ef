//! Benchmarks of servers side by side, over their sockets.
//!
//! All servers are measured in one run, in rounds that alternate between them, so that other load on the machine affects all of
//! them; rates are compared within a round. CPU time per request is measured as well: it shows the cost of a server even where
//! the benchmark itself is the bottleneck.
//!
//! | file | concept |
//! |---|---|
//! | `workload`, `scripts` | the requests |
//! | `load` | the connections that send them |
//! | `server` | the servers, and the CPU time and memory of their processes |
//! | `speed` | rates and latencies |
//! | `footprint` | memory |
//! | `soak` | what minutes of traffic leave behind |

// A driver: it talks to servers over sockets and measures time.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod footprint;
mod load;
mod server;
mod soak;
mod speed;
pub mod workload;

use std::io::Write;

use server::Server;
pub use soak::Soak;

/// What to measure.
pub enum Measure {
    Speed(Speed),
    Footprint,
    Soak(Soak),
}

/// The options of a speed measurement.
pub struct Speed {
    /// The names of the workloads; all if the list is empty.
    pub workloads: Vec<String>,
    pub connections: Vec<usize>,
    pub pipelines: Vec<usize>,
    /// The time for each row and server.
    pub seconds: f64,
    /// The number of requests for each row and server, instead of `seconds`.
    pub requests: Option<u64>,
    pub rounds: u32,
}

pub struct Options {
    /// The server that is compared with the others; without one, a redlatch is started.
    pub subject: Option<String>,
    pub against: Vec<String>,
    pub measure: Measure,
}

impl Options {
    /// Returns the most connections that are open at once.
    pub fn connections(&self) -> usize {
        let servers = self.against.len() + 1;
        match &self.measure {
            Measure::Speed(speed) => speed.connections.iter().max().map_or(0, |most| (most + 1) * servers),
            Measure::Footprint => footprint::connections(servers),
            Measure::Soak(_) => 0,
        }
    }
}

/// Runs the benchmark and writes Markdown tables to `out`. Returns false if a soak has left something behind.
///
/// # Errors
/// Why a server cannot be measured, in one line.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<bool, String> {
    let mut servers = vec![match &options.subject {
        Some(address) => Server::at(address)?,
        None => Server::spawn()?,
    }];
    for address in &options.against {
        servers.push(Server::at(address)?);
    }
    match &options.measure {
        Measure::Speed(speed) => speed::run(&servers, speed, out)?,
        Measure::Footprint => footprint::run(&servers, out)?,
        Measure::Soak(soak) => return soak::run(&servers[0], soak, out),
    }
    Ok(true)
}

/// Writes a line of a table. Ignores errors, because the reader may close the pipe early.
fn say(out: &mut dyn Write, line: impl AsRef<str>) {
    let _ = writeln!(out, "{}", line.as_ref());
    let _ = out.flush();
}

/// Returns the delimiter row below the headings of a Markdown table.
fn rule(headings: &str) -> String {
    headings.chars().map(|c| if c == '|' { '|' } else { '-' }).collect()
}

/// Formats a number in groups of three digits.
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
