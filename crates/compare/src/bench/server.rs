//! A server under measurement, and the CPU time and memory of its process.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::Stdio;
use std::time::Duration;

use crate::diff::link::Link;
use crate::diff::target::Target;
use redlatch_core::version::Version;

/// A running server.
pub struct Server {
    pub name: String,
    pub addr: SocketAddr,
    process: Option<u32>,
    /// The process, if this value has started it; dropping the value kills it.
    _own: Option<Target>,
}

impl Server {
    /// Connects to a running server.
    ///
    /// # Errors
    /// The server cannot be reached, does not answer, or needs a password.
    pub fn at(address: &str) -> Result<Server, String> {
        let addr = address
            .to_socket_addrs()
            .ok()
            .and_then(|mut addrs| addrs.next())
            .ok_or_else(|| format!("'{address}' is not HOST:PORT"))?;
        Server::new(addr, None)
    }

    /// Starts a redlatch as a child process.
    pub fn spawn() -> Result<Server, String> {
        let own = Target::spawn(Version::V7_4, false, Stdio::inherit())?;
        Server::new(own.addr, Some(own))
    }

    fn new(addr: SocketAddr, own: Option<Target>) -> Result<Server, String> {
        let silent = || format!("{addr} does not answer as a Redis server");
        let info = Link::open(addr)?.call(&["INFO"]).ok_or_else(silent)?;
        let info = String::from_utf8_lossy(&info);
        if let Some(error) = info.strip_prefix('-') {
            return Err(format!("{addr} refuses: {}", error.trim_end()));
        }
        let field = |name| info.lines().find_map(|line| line.strip_prefix(name));
        let release = field("redis_version:").ok_or_else(silent)?;
        let is_redlatch = field("os:").is_some_and(|os| os.starts_with("Redlatch"));
        let name = match field("valkey_version:") {
            _ if is_redlatch => "redlatch".to_owned(),
            Some(valkey) => format!("valkey {valkey}"),
            None => format!("redis {release}"),
        };
        let process = field("process_id:").filter(|_| addr.ip().is_loopback()).and_then(|id| id.parse().ok());
        Ok(Server { name: format!("{name} :{}", addr.port()), addr, process, _own: own })
    }

    /// Opens a connection for single requests.
    pub fn link(&self) -> Result<Link, String> {
        Link::open(self.addr)
    }

    /// Sends a request and returns the reply.
    pub fn call(&self, link: &mut Link, request: &[u8]) -> Result<Vec<u8>, String> {
        link.send(request);
        let reply = link.receive().ok_or_else(|| format!("{} stopped answering", self.addr))?;
        match reply.strip_prefix(b"-") {
            Some(error) => {
                Err(format!("{} answers: {}", self.addr, String::from_utf8_lossy(error).trim_end()))
            }
            None => Ok(reply),
        }
    }

    /// Returns the CPU time that the process has used so far, if it runs on this machine and the system tells.
    pub fn cpu_time(&self) -> Option<Duration> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process?)).ok()?;
        let used_ns = tasks.filter_map(|task| {
            let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Some(Duration::from_nanos(used_ns.sum())).filter(|used| !used.is_zero())
    }

    /// Returns how many files the process has open.
    pub fn open_files(&self) -> Option<u64> {
        Some(fs::read_dir(format!("/proc/{}/fd", self.process?)).ok()?.count() as u64)
    }

    /// Returns the resident memory of the process, in bytes.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process?)).ok()?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(kib.trim().split(' ').next()?.parse::<u64>().ok()? * 1024)
    }
}

/// Returns the CPU time that this thread, which sends the load, has used so far.
pub fn own_cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}
