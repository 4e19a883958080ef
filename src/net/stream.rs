//! TCP and Unix sockets as one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Reads what is there. A read that does not fill `buf` has emptied the socket, so that the next one waits for more
    /// without asking the system.
    pub fn poll_read(&mut self, cx: &mut Context, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buf),
        })?;
        Poll::Ready(Ok(buf.filled().len()))
    }

    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(buf),
            Stream::Unix(stream) => stream.try_write(buf),
        }
    }

    /// Waits until it takes more bytes.
    pub fn poll_writable(&self, cx: &mut Context) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_write_ready(cx),
            Stream::Unix(stream) => stream.poll_write_ready(cx),
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
