//! What a lock script is asked for: its arguments by their meaning.

use crate::locks::binding::{Binding, Slot};
use crate::locks::model::Call;
use crate::locks::role::Role;
use redlatch_core::num::parse_i64;

/// The arguments that concern one lock.
#[derive(Debug)]
pub struct Reading {
    pub role: Role,
    /// Which of the locks that the script is called for it is.
    pub index: usize,
    /// Keys and channels, with what they are.
    pub keys: Vec<(Slot, Vec<u8>)>,
    /// Who calls, without what marks a writer.
    pub owner: Option<Vec<u8>>,
    /// The owner is one that writes.
    pub is_writer: bool,
    pub permits: Vec<Vec<u8>>,
    /// The request carries a key of its own.
    pub latch: Option<Vec<u8>>,
    pub latch_ttl_ms: Option<i64>,
    /// The numbers. Owner, operation and permit are not known here.
    pub call: Call,
}

/// What a writer's name ends with.
pub const WRITER: &[u8] = b":write";

type Part<'a> = (Vec<&'a [u8]>, Vec<&'a [u8]>);

/// The arguments for each lock that a script is called for: renewals may be for several at once. `None`: it cannot be told apart what is
/// whose.
pub fn parts<'a>(
    role: Role,
    binding: &Binding,
    keys: &[&'a [u8]],
    argv: &[&'a [u8]],
) -> Option<Vec<Part<'a>>> {
    let count = keys.len() / binding.keys.len().max(1);
    let renews = matches!(role, Role::RlockRenew | Role::ReadRenew);
    let has_owners = binding.args.contains(&Slot::Owners);
    if !renews || count < 2 && !has_owners {
        return Some(vec![(keys.to_vec(), argv.to_vec())]);
    }
    // The lease is for all; then come the words of one lock after the other.
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
    /// Reads the arguments for one lock. `None`: they are not what the script takes.
    pub fn of(
        (role, binding): (Role, &Binding),
        index: usize,
        (keys, argv): (&[&[u8]], &[&[u8]]),
        now_ms: i64,
    ) -> Option<Reading> {
        let mut reading = Reading {
            role,
            index,
            keys: binding.keys.iter().zip(keys).map(|(slot, key)| (*slot, key.to_vec())).collect(),
            owner: None,
            is_writer: false,
            permits: Vec::new(),
            latch: None,
            latch_ttl_ms: None,
            call: Call { count: 1, now_ms, ..Call::default() },
        };
        if keys.len() < binding.keys.len() {
            return None;
        }
        // Deadlines are told by the client's clock, which has to be known first.
        if let Some(at) = binding.args.iter().position(|slot| *slot == Slot::Now) {
            reading.call.skew_ms = parse_i64(argv.get(at)?)? - now_ms;
        }
        let clock_ms = now_ms + reading.call.skew_ms;
        for (at, slot) in binding.args.iter().enumerate() {
            if *slot == Slot::Permits {
                reading.permits = argv.get(at..)?.iter().map(|permit| permit.to_vec()).collect();
                reading.call.count = reading.permits.len() as i64;
                break;
            }
            reading.argument(*slot, argv.get(at)?, clock_ms)?;
        }
        reading.latch =
            reading.keys.iter().find(|(slot, _)| *slot == Slot::Latch).map(|(_, key)| key.clone());
        Some(reading)
    }

    fn argument(&mut self, slot: Slot, word: &[u8], clock_ms: i64) -> Option<()> {
        let call = &mut self.call;
        match slot {
            Slot::Owner => {
                self.is_writer = word.ends_with(WRITER);
                self.owner = Some(word.strip_suffix(WRITER).unwrap_or(word).to_vec());
            }
            Slot::LeaseMs => call.lease_ms = parse_i64(word)?,
            Slot::WaitMs => call.wait_ms = parse_i64(word)?,
            Slot::WaitDeadline => call.wait_ms = parse_i64(word)? - clock_ms,
            Slot::LeaseDeadline => call.lease_ms = parse_i64(word)? - clock_ms,
            Slot::Count => call.count = parse_i64(word)?,
            Slot::Permit => self.permits = vec![word.to_vec()],
            Slot::LatchTtlMs => self.latch_ttl_ms = Some(parse_i64(word)?),
            // Words that say nothing about this call.
            Slot::Now
            | Slot::Writer
            | Slot::Never
            | Slot::Message
            | Slot::Publish
            | Slot::Owners
            | Slot::Word => {}
            _ => return None,
        }
        Some(())
    }

    pub fn lock(&self) -> Option<&[u8]> {
        self.keys.iter().find(|(slot, _)| *slot == Slot::Lock).map(|(_, key)| &key[..])
    }

    /// The keys that belong to the lock and hold data.
    pub fn companions(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().filter(|(slot, _)| holds_data(*slot) && *slot != Slot::Lock).map(|(_, key)| &key[..])
    }
}

/// Whether a key with this meaning holds data of the lock: not channels, beginnings of names, memories of requests.
pub fn holds_data(slot: Slot) -> bool {
    !matches!(slot, Slot::Channel | Slot::Latch | Slot::Holds | Slot::AllHolds)
}
