//! What a client can do with a lock object, and what it sends for it.

use super::role::Role;

/// What a client sends for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// The script with this role.
    Script(Role),
    /// The script with the first role; the other one in releases that do not have it.
    Either(Role, Role),
    /// The script, or `PEXPIRE` in releases from before it.
    ScriptOrPexpire(Role),
    /// The script, or `GET` in releases from before it.
    ScriptOrGet(Role),
    /// The script, or nothing in releases from before it.
    ScriptOrNothing(Role),
    /// `PEXPIRE` for all keys of the object.
    Pexpire,
    /// The script, or `HGET` of the mode in releases from before it.
    ScriptOrMode(Role),
    /// No request: something happens to a node.
    Event(NodeEvent),
}

/// What happens to one of several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// Requests no longer reach it.
    Down,
    /// Requests reach it again; its data is still there.
    Up,
    /// It starts again without data.
    Restart,
    /// Its clock goes forward by [`Call::lease_ms`](super::model::Call::lease_ms).
    Jump,
}

impl Sends {
    /// Returns the role of the script, or of the first one.
    pub fn role(self) -> Option<Role> {
        match self {
            Sends::Script(role)
            | Sends::Either(role, _)
            | Sends::ScriptOrPexpire(role)
            | Sends::ScriptOrGet(role)
            | Sends::ScriptOrMode(role)
            | Sends::ScriptOrNothing(role) => Some(role),
            Sends::Pexpire | Sends::Event(_) => None,
        }
    }
}

/// Something an owner can do.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// As reports call it.
    pub name: &'static str,
    pub kind: Kind,
    pub sends: Sends,
    pub retried: Retried,
    /// A release has the object if it has a script for this.
    pub is_defining: bool,
    /// The owner acts as a writer, which has another name than the same owner as a reader.
    pub as_writer: bool,
}

/// What an operation does to a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Acquire,
    Renew,
    /// Sets when the keys themselves end.
    Expire,
    Other,
}

/// Whether the client sends a request again when no reply comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    Never,
    Always,
    /// Only where there are replicas or a cluster: with [`Rules::Strict`](super::invariant::Rules::Strict).
    WithReplicas,
}

impl Operation {
    pub const fn new(name: &'static str, sends: Sends) -> Operation {
        Operation {
            name,
            kind: Kind::Other,
            sends,
            retried: Retried::Never,
            is_defining: false,
            as_writer: false,
        }
    }

    pub const fn acquire(name: &'static str, sends: Sends) -> Operation {
        Operation { kind: Kind::Acquire, ..Operation::new(name, sends) }
    }

    pub const fn renewal(name: &'static str, sends: Sends) -> Operation {
        Operation { kind: Kind::Renew, ..Operation::new(name, sends) }
    }

    pub const fn expiry(name: &'static str, sends: Sends) -> Operation {
        Operation { kind: Kind::Expire, ..Operation::new(name, sends) }
    }

    pub const fn retried(self) -> Operation {
        Operation { retried: Retried::Always, ..self }
    }

    pub const fn retried_with_replicas(self) -> Operation {
        Operation { retried: Retried::WithReplicas, ..self }
    }

    pub const fn defining(self) -> Operation {
        Operation { is_defining: true, ..self }
    }

    pub const fn as_writer(self) -> Operation {
        Operation { as_writer: true, ..self }
    }

    /// Returns whether this is something that happens to a node, and no request of a client.
    pub fn is_fault(self) -> bool {
        matches!(self.sends, Sends::Event(_))
    }
}
