//! The load generator: connections to one server, driven by one thread.
//!
//! Requests are encoded beforehand, and only the length of replies is parsed, so that the load costs less than the work that
//! it measures: one write and one read per batch.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::workload::{self, Workload};
use redlatch_core::wire::client::value_len;

/// How long a server may go without answering any request.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest latency that is recorded; longer ones count as this one.
const LONGEST_NS: u64 = 60_000_000_000;

const READ_BUFFER: usize = 64 * 1024;

/// When a measurement ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    Elapsed(Duration),
    Requests(u64),
}

/// The result of a measurement.
pub struct Measured {
    pub requests: u64,
    pub elapsed: Duration,
    /// In ns.
    pub latency: Histogram<u64>,
}

impl Measured {
    pub fn new() -> Measured {
        let latency = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("these bounds are possible");
        Measured { requests: 0, elapsed: Duration::ZERO, latency }
    }

    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    pub fn add(&mut self, other: &Measured) {
        self.requests += other.requests;
        self.elapsed += other.elapsed;
        self.latency += &other.latency;
    }
}

/// Connections to one server that all send the same workload.
pub struct Load {
    addr: SocketAddr,
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    pipeline: usize,
    scratch: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    batches: Vec<Vec<u8>>,
    /// The index of the batch that is sent next.
    next: usize,
    /// How many bytes of a batch the socket has accepted; `None` when it has accepted all.
    written: Option<usize>,
    sent_at: Instant,
    /// The number of replies to the batch that are still missing.
    missing: usize,
    /// An incomplete reply.
    rest: Vec<u8>,
}

impl Load {
    /// Opens the connections; each uses different keys.
    pub fn open(
        addr: SocketAddr,
        workload: &Workload,
        connections: usize,
        pipeline: usize,
    ) -> Result<Load, String> {
        let cannot = |error: io::Error| format!("cannot open {connections} connections to {addr}: {error}");
        let poll = Poll::new().map_err(cannot)?;
        let mut load = Load {
            addr,
            poll,
            events: Events::with_capacity(1024),
            connections: Vec::with_capacity(connections),
            pipeline,
            scratch: vec![0; READ_BUFFER],
        };
        for index in 0..connections {
            let stream = std::net::TcpStream::connect_timeout(&addr, PATIENCE).map_err(cannot)?;
            stream.set_nodelay(true).map_err(cannot)?;
            stream.set_nonblocking(true).map_err(cannot)?;
            let mut stream = TcpStream::from_std(stream);
            let registry = load.poll.registry();
            registry.register(&mut stream, Token(index), Interest::READABLE).map_err(cannot)?;
            load.connections.push(Connection {
                stream,
                batches: workload.batches(index * pipeline, pipeline),
                next: 0,
                written: None,
                sent_at: Instant::now(),
                missing: 0,
                rest: Vec::new(),
            });
        }
        Ok(load)
    }

    /// Measures: every connection sends a batch, waits for its replies, and sends the next.
    pub fn run(&mut self, until: Until) -> Result<Measured, String> {
        let mut measured = Measured::new();
        let began = Instant::now();
        let ends = |requests, now: Instant| match until {
            Until::Elapsed(elapsed) => now - began >= elapsed,
            Until::Requests(limit) => requests >= limit,
        };
        for index in 0..self.connections.len() {
            self.send(index)?;
        }
        let mut waiting = self.connections.len();
        while waiting > 0 {
            for index in self.wait()? {
                if !self.receive(index)? {
                    continue;
                }
                let now = Instant::now();
                let took = now - self.connections[index].sent_at;
                measured.requests += self.pipeline as u64;
                measured.latency.saturating_record_n(took.as_nanos() as u64, self.pipeline as u64);
                if ends(measured.requests, now) {
                    waiting -= 1;
                } else {
                    self.send(index)?;
                }
            }
        }
        measured.elapsed = began.elapsed();
        Ok(measured)
    }

    /// Measures wake-ups: the first connection publishes, and the others are subscribed. Records the time until each has the message.
    pub fn run_wakeups(&mut self, until: Until) -> Result<Measured, String> {
        let mut measured = Measured::new();
        let began = Instant::now();
        let all = self.connections.len();
        loop {
            // A message is one array of three elements, and counts as one reply.
            self.connections.iter_mut().for_each(|connection| connection.missing = 1);
            self.send(0)?;
            let sent_at = self.connections[0].sent_at;
            let mut waiting = all;
            while waiting > 0 {
                for index in self.wait()? {
                    if self.receive(index)? {
                        waiting -= 1;
                        if index > 0 {
                            measured.latency.saturating_record(sent_at.elapsed().as_nanos() as u64);
                            measured.requests += 1;
                        }
                    }
                }
            }
            let ended = match until {
                Until::Elapsed(elapsed) => began.elapsed() >= elapsed,
                Until::Requests(limit) => measured.requests >= limit,
            };
            if ended {
                measured.elapsed = began.elapsed();
                return Ok(measured);
            }
        }
    }

    /// Subscribes all connections but the first.
    pub fn subscribe(&mut self) -> Result<(), String> {
        let publish = std::mem::take(&mut self.connections[0].batches);
        for index in 1..self.connections.len() {
            self.connections[index].batches = vec![workload::subscribe()];
            self.send(index)?;
        }
        let mut waiting = self.connections.len() - 1;
        while waiting > 0 {
            for index in self.wait()? {
                waiting -= self.receive(index)? as usize;
            }
        }
        self.connections[0].batches = publish;
        Ok(())
    }

    /// Sends the next batch of a connection.
    fn send(&mut self, index: usize) -> Result<(), String> {
        let connection = &mut self.connections[index];
        connection.missing = self.pipeline;
        connection.written = Some(0);
        connection.sent_at = Instant::now();
        self.write(index)
    }

    fn write(&mut self, index: usize) -> Result<(), String> {
        let connection = &mut self.connections[index];
        let batch = &connection.batches[connection.next];
        while let Some(written) = connection.written.filter(|&written| written < batch.len()) {
            match connection.stream.write(&batch[written..]) {
                Ok(len) => connection.written = Some(written + len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let both = Interest::READABLE | Interest::WRITABLE;
                    let registry = self.poll.registry();
                    return registry
                        .reregister(&mut connection.stream, Token(index), both)
                        .map_err(|error| error.to_string());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("lost the connection to {}: {error}", self.addr)),
            }
        }
        connection.written = None;
        connection.next = (connection.next + 1) % connection.batches.len();
        Ok(())
    }

    /// Waits for connections with data to read, and returns them.
    fn wait(&mut self) -> Result<Vec<usize>, String> {
        match self.poll.poll(&mut self.events, Some(PATIENCE)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
            Ok(()) if self.events.is_empty() => {
                return Err(format!("{} has not answered for {} s", self.addr, PATIENCE.as_secs()));
            }
            Ok(()) => {}
        }
        let mut readable = Vec::with_capacity(self.connections.len());
        let mut writable = Vec::new();
        for event in &self.events {
            let index = event.token().0;
            if event.is_writable() && self.connections[index].written.is_some() {
                writable.push(index);
            }
            if event.is_readable() || event.is_read_closed() {
                readable.push(index);
            }
        }
        for index in writable {
            self.write(index)?;
        }
        Ok(readable)
    }

    /// Reads what has arrived on a connection. Returns true if the batch has all its replies.
    fn receive(&mut self, index: usize) -> Result<bool, String> {
        let Load { addr, connections, scratch, .. } = self;
        let connection = &mut connections[index];
        let had = connection.missing;
        loop {
            let len = match connection.stream.read(scratch) {
                Ok(0) => return Err(format!("{addr} has closed a connection")),
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("lost the connection to {addr}: {error}")),
            };
            connection.count_replies(&scratch[..len]).map_err(|error| format!("{addr} answers: {error}"))?;
            // A read that does not fill the buffer has emptied the socket; later data causes another event.
            if len < scratch.len() {
                break;
            }
        }
        Ok(had > 0 && connection.missing == 0)
    }
}

impl Connection {
    /// Counts the complete replies.
    ///
    /// # Errors
    /// The text of the first error reply.
    fn count_replies(&mut self, bytes: &[u8]) -> Result<(), String> {
        let joined;
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.rest);
            bytes = &joined;
        }
        while let Some(len) = value_len(bytes) {
            if bytes[0] == b'-' {
                return Err(String::from_utf8_lossy(&bytes[1..len]).trim_end().to_owned());
            }
            self.missing = self.missing.saturating_sub(1);
            bytes = &bytes[len..];
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }
}
