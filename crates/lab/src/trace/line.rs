//! The lines of a trace, to be read.

use serde::{Deserialize, Serialize};

use redlatch_core::node::Config;
use redlatch_core::version::UnknownVersion;
use redlatch_core::world::{ClockMode, ConnId};

/// A connection: `node:number`, the number that CLIENT ID gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Conn {
    pub node: usize,
    pub number: u64,
}

impl From<ConnId> for Conn {
    fn from(conn: ConnId) -> Conn {
        Conn { node: conn.node, number: conn.session.number }
    }
}

impl From<Conn> for String {
    fn from(conn: Conn) -> String {
        conn.to_string()
    }
}

impl TryFrom<String> for Conn {
    type Error = String;

    fn try_from(text: String) -> Result<Conn, String> {
        let parts =
            text.split_once(':').and_then(|(node, number)| Some((node.parse().ok()?, number.parse().ok()?)));
        let (node, number) = parts.ok_or_else(|| format!("'{text}' is no connection"))?;
        Ok(Conn { node, number })
    }
}

impl std::fmt::Display for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.node, self.number)
    }
}

/// How the world began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub format: u32,
    /// The version of Redlatch that wrote it.
    pub version: String,
    pub seed: u64,
    /// Unix time in ms when `t` is 0.
    pub wall_ms: i64,
    pub clock: String,
    /// The number of the last event before.
    pub e: u64,
    /// Monotonic time in µs at the beginning.
    pub t: u64,
    pub nodes: Vec<NodeHeader>,
    /// The words of SIM.CHECK ON, if checks are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
}

/// The settings of a node, all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeHeader {
    pub release: String,
    pub process_id: u32,
    pub config: Vec<(String, String)>,
}

impl NodeHeader {
    pub fn config(&self) -> Result<Config, String> {
        let mut config =
            Config::new(self.release.parse().map_err(|error: UnknownVersion| error.to_string())?);
        config.process_id = self.process_id;
        for (name, value) in &self.config {
            config.set_at_start(name, value.as_bytes()).map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(config)
    }
}

/// One line. `e` is the number of the event, `t` monotonic time in µs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "lowercase")]
pub enum Line {
    Head(Header),
    /// A client connects.
    Open {
        e: u64,
        t: u64,
        c: Conn,
        addr: String,
        laddr: String,
        /// It came by the control port.
        #[serde(default)]
        control: bool,
    },
    /// A request of a client that was there before the trace, to bring it to where it was. Its reply does not count.
    Setup {
        e: u64,
        t: u64,
        c: Conn,
        a: Vec<String>,
    },
    /// A request. `el`: for SIM commands, the driver's time in µs.
    Req {
        e: u64,
        t: u64,
        c: Conn,
        a: Vec<String>,
        #[serde(default)]
        el: u64,
    },
    /// Bytes that are no request.
    Bad {
        e: u64,
        t: u64,
        c: Conn,
        why: String,
    },
    Close {
        e: u64,
        t: u64,
        c: Conn,
    },
    /// A running script went on; it has run for `ms`.
    Slice {
        e: u64,
        t: u64,
        n: usize,
        ms: u64,
    },
    /// Control connections have waited until the driver's time `el`, in µs.
    Await {
        e: u64,
        t: u64,
        el: u64,
    },
    /// A remark: SIM.TRACE MARK.
    Mark {
        e: u64,
        t: u64,
        text: String,
    },
    /// A client was cut off because it did not read.
    Cut {
        e: u64,
        t: u64,
        c: Conn,
    },
    /// Bytes for a client.
    Out {
        e: u64,
        c: Conn,
        b: String,
    },
    /// A promise of a lock was found broken: the promise with the operation, the object, its key, who called, what was found.
    Check {
        e: u64,
        n: usize,
        promise: String,
        object: String,
        key: String,
        owner: String,
        text: String,
    },
    /// The state of all nodes after an event.
    Dig {
        e: u64,
        h: String,
    },
    /// The trace is complete.
    End {
        e: u64,
        t: u64,
    },
}

/// Bytes as the characters of the same number.
pub fn to_text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// The bytes of such a text; characters beyond 255 do not come from bytes.
pub fn to_bytes(text: &str) -> Result<Vec<u8>, String> {
    text.chars().map(|c| u8::try_from(c).map_err(|_| format!("'{c}' does not stand for a byte"))).collect()
}

pub fn clock_mode(name: &str) -> Result<ClockMode, String> {
    match name {
        "real" => Ok(ClockMode::Real),
        "manual" => Ok(ClockMode::Manual),
        _ => match name.strip_prefix("rate ").and_then(|rate| rate.parse().ok()) {
            Some(rate) => Ok(ClockMode::Rate(rate)),
            None => Err(format!("'{name}' is no clock")),
        },
    }
}
