//! A lock of one's own: one owner at a time, not re-entrant, with scripts that a file describes.
//!
//! | | |
//! |---|---|
//! | acquire | 1 or OK: granted, for the lease that was asked for. Anything else: refused |
//! | release | 1: it was held and is free. Anything else: it was not, and nothing has changed |
//!
//! ```toml
//! [acquire]
//! script = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0"
//! keys = ["lock"]
//! args = ["owner", "lease_ms"]
//!
//! [release]
//! script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
//! keys = ["lock"]
//! args = ["owner"]
//! ```

#[cfg(feature = "own")]
use super::binding::{Binding, Slot};
use super::invariant::Invariant::*;
#[cfg(feature = "own")]
use super::kit::Tool;
use super::model::*;
use super::role::Role;
use super::view::{FOREVER, View};

const ACQUIRE: usize = 0;

const OPERATIONS: &[Operation] = &[
    Operation::new("acquire", Sends::Script(Role::OwnAcquire)),
    Operation::new("release", Sends::Script(Role::OwnRelease)),
];

/// Reads the description of a lock. The error says what is wrong with it.
#[cfg(feature = "own")]
pub fn tools(description: &str) -> Result<Vec<Tool>, String> {
    let table: toml::Table = description.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let known = [("acquire", Role::OwnAcquire), ("release", Role::OwnRelease)];
    if let Some(unknown) = table.keys().find(|key| !known.iter().any(|(name, _)| name == key)) {
        return Err(format!("[{unknown}] is neither [acquire] nor [release]"));
    }
    known.into_iter().map(|(name, role)| tool(&table, name, role)).collect()
}

#[cfg(feature = "own")]
fn tool(table: &toml::Table, name: &str, role: Role) -> Result<Tool, String> {
    let part =
        table.get(name).and_then(|part| part.as_table()).ok_or_else(|| format!("[{name}] is missing"))?;
    let text =
        part.get("script").and_then(|text| text.as_str()).ok_or_else(|| format!("[{name}] has no script"))?;
    let slots = |field: &str| -> Result<Vec<Slot>, String> {
        let words = part
            .get(field)
            .and_then(|words| words.as_array())
            .ok_or_else(|| format!("[{name}] has no {field}"))?;
        words
            .iter()
            .map(|word| match word.as_str() {
                Some("lock") => Ok(Slot::Lock),
                Some("channel") => Ok(Slot::Channel),
                Some("owner") => Ok(Slot::Owner),
                Some("lease_ms") => Ok(Slot::LeaseMs),
                Some("now_ms") => Ok(Slot::Now),
                _ => Err(format!(
                    "[{name}] {field}: {word:?} is none of lock, channel, owner, lease_ms, now_ms"
                )),
            })
            .collect()
    };
    let binding = Binding { keys: slots("keys")?, args: slots("args")? };
    Ok(Tool { role, name: name.to_owned(), text: text.to_owned(), binding, uses: Vec::new() })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    exists: bool,
    ttl_ms: i64,
}

pub struct OwnLock {
    names: Names,
    before: State,
    until_ms: [i64; OWNERS],
}

impl Default for OwnLock {
    fn default() -> OwnLock {
        OwnLock {
            names: Names::new("my:lock", "my:channel"),
            before: State::default(),
            until_ms: [0; OWNERS],
        }
    }
}

impl OwnLock {
    fn read(&self, view: View) -> State {
        let lock = self.names.lock.as_bytes();
        State { exists: view.exists(lock), ttl_ms: view.ttl_ms(lock) }
    }
}

impl Model for OwnLock {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn reset(&mut self) {
        self.until_ms = [0; OWNERS];
    }

    fn ask(&mut self, call: &mut Call, choice: u8) -> bool {
        call.lease_ms = LEASES_MS[choice as usize % LEASES_MS.len()];
        true
    }

    fn before(&mut self, _: &Call, view: View) {
        self.before = self.read(view);
    }

    fn after(&mut self, call: &Call, out: Outcome, view: View, findings: &mut Findings) {
        let Call { owner, now_ms, lease_ms, .. } = *call;
        let (before, after) = (self.before, self.read(view));
        let succeeded = matches!(out.reply, Reply::Int(1) | Reply::Text(b"OK"));
        // The key lives to the end of the millisecond in which the lease ends.
        let holds = self.until_ms[owner] >= now_ms;
        if call.operation == ACQUIRE {
            findings.expect(A2, succeeded || before.exists, || "refused, but it is free".to_owned());
            if !succeeded {
                findings.expect(A1, before == after, || {
                    format!("a refused acquire changed {before:?} to {after:?}")
                });
                return;
            }
            for other in (0..OWNERS).filter(|&other| other != owner) {
                let left = self.until_ms[other] - now_ms;
                findings.expect(M1, left <= 0, || {
                    format!("granted while {} has a lease for {left} ms more", owner_name(other))
                });
            }
            findings.expect(G7, after.ttl_ms != FOREVER, || "the lock has no end".to_owned());
            findings.expect(T1, after.ttl_ms == lease_ms, || {
                format!("asked for {lease_ms} ms, the key lives for {} ms", after.ttl_ms)
            });
            self.until_ms[owner] = now_ms + lease_ms;
        } else if holds {
            findings.expect(U2, succeeded, || format!("the owner's release answered {}", out.reply));
            findings.expect(A1, !after.exists, || "the lock is still held".to_owned());
            self.until_ms[owner] = 0;
        } else {
            findings
                .expect(U1, !succeeded, || format!("answered {} to who does not hold the lock", out.reply));
            findings.expect(U1, before == after, || format!("{before:?} became {after:?}"));
        }
    }

    fn deadlines(&self, _: View, into: &mut Vec<i64>) {
        into.extend(self.until_ms.iter().filter(|until_ms| **until_ms > 0));
    }

    fn closing(&self) -> &'static [usize] {
        &[ACQUIRE]
    }
}
