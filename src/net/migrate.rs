//! MIGRATE to a server outside of the process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use redlatch_core::node::migration::{Migration, Target};
use redlatch_core::wire::client::encode;

/// The longest line of a reply, in bytes.
const LINE: u64 = 1024;

const CONNECTION_FAILED: &str = "IOERR error or timeout connecting to the client";
const WRITE_FAILED: &str = "IOERR error or timeout writing to target instance";

/// Sends the requests of a migration and returns the lines of the replies, as many as could be read.
///
/// # Errors
/// Why nothing could be sent, as the client is told.
pub fn send(migration: &Migration) -> Result<Vec<u8>, String> {
    let Target::Outside { host, port, timeout_ms } = &migration.target else { return Ok(Vec::new()) };
    let timeout = Duration::from_millis(*timeout_ms);
    let mut stream = connect(host, port, timeout)?;
    let requests = migration.requests();
    let bytes: Vec<u8> = requests.iter().flat_map(|request| encode(request)).collect();
    stream.write_all(&bytes).map_err(|_| WRITE_FAILED)?;
    let mut lines = Vec::new();
    let mut replies = BufReader::new(stream.take(requests.len() as u64 * LINE));
    for _ in &requests {
        let len = lines.len();
        let is_read = replies.read_until(b'\n', &mut lines).is_ok() && lines.ends_with(b"\n");
        if !is_read {
            lines.truncate(len);
            break;
        }
    }
    Ok(lines)
}

/// Connects to a server. That nobody listens shows only when Redis writes.
fn connect(host: &str, port: &str, timeout: Duration) -> Result<TcpStream, String> {
    let port: u16 = port.parse().map_err(|_| WRITE_FAILED)?;
    let addr = (host, port).to_socket_addrs().ok().and_then(|mut addrs| addrs.next());
    let stream = TcpStream::connect_timeout(&addr.ok_or(CONNECTION_FAILED)?, timeout).and_then(|stream| {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(stream)
    });
    stream.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => WRITE_FAILED.to_owned(),
        _ => CONNECTION_FAILED.to_owned(),
    })
}
