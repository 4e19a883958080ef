//! Names of clients and connections.

/// Names a connected client of one node. A place is used again after a client left; the number never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    pub(crate) place: u32,
    /// The number that `CLIENT ID` gives.
    pub number: u64,
}

/// Names a connection to one of the nodes of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    pub node: usize,
    pub session: SessionId,
}
