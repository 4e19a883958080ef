//! Who was told that he holds which lock, on which node and until when, as far as requests and replies show it.
//!
//! A grant begins when the client gets the reply that grants it, and ends when its lease is over by the client's own
//! reckoning, or when the client gives the lock up. That the data of a lock are lost does not end it: its owner does not
//! know. So two owners at once show after a failover or a FLUSHALL too, where every single script was right.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use crate::control::Lab;
use crate::control::matching::{Request, is_eval};
use crate::trace::Conn;
use redlatch_core::node::replication::Role as NodeRole;
use redlatch_core::num::parse_i64;
use redlatch_core::script::sha1_hex;
use redlatch_core::wire::client::value_len;
use redlatch_locks::binding::{Binding, LEASE_MS, OWNER};
use redlatch_locks::model::Reply;
use redlatch_locks::role::{Role, recognise};
use redlatch_locks::view::View;

/// A lock: its database and its key. Nodes that replicate share it.
pub type LockId = (usize, Vec<u8>);

/// A lock that a client was told it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub owner: Vec<u8>,
    pub conn: Conn,
    /// The event of the request that the lock was granted to.
    pub event: u64,
    /// When the lease ends by the owner's own reckoning, in monotonic ms; `None`: never.
    pub until_ms: Option<u64>,
    /// Whether other readers may hold the lock too.
    pub is_shared: bool,
    /// Whether the owner has asked to release the lock.
    is_leaving: bool,
}

impl Grant {
    fn is_held(&self, now_ms: u64) -> bool {
        !self.is_leaving && self.until_ms.is_none_or(|until_ms| until_ms > now_ms)
    }
}

/// Two owners of one lock at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoOwners {
    pub lock: LockId,
    pub first: Grant,
    pub second: Grant,
    /// When the second was told, in monotonic ms.
    pub at_ms: u64,
}

impl fmt::Display for TwoOwners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "two owners of {}:", self.lock.1.escape_ascii())?;
        for grant in [&self.first, &self.second] {
            let (owner, event, conn) = (grant.owner.escape_ascii(), grant.event, grant.conn);
            let left = match grant.until_ms {
                Some(until_ms) => format!("lease for {} ms more", until_ms.saturating_sub(self.at_ms)),
                None => "no lease".to_owned(),
            };
            writeln!(f, "  {owner}: granted by event {event} to client {conn}, {left}")?;
        }
        Ok(())
    }
}

/// What a request asks for, as far as it concerns the holders of locks.
#[derive(Clone, Debug)]
enum Asked {
    Acquire {
        lock: LockId,
        owner: Vec<u8>,
        lease_ms: Option<u64>,
        is_shared: bool,
        /// By SET with NX, not by a script.
        is_set: bool,
    },
    Unlock {
        lock: LockId,
        owner: Vec<u8>,
    },
    ForceUnlock(LockId),
    /// Renews what these owners hold of these locks.
    Renew {
        locks: Vec<LockId>,
        owners: Vec<Vec<u8>>,
        lease_ms: u64,
    },
}

/// A client: the requests whose replies it has not received yet, and the beginning of the next reply.
#[derive(Clone, Debug, Default)]
struct Client {
    pending: VecDeque<(u64, Option<Asked>)>,
    bytes: Vec<u8>,
    /// Whether replies can no longer be told from messages, as after SUBSCRIBE.
    is_ignored: bool,
}

/// The grants of all locks.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    scripts: BTreeMap<[u8; 40], Option<(Role, Binding)>>,
    clients: BTreeMap<Conn, Client>,
    grants: BTreeMap<LockId, Vec<Grant>>,
    /// For each node the first one that it has ever shared its data with.
    group: Vec<usize>,
    found: Option<TwoOwners>,
    /// The last event that granted, renewed or released a lock.
    pub last_event: u64,
}

/// The objects that one owner at a time holds, or several readers.
const OBJECTS: [&str; 8] =
    ["rlock", "spin", "nonreentrant", "fenced", "fair", "fair.nonreentrant", "rw.read", "rw.write"];

impl Owners {
    /// Returns the first two owners of one lock.
    pub fn two(&self) -> Option<&TwoOwners> {
        self.found.as_ref()
    }

    /// Returns the locks that clients believe to hold, with the grants.
    pub fn held(&self, now_ms: u64) -> impl Iterator<Item = (&LockId, Vec<&Grant>)> {
        self.grants.iter().filter_map(move |(lock, grants)| {
            let held: Vec<&Grant> = grants.iter().filter(|grant| grant.is_held(now_ms)).collect();
            (!held.is_empty()).then_some((lock, held))
        })
    }

    /// Returns all locks that were ever asked for.
    pub fn locks(&self) -> impl Iterator<Item = &LockId> {
        self.grants.keys()
    }

    /// Notes a request that has arrived.
    pub fn request(&mut self, lab: &Lab, conn: Conn, event: u64, argv: &[&[u8]]) {
        let Some(name) = argv.first().map(|name| name.to_ascii_uppercase()) else { return };
        if name.starts_with(b"SIM.") {
            self.join_replicas(lab);
        }
        let asked = self.asked(lab, conn, &name, argv);
        if let Some(Asked::Unlock { lock, owner }) = &asked {
            self.leave(lock, owner, true);
            self.last_event = event;
        }
        let client = self.clients.entry(conn).or_default();
        client.is_ignored |= matches!(&name[..], b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"MONITOR")
            || name == b"CLIENT" && argv.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"REPLY"));
        if client.is_ignored {
            *client = Client { is_ignored: true, ..Client::default() };
        } else {
            client.pending.push_back((event, asked));
        }
    }

    /// Notes that a client has left. It may still believe that it holds its locks.
    pub fn closed(&mut self, conn: Conn) {
        self.clients.remove(&conn);
    }

    /// Notes what a client has received.
    pub fn received(&mut self, lab: &Lab, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&conn).filter(|client| !client.is_ignored) else { return };
        client.bytes.extend_from_slice(bytes);
        let mut at = 0;
        let mut answered = Vec::new();
        while let Some(len) = value_len(&client.bytes[at..]) {
            let reply = &client.bytes[at..at + len];
            at += len;
            // A message of RESP3 is not a reply.
            if !reply.starts_with(b">")
                && let Some((event, Some(asked))) = client.pending.pop_front()
            {
                answered.push((event, asked, reply.to_vec()));
            }
        }
        client.bytes.drain(..at);
        let now_ms = lab.world().clock().now().mono_ms();
        for (event, asked, reply) in answered {
            self.answered(now_ms, (conn, event), asked, Reply::parse(&reply));
        }
    }

    fn asked(&mut self, lab: &Lab, conn: Conn, name: &[u8], argv: &[&[u8]]) -> Option<Asked> {
        let db = lab.world().conn(conn.node, conn.number).map_or(0, |id| {
            lab.world().nodes()[conn.node].sessions.get(id.session).map_or(0, |session| session.db)
        });
        match name {
            b"SET" => set_nx(db, argv),
            b"SCRIPT" if argv.get(1).is_some_and(|sub| sub.eq_ignore_ascii_case(b"LOAD")) => {
                self.know(argv.get(2)?);
                None
            }
            _ if is_eval(argv[0]) => self.script(lab, conn, db, argv),
            b"DEL" | b"UNLINK" | b"DELEX" => {
                let lock = (db, argv.get(1)?.to_vec());
                let grant = self.grants.get(&lock)?.iter().find(|grant| grant.conn == conn)?;
                Some(Asked::Unlock { owner: grant.owner.clone(), lock })
            }
            _ => None,
        }
    }

    fn know(&mut self, text: &[u8]) -> Option<(Role, Binding)> {
        let known = self.scripts.entry(sha1_hex(text)).or_insert_with(|| {
            let role = recognise(text)?.role;
            Some((role, Binding::of(role, text).ok()?))
        });
        known.clone()
    }

    fn script(&mut self, lab: &Lab, conn: Conn, db: usize, argv: &[&[u8]]) -> Option<Asked> {
        let request = Request::new(argv, None);
        let args = request.script_args()?;
        let lock = (db, args.keys.first()?.to_vec());
        let sha: Option<[u8; 40]> = argv[1].to_ascii_lowercase().try_into().ok();
        let by_sha = argv[0].len() >= 7 && argv[0][4..7].eq_ignore_ascii_case(b"SHA");
        let known = match by_sha {
            true => self.scripts.get(&sha?).cloned().flatten(),
            false => self.know(argv[1]),
        };
        let Some((role, binding)) = known else {
            return self.own_script(lab, conn, lock, args.argv);
        };
        if !OBJECTS.contains(&role.object()) {
            return None;
        }
        let word = |parameter| {
            let at = binding.args.iter().position(|known| *known == parameter)?;
            args.argv.get(at).copied()
        };
        let lease_ms = || word(LEASE_MS).and_then(parse_i64).and_then(|ms| u64::try_from(ms).ok());
        match role.name().rsplit('.').next()? {
            "acquire" | "try_acquire" | "acquire_token" => Some(Asked::Acquire {
                lock,
                owner: word(OWNER)?.to_vec(),
                lease_ms: lease_ms(),
                is_shared: role.object() == "rw.read",
                is_set: false,
            }),
            "unlock" => Some(Asked::Unlock { lock, owner: word(OWNER)?.to_vec() }),
            "force_unlock" => Some(Asked::ForceUnlock(lock)),
            "renew" => Some(Asked::Renew {
                locks: args.keys.iter().map(|key| (db, key.to_vec())).collect(),
                owners: args.argv.iter().map(|arg| arg.to_vec()).collect(),
                lease_ms: lease_ms()?,
            }),
            _ => None,
        }
    }

    /// Reads a script of one's own that names a lock and its owner: it releases the lock, or it renews it. The data show which.
    fn own_script(&mut self, lab: &Lab, conn: Conn, lock: LockId, argv: &[&[u8]]) -> Option<Asked> {
        let grants = self.grants.get(&lock)?;
        let owner = grants.iter().find(|grant| argv.contains(&&grant.owner[..]))?.owner.clone();
        let store = &lab.world().nodes()[conn.node].store;
        let view = View::new(store, store.now);
        if view.text(&lock.1).is_some_and(|text| text == owner) {
            let lease_ms = u64::try_from(view.ttl_ms(&lock.1)).ok()?;
            return Some(Asked::Renew { locks: vec![lock], owners: vec![owner], lease_ms });
        }
        Some(Asked::Unlock { lock, owner })
    }

    fn answered(&mut self, now_ms: u64, (conn, event): (Conn, u64), asked: Asked, reply: Reply) {
        match asked {
            Asked::Acquire { lock, owner, lease_ms, is_shared, is_set } => {
                let is_granted = match reply {
                    Reply::Nil => !is_set,
                    Reply::Text(text) => is_set && text == b"OK",
                    // A fenced lock replies -1 and the token.
                    Reply::Array(_) => reply.int() == Some(-1),
                    _ => false,
                };
                if is_granted {
                    let until_ms = lease_ms.map(|lease_ms| now_ms.saturating_add(lease_ms));
                    let grant = Grant { owner, conn, event, until_ms, is_shared, is_leaving: false };
                    self.grant(lock, grant, now_ms);
                    self.last_event = event;
                } else {
                    self.grants.entry(lock).or_default();
                }
            }
            Asked::Unlock { lock, owner } => {
                // 0: an outer hold is left.
                if reply == Reply::Int(0) {
                    self.leave(&lock, &owner, false);
                } else if let Some(grants) = self.grants.get_mut(&lock) {
                    grants.retain(|grant| grant.owner != owner || grant.conn.node != conn.node);
                }
            }
            Asked::ForceUnlock(lock) => {
                if reply == Reply::Int(1)
                    && let Some(grants) = self.grants.get_mut(&lock)
                {
                    grants.clear();
                    self.last_event = event;
                }
            }
            Asked::Renew { locks, owners, lease_ms } => {
                let is_renewed = reply.int().is_some_and(|n| n > 0);
                for lock in locks.iter().filter(|_| is_renewed) {
                    let grants = self.grants.get_mut(lock).into_iter().flatten();
                    for grant in
                        grants.filter(|grant| grant.conn.node == conn.node && owners.contains(&grant.owner))
                    {
                        grant.until_ms = Some(now_ms.saturating_add(lease_ms));
                        self.last_event = event;
                    }
                }
            }
        }
    }

    fn grant(&mut self, lock: LockId, grant: Grant, now_ms: u64) {
        let grants = self.grants.entry(lock.clone()).or_default();
        grants.retain(|known| known.is_held(now_ms) || known.is_leaving);
        grants.retain(|known| known.owner != grant.owner || known.conn.node != grant.conn.node);
        grants.push(grant.clone());
        let grants = &self.grants[&lock];
        let rivals = grants.iter().filter(|known| {
            let is_other = person(&known.owner) != person(&grant.owner);
            is_other && known.is_held(now_ms) && !(known.is_shared && grant.is_shared)
        });
        let rival =
            rivals.clone().find(|rival| self.group_of(rival.conn.node) == self.group_of(grant.conn.node));
        let rival = rival.or_else(|| {
            // A lock of several independent nodes belongs to the owner of most of them.
            rivals
                .clone()
                .find(|rival| self.has_most(grants, rival, now_ms) && self.has_most(grants, &grant, now_ms))
        });
        if self.found.is_none()
            && let Some(first) = rival
        {
            self.found = Some(TwoOwners { first: first.clone(), second: grant, lock, at_ms: now_ms });
        }
    }

    fn has_most(&self, grants: &[Grant], of: &Grant, now_ms: u64) -> bool {
        let mut nodes: Vec<usize> = grants
            .iter()
            .filter(|grant| grant.owner == of.owner && grant.is_held(now_ms))
            .map(|grant| grant.conn.node)
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len() * 2 > self.group.len() && nodes.len() > 1
    }

    fn leave(&mut self, lock: &LockId, owner: &[u8], is_leaving: bool) {
        let grants = self.grants.get_mut(lock).into_iter().flatten();
        grants.filter(|grant| grant.owner == owner).for_each(|grant| grant.is_leaving = is_leaving);
    }

    /// Notes which nodes have replicated from each other.
    pub fn join_replicas(&mut self, lab: &Lab) {
        let nodes = lab.world().nodes();
        let known = self.group.len();
        self.group.extend(known..nodes.len());
        for node in nodes {
            if let NodeRole::Replica { of } = node.replication.role {
                let (from, to) = (self.group_of(node.index), self.group_of(of));
                self.group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
            }
        }
    }

    fn group_of(&self, node: usize) -> usize {
        self.group.get(node).copied().unwrap_or(node)
    }
}

/// Returns the owner without the mark of a writer.
fn person(owner: &[u8]) -> &[u8] {
    owner.strip_suffix(b":write").unwrap_or(owner)
}

/// Reads `SET key value NX` with a lease.
fn set_nx(db: usize, argv: &[&[u8]]) -> Option<Asked> {
    let [_, key, owner, options @ ..] = argv else { return None };
    let find = |name: &[u8]| options.iter().position(|option| option.eq_ignore_ascii_case(name));
    let number = |name| {
        options.get(find(name)? + 1).and_then(|ms| parse_i64(ms)).and_then(|ms| u64::try_from(ms).ok())
    };
    find(b"NX")?;
    let lease_ms = number(b"PX").or_else(|| Some(number(b"EX")?.saturating_mul(1000)));
    Some(Asked::Acquire {
        lock: (db, key.to_vec()),
        owner: owner.to_vec(),
        lease_ms,
        is_shared: false,
        is_set: true,
    })
}
