//! What a real server does with strangers, HTTP, DEBUG and passwords is what Redlatch does.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::support::client::Client;
use crate::support::server::Server;

const RELEASES: [&str; 2] = ["7.0", "7.4"];

/// Sends bytes and returns what comes back, with `(closed)` if the server closes the connection.
fn ask(address: IpAddr, port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect((address, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let _ = stream.write_all(bytes);
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break said.extend_from_slice(b"(closed)"),
            Ok(len) => said.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(_) => break said.extend_from_slice(b"(closed)"),
        }
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn compare(release: &str, args: &[&str], from: IpAddr, requests: &[&[u8]]) {
    let Some(theirs) = Server::redis_with_defaults(release, args) else { return };
    let ours = Server::redlatch_with_defaults(release, args);
    for bytes in requests {
        let (expected, got) = (ask(from, theirs.port, bytes), ask(from, ours.port, bytes));
        assert_eq!(got, expected, "{release}: {}", bytes.escape_ascii());
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

#[test]
fn http_and_nul_bytes_are_treated_alike() {
    for release in RELEASES {
        compare(
            release,
            &[],
            LOOPBACK,
            &[
                b"POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n",
                b"PING\r\nhost: x\r\nPING\r\n",
                b"MULTI\r\nPoSt\r\nEXEC\r\n",
                b"*1\r\n$6\r\npost\0x\r\n",
                b"hosts:\r\n",
                b"PING\0\r\nPING\r\n",
                b"\0PING\r\n",
                b"ECHO a\0 b\r\nPING\r\n",
                &[&b"PING\0"[..], &[b'x'; 70_000], b"\r\n"].concat(),
            ],
        );
    }
}

#[test]
fn debug_is_refused_alike() {
    let requests: &[&[u8]] = &[
        b"DEBUG SLEEP 0\r\n",
        b"DEBUG\r\n",
        b"DEBUG HELP\r\n",
        b"MULTI\r\nDEBUG JMAP\r\nEXEC\r\n",
        b"CONFIG SET enable-debug-command yes\r\n",
        b"CONFIG GET enable-debug-command\r\n",
    ];
    for release in RELEASES {
        compare(release, &[], LOOPBACK, requests);
        compare(release, &["--requirepass", "hush"], LOOPBACK, requests);
        for word in ["no", "local", "yes"] {
            compare(release, &["--enable-debug-command", word], LOOPBACK, &[b"DEBUG SLEEP 0\r\n"]);
        }
    }
}

#[test]
fn strangers_are_denied_alike() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // Tells an address of this machine; no packet is sent.
    let Some(outer) = socket.connect("192.0.2.1:9").ok().and_then(|()| Some(socket.local_addr().ok()?.ip()))
    else {
        return eprintln!("SKIPPED: only the loopback interface");
    };
    for release in RELEASES {
        for args in [
            &["--bind", "0.0.0.0"][..],
            &["--bind", "0.0.0.0", "--protected-mode", "no"],
            &["--bind", "0.0.0.0", "--requirepass", "hush"],
        ] {
            compare(release, args, outer, &[b"", b"PING\r\n", b"AUTH hush\r\n"]);
            compare(release, args, LOOPBACK, &[b"PING\r\n"]);
        }
    }
}

#[test]
fn monitor_and_slowlog_hide_the_same_arguments() {
    const REQUESTS: &[&str] = &[
        "AUTH secret",
        "AUTH default secret",
        "AUTH a b c",
        "HELLO 2 AUTH default secret",
        "HELLO 2 AUTH default secret SETNAME x",
        "HELLO 2 SETNAME auth AUTH default secret",
        "HELLO 2 SETNAME y",
        "CONFIG SET masterauth secret",
        "config set MASTERAUTH secret",
        "CONFIG SET maxmemory 0 masterauth secret hz 10",
        "CONFIG SET masteruser user",
        "CONFIG SET nosuch secret",
        "CONFIG SET hz 10",
        "CONFIG GET requirepass",
        "SET password secret",
        "CONFIG SET requirepass \"\"",
    ];
    for release in RELEASES {
        let args = ["--slowlog-log-slower-than", "0"];
        let Some(theirs) = Server::redis(release, &args) else { return };
        let ours = Server::redlatch(release, &args);
        let shown = |server: &Server| {
            let mut monitor = server.connect();
            monitor.call(&["MONITOR"]);
            let mut client = server.connect();
            let mut lines = Vec::new();
            let send = |client: &mut Client, request: &str| {
                client.send_bytes(format!("{request}\r\n").as_bytes());
                client.receive();
            };
            REQUESTS.iter().for_each(|request| send(&mut client, request));
            send(&mut client, "MULTI");
            REQUESTS.iter().for_each(|request| send(&mut client, request));
            send(&mut client, "EXEC");
            let seen = String::from_utf8_lossy(&monitor.drain(Duration::from_millis(300))).into_owned();
            lines.extend(seen.lines().filter_map(|line| Some(line.split_once("] ")?.1.to_owned())));
            let slow = String::from_utf8_lossy(&client.call(&["SLOWLOG", "GET", "100"])).into_owned();
            // Without times and addresses.
            lines.extend(
                slow.lines()
                    .filter(|line| !line.starts_with(':') && !line.contains("127.0.0.1"))
                    .map(str::to_owned),
            );
            lines
        };
        assert_eq!(shown(&ours), shown(&theirs), "{release}");
    }
}
