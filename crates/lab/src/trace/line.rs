//! The lines of a trace, as a reader sees them.

use serde::{Deserialize, Serialize};

use redlatch_core::node::Config;
use redlatch_core::node::sentinel::SentinelSettings;
use redlatch_core::version::UnknownVersion;
use redlatch_core::world::{ClockMode, ConnId};

/// A connection, written as `node:number`; the number is the one that CLIENT ID returns.
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
    type Error = LineError;

    fn try_from(text: String) -> Result<Conn, LineError> {
        let parts =
            text.split_once(':').and_then(|(node, number)| Some((node.parse().ok()?, number.parse().ok()?)));
        let (node, number) = parts.ok_or(LineError::NotAConnection(text))?;
        Ok(Conn { node, number })
    }
}

impl std::fmt::Display for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.node, self.number)
    }
}

/// The state of the world at the beginning of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub format: u32,
    /// The version of Redlatch that wrote it.
    pub version: String,
    pub seed: u64,
    /// Unix time in ms at `t` = 0.
    pub wall_ms: i64,
    pub clock: String,
    /// The number of the last event before the trace.
    pub e: u64,
    /// Monotonic time in µs at the beginning.
    pub t: u64,
    pub nodes: Vec<NodeHeader>,
    /// What the nodes were for one another when the world began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Unix time in ms at which the world began. Traces without it come from a build in which a jump of all nodes left
    /// the world's clock alone, and SIM.RUN RESET left the clock and the numbers of rules alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<i64>,
    /// Whether there is a command whose clock can jump. In traces without it SIM.CLOCK JUMP <ms> COMMAND always succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<bool>,
    /// The arguments of SIM.CHECK ON, if checks are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    /// Whether checks look at the history of locks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judges_owners: bool,
    /// Whether passwords are hidden. Releases before 0.2 showed them.
    #[serde(default)]
    pub hides_passwords: bool,
    /// Whether clients of other machines may send SIM commands without a password.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_anywhere: bool,
}

/// The release that a node emulates, and all its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeHeader {
    pub release: String,
    pub process_id: u32,
    pub config: Vec<(String, String)>,
    /// The lines about whom the node watches, if it is a sentinel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<Vec<Vec<String>>>,
    /// The file of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_file: Option<String>,
    /// Whether the driver reads and writes the file of users, and connects to other servers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_driver: bool,
}

impl NodeHeader {
    /// Returns the settings of the node.
    ///
    /// # Errors
    /// This release does not emulate the node's release, or has no such setting.
    pub fn config(&self) -> Result<Config, LineError> {
        let mut config = Config::new(self.release.parse().map_err(LineError::UnknownRelease)?);
        config.process_id = self.process_id;
        (config.config_file, config.has_driver) = (self.config_file.clone(), self.has_driver);
        for (name, value) in &self.config {
            // Most parameters have their defaults, and setting one takes much longer than looking at it.
            if config.get(name) == Some(value) {
                continue;
            }
            config
                .set_at_start(name, value.as_bytes())
                .map_err(|why| LineError::BadSetting { name: name.clone(), why: why.to_string() })?;
        }
        if let Some(lines) = &self.sentinel {
            let mut settings = SentinelSettings::default();
            for line in lines {
                let refused =
                    |why| LineError::BadSetting { name: format!("sentinel {}", line.join(" ")), why };
                settings.read_line(line).map_err(refused)?;
            }
            config.sentinel = Some(Box::new(settings));
        }
        Ok(config)
    }
}

/// Why a line of a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// The line is not the JSON of a [`Line`].
    Syntax(String),
    /// Not `node:number`.
    NotAConnection(String),
    /// A text that represents bytes has a character beyond 255.
    NotAByte(char),
    UnknownClock(String),
    UnknownRelease(UnknownVersion),
    BadSetting {
        name: String,
        why: String,
    },
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LineError::Syntax(why) => write!(f, "not a line of a trace: {why}"),
            LineError::NotAConnection(text) => write!(f, "'{text}' is not a connection"),
            LineError::NotAByte(c) => write!(f, "'{c}' does not represent a byte"),
            LineError::UnknownClock(name) => write!(f, "'{name}' is not a clock mode"),
            LineError::UnknownRelease(error) => write!(f, "{error}"),
            LineError::BadSetting { name, why } => write!(f, "{name}: {why}"),
        }
    }
}

impl std::error::Error for LineError {}

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
        /// Whether the client came through the control port.
        #[serde(default)]
        control: bool,
    },
    /// A request that brings a client that connected before the trace to its state at the beginning. Its reply is not recorded.
    Setup {
        e: u64,
        t: u64,
        c: Conn,
        a: Vec<String>,
    },
    /// What the world had at the beginning: keys, rules, what clients wait for, and so on, a line of words for each.
    State {
        e: u64,
        t: u64,
        a: Vec<String>,
    },
    /// A request. `el`: the driver's time in µs, only for SIM commands.
    Req {
        e: u64,
        t: u64,
        c: Conn,
        a: Vec<String>,
        #[serde(default)]
        el: u64,
    },
    /// Bytes that do not parse as a request.
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
    /// A running script ran for one more slice; it has run for `ms` in all.
    Slice {
        e: u64,
        t: u64,
        n: usize,
        ms: u64,
    },
    /// Waits of control connections timed out at the driver's time `el`, in µs.
    Await {
        e: u64,
        t: u64,
        el: u64,
    },
    /// What the driver reports of a file that a client of node `n` asked for: its text, or why it cannot be read or written.
    Report {
        e: u64,
        t: u64,
        n: usize,
        ok: bool,
        text: String,
    },
    /// A comment: SIM.TRACE MARK.
    Mark {
        e: u64,
        t: u64,
        text: String,
    },
    /// A slow reader was disconnected.
    Cut {
        e: u64,
        t: u64,
        c: Conn,
    },
    /// Output for a client.
    Out {
        e: u64,
        c: Conn,
        b: String,
    },
    /// A lock invariant was violated: the invariant with the operation, the object, its key, the owner, and what was found.
    Check {
        e: u64,
        n: usize,
        promise: String,
        object: String,
        key: String,
        owner: String,
        text: String,
    },
    /// The digest of the state of all nodes after an event.
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

/// Converts the characters of a trace back to the bytes with the same numbers.
///
/// # Errors
/// The text has a character beyond 255.
pub fn to_bytes(text: &str) -> Result<Vec<u8>, LineError> {
    text.chars().map(|c| u8::try_from(c).map_err(|_| LineError::NotAByte(c))).collect()
}

/// Parses the name of a clock mode in a header.
pub fn clock_mode(name: &str) -> Result<ClockMode, LineError> {
    match name {
        "real" => Ok(ClockMode::Real),
        "manual" => Ok(ClockMode::Manual),
        _ => match name.strip_prefix("rate ").and_then(|rate| rate.parse().ok()) {
            Some(rate) => Ok(ClockMode::Rate(rate)),
            None => Err(LineError::UnknownClock(name.to_owned())),
        },
    }
}

impl Line {
    /// Returns the time in µs of an input, or of a connection's end. Lines about outputs have none.
    pub fn at_us(&self) -> Option<u64> {
        match self {
            Line::Open { t, .. }
            | Line::Setup { t, .. }
            | Line::State { t, .. }
            | Line::Req { t, .. }
            | Line::Bad { t, .. }
            | Line::Close { t, .. }
            | Line::Cut { t, .. }
            | Line::Slice { t, .. }
            | Line::Await { t, .. }
            | Line::Report { t, .. }
            | Line::Mark { t, .. }
            | Line::End { t, .. } => Some(*t),
            Line::Head(_) | Line::Out { .. } | Line::Check { .. } | Line::Dig { .. } => None,
        }
    }
}
