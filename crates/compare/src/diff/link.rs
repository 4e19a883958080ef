//! Blocking connections to a server.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use redlatch_core::wire::client::{encode, value_len};

/// How long a server may take for a reply.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// One connection.
pub struct Link {
    stream: TcpStream,
    pub received: Vec<u8>,
    pub closed: bool,
}

impl Link {
    pub fn open(addr: SocketAddr) -> Result<Link, String> {
        Link::open_with(addr, PATIENCE)
    }

    /// Connects to a server that may take this long for a reply.
    pub fn open_with(addr: SocketAddr, patience: Duration) -> Result<Link, String> {
        let open = || {
            let stream = TcpStream::connect_timeout(&addr, patience)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            Ok(stream)
        };
        let stream = open().map_err(|error: std::io::Error| format!("cannot connect to {addr}: {error}"))?;
        Ok(Link { stream, received: Vec::new(), closed: false })
    }

    pub fn send(&mut self, bytes: &[u8]) {
        // A connection that the server has closed shows when no reply comes.
        if self.stream.write_all(bytes).is_err() {
            self.closed = true;
        }
    }

    /// Reads what comes next. Returns false if nothing comes in time or the connection is closed.
    fn read(&mut self) -> bool {
        let mut chunk = [0; 16384];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(len) => {
                    self.received.extend_from_slice(&chunk[..len]);
                    self.closed = len == 0;
                    return len > 0;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.closed |= error.kind() != ErrorKind::WouldBlock;
                    return false;
                }
            }
        }
    }

    /// Waits for the next value. Returns `None` if the server closes the connection or takes too long.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(len) = value_len(&self.received) {
                return Some(self.received.drain(..len).collect());
            }
            if self.closed || !self.read() {
                return None;
            }
        }
    }

    pub fn call(&mut self, argv: &[impl AsRef<[u8]>]) -> Option<Vec<u8>> {
        self.send(&encode(argv));
        self.receive()
    }
}

/// Reads what has arrived on any of the connections.
pub fn take_in<'a>(links: impl Iterator<Item = &'a mut Link>) {
    let mut open: Vec<&mut Link> = links.filter(|link| !link.closed).collect();
    while !open.is_empty() {
        let mut fds: Vec<PollFd> = open.iter().map(|link| PollFd::new(&link.stream, PollFlags::IN)).collect();
        // An interrupted poll reports nothing; the caller polls again.
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>().into_iter();
        // A connection that had data may have more.
        open.retain_mut(|link| ready.next() == Some(true) && link.read());
    }
}
