//! CLIENT UNBLOCK of clients that wait for a stream: every release answers the same, in both protocols.

#![allow(clippy::disallowed_methods)]

use std::time::Duration;

use crate::support::server::Server;

const READS: [&[&str]; 2] = [
    &["XREAD", "BLOCK", "0", "STREAMS", "s", "t", "$", "$"],
    &["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"],
];

#[test]
fn client_unblock_ends_reads_of_streams() {
    for release in ["7.0", "7.4", "8.0", "8.6", "valkey-8.1", "valkey-9.1"] {
        let ours = replies(&Server::redlatch(release, &[]));
        if let Some(server) = Server::redis(release, &[]) {
            assert_eq!(ours, replies(&server), "{release}");
        }
        let error = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n:1\r\n".to_vec();
        assert_eq!(ours[2..4], [error.clone(), error], "{release}");
    }
}

/// Returns what the client that waits and the one that unblocks it receive.
fn replies(server: &Server) -> Vec<Vec<u8>> {
    let mut control = server.connect();
    control.call(&["XADD", "s", "1-1", "f", "v"]);
    control.call(&["XGROUP", "CREATE", "s", "g", "$"]);
    let mut replies = Vec::new();
    for protocol in ["2", "3"] {
        for how in ["TIMEOUT", "ERROR"] {
            for read in READS {
                let mut reader = server.connect();
                reader.call(&["HELLO", protocol]);
                let id = String::from_utf8(reader.call(&["CLIENT", "ID"])).unwrap();
                reader.send(read);
                std::thread::sleep(Duration::from_millis(50));
                let count = control.call(&["CLIENT", "UNBLOCK", id.trim_matches([':', '\r', '\n']), how]);
                replies.push([reader.receive(), count].concat());
            }
        }
    }
    replies
}
