//! Byte strings of fixed length, stored inline while they are short.

use std::ops::{Deref, DerefMut};

/// Bytes that need no allocation up to a length of `N`. With `N` = 8 k − 2 the type takes 8 k bytes (at least 24) and
/// leaves one byte for the tags of enums around it.
#[derive(Clone)]
pub enum SmallBytes<const N: usize> {
    /// Unused bytes are zero.
    Inline {
        len: u8,
        bytes: [u8; N],
    },
    Heap(Box<[u8]>),
}

impl<const N: usize> SmallBytes<N> {
    pub const EMPTY: Self = SmallBytes::Inline { len: 0, bytes: [0; N] };

    /// Returns `len` zeros, to be overwritten.
    pub fn zeroed(len: usize) -> Self {
        const { assert!(N <= u8::MAX as usize) };
        if len <= N {
            SmallBytes::Inline { len: len as u8, bytes: [0; N] }
        } else {
            SmallBytes::Heap(vec![0; len].into())
        }
    }
}

impl<const N: usize> Default for SmallBytes<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> From<&[u8]> for SmallBytes<N> {
    fn from(text: &[u8]) -> Self {
        let mut bytes = [0; N];
        match bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text);
                SmallBytes::Inline { len: text.len() as u8, bytes }
            }
            None => SmallBytes::Heap(text.into()),
        }
    }
}

impl<const N: usize> Deref for SmallBytes<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            SmallBytes::Inline { len, bytes } => &bytes[..*len as usize],
            SmallBytes::Heap(bytes) => bytes,
        }
    }
}

impl<const N: usize> DerefMut for SmallBytes<N> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            SmallBytes::Inline { len, bytes } => &mut bytes[..*len as usize],
            SmallBytes::Heap(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_byte_is_lost_to_the_form() {
        assert_eq!(size_of::<SmallBytes<22>>(), 24);
        assert_eq!(size_of::<SmallBytes<46>>(), 48);
        assert_eq!(size_of::<Option<Option<SmallBytes<22>>>>(), 24);
    }

    proptest! {
        #[test]
        fn holds_the_bytes_it_was_made_from(text in prop::collection::vec(any::<u8>(), 0..50)) {
            let mut copied = SmallBytes::<22>::from(&text[..]);
            prop_assert_eq!(&copied[..], &text[..]);
            prop_assert_eq!(matches!(copied, SmallBytes::Inline { .. }), text.len() <= 22);
            copied.reverse();
            prop_assert!(copied.iter().eq(text.iter().rev()));
            let mut filled = SmallBytes::<22>::zeroed(text.len());
            prop_assert!(filled.iter().all(|&byte| byte == 0));
            filled.copy_from_slice(&text);
            prop_assert_eq!(&filled[..], &text[..]);
        }
    }
}
