//! Sockets that accept clients.

use std::fs::{File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use socket2::SockRef;
#[cfg(feature = "tls")]
use tokio::net::TcpStream;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use super::Server;
use super::connection::Connection;
use super::stream::Stream;
#[cfg(feature = "tls")]
use super::tls::Acceptor;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Tcp(SocketAddr),
    /// A port at which clients speak TLS.
    #[cfg(feature = "tls")]
    Tls(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// Returns the port at which clients do not speak TLS.
    pub fn tcp_port(&self) -> Option<u16> {
        match self {
            Endpoint::Tcp(addr) => Some(addr.port()),
            _ => None,
        }
    }

    /// Returns the port at which clients speak TLS.
    #[cfg(feature = "tls")]
    pub fn tls_port(&self) -> Option<u16> {
        match self {
            Endpoint::Tls(addr) => Some(addr.port()),
            _ => None,
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(addr) => write!(f, "{addr}"),
            #[cfg(feature = "tls")]
            Endpoint::Tls(addr) => write!(f, "{addr} (TLS)"),
            Endpoint::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// An open socket of a node.
pub struct Listener {
    node: usize,
    control: bool,
    socket: Socket,
    /// How clients are received that speak TLS.
    #[cfg(feature = "tls")]
    acceptor: Option<Acceptor>,
}

/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 4096;

impl Listener {
    /// Opens the endpoint of a node. A Unix socket left behind by a server that is gone is replaced.
    pub fn bind(node: usize, endpoint: &Endpoint) -> io::Result<Listener> {
        let socket = match endpoint {
            Endpoint::Tcp(addr) => Socket::Tcp(listen(addr)?),
            #[cfg(feature = "tls")]
            Endpoint::Tls(addr) => Socket::Tcp(listen(addr)?),
            Endpoint::Unix(path) => {
                let is_socket =
                    path.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_socket());
                let is_unused = || {
                    std::os::unix::net::UnixStream::connect(path)
                        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
                };
                if is_socket && is_unused() {
                    std::fs::remove_file(path)?;
                }
                Socket::Unix(UnixListener::bind(path)?, path.clone())
            }
        };
        Ok(Listener {
            node,
            control: false,
            socket,
            #[cfg(feature = "tls")]
            acceptor: None,
        })
    }

    /// Opens a port of a node at which clients speak TLS.
    #[cfg(feature = "tls")]
    pub fn bind_tls(node: usize, addr: SocketAddr, acceptor: Acceptor) -> io::Result<Listener> {
        let mut listener = Listener::bind(node, &Endpoint::Tls(addr))?;
        listener.acceptor = Some(acceptor);
        Ok(listener)
    }

    /// Opens an endpoint for SIM commands. Its clients belong to the first node, but stay when that stops.
    pub fn bind_control(endpoint: &Endpoint) -> io::Result<Listener> {
        let mut listener = Listener::bind(0, endpoint)?;
        listener.control = true;
        Ok(listener)
    }

    /// Sets who may connect to a Unix socket, as permissions of its file. Does nothing for a port.
    ///
    /// # Errors
    /// Fails if the file is gone, or belongs to somebody else.
    pub fn set_permissions(&self, mode: u32) -> io::Result<()> {
        match &self.socket {
            Socket::Tcp(_) => Ok(()),
            Socket::Unix(_, path) => std::fs::set_permissions(path, Permissions::from_mode(mode)),
        }
    }

    /// Returns the node whose clients it accepts, or `None` for the control port.
    pub fn node(&self) -> Option<usize> {
        (!self.control).then_some(self.node)
    }

    /// Where it listens: the port that the system chose for port 0.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        match &self.socket {
            #[cfg(feature = "tls")]
            Socket::Tcp(listener) if self.acceptor.is_some() => listener.local_addr().map(Endpoint::Tls),
            Socket::Tcp(listener) => listener.local_addr().map(Endpoint::Tcp),
            Socket::Unix(_, path) => Ok(Endpoint::Unix(path.clone())),
        }
    }

    /// Waits for the next client.
    async fn next(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Small replies have to leave at once.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            Socket::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }

    /// Gives every client that connects a task of its own.
    pub(super) async fn accept(self, server: Rc<Server>) {
        let mut spare = Spare::new();
        loop {
            match self.next().await {
                Ok(stream) => {
                    let (server, node, control) = (server.clone(), self.node, self.control);
                    #[cfg(feature = "tls")]
                    let stream = match (self.acceptor.clone(), stream) {
                        (Some(acceptor), Stream::Tcp(stream)) => {
                            tokio::task::spawn_local(serve_tls(server, node, acceptor, stream));
                            continue;
                        }
                        (_, stream) => stream,
                    };
                    tokio::task::spawn_local(Connection::serve(server, node, control, stream));
                }
                Err(error) => spare.refuse(&self, &error).await,
            }
        }
    }
}

fn listen(addr: &SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if addr.is_ipv6() {
        // The same port of the addresses of IPv4 may be another listener's.
        SockRef::from(&socket).set_only_v6(true)?;
    }
    socket.bind(*addr)?;
    socket.listen(BACKLOG)
}

/// How long a client may take to agree on TLS.
#[cfg(feature = "tls")]
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Serves a client that speaks TLS. It is connected to the node when both have agreed.
#[cfg(feature = "tls")]
async fn serve_tls(server: Rc<Server>, node: usize, acceptor: Acceptor, stream: TcpStream) {
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Connection::serve(server, node, false, Stream::Tls(Box::new(stream))).await,
        Ok(Err(error)) => tracing::warn!("Error accepting a client connection: {error}"),
        Err(_) => tracing::warn!("Error accepting a client connection: no TLS handshake"),
    }
}

/// A file descriptor in reserve, to refuse clients with when there is no other.
struct Spare {
    file: Option<File>,
    logged: Option<Instant>,
}

/// The least time between two log lines about clients that could not be accepted.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// How long a client that connects without cause for it is waited for.
const A_MOMENT: Duration = Duration::from_millis(100);

impl Spare {
    fn new() -> Spare {
        Spare { file: File::open("/dev/null").ok(), logged: None }
    }

    /// Refuses the client that could not be accepted, mostly for want of a file descriptor.
    async fn refuse(&mut self, listener: &Listener, error: &io::Error) {
        if self.logged.is_none_or(|logged| logged.elapsed() > LOG_INTERVAL) {
            tracing::warn!(%error, "cannot accept clients, and refuses them");
            self.logged = Some(Instant::now());
        }
        if self.file.take().is_some()
            && let Ok(Ok(mut stream)) = tokio::time::timeout(A_MOMENT, listener.next()).await
        {
            let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
        } else {
            tokio::time::sleep(A_MOMENT).await;
        }
        self.file = File::open("/dev/null").ok();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}
