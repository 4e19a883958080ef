//! LZF, the compression of long strings: runs of literal bytes, and references to earlier bytes.
//!
//! A control byte below 32 means that this many literals plus one follow. In any other control byte the upper three
//! bits are the length of a reference minus two, where 7 means that the rest of the length follows in a byte; the lower
//! five bits are the high bits of the distance minus one, whose low byte follows.
//!
//! The format leaves the choice of references to the compressor. Since tests compare payloads byte for byte, this
//! compressor chooses the same references as Redis's: it looks only at the last position where the next three bytes had
//! the same hash, and adds two positions of every reference, besides its first, to its table.

const HASH_BITS: u32 = 16;
const MAX_LITERALS: usize = 32;
const MAX_DISTANCE: usize = 1 << 13;
const MAX_REFERENCE: usize = 264;
/// Three compressed bytes never produce more than one reference.
const MAX_RATIO: usize = MAX_REFERENCE / 3;
/// The result has to be this many bytes shorter than the input.
const MIN_GAIN: usize = 4;

/// Compresses a string. Returns `None` if that saves too little.
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
        for position in at - 2..at {
            places[hash(input, position)] = position as u32;
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

/// Returns how many bytes at `at` repeat those at `seen`, if a reference can express that. References never point to
/// the very first byte.
fn reference_len(input: &[u8], seen: usize, at: usize) -> Option<usize> {
    if seen == 0 || at - seen > MAX_DISTANCE || input[seen..seen + 3] != input[at..at + 3] {
        return None;
    }
    // If much input is left, Redis compares the first 18 bytes without checking for the end of the input, so these may
    // reach up to the end.
    let most = (input.len() - at - 2).min(MAX_REFERENCE);
    let is_free = |len: usize| len < most || most > 16 && len <= 18;
    let mut len = 3;
    while is_free(len) && input[seen + len] == input[at + len] {
        len += 1;
    }
    Some(len)
}

/// The compressed bytes, which end in a run of literals.
struct Output {
    bytes: Vec<u8>,
    /// The number of literals since their control byte, which will state that number.
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

    /// Completes the control byte of the literals, or removes it if there are none.
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

/// Decompresses to a string of `len` bytes. Returns `None` if the input is malformed or has another length.
pub fn decompress(mut input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > input.len().saturating_mul(MAX_RATIO) {
        return None;
    }
    if len == 0 {
        // Redis's decompressor fails with 0 bytes written, which Redis mistakes for the requested length.
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
            // A reference may overlap the bytes that it produces.
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
