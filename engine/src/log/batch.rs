//! One write of the log: the redo of some closed epochs.
//!
//! ```text
//! [magic 4][crc32c of all that follows 4][number 8][first epoch 8][last epoch 8]
//! { [epoch 8][length 4][records …] } …
//! ```
//!
//! Batches are numbered without gaps, so a missing one is noticed. The last epoch is the mark:
//! with this batch, everything up to it is in the log, whole.

use crate::id::Epoch;

/// Position of a batch in the log; grows by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchNumber(pub u64);

impl BatchNumber {
    /// The batch after this one.
    pub fn next(self) -> BatchNumber {
        BatchNumber(self.0 + 1)
    }
}

const MAGIC: [u8; 4] = *b"ARL1";
const HEADER_LEN: usize = 32;
const SEGMENT_HEADER_LEN: usize = 12;

/// What a valid batch says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Its place in the log.
    pub number: BatchNumber,
    /// The oldest epoch it closes.
    pub first: Epoch,
    /// The newest epoch that is whole with it.
    pub last: Epoch,
}

/// Frames segments (an epoch and its records each, ascending) as batch `number` in `out`, whose
/// content goes and whose memory stays.
pub fn encode_into<'a>(
    out: &mut Vec<u8>,
    number: BatchNumber,
    first: Epoch,
    last: Epoch,
    segments: impl Iterator<Item = (Epoch, &'a [u8])> + Clone,
) {
    let size: usize = segments.clone().map(|(_, records)| SEGMENT_HEADER_LEN + records.len()).sum();
    out.clear();
    out.reserve(HEADER_LEN + size);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&number.0.to_le_bytes());
    out.extend_from_slice(&first.0.to_le_bytes());
    out.extend_from_slice(&last.0.to_le_bytes());
    for (epoch, records) in segments {
        let length = u32::try_from(records.len()).expect("segments are bounded far below 4 GiB");
        out.extend_from_slice(&epoch.0.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(records);
    }
    let crc = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// A batch of its own memory.
pub fn encode<'a>(
    number: BatchNumber,
    first: Epoch,
    last: Epoch,
    segments: impl Iterator<Item = (Epoch, &'a [u8])> + Clone,
) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(&mut out, number, first, last, segments);
    out
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Checks a batch; `None` if it is torn or damaged.
pub fn check(bytes: &[u8]) -> Option<BatchHeader> {
    if bytes.get(..4)? != MAGIC || bytes.len() < HEADER_LEN {
        return None;
    }
    let crc = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    if crc != crc32c::crc32c(&bytes[8..]) {
        return None;
    }
    Some(BatchHeader {
        number: BatchNumber(word(bytes, 8)?),
        first: Epoch(word(bytes, 16)?),
        last: Epoch(word(bytes, 24)?),
    })
}

/// The segments of a batch that [`check`]ed; `None` stands for bytes that are no segment.
pub fn segments(bytes: &[u8]) -> impl Iterator<Item = Option<(Epoch, &[u8])>> {
    let mut rest = bytes.get(HEADER_LEN..).unwrap_or(&[]);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let segment = (|| {
            let epoch = Epoch(word(rest, 0)?);
            let length = u32::from_le_bytes(rest.get(8..12)?.try_into().ok()?) as usize;
            let records = rest.get(SEGMENT_HEADER_LEN..SEGMENT_HEADER_LEN.checked_add(length)?)?;
            Some((epoch, records))
        })();
        rest = segment.map_or(&[], |(_, records)| &rest[SEGMENT_HEADER_LEN + records.len()..]);
        Some(segment)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_comes_back_and_any_flipped_bit_is_noticed() {
        let parts = [(Epoch(4), &b"abc"[..]), (Epoch(5), b""), (Epoch(5), b"defg")];
        let mut bytes = b"an older batch".to_vec();
        encode_into(&mut bytes, BatchNumber(9), Epoch(3), Epoch(6), parts.iter().copied());
        let header = BatchHeader { number: BatchNumber(9), first: Epoch(3), last: Epoch(6) };
        assert_eq!(check(&bytes), Some(header));
        let back: Vec<_> = segments(&bytes).map(|segment| segment.expect("well formed")).collect();
        assert_eq!(back, parts);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(check(&bad), None, "byte {at}");
            assert_eq!(check(&bytes[..at]), None, "cut at {at}");
        }
    }
}
