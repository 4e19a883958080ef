//! A server with real sockets on a thread of its own, for tests.

// A driver: here, and nowhere below, is the real world.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use redlatch_core::Version;
use redlatch_core::node::Config;
use redlatch_core::topology::Topology;
use redlatch_core::world::{ClockMode, WorldOptions};
use redlatch_lab::handle::{Job, Remote, Watch};
use redlatch_lab::{Control, Lab, OptionsError, SimOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::net::{Endpoint, Listener, Server};

/// How a [`TestServer`] begins.
///
/// ```
/// use redlatch::{ClockMode, ServerOptions};
///
/// let options = ServerOptions::default().nodes(3).clock(ClockMode::Manual).config("requirepass", "secret");
/// assert_eq!(options.nodes, 3);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// What random choices come from.
    pub seed: u64,
    /// How many nodes there are, each with its own port. Without a topology all of them are masters.
    pub nodes: usize,
    /// What the nodes are for one another.
    pub topology: Option<Topology>,
    /// The Redis release that the nodes emulate.
    pub version: Version,
    /// How the clock goes.
    pub clock: ClockMode,
    /// Unix time in ms at the beginning; `None` takes the machine's.
    pub wall_start_ms: Option<i64>,
    /// Names and values of settings, as in redis.conf, for all nodes.
    pub config: Vec<(String, String)>,
    /// Where the first node listens as well, if anywhere: a Unix socket.
    pub unix_socket: Option<PathBuf>,
}

impl Default for ServerOptions {
    /// One node that emulates the latest release, with the real clock.
    fn default() -> ServerOptions {
        let SimOptions { seed, nodes, version, .. } = SimOptions::default();
        ServerOptions {
            seed,
            nodes,
            topology: None,
            version,
            clock: ClockMode::Real,
            wall_start_ms: None,
            config: Vec::new(),
            unix_socket: None,
        }
    }
}

impl ServerOptions {
    /// Sets the seed of random choices.
    pub fn seed(mut self, seed: u64) -> ServerOptions {
        self.seed = seed;
        self
    }

    /// Sets the number of nodes.
    pub fn nodes(mut self, nodes: usize) -> ServerOptions {
        self.nodes = nodes;
        self
    }

    /// Sets what the nodes are for one another, and with it how many there are.
    pub fn topology(mut self, topology: Topology) -> ServerOptions {
        self.nodes = topology.parts().len();
        self.topology = Some(topology);
        self
    }

    /// Sets the Redis release to emulate.
    pub fn version(mut self, version: Version) -> ServerOptions {
        self.version = version;
        self
    }

    /// Sets how the clock goes: in real time, at a multiple of it, or only when [`Control`] moves it.
    pub fn clock(mut self, clock: ClockMode) -> ServerOptions {
        self.clock = clock;
        self
    }

    /// Sets the Unix time in ms at the beginning.
    pub fn wall_start_ms(mut self, wall_ms: i64) -> ServerOptions {
        self.wall_start_ms = Some(wall_ms);
        self
    }

    /// Adds a setting of redis.conf for all nodes: `config("requirepass", "secret")`.
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> ServerOptions {
        self.config.push((name.into(), value.into()));
        self
    }

    /// Makes the first node listen on a Unix socket as well.
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> ServerOptions {
        self.unix_socket = Some(path.into());
        self
    }

    fn configs(&self) -> Result<Vec<Config>, OptionsError> {
        let mut options = SimOptions::default().nodes(self.nodes).version(self.version);
        options.config.clone_from(&self.config);
        options.topology = self.topology;
        options.configs()
    }
}

/// Why a [`TestServer`] did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The options ask for something that cannot be had.
    Options(OptionsError),
    /// A thread or a socket could not be had.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Options(error) => write!(f, "{error}"),
            StartError::Io(error) => write!(f, "cannot start the server: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Options(error) => Some(error),
            StartError::Io(error) => Some(error),
        }
    }
}

impl From<OptionsError> for StartError {
    fn from(error: OptionsError) -> StartError {
        StartError::Options(error)
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

/// A server on ports of 127.0.0.1 that the system chooses, on a thread of its own. It stops when this is dropped.
///
/// ```
/// use std::io::{Read, Write};
/// use redlatch::{ClockMode, ServerOptions, TestServer};
///
/// let server = TestServer::start(ServerOptions::default().clock(ClockMode::Manual))?;
/// let mut client = std::net::TcpStream::connect(server.addr(0))?;
/// client.write_all(b"SET lock me PX 1000\r\n")?;
/// let mut reply = [0; 5];
/// client.read_exact(&mut reply)?;
/// assert_eq!(&reply, b"+OK\r\n");
///
/// assert_eq!(server.control().advance(1_001)?.expired, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TestServer {
    addrs: Vec<SocketAddr>,
    unix_socket: Option<PathBuf>,
    password: Option<String>,
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
}

/// What the server's thread tells when it listens.
struct Started {
    addrs: Vec<SocketAddr>,
    stopping: Arc<AtomicBool>,
}

impl TestServer {
    /// Starts a server and waits until it listens.
    ///
    /// # Errors
    ///
    /// Fails if the options ask for no node or for a setting that does not exist, or if no thread, port or Unix socket can be had.
    pub fn start(options: ServerOptions) -> Result<TestServer, StartError> {
        let configs = options.configs()?;
        let password =
            configs.first().map(|config| String::from_utf8_lossy(&config.requirepass).into_owned());
        let unix_socket = options.unix_socket.clone();
        let (messages, received) = unbounded_channel();
        let (started, starts) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("redlatch".to_owned())
            .spawn(move || serve(options, configs, received, &started))?;
        let outcome = starts.recv().unwrap_or_else(|_| Err(io::Error::other("its thread has panicked")));
        match outcome {
            Ok(Started { addrs, stopping }) => Ok(TestServer {
                addrs,
                unix_socket,
                password: password.filter(|password| !password.is_empty()),
                link: Arc::new(Link { messages, stopping }),
                thread: Some(thread),
            }),
            Err(error) => {
                // It has told why it ends.
                let _ = thread.join();
                Err(error.into())
            }
        }
    }

    /// Returns how many nodes there are.
    pub fn nodes(&self) -> usize {
        self.addrs.len()
    }

    /// Returns where a node listens.
    ///
    /// # Panics
    ///
    /// Panics if the node does not exist.
    #[track_caller]
    pub fn addr(&self, node: usize) -> SocketAddr {
        match self.addrs.get(node) {
            Some(addr) => *addr,
            None => panic!("there is no node {node}: there are {}, numbered from 0", self.addrs.len()),
        }
    }

    /// Returns the port of a node.
    ///
    /// # Panics
    ///
    /// Panics if the node does not exist.
    #[track_caller]
    pub fn port(&self, node: usize) -> u16 {
        self.addr(node).port()
    }

    /// Returns the address of a node as clients take it: `redis://127.0.0.1:40123`, with the password if there is one.
    ///
    /// # Panics
    ///
    /// Panics if the node does not exist.
    #[track_caller]
    pub fn url(&self, node: usize) -> String {
        let addr = self.addr(node);
        match &self.password {
            Some(password) => format!("redis://:{}@{addr}", percent_encoded(password)),
            None => format!("redis://{addr}"),
        }
    }

    /// Returns the path of the Unix socket, if there is one.
    pub fn unix_socket(&self) -> Option<&Path> {
        self.unix_socket.as_deref()
    }

    /// Returns the control plane: the clock, faults, gates, keys, nodes, checks, costs and traces.
    ///
    /// It belongs to the thread that asks for it; any thread that has the server may.
    pub fn control(&self) -> Control<'static> {
        Control::remote(self.link.clone())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.link.stopping.store(true, Ordering::Relaxed);
        // A server that a client has shut down is gone already.
        let _ = self.link.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the thread of the server has panicked");
        }
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("addrs", &self.addrs).finish_non_exhaustive()
    }
}

/// What other threads send to the server's.
enum Message {
    Job(Job),
    Watch(Watch),
    Stop,
}

/// The way to the server's thread. A message to a server that has stopped is dropped, and whoever waits for its answer learns so.
struct Link {
    messages: UnboundedSender<Message>,
    stopping: Arc<AtomicBool>,
}

impl Remote for Link {
    fn run(&self, job: Job) {
        let _ = self.messages.send(Message::Job(job));
    }

    fn watch(&self, watch: Watch) {
        let _ = self.messages.send(Message::Watch(watch));
    }
}

/// The thread of a server.
fn serve(
    options: ServerOptions,
    configs: Vec<Config>,
    messages: UnboundedReceiver<Message>,
    started: &mpsc::Sender<io::Result<Started>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // Whoever starts a server waits for this.
            let _ = started.send(Err(error));
            return;
        }
    };
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let (configs, listeners, addrs) = match listen(&options, configs) {
            Ok(open) => open,
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        let server = Server::new(Lab::new(WorldOptions {
            seed: options.seed,
            clock: options.clock,
            wall_start_ms: options.wall_start_ms.unwrap_or_else(machine_ms),
            nodes: configs,
            topology: options.topology,
        }));
        let _ = started.send(Ok(Started { addrs, stopping: server.stopping() }));
        server.run(listeners, run_messages(server.clone(), messages)).await;
    });
}

/// Opens a port for each node; the settings then know it.
fn listen(
    options: &ServerOptions,
    mut configs: Vec<Config>,
) -> io::Result<(Vec<Config>, Vec<Listener>, Vec<SocketAddr>)> {
    let any_port = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let (mut listeners, mut addrs) = (Vec::new(), Vec::new());
    for (node, config) in configs.iter_mut().enumerate() {
        let listener = Listener::bind(node, &any_port)?;
        if let Endpoint::Tcp(addr) = listener.endpoint()? {
            config.set_at_start("port", addr.port().to_string().as_bytes()).map_err(io::Error::other)?;
            addrs.push(addr);
        }
        listeners.push(listener);
    }
    if let Some(path) = &options.unix_socket {
        listeners.push(Listener::bind(0, &Endpoint::Unix(path.clone()))?);
    }
    Ok((configs, listeners, addrs))
}

/// Does what other threads ask for, until the server is to stop.
async fn run_messages(server: Rc<Server>, mut messages: UnboundedReceiver<Message>) {
    while let Some(message) = messages.recv().await {
        match message {
            Message::Job(job) => server.run_job(job),
            Message::Watch(watch) => server.add_watch(watch),
            Message::Stop => return,
        }
    }
}

fn machine_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as i64
}

/// A password as it may stand in a URL.
fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
