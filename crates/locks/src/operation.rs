//! The operations of lock objects, and the requests that clients send for them.

use super::role::Role;

/// The request that a client sends for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// The script with this role.
    Script(Role),
    /// The script with the first role, or with the second in releases that lack the first.
    Either(Role, Role),
    /// The script, or `PEXPIRE` in releases that send it instead.
    ScriptOrPexpire(Role),
    /// The script, or `GET` in releases that send it instead.
    ScriptOrGet(Role),
    /// The script, or nothing in releases that lack it.
    ScriptOrNothing(Role),
    /// `PEXPIRE` for every key of the object.
    Pexpire,
    /// The script, or `HGET` of the mode in releases that send it instead.
    ScriptOrMode(Role),
    /// No request: an event at a node.
    Event(NodeEvent),
}

/// An event at one of several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// Requests no longer reach it.
    Down,
    /// Requests reach it again; its data still exists.
    Up,
    /// It restarts without data.
    Restart,
    /// Its clock goes forward by [`Call::lease_ms`](super::model::Call::lease_ms).
    Jump,
}

impl Sends {
    /// Returns the role of the script. If there are two, returns the first.
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

/// An operation of an owner.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The name in reports.
    pub name: &'static str,
    pub kind: Kind,
    pub sends: Sends,
    pub retried: Retried,
    /// Whether a release has the object if it has a script for this operation.
    pub is_defining: bool,
    /// Whether the owner acts as a writer, whose id differs from its id as a reader.
    pub as_writer: bool,
}

/// What an operation does to a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Acquire,
    Renew,
    /// Sets the expiry of the keys themselves.
    Expire,
    Other,
}

/// Whether the client repeats a request that got no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    Never,
    Always,
    /// Only with replicas or a cluster: under [`Rules::Strict`](super::invariant::Rules::Strict).
    WithReplicas,
}

impl Operation {
    /// Declares an operation that does not affect a lease.
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

    /// Declares an operation that acquires.
    pub const fn acquire(name: &'static str, sends: Sends) -> Operation {
        Operation { kind: Kind::Acquire, ..Operation::new(name, sends) }
    }

    /// Declares an operation that renews.
    pub const fn renewal(name: &'static str, sends: Sends) -> Operation {
        Operation { kind: Kind::Renew, ..Operation::new(name, sends) }
    }

    /// Declares an operation that sets the expiry of the keys.
    pub const fn expiry(name: &'static str, sends: Sends) -> Operation {
        Operation { kind: Kind::Expire, ..Operation::new(name, sends) }
    }

    /// Marks an operation whose client repeats a request without a reply.
    pub const fn retried(self) -> Operation {
        Operation { retried: Retried::Always, ..self }
    }

    /// Marks an operation whose client repeats a request without a reply, if there are replicas.
    pub const fn retried_with_replicas(self) -> Operation {
        Operation { retried: Retried::WithReplicas, ..self }
    }

    /// Marks an operation without which a release does not have the object.
    pub const fn defining(self) -> Operation {
        Operation { is_defining: true, ..self }
    }

    /// Marks an operation of a writer.
    pub const fn as_writer(self) -> Operation {
        Operation { as_writer: true, ..self }
    }

    /// Returns whether this is an event at a node, not a client's request.
    pub fn is_fault(self) -> bool {
        matches!(self.sends, Sends::Event(_))
    }
}
