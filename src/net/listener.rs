//! Sockets that accept clients.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, UnixListener};

use super::Server;
use super::connection::Connection;
use super::stream::Stream;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(addr) => write!(f, "{addr}"),
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
}

/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 4096;

impl Listener {
    /// Opens the endpoint of a node. A Unix socket left behind by a server that is gone is replaced.
    pub fn bind(node: usize, endpoint: &Endpoint) -> io::Result<Listener> {
        let socket = match endpoint {
            Endpoint::Tcp(addr) => {
                let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
                socket.set_reuseaddr(true)?;
                socket.bind(*addr)?;
                Socket::Tcp(socket.listen(BACKLOG)?)
            }
            Endpoint::Unix(path) => {
                let left_behind = std::os::unix::net::UnixStream::connect(path)
                    .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
                if left_behind {
                    std::fs::remove_file(path)?;
                }
                Socket::Unix(UnixListener::bind(path)?, path.clone())
            }
        };
        Ok(Listener { node, control: false, socket })
    }

    /// Opens an endpoint for SIM commands. Its clients belong to the first node, but stay when that stops.
    pub fn bind_control(endpoint: &Endpoint) -> io::Result<Listener> {
        let mut listener = Listener::bind(0, endpoint)?;
        listener.control = true;
        Ok(listener)
    }

    /// Where it listens: the port that the system chose for port 0.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        match &self.socket {
            Socket::Tcp(listener) => listener.local_addr().map(Endpoint::Tcp),
            Socket::Unix(_, path) => Ok(Endpoint::Unix(path.clone())),
        }
    }

    /// Gives every client that connects a task of its own.
    pub(super) async fn accept(self, server: Rc<Server>) {
        loop {
            let accepted = match &self.socket {
                Socket::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                    // Small replies have to leave at once.
                    let _ = stream.set_nodelay(true);
                    Stream::Tcp(stream)
                }),
                Socket::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
            };
            match accepted {
                Ok(stream) => {
                    tokio::task::spawn_local(Connection::serve(
                        server.clone(),
                        self.node,
                        self.control,
                        stream,
                    ));
                }
                Err(error) => {
                    // Out of file descriptors, mostly: others have to go first.
                    tracing::warn!(%error, "cannot accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}
