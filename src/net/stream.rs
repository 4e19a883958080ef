//! TCP, with TLS and without, and Unix sockets as one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

#[cfg(feature = "tls")]
use super::tls::TlsStream;

/// A connected socket.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Reads what is there. A read that does not fill `buf` has emptied the socket, so that the next one waits for more
    /// without asking the system.
    pub fn poll_read(&mut self, cx: &mut Context, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => poll_read(stream, cx, buf),
            Stream::Unix(stream) => poll_read(stream, cx, buf),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.poll_read(cx, buf),
        }
    }

    pub fn try_write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(buf),
            Stream::Unix(stream) => stream.try_write(buf),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.try_write(buf),
        }
    }

    /// Returns whether bytes that were taken have not left yet: they do so while somebody waits for [`poll_writable`](Self::poll_writable).
    pub fn is_holding(&self) -> bool {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => false,
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.wants_write(),
        }
    }

    /// Waits until it takes more bytes.
    pub fn poll_writable(&mut self, cx: &mut Context) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_write_ready(cx),
            Stream::Unix(stream) => stream.poll_write_ready(cx),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.poll_writable(cx),
        }
    }

    /// The addresses of both ends, the peer's first, as CLIENT LIST shows them.
    pub fn addresses(&self) -> (String, String) {
        let of_tcp = |stream: &TcpStream| {
            let text =
                |addr: io::Result<std::net::SocketAddr>| addr.map(|a| a.to_string()).unwrap_or_default();
            (text(stream.peer_addr()), text(stream.local_addr()))
        };
        match self {
            Stream::Tcp(stream) => of_tcp(stream),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => of_tcp(&stream.tcp),
            Stream::Unix(stream) => {
                let path =
                    stream.local_addr().ok().and_then(|addr| Some(addr.as_pathname()?.display().to_string()));
                let path = format!("{}:0", path.unwrap_or_default());
                (path.clone(), path)
            }
        }
    }
}

fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    cx: &mut Context,
    buf: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buf = ReadBuf::new(buf);
    ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
    Poll::Ready(Ok(buf.filled().len()))
}
