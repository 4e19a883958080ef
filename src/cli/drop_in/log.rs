//! The log: of Redlatch on standard error, or of a server of another name in that server's form and place.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::{Identity, product};
use crate::cli::output::Lenient;
use crate::net::Endpoint;
use redlatch_core::node::Config;
use redlatch_core::node::sentinel::Sentinel;
use redlatch_core::version::Version;

/// What is logged, in which form and where.
#[derive(Clone, Debug)]
pub struct Log {
    /// A filter of the tracing crate.
    filter: String,
    /// The file that lines are appended to, if it is not a standard stream.
    file: Option<PathBuf>,
    /// Whether lines have the form of redis-server's.
    is_servers: bool,
}

impl Log {
    /// Returns the log of a process. A server of another name logs what its `loglevel` says.
    pub fn of(identity: Identity, config: &Config, filter: String) -> Log {
        let file = config.get("logfile").filter(|path| !path.is_empty()).map(PathBuf::from);
        let level = match config.get("loglevel") {
            Some("debug") => "trace",
            Some("verbose") => "debug",
            Some("warning") => "warn",
            Some("nothing") => "off",
            _ => "info",
        };
        let is_servers = identity.is_drop_in();
        Log { filter: if is_servers { level.to_owned() } else { filter }, file, is_servers }
    }

    /// Begins to log.
    ///
    /// # Errors
    /// If the file cannot be opened, or the filter is none, with the text of redis-server.
    pub fn begin(&self) -> Result<(), String> {
        let filter =
            EnvFilter::try_new(&self.filter).map_err(|_| format!("'{}' is not a log filter", self.filter))?;
        let subscriber = tracing_subscriber::fmt().with_env_filter(filter);
        // Internal errors would be printed to a closed standard error, which panics.
        let subscriber = subscriber.log_internal_errors(false);
        let file = self.file.as_ref().map(|path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|error| format!("Can't open the log file: {}", super::without_number(&error)))
        });
        let is_terminal = self.file.is_none() && io::stderr().is_terminal();
        match (file.transpose()?.map(Mutex::new), self.is_servers) {
            (Some(file), true) => subscriber.event_format(ServersForm).with_writer(file).init(),
            (Some(file), false) => subscriber.with_ansi(false).with_writer(file).init(),
            (None, true) => subscriber.event_format(ServersForm).with_writer(Stdout).init(),
            (None, false) => subscriber.with_ansi(is_terminal).with_writer(io::stderr).init(),
        }
        Ok(())
    }
}

/// The standard output, whose reader may go away.
struct Stdout;

impl MakeWriter<'_> for Stdout {
    type Writer = Lenient<io::Stdout>;

    fn make_writer(&self) -> Lenient<io::Stdout> {
        Lenient(io::stdout())
    }
}

/// The letter of lines: that of a child process, until the server has begun.
static ROLE: AtomicU8 = AtomicU8::new(b'C');

/// Lines as redis-server writes them: `PID:M 22 Nov 2026 10:00:00.000 * text`, in UTC.
struct ServersForm;

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static> FormatEvent<S, N>
    for ServersForm
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event,
    ) -> fmt::Result {
        let role = char::from(ROLE.load(Ordering::Relaxed));
        let mark = match *event.metadata().level() {
            Level::TRACE => '.',
            Level::DEBUG => '-',
            Level::INFO => '*',
            Level::WARN | Level::ERROR => '#',
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        write!(writer, "{}:{role} {} {mark} ", std::process::id(), utc(since_epoch.as_millis() as u64))?;
        context.format_fields(writer.by_ref(), event)?;
        writer.write_char('\n')
    }
}

/// Returns a Unix time in ms as `22 Nov 2026 10:00:00.000`.
fn utc(unix_ms: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // The years begin in March, so that the day that leap years add is the last one.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + u64::from(month >= 10);
    let month = MONTHS[((month + 2) % 12) as usize];
    format!("{day:02} {month} {year} {:02}:{:02}:{:02}.{ms:03}", time / 3600, time / 60 % 60, time % 60)
}

/// Writes the lines that a server writes before anything else.
pub fn greet_starting(version: Version, is_configured: bool) {
    let (pid, product, number) = (std::process::id(), product(version), version.full());
    tracing::info!("oO0OoO0OoO0Oo {product} is starting oO0OoO0OoO0Oo");
    tracing::info!(
        "{product} version={number}, bits=64, commit=00000000, modified=0, pid={pid}, just started"
    );
    match is_configured {
        true => tracing::info!("Configuration loaded"),
        false => tracing::warn!("Warning: no config file specified, using the default config."),
    }
    let _ = ROLE.compare_exchange(b'C', b'M', Ordering::Relaxed, Ordering::Relaxed);
}

/// Marks the lines from here on as those of a sentinel.
pub fn begin_sentinel() {
    ROLE.store(b'X', Ordering::Relaxed);
}

/// Writes the lines that a sentinel writes when it accepts connections. Harnesses wait for its id.
pub fn greet_sentinel(sentinel: &Sentinel, port: &str) {
    tracing::info!("Running mode=sentinel, port={port}.");
    tracing::info!("Sentinel ID is {}", sentinel.id);
    tracing::info!(
        "This is Redlatch {}: it watches masters of its own process alone",
        env!("CARGO_PKG_VERSION")
    );
}

/// Writes the lines that a server writes when it accepts connections.
pub fn greet_ready(version: Version, is_clustered: bool, endpoints: impl Iterator<Item = Endpoint>) {
    let endpoints: Vec<Endpoint> = endpoints.collect();
    let tcp = endpoints.iter().find_map(Endpoint::tcp_port);
    let tls = endpoints.iter().find_map(Endpoint::tls_port);
    let mode = if is_clustered { "cluster" } else { "standalone" };
    tracing::info!("Running mode={mode}, port={}.", tcp.or(tls).unwrap_or(0));
    tracing::info!("Server initialized");
    tracing::info!("This is Redlatch {} in place of {}", env!("CARGO_PKG_VERSION"), version.title());
    if version < Version::V7_2 {
        tracing::info!("Ready to accept connections");
        return;
    }
    let kinds = [
        ("tcp", tcp.is_some()),
        ("unix", endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Unix(_)))),
        ("tls", tls.is_some()),
    ];
    for (kind, _) in kinds.iter().filter(|(_, is_there)| *is_there) {
        tracing::info!("Ready to accept connections {kind}");
    }
}

/// Writes the last line of a server.
pub fn say_goodbye(version: Version, is_sentinel: bool) {
    let product = if is_sentinel { "Sentinel" } else { product(version) };
    tracing::warn!("{product} is now ready to exit, bye bye...");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "01 Jan 1970 00:00:00.000");
        assert_eq!(utc(951_782_399_999), "28 Feb 2000 23:59:59.999");
        assert_eq!(utc(951_782_400_000), "29 Feb 2000 00:00:00.000");
        assert_eq!(utc(1_795_341_600_037), "22 Nov 2026 10:00:00.037");
        assert_eq!(utc(4_102_444_799_000), "31 Dec 2099 23:59:59.000");
    }
}
