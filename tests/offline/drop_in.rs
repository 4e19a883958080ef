//! Redlatch under the name of another server: what needs no such server to compare with.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::client::{Client, PATIENCE};
use crate::support::server::{self, Server};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_daemon_leaves_its_number_and_its_log() {
    let folder = folder("daemon");
    let (pidfile, log) = (folder.join("server.pid"), folder.join("server.log"));
    let port = server::free_port();
    let config = format!(
        "daemonize yes\npidfile {}\nlogfile {}\nport {port}\nbind 127.0.0.1\nappendonly yes\n",
        pidfile.display(),
        log.display()
    );
    let config_file = folder.join("redis.conf");
    std::fs::write(&config_file, config).unwrap();
    let status = server::drop_in("7.2").arg(&config_file).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "the process that was started ends well");
    wait_until("the daemon becomes ready", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("Ready to accept connections tcp"))
    });
    let pid = std::fs::read_to_string(&pidfile).unwrap();
    let mut client = Client::connect(port);
    client.send(&["INFO", "server"]);
    let info = String::from_utf8_lossy(&client.receive()).into_owned();
    assert!(info.contains(&format!("process_id:{}\r\n", pid.trim())), "{info}");
    assert!(info.contains("redis_version:7.2."), "REDLATCH_ARGS names the release: {info}");
    client.send(&["SHUTDOWN"]);
    wait_until("the file with the number goes", || !pidfile.exists());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("have no effect here: appendonly\n"), "{log}");
    assert_eq!(log.matches("bye bye...").count(), 1, "{log}");
}

#[test]
fn port_0_listens_on_the_socket_only_and_the_last_port_counts() {
    let folder = folder("ports");
    let socket = folder.join("s.sock").display().to_string();
    let mut child = server::drop_in("7.4")
        .args(["--port", "0", "--unixsocket", &socket])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the socket is there", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
    let last = server::free_port();
    let server = Server::drop_in("7.4", &["--port", &last.to_string()]);
    Client::connect(last).send(&["PING"]);
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err());
}

#[test]
fn data_is_kept_only_in_a_directory_that_was_named() {
    let folder = folder("kept");
    let dir = folder.display().to_string();
    let write = |args: &[&str]| {
        let server = Server::drop_in("7.4", args);
        let mut client = server.connect();
        for request in [&["SET", "k", "v"][..], &["SAVE"], &["SET", "k", "later"]] {
            client.send(request);
            assert_eq!(client.receive(), b"+OK\r\n");
        }
        server.terminate()
    };
    assert!(write(&["--dir", &dir]).success());
    let server = Server::drop_in("7.4", &["--dir", &dir]);
    let mut client = server.connect();
    client.send(&["GET", "k"]);
    assert_eq!(client.receive(), b"$1\r\nv\r\n", "a signal does not save");
    client.send(&["CONFIG", "GET", "dir"]);
    assert!(String::from_utf8_lossy(&client.receive()).contains(&dir));
    drop(server);

    std::fs::write(folder.join("dump.rdb"), b"REDIS0011 that is not one").unwrap();
    let refused =
        server::drop_in("7.4").args(["--dir", &dir, "--port", "0"]).args(["--unixsocket", "s"]).output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot load"));
}

#[test]
fn a_cut_or_changed_file_is_refused_and_nothing_breaks() {
    let folder = folder("cut");
    let dir = folder.display().to_string();
    let server = Server::drop_in("8.6", &["--dir", &dir]);
    let mut client = server.connect();
    for request in [&["HSET", "h", "f", "v"][..], &["XADD", "s", "1-1", "a", "b"], &["SAVE"]] {
        client.send(request);
        client.receive();
    }
    drop(server);
    let file = folder.join("dump.rdb");
    let whole = std::fs::read(&file).unwrap();
    for len in [0, 5, 9, 20, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..len]).unwrap();
        let mut command = server::drop_in("8.6");
        let refused = command.args(["--dir", &dir, "--port", "0", "--unixsocket", "s"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "cut to {len} bytes");
    }
}
