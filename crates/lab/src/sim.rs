//! The server in process, without sockets, for tests in Rust.

use crate::control::{Answer, Gate, Lab, Rule, SimCommand, SimError};
use crate::handle::{Control, FaultGuard, GateGuard};
use redlatch_core::node::{Config, ConfigError};
use redlatch_core::script::{Digest, Sha1};
use redlatch_core::topology::Topology;
use redlatch_core::version::Version;
use redlatch_core::wire::value::DecodeError;
use redlatch_core::wire::{RequestParser, Value};
use redlatch_core::world::{ClockMode, ConnId, World, WorldOptions};
use redlatch_locks::check::{Checks, Finding};

/// A client of a [`Sim`]. It is not valid in another `Sim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(ConnId);

/// Why a client of a [`Sim`] could not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The node does not exist.
    NoNode {
        /// The node that was asked for.
        node: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// The client waits for the reply to an earlier request: it is blocked, or a gate or a delay holds the request.
    Waiting,
    /// The connection is closed.
    Closed,
    /// No reply came: the command waits, or the reply was lost.
    NoReply,
    /// What was received is not a reply.
    NotAReply(DecodeError),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CallError::NoNode { node, nodes } => {
                write!(f, "there is no node {node}: there are {nodes}, numbered from 0")
            }
            CallError::Waiting => write!(f, "the client still waits for the reply to an earlier request"),
            CallError::Closed => write!(f, "the connection of the client is closed"),
            CallError::NoReply => write!(f, "no reply has come"),
            CallError::NotAReply(error) => write!(f, "what was received is not a reply: {error}"),
        }
    }
}

impl std::error::Error for CallError {}

/// How a [`Sim`] begins.
///
/// ```
/// use redlatch_lab::{Sim, SimOptions};
///
/// let sim = Sim::new(SimOptions::default().nodes(3).seed(7));
/// assert_eq!(sim.world().nodes().len(), 3);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SimOptions {
    /// What random choices come from.
    pub seed: u64,
    /// How many nodes there are. Without a topology all of them are masters.
    pub nodes: usize,
    /// What the nodes are for one another.
    pub topology: Option<Topology>,
    /// The Redis release that the nodes emulate.
    pub version: Version,
    /// Unix time in ms at the beginning.
    pub wall_start_ms: i64,
    /// Names and values of settings, as in redis.conf, for all nodes.
    pub config: Vec<(String, String)>,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions {
            seed: 0,
            nodes: 1,
            topology: None,
            version: Version::DEFAULT,
            // An arbitrary but fixed day, so that a run does not depend on when it is made.
            wall_start_ms: 1_700_000_000_000,
            config: Vec::new(),
        }
    }
}

impl SimOptions {
    /// Sets the seed of random choices.
    pub fn seed(mut self, seed: u64) -> SimOptions {
        self.seed = seed;
        self
    }

    /// Sets the number of nodes.
    pub fn nodes(mut self, nodes: usize) -> SimOptions {
        self.nodes = nodes;
        self
    }

    /// Sets what the nodes are for one another, and with it how many there are.
    pub fn topology(mut self, topology: Topology) -> SimOptions {
        self.nodes = topology.parts().len();
        self.topology = Some(topology);
        self
    }

    /// Sets the Redis release to emulate.
    pub fn version(mut self, version: Version) -> SimOptions {
        self.version = version;
        self
    }

    /// Sets the Unix time in ms at the beginning.
    pub fn wall_start_ms(mut self, wall_ms: i64) -> SimOptions {
        self.wall_start_ms = wall_ms;
        self
    }

    /// Adds a setting of redis.conf for all nodes: `config("requirepass", "secret")`.
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> SimOptions {
        self.config.push((name.into(), value.into()));
        self
    }

    /// Returns the settings of each node.
    ///
    /// # Errors
    ///
    /// Fails if there are no nodes, or a setting does not exist or has a value that is not allowed.
    pub fn configs(&self) -> Result<Vec<Config>, OptionsError> {
        if self.nodes == 0 {
            return Err(OptionsError::NoNodes);
        }
        if let Some(topology) = self.topology.filter(|topology| topology.parts().len() != self.nodes) {
            return Err(OptionsError::Topology { topology, nodes: self.nodes });
        }
        let mut config = Config::new(self.version);
        // A test may do to its own server what DEBUG does.
        let defaults = [("enable-debug-command", "local")].into_iter();
        for (name, value) in defaults.chain(self.config.iter().map(|(name, value)| (&**name, &**value))) {
            config
                .set_at_start(name, value.as_bytes())
                .map_err(|why| OptionsError::Setting { name: name.to_owned(), why })?;
        }
        Ok(vec![config; self.nodes])
    }
}

/// Why options are not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// The options have no node.
    NoNodes,
    /// The topology has another number of nodes.
    Topology {
        /// The topology.
        topology: Topology,
        /// The number of nodes that the options ask for.
        nodes: usize,
    },
    /// A setting does not exist, or has a value that is not allowed.
    Setting {
        /// The setting.
        name: String,
        /// The error that Redis reports.
        why: ConfigError,
    },
}

impl std::fmt::Display for OptionsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OptionsError::NoNodes => write!(f, "there has to be at least one node"),
            OptionsError::Topology { topology, nodes } => {
                write!(f, "the topology {topology} has {} nodes, not {nodes}", topology.parts().len())
            }
            OptionsError::Setting { name, why } => write!(f, "the setting '{name}': {why}"),
        }
    }
}

impl std::error::Error for OptionsError {}

/// A server in process, with a clock that moves only when the test advances it.
///
/// ```
/// let mut sim = redlatch_lab::Sim::new(redlatch_lab::SimOptions::default());
/// let client = sim.connect(0);
/// assert_eq!(sim.call(client, &["SET", "lock", "me", "PX", "30000"]), b"+OK\r\n");
/// sim.advance(30_001);
/// assert_eq!(sim.call(client, &["GET", "lock"]), b"$-1\r\n");
/// ```
pub struct Sim {
    lab: Lab,
    outputs: Sha1,
    clients: u64,
}

impl Sim {
    /// Begins a run.
    ///
    /// # Panics
    ///
    /// Panics if the options ask for no node or for a setting that does not exist; [`try_new`](Self::try_new) does not.
    #[track_caller]
    pub fn new(options: SimOptions) -> Sim {
        Sim::try_new(options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Begins a run.
    ///
    /// # Errors
    ///
    /// Fails if the options ask for no node, or for a setting that does not exist or has a value that is not allowed.
    pub fn try_new(options: SimOptions) -> Result<Sim, OptionsError> {
        Ok(Sim::with_world(WorldOptions {
            nodes: options.configs()?,
            topology: options.topology,
            seed: options.seed,
            clock: ClockMode::Manual,
            wall_start_ms: options.wall_start_ms,
        }))
    }

    /// Begins a run of nodes that each have their own settings.
    pub fn with_world(options: WorldOptions) -> Sim {
        Sim { lab: Lab::new(options), outputs: Sha1::new(), clients: 0 }
    }

    /// Returns the state of the machine, to be read.
    pub fn world(&self) -> &World {
        self.lab.world()
    }

    /// Returns the machine with its control plane, to be read.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Opens a connection to a node.
    ///
    /// # Panics
    ///
    /// Panics if the node does not exist; [`try_connect`](Self::try_connect) does not.
    #[track_caller]
    pub fn connect(&mut self, node: usize) -> Client {
        self.try_connect(node).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Opens a connection to a node.
    ///
    /// # Errors
    ///
    /// Fails if the node does not exist.
    pub fn try_connect(&mut self, node: usize) -> Result<Client, CallError> {
        self.check_node(node)?;
        self.clients += 1;
        let addr = format!("127.0.0.1:{}", 50_000 + self.clients);
        Ok(Client(self.lab.open(node, addr, "127.0.0.1:6379".to_owned())))
    }

    /// Ends a connection.
    pub fn disconnect(&mut self, client: Client) {
        self.lab.close(client.0);
        self.lab.run_scripts();
    }

    /// Sends one command and returns the bytes that the client has received since its last call: the reply, after messages that
    /// came before. There are none if the command has to wait.
    ///
    /// # Panics
    ///
    /// Panics if the client still waits for an earlier reply, or if its connection is closed; [`try_call`](Self::try_call) does not.
    #[track_caller]
    pub fn call(&mut self, client: Client, argv: &[impl AsRef<[u8]>]) -> Vec<u8> {
        self.try_call(client, argv).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends one command and returns the bytes that the client has received, as [`call`](Self::call) does.
    ///
    /// # Errors
    ///
    /// Fails if the client still waits for an earlier reply, or if its connection is closed.
    pub fn try_call(&mut self, client: Client, argv: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, CallError> {
        let argv: Vec<&[u8]> = argv.iter().map(AsRef::as_ref).collect();
        self.try_send(client, &argv)?;
        Ok(self.received(client))
    }

    /// Sends one command and returns its reply, the last value that the client has received.
    ///
    /// ```
    /// use redlatch_core::wire::Value;
    ///
    /// let mut sim = redlatch_lab::Sim::new(redlatch_lab::SimOptions::default());
    /// let client = sim.connect(0);
    /// assert_eq!(sim.query(client, &["INCR", "n"])?, Value::Int(1));
    /// # Ok::<(), redlatch_lab::CallError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`try_call`](Self::try_call) does, and if no reply came: the command waits, or its reply was lost.
    pub fn query(&mut self, client: Client, argv: &[impl AsRef<[u8]>]) -> Result<Value, CallError> {
        let bytes = self.try_call(client, argv)?;
        values_of(&bytes)?.pop().ok_or(CallError::NoReply)
    }

    /// Sends one command and leaves the reply to be [received](Self::received).
    ///
    /// # Panics
    ///
    /// Panics if the client still waits for an earlier reply, or if its connection is closed; [`try_send`](Self::try_send) does not.
    #[track_caller]
    pub fn send(&mut self, client: Client, argv: &[&[u8]]) {
        self.try_send(client, argv).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Sends one command and leaves the reply to be [received](Self::received).
    ///
    /// # Errors
    ///
    /// Fails if the client still waits for an earlier reply, or if its connection is closed.
    pub fn try_send(&mut self, client: Client, argv: &[&[u8]]) -> Result<(), CallError> {
        self.check_ready(client)?;
        self.lab.request(client.0, argv);
        self.lab.run_scripts();
        Ok(())
    }

    /// Runs the suspended script of a node for one slice. Returns false if no script is running, or none is left.
    ///
    /// # Panics
    ///
    /// Panics if the node does not exist.
    #[track_caller]
    pub fn run_slice(&mut self, node: usize) -> bool {
        self.check_node(node).unwrap_or_else(|error| panic!("{error}"));
        self.lab.run_slice(node)
    }

    /// Sends the bytes of requests as they would come from a socket. An incomplete request at the end has no effect.
    ///
    /// # Panics
    ///
    /// Panics if a request comes while the client waits for an earlier reply, or if its connection is closed.
    #[track_caller]
    pub fn send_bytes(&mut self, client: Client, mut bytes: &[u8]) {
        self.check_ready(client).unwrap_or_else(|error| panic!("{error}"));
        let mut parser = RequestParser::default();
        loop {
            match parser.parse(bytes, self.lab.world().request_limits(client.0)) {
                Ok(Some(len)) => {
                    let args = parser.args(bytes);
                    self.send(client, &args);
                    bytes = &bytes[len..];
                }
                Ok(None) => return,
                Err(error) => return self.lab.protocol_error(client.0, &error),
            }
        }
    }

    fn check_node(&self, node: usize) -> Result<(), CallError> {
        let nodes = self.lab.world().nodes().len();
        if node < nodes { Ok(()) } else { Err(CallError::NoNode { node, nodes }) }
    }

    fn check_ready(&self, client: Client) -> Result<(), CallError> {
        self.check_node(client.0.node)?;
        let world = self.lab.world();
        match (world.is_ready(client.0), world.is_closing(client.0)) {
            (true, _) => Ok(()),
            (false, true) => Err(CallError::Closed),
            (false, false) => Err(CallError::Waiting),
        }
    }

    /// Takes the bytes that were written to a client.
    pub fn received(&mut self, client: Client) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.lab.take_output(client.0, &mut bytes);
        self.outputs.update(client.0.session.number.to_le_bytes());
        self.outputs.update(&bytes);
        bytes
    }

    /// Takes what was written to a client, as typed replies and messages.
    ///
    /// ```
    /// use redlatch_core::wire::Value;
    ///
    /// let mut sim = redlatch_lab::Sim::new(redlatch_lab::SimOptions::default());
    /// let client = sim.connect(0);
    /// sim.send(client, &[b"INCR", b"n"]);
    /// assert_eq!(sim.values(client)?, [Value::Int(1)]);
    /// # Ok::<(), redlatch_lab::CallError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not replies, as when a fault rule cut one off or made one up.
    pub fn values(&mut self, client: Client) -> Result<Vec<Value>, CallError> {
        values_of(&self.received(client))
    }

    /// Returns whether a client waits for a reply: it is blocked, or a gate or a delay holds its request.
    pub fn is_waiting(&self, client: Client) -> bool {
        !self.lab.world().is_ready(client.0)
    }

    /// Returns whether the server has closed the connection.
    pub fn is_closed(&self, client: Client) -> bool {
        self.lab.world().is_closing(client.0)
    }

    /// Advances the clock by `ms`. Every timer on the way fires at its own instant. Returns how many fired.
    pub fn advance(&mut self, ms: u64) -> u64 {
        let fired = self.lab.advance(ms);
        self.lab.run_scripts();
        fired
    }

    /// Starts to record a trace, which ends with [`finish_trace`](Self::finish_trace).
    pub fn start_trace(&mut self) {
        self.lab.start_trace();
    }

    /// Ends the trace and returns its lines, for `redlatch replay` or a file.
    pub fn finish_trace(&mut self) -> String {
        self.lab.finish_trace()
    }

    /// Returns the control plane: the clock, faults, gates, keys, nodes, checks, costs and traces.
    pub fn control(&mut self) -> Control<'_> {
        Control::of(&mut self.lab)
    }

    /// Adds a fault rule; dropping the guard removes it.
    ///
    /// # Panics
    ///
    /// Panics if the rule names a node that does not exist or could never match; [`Control::fault`] does not.
    #[track_caller]
    pub fn fault(&mut self, rule: Rule) -> FaultGuard {
        self.control().fault(rule).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Adds a gate; dropping the guard removes it and releases what it holds.
    ///
    /// # Panics
    ///
    /// Panics if the gate names a node that does not exist or could never match; [`Control::gate`] does not.
    #[track_caller]
    pub fn gate(&mut self, gate: Gate) -> GateGuard {
        self.control().gate(gate).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts to check the invariants of locks while clients use them.
    ///
    /// ```
    /// use redlatch_locks::check::Checks;
    ///
    /// let mut sim = redlatch_lab::Sim::new(redlatch_lab::SimOptions::default());
    /// sim.check(Checks::default());
    /// // … clients lock and unlock …
    /// assert!(sim.findings().is_empty());
    /// ```
    pub fn check(&mut self, checks: Checks) {
        self.lab.start_checks(checks);
    }

    /// Returns the first 1,000 violations that the checks have found.
    pub fn findings(&self) -> &[Finding] {
        self.lab.findings()
    }

    /// Applies a command of the control plane.
    ///
    /// # Errors
    ///
    /// Fails if the command names something that does not exist, or is not possible in the present state.
    pub fn apply(&mut self, command: SimCommand) -> Result<Answer, SimError> {
        self.control().apply(command)
    }

    /// Returns a hash over everything that clients have received and the state of all nodes.
    pub fn digest(&self) -> String {
        let outputs: String =
            self.outputs.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{outputs}-{}", self.lab.world().digest())
    }
}

/// Decodes all replies and messages in `bytes`.
fn values_of(mut bytes: &[u8]) -> Result<Vec<Value>, CallError> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let found = Value::decode(bytes).map_err(CallError::NotAReply)?;
        let (value, len) = found.ok_or(CallError::NotAReply(DecodeError::Malformed))?;
        values.push(value);
        bytes = &bytes[len..];
    }
    Ok(values)
}
