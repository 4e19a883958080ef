//! Measures rates and latencies of servers in alternating rounds.

use std::io::Write;
use std::time::Duration;

use super::load::{Load, Measured, Until};
use super::server::{Server, own_cpu_time};
use super::workload::{self, WAKEUP, WORKLOADS, Workload};
use super::{Speed, grouped, rule, say};

/// The length of the warm-up, as a part of a round.
const WARM_UP: f64 = 0.2;

pub fn run(servers: &[Server], speed: &Speed, out: &mut dyn Write) -> Result<(), String> {
    let wanted = |workload: &&Workload| {
        speed.workloads.is_empty() || speed.workloads.iter().any(|name| name == workload.name)
    };
    let width = servers.iter().map(|server| server.name.len()).max().unwrap_or(0).max("server".len());
    for workload in WORKLOADS.iter().filter(wanted) {
        say(out, format!("{}: {}\n", workload.name, workload.about));
        let headings = format!(
            "| clients | pipeline | {:width$} | {:>10} | {:>9} | {:>9} | {:>9} | {:>11} | {:>4} | {:23} | {:6} |",
            "server",
            "requests/s",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "CPU µs/req.",
            "load",
            "times as fast (rounds)",
            "by CPU"
        );
        say(out, &headings);
        say(out, rule(&headings));
        for &connections in &speed.connections {
            for &pipeline in &speed.pipelines {
                if workload.name != WAKEUP {
                    row(servers, workload, connections, pipeline, speed, width, out)?;
                }
            }
            if workload.name == WAKEUP {
                row(servers, workload, connections + 1, 1, speed, width, out)?;
            }
        }
        say(out, "");
    }
    Ok(())
}

/// A server in a row, with its measurements.
struct Entry<'a> {
    server: &'a Server,
    load: Load,
    total: Measured,
    /// Requests per second in each round.
    rates: Vec<f64>,
    server_cpu: Option<Duration>,
    load_cpu: Duration,
}

fn row(
    servers: &[Server],
    workload: &Workload,
    connections: usize,
    pipeline: usize,
    speed: &Speed,
    width: usize,
    out: &mut dyn Write,
) -> Result<(), String> {
    let keys = connections * pipeline;
    let mut entries = Vec::new();
    for server in servers {
        prepare(server, workload, keys)?;
        let mut load = Load::open(server.addr, workload, connections, pipeline)?;
        if workload.name == WAKEUP {
            load.subscribe()?;
        }
        load.run_once(workload, speed.until(WARM_UP))?;
        entries.push(Entry {
            server,
            load,
            total: Measured::new(),
            rates: Vec::new(),
            server_cpu: Some(Duration::ZERO),
            load_cpu: Duration::ZERO,
        });
    }
    for round in 0..speed.rounds {
        // Each round begins with another server.
        let first = round as usize % entries.len();
        let (late, early) = entries.split_at_mut(first);
        for entry in early.iter_mut().chain(late) {
            entry.measure(workload, speed.until(1.0))?;
        }
    }
    for (index, entry) in entries.iter().enumerate() {
        let compared = if index == 0 { Default::default() } else { entries[0].compared_with(entry) };
        say(out, entry.line(workload, connections, pipeline, width, compared));
    }
    for server in servers {
        clean(server, keys)?;
    }
    Ok(())
}

impl Speed {
    /// Returns when a part of a round ends.
    fn until(&self, part: f64) -> Until {
        let part = part / self.rounds as f64;
        match self.requests {
            Some(requests) => Until::Requests(((requests as f64 * part) as u64).max(1)),
            None => Until::Elapsed(Duration::from_secs_f64(self.seconds * part)),
        }
    }
}

impl Load {
    fn run_once(&mut self, workload: &Workload, until: Until) -> Result<Measured, String> {
        if workload.name == WAKEUP { self.run_wakeups(until) } else { self.run(until) }
    }
}

impl Entry<'_> {
    fn measure(&mut self, workload: &Workload, until: Until) -> Result<(), String> {
        let (server_before, load_before) = (self.server.cpu_time(), own_cpu_time());
        let measured = self.load.run_once(workload, until)?;
        let used = |before: Option<Duration>, after: Option<Duration>| after?.checked_sub(before?);
        let server_cpu = used(server_before, self.server.cpu_time());
        self.server_cpu = self.server_cpu.zip(server_cpu).map(|(sum, more)| sum + more);
        self.load_cpu += used(load_before, own_cpu_time()).unwrap_or_default();
        self.rates.push(measured.rate());
        self.total.add(&measured);
        Ok(())
    }

    /// Returns the server's CPU time per request, in µs.
    fn cpu_us(&self) -> Option<f64> {
        self.server_cpu.map(|used| used.as_secs_f64() * 1e6 / self.total.requests as f64)
    }

    /// Returns by which factor this server is faster than another, by rate and by CPU time.
    fn compared_with(&self, other: &Entry) -> (String, String) {
        let by_cpu = self.cpu_us().zip(other.cpu_us()).map(|(own, others)| format!("× {:.2}", others / own));
        (ratio(&self.rates, &other.rates), by_cpu.unwrap_or_default())
    }

    fn line(
        &self,
        workload: &Workload,
        connections: usize,
        pipeline: usize,
        width: usize,
        (by_rate, by_cpu): (String, String),
    ) -> String {
        let clients = connections - (workload.name == WAKEUP) as usize;
        let latency = |quantile| self.total.latency.value_at_quantile(quantile) as f64 / 1000.0;
        let cpu = self.cpu_us().map_or("-".to_owned(), |us| format!("{us:.2}"));
        let busy = 100.0 * self.load_cpu.as_secs_f64() / self.total.elapsed.as_secs_f64();
        format!(
            "| {clients:>7} | {pipeline:>8} | {:width$} | {:>10} | {:>9.1} | {:>9.1} | {:>9.1} | {cpu:>11} | {busy:>3.0}% | {by_rate:23} | {by_cpu:6} |",
            self.server.name,
            grouped(median(&self.rates)),
            latency(0.5),
            latency(0.99),
            latency(0.999),
        )
    }
}

/// Formats by which factor the subject is faster: median, minimum and maximum over the rounds.
fn ratio(subject: &[f64], other: &[f64]) -> String {
    let ratios: Vec<f64> = subject.iter().zip(other).map(|(subject, other)| subject / other).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    format!("× {:.2} ({least:.2}–{most:.2})", median(&ratios))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Loads the scripts into a server and prepares the keys.
fn prepare(server: &Server, workload: &Workload, keys: usize) -> Result<(), String> {
    clean(server, keys)?;
    let mut link = server.link()?;
    for request in workload::load_scripts() {
        server.call(&mut link, &request)?;
    }
    for request in (0..keys).flat_map(|key| workload.before(key)) {
        server.call(&mut link, &request)?;
    }
    Ok(())
}

fn clean(server: &Server, keys: usize) -> Result<(), String> {
    let mut link = server.link()?;
    for key in 0..keys {
        server.call(&mut link, &workload::clean(key))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_the_middle_round() {
        assert_eq!(ratio(&[10.0, 30.0, 20.0], &[10.0, 10.0, 10.0]), "× 2.00 (1.00–3.00)");
        assert_eq!(median(&[4.0, 1.0]), 2.5);
    }
}
