//! Names of clients and connections.

/// Names a connected client of one node. A slot is reused after its client has left; a number never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    pub(crate) slot: u32,
    /// The number that `CLIENT ID` returns.
    pub number: u64,
}

/// Names a connection to one of the nodes of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    pub node: usize,
    pub session: SessionId,
}
