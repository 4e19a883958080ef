//! `redlatch`: runs the server.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::Options;
use super::drop_in::{self, Identity, log};
use super::options::NodeOptions;
use super::run::Faked;
use crate::net::{Acceptor, Endpoint, Listener, Server};
use redlatch_core::node::Config;
use redlatch_core::topology::{Part, Topology};
use redlatch_core::version::Version;
use redlatch_core::world::WorldOptions;
use redlatch_lab::control::Lab;

/// Serves until a signal or a SHUTDOWN stops the server.
pub fn serve(options: Options) -> ExitCode {
    let is_drop_in = options.identity.is_drop_in();
    match in_runtime(options, async |options| run(options).await) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            match is_drop_in {
                true => {
                    tracing::error!("{message}");
                    eprintln!("{message}");
                }
                false => eprintln!("redlatch: {message}"),
            }
            ExitCode::FAILURE
        }
    }
}

/// Serves a lab that is there already, its nodes on this port and those that follow, until a signal or a SHUTDOWN.
pub fn serve_lab(lab: Lab, port: u16) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut listeners = Vec::new();
        for node in 0..lab.world().nodes().len() {
            let port =
                if port == 0 { 0 } else { port.checked_add(node as u16).ok_or("the port is too large")? };
            let endpoint = Endpoint::Tcp(SocketAddr::from(([127, 0, 0, 1], port)));
            listeners
                .push(Listener::bind(node, &endpoint).map_err(|error| cannot_listen(&endpoint, &error))?);
        }
        let stop = StopSignal::listen().map_err(|error| format!("cannot handle signals: {error}"))?;
        let version = lab.world().nodes()[0].config.version;
        let server = Server::new(lab);
        greet(version, &listeners);
        server.run(listeners, stop.received(&server)).await;
        Ok(())
    })
}

/// Serves until a command ends, and returns the command's exit code.
pub fn serve_until(options: Options, command: Faked) -> Result<u8, String> {
    in_runtime(options, async |options| run_command(options, command).await)
}

fn in_runtime<T>(options: Options, act: impl AsyncFnOnce(Options) -> Result<T, String>) -> Result<T, String> {
    // Before the runtime, which has threads.
    options.process.daemonize()?;
    options.log.begin().map_err(|why| match options.identity.is_drop_in() {
        true => format!("{}\n{why}", drop_in::fatal_config(options.version())),
        false => why,
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, act(options))
}

async fn run(options: Options) -> Result<(), String> {
    let is_drop_in = options.identity.is_drop_in();
    let is_sentinel = options.nodes.iter().any(|node| node.config.sentinel.is_some());
    if is_sentinel {
        log::begin_sentinel();
    }
    if is_drop_in {
        log::greet_starting(options.version(), options.process.is_configured);
    }
    let _pidfile = options.process.write_pidfile();
    let (configs, listeners) = listen(&options)?;
    // The signal handlers come first: whoever reads the ready line may send a signal at once.
    let stop = StopSignal::listen().map_err(|error| format!("cannot handle signals: {error}"))?;
    let version = configs[0].version;
    let is_clustered = configs[0].cluster.enabled;
    let port = configs[0].get("port").unwrap_or("0").to_owned();
    let mut sentinel = None;
    let server = start(&options, configs, |lab| sentinel.clone_from(&lab.world().nodes()[0].sentinel))?;
    tell_about_settings(&options);
    if options.ready_json {
        println!("{}", ready_line(&options, &listeners));
    }
    match is_drop_in {
        _ if options.ready_json => {}
        true if sentinel.is_some() => sentinel.iter().for_each(|own| log::greet_sentinel(own, &port)),
        true => log::greet_ready(
            version,
            is_clustered,
            listeners.iter().filter_map(|listener| listener.endpoint().ok()),
        ),
        false => greet(version, &listeners),
    }
    server.run(listeners, stop.received(&server)).await;
    if is_drop_in {
        log::say_goodbye(version, is_sentinel);
    }
    Ok(())
}

/// Logs what is unexpected about the configuration.
fn tell_about_settings(options: &Options) {
    options.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let idle: Vec<&str> =
        options.given.iter().filter(|(_, has_effect)| !has_effect).map(|(name, _)| name.as_str()).collect();
    if !idle.is_empty() {
        tracing::info!("Settings that are accepted and have no effect here: {}", idle.join(" "));
    }
}

async fn run_command(options: Options, mut command: Faked) -> Result<u8, String> {
    let (configs, listeners) = listen(&options)?;
    let stop = StopSignal::listen().map_err(|error| format!("cannot handle signals: {error}"))?;
    let endpoints: Vec<Endpoint> = listeners.iter().filter_map(|listener| listener.endpoint().ok()).collect();
    let server = start(&options, configs, |lab| command.introduce(lab))?;
    let began_ms = since_epoch().as_millis() as i64;
    let mut child = command.start(&endpoints, began_ms)?;
    let jumps = server.command_jumps();
    let mut ended = Ok(1);
    let mut look = tokio::time::interval(LOOK);
    let until = async {
        let mut stop = std::pin::pin!(stop.received(&server));
        loop {
            tokio::select! {
                status = child.wait() => {
                    ended = Ok(status.ok().and_then(|status| status.code()).map_or(1, |code| code as u8));
                    return;
                }
                _ = look.tick() => if let Err(why) = command.look_at_processes() {
                    ended = Err(why);
                    return;
                },
                ms = jumps.next() => command.jump(ms, began_ms),
                () = &mut stop => return,
            }
        }
    };
    server.run(listeners, until).await;
    ended
}

/// How often the processes of a command are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Opens all endpoints, and puts the actual ports into the settings.
fn listen(options: &Options) -> Result<(Vec<Config>, Vec<Listener>), String> {
    let mut configs: Vec<Config> = options.nodes.iter().map(|node| node.config.clone()).collect();
    configs.iter_mut().for_each(|config| config.process_id = std::process::id());
    if options.nodes.iter().all(|node| node.endpoints.is_empty()) {
        return Err("Configured to not listen anywhere, exiting.".to_owned());
    }
    let sockets: usize = options.nodes.iter().map(|node| node.endpoints.len()).sum();
    fit_maxclients(&mut configs, sockets)?;
    let mut listeners = Vec::new();
    for (index, (NodeOptions { endpoints, .. }, config)) in options.nodes.iter().zip(&mut configs).enumerate()
    {
        for endpoint in endpoints {
            let listener = match *endpoint {
                Endpoint::Tls(addr) => Listener::bind_tls(index, addr, acceptor(config, options.identity)?),
                _ => Listener::bind(index, endpoint),
            };
            let listener = listener.map_err(|error| cannot_listen(endpoint, &error))?;
            if let Ok(Endpoint::Tcp(addr)) = listener.endpoint() {
                config.set_at_start("port", addr.port().to_string().as_bytes())?;
            }
            if let Some(mode) = socket_permissions(config)? {
                listener.set_permissions(mode).map_err(|error| format!("unixsocketperm: {error}"))?;
            }
            listeners.push(listener);
        }
    }
    if let Some(endpoint) = &options.control {
        listeners.push(Listener::bind_control(endpoint).map_err(|error| cannot_listen(endpoint, &error))?);
    }
    Ok((configs, listeners))
}

/// Returns how a node receives clients that speak TLS.
fn acceptor(config: &Config, identity: Identity) -> Result<Acceptor, String> {
    Acceptor::new(config).map_err(|error| match identity.is_drop_in() {
        true => {
            tracing::error!("{error}");
            "Failed to configure TLS. Check logs for more info.".to_owned()
        }
        false => format!("TLS: {error}"),
    })
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Creates the server. Its clock starts now. `prepare` sees its lab before a trace begins.
fn start(
    options: &Options,
    nodes: Vec<Config>,
    prepare: impl FnOnce(&mut Lab),
) -> Result<Rc<Server>, String> {
    let now = since_epoch();
    let mut lab = Lab::new(WorldOptions {
        seed: options.seed.unwrap_or(now.as_nanos() as u64),
        clock: options.clock,
        wall_start_ms: options.wall_start_ms.unwrap_or(now.as_millis() as i64),
        nodes,
        topology: options.topology,
    });
    if let Some(checks) = &options.checks {
        lab.start_checks(checks.clone());
    }
    lab.serve_control_anywhere(options.control_anywhere);
    prepare(&mut lab);
    let server = Server::new(lab);
    if let Some(path) = options.process.dump_file() {
        let shown = path.display().to_string();
        let loaded = server.keep_data_in(path).map_err(|error| format!("cannot load {shown}: {error}"))?;
        if let Some(keys) = loaded {
            tracing::info!("Done loading RDB, keys loaded: {keys}.");
        }
    }
    if let Some(dir) = &options.trace_dir {
        server.allow_traces_below(dir).map_err(|error| format!("--trace-dir {dir}: {error}"))?;
    }
    if let Some(path) = &options.trace {
        server.sync_trace(options.trace_sync);
        server.trace_to(path).map_err(|error| format!("cannot write the trace to {path}: {error}"))?;
    }
    Ok(server)
}

/// Returns `unixsocketperm`, an octal number, unless it is 0.
fn socket_permissions(config: &Config) -> Result<Option<u32>, String> {
    let text = config.get("unixsocketperm").unwrap_or_default();
    match u32::from_str_radix(text, 8) {
        Ok(0) => Ok(None),
        Ok(mode) if mode <= 0o777 => Ok(Some(mode)),
        _ => Err(format!("unixsocketperm {text}: not an octal number from 0 to 777")),
    }
}

/// The file descriptors that the process needs besides those of its clients, as in Redis.
const RESERVED_FILES: u64 = 32;

/// Raises the limit of open files as far as the system allows, tells the nodes how many clients they may have, and lowers `maxclients` to
/// that. `sockets`: how many the nodes listen on.
fn fit_maxclients(nodes: &mut [Config], sockets: usize) -> Result<(), String> {
    let count = nodes.len() as u64;
    let reserved = RESERVED_FILES + sockets as u64 - 1;
    let clients: u64 = nodes.iter().map(|node| node.maxclients as u64).sum();
    let wanted = clients + reserved;
    let limit = rlimit::increase_nofile_limit(u64::MAX)
        .map_err(|error| format!("cannot raise the limit of open files: {error}"))?;
    let room = limit.saturating_sub(reserved);
    for node in nodes.iter_mut() {
        let others = clients - node.maxclients as u64;
        node.most_clients = room.saturating_sub(others).max(room / count) as usize;
    }
    if limit >= wanted {
        return Ok(());
    }
    let each = room / count;
    if each == 0 {
        return Err(format!(
            "Your current 'ulimit -n' of {limit} is not enough for the server to start. Please increase your open file \
             limit to at least {wanted}. Exiting."
        ));
    }
    for node in nodes.iter_mut().filter(|node| node.maxclients as u64 > each) {
        tracing::warn!(
            "You requested maxclients of {} requiring at least {wanted} max file descriptors.",
            node.maxclients
        );
        tracing::warn!(
            "Current maximum open files is {limit}. maxclients has been reduced to {each} to compensate for low ulimit. \
             If you need higher maxclients increase 'ulimit -n'."
        );
        node.set_at_start("maxclients", each.to_string().as_bytes())?;
    }
    Ok(())
}

fn cannot_listen(endpoint: &Endpoint, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("cannot listen on {endpoint}: the address is in use; use --port to choose another port")
        }
        _ => format!("cannot listen on {endpoint}: {error}"),
    }
}

/// Returns what a program has to know of the servers, as a line of JSON.
fn ready_line(options: &Options, listeners: &[Listener]) -> serde_json::Value {
    let parts = options.topology.map(Topology::parts);
    let part = |node: usize| parts.as_ref().map_or(Part::Master, |parts| parts[node]);
    let tcp = |listener: &Listener| listener.endpoint().ok()?.tcp_port();
    let tls = |listener: &Listener| listener.endpoint().ok()?.tls_port();
    let nodes: Vec<serde_json::Value> = (0..options.nodes.len())
        .map(|node| {
            let of_node = || listeners.iter().filter(|listener| listener.node() == Some(node));
            let mut described = serde_json::json!({ "node": node, "port": of_node().find_map(tcp) });
            if let Some(port) = of_node().find_map(tls) {
                described["tls_port"] = port.into();
            }
            let (name, master) = match part(node) {
                Part::Master => ("master", None),
                Part::Replica { of } => ("replica", Some(of)),
                Part::Sentinel => ("sentinel", None),
            };
            described["part"] = name.into();
            if let Some(master) = master {
                described["of"] = master.into();
            }
            described
        })
        .collect();
    let control = listeners.iter().find(|listener| listener.node().is_none()).and_then(tcp);
    serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "emulates": options.version().to_string(),
        "pid": std::process::id(),
        "topology": options.topology.map(|topology| topology.to_string()),
        "nodes": nodes,
        "control_port": control,
    })
}

/// Prints a greeting to a terminal, and to a program the ready line that redis-server prints too.
fn greet(version: Version, listeners: &[Listener]) {
    let endpoints: Vec<String> = listeners
        .iter()
        .filter_map(|listener| listener.endpoint().ok())
        .map(|endpoint| endpoint.to_string())
        .collect();
    if !version.is_verified() {
        println!("{} was not verified against a reference server.", version.title());
    }
    if io::stdout().is_terminal() {
        println!(
            "Redlatch {}: a Redis-protocol server in memory, to test distributed locks.",
            env!("CARGO_PKG_VERSION")
        );
        println!("Emulates {}, listens on {}.", version.title(), endpoints.join(", "));
        println!("Redisson: config.useSingleServer().setAddress(\"redis://{}\");", endpoints[0]);
        println!("Ctrl-C stops the server; redlatch --help shows the options.");
    } else {
        for endpoint in endpoints {
            println!("Redlatch listens on {endpoint}");
        }
        println!("Ready to accept connections");
    }
}

/// How long the server has to stop in order after a signal.
const GRACE: Duration = Duration::from_millis(800);

/// Waits for Ctrl-C or SIGTERM, and ignores SIGHUP, on a thread of its own: whatever a client makes the server do, it ends.
struct StopSignal {
    received: oneshot::Receiver<()>,
    stopping: mpsc::Sender<Arc<AtomicBool>>,
}

impl StopSignal {
    fn listen() -> io::Result<StopSignal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        drop(guard);
        let (send, received) = oneshot::channel();
        let (stopping, stops) = mpsc::channel::<Arc<AtomicBool>>();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => return,
                        _ = terminate.recv() => return,
                        _ = hang_up.recv() => {}
                    }
                }
            });
            stops.try_iter().for_each(|stopping| stopping.store(true, Ordering::Relaxed));
            let _ = send.send(());
            std::thread::sleep(GRACE);
            eprintln!("redlatch: a request did not end within {} ms after the signal", GRACE.as_millis());
            std::process::exit(1);
        })?;
        Ok(StopSignal { received, stopping })
    }

    /// Waits for a signal, at which the scripts of `server` give up.
    async fn received(self, server: &Server) {
        let _ = self.stopping.send(server.stopping());
        let _ = self.received.await;
    }
}
