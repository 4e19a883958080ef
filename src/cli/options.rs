//! The options of the server: Redlatch's own, and redis-server's.
//!
//! redis-server accepts any line of redis.conf as `--name value …`. Programs that start a redis-server pass such arguments, so
//! Redlatch accepts them as well.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use super::directives::{Arguments, Files, Refused};
use super::drop_in::log::Log;
use super::drop_in::process::ProcessOptions;
use super::drop_in::{self, Identity};
use crate::net::Endpoint;
use redlatch_core::node::Config;
use redlatch_core::node::sentinel::settings::NO_SUCH_MASTER_LINE as NO_SUCH_MASTER;
use redlatch_core::topology::Topology;
use redlatch_core::version::{UnknownVersion, Version};
use redlatch_core::world::ClockMode;
use redlatch_lab::control::args::Args;
use redlatch_lab::control::commands::check;
use redlatch_locks::check::Checks;

/// A Redis-protocol server in memory, made to test distributed locks.
///
/// Connect any Redis client to it. It runs the unmodified scripts of Redisson and answers like the Redis release
/// that it emulates. It writes no data to disk
/// unless the configuration names a place.
#[derive(Parser, Clone, Debug)]
#[command(name = "redlatch", disable_version_flag = true, max_term_width = 100)]
#[command(after_help = "\
Any line of redis.conf is accepted as --name value too (--maxclients 100, --notify-keyspace-events Ex, …), so \
redlatch can be started instead of redis-server. Settings about the disk are accepted and have no effect.

Examples:
  redlatch                                     one server on 127.0.0.1:6379
  redlatch --port 5378 --port 5379 --port 5380 three independent masters, for RedLock
  redlatch --topology cluster:3x1 --port 7000  a cluster on ports 7000 to 7005, ready at once
  redlatch --port 0                            a free port, which the server prints
  redlatch --redis-version 7.0 redis.conf      emulate Redis 7.0, with a configuration file
  redlatch --trace run.jsonl                   record the run
  redlatch replay run.jsonl                    replay it and compare the outputs")]
struct Cli {
    /// A configuration file in the format of redis.conf. A - as the last argument reads more lines from standard input.
    #[arg(value_name = "CONFIG_FILE")]
    config_file: Option<PathBuf>,

    /// The TCP port to listen on; 0 picks a free one. Each further --port starts another independent master in this
    /// process, with the same clock [default: 6379].
    #[arg(long, short, value_name = "PORT")]
    port: Vec<u16>,

    /// What the servers of this process are for one another: cluster:3x1 (masters x replicas of each), sentinel:1x2+3 (a
    /// master, its replicas, sentinels), replicas:2 or masters:5. They listen on the port and those that follow it,
    /// or on the ports that are given one by one.
    #[arg(long, value_name = "SHAPE")]
    topology: Option<Topology>,

    /// Print one line of JSON as soon as the servers accept clients: the port and the part of each, the control port, the process.
    #[arg(long)]
    ready_json: bool,

    /// The addresses to listen on [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", num_args = 1.., value_delimiter = ' ')]
    bind: Vec<String>,

    /// A Unix socket that the first server listens on as well.
    #[arg(long, value_name = "PATH")]
    unixsocket: Option<PathBuf>,

    /// The password of the default user.
    #[arg(long, value_name = "PASSWORD", allow_hyphen_values = true)]
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

    /// The port at which the first server speaks TLS; those of a topology follow it. 0: none.
    #[arg(skip)]
    tls_port: u16,

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

    /// Print the version, and that of the emulated server.
    #[arg(long, short = 'v', visible_short_alias = 'V')]
    version: bool,

    /// Print what each line of the configuration does, and end.
    #[arg(long)]
    explain_config: bool,

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
    /// What the nodes are for one another.
    pub topology: Option<Topology>,
    /// Whether a line of JSON tells that the servers accept clients.
    pub ready_json: bool,
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
    pub log: Log,
    /// As which server the process speaks.
    pub identity: Identity,
    pub process: ProcessOptions,
    /// What to say at the start about the configuration, as warnings.
    pub warnings: Vec<String>,
    /// The settings of the configuration, and whether they have an effect.
    pub given: Vec<(String, bool)>,
}

/// The options that [`Cli`] parses itself although redis.conf has lines of these names, unless it stands in for redis-server.
const OWN_SETTINGS: [&str; 4] = ["port", "bind", "unixsocket", "requirepass"];

/// The options that [`Cli`] parses itself; all others are lines of redis.conf.
const OWN: [&str; 14] = [
    "topology",
    "ready-json",
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
    "explain-config",
    "log",
];

impl Options {
    /// Parses the arguments of the process, its name first.
    ///
    /// # Errors
    /// The exit code, after the help or an error message has been printed.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Options, ExitCode> {
        let args: Vec<String> = args.into_iter().collect();
        drop_in::refuse_not_served(&args)?;
        Options::parse_as(Identity::Redlatch, args)
    }

    /// Parses the arguments of a process that is started as the server of this identity.
    ///
    /// # Errors
    /// The exit code, after the help or an error message has been printed.
    pub fn parse_as(identity: Identity, args: impl IntoIterator<Item = String>) -> Result<Options, ExitCode> {
        let mut args: Vec<String> = args.into_iter().collect();
        let is_sentinel = args.iter().any(|arg| arg == drop_in::SENTINEL);
        args.retain(|arg| arg != drop_in::SENTINEL);
        let arguments = match identity.is_drop_in() {
            true => Arguments::split(args, |name| !OWN.contains(&name)),
            false => Arguments::split(args, is_directive),
        };
        let command = Cli::command().before_help(super::list_subcommands());
        let cli =
            command.try_get_matches_from(&arguments.own).and_then(|found| Cli::from_arg_matches(&found));
        let cli = cli.map_err(|error| {
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { 1 } else { 0 })
        })?;
        let version = cli.emulated(identity);
        if cli.version {
            println!("redlatch {}: {}", env!("CARGO_PKG_VERSION"), drop_in::version_line(version));
            return Err(ExitCode::SUCCESS);
        }
        let explains = cli.explain_config;
        let options = Options::new(identity, is_sentinel, cli, &arguments).map_err(|message| {
            match identity.is_drop_in() {
                true => eprintln!("{message}"),
                false => eprintln!("redlatch: {message}"),
            }
            ExitCode::FAILURE
        })?;
        if explains {
            drop_in::explain(&options);
            return Err(ExitCode::SUCCESS);
        }
        Ok(options)
    }

    fn new(
        identity: Identity,
        is_sentinel: bool,
        mut cli: Cli,
        arguments: &Arguments,
    ) -> Result<Options, String> {
        let mut config = Config::new(cli.emulated(identity));
        if is_sentinel {
            if cli.config_file.is_none() {
                return Err("Sentinel needs config file on disk to save state. Exiting...".to_owned());
            }
            config.sentinel = Some(Box::default());
            config.set_at_start("protected-mode", b"no")?;
        }
        if identity.is_drop_in() {
            config.set_at_start("bind", b"* -::*")?;
        }
        let mut settings = Settings::new(&mut cli, &mut config);
        settings.read(identity, arguments)?;
        settings.read_late_lines()?;
        let Settings { process, warnings, given, .. } = settings;
        // Names of Redlatch's own files are relative to where it was started.
        for path in [&mut cli.trace, &mut cli.trace_dir].into_iter().flatten() {
            *path = std::path::absolute(&path).map_or(path.clone(), |path| path.display().to_string());
        }
        process.enter_directory(&mut config)?;
        read_users(&mut config)?;
        if let Some(password) = &cli.requirepass {
            config.set_at_start("requirepass", password.as_bytes())?;
        }
        let nodes = cli.nodes(identity, &config)?;
        let control =
            cli.control_port.map(|port| Endpoint::Tcp(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)));
        let checks = cli.check.as_deref().map(parse_checks).transpose()?;
        Ok(Options {
            nodes,
            topology: cli.topology,
            ready_json: cli.ready_json,
            checks,
            seed: cli.seed,
            clock: cli.clock,
            wall_start_ms: None,
            trace: cli.trace,
            trace_sync: cli.trace_sync,
            trace_dir: cli.trace_dir,
            control_anywhere: cli.control_anywhere,
            control,
            log: Log::of(identity, &config, cli.log),
            identity,
            process,
            warnings,
            given,
        })
    }

    /// Returns the release that the first server emulates.
    pub fn version(&self) -> Version {
        self.nodes.first().map_or(Version::DEFAULT, |node| node.config.version)
    }
}

/// Reads the users of `aclfile`.
fn read_users(config: &mut Config) -> Result<(), String> {
    let path = config.get("aclfile").unwrap_or_default().to_owned();
    if path.is_empty() {
        return Ok(());
    }
    if !config.users.is_empty() {
        return Err("users are either in the configuration or in the aclfile, not in both".to_owned());
    }
    let mut apply = |name: &str, values: &[String]| match name {
        "user" => Ok(config.add_user(values)?),
        _ => Err("a line of an aclfile begins with user".to_owned()),
    };
    Files { apply: &mut apply, depth: 0 }.read(Path::new(&path)).map_err(|refused| refused.to_string())
}

impl Cli {
    /// Returns the release to emulate.
    fn emulated(&self, identity: Identity) -> Version {
        self.redis_version.or(self.valkey_version).unwrap_or(identity.default_version())
    }

    /// Returns the port of each server.
    fn ports(&self, config: &Config) -> Result<Vec<u16>, String> {
        let default_port = if config.sentinel.is_some() { 26_379 } else { 6_379 };
        let given = if self.port.is_empty() { &[default_port][..] } else { &self.port };
        let Some(topology) = self.topology else { return Ok(given.to_vec()) };
        let count = topology.parts().len();
        match *given {
            [0] => Ok(vec![0; count]),
            [first] => {
                let last = u16::try_from(usize::from(first) + count - 1);
                let last = last.map_err(|_| format!("no {count} ports follow {first}"))?;
                Ok((first..=last).collect())
            }
            _ if given.len() == count => Ok(given.to_vec()),
            _ => Err(format!(
                "--topology {topology} has {count} servers, and --port is given {} times",
                given.len()
            )),
        }
    }

    /// Returns the servers and where they listen. Port 0 means a free one, or none if this stands in for a redis-server.
    fn nodes(&self, identity: Identity, config: &Config) -> Result<Vec<NodeOptions>, String> {
        let mut addresses = Vec::new();
        let bind = match self.bind.is_empty() {
            true => vec![config.get("bind").unwrap_or_default().to_owned()],
            false => self.bind.clone(),
        };
        for address in bind.iter().flat_map(|addresses| addresses.split_ascii_whitespace()) {
            match parse_address(address)? {
                Some(address) => addresses.push(address),
                // A dash before an address makes it optional.
                None => continue,
            }
        }
        if addresses.is_empty() && !identity.is_drop_in() {
            addresses.push(Ipv4Addr::LOCALHOST.into());
        }
        let mut nodes = Vec::new();
        for (index, port) in self.ports(config)?.into_iter().enumerate() {
            let mut config = config.clone();
            // The files are those of the first server.
            config.has_driver = index == 0;
            config.config_file = config.config_file.filter(|_| index == 0);
            config.set_at_start("port", port.to_string().as_bytes())?;
            let listens = port != 0 || !identity.is_drop_in();
            let tcp = addresses.iter().filter(|_| listens);
            let tcp = tcp.map(|&address| Endpoint::Tcp(SocketAddr::new(address, port)));
            let mut endpoints: Vec<Endpoint> = tcp.collect();
            if self.tls_port != 0 {
                let port = u16::try_from(usize::from(self.tls_port) + index)
                    .map_err(|_| format!("tls-port {}: no ports follow it", self.tls_port))?;
                config.set_at_start("tls-port", port.to_string().as_bytes())?;
                endpoints
                    .extend(addresses.iter().map(|&address| Endpoint::Tls(SocketAddr::new(address, port))));
            }
            nodes.push(NodeOptions { config, endpoints });
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
    let address = match text.trim_start_matches('-') {
        "*" => Ipv4Addr::UNSPECIFIED.into(),
        "::*" => Ipv6Addr::UNSPECIFIED.into(),
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        address => address.parse().map_err(|_| format!("'{text}' is not an address to bind to"))?,
    };
    let is_usable = || std::net::TcpListener::bind((address, 0)).is_ok();
    Ok((!text.starts_with('-') || is_usable()).then_some(address))
}

fn parse_port(text: &str) -> Result<u16, String> {
    let port: i64 = text.parse().map_err(|_| "argument couldn't be parsed into an integer")?;
    u16::try_from(port).map_err(|_| "argument must be between 0 and 65535 inclusive".to_owned())
}

/// Returns whether an option is a line of redis.conf.
fn is_directive(name: &str) -> bool {
    let is_known = || Version::ALL.iter().any(|&version| Config::new(version).get(name).is_some());
    const BESIDES: [&str; 5] = ["include", "loadmodule", "rename-command", "sentinel", "user"];
    !OWN.contains(&name) && !OWN_SETTINGS.contains(&name) && (BESIDES.contains(&name) || is_known())
}

/// Applies lines of redis.conf in their order.
struct Settings<'a> {
    cli: &'a mut Cli,
    config: &'a mut Config,
    /// The settings that the arguments of [`Cli`] have made: they take precedence over configuration files.
    made: Vec<&'static str>,
    /// Whether a line said when to save. Such lines add up; the first replaces the default.
    has_save: bool,
    process: ProcessOptions,
    warnings: Vec<String>,
    given: Vec<(String, bool)>,
    /// Lines about masters that later lines name.
    late_lines: Vec<Vec<String>>,
}

impl Settings<'_> {
    fn new<'a>(cli: &'a mut Cli, config: &'a mut Config) -> Settings<'a> {
        let made =
            [!cli.port.is_empty(), !cli.bind.is_empty(), cli.unixsocket.is_some(), cli.requirepass.is_some()];
        let made = OWN_SETTINGS.into_iter().zip(made).filter_map(|(name, is_made)| is_made.then_some(name));
        Settings {
            made: made.collect(),
            cli,
            config,
            has_save: false,
            process: ProcessOptions::default(),
            warnings: Vec::new(),
            given: Vec::new(),
            late_lines: Vec::new(),
        }
    }

    /// Applies all lines that the arguments name.
    fn read(&mut self, identity: Identity, arguments: &Arguments) -> Result<(), String> {
        let version = self.config.version;
        let config_file = self.cli.config_file.take();
        let absolute = config_file.as_deref().and_then(|path| std::path::absolute(path).ok());
        self.config.config_file = absolute.map(|path| path.display().to_string());
        let directives = &arguments.directives;
        self.process.is_configured = config_file.is_some() || arguments.reads_stdin || !directives.is_empty();
        let mut apply = |name: &str, values: &[String]| self.apply(name, values);
        let mut files = Files { apply: &mut apply, depth: 0 };
        let read = match identity.is_drop_in() {
            true => files.read_joined(config_file.as_deref(), arguments),
            false => files.read_all(config_file.as_deref(), arguments),
        };
        read.map_err(|refused: Refused| match identity.is_drop_in() {
            true => refused.as_server(version),
            false => refused.to_string(),
        })
    }

    /// Applies a line.
    fn apply(&mut self, name: &str, values: &[String]) -> Result<(), String> {
        let text = values.join(" ");
        match name {
            "loadmodule" => {
                self.warnings.push(format!("Module {text} is not loaded: Redlatch has no modules"));
                return Ok(());
            }
            "rename-command" => {
                let [from, to] = values else {
                    return Err("Bad directive or wrong number of arguments".to_owned());
                };
                return Ok(self.config.rename_command(from.as_bytes(), to.as_bytes())?);
            }
            "sentinel" => return self.apply_to_sentinel(values),
            "user" => return Ok(self.config.add_user(values)?),
            "replicaof" | "slaveof" if values.len() != 2 => {
                return Err("wrong number of arguments".to_owned());
            }
            _ if values.len() != 1 && !Config::takes_several_values(name) => {
                return Err(match self.config.get(name) {
                    Some(_) => "wrong number of arguments",
                    None => "Bad directive or wrong number of arguments",
                }
                .to_owned());
            }
            "save" if !text.is_empty() && self.has_save => {
                let all = format!("{} {text}", self.config.get("save").unwrap_or_default());
                self.config.set_at_start(name, all.trim_start().as_bytes())?;
            }
            _ if self.made.contains(&name) => {}
            _ => self.config.set_at_start(name, text.as_bytes())?,
        }
        self.has_save |= name == "save";
        self.note(name, values, &text)
    }

    /// Applies a line about what a sentinel watches. It may come before the line that names its master.
    fn apply_to_sentinel(&mut self, values: &[String]) -> Result<(), String> {
        let settings =
            self.config.sentinel.as_mut().ok_or("sentinel directive while not in sentinel mode")?;
        match settings.read_line(values) {
            Err(why) if why == NO_SUCH_MASTER => self.late_lines.push(values.to_vec()),
            outcome => outcome?,
        }
        self.given.push((format!("sentinel {}", values[0]), true));
        Ok(())
    }

    /// Applies the lines about masters that had no name yet.
    fn read_late_lines(&mut self) -> Result<(), String> {
        let Some(settings) = &mut self.config.sentinel else { return Ok(()) };
        self.late_lines.iter().try_for_each(|values| settings.read_line(values))
    }

    /// Keeps what a line says to the process.
    fn note(&mut self, name: &str, values: &[String], text: &str) -> Result<(), String> {
        let cli = &mut *self.cli;
        self.given.push((name.to_owned(), Config::has_effect(name)));
        match name {
            _ if self.made.contains(&name) => {}
            "port" => cli.port = vec![parse_port(text)?],
            "bind" => cli.bind = values.to_vec(),
            "unixsocket" => cli.unixsocket = Some(text.into()),
            "requirepass" => cli.requirepass = Some(text.to_owned()),
            "dir" => self.process.set_dir(text)?,
            "dbfilename" => self.process.dump_name = Some(text.to_owned()),
            "daemonize" => self.process.daemonize = text.eq_ignore_ascii_case("yes"),
            "pidfile" => self.process.pidfile = Some(text.into()),
            "tls-port" => cli.tls_port = parse_port(text)?,
            _ => {}
        }
        Ok(())
    }
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
    fn takes_the_forms_of_redis_servers_arguments() {
        let get = |args: &[&str], name: &str| parse(args).nodes[0].config.get(name).map(str::to_owned);
        let save = |args: &[&str]| get(args, "save").unwrap();
        assert_eq!(parse(&["--requirepass 123456"]).nodes[0].config.requirepass, b"123456");
        assert_eq!(save(&["--save", "60", "1", "900", "2"]), "60 1 900 2");
        assert_eq!(save(&["--save", "60 1", "--save", "900", "2"]), "60 1 900 2");
        assert_eq!(save(&["--save '60 1'"]), "60 1");
        assert_eq!(save(&["--save"]), "");
        assert_eq!(save(&["--save", "--maxclients", "50"]), "");
        assert_eq!(get(&["--MAXCLIENTS", "31"], "maxclients").unwrap(), "31");
        let limits =
            get(&["--client-output-buffer-limit", "normal", "1", "2", "3"], "client-output-buffer-limit");
        assert!(limits.unwrap().starts_with("normal 1 2 3 "));
        // The value of a lone name may begin with dashes.
        assert_eq!(get(&["--masterauth", "--abc", "--maxclients", "30"], "masterauth").unwrap(), "--abc");
        let refused = |args: &[&str]| {
            Options::parse(std::iter::once("redlatch").chain(args.iter().copied()).map(str::to_owned))
                .is_err()
        };
        assert!(refused(&["--maxclients", "50", "60"]));
        assert!(refused(&["--maxclients"]));
        assert!(refused(&["--save", "1"]));
        assert!(refused(&["--test-memory", "10"]));
    }

    #[test]
    fn every_port_is_a_master() {
        let options = parse(&["--port", "5378", "--port", "5379", "--requirepass", "a123456"]);
        assert_eq!(options.nodes.len(), 2);
        assert!(options.nodes.iter().all(|node| node.config.requirepass == b"a123456"));
    }
}
