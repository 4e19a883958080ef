//! The servers under comparison: connects to a running one or starts a redlatch.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::{Child, Command, Stdio};

use super::link::Link;
use redlatch_core::version::Version;

/// A server under comparison.
pub struct Target {
    pub addr: SocketAddr,
    /// The process, if this value has started it; dropping the value kills it.
    child: Option<Child>,
    version: Version,
    /// Whether a server that this value has started lets its clients use DEBUG.
    debugs: bool,
}

impl Target {
    /// Connects to a running server. Its databases have to be empty, because the comparison flushes them.
    ///
    /// # Errors
    /// The server cannot be reached, holds keys, needs a password, or is of another release.
    pub fn at(address: &str) -> Result<Target, String> {
        let addr = address
            .to_socket_addrs()
            .ok()
            .and_then(|mut addrs| addrs.next())
            .ok_or_else(|| format!("'{address}' is not HOST:PORT"))?;
        let mut link = Link::open(addr)?;
        let silent = || format!("{address} does not answer as a Redis server");
        let info = link.call(&["INFO"]).ok_or_else(silent)?;
        let info = String::from_utf8_lossy(&info);
        if let Some(error) = info.strip_prefix('-') {
            return Err(format!("{address} refuses: {}", error.trim_end()));
        }
        let field = |name| info.lines().find_map(|line| line.strip_prefix(name));
        let full = match field("valkey_version:") {
            Some(release) => format!("valkey-{release}"),
            None => field("redis_version:").ok_or_else(silent)?.to_owned(),
        };
        if let Some(keys) = info.lines().find(|line| line.starts_with("db") && line.contains(":keys=")) {
            return Err(format!(
                "{address} holds keys ({keys}): its databases would be flushed, so give an empty server"
            ));
        }
        let line = full.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let version = line.parse().map_err(|why| format!("{address} is of release {full}: {why}"))?;
        Ok(Target { addr, child: None, version, debugs: false })
    }

    /// Starts a redlatch on a free port. `debugs`: it lets its clients use DEBUG.
    pub fn spawn(version: Version, debugs: bool, stderr: Stdio) -> Result<Target, String> {
        let cannot = |error: std::io::Error| format!("cannot start a redlatch: {error}");
        let mut child = Command::new(std::env::current_exe().map_err(cannot)?)
            .args([super::SUBJECT, "--port", "0", "--redis-version", &version.to_string()])
            .args(["--enable-debug-command", if debugs { "local" } else { "no" }])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(cannot)?;
        let stdout = child.stdout.take().ok_or("the redlatch has no standard output")?;
        let mut addr = None;
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            addr =
                addr.or_else(|| line.strip_prefix("Redlatch listens on ").and_then(|text| text.parse().ok()));
            if line.contains("Ready to accept connections") {
                break;
            }
        }
        match addr {
            Some(addr) => Ok(Target { addr, child: Some(child), version, debugs }),
            None => {
                stop(&mut child);
                Err("the redlatch did not become ready".to_owned())
            }
        }
    }

    /// Returns whether the server lets its clients use DEBUG.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn permits_debug(&self) -> Result<bool, String> {
        let reply = Link::open(self.addr)?.call(&["DEBUG", "SLEEP", "0"]);
        Ok(reply.is_some_and(|reply| reply.starts_with(b"+")))
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// Restarts a redlatch that crashed or hangs. Returns false if this value has not started the server.
    pub fn restart(&mut self) -> Result<bool, String> {
        if self.child.is_none() {
            return Ok(false);
        }
        // The standard error of the first process has shown the cause already.
        *self = Target::spawn(self.version, self.debugs, Stdio::null())?;
        Ok(true)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            stop(child);
        }
    }
}

fn stop(child: &mut Child) {
    // The process may have exited already.
    let _ = child.kill();
    let _ = child.wait();
}
