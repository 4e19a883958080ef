//! A server in this process, without sockets and with a manual clock.

use redlatch::Version;
use redlatch_core::node;
use redlatch_core::wire::RequestParser;
use redlatch_core::world::{ClockMode, ConnId, WorldOptions};
use redlatch_lab::control::Lab;

pub struct InProcess {
    pub lab: Lab,
    parser: RequestParser,
    output: Vec<u8>,
}

impl InProcess {
    pub fn new() -> InProcess {
        let mut config = node::Config::new(Version::V7_4);
        config.maxclients = 100_000;
        let lab = Lab::new(WorldOptions {
            seed: 0,
            clock: ClockMode::Manual,
            wall_start_ms: 1_700_000_000_000,
            nodes: vec![config],
            topology: None,
        });
        InProcess { lab, parser: RequestParser::default(), output: Vec::new() }
    }

    pub fn connect(&mut self) -> ConnId {
        self.lab.open(0, "127.0.0.1:50000".to_owned(), "127.0.0.1:6379".to_owned())
    }

    /// Sends the requests of a client and discards their replies. None may be an error.
    pub fn send(&mut self, client: ConnId, mut bytes: &[u8]) {
        while let Some(len) = self.parser.parse(bytes, self.lab.world().request_limits(client)).unwrap() {
            self.lab.request(client, &self.parser.args(bytes));
            bytes = &bytes[len..];
        }
        self.receive(client);
    }

    /// Discards the output for a client.
    pub fn receive(&mut self, client: ConnId) {
        self.output.clear();
        self.lab.take_output(client, &mut self.output);
        assert_ne!(self.output.first(), Some(&b'-'));
        self.output.clear();
        self.lab.take_trace(&mut self.output);
    }
}
