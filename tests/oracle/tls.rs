//! Clients that speak TLS, side by side with a real server.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::client::PATIENCE;
use crate::support::server::{self, Server};

/// Makes the files of an authority in an empty folder.
fn files(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let made = Command::new(env!("CARGO_BIN_EXE_redlatch")).arg("tls-files").arg(&folder).status();
    assert!(made.expect("it runs").success());
    folder
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Connects to a port. The client trusts the authority in `trusted`, and shows the certificate in `shown`, a path without its suffix.
fn connect(port: u16, trusted: &Path, shown: Option<&Path>) -> io::Result<Stream> {
    let read = |path: PathBuf| CertificateDer::from_pem_file(path).expect("a certificate");
    let mut store = RootCertStore::empty();
    store.add(read(trusted.join("ca.crt"))).expect("an authority");
    let config = ClientConfig::builder().with_root_certificates(store);
    let config = match shown {
        Some(path) => {
            let key = PrivateKeyDer::from_pem_file(path.with_extension("key")).expect("a key");
            config.with_client_auth_cert(vec![read(path.with_extension("crt"))], key).expect("a pair")
        }
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let tcp = TcpStream::connect(("127.0.0.1", port))?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    tcp.set_write_timeout(Some(PATIENCE))?;
    Ok(StreamOwned::new(session, tcp))
}

/// Sends a line and returns as many bytes as its reply has. An error says that the server refused the client.
fn ask(stream: &mut Stream, line: &str, len: usize) -> io::Result<String> {
    stream.write_all(line.as_bytes())?;
    stream.write_all(b"\r\n")?;
    let mut reply = vec![0; len];
    stream.read_exact(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn start(release: &str, real: bool, folder: &Path, auth_clients: &str) -> Option<(Server, u16)> {
    let port = server::free_port();
    let path = |name: &str| folder.join(name).display().to_string();
    let args = [
        "--tls-port".to_owned(),
        port.to_string(),
        "--tls-cert-file".to_owned(),
        path("server.crt"),
        "--tls-key-file".to_owned(),
        path("server.key"),
        "--tls-ca-cert-file".to_owned(),
        path("ca.crt"),
        "--tls-auth-clients".to_owned(),
        auth_clients.to_owned(),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let server = if real { Server::redis(release, &args)? } else { Server::redlatch(release, &args) };
    Some((server, port))
}

#[test]
fn clients_are_received_and_refused_alike() {
    let (own, other) = (files("tls-own"), files("tls-other"));
    for auth_clients in ["yes", "optional", "no"] {
        let Some((_theirs, real)) = start("7.4", true, &own, auth_clients) else { return };
        let (_ours, port) = start("7.4", false, &own, auth_clients).expect("it starts");
        // Its own certificate is trusted, and an authority's at the same time: tests use such certificates.
        let (of_own, of_other, trusted) = (own.join("client"), other.join("client"), own.join("ca"));
        for shown in [None, Some(of_own.as_path()), Some(of_other.as_path()), Some(trusted.as_path())] {
            let serves = |port: u16| {
                let asked = connect(port, &own, shown).and_then(|mut stream| ask(&mut stream, "PING", 7));
                asked.map_err(|_| "refused")
            };
            let (ours, theirs) = (serves(port), serves(real));
            assert_eq!(ours, theirs, "tls-auth-clients {auth_clients}, {shown:?}");
            let is_served = auth_clients == "no" || shown.is_some_and(|path| path.starts_with(&own));
            assert!(
                !is_served || ours.as_deref() == Ok("+PONG\r\n"),
                "tls-auth-clients {auth_clients}, {shown:?}"
            );
        }
        // A client does not trust another authority.
        assert!(connect(port, &other, None).and_then(|mut stream| ask(&mut stream, "PING", 7)).is_err());
        // Without TLS there is no reply.
        let plain = |port: u16| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a port");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
            stream.write_all(b"PING\r\n").expect("it takes bytes");
            let mut reply = Vec::new();
            let _ = stream.read_to_end(&mut reply);
            reply.first() == Some(&b'+')
        };
        assert_eq!((plain(port), plain(real)), (false, false));
    }
}

#[test]
fn large_values_many_requests_and_slow_readers_pass_through_tls() {
    let folder = files("tls-large");
    let (server, port) = start("8.6", false, &folder, "no").expect("it starts");
    let mut stream = connect(port, &folder, None).expect("it connects");
    let value = "v".repeat(3 << 20);
    assert_eq!(ask(&mut stream, "PING", 7).expect("a reply"), "+PONG\r\n");
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}", value.len());
    assert_eq!(ask(&mut stream, &set, 5).expect("a reply"), "+OK\r\n");
    // The socket is full long before the client reads.
    stream.write_all("GET k\r\n".repeat(8).as_bytes()).expect("it takes requests");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let header = format!("${}\r\n", value.len());
    for _ in 0..8 {
        let mut reply = vec![0; header.len() + value.len() + 2];
        stream.read_exact(&mut reply).expect("a whole reply");
        assert!(reply.starts_with(header.as_bytes()) && reply.ends_with(b"v\r\n"));
    }
    let many = "INCR n\r\n".repeat(5000);
    stream.write_all(many.as_bytes()).expect("it takes requests");
    let replies: usize = (1..=5000).map(|n: usize| n.to_string().len() + 3).sum();
    let mut all = vec![0; replies];
    stream.read_exact(&mut all).expect("all replies");
    assert!(all.ends_with(b":5000\r\n"));
    // The last reply arrives before the connection ends.
    assert_eq!(ask(&mut stream, "QUIT", 5).expect("a reply"), "+OK\r\n");
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    let mut plain = server.connect();
    assert_eq!(plain.call(&["GET", "n"]), b"$4\r\n5000\r\n");
}

#[test]
fn settings_that_make_no_server_are_told_as_redis_tells_them() {
    let folder = files("tls-settings");
    let path = |name: &str| folder.join(name).display().to_string();
    let (certificate, key) = (path("server.crt"), path("server.key"));
    let port = server::free_port().to_string();
    let cases: &[&[&str]] = &[
        &[],
        &["--tls-cert-file", &certificate],
        &["--tls-cert-file", &certificate, "--tls-key-file", &key],
    ];
    for args in cases {
        let last_lines = |mut command: Command| {
            let args = [&["--port", "0", "--tls-port", &port], *args].concat();
            let output = command.args(args).output().expect("it ends");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let texts =
                text.lines().filter_map(|line| line.split_once(" # ")).map(|(_, text)| text.to_owned());
            (texts.skip_while(|text| !text.contains("tls-")).collect::<Vec<_>>(), output.status.code())
        };
        let Some(real) = crate::support::oracle::server("redis-7.4") else { return };
        let (ours, theirs) = (last_lines(server::drop_in("7.4")), last_lines(Command::new(real)));
        assert_eq!(ours, theirs, "{args:?}");
        assert!(!ours.0.is_empty());
    }
}
