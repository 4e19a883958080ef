//! Runs the same schedule on a real server.
//!
//! The clock of a real server cannot be moved, so the time to live of every key is reduced instead. The duration of the
//! scripts is not considered: times may differ by `SLACK_MS`. On the real server, databases represent the nodes.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::runner::{self, Line};
use crate::model::Reply;
use crate::show::shorten;
use redlatch_core::wire::client::{elements, encode, value_len};

/// The accepted difference between times to live, in ms.
const SLACK_MS: i64 = 500;

/// The reason why a comparison with a real server fails.
#[derive(Debug)]
pub enum RealError {
    /// The connection could not be opened.
    Connect {
        address: String,
        error: std::io::Error,
    },
    /// The server holds keys, which a schedule would flush.
    HoldsKeys {
        address: String,
    },
    /// The server refuses to report the number of its keys.
    Refused {
        address: String,
        reply: String,
    },
    Io(std::io::Error),
    Closed,
}

impl fmt::Display for RealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RealError::Connect { address, error } => write!(f, "{address}: {error}"),
            RealError::HoldsKeys { address } => {
                write!(f, "{address} holds keys, and a schedule flushes them")
            }
            RealError::Refused { address, reply } => write!(f, "{address}: {reply}"),
            RealError::Io(error) => error.fmt(f),
            RealError::Closed => f.write_str("the server closed the connection"),
        }
    }
}

impl std::error::Error for RealError {}

impl From<std::io::Error> for RealError {
    fn from(error: std::io::Error) -> RealError {
        RealError::Io(error)
    }
}

/// A connection to a real server.
pub struct Real {
    stream: TcpStream,
    /// The node that receives the next request, and the number of nodes.
    node: usize,
    nodes: usize,
    buffer: Vec<u8>,
}

impl Real {
    /// Connects to a server without keys.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or holds keys.
    pub fn connect(address: &str) -> Result<Real, RealError> {
        let address = address.to_owned();
        let failed = |error| RealError::Connect { address: address.clone(), error };
        let stream = TcpStream::connect(&address).map_err(failed)?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(failed)?;
        let mut real = Real { stream, node: 0, nodes: 1, buffer: Vec::new() };
        match Reply::parse(&real.call(&[b"DBSIZE"])?) {
            Reply::Int(0) => Ok(real),
            Reply::Int(_) => Err(RealError::HoldsKeys { address }),
            other => Err(RealError::Refused { address, reply: other.to_string() }),
        }
    }

    fn call(&mut self, argv: &[&[u8]]) -> Result<Vec<u8>, RealError> {
        self.stream.write_all(&encode(argv))?;
        let mut chunk = [0; 4096];
        loop {
            if let Some(len) = value_len(&self.buffer) {
                return Ok(self.buffer.drain(..len).collect());
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(RealError::Closed),
                len => self.buffer.extend_from_slice(&chunk[..len]),
            }
        }
    }

    /// Repeats the requests of a schedule. Returns a description of the first difference, or `None` if there is none.
    ///
    /// # Errors
    /// Fails if the server does not reply.
    pub fn compare(&mut self, lines: &[Line]) -> Result<Option<String>, RealError> {
        let compared = self.compare_lines(lines);
        self.call(&[b"FLUSHALL"])?;
        compared
    }

    fn compare_lines(&mut self, lines: &[Line]) -> Result<Option<String>, RealError> {
        self.nodes = runner::nodes(lines);
        self.call(&[b"FLUSHALL"])?;
        for line in lines {
            if line.advanced_ms > 0 {
                for node in 0..self.nodes {
                    self.age(node, line.advanced_ms as i64, line)?;
                }
            }
            for exchange in &line.exchanges {
                self.select(exchange.node)?;
                if let [b"SIM.CLOCK", b"JUMP", ms, ..] = exchange.words()[..] {
                    let ms = redlatch_core::num::parse_i64(ms).unwrap_or(0);
                    self.age(exchange.node, ms, line)?;
                    continue;
                }
                let theirs = self.call(&exchange.words())?;
                let (ours, theirs) = (Reply::parse(&exchange.reply), Reply::parse(&theirs));
                if !is_like(ours, theirs) {
                    return Ok(Some(format!(
                        "step {}: {}: here {ours}, there {theirs}",
                        line.step + 1,
                        line.what
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Selects the node that receives the following requests.
    fn select(&mut self, node: usize) -> Result<(), RealError> {
        if self.node != node {
            self.node = node;
            self.call(&[b"SELECT", node.to_string().as_bytes()])?;
        }
        Ok(())
    }

    /// Reduces the time to live of every key of a node by `ms`. The run decides which keys have expired by then,
    /// because a real server is not exact to the millisecond.
    fn age(&mut self, node: usize, ms: i64, line: &Line) -> Result<(), RealError> {
        self.select(node)?;
        let keys = self.call(&[b"KEYS", b"*"])?;
        for key in elements(&keys) {
            let Reply::Text(key) = Reply::parse(key) else { continue };
            let Reply::Int(left_ms @ 0..) = Reply::parse(&self.call(&[b"PTTL", key])?) else { continue };
            let left_ms = left_ms - ms;
            let place = if self.nodes > 1 { format!("node {node}: ") } else { String::new() };
            let name = format!("{place}{} = ", shorten(key));
            let lives = line.keys.iter().any(|key| key.starts_with(&name));
            if lives || left_ms > 0 {
                self.call(&[b"PEXPIRE", key, left_ms.max(100).to_string().as_bytes()])?;
            } else {
                self.call(&[b"DEL", key])?;
            }
        }
        Ok(())
    }
}

/// Returns whether two replies are equal, apart from small differences in time.
fn is_like(ours: Reply, theirs: Reply) -> bool {
    match (ours, theirs) {
        (Reply::Int(ours), Reply::Int(theirs)) if ours > 1 => (ours - theirs).abs() <= SLACK_MS,
        // Releases word errors differently.
        (Reply::Error(_), Reply::Error(_)) => true,
        (Reply::Array(_), Reply::Array(_)) => true,
        (ours, theirs) => ours == theirs,
    }
}
