//! A client that returns the raw bytes of replies.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub use redlatch_core::wire::client::{elements, encode};

use redlatch_core::wire::client::value_len;

/// A connection to a server under test.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// How long a test waits for a reply: long enough for a machine that builds at the same time.
pub const PATIENCE: Duration = Duration::from_secs(10);

impl Client {
    pub fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Client { stream, buffer: Vec::new() }
    }

    pub fn send(&mut self, argv: &[impl AsRef<[u8]>]) {
        self.send_bytes(&encode(argv));
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        // A connection that the server has closed shows when no reply comes.
        let _ = self.stream.write_all(bytes);
    }

    /// Returns the bytes of the next reply or message; if none is complete in time, the bytes so far.
    pub fn receive(&mut self) -> Vec<u8> {
        self.receive_within(PATIENCE)
    }

    pub fn receive_within(&mut self, patience: Duration) -> Vec<u8> {
        loop {
            if let Some(len) = value_len(&self.buffer) {
                return self.buffer.drain(..len).collect();
            }
            if !self.fill(patience) {
                return std::mem::take(&mut self.buffer);
            }
        }
    }

    /// Returns everything received until nothing has come for `quiet`.
    pub fn drain(&mut self, quiet: Duration) -> Vec<u8> {
        while self.fill(quiet) {}
        std::mem::take(&mut self.buffer)
    }

    fn fill(&mut self, patience: Duration) -> bool {
        let mut chunk = [0; 65536];
        self.stream.set_read_timeout(Some(patience)).expect("a socket option");
        match self.stream.read(&mut chunk) {
            Ok(len) if len > 0 => {
                self.buffer.extend_from_slice(&chunk[..len]);
                true
            }
            _ => false,
        }
    }

    pub fn call(&mut self, argv: &[impl AsRef<[u8]>]) -> Vec<u8> {
        self.send(argv);
        self.receive()
    }
}
