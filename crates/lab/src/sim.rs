//! The in-process handle: a world without sockets, for tests in Rust.

use sha1::{Digest, Sha1};

use crate::control::guard::{FaultGuard, GateGuard};
use crate::control::{Answer, Gate, Lab, Rule, SimCommand, SimError};
use redlatch_core::node::Config;
use redlatch_core::version::Version;
use redlatch_core::wire::RequestParser;
use redlatch_core::wire::client::{Frame, decode};
use redlatch_core::world::{ClockMode, ConnId, World, WorldOptions};
use redlatch_locks::check::{Checks, Finding};

/// A client of a [`Sim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(ConnId);

/// How a [`Sim`] begins.
#[derive(Clone, Debug)]
pub struct SimOptions {
    pub seed: u64,
    /// Independent masters.
    pub nodes: usize,
    pub version: Version,
    /// Unix time in ms at the beginning.
    pub wall_start_ms: i64,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        // An arbitrary but fixed day, so that a run does not depend on when it is made.
        SimOptions { seed: 0, nodes: 1, version: Version::V7_4, wall_start_ms: 1_700_000_000_000 }
    }
}

/// A world in this process, with a clock that moves only when told.
///
/// ```
/// let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
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

/// Slices after which a script that loops counts as busy: a slice stands for a millisecond.
const SLICES_PER_CALL: u64 = 1_000_000;

impl Sim {
    pub fn new(options: SimOptions) -> Sim {
        let nodes = vec![Config::new(options.version); options.nodes];
        Sim::with_configs(options.seed, options.wall_start_ms, nodes)
    }

    /// A world of nodes with settings of their own.
    pub fn with_configs(seed: u64, wall_start_ms: i64, nodes: Vec<Config>) -> Sim {
        let lab = Lab::new(WorldOptions { seed, clock: ClockMode::Manual, wall_start_ms, nodes });
        Sim { lab, outputs: Sha1::new(), clients: 0 }
    }

    pub fn world(&self) -> &World {
        self.lab.world()
    }

    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Opens a connection to a node.
    pub fn connect(&mut self, node: usize) -> Client {
        self.clients += 1;
        let addr = format!("127.0.0.1:{}", 50_000 + self.clients);
        Client(self.lab.open(node, addr, "127.0.0.1:6379".to_owned()))
    }

    /// Ends a connection.
    pub fn disconnect(&mut self, client: Client) {
        self.lab.close(client.0);
    }

    /// Sends one command and gives the bytes that the client has received since: its reply, after messages that
    /// came before. Nothing, if the command has to wait.
    pub fn call(&mut self, client: Client, argv: &[impl AsRef<[u8]>]) -> Vec<u8> {
        let argv: Vec<&[u8]> = argv.iter().map(AsRef::as_ref).collect();
        self.send(client, &argv);
        self.received(client)
    }

    /// Sends one command and leaves the reply to be [received](Self::received). A client that waits ignores it.
    pub fn send(&mut self, client: Client, argv: &[&[u8]]) {
        if !self.lab.world().is_ready(client.0) {
            return;
        }
        self.lab.request(client.0, argv);
        let mut slices = 0;
        while self.lab.run_slice(client.0.node) {
            slices += 1;
            if slices >= SLICES_PER_CALL || self.lab.world().is_busy(client.0.node) {
                break;
            }
        }
    }

    /// Lets a script that is still running go on for a slice. False: none is.
    pub fn run_slice(&mut self, node: usize) -> bool {
        self.lab.run_slice(node)
    }

    /// Sends bytes as they would come from a socket.
    pub fn send_bytes(&mut self, client: Client, mut bytes: &[u8]) {
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
    /// use redlatch_core::wire::client::Frame;
    ///
    /// let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
    /// let client = sim.connect(0);
    /// sim.send(client, &[b"INCR", b"n"]);
    /// assert_eq!(sim.frames(client), [Frame::Number { data: 1, attributes: None }]);
    /// ```
    pub fn frames(&mut self, client: Client) -> Vec<Frame> {
        let bytes = self.received(client);
        let mut rest = &bytes[..];
        let mut frames = Vec::new();
        while let Some((frame, len)) = decode(rest) {
            frames.push(frame);
            rest = &rest[len..];
        }
        frames
    }

    /// Whether a client waits: blocked, or held back.
    pub fn is_waiting(&self, client: Client) -> bool {
        !self.lab.world().is_ready(client.0)
    }

    /// Whether the server has ended the connection.
    pub fn is_closed(&self, client: Client) -> bool {
        self.lab.world().is_closing(client.0)
    }

    /// Moves the clock; every timer on the way fires at its own instant. Returns how many did.
    pub fn advance(&mut self, ms: u64) -> u64 {
        self.lab.advance(ms)
    }

    /// From here on everything is written down, to be [finished](Self::finish_trace).
    pub fn start_trace(&mut self) {
        self.lab.start_trace();
    }

    /// Ends the trace and gives its lines, for [`Replay`](crate::trace::Replay) or a file.
    pub fn finish_trace(&mut self) -> String {
        let mut lines = Vec::new();
        self.lab.end_trace();
        self.lab.take_trace(&mut lines);
        self.lab.stop_trace();
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// Adds a fault rule, which goes with the guard.
    ///
    /// ```
    /// use redlatch_lab::control::action::{Action, Stage};
    /// use redlatch_lab::control::{Clause, Match, Rule};
    ///
    /// let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
    /// let app = sim.connect(0);
    /// let rule = Rule::new(Match::any().and(Clause::Cmd(b"incr".to_vec())), Action::Drop(Stage::Reply));
    /// let lost = sim.fault(rule);
    /// assert_eq!(sim.call(app, &["INCR", "n"]), b"");
    /// drop(lost);
    /// let other = sim.connect(0);
    /// assert_eq!(sim.call(other, &["INCR", "n"]), b":2\r\n");
    /// ```
    #[must_use = "the rule goes with the guard"]
    pub fn fault(&mut self, rule: Rule) -> FaultGuard {
        self.lab.add_rule(rule)
    }

    /// Adds a gate, which goes with the guard; what it holds is let go then.
    ///
    /// ```
    /// use redlatch_lab::control::gates::At;
    /// use redlatch_lab::control::{Clause, Gate, Match};
    ///
    /// let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
    /// let app = sim.connect(0);
    /// let gate = sim.gate(Gate::new(Match::any().and(Clause::Cmd(b"get".to_vec())), At::Pre));
    /// assert_eq!(sim.call(app, &["GET", "k"]), b"");
    /// drop(gate);
    /// sim.advance(0);
    /// assert_eq!(sim.received(app), b"$-1\r\n");
    /// ```
    #[must_use = "the gate goes with the guard"]
    pub fn gate(&mut self, gate: Gate) -> GateGuard {
        self.lab.add_gate(gate)
    }

    /// From here on lock scripts are judged by the models of `redlatch fuzz`.
    ///
    /// ```
    /// use redlatch_locks::check::Checks;
    ///
    /// let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
    /// sim.check(Checks::default());
    /// // … clients lock and unlock …
    /// assert!(sim.findings().is_empty());
    /// ```
    pub fn check(&mut self, checks: Checks) {
        self.lab.start_checks(checks);
    }

    /// The promises of locks that were found broken.
    pub fn findings(&self) -> &[Finding] {
        self.lab.findings()
    }

    /// Applies a command of the control plane.
    pub fn apply(&mut self, command: SimCommand) -> Result<Answer, SimError> {
        self.lab.apply(command, None)
    }

    /// A hash over everything that was received so far and the state of all nodes.
    pub fn digest(&self) -> String {
        let outputs: String =
            self.outputs.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{outputs}-{}", self.lab.world().digest())
    }
}
