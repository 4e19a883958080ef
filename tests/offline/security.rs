//! What docs/security.md guarantees: who may connect, which files clients may write, what logs show, and that the process ends when told.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::{Client, encode};
use crate::support::server::Server;

/// A server whose log can be read, with a folder of its own.
struct Logged {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Logged {
    /// Starts the program with `--port 0`. `limits` are commands of the shell that come first.
    fn start(limits: &str, args: &[&str]) -> Logged {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("redlatch-security-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut child = Command::new("sh")
            .args([
                "-c",
                &format!("{limits} exec \"$@\""),
                "sh",
                env!("CARGO_BIN_EXE_redlatch"),
                "--port",
                "0",
            ])
            .args(args)
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut port = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if let Some((_, digits)) =
                line.strip_prefix("Redlatch listens on ").and_then(|at| at.rsplit_once(':'))
                && port == 0
            {
                port = digits.parse().unwrap_or(0);
            }
            if line == "Ready to accept connections" {
                break;
            }
        }
        Logged { child, port, folder }
    }

    fn connect(&self) -> Client {
        Client::connect(self.port)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the process to exit, and returns how long that took.
    fn wait(&mut self) -> Duration {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(20), "the process does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        began.elapsed()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Sends bytes and returns everything that comes back until the server closes the connection, or `None` if it stays open.
fn ask_until_closed(mut stream: TcpStream, bytes: &[u8]) -> Option<Vec<u8>> {
    stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
        _ => Some(said),
    }
}

/// Returns an address of this machine that is not the loopback interface's. No packet is sent.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|addr| addr.ip()).filter(|ip| !ip.is_loopback())
}

fn text(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).into_owned()
}

// ---- HTTP ------------------------------------------------------------------------------------------------------------

#[test]
fn an_http_request_ends_the_connection_before_its_body_runs() {
    let server = Logged::start("", &["--requirepass", "hush", "--control-port", "0"]);
    let control = Logged::start("", &[]);
    let page = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nSIM.RUN RESET\r\nSET stolen 1\r\n";
    for bytes in [
        &page[..],
        b"post x\r\nAUTH hush\r\nSET stolen 1\r\n",
        b"AUTH hush\r\nHOST: x\r\nSET stolen 1\r\n",
        b"AUTH hush\r\nMULTI\r\nSET stolen 1\r\nPoSt\r\nEXEC\r\n",
        b"*1\r\n$5\r\nhost:\r\n",
        b"*1\r\n$6\r\npost\0x\r\n",
    ] {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        assert_eq!(ask_until_closed(stream, bytes).as_deref(), Some(&b""[..]), "{}", bytes.escape_ascii());
    }
    let mut client = server.connect();
    client.call(&["AUTH", "hush"]);
    assert_eq!(client.call(&["EXISTS", "stolen"]), b":0\r\n");
    assert!(client.call(&["hosts:"]).starts_with(b"-ERR unknown command"));
    let lines = server.log().matches("Possible SECURITY ATTACK detected.").count();
    assert_eq!(lines, 1, "one line in a minute\n{}", server.log());
    drop(control);
}

#[test]
fn the_control_port_ends_http_as_well() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Logged::start("", &["--control-port", &port.to_string()]);
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let page = b"SIM.RUN INFO\r\nPOST / HTTP/1.1\r\n\r\nSET stolen 1\r\n";
    assert_eq!(ask_until_closed(stream, page).as_deref(), Some(&b""[..]));
    assert_eq!(server.connect().call(&["EXISTS", "stolen"]), b":0\r\n");
}

// ---- files -----------------------------------------------------------------------------------------------------------

#[test]
fn clients_write_no_file_unless_a_directory_is_given() {
    let server = Logged::start("", &[]);
    let target = server.folder.join("run.jsonl");
    let reply = text(&server.connect().call(&["SIM.TRACE", "START", target.to_str().unwrap()]));
    assert!(reply.starts_with("-SIMERR STATE ") && reply.contains("--trace-dir"), "{reply}");
    assert!(!target.exists());
    assert_eq!(
        text(&server.connect().call(&["SIM.TRACE", "STOP"])),
        "-SIMERR STATE no trace is being written\r\n"
    );
}

#[test]
fn clients_write_only_new_files_below_the_directory() {
    let server =
        Logged::start("mkdir -p traces/inner outside; mkfifo traces/pipe;", &["--trace-dir", "traces"]);
    let traces = server.folder.join("traces");
    fs::write(traces.join("old"), "precious").unwrap();
    symlink(server.folder.join("outside"), traces.join("way-out")).unwrap();
    symlink(server.folder.join("outside/new"), traces.join("dangling")).unwrap();
    let mut client = server.connect();
    let absolute = server.folder.join("outside/x").display().to_string();
    for name in [
        "../outside/x",
        "inner/../../outside/x",
        &absolute,
        "/dev/null",
        "way-out/x",
        "dangling",
        "old",
        "pipe",
        "inner",
        "",
        ".",
        "..",
        "none/x",
        "a\0b",
    ] {
        let reply = text(&client.call(&["SIM.TRACE", "START", name]));
        assert!(reply.starts_with("-SIMERR "), "{name:?}: {reply}");
        assert_eq!(client.call(&["PING"]), b"+PONG\r\n", "{name:?}");
    }
    assert_eq!(fs::read_to_string(traces.join("old")).unwrap(), "precious");
    assert_eq!(fs::read_dir(server.folder.join("outside")).unwrap().count(), 0);

    assert_eq!(client.call(&["SIM.TRACE", "START", "inner/run.jsonl"]), b"+OK\r\n");
    client.call(&["SET", "k", "v"]);
    assert_eq!(client.call(&["SIM.TRACE", "STOP"]), b"+OK\r\n");
    let path = traces.join("inner/run.jsonl");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_replays(&path);
}

#[test]
fn start_and_stop_in_one_pipeline_write_a_whole_trace() {
    let server = Logged::start("mkdir traces;", &["--trace-dir", "traces"]);
    let mut client = server.connect();
    let mut pipeline = encode(&["SIM.TRACE", "START", "a"]);
    pipeline.extend(encode(&["SET", "k", "v"]));
    pipeline.extend(encode(&["DEL", "k"]));
    pipeline.extend(encode(&["SIM.TRACE", "STOP"]));
    pipeline.extend(encode(&["SIM.TRACE", "START", "b"]));
    pipeline.extend(encode(&["SIM.TRACE", "STOP"]));
    client.send_bytes(&pipeline);
    let replies: Vec<String> = (0..6).map(|_| text(&client.receive())).collect();
    assert_eq!(replies, ["+OK\r\n", "+OK\r\n", ":1\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n"]);
    for name in ["a", "b"] {
        let path = server.folder.join("traces").join(name);
        assert!(
            fs::read_to_string(&path).unwrap().lines().last().unwrap().contains("\"k\":\"end\""),
            "{name}"
        );
        assert_replays(&path);
    }
}

fn assert_replays(path: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_redlatch")).arg("replay").arg(path).output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn an_unusable_trace_file_is_refused_before_the_server_is_ready() {
    let folder = Logged::start("mkfifo pipe;", &[]);
    for (path, why) in
        [("none/run.jsonl", "No such file"), ("pipe", "No such device"), ("/dev/null", "not a regular file")]
    {
        let path = if path.starts_with('/') { path.into() } else { folder.folder.join(path) };
        let output = Command::new(env!("CARGO_BIN_EXE_redlatch"))
            .args(["--port", "0", "--trace"])
            .arg(&path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!output.status.success());
        assert!(!text(&output.stdout).contains("Ready"), "{path:?}");
        assert!(text(&output.stderr).contains(why), "{path:?}: {}", text(&output.stderr));
    }
}

#[test]
fn the_trace_of_a_run_is_for_its_owner_only() {
    let server =
        Logged::start("umask 0; echo old > run.jsonl; chmod 644 run.jsonl;", &["--trace", "run.jsonl"]);
    assert_eq!(server.connect().call(&["PING"]), b"+PONG\r\n");
    let mode = fs::metadata(server.folder.join("run.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(fs::read_to_string(server.folder.join("run.jsonl")).unwrap().starts_with("{\"k\":\"head\""));
}

#[test]
fn a_file_in_place_of_the_unix_socket_stays() {
    let folder = Logged::start("echo precious > file;", &[]);
    let path = folder.folder.join("file");
    let output = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(["--port", "0", "--unixsocket"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(fs::read_to_string(path).unwrap(), "precious\n");
}

#[test]
fn the_permissions_of_the_unix_socket_are_those_asked_for() {
    let server = Logged::start("umask 022;", &["--unixsocket", "sock", "--unixsocketperm", "700"]);
    let metadata = fs::symlink_metadata(server.folder.join("sock")).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    let mut stream = UnixStream::connect(server.folder.join("sock")).unwrap();
    stream.write_all(b"CONFIG GET unixsocketperm\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut reply = [0; 34];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(text(&reply), "*2\r\n$14\r\nunixsocketperm\r\n$3\r\n700\r\n");
    let refused = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(["--port", "0", "--unixsocket", "/tmp/never-made", "--unixsocketperm", "999"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
}

// ---- other machines --------------------------------------------------------------------------------------------------

#[test]
fn strangers_are_denied_unless_there_is_a_password_or_protection_is_off() {
    let Some(address) = outer_address() else { return eprintln!("SKIPPED: only the loopback interface") };
    let ask = |server: &Logged, bytes: &[u8]| {
        let mut stream = TcpStream::connect((address, server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
        let _ = stream.write_all(bytes);
        let mut said = [0; 4096];
        let len = stream.read(&mut said).unwrap_or(0);
        text(&said[..len])
    };
    let server = Logged::start("", &["--bind", "0.0.0.0"]);
    assert!(ask(&server, b"").starts_with("-DENIED Redis is running in protected mode"));
    assert_eq!(server.connect().call(&["CONFIG", "SET", "protected-mode", "no"]), b"+OK\r\n");
    assert_eq!(ask(&server, b"PING\r\n"), "+PONG\r\n");
    // But the control plane stays closed, for scripts too.
    assert!(ask(&server, b"SIM.RUN INFO\r\n").starts_with("-SIMERR DENIED "));
    let script = "return redis.call('SIM.RUN','RESET')";
    assert!(ask(&server, &encode(&["EVAL", script, "0"])).contains("SIMERR DENIED"));
    assert!(server.connect().call(&["SIM.RUN", "INFO"]).starts_with(b"*"));
    assert_eq!(
        server.connect().call(&["CONFIG", "SET", "protected-mode", "yes", "requirepass", "hush"]),
        b"+OK\r\n"
    );
    assert!(ask(&server, b"SIM.RUN INFO\r\n").starts_with("-NOAUTH"));
    assert!(ask(&server, b"AUTH hush\r\n").starts_with("+OK"));

    let open = Logged::start("", &["--bind", "0.0.0.0", "--protected-mode", "no", "--control-anywhere"]);
    assert!(ask(&open, b"SIM.RUN INFO\r\n").starts_with('*'));
}

#[test]
fn debug_is_off_unless_allowed() {
    for (args, allowed) in [
        (&[][..], false),
        (&["--enable-debug-command", "no"], false),
        (&["--enable-debug-command", "local"], true),
    ] {
        let server = Logged::start("", args);
        let reply = text(&server.connect().call(&["DEBUG", "SLEEP", "0"]));
        assert_eq!(reply.starts_with("-ERR DEBUG command not allowed."), !allowed, "{args:?}: {reply}");
    }
    let refused = Command::new(env!("CARGO_BIN_EXE_redlatch"))
        .args(["--port", "0", "--enable-debug-command", "maybe"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    // Tests in the same process may.
    let mut sim = redlatch::Sim::new(redlatch::SimOptions::default());
    let client = sim.connect(0);
    assert_eq!(sim.call(client, &["DEBUG", "SET-ACTIVE-EXPIRE", "0"]), b"+OK\r\n");
}

// ---- passwords -------------------------------------------------------------------------------------------------------

#[test]
fn traces_have_no_passwords_and_replay_without_them() {
    let server = Logged::start("mkdir traces;", &["--requirepass", "first-secret", "--trace-dir", "traces"]);
    let mut early = server.connect();
    assert_eq!(early.call(&["AUTH", "first-secret"]), b"+OK\r\n");
    assert_eq!(early.call(&["SIM.TRACE", "START", "run"]), b"+OK\r\n");
    assert_eq!(early.call(&["SET", "k", "v"]), b"+OK\r\n");
    let mut late = server.connect();
    for (request, reply) in [
        (&["PING"][..], "-NOAUTH"),
        (&["AUTH", "wrong-secret"], "-WRONGPASS"),
        (&["HELLO", "2", "AUTH", "default", "first-secret"], "*"),
        (&["CONFIG", "GET", "requirepass"], "*2\r\n$11\r\nrequirepass\r\n$12\r\nfirst-secret"),
        (&["CONFIG", "SET", "requirepass", "second-secret", "masterauth", "third-secret"], "+OK"),
        (&["AUTH", "first-secret"], "-WRONGPASS"),
        (&["AUTH", "default", "second-secret"], "+OK"),
        (&["config", "get", "*a*"], "*"),
        (&["MULTI"], "+OK"),
        (&["AUTH", "second-secret"], "+QUEUED"),
        (&["CONFIG", "GET", "MASTERAUTH"], "+QUEUED"),
        (&["EXEC"], "*2"),
        (&["CONFIG", "SET", "requirepass", ""], "+OK"),
        (&["AUTH", "x"], "-ERR"),
    ] {
        let got = text(&late.call(request));
        assert!(got.starts_with(reply), "{request:?}: {got}");
    }
    assert_eq!(early.call(&["SIM.TRACE", "STOP"]), b"+OK\r\n");
    let path = server.folder.join("traces/run");
    let trace = fs::read_to_string(&path).unwrap();
    for line in trace.lines() {
        assert!(!line.contains("secret"), "{line}");
    }
    assert_replays(&path);
}

#[test]
fn a_trace_has_the_users_of_the_settings_and_no_password() {
    let file = "printf 'user default on nopass ~* &* +@all\nuser ann on >hush-ann ~k* +@all\n' > acl;";
    for (limits, args) in
        [(file, &["--aclfile", "acl"][..]), ("", &["--user", "ann", "on", ">hush-ann", "~k*", "+@all"])]
    {
        let server = Logged::start(limits, &[&["--trace", "run.jsonl"], args].concat());
        let mut client = server.connect();
        for (request, reply) in [
            (&["AUTH", "ann", "wrong"][..], "-WRONGPASS"),
            (&["AUTH", "ann", "hush-ann"], "+OK"),
            (&["GET", "other"], "-NOPERM"),
            (&["SET", "k", "v"], "+OK"),
            (&["ACL", "LIST"], "*2"),
            (&["ACL", "SETUSER", "ben", "on", ">hush-ben", "allkeys", "+get"], "+OK"),
            (&["AUTH", "ben", "hush-ben"], "+OK"),
        ] {
            let got = text(&client.call(request));
            assert!(got.starts_with(reply), "{request:?}: {got}");
        }
        let path = server.folder.join("run.jsonl");
        std::thread::sleep(std::time::Duration::from_millis(200));
        let trace = fs::read_to_string(&path).unwrap();
        assert!(trace.contains("ann") && !trace.contains("hush"), "{trace}");
        assert_replays(&path);
    }
}

#[test]
fn scripts_cannot_forge_lines_of_the_log() {
    let server = Logged::start("", &["--log", "info"]);
    let script = "redis.log(redis.LOG_WARNING, 'a\\n2026-01-01T00:00:00Z ERROR forged\\27[31m\\r\\nb')";
    server.connect().call(&["EVAL", script, "0"]);
    let log = server.log();
    let line = log.lines().find(|line| line.contains("forged")).expect("the message is logged");
    assert!(line.contains("WARN") && line.contains("a\\n2026-01-01") && line.ends_with("\\r\\nb"), "{line}");
    assert!(!log.contains('\u{1b}'), "{log}");
}

// ---- limits ----------------------------------------------------------------------------------------------------------

#[test]
fn maxclients_fits_the_limit_of_open_files() {
    let server = Logged::start("ulimit -n 64;", &["--maxclients", "100"]);
    assert_eq!(
        text(&server.connect().call(&["CONFIG", "GET", "maxclients"])),
        "*2\r\n$10\r\nmaxclients\r\n$2\r\n32\r\n"
    );
    let log = server.log();
    assert!(
        log.contains("You requested maxclients of 100 requiring at least 132 max file descriptors."),
        "{log}"
    );
    assert!(log.contains("Current maximum open files is 64. maxclients has been reduced to 32"), "{log}");
    let refused = Command::new("sh")
        .args(["-c", "ulimit -n 20; exec \"$0\" --port 0 --maxclients 100", env!("CARGO_BIN_EXE_redlatch")])
        .output()
        .unwrap();
    let said = text(&refused.stderr);
    assert!(said.contains("Your current 'ulimit -n' of 20 is not enough for the server to start."), "{said}");
}

#[test]
fn clients_beyond_the_file_descriptors_are_refused_with_one_line() {
    let server = Logged::start("ulimit -n 64;", &["--maxclients", "10"]);
    let mut admin = server.connect();
    assert_eq!(
        text(&admin.call(&["CONFIG", "SET", "maxclients", "33"])),
        "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle \
         the specified number of clients, try with 32\r\n"
    );
    assert_eq!(admin.call(&["CONFIG", "SET", "maxclients", "32"]), b"+OK\r\n");
    drop(admin);
    // Now the process has fewer descriptors than it has been promised.
    let lowered =
        Command::new("prlimit").args(["--pid", &server.child.id().to_string(), "--nofile=36"]).status();
    assert!(lowered.unwrap().success());
    let mut clients: Vec<Client> = (0..120).map(|_| server.connect()).collect();
    let (mut served, mut refused) = (0, 0);
    for client in &mut clients {
        match &client.call(&["PING"])[..] {
            b"+PONG\r\n" => served += 1,
            // A refused connection may be reset by the request.
            b"-ERR max number of clients reached\r\n" | b"" => refused += 1,
            other => panic!("{}", other.escape_ascii()),
        }
    }
    assert!(served >= 10 && refused >= 80, "{served} served, {refused} refused");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        server.log().lines().filter(|line| line.contains("cannot accept")).count(),
        1,
        "{}",
        server.log()
    );
    drop(clients);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server.connect().call(&["PING"]), b"+PONG\r\n");
}

// ---- signals ---------------------------------------------------------------------------------------------------------

#[test]
fn the_server_survives_the_end_of_its_terminal() {
    let server = Logged::start("", &[]);
    let mut client = server.connect();
    server.signal("HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(client.call(&["PING"]), b"+PONG\r\n");
}

#[test]
fn sigterm_ends_the_process_within_a_second() {
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "('a'):rep(50):find(('a?'):rep(50)..('a'):rep(50))",
        "local t = {} for i = 29, 0, -1 do t[2^i] = 1 end while true do table.insert(t, 1, 1) end",
    ] {
        let mut server = Logged::start("", &[]);
        let mut client = server.connect();
        client.send(&["EVAL", script, "0"]);
        std::thread::sleep(Duration::from_millis(300));
        server.signal("TERM");
        let took = server.wait();
        assert!(took < Duration::from_secs(1), "{script}: {took:?}");
    }
}

#[test]
fn a_server_that_is_not_busy_ends_in_order() {
    let server = Server::redlatch("7.4", &[]);
    server.connect().call(&["PING"]);
    assert!(server.terminate().success());
}

#[test]
fn clients_are_served_while_very_many_keys_expire() {
    const KEYS: usize = 100_000;
    let server = Logged::start("", &["--trace", "run.jsonl"]);
    let mut client = server.connect();
    let load = "local now = redis.call('TIME') local at = (now[1] + 3) * 1000 \
                for i = 1, ARGV[1] do redis.call('SET', 'k' .. i, 'v', 'PXAT', at) end return at";
    assert!(client.call(&["EVAL", load, "0", &KEYS.to_string()]).starts_with(b":"));
    client.call(&["CONFIG", "SET", "notify-keyspace-events", "Ex"]);
    let began = Instant::now();
    let mut in_between = 0;
    loop {
        let size = text(&client.call(&["DBSIZE"]));
        let size: usize = size.trim().trim_start_matches(':').parse().unwrap();
        match size {
            0 => break,
            KEYS => std::thread::sleep(Duration::from_millis(1)),
            _ => {
                in_between += 1;
                // The clock stands still, so no key is there any more.
                let key = format!("k{KEYS}");
                assert_eq!(client.call(&["EXISTS", &key]), b":0\r\n");
            }
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{size} keys are left");
    }
    assert!(in_between >= 5, "served {in_between} times");
    server.signal("TERM");
    let mut server = server;
    server.wait();
    assert_replays(&server.folder.join("run.jsonl"));
}

#[test]
fn files_are_written_only_where_the_configuration_says() {
    let server = Logged::start(
        "mkdir data; echo 'user default on nopass ~* &* +@all' > data/acl;",
        &["--dir", "data", "--pidfile", "pid", "--aclfile", "acl", "--appendonly", "yes"],
    );
    let mut client = server.connect();
    for request in [
        &["CONFIG", "REWRITE"][..],
        &["CONFIG", "SET", "dir", "/"],
        &["CONFIG", "SET", "dbfilename", "../other.rdb"],
        &["CONFIG", "SET", "logfile", "log"],
    ] {
        assert!(client.call(request).starts_with(b"-ERR "), "{request:?}");
    }
    for request in [&["SAVE"][..], &["BGSAVE"], &["BGREWRITEAOF"], &["SET", "k", "v"], &["ACL", "SAVE"]] {
        client.call(request);
    }
    let entries = fs::read_dir(server.folder.join("data")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["acl", "dump.rdb", "pid"]);
}
