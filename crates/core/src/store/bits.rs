//! Bits of a string, numbered as Redis does: bit 0 is the highest bit of the first byte. Bits beyond the end are zero.

use std::ops::Range;

/// The most bytes that a field of 64 bits touches.
const FIELD_BYTES: usize = 9;

/// Returns a bit.
pub fn get(bytes: &[u8], at: u64) -> bool {
    read_field(bytes, at, 1) == 1
}

/// Returns the unsigned integer in the `width` bits (at most 64) from bit `at` on, highest bit first.
pub fn read_field(bytes: &[u8], at: u64, width: u32) -> u64 {
    let word = read_word(bytes, (at / 8) as usize);
    (word >> field_shift(at, width)) as u64 & mask(width)
}

/// Overwrites the `width` bits (at most 64) from bit `at` on, which must lie within the string.
pub fn write_field(bytes: &mut [u8], at: u64, width: u32, value: u64) {
    let (first, shift) = ((at / 8) as usize, field_shift(at, width));
    let kept = read_word(bytes, first) & !(u128::from(mask(width)) << shift);
    let word = kept | u128::from(value & mask(width)) << shift;
    let touched = (at % 8 + u64::from(width)).div_ceil(8) as usize;
    let field = &word.to_be_bytes()[16 - FIELD_BYTES..][..touched];
    bytes[first..first + touched].copy_from_slice(field);
}

/// Returns nine bytes from `first` on as a number, highest first.
fn read_word(bytes: &[u8], first: usize) -> u128 {
    let mut word = [0; 16];
    let from = bytes.get(first..).unwrap_or_default();
    let len = from.len().min(FIELD_BYTES);
    word[16 - FIELD_BYTES..][..len].copy_from_slice(&from[..len]);
    u128::from_be_bytes(word)
}

/// Returns the distance of a field's lowest bit from that of its word.
fn field_shift(at: u64, width: u32) -> u32 {
    8 * FIELD_BYTES as u32 - (at % 8) as u32 - width
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// A range of bits as whole bytes, and the bits that count in the first and in the last of them.
struct Span<'a> {
    first: u8,
    middle: &'a [u8],
    last: u8,
}

impl<'a> Span<'a> {
    /// Splits a range of bits, which must lie within the string and not be empty. `outside` replaces each bit of the first and
    /// last byte that lies outside the range.
    fn new(bytes: &'a [u8], range: Range<u64>, outside: bool) -> Span<'a> {
        let (from, to) = ((range.start / 8) as usize, ((range.end - 1) / 8) as usize);
        let head = 0xff >> (range.start % 8);
        let tail = 0xffu8 << (7 - (range.end - 1) % 8);
        let only = |byte: u8, mask: u8| if outside { byte | !mask } else { byte & mask };
        if from == to {
            let edge = if outside { 0xff } else { 0 };
            return Span { first: only(bytes[from], head & tail), middle: &[], last: edge };
        }
        Span { first: only(bytes[from], head), middle: &bytes[from + 1..to], last: only(bytes[to], tail) }
    }
}

/// Counts the ones in a range of bits, which must lie within the string.
pub fn count_ones(bytes: &[u8], range: Range<u64>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    let span = Span::new(bytes, range, false);
    let (words, rest) = span.middle.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    let in_rest: u32 = rest.iter().chain([&span.first, &span.last]).map(|byte| byte.count_ones()).sum();
    in_words + u64::from(in_rest)
}

/// Returns the position of the first bit with this value in a range of bits, which must lie within the string.
pub fn find(bytes: &[u8], range: Range<u64>, bit: bool) -> Option<u64> {
    if range.is_empty() {
        return None;
    }
    let first_byte = range.start / 8;
    let span = Span::new(bytes, range, !bit);
    // A byte without the bit that is searched.
    let skipped = if bit { 0 } else { 0xff };
    let position = |byte: u8, at: u64| at * 8 + u64::from((byte ^ skipped).leading_zeros());
    if span.first != skipped {
        return Some(position(span.first, first_byte));
    }
    let (words, _) = span.middle.as_chunks::<8>();
    let full = words.iter().take_while(|word| **word == [skipped; 8]).count() * 8;
    match span.middle[full..].iter().position(|byte| *byte != skipped) {
        Some(at) => Some(position(span.middle[full + at], first_byte + 1 + (full + at) as u64)),
        None => {
            (span.last != skipped).then(|| position(span.last, first_byte + 1 + span.middle.len() as u64))
        }
    }
}

/// A function of several strings, bit by bit. The shorter ones are padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    And,
    Or,
    Xor,
    /// The complement of the only string.
    Not,
    /// The bits of the first string that no other has.
    Diff,
    /// The bits of any other string that the first has not.
    Diff1,
    /// The bits of the first string that any other has too.
    AndOr,
    /// The bits that exactly one string has.
    One,
}

impl Operation {
    /// Applies the operation. The result is as long as the longest string.
    pub fn apply(self, sources: &[&[u8]]) -> Vec<u8> {
        let Some((first, others)) = sources.split_first() else { return Vec::new() };
        let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        match self {
            Operation::And => fold(first, others, len, and),
            Operation::Or => fold(first, others, len, |all, other| join(all, other, |a, b| a | b)),
            Operation::Xor => fold(first, others, len, |all, other| join(all, other, |a, b| a ^ b)),
            Operation::Not => first.iter().map(|byte| !byte).collect(),
            Operation::Diff => fold(first, others, len, |all, other| join(all, other, |a, b| a & !b)),
            Operation::Diff1 => {
                let mut any = Operation::Or.apply_padded(others, len);
                join(&mut any, first, |a, b| a & !b);
                any
            }
            Operation::AndOr => {
                let mut any = Operation::Or.apply_padded(others, len);
                and(&mut any, first);
                any
            }
            Operation::One => {
                let (mut any, mut several) = (vec![0; len], vec![0; len]);
                for source in sources {
                    let seen = several.iter_mut().zip(&any).zip(*source);
                    seen.for_each(|((several, any), byte)| *several |= any & byte);
                    join(&mut any, source, |a, b| a | b);
                }
                join(&mut any, &several, |a, b| a & !b);
                any
            }
        }
    }

    fn apply_padded(self, sources: &[&[u8]], len: usize) -> Vec<u8> {
        let mut result = self.apply(sources);
        result.resize(len, 0);
        result
    }
}

/// Returns the first string, padded to `len`, after `step` with each other one.
fn fold(first: &[u8], others: &[&[u8]], len: usize, step: fn(&mut [u8], &[u8])) -> Vec<u8> {
    let mut result = Vec::with_capacity(len);
    result.extend_from_slice(first);
    result.resize(len, 0);
    others.iter().for_each(|other| step(&mut result, other));
    result
}

/// Combines bytes pairwise, up to the length of the shorter string.
fn join(all: &mut [u8], other: &[u8], combine: impl Fn(u8, u8) -> u8) {
    all.iter_mut().zip(other).for_each(|(byte, other)| *byte = combine(*byte, *other));
}

fn and(all: &mut [u8], other: &[u8]) {
    join(all, other, |a, b| a & b);
    let common = other.len().min(all.len());
    all[common..].fill(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the bits one by one.
    fn bits(bytes: &[u8]) -> Vec<bool> {
        bytes.iter().flat_map(|byte| (0..8).map(move |at| byte << at & 0x80 != 0)).collect()
    }

    proptest! {
        #[test]
        fn ranges_agree_with_single_bits(
            bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..40),
            a in 0u64..320, b in 0u64..320,
        ) {
            let all = bits(&bytes);
            let len = all.len() as u64;
            let range = a.min(b).min(len)..a.max(b).min(len);
            let part = &all[range.start as usize..range.end as usize];
            let ones = part.iter().filter(|bit| **bit).count() as u64;
            prop_assert_eq!(count_ones(&bytes, range.clone()), ones);
            for wanted in [false, true] {
                let first = part.iter().position(|bit| *bit == wanted).map(|at| range.start + at as u64);
                prop_assert_eq!(find(&bytes, range.clone(), wanted), first);
            }
        }

        #[test]
        fn a_field_reads_as_written_and_its_neighbours_stay(
            bytes in prop::collection::vec(any::<u8>(), 9..20), at in 0u64..72, width in 1u32..=64, value: u64,
        ) {
            let mut changed = bytes.clone();
            changed.resize(20, 0);
            let before = bits(&changed);
            write_field(&mut changed, at, width, value);
            prop_assert_eq!(read_field(&changed, at, width), value & mask(width));
            let after = bits(&changed);
            let field = at as usize..at as usize + width as usize;
            let outside = (0..after.len()).filter(|at| !field.contains(at));
            prop_assert!(outside.into_iter().all(|at| before[at] == after[at]));
            let number = after[field].iter().fold(0u64, |number, bit| number << 1 | u64::from(*bit));
            prop_assert_eq!(number, value & mask(width));
        }

        #[test]
        fn operations_agree_with_single_bits(
            sources in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 2..5),
        ) {
            let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let len = sources.iter().map(Vec::len).max().unwrap_or(0);
            // Whether the first string has the bit, and how many others have it.
            type Rule = fn(bool, usize) -> bool;
            let rules: [(Operation, Rule); 6] = [
                                (Operation::Or, |first, others| first || others > 0),
                (Operation::Xor, |first, others| (others + usize::from(first)) % 2 == 1),
                (Operation::Diff, |first, others| first && others == 0),
                (Operation::Diff1, |first, others| !first && others > 0),
                (Operation::AndOr, |first, others| first && others > 0),
                (Operation::One, |first, others| others + usize::from(first) == 1),
            ];
            let in_all = (0..len as u64 * 8).filter(|&at| slices.iter().all(|source| get(source, at)));
            let both = Operation::And.apply(&slices);
            prop_assert_eq!((both.len(), count_ones(&both, 0..len as u64 * 8)), (len, in_all.clone().count() as u64));
            prop_assert!(in_all.into_iter().all(|at| get(&both, at)));
            for (operation, rule) in rules {
                let result = operation.apply(&slices);
                prop_assert_eq!(result.len(), len);
                for at in 0..len as u64 * 8 {
                    let others = slices[1..].iter().filter(|other| get(other, at)).count();
                    let expected = rule(get(slices[0], at), others);
                    prop_assert_eq!(get(&result, at), expected, "{:?} at {}", operation, at);
                }
            }
        }
    }

    #[test]
    fn bits_beyond_the_end_are_zero() {
        assert!(get(b"\x01", 7) && !get(b"\x01", 8) && !get(b"", u64::MAX));
        assert_eq!(read_field(b"\xff", 4, 8), 0xf0);
        assert_eq!(Operation::Not.apply(&[b"\x0f"]), b"\xf0");
    }
}
