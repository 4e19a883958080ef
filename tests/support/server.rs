//! Servers as child processes: Redlatch, and the real servers to compare it with.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;
use super::oracle;

/// A running server; dropping the value kills it.
pub struct Server {
    pub name: String,
    pub port: u16,
    /// The TCP ports that the ready lines name, `port` first.
    ports: Vec<u16>,
    child: Child,
}

impl Server {
    /// Starts the binary under test, which emulates a release such as `8.6` or `valkey-9.1`.
    pub fn redlatch(release: &str, args: &[&str]) -> Server {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_redlatch"));
        Server::start(
            format!("redlatch --redis-version {release}"),
            program,
            &[&["--enable-debug-command", "local", "--redis-version", release], args].concat(),
        )
    }

    /// Starts a real redis-server or valkey-server of a release, which `tests/install` installs. Without it the test is skipped.
    pub fn redis(release: &str, args: &[&str]) -> Option<Server> {
        let name =
            if release.starts_with("valkey") { release.to_owned() } else { format!("redis-{release}") };
        let program = oracle::server(&name)?;
        let quiet =
            ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes", "--bind", "127.0.0.1"];
        Some(Server::start(name, program, &[&quiet[..], args].concat()))
    }

    /// Starts the binary under test with only these arguments.
    pub fn redlatch_with_defaults(release: &str, args: &[&str]) -> Server {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_redlatch"));
        Server::start("redlatch".to_owned(), program, &[&["--redis-version", release], args].concat())
    }

    /// Starts a real redis-server of a release with only these arguments, without files.
    pub fn redis_with_defaults(release: &str, args: &[&str]) -> Option<Server> {
        let program = oracle::server(&format!("redis-{release}"))?;
        Some(Server::start(format!("redis-server {release}"), program, &[&["--save", ""], args].concat()))
    }

    /// Starts the binary under test under the name of the real server.
    pub fn drop_in(release: &str, args: &[&str]) -> Server {
        let command = drop_in(release);
        Server::spawn(format!("redlatch as the server of {release}"), command, args)
    }

    /// Starts the binary under test, or a real server, of a release with a configuration file. `None`: there is no such server.
    pub fn with_file(release: &str, is_real: bool, file: &str) -> Option<Server> {
        let name =
            if release.starts_with("valkey") { release.to_owned() } else { format!("redis-{release}") };
        let mut command = match is_real {
            true => Command::new(oracle::server(&name)?),
            false => drop_in(release),
        };
        command.arg(file);
        Some(Server::spawn(format!("the server of {release} with {file}"), command, &[]))
    }

    fn start(name: String, program: PathBuf, args: &[&str]) -> Server {
        Server::spawn(name, Command::new(program), args)
    }

    fn spawn(name: String, mut command: Command, args: &[&str]) -> Server {
        let port = free_port();
        let mut child = command
            .args(["--port", &port.to_string()])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(stdout).lines();
        let mut ports = Vec::new();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| {
            ports.extend(line.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()));
            line.contains("Ready to accept connections")
        });
        assert!(ready, "{name} did not become ready");
        // The pipe has to be drained as long as the server writes to it.
        std::thread::spawn(move || lines.for_each(drop));
        Server { name, port, ports, child }
    }

    /// Returns the TCP ports of Redlatch: those of its nodes, then the control port.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Returns the process ID.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, as a service manager does, and waits for the process to exit.
    pub fn terminate(mut self) -> ExitStatus {
        let killed = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(killed.is_ok_and(|status| status.success()));
        self.child.wait().expect("the process ends")
    }

    /// Waits for the process to exit. Returns its status; `None` if it does not exit in time.
    pub fn wait(mut self, patience: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        while began.elapsed() < patience {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.port)
    }
}

/// Returns a command that starts the binary under test under the name of the real server of a release.
pub fn drop_in(release: &str) -> Command {
    let name = if release.starts_with("valkey") { "valkey-server" } else { "redis-server" };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("drop-in-{}", std::process::id()));
    let link = folder.join(name);
    std::fs::create_dir_all(&folder).expect("a folder for the link");
    if let Err(error) = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_redlatch"), &link) {
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{error}");
    }
    let mut command = Command::new(link);
    command.env("REDLATCH_ARGS", format!("--redis-version {release}"));
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port()
}
