//! A real server to compare with.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redlatch_core::wire::reply::Protocol;

pub struct Oracle {
    server: Child,
    port: u16,
    connection: Option<BufReader<TcpStream>>,
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Oracle {
    /// Starts `program` on a free port. Panics if it is missing.
    pub fn start(program: &str) -> Oracle {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let server = Command::new(program)
            .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program} ({error}): run tests/install"));
        Oracle { server, port, connection: None }
    }

    pub fn connect(&mut self, protocol: Protocol) {
        let stream = (0..200)
            .find_map(|_| {
                std::thread::sleep(Duration::from_millis(20));
                TcpStream::connect(("127.0.0.1", self.port)).ok()
            })
            .expect("the oracle listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        self.connection = Some(BufReader::new(stream));
        if protocol == Protocol::Resp3 {
            self.command(&[b"HELLO", b"3"]);
        }
    }

    /// Runs a script on an empty database.
    pub fn eval(&mut self, body: &[u8], keys: &[&[u8]], argv: &[&[u8]]) -> Vec<u8> {
        self.command(&[b"FLUSHALL"]);
        let count = keys.len().to_string();
        let command = [&[b"EVAL", body, count.as_bytes()], keys, argv].concat();
        self.try_command(&command)
            .unwrap_or_else(|error| panic!("no reply to {}: {error}", body.escape_ascii()))
    }

    /// Sends a command and returns the bytes of the reply.
    pub fn command(&mut self, argv: &[&[u8]]) -> Vec<u8> {
        self.try_command(argv).expect("the oracle answers")
    }

    fn try_command(&mut self, argv: &[&[u8]]) -> io::Result<Vec<u8>> {
        let connection = self.connection.as_mut().expect("a connection");
        let mut request = format!("*{}\r\n", argv.len()).into_bytes();
        for argument in argv {
            request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            request.extend_from_slice(argument);
            request.extend_from_slice(b"\r\n");
        }
        connection.get_mut().write_all(&request)?;
        let mut reply = Vec::new();
        read_value(connection, &mut reply)?;
        Ok(reply)
    }
}

/// Reads one value and appends its bytes.
fn read_value(from: &mut impl BufRead, into: &mut Vec<u8>) -> io::Result<()> {
    let start = into.len();
    // An error text may contain a single line feed.
    while !into[start..].ends_with(b"\r\n") {
        if from.read_until(b'\n', into)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let line = &into[start + 1..into.len() - 2];
    let length: i64 = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).unwrap_or(-1);
    let elements = match into[start] {
        b'$' | b'=' if length >= 0 => {
            let mut bytes = vec![0; length as usize + 2];
            from.read_exact(&mut bytes)?;
            into.extend_from_slice(&bytes);
            0
        }
        b'*' | b'~' | b'>' => length,
        b'%' => length * 2,
        _ => 0,
    };
    for _ in 0..elements {
        read_value(from, into)?;
    }
    Ok(())
}
