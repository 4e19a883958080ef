//! The server that schedules run on: one node in this process with a clock that moves when told.

use crate::locks::kit::Tool;
use crate::locks::model::{Args, Message, Reply};
use crate::locks::view::View;
use crate::node::Config;
use crate::version::Version;
use crate::wire::client::elements;
use crate::world::{ClockMode, ConnId, World, WorldOptions};
use smallvec::SmallVec;

/// A script loop is given up after so many slices of 100,000 instructions.
const SLICES: usize = 100;

pub struct Bench {
    world: World,
    client: ConnId,
    /// Hears everything that is published.
    listener: ConnId,
    reply: Vec<u8>,
    /// Bytes that the listener got.
    pushed: Vec<u8>,
    messages: Vec<Message>,
    /// What was sent and answered, if somebody wants to know.
    record: Option<Vec<Exchange>>,
}

/// A command and its reply. A script goes with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub argv: Vec<Vec<u8>>,
    pub reply: Vec<u8>,
}

/// A script on the server.
#[derive(Clone, Debug)]
pub struct Loaded {
    sha: String,
    text: String,
    keys: String,
}

impl Bench {
    pub fn new(version: Version) -> Bench {
        let mut world = World::new(WorldOptions {
            seed: 0,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: vec![Config::new(version)],
        });
        let client = world.open(0, "127.0.0.1:50001".to_owned(), "127.0.0.1:6379".to_owned());
        let listener = world.open(0, "127.0.0.1:50002".to_owned(), "127.0.0.1:6379".to_owned());
        world.request(listener, &[b"PSUBSCRIBE", b"*"]);
        world.take_output(listener, &mut Vec::new());
        Bench {
            world,
            client,
            listener,
            reply: Vec::new(),
            pushed: Vec::new(),
            messages: Vec::new(),
            record: None,
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.world.clock().now().wall_ms()
    }

    pub fn view(&self) -> View<'_> {
        View::new(&self.world.nodes()[0].store, self.world.clock().now())
    }

    pub fn advance(&mut self, ms: u64) {
        self.world.advance(ms);
    }

    /// Sends a command. The reply stays until the next one.
    pub fn command(&mut self, argv: &[&[u8]]) -> Reply<'_> {
        self.request(argv);
        if let Some(record) = &mut self.record {
            let argv = argv.iter().map(|arg| arg.to_vec()).collect();
            record.push(Exchange { argv, reply: self.reply.clone() });
        }
        Reply::parse(&self.reply)
    }

    pub fn load(&mut self, tool: &Tool) -> Loaded {
        let text = tool.text.clone();
        let sha = match self.command(&[b"SCRIPT", b"LOAD", text.as_bytes()]) {
            Reply::Text(sha) => String::from_utf8_lossy(sha).into_owned(),
            _ => String::new(),
        };
        Loaded { sha, text, keys: tool.binding.keys.len().to_string() }
    }

    /// Runs a script; loads it again if the server has forgotten it, as clients do.
    pub fn run(&mut self, script: &Loaded, args: &Args) {
        let mut argv: SmallVec<[&[u8]; 16]> = SmallVec::new();
        argv.extend([&b"EVALSHA"[..], script.sha.as_bytes(), script.keys.as_bytes()]);
        argv.extend(args.iter());
        self.request(&argv);
        if self.reply.starts_with(b"-NOSCRIPT") {
            self.request(&[b"SCRIPT", b"LOAD", script.text.as_bytes()]);
            self.request(&argv);
        }
        if let Some(record) = &mut self.record {
            argv[0] = b"EVAL";
            argv[1] = script.text.as_bytes();
            let argv = argv.iter().map(|arg| arg.to_vec()).collect();
            record.push(Exchange { argv, reply: self.reply.clone() });
        }
    }

    /// Begins to note what is sent and answered.
    pub fn record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// What was noted since the last call.
    pub fn recorded(&mut self) -> Vec<Exchange> {
        self.record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn request(&mut self, argv: &[&[u8]]) {
        self.world.request(self.client, argv);
        let mut slices = 0;
        while self.world.run_slice(0) && slices < SLICES {
            slices += 1;
        }
        self.reply.clear();
        self.world.take_output(self.client, &mut self.reply);
        self.messages.clear();
        self.pushed.clear();
        self.world.take_output(self.listener, &mut self.pushed);
        parse_messages(&self.pushed, &mut self.messages);
    }

    pub fn reply(&self) -> Reply<'_> {
        Reply::parse(&self.reply)
    }

    pub fn reply_bytes(&self) -> &[u8] {
        &self.reply
    }

    /// What the last request published.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
}

fn parse_messages(mut bytes: &[u8], into: &mut Vec<Message>) {
    while let Some(len) = crate::wire::client::value_len(bytes) {
        if let [_, _, channel, payload] = elements(&bytes[..len])[..]
            && let (Reply::Text(channel), Reply::Text(payload)) =
                (Reply::parse(channel), Reply::parse(payload))
        {
            into.push(Message { channel: channel.to_vec(), payload: payload.to_vec() });
        }
        bytes = &bytes[len..];
    }
}
