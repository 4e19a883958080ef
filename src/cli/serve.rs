//! `redlatch`: the server.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Options;
use super::options::NodeOptions;
use crate::net::{Endpoint, Listener, Server};
use crate::world::{World, WorldOptions};

/// Serves until a signal or a client ends it.
pub fn serve(options: Options) -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_new(&options.log);
    let Ok(filter) = filter else {
        eprintln!("redlatch: '{}' is not a log filter", options.log);
        return ExitCode::FAILURE;
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("redlatch: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let local = tokio::task::LocalSet::new();
    match local.block_on(&runtime, run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("redlatch: {message}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), String> {
    let clients: usize = options.nodes.iter().map(|node| node.config.maxclients).sum();
    raise_file_limit(clients);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut listeners = Vec::new();
    let mut configs = Vec::new();
    for (index, NodeOptions { mut config, endpoints }) in options.nodes.into_iter().enumerate() {
        for endpoint in &endpoints {
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
    // Before anybody is told that it runs, it has to be ready to end.
    let stop = StopSignal::listen().map_err(|error| format!("cannot handle signals: {error}"))?;
    greet(&configs[0], &listeners);
    let world = World::new(WorldOptions {
        seed: options.seed.unwrap_or(since_epoch.as_nanos() as u64),
        clock: options.clock,
        wall_start_ms: since_epoch.as_millis() as i64,
        nodes: configs,
    });
    let server = Server::new(world);
    if let Some(path) = &options.trace {
        server.trace_to(path).map_err(|error| format!("cannot write the trace to {path}: {error}"))?;
    }
    server.run(listeners, stop.received()).await;
    Ok(())
}

/// Every client takes a file descriptor, and shells allow few: redis-server raises the limit for itself too.
pub(super) fn raise_file_limit(clients: usize) {
    const OTHERS: u64 = 64;
    let wanted = clients as u64 + OTHERS;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(limit) if limit < wanted => {
            tracing::info!(limit, wanted, "fewer file descriptors than maxclients asks for")
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "cannot raise the number of file descriptors"),
    }
}

fn cannot_listen(endpoint: &Endpoint, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("cannot listen on {endpoint}: it is in use; --port takes another")
        }
        _ => format!("cannot listen on {endpoint}: {error}"),
    }
}

/// A person is told what this is; a program waits for the line that redis-server prints.
fn greet(config: &crate::node::Config, listeners: &[Listener]) {
    let endpoints: Vec<String> = listeners
        .iter()
        .filter_map(|listener| listener.endpoint().ok())
        .map(|endpoint| endpoint.to_string())
        .collect();
    if io::stdout().is_terminal() {
        println!(
            "Redlatch {}: a Redis-protocol server in memory, to test distributed locks.",
            env!("CARGO_PKG_VERSION")
        );
        println!("Stands for Redis {} and listens on {}.", config.version.full(), endpoints.join(", "));
        println!("Redisson: config.useSingleServer().setAddress(\"redis://{}\");", endpoints[0]);
        println!("Ctrl-C ends it. --help tells more.");
    } else {
        for endpoint in endpoints {
            println!("Redlatch listens on {endpoint}");
        }
        println!("Ready to accept connections");
    }
}

/// Ctrl-C or SIGTERM.
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
