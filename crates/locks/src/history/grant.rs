//! A lock that a client was told it holds.

use std::fmt;

/// A connection: its node, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conn {
    pub node: usize,
    pub number: u64,
}

impl fmt::Display for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.number)
    }
}

/// A lock that a client was told it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub owner: Vec<u8>,
    pub conn: Conn,
    /// The event of the request that the lock was granted to.
    pub event: u64,
    /// When the owner was told, in monotonic ms.
    pub at_ms: u64,
    /// When the lease ends by the owner's own account, in monotonic ms; `None`: never.
    pub until_ms: Option<u64>,
    /// Whether other readers may hold the lock too.
    pub is_shared: bool,
    /// The fencing token that came with the grant.
    pub token: Option<i64>,
    /// How often the owner was granted the lock, less the holds that he has released.
    pub(super) holds: u32,
    /// Whether `holds` is all that there is: the owner held nothing before the first grant that was seen.
    pub(super) has_all_holds: bool,
    /// The event of the first request to release the lock.
    pub(super) releasing: Option<u64>,
    /// The connection and the event of the last renewal, which was asked for in time.
    pub(super) renewal: Option<(Conn, u64)>,
    /// Whether a violation was reported about this grant.
    pub(super) is_reported: bool,
}

impl Grant {
    /// Returns whether the lease is not over, and the owner has not asked to release the lock.
    pub(super) fn is_in_lease(&self, now_ms: u64) -> bool {
        self.releasing.is_none() && self.until_ms.is_none_or(|until_ms| until_ms > now_ms)
    }

    /// Returns whether both owners are the same: a writer may read too.
    pub(super) fn is_same_person(&self, other: &Grant) -> bool {
        person(&self.owner) == person(&other.owner)
    }
}

/// Returns the owner without the mark of a writer.
fn person(owner: &[u8]) -> &[u8] {
    owner.strip_suffix(b":write").unwrap_or(owner)
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (owner, event, conn, at_ms) = (self.owner.escape_ascii(), self.event, self.conn, self.at_ms);
        write!(f, "{owner}: granted by event {event} to client {conn} on node {} at {at_ms} ms", conn.node)?;
        match self.until_ms {
            Some(until_ms) => write!(f, ", lease until {until_ms} ms")?,
            None => f.write_str(", no lease")?,
        }
        if let Some((_, event)) = self.renewal {
            write!(f, ", last renewal asked for by event {event}")?;
        }
        if let Some(token) = self.token {
            write!(f, ", token {token}")?;
        }
        Ok(())
    }
}
