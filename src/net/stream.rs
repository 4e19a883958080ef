//! TCP and Unix sockets as one.

use std::io;

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_read(buf),
            Stream::Unix(stream) => stream.try_read(buf),
        }
    }

    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(buf),
            Stream::Unix(stream) => stream.try_write(buf),
        }
    }

    /// Waits until it may be read or, if asked, written.
    pub async fn ready(&self, read: bool, write: bool) -> io::Result<()> {
        let interest = match (read, write) {
            (true, true) => Interest::READABLE | Interest::WRITABLE,
            (false, true) => Interest::WRITABLE,
            (true, false) => Interest::READABLE,
            (false, false) => return std::future::pending().await,
        };
        match self {
            Stream::Tcp(stream) => stream.ready(interest).await.map(drop),
            Stream::Unix(stream) => stream.ready(interest).await.map(drop),
        }
    }

    /// The addresses of both ends, the peer's first, as CLIENT LIST shows them.
    pub fn addresses(&self) -> (String, String) {
        match self {
            Stream::Tcp(stream) => {
                let text =
                    |addr: io::Result<std::net::SocketAddr>| addr.map(|a| a.to_string()).unwrap_or_default();
                (text(stream.peer_addr()), text(stream.local_addr()))
            }
            Stream::Unix(stream) => {
                let path =
                    stream.local_addr().ok().and_then(|addr| Some(addr.as_pathname()?.display().to_string()));
                let path = format!("{}:0", path.unwrap_or_default());
                (path.clone(), path)
            }
        }
    }
}
