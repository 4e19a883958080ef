//! The servers that schedules run on: nodes in this process, whose clock only the schedule moves.

use super::branches::{self, Branch};
use crate::model::{Args, Message, Reply};
use crate::script_set::LockScript;
use crate::view::{Stores, View};
use redlatch_core::node::Config;
use redlatch_core::script::sha1_hex;
use redlatch_core::store::Store;
use redlatch_core::version::Version;
use redlatch_core::wire::client::elements;
use redlatch_core::world::{ClockMode, ConnId, World, WorldOptions};
use smallvec::SmallVec;

/// The most slices, of 100,000 instructions each, that a script may run.
const SLICES: usize = 100;

/// Several servers, and the connections through which a schedule uses them.
pub struct Bench {
    world: Servers,
    nodes: Vec<Lines>,
    /// The node that receives the next request.
    node: usize,
    /// The number of scripts that needed more than one slice.
    interrupted: u64,
    reply: Vec<u8>,
    /// The bytes that the listener received.
    pushed: Vec<u8>,
    messages: Vec<Message>,
    /// The requests and replies, if they are recorded.
    record: Option<Vec<Exchange>>,
    /// Whether to run the marked copies of scripts.
    watches_branches: bool,
}

/// The servers, in the form in which models read them.
struct Servers(World);

impl Stores for Servers {
    fn count(&self) -> usize {
        self.0.nodes().len()
    }

    fn store(&self, node: usize) -> (&Store, i64) {
        let node = &self.0.nodes()[node];
        (&node.store, node.wall_jump_ms)
    }
}

/// The connections to a node.
#[derive(Clone, Copy)]
struct Lines {
    client: ConnId,
    /// A subscriber to all channels.
    listener: ConnId,
}

/// A command and its reply. A script's text is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub node: usize,
    pub argv: Vec<Vec<u8>>,
    pub reply: Vec<u8>,
}

impl Exchange {
    /// Returns the arguments of the command.
    pub fn words(&self) -> Vec<&[u8]> {
        self.argv.iter().map(Vec::as_slice).collect()
    }
}

/// A script that the server can run, or a command if the text is empty.
#[derive(Clone, Debug)]
pub struct Loaded {
    plain: Text,
    /// The copy that shows which branches were taken.
    marked: Text,
    pub branches: Vec<Branch>,
    /// The number of keys for one object, and for two.
    keys: [String; 2],
}

#[derive(Clone, Debug)]
struct Text {
    sha: [u8; 40],
    text: String,
}

impl Text {
    fn new(text: String) -> Text {
        Text { sha: sha1_hex(text.as_bytes()), text }
    }
}

impl Loaded {
    /// Prepares a script.
    pub fn new(script: &LockScript) -> Loaded {
        let marked = branches::mark(&script.text);
        Loaded {
            plain: Text::new(script.text.clone()),
            marked: Text::new(marked.text),
            branches: marked.branches,
            keys: [1, 2].map(|objects| (objects * script.binding.keys.len()).to_string()),
        }
    }
}

impl Bench {
    /// Starts `nodes` empty servers that emulate `version`.
    pub fn new(version: Version, nodes: usize) -> Bench {
        let mut world = Servers(World::new(WorldOptions {
            seed: 0,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: (0..nodes).map(|_| Config::new(version)).collect(),
            topology: None,
        }));
        let mut open = |node| {
            let server = "127.0.0.1:6379".to_owned();
            let client = world.0.open(node, "127.0.0.1:50001".to_owned(), server.clone());
            let listener = world.0.open(node, "127.0.0.1:50002".to_owned(), server);
            world.0.request(listener, &[b"PSUBSCRIBE", b"*"]);
            world.0.take_output(listener, &mut Vec::new());
            Lines { client, listener }
        };
        let nodes = (0..nodes).map(&mut open).collect();
        Bench {
            world,
            nodes,
            node: 0,
            interrupted: 0,
            reply: Vec::new(),
            pushed: Vec::new(),
            messages: Vec::new(),
            record: None,
            watches_branches: false,
        }
    }

    /// Returns the Unix time in ms by the common clock.
    pub fn now_ms(&self) -> i64 {
        self.world.0.clock().now().wall_ms()
    }

    /// Returns the keyspace of the node that receives the next request.
    pub fn view(&self) -> View<'_> {
        View::of_node(&self.world, self.node, self.world.0.clock().now())
    }

    /// Sends the following requests to this node.
    pub fn speak_to(&mut self, node: usize) {
        self.node = node;
    }

    /// Empties all nodes and corrects their clocks.
    pub fn reset(&mut self) {
        for node in 0..self.nodes.len() {
            self.node = node;
            self.command(&[b"FLUSHALL"]);
            self.jump(-self.world.0.nodes()[node].wall_jump_ms);
        }
        self.node = 0;
    }

    /// Moves the wall clock of the node by `ms`. Recorded as the SIM command that does the same on a server.
    pub fn jump(&mut self, ms: i64) {
        if ms == 0 {
            return;
        }
        self.keep_silent();
        self.world.0.begin(self.node);
        let wall_ms = self.world.0.jump(self.node, ms);
        // The reply that a server's control plane gives.
        self.reply = format!("*2\r\n:{}\r\n:{wall_ms}\r\n", self.world.0.events()).into_bytes();
        let (ms, node) = (ms.to_string(), self.node.to_string());
        self.note(&[b"SIM.CLOCK", b"JUMP", ms.as_bytes(), b"NODE", node.as_bytes()]);
    }

    /// Returns the number of scripts that were interrupted because they needed more than one slice.
    pub fn interrupted(&self) -> u64 {
        self.interrupted
    }

    /// Forgets the last reply and messages, as when nothing was sent.
    pub fn keep_silent(&mut self) {
        self.reply.clear();
        self.messages.clear();
    }

    /// Moves the clock of all nodes forward by `ms`.
    pub fn advance(&mut self, ms: u64) {
        self.world.0.advance(ms);
    }

    /// Sends a command. Its reply remains available until the next one.
    pub fn command(&mut self, argv: &[&[u8]]) -> Reply<'_> {
        self.request(argv);
        self.note(argv);
        Reply::parse(&self.reply)
    }

    /// Records a request with its reply, if recording is on.
    fn note(&mut self, argv: &[&[u8]]) {
        if let Some(record) = &mut self.record {
            let argv = argv.iter().map(|arg| arg.to_vec()).collect();
            record.push(Exchange { node: self.node, argv, reply: self.reply.clone() });
        }
    }

    /// Turns recording of the branches that scripts take on or off.
    pub fn watch_branches(&mut self, on: bool) {
        if self.watches_branches != on {
            self.watches_branches = on;
            self.world.0.note_lines(on);
        }
    }

    /// Iterates over the branches that a script took in its last run, if they were recorded.
    pub fn branches_taken<'a>(&self, script: &'a Loaded) -> impl Iterator<Item = usize> + use<'a, '_> {
        let node = &self.world.0.nodes()[self.node];
        let branches = script.branches.iter().filter(|_| self.watches_branches).enumerate();
        branches.filter(|(_, branch)| node.has_reached(branch.line)).map(|(index, _)| index)
    }

    /// Runs a script for one or two objects, or a command. Loads the script first if the server does not have it, as clients do.
    pub fn run(&mut self, script: &Loaded, objects: usize, args: &Args) {
        if script.plain.text.is_empty() {
            let argv: SmallVec<[&[u8]; 16]> = args.iter().collect();
            self.request(&argv);
            return self.note(&argv);
        }
        let Text { sha, text } = if self.watches_branches { &script.marked } else { &script.plain };
        let mut argv: SmallVec<[&[u8]; 16]> = SmallVec::new();
        argv.extend([&b"EVALSHA"[..], sha, script.keys[objects - 1].as_bytes()]);
        argv.extend(args.iter());
        self.request(&argv);
        if self.reply.starts_with(b"-NOSCRIPT") {
            self.request(&[b"SCRIPT", b"LOAD", text.as_bytes()]);
            // A script that does not compile shows its own error.
            if !self.reply.starts_with(b"-") {
                self.request(&argv);
            }
        }
        if self.record.is_some() {
            argv[0] = b"EVAL";
            argv[1] = script.plain.text.as_bytes();
            self.note(&argv);
        }
    }

    /// Starts recording requests and replies.
    pub fn record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// Returns what was recorded since the last call.
    pub fn recorded(&mut self) -> Vec<Exchange> {
        self.record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn request(&mut self, argv: &[&[u8]]) {
        let Lines { client, listener } = self.nodes[self.node];
        self.world.0.request(client, argv);
        if self.world.0.is_running_script(self.node) {
            self.go_on();
        }
        self.reply.clear();
        self.world.0.take_output(client, &mut self.reply);
        self.messages.clear();
        self.pushed.clear();
        self.world.0.take_output(listener, &mut self.pushed);
        parse_messages(&self.pushed, &mut self.messages);
    }

    /// Continues a script that did not end in its first slice, and kills it if it does not end.
    fn go_on(&mut self) {
        self.interrupted += 1;
        let mut slices = 0;
        while self.world.0.run_slice(self.node) {
            slices += 1;
            if slices == SLICES {
                self.world.0.begin(self.node).abort_script();
                self.world.0.end(self.node, None);
            }
        }
    }

    /// Returns the last reply.
    pub fn reply(&self) -> Reply<'_> {
        Reply::parse(&self.reply)
    }

    /// Returns the bytes of the last reply.
    pub fn reply_bytes(&self) -> &[u8] {
        &self.reply
    }

    /// Returns the messages that the last request published.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
}

fn parse_messages(mut bytes: &[u8], into: &mut Vec<Message>) {
    while let Some(len) = redlatch_core::wire::client::value_len(bytes) {
        if let [_, _, channel, payload] = elements(&bytes[..len])[..]
            && let (Reply::Text(channel), Reply::Text(payload)) =
                (Reply::parse(channel), Reply::parse(payload))
        {
            into.push(Message { channel: channel.to_vec(), payload: payload.to_vec() });
        }
        bytes = &bytes[len..];
    }
}

#[cfg(test)]
mod tests {
    use crate::fuzz::{runner_for, schedule};
    use crate::invariant::Rules;
    use crate::model::Wanted;
    use crate::script_set::ScriptSet;

    #[test]
    fn a_script_without_an_end_is_ended_also_after_it_has_written() {
        for endless in ["repeat until false", "redis.call('set', KEYS[1], 1) while true do end"] {
            let part = format!("script = \"{endless}\"\nkeys = ['lock']\nargs = ['lease_ms']\n");
            let set = ScriptSet::of_own(&format!("[acquire]\n{part}[release]\n{part}")).unwrap();
            let mut runner = runner_for(&set, "own").unwrap();
            let steps = schedule::decode("500600").unwrap();
            runner.run(&steps, Rules::AsDocumented, &Wanted::default(), None);
        }
    }
}
