//! The arguments of a request.

/// The arguments of a request, stored in one buffer.
#[derive(Default)]
pub struct Args {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    digits: itoa::Buffer,
}

impl Args {
    /// Removes all arguments.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends an argument.
    pub fn text(&mut self, text: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(text.as_ref());
        self.ends.push(self.bytes.len());
    }

    /// Appends an integer as an argument.
    pub fn int(&mut self, n: i64) {
        self.bytes.extend_from_slice(self.digits.format(n).as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// Appends `n` as 32 hex digits to the last argument.
    pub fn extend_hex(&mut self, n: u64) {
        self.bytes.extend_from_slice(b"0000000000000000");
        for shift in (0..16).rev() {
            self.bytes.push(b"0123456789abcdef"[(n >> (shift * 4) & 15) as usize]);
        }
        if let Some(end) = self.ends.last_mut() {
            *end = self.bytes.len();
        }
    }

    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the arguments in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().scan(0, |start, &end| Some(&self.bytes[std::mem::replace(start, end)..end]))
    }
}
