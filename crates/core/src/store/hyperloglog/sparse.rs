//! The sparse form: runs of equal registers.
//!
//! | bits | run |
//! |---|---|
//! | `00xxxxxx` | x + 1 registers of rank 0 |
//! | `01xxxxxx yyyyyyyy` | xy + 1 registers of rank 0 |
//! | `1vvvvvxx` | x + 1 registers of rank v + 1 |

use super::{Corrupted, HEADER, REGISTERS, estimate};
use crate::version::Version;

/// The longest run of zeros with one byte, and with two.
const ZERO_MAX: usize = 64;
const LONG_ZERO_MAX: usize = 16384;
/// The longest run of another rank, and the highest rank of a run.
const VALUE_MAX: usize = 4;
const RANK_MAX: u8 = 32;

/// One run of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Zeros, in one byte.
    Zero {
        len: usize,
    },
    /// Zeros, in two bytes.
    LongZero {
        len: usize,
    },
    Value {
        rank: u8,
        len: usize,
    },
}

impl Opcode {
    /// Decodes the first run. A second byte that is missing counts as zero.
    fn first(bytes: &[u8]) -> Option<Opcode> {
        let (&byte, rest) = bytes.split_first()?;
        Some(match byte >> 6 {
            0 => Opcode::Zero { len: byte as usize + 1 },
            1 => {
                let low = rest.first().copied().unwrap_or(0);
                Opcode::LongZero { len: usize::from(u16::from_be_bytes([byte & 0x3f, low])) + 1 }
            }
            _ => Opcode::Value { rank: (byte >> 2 & 0x1f) + 1, len: (byte & 3) as usize + 1 },
        })
    }

    fn append(self, bytes: &mut Vec<u8>) {
        match self {
            Opcode::Zero { len } => bytes.push(len as u8 - 1),
            Opcode::LongZero { len } => bytes.extend_from_slice(&(0x4000 | (len - 1) as u16).to_be_bytes()),
            Opcode::Value { rank, len } => bytes.push(0x80 | (rank - 1) << 2 | (len - 1) as u8),
        }
    }

    /// Returns the bytes that the run takes.
    fn size(self) -> usize {
        if matches!(self, Opcode::LongZero { .. }) { 2 } else { 1 }
    }

    /// Returns the number of registers.
    fn len(self) -> usize {
        match self {
            Opcode::Zero { len } | Opcode::LongZero { len } | Opcode::Value { len, .. } => len,
        }
    }

    fn rank(self) -> u8 {
        match self {
            Opcode::Value { rank, .. } => rank,
            Opcode::Zero { .. } | Opcode::LongZero { .. } => 0,
        }
    }
}

/// Returns the runs of a sparse HyperLogLog.
pub fn opcodes(bytes: &[u8]) -> impl Iterator<Item = Opcode> {
    decode(bytes.get(HEADER..).unwrap_or_default())
}

fn decode(mut runs: &[u8]) -> impl Iterator<Item = Opcode> {
    std::iter::from_fn(move || {
        let opcode = Opcode::first(runs)?;
        runs = runs.get(opcode.size()..).unwrap_or_default();
        Some(opcode)
    })
}

/// Appends a run of `len` registers of rank 0, at least one and at most all of them, in its shortest form.
pub(super) fn append_zeros(bytes: &mut Vec<u8>, len: usize) {
    const { assert!(LONG_ZERO_MAX == REGISTERS) };
    let opcode = if len > ZERO_MAX { Opcode::LongZero { len } } else { Opcode::Zero { len } };
    opcode.append(bytes);
}

/// Counts the registers of each rank.
///
/// # Errors
/// If the runs do not cover the registers exactly.
pub(super) fn count_ranks(runs: &[u8], histogram: &mut [u32; estimate::RANKS]) -> Result<(), Corrupted> {
    let mut covered = 0;
    for opcode in decode(runs) {
        covered += opcode.len();
        histogram[opcode.rank() as usize] += opcode.len() as u32;
    }
    if covered == REGISTERS { Ok(()) } else { Err(Corrupted) }
}

/// Raises each register to that of a sparse form.
///
/// # Errors
/// If the runs do not cover the registers exactly. The releases 7.2.6 and 7.4.1 ignore what follows a run of another rank that
/// would exceed them.
pub(super) fn merge(runs: &[u8], registers: &mut [u8; REGISTERS], version: Version) -> Result<(), Corrupted> {
    let ignores_excess = matches!(version, Version::V7_2 | Version::V7_4);
    let mut covered = 0;
    for opcode in decode(runs) {
        let end = covered + opcode.len();
        if let Opcode::Value { rank, .. } = opcode {
            let Some(run) = registers.get_mut(covered..end) else {
                return if ignores_excess && covered == REGISTERS { Ok(()) } else { Err(Corrupted) };
            };
            run.iter_mut().for_each(|register| *register = rank.max(*register));
        }
        covered = end;
    }
    if covered == REGISTERS { Ok(()) } else { Err(Corrupted) }
}

/// What became of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    Yes,
    /// It was not lower.
    No,
    /// It is as before: only the dense form can hold the rank, or the sparse one would become too long.
    TooLarge,
}

/// The place of a run in a string.
struct Place {
    opcode: Opcode,
    /// Its offset, and that of the run before it (or its own if it is the first).
    at: usize,
    before: usize,
    /// Its first register.
    first: usize,
}

fn find(bytes: &[u8], index: usize) -> Option<Place> {
    let (mut at, mut before, mut first) = (HEADER, HEADER, 0);
    while let Some(opcode) = Opcode::first(&bytes[at.min(bytes.len())..]) {
        if index < first + opcode.len() {
            return Some(Place { opcode, at, before, first });
        }
        before = at;
        at += opcode.size();
        first += opcode.len();
    }
    None
}

/// Raises a register of a sparse HyperLogLog to `rank` if it is lower.
///
/// # Errors
/// If no run covers the register.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    index: usize,
    rank: u8,
    max_bytes: usize,
) -> Result<Raised, Corrupted> {
    if rank > RANK_MAX {
        return Ok(Raised::TooLarge);
    }
    let place = find(bytes, index).ok_or(Corrupted)?;
    if place.opcode.rank() >= rank {
        return Ok(Raised::No);
    }
    let new = split(&place, index, rank);
    let old = place.opcode.size();
    let len = bytes.len() + new.len() - old;
    if new.len() > old && len > max_bytes {
        return Ok(Raised::TooLarge);
    }
    let end = (place.at + old).min(bytes.len());
    bytes.splice(place.at..end, new);
    // Redis drops what a truncated last run would have held.
    bytes.truncate(len);
    join_values(bytes, place.before);
    Ok(Raised::Yes)
}

/// Returns the runs that replace a run when one of its registers is raised.
fn split(place: &Place, index: usize, rank: u8) -> Vec<u8> {
    let mut new = Vec::with_capacity(5);
    let rest = |bytes: &mut Vec<u8>, len: usize| match place.opcode {
        _ if len == 0 => {}
        Opcode::Value { rank, .. } => Opcode::Value { rank, len }.append(bytes),
        Opcode::Zero { .. } | Opcode::LongZero { .. } => append_zeros(bytes, len),
    };
    rest(&mut new, index - place.first);
    Opcode::Value { rank, len: 1 }.append(&mut new);
    rest(&mut new, place.first + place.opcode.len() - 1 - index);
    new
}

/// Joins adjacent runs of the same rank, in the five steps from `at` on that Redis takes.
fn join_values(bytes: &mut Vec<u8>, mut at: usize) {
    const STEPS: usize = 5;
    for _ in 0..STEPS {
        let Some(opcode) = bytes.get(at..).and_then(Opcode::first) else { return };
        if let Opcode::Value { rank, len } = opcode
            && let Some(Opcode::Value { rank: next_rank, len: next_len }) = Opcode::first(&bytes[at + 1..])
            && rank == next_rank
            && len + next_len <= VALUE_MAX
        {
            let mut joined = Vec::with_capacity(1);
            Opcode::Value { rank, len: len + next_len }.append(&mut joined);
            bytes.splice(at..at + 2, joined);
        } else {
            at += opcode.size();
        }
    }
}
