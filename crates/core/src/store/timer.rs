//! The purposes of the timers on a store's wheel.

/// Decides what happens when a timer fires. The store itself arms the timers of keys. Its owner arms the others on the
/// same wheel, so that all timers of a node fire in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A key, or the first of its hash fields, has expired.
    Key { db: u16, slot: u32 },
    /// The client in this session slot has been blocked until its timeout.
    Blocked { slot: u32 },
    /// The client in this session slot has been blocked until pending entries of a stream may be claimed.
    Claim { slot: u32 },
    /// The sentinel looks at what it watches.
    Sentinel,
    /// CLIENT PAUSE has ended.
    Unpause,
    /// Something is due in the cluster that the node belongs to.
    Cluster,
}
