//! Reads the arguments of a lock script by their meaning.

use crate::binding::*;
use crate::catalogue::home;
use crate::model::{Call, number};
use crate::role::Role;
use crate::{rlock, rw};

/// The arguments that concern one lock.
#[derive(Debug)]
pub struct Reading {
    pub role: Role,
    /// The index of this lock among those that the script was called for.
    pub index: usize,
    /// The keys and channels with their meaning.
    pub keys: Vec<(Parameter, Vec<u8>)>,
    /// The owner, without the mark of a writer.
    pub owner: Option<Vec<u8>>,
    /// Whether the owner acts as a writer.
    pub is_writer: bool,
    /// The arguments that only the object's model understands. Ids of permits are listed one by one.
    pub own: Vec<(Parameter, Vec<u8>)>,
    /// The key that remembers this request.
    pub latch: Option<Vec<u8>>,
    pub latch_ttl_ms: Option<i64>,
    /// The numeric arguments. Owner and operation are not known yet.
    pub call: Call,
}

/// The suffix of a writer's id.
pub const WRITER: &[u8] = b":write";

type Part<'a> = (Vec<&'a [u8]>, Vec<&'a [u8]>);

/// Splits the arguments by the locks that a script is called for: a renewal may cover several at once. Returns `None`
/// if nothing shows which argument belongs to which lock.
pub fn parts<'a>(
    role: Role,
    binding: &Binding,
    keys: &[&'a [u8]],
    argv: &[&'a [u8]],
) -> Option<Vec<Part<'a>>> {
    let count = keys.len() / binding.keys.len().max(1);
    let renews = matches!(role, rlock::roles::RENEW | rw::roles::READ_RENEW);
    let has_owners = binding.args.contains(&OWNER_COUNT);
    if !renews || count < 2 && !has_owners {
        return Some(vec![(keys.to_vec(), argv.to_vec())]);
    }
    // The lease applies to all locks; then follow the arguments of one lock after the other.
    let (lease, rest) = argv.split_first()?;
    let width = binding.args.len() - 1;
    if rest.len() != count * width || keys.len() != count * binding.keys.len() {
        return None;
    }
    let mut parts: Vec<Part> = Vec::new();
    for (keys, words) in keys.chunks(binding.keys.len()).zip(rest.chunks(width)) {
        let is_known = parts.iter().any(|(known, _)| known[0] == keys[0]);
        if is_known || has_owners && words[0] != b"1" {
            return None;
        }
        parts.push((keys.to_vec(), std::iter::once(*lease).chain(words.iter().copied()).collect()));
    }
    Some(parts)
}

impl Reading {
    /// Reads the arguments for one lock. Returns `None` if they do not match the script's parameters.
    pub fn of(
        (role, binding): (Role, &Binding),
        index: usize,
        (keys, argv): (&[&[u8]], &[&[u8]]),
        now_ms: i64,
    ) -> Option<Reading> {
        let mut reading = Reading {
            role,
            index,
            keys: binding.keys.iter().zip(keys).map(|(parameter, key)| (*parameter, key.to_vec())).collect(),
            owner: None,
            is_writer: false,
            own: Vec::new(),
            latch: None,
            latch_ttl_ms: None,
            call: Call { count: 1, now_ms, ..Call::default() },
        };
        if keys.len() < binding.keys.len() {
            return None;
        }
        // Deadlines are stated by the client's clock, which therefore has to be read first.
        if let Some(at) = binding.args.iter().position(|parameter| *parameter == CLOCK_MS) {
            let skew_ms = number(argv.get(at)?)? - now_ms;
            (reading.call.skew_ms, reading.call.late_ms) = (skew_ms, (-skew_ms).max(0));
        }
        let is_own =
            |parameter| home(role).is_some_and(|object| object.arguments.readable.contains(&parameter));
        for (at, parameter) in binding.args.iter().enumerate() {
            let words = if parameter.takes_rest() { argv.get(at..)? } else { argv.get(at..=at)? };
            if is_own(*parameter) {
                reading.own.extend(words.iter().map(|word| (*parameter, word.to_vec())));
            } else {
                reading.argument(*parameter, words[0])?;
            }
            if parameter.takes_rest() {
                reading.call.count = words.len() as i64;
            }
        }
        reading.latch =
            reading.keys.iter().find(|(parameter, _)| *parameter == LATCH).map(|(_, key)| key.clone());
        Some(reading)
    }

    /// Reads an argument with a shared parameter.
    fn argument(&mut self, parameter: Parameter, word: &[u8]) -> Option<()> {
        let call = &mut self.call;
        match parameter {
            OWNER => {
                self.is_writer = word.ends_with(WRITER);
                self.owner = Some(word.strip_suffix(WRITER).unwrap_or(word).to_vec());
            }
            LEASE_MS => call.lease_ms = number(word)?,
            COUNT => call.count = number(word)?,
            LATCH_TTL => self.latch_ttl_ms = Some(number(word)?),
            // Arguments without meaning for this call.
            CLOCK_MS | MESSAGE | PUBLISH | OWNER_COUNT | REFUSAL => {}
            _ => return None,
        }
        Some(())
    }

    /// Returns the key of the lock.
    pub fn lock(&self) -> Option<&[u8]> {
        self.keys.iter().find(|(parameter, _)| *parameter == LOCK).map(|(_, key)| &key[..])
    }

    /// Iterates over the keys, besides the lock's own, that hold its data.
    pub fn companions(&self) -> impl Iterator<Item = &[u8]> {
        self.keys
            .iter()
            .filter(|(parameter, _)| parameter.holds_data() && *parameter != LOCK)
            .map(|(_, key)| &key[..])
    }
}
