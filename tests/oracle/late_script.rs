//! A long script that CLIENT PAUSE makes wait: in both servers it runs whole, and so does everything behind it.

#![allow(clippy::disallowed_methods)]

use std::time::Duration;

use crate::support::server::Server;

/// Runs for several slices, and tells whether `k` has changed meanwhile.
const LONG: &str = "redis.call('set', 'k', 'script') local x = 0 for i = 1, 1000000 do x = x + i end \
    return redis.call('get', 'k')";
const UNDISTURBED: &[u8] = b"$6\r\nscript\r\n";

#[test]
fn a_script_that_a_pause_made_late_runs_whole() {
    for release in ["7.0", "7.4"] {
        if let Some(server) = Server::redis(release, &[]) {
            scripts_after_pauses(&server);
        }
        scripts_after_pauses(&Server::redlatch(release, &[]));
    }
}

fn scripts_after_pauses(server: &Server) {
    let name = &server.name;
    let (mut a, mut b, mut c) = (server.connect(), server.connect(), server.connect());
    assert_eq!(c.call(&["CLIENT", "PAUSE", "300", "ALL"]), b"+OK\r\n");
    a.send(&["EVAL", LONG, "0"]);
    std::thread::sleep(Duration::from_millis(50));
    b.send(&["SET", "k", "other"]);
    assert_eq!(a.receive(), UNDISTURBED, "{name}");
    assert_eq!(b.receive(), b"+OK\r\n", "{name}");
    assert_eq!(c.call(&["EVAL", "return redis.call('get', 'k')", "0"]), b"$5\r\nother\r\n", "{name}");
    // CLIENT UNPAUSE in another client's request lets it begin, too.
    c.call(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    a.send(&["MULTI"]);
    a.send(&["EVAL", LONG, "0"]);
    a.send(&["EVAL", LONG, "0"]);
    a.send(&["EXEC"]);
    std::thread::sleep(Duration::from_millis(50));
    b.send(&["EVAL", LONG, "0"]);
    std::thread::sleep(Duration::from_millis(50));
    c.send(&["CLIENT", "UNPAUSE"]);
    c.send(&["PING"]);
    for reply in [&b"+OK\r\n"[..], b"+QUEUED\r\n", b"+QUEUED\r\n", b"*2\r\n$6\r\nscript\r\n$6\r\nscript\r\n"]
    {
        assert_eq!(a.receive(), reply, "{name}");
    }
    assert_eq!(b.receive(), UNDISTURBED, "{name}");
    assert_eq!((c.receive(), c.receive()), (b"+OK\r\n".to_vec(), b"+PONG\r\n".to_vec()), "{name}");
}
