//! Connections to the two servers.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::wire::client::{encode, value_len};

/// How long a server may take for an answer that it has to give at once.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// One connection, whose socket never blocks.
pub struct Link {
    stream: TcpStream,
    pub received: Vec<u8>,
    pub closed: bool,
}

impl Link {
    pub fn open(addr: SocketAddr) -> Result<Link, String> {
        let open = || {
            let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        let stream = open().map_err(|error: std::io::Error| format!("cannot connect to {addr}: {error}"))?;
        Ok(Link { stream, received: Vec::new(), closed: false })
    }

    pub fn send(&mut self, bytes: &[u8]) {
        // A server that has closed the connection is told by what does not come back.
        if self.stream.write_all(bytes).is_err() {
            self.closed = true;
        }
    }

    /// Takes in what has arrived.
    pub fn fill(&mut self) {
        let mut chunk = [0; 16384];
        while !self.closed {
            match self.stream.read(&mut chunk) {
                Ok(0) => self.closed = true,
                Ok(len) => self.received.extend_from_slice(&chunk[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.closed = true,
            }
        }
    }

    /// The next value, waited for; `None` if the server has ended the connection or takes too long.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let began = Instant::now();
        loop {
            self.fill();
            if let Some(len) = value_len(&self.received) {
                return Some(self.received.drain(..len).collect());
            }
            if self.closed || began.elapsed() > PATIENCE {
                return None;
            }
            std::thread::yield_now();
        }
    }

    pub fn call(&mut self, argv: &[impl AsRef<[u8]>]) -> Option<Vec<u8>> {
        self.send(&encode(argv));
        self.receive()
    }
}
