//! Measures memory: of a server at start, and of each key, lock and connection that is added.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::server::Server;
use super::{grouped, rule, say, workload};
use redlatch_core::wire::client::value_len;

/// The things that are added and measured one after the other.
const THINGS: &[Thing] = &[
    Thing {
        name: "a lock: a hash of one field, with a TTL",
        count: 1_000_000,
        from: From::One("EVALSHA {acquire} 1 {key} 3600000 {holder}"),
    },
    Thing { name: "a string of 16 bytes", count: 1_000_000, from: From::One("SET {key} {value}") },
    Thing {
        name: "an entry of a stream, with a field of 16 bytes",
        count: 1_000_000,
        from: From::One("XADD {channel} * field {value}"),
    },
    Thing { name: "an idle connection", count: 2_000, from: From::Each("PING") },
    Thing { name: "a subscriber of one channel", count: 2_000, from: From::Each("SUBSCRIBE {channel}") },
    Thing { name: "a client that waits in BLPOP", count: 2_000, from: From::EachWaits("BLPOP {key} 0") },
];

/// Returns how many connections are open at once for this number of servers.
pub fn connections(servers: usize) -> usize {
    let held = THINGS.iter().filter(|thing| !matches!(thing.from, From::One(_)));
    held.map(|thing| thing.count).sum::<usize>() * servers
}

struct Thing {
    name: &'static str,
    count: usize,
    from: From,
}

enum From {
    /// One connection sends all requests.
    One(&'static str),
    /// Each request is sent by another connection.
    Each(&'static str),
    /// Each request is sent by another connection, and has no reply.
    EachWaits(&'static str),
}

pub fn run(servers: &[Server], out: &mut dyn Write) -> Result<(), String> {
    let column = |text: &str| format!(" {text:>24} |");
    let names: String = servers.iter().map(|server| column(&server.name)).collect();
    let headings = format!("| {:56} |{names}", "resident memory in bytes");
    say(out, &headings);
    say(out, rule(&headings));
    let mut line = format!("| {:56} |", "at start, with one client");
    for server in servers {
        line += &column(&grouped(resident(server)?));
    }
    say(out, line);
    // Everything stays to the end: a server would reuse freed memory for the next measurement.
    let mut clients = Vec::new();
    let mut keys = 0;
    for thing in THINGS {
        let mut line = format!("| {:56} |", format!("{}, of {}", thing.name, grouped(thing.count as f64)));
        for server in servers {
            let before = resident(server)?;
            thing.fill(server, keys, &mut clients)?;
            line += &column(&format!("{:.1}", (resident(server)? - before) / thing.count as f64));
        }
        say(out, line);
        keys += thing.count;
    }
    drop(clients);
    for server in servers {
        Client::open(server)?.send_all(keys, workload::clean)?;
    }
    Ok(())
}

fn resident(server: &Server) -> Result<f64, String> {
    let bytes = server.resident_bytes().map(|bytes| bytes as f64);
    bytes.ok_or_else(|| format!("cannot read the memory of the process of {}", server.addr))
}

impl Thing {
    /// Adds all of them to a server. Connections go to `clients`, which keeps them open.
    fn fill(&self, server: &Server, first_key: usize, clients: &mut Vec<Client>) -> Result<(), String> {
        let mut link = server.link()?;
        for request in workload::load_scripts() {
            server.call(&mut link, &request)?;
        }
        let (text, waits) = match self.from {
            From::One(text) => {
                let request = |key| workload::request(text, first_key + key);
                return Client::open(server)?.send_all(self.count, request);
            }
            From::Each(text) => (text, false),
            From::EachWaits(text) => (text, true),
        };
        for _ in 0..self.count {
            let mut client = Client::open(server)?;
            client.send(&workload::request(text, first_key))?;
            if !waits {
                client.receive(1)?;
            }
            clients.push(client);
        }
        // Blocked clients get no reply, but the server answers this PING after their requests.
        server.call(&mut link, &workload::request("PING", 0)).map(drop)
    }
}

/// The number of requests sent together.
const BATCH: usize = 1000;

/// A blocking connection.
struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    fn open(server: &Server) -> Result<Client, String> {
        let patience = Duration::from_secs(5);
        let open = || {
            let stream = TcpStream::connect_timeout(&server.addr, patience)?;
            stream.set_read_timeout(Some(patience))?;
            Ok(stream)
        };
        let stream =
            open().map_err(|error: std::io::Error| format!("cannot connect to {}: {error}", server.addr))?;
        Ok(Client { stream, received: Vec::new() })
    }

    /// Sends a request for each key, in batches, and waits for the replies.
    fn send_all(&mut self, keys: usize, request: impl Fn(usize) -> Vec<u8>) -> Result<(), String> {
        for first in (0..keys).step_by(BATCH) {
            let batch = first..keys.min(first + BATCH);
            self.send(&batch.clone().flat_map(&request).collect::<Vec<u8>>())?;
            self.receive(batch.len())?;
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(|error| error.to_string())
    }

    /// Waits for this many replies.
    fn receive(&mut self, replies: usize) -> Result<(), String> {
        let mut chunk = vec![0; 64 * 1024];
        let mut missing = replies;
        loop {
            while missing > 0
                && let Some(len) = value_len(&self.received)
            {
                if self.received[0] == b'-' {
                    return Err(format!(
                        "an error: {}",
                        String::from_utf8_lossy(&self.received[1..len]).trim_end()
                    ));
                }
                self.received.drain(..len);
                missing -= 1;
            }
            if missing == 0 {
                return Ok(());
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err("a connection was closed".to_owned()),
                Ok(len) => self.received.extend_from_slice(&chunk[..len]),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}
