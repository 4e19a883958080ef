//! LZF, the compression of long strings: runs of literal bytes and references to what came before.
//!
//! A control byte below 32 announces so many literals plus one. Any other holds in its upper three bits the length of
//! a reference less two, 7 meaning that the rest of the length follows in a byte, and in its lower five the high bits of the
//! distance less one; its low bits follow.
//!
//! Which references a compressor finds is its own affair. Payloads are compared byte for byte, so this one finds those that Redis's
//! does: it looks only at the last place where the three bytes at hand had the same hash, and enters into its table
//! two places of every reference beside the first.

const HASH_BITS: u32 = 16;
const MAX_LITERALS: usize = 32;
const MAX_DISTANCE: usize = 1 << 13;
const MAX_REFERENCE: usize = 264;
/// No three bytes of compressed data make more than a reference.
const MAX_RATIO: usize = MAX_REFERENCE / 3;
/// Bytes by which the result has to be shorter than the input.
const MIN_GAIN: usize = 4;

/// Compresses a string; `None` if that gains too little.
pub fn compress(input: &[u8]) -> Option<Vec<u8>> {
    let room = input.len().checked_sub(MIN_GAIN)?;
    let mut places = vec![0u32; 1 << HASH_BITS];
    let mut output = Output::new(room);
    let mut at = 0;
    while at + 2 < input.len() {
        let seen = std::mem::replace(&mut places[hash(input, at)], at as u32) as usize;
        let Some(len) = reference_len(input, seen, at) else {
            output.literal(input[at])?;
            at += 1;
            continue;
        };
        output.reference(at - seen - 1, len)?;
        at += len;
        if at + 2 >= input.len() {
            break;
        }
        for place in at - 2..at {
            places[hash(input, place)] = place as u32;
        }
    }
    if output.bytes.len() + 3 > room {
        return None;
    }
    for &byte in &input[at..] {
        output.push_literal(byte);
    }
    Some(output.finish())
}

fn hash(input: &[u8], at: usize) -> usize {
    let bytes = u32::from_be_bytes([0, input[at], input[at + 1], input[at + 2]]);
    ((bytes >> (24 - HASH_BITS)).wrapping_sub(bytes.wrapping_mul(5)) & ((1 << HASH_BITS) - 1)) as usize
}

/// Returns how many bytes at `at` repeat those at `seen`, if a reference can say so. The first byte of all is never
/// referred to.
fn reference_len(input: &[u8], seen: usize, at: usize) -> Option<usize> {
    if seen == 0 || at - seen > MAX_DISTANCE || input[seen..seen + 3] != input[at..at + 3] {
        return None;
    }
    // Where much is left the first 18 bytes are compared without regard to the end, up to which they may then reach.
    let most = (input.len() - at - 2).min(MAX_REFERENCE);
    let is_free = |len: usize| len < most || most > 16 && len <= 18;
    let mut len = 3;
    while is_free(len) && input[seen + len] == input[at + len] {
        len += 1;
    }
    Some(len)
}

/// The compressed bytes, and the run of literals at their end.
struct Output {
    bytes: Vec<u8>,
    /// Literals since the control byte that is to tell their number.
    literals: usize,
    room: usize,
}

impl Output {
    fn new(room: usize) -> Output {
        Output { bytes: vec![0], literals: 0, room }
    }

    fn literal(&mut self, byte: u8) -> Option<()> {
        if self.bytes.len() >= self.room {
            return None;
        }
        self.push_literal(byte);
        Some(())
    }

    fn push_literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.literals += 1;
        if self.literals == MAX_LITERALS {
            self.end_run();
            self.bytes.push(0);
        }
    }

    /// Writes the control byte of the literals, or takes it away if there are none.
    fn end_run(&mut self) {
        match self.literals {
            0 => drop(self.bytes.pop()),
            count => {
                let control = self.bytes.len() - count - 1;
                self.bytes[control] = count as u8 - 1;
            }
        }
        self.literals = 0;
    }

    fn reference(&mut self, distance: usize, len: usize) -> Option<()> {
        if self.bytes.len() - (self.literals == 0) as usize + 4 >= self.room {
            return None;
        }
        self.end_run();
        let (len, high) = (len - 2, (distance >> 8) as u8);
        if len < 7 {
            self.bytes.push((len as u8) << 5 | high);
        } else {
            self.bytes.extend_from_slice(&[7 << 5 | high, (len - 7) as u8]);
        }
        self.bytes.extend_from_slice(&[distance as u8, 0]);
        Some(())
    }

    fn finish(mut self) -> Vec<u8> {
        self.end_run();
        self.bytes
    }
}

/// Returns the string of `len` bytes that was compressed; `None` if there is no such.
pub fn decompress(mut input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > input.len().saturating_mul(MAX_RATIO) {
        return None;
    }
    if len == 0 {
        // Redis takes the failure to fit anything into no bytes for the length that was asked for.
        return Some(Vec::new());
    }
    let mut output = Vec::with_capacity(len);
    while let Some((&control, rest)) = input.split_first() {
        input = rest;
        if control < 32 {
            let (literals, rest) = input.split_at_checked(control as usize + 1)?;
            output.extend_from_slice(literals);
            input = rest;
        } else {
            let mut count = (control >> 5) as usize + 2;
            if count == 9 {
                count += *input.split_off_first()? as usize;
            }
            let distance = ((control & 31) as usize) << 8 | *input.split_off_first()? as usize;
            let start = output.len().checked_sub(distance + 1)?;
            // A reference may reach into what it adds.
            for from in start..start + count {
                output.push(output[from]);
            }
        }
        if output.len() > len {
            return None;
        }
    }
    (output.len() == len).then_some(output)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn compresses_as_redis_does() {
        assert_eq!(compress(&[b'a'; 21]).as_deref(), Some(&b"\x01aa\xe0\x0a\x00"[..]));
        let hello = compress(b"hello hello hello hello hello");
        assert_eq!(hello.as_deref(), Some(&b"\x06hello h\xe0\x0b\x05\x01lo"[..]));
        assert_eq!(compress(b"abcdefghijklmnopqrstuvwxyz"), None);
    }

    proptest! {
        #[test]
        fn decompression_gives_the_input_back(input in prop::collection::vec(0..4u8, 5..3000)) {
            if let Some(compressed) = compress(&input) {
                prop_assert!(compressed.len() + MIN_GAIN <= input.len());
                prop_assert_eq!(decompress(&compressed, input.len()), Some(input));
            }
        }

        #[test]
        fn any_bytes_decompress_or_not(input: Vec<u8>, len in 0..10_000usize) {
            if let Some(output) = decompress(&input, len) {
                prop_assert_eq!(output.len(), len);
            }
        }
    }
}
