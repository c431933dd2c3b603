//! What the bytes of the log are made of: numbers of variable length, and stretches with their length.
//!
//! Invariant: whatever the bytes are, reading them ends, takes no more than there is, and does not panic.

use crate::id::Epoch;

/// Bytes that are no log as this version knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes of a batch end too early, or go on behind its end.
    #[error("malformed batch")]
    Batch,
    /// A batch that is no group of whole epochs.
    #[error("batch of kind {0}, which this version does not know")]
    BatchKind(u8),
    /// What a thread logged in an epoch that its batch has not closed.
    #[error("epoch {0} beyond the end of its batch")]
    Epoch(Epoch),
    /// A transaction's length, or its number, is not what it can be.
    #[error("malformed header of a transaction")]
    Transaction,
    /// A transaction that has more than this version can read.
    #[error("transaction with flags {0:#04x}, which this version does not know")]
    Flags(u8),
    /// A record ends too early, or a patch does not fit its row.
    #[error("malformed redo record")]
    Record,
    /// An operation that none of the known ones is.
    #[error("redo record of kind {0}, which this version does not know")]
    RecordKind(u8),
}

/// The longest number of variable length.
pub(super) const VARINT_BYTES_MAX: usize = 10;

/// Appends a number: seven bits a byte, the low ones first.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The same into an array that has room for it, from a place on. Answers where it ends. A header that is put
/// together aside asks its vector for room once, and not for every byte.
pub(super) fn write_varint(out: &mut [u8], at: usize, mut value: u64) -> usize {
    let mut end = at;
    while value >= 0x80 {
        out[end] = value as u8 | 0x80;
        value >>= 7;
        end += 1;
    }
    out[end] = value as u8;
    end + 1
}

/// Bytes that are read from their beginning.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    /// Those that are left.
    pub(super) bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// A word of eight bytes.
    pub(super) fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// The next so many bytes.
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(bytes)
    }

    /// A length and so many bytes.
    pub(super) fn length_prefixed(&mut self) -> Option<&'a [u8]> {
        let length = self.size()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(values in proptest::collection::vec(any::<u64>().prop_map(|value| value >> (value % 64)), 0..20)) {
            let mut out = Vec::new();
            for value in &values {
                let before = out.len();
                put_varint(&mut out, *value);
                let mut aside = [0; VARINT_BYTES_MAX + 1];
                let end = write_varint(&mut aside, 1, *value);
                prop_assert_eq!(&aside[1..end], &out[before..]);
            }
            let mut input = Input { bytes: &out };
            for value in &values {
                prop_assert_eq!(input.varint(), Some(*value));
            }
            prop_assert_eq!(input.varint(), None);
        }
    }
}
