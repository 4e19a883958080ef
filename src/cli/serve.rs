//! `redlatch`: runs the server.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Options;
use super::options::NodeOptions;
use super::run::Faked;
use crate::net::{Endpoint, Listener, Server};
use redlatch_core::node::Config;
use redlatch_core::world::WorldOptions;
use redlatch_lab::control::Lab;

/// Serves until a signal or a SHUTDOWN stops the server.
pub fn serve(options: Options) -> ExitCode {
    match in_runtime(options, async |options| run(options).await) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("redlatch: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until a command ends, and returns the command's exit code.
pub fn serve_until(options: Options, command: Faked) -> Result<u8, String> {
    in_runtime(options, async |options| run_command(options, command).await)
}

fn in_runtime<T>(options: Options, act: impl AsyncFnOnce(Options) -> Result<T, String>) -> Result<T, String> {
    let filter = tracing_subscriber::EnvFilter::try_new(&options.log)
        .map_err(|_| format!("'{}' is not a log filter", options.log))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        // Internal errors would be printed to a closed standard error, which panics.
        .log_internal_errors(false)
        .init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, act(options))
}

async fn run(options: Options) -> Result<(), String> {
    let (configs, listeners) = listen(&options)?;
    // The signal handlers come first: whoever reads the ready line may send a signal at once.
    let stop = StopSignal::listen().map_err(|error| format!("cannot handle signals: {error}"))?;
    greet(&configs[0], &listeners);
    let server = start(&options, configs)?;
    server.run(listeners, stop.received()).await;
    Ok(())
}

async fn run_command(options: Options, mut command: Faked) -> Result<u8, String> {
    let (configs, listeners) = listen(&options)?;
    let stop = StopSignal::listen().map_err(|error| format!("cannot handle signals: {error}"))?;
    let endpoints: Vec<Endpoint> = listeners.iter().filter_map(|listener| listener.endpoint().ok()).collect();
    let server = start(&options, configs)?;
    let began_ms = since_epoch().as_millis() as i64;
    let mut child = command.start(&endpoints, began_ms)?;
    let jumps = server.command_jumps();
    let mut code = 1;
    let until = async {
        let mut stop = std::pin::pin!(stop.received());
        loop {
            tokio::select! {
                status = child.wait() => {
                    code = status.ok().and_then(|status| status.code()).map_or(1, |code| code as u8);
                    return;
                }
                ms = jumps.next() => command.jump(ms, began_ms),
                () = &mut stop => return,
            }
        }
    };
    server.run(listeners, until).await;
    Ok(code)
}

/// Opens all endpoints, and puts the actual ports into the settings.
fn listen(options: &Options) -> Result<(Vec<Config>, Vec<Listener>), String> {
    let clients: usize = options.nodes.iter().map(|node| node.config.maxclients).sum();
    raise_file_limit(clients);
    let mut listeners = Vec::new();
    let mut configs = Vec::new();
    for (index, NodeOptions { config, endpoints }) in options.nodes.iter().enumerate() {
        let mut config = config.clone();
        for endpoint in endpoints {
            let listener =
                Listener::bind(index, endpoint).map_err(|error| cannot_listen(endpoint, &error))?;
            if let Ok(Endpoint::Tcp(addr)) = listener.endpoint() {
                config.set_at_start("port", addr.port().to_string().as_bytes())?;
            }
            listeners.push(listener);
        }
        configs.push(config);
    }
    if let Some(endpoint) = &options.control {
        listeners.push(Listener::bind_control(endpoint).map_err(|error| cannot_listen(endpoint, &error))?);
    }
    Ok((configs, listeners))
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Creates the server. Its clock starts now.
fn start(options: &Options, nodes: Vec<Config>) -> Result<Rc<Server>, String> {
    let now = since_epoch();
    let mut lab = Lab::new(WorldOptions {
        seed: options.seed.unwrap_or(now.as_nanos() as u64),
        clock: options.clock,
        wall_start_ms: options.wall_start_ms.unwrap_or(now.as_millis() as i64),
        nodes,
    });
    if let Some(checks) = &options.checks {
        lab.start_checks(checks.clone());
    }
    let server = Server::new(lab);
    if let Some(path) = &options.trace {
        server.trace_to(path).map_err(|error| format!("cannot write the trace to {path}: {error}"))?;
    }
    Ok(server)
}

/// Raises the limit of open files to one for each client, as redis-server does.
pub(super) fn raise_file_limit(clients: usize) {
    const OTHERS: u64 = 64;
    let wanted = clients as u64 + OTHERS;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(limit) if limit < wanted => {
            tracing::info!(limit, wanted, "the limit of file descriptors is lower than maxclients needs")
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "cannot raise the limit of file descriptors"),
    }
}

fn cannot_listen(endpoint: &Endpoint, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("cannot listen on {endpoint}: the address is in use; use --port to choose another port")
        }
        _ => format!("cannot listen on {endpoint}: {error}"),
    }
}

/// Prints a greeting to a terminal, and to a program the ready line that redis-server prints too.
fn greet(config: &Config, listeners: &[Listener]) {
    let endpoints: Vec<String> = listeners
        .iter()
        .filter_map(|listener| listener.endpoint().ok())
        .map(|endpoint| endpoint.to_string())
        .collect();
    if !config.version.is_verified() {
        println!("{} was not verified against a reference server.", config.version.title());
    }
    if io::stdout().is_terminal() {
        println!(
            "Redlatch {}: a Redis-protocol server in memory, to test distributed locks.",
            env!("CARGO_PKG_VERSION")
        );
        println!("Emulates {}, listens on {}.", config.version.title(), endpoints.join(", "));
        println!("Redisson: config.useSingleServer().setAddress(\"redis://{}\");", endpoints[0]);
        println!("Ctrl-C stops the server; redlatch --help shows the options.");
    } else {
        for endpoint in endpoints {
            println!("Redlatch listens on {endpoint}");
        }
        println!("Ready to accept connections");
    }
}

/// Waits for Ctrl-C or SIGTERM.
struct StopSignal {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignal {
    fn listen() -> io::Result<StopSignal> {
        Ok(StopSignal {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn received(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
