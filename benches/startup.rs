//! Measures the time from the start of a process to its first PONG. Run with `cargo bench --bench startup`; arguments
//! name further programs to measure, which have to accept the options of redis-server.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

const STARTS: usize = 21;

fn main() {
    let others = env::args().skip(1).filter(|word| !word.starts_with("--"));
    for program in std::iter::once(env!("CARGO_BIN_EXE_redlatch").to_owned()).chain(others) {
        let mut times: Vec<Duration> = (0..STARTS).map(|_| start(&program)).collect();
        times.sort();
        let size = fs::metadata(&program).map_or(0, |metadata| metadata.len());
        println!(
            "{:>6.1} ms (least {:.1}, most {:.1}), {:.1} MB on disk  {program}",
            times[STARTS / 2].as_secs_f64() * 1e3,
            times[0].as_secs_f64() * 1e3,
            times[STARTS - 1].as_secs_f64() * 1e3,
            size as f64 / 1e6,
        );
    }
}

/// Starts a server, waits until it answers, and stops it. Returns the time to the answer.
fn start(program: &str) -> Duration {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let began = Instant::now();
    let mut server = Command::new(program)
        .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
    let mut reply = [0; 7];
    while began.elapsed() < Duration::from_secs(5) {
        let answered = TcpStream::connect(("127.0.0.1", port)).and_then(|mut socket| {
            socket.write_all(b"PING\r\n").and_then(|()| socket.read_exact(&mut reply))
        });
        if answered.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    let took = began.elapsed();
    server.kill().and_then(|()| server.wait()).expect("the server ends");
    assert_eq!(&reply, b"+PONG\r\n", "{program} answers");
    took
}
