//! The options of the server: Redlatch's own, and redis-server's.
//!
//! redis-server accepts any line of redis.conf as `--name value …`. Programs that start a redis-server pass such arguments, so
//! Redlatch accepts them as well.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::net::Endpoint;
use redlatch_core::node::Config;
use redlatch_core::version::{UnknownVersion, Version};
use redlatch_core::world::ClockMode;
use redlatch_lab::control::args::Args;
use redlatch_lab::control::commands::check;
use redlatch_locks::check::Checks;

/// A Redis-protocol server in memory, made to test distributed locks.
///
/// Connect any Redis client to it. It runs the unmodified scripts of Redisson and answers like the Redis release
/// that it emulates. It writes no data to disk.
#[derive(Parser, Clone, Debug)]
#[command(name = "redlatch", version, max_term_width = 100)]
#[command(after_help = "\
Any line of redis.conf is accepted as --name value too (--maxclients 100, --notify-keyspace-events Ex, …), so \
redlatch can be started instead of redis-server. Settings about the disk are accepted and have no effect.

Examples:
  redlatch                                     one server on 127.0.0.1:6379
  redlatch --port 5378 --port 5379 --port 5380 three independent masters, for RedLock
  redlatch --port 0                            a free port, which the server prints
  redlatch --redis-version 7.0 redis.conf      emulate Redis 7.0, with a configuration file
  redlatch --trace run.jsonl                   record the run
  redlatch replay run.jsonl                    replay it and compare the outputs")]
struct Cli {
    /// A configuration file in the format of redis.conf.
    #[arg(value_name = "CONFIG_FILE")]
    config_file: Option<PathBuf>,

    /// The TCP port to listen on; 0 picks a free one. Each further --port starts another independent master in this
    /// process, with the same clock [default: 6379].
    #[arg(long, short, value_name = "PORT")]
    port: Vec<u16>,

    /// The addresses to listen on [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", num_args = 1.., value_delimiter = ' ')]
    bind: Vec<String>,

    /// A Unix socket that the first server listens on as well.
    #[arg(long, value_name = "PATH")]
    unixsocket: Option<PathBuf>,

    /// The password of the default user.
    #[arg(long, value_name = "PASSWORD")]
    requirepass: Option<String>,

    /// The Redis release to emulate: 7.0, 7.2, 7.4, 8.0, 8.2, 8.4 or 8.6; 8.8 and 8.10 were not verified
    /// [default: 8.6].
    #[arg(long, value_name = "RELEASE", conflicts_with = "valkey_version")]
    redis_version: Option<Version>,

    /// The Valkey release to emulate instead: 8.1, 9.0 or 9.1; 9.2 was not verified.
    #[arg(long, value_name = "RELEASE", value_parser = parse_valkey)]
    valkey_version: Option<Version>,

    /// The seed of all random choices [default: different at each start].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// The speed of the clock: real, a factor such as 10 for ten times as fast, or manual for a clock that only
    /// SIM.CLOCK moves.
    #[arg(long, value_name = "MODE", default_value = "real", value_parser = parse_clock)]
    clock: ClockMode,

    /// Record all requests, replies and messages to this file, for redlatch replay.
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,

    /// Write each turn of the server to the trace before its replies leave, so that not even kill -9 loses what a
    /// client was told. Without it at most the last 100 ms are lost.
    #[arg(long, requires = "trace")]
    trace_sync: bool,
    /// Let clients record traces with SIM.TRACE START, to new files below this directory.
    #[arg(long, value_name = "DIRECTORY")]
    trace_dir: Option<String>,

    /// Check the invariants of locks, like SIM.CHECK ON: all of them, or those listed (rw,A1@read.unlock,STRICT).
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "ALL")]
    check: Option<String>,

    /// A TCP port on 127.0.0.1 for SIM.* commands, which stays open while nodes are stopped.
    #[arg(long, value_name = "PORT")]
    control_port: Option<u16>,

    /// Accept SIM.* commands from other machines without a password too.
    #[arg(long)]
    control_anywhere: bool,

    /// What to log to standard error: error, warn, info, debug, trace, or a filter of the tracing crate.
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

fn parse_valkey(text: &str) -> Result<Version, UnknownVersion> {
    format!("valkey-{text}").parse()
}

fn parse_clock(text: &str) -> Result<ClockMode, String> {
    match text {
        "real" => Ok(ClockMode::Real),
        "manual" => Ok(ClockMode::Manual),
        rate => match rate.parse::<f64>() {
            Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(ClockMode::Rate(rate)),
            _ => Err("neither real, manual nor a positive number".to_owned()),
        },
    }
}

/// Parses the arguments of SIM.CHECK ON, separated by commas.
fn parse_checks(text: &str) -> Result<Checks, String> {
    let args: Vec<&[u8]> = text.split(',').map(str::as_bytes).collect();
    check::parse_checks(&mut Args::new(&args)).map_err(|error| format!("--check: {}", error.text))
}

/// One server of the process.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub config: Config,
    pub endpoints: Vec<Endpoint>,
}

/// The options of the server process.
#[derive(Clone, Debug)]
pub struct Options {
    pub nodes: Vec<NodeOptions>,
    pub seed: Option<u64>,
    pub clock: ClockMode,
    /// Unix time at the start in ms, if it is not the real time.
    pub wall_start_ms: Option<i64>,
    pub trace: Option<String>,
    /// Whether the trace is written before replies leave.
    pub trace_sync: bool,
    /// The directory below which clients may write traces.
    pub trace_dir: Option<String>,
    /// Whether clients of other machines may send SIM commands without a password.
    pub control_anywhere: bool,
    pub checks: Option<Checks>,
    pub control: Option<Endpoint>,
    pub log: String,
}

/// The options that [`Cli`] parses itself; all others are lines of redis.conf.
const OWN: [&str; 15] = [
    "port",
    "bind",
    "unixsocket",
    "requirepass",
    "redis-version",
    "valkey-version",
    "seed",
    "clock",
    "trace",
    "trace-dir",
    "check",
    "control-port",
    "trace-sync",
    "control-anywhere",
    "log",
];

type Directive = (String, Vec<String>);

impl Options {
    /// Parses the arguments of the process, its name first.
    ///
    /// # Errors
    /// The exit code, after the help or an error message has been printed.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Options, ExitCode> {
        let (own, directives) = split_args(args);
        let command = Cli::command().before_help(super::list_subcommands());
        let cli = command.try_get_matches_from(own).and_then(|found| Cli::from_arg_matches(&found));
        let cli = cli.map_err(|error| {
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { 1 } else { 0 })
        })?;
        Options::new(cli, directives).map_err(|message| {
            eprintln!("redlatch: {message}");
            ExitCode::FAILURE
        })
    }

    fn new(mut cli: Cli, directives: Vec<Directive>) -> Result<Options, String> {
        let mut config = Config::new(cli.redis_version.or(cli.valkey_version).unwrap_or(Version::DEFAULT));
        config.process_id = std::process::id();
        if let Some(path) = cli.config_file.take() {
            let text = std::fs::read(&path).map_err(|error| cannot_read(&path, &error))?;
            for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
                apply_line(&mut cli, &mut config, line)
                    .map_err(|why| format!("{}:{}: {why}", path.display(), number + 1))?;
            }
        }
        for (name, values) in directives {
            apply(&mut cli, &mut config, &name, &values).map_err(|why| format!("--{name}: {why}"))?;
        }
        if let Some(password) = &cli.requirepass {
            config.set_at_start("requirepass", password.as_bytes())?;
        }
        let nodes = cli.nodes(&config)?;
        let control =
            cli.control_port.map(|port| Endpoint::Tcp(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)));
        let checks = cli.check.as_deref().map(parse_checks).transpose()?;
        Ok(Options {
            nodes,
            checks,
            seed: cli.seed,
            clock: cli.clock,
            wall_start_ms: None,
            trace: cli.trace,
            trace_sync: cli.trace_sync,
            trace_dir: cli.trace_dir,
            control_anywhere: cli.control_anywhere,
            control,
            log: cli.log,
        })
    }
}

/// Explains why a configuration file cannot be read. A plain word was probably meant as a subcommand.
fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    let shown = path.display();
    let is_word = path.extension().is_none() && path.components().count() == 1;
    if error.kind() != std::io::ErrorKind::NotFound || !is_word {
        return format!("cannot read {shown}: {error}");
    }
    let meant = super::nearest_subcommand(&shown.to_string());
    let hint =
        meant.map_or("--help lists the subcommands".to_owned(), |name| format!("did you mean '{name}'?"));
    format!("'{shown}' is neither a subcommand nor a configuration file: {hint}")
}

impl Cli {
    fn nodes(&self, config: &Config) -> Result<Vec<NodeOptions>, String> {
        let mut addresses = Vec::new();
        for address in self.bind.iter().flat_map(|addresses| addresses.split_ascii_whitespace()) {
            match parse_address(address)? {
                Some(address) => addresses.push(address),
                // A dash before an address makes it optional.
                None => continue,
            }
        }
        if addresses.is_empty() {
            addresses.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        let ports = if self.port.is_empty() { vec![6379] } else { self.port.clone() };
        let mut nodes = Vec::new();
        for &port in &ports {
            let mut config = config.clone();
            config.set_at_start("port", port.to_string().as_bytes())?;
            let tcp = addresses.iter().map(|&address| Endpoint::Tcp(SocketAddr::new(address, port)));
            nodes.push(NodeOptions { config, endpoints: tcp.collect() });
        }
        if let Some(path) = &self.unixsocket {
            nodes[0].config.set_at_start("unixsocket", path.display().to_string().as_bytes())?;
            nodes[0].endpoints.push(Endpoint::Unix(path.clone()));
        }
        Ok(nodes)
    }
}

/// Parses an address of `bind`. Returns `None` for an optional address that cannot be used here.
fn parse_address(text: &str) -> Result<Option<IpAddr>, String> {
    let optional = text.starts_with('-');
    match text.trim_start_matches('-') {
        "*" => Ok(Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED))),
        "localhost" => Ok(Some(IpAddr::V4(Ipv4Addr::LOCALHOST))),
        address => match address.parse() {
            Ok(IpAddr::V6(_)) if optional => Ok(None),
            Ok(address) => Ok(Some(address)),
            Err(_) => Err(format!("'{text}' is not an address to bind to")),
        },
    }
}

/// Splits the arguments into those of [`Cli`] and lines of redis.conf.
fn split_args(args: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<Directive>) {
    let mut own = Vec::new();
    let mut directives: Vec<Directive> = Vec::new();
    let mut in_directive = false;
    for arg in args {
        let name = arg.strip_prefix("--").map(|name| name.split('=').next().unwrap_or(name));
        match name {
            Some(name) if is_directive(name) => {
                directives.push((arg[2..].to_owned(), Vec::new()));
                in_directive = true;
            }
            Some(_) => {
                own.push(arg);
                in_directive = false;
            }
            None if in_directive => {
                if let Some((_, values)) = directives.last_mut() {
                    values.push(arg);
                }
            }
            None => own.push(arg),
        }
    }
    (own, directives)
}

/// Returns whether an option is a line of redis.conf.
fn is_directive(name: &str) -> bool {
    let is_known = || Version::ALL.iter().any(|&version| Config::new(version).get(name).is_some());
    !OWN.contains(&name) && (name == "include" || name == "user" || is_known())
}

/// Applies a line of a configuration file.
fn apply_line(cli: &mut Cli, config: &mut Config, line: &[u8]) -> Result<(), String> {
    let Some((name, values)) = Config::parse_line(line)? else { return Ok(()) };
    apply(cli, config, &name, &values)
}

/// Applies a line of redis.conf. Arguments of the process take precedence over the configuration file.
fn apply(cli: &mut Cli, config: &mut Config, name: &str, values: &[String]) -> Result<(), String> {
    let text = values.join(" ");
    match name {
        "port" if cli.port.is_empty() => cli.port.push(text.parse().map_err(|_| "not a port")?),
        "bind" if cli.bind.is_empty() => cli.bind = values.to_vec(),
        "unixsocket" if cli.unixsocket.is_none() => cli.unixsocket = Some(text.into()),
        "requirepass" if cli.requirepass.is_none() => cli.requirepass = Some(text),
        "port" | "bind" | "unixsocket" | "requirepass" => {}
        "save" if text == "\"\"" || text.is_empty() => config.set_at_start(name, b"")?,
        _ => config.set_at_start(name, text.as_bytes())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Options {
        let args = std::iter::once("redlatch").chain(args.iter().copied());
        Options::parse(args.map(str::to_owned)).unwrap()
    }

    #[test]
    fn starts_with_the_arguments_of_a_redis_server() {
        let options = parse(&[
            "--port",
            "7001",
            "--save",
            "",
            "--appendonly",
            "no",
            "--notify-keyspace-events",
            "Egx",
            "--maxclients",
            "100",
        ]);
        let node = &options.nodes[0];
        assert_eq!(node.endpoints[0].to_string(), "127.0.0.1:7001");
        assert_eq!(node.config.get("save"), Some(""));
        assert_eq!(node.config.get("maxclients"), Some("100"));
        assert_eq!(node.config.get("notify-keyspace-events"), Some("gxE"));
    }

    #[test]
    fn every_port_is_a_master() {
        let options = parse(&["--port", "5378", "--port", "5379", "--requirepass", "a123456"]);
        assert_eq!(options.nodes.len(), 2);
        assert!(options.nodes.iter().all(|node| node.config.requirepass == b"a123456"));
    }
}
