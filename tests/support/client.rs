//! A client that keeps every byte of a reply.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection to a server under test.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// How long a reply may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(5);

impl Client {
    pub fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Client { stream, buffer: Vec::new() }
    }

    pub fn send(&mut self, argv: &[impl AsRef<[u8]>]) {
        self.send_bytes(&encode(argv));
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        // A server that closes the connection is told by the reply that does not come.
        let _ = self.stream.write_all(bytes);
    }

    /// The bytes of the next reply or message; what there is, if none comes in time.
    pub fn receive(&mut self) -> Vec<u8> {
        self.receive_within(PATIENCE)
    }

    pub fn receive_within(&mut self, patience: Duration) -> Vec<u8> {
        loop {
            if let Some(len) = value_len(&self.buffer) {
                return self.buffer.drain(..len).collect();
            }
            if !self.fill(patience) {
                return std::mem::take(&mut self.buffer);
            }
        }
    }

    /// Everything that comes until nothing has come for a while.
    pub fn drain(&mut self, quiet: Duration) -> Vec<u8> {
        while self.fill(quiet) {}
        std::mem::take(&mut self.buffer)
    }

    fn fill(&mut self, patience: Duration) -> bool {
        let mut chunk = [0; 65536];
        self.stream.set_read_timeout(Some(patience)).expect("a socket option");
        match self.stream.read(&mut chunk) {
            Ok(len) if len > 0 => {
                self.buffer.extend_from_slice(&chunk[..len]);
                true
            }
            _ => false,
        }
    }

    pub fn call(&mut self, argv: &[impl AsRef<[u8]>]) -> Vec<u8> {
        self.send(argv);
        self.receive()
    }
}

/// A request as clients send it.
pub fn encode(argv: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", argv.len()).into_bytes();
    for arg in argv {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// How many bytes the value at the start of `buf` takes, if it is complete.
pub fn value_len(buf: &[u8]) -> Option<usize> {
    let line_end = buf.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let number = || std::str::from_utf8(&buf[1..line_end - 2]).ok()?.parse::<i64>().ok();
    match buf[0] {
        b'$' | b'=' | b'!' => match number()? {
            len if len < 0 => Some(line_end),
            len => (buf.len() >= line_end + len as usize + 2).then_some(line_end + len as usize + 2),
        },
        b'*' | b'~' | b'>' | b'%' | b'|' => {
            let values = number()?.max(0) as usize * if matches!(buf[0], b'%' | b'|') { 2 } else { 1 };
            let mut at = line_end;
            for _ in 0..values {
                at += value_len(buf.get(at..)?)?;
            }
            Some(at)
        }
        _ => Some(line_end),
    }
}

/// The elements of an aggregate, each with all its bytes.
pub fn elements(buf: &[u8]) -> Vec<Vec<u8>> {
    let Some(header) = buf.windows(2).position(|pair| pair == b"\r\n") else { return Vec::new() };
    let mut rest = &buf[header + 2..];
    let mut parts = Vec::new();
    while let Some(len) = value_len(rest).filter(|_| !rest.is_empty()) {
        parts.push(rest[..len].to_vec());
        rest = &rest[len..];
    }
    parts
}
