//! One write of the log: the redo of some closed epochs.
//!
//! ```text
//! [magic "ARL2" 4][crc32c of all that follows 4][number 8][kind 1: 0, whole epochs][last epoch 8]
//! [last − first varint][time 8: µs since 2000] { segment }
//! ```
//!
//! Batches are numbered without gaps, so a missing one is noticed. The last epoch is the mark:
//! with this batch, everything up to it is in the log, whole. The time is that at which the epochs were
//! closed, and never goes back from one batch to the next: a commit needs no clock, and no byte for it.
//!
//! What a thread logged in an epoch is a segment of transactions: see [`super::transaction`]. Another kind, or
//! a flag or a record that this version does not know, is refused in so many words, and not taken for a torn
//! end: the checksum says that somebody has written it so.
//!
//! **Older batches** are read by their magic. A log may have them up to one batch, and these behind it: every
//! epoch of a later batch is above theirs, and numbers go on above the greatest of their sequences, so what
//! they have of a key comes first.
//!
//! ```text
//! [magic "ARL1" 4][crc32c of all that follows 4][number 8][first epoch 8][last epoch 8]
//! { [epoch 8][length 4] { record with a sequence of its own } } …
//! ```

use super::input::{Input, Malformed, put_varint};
use super::transaction::{Author, Located, Records, Segment, WithParts};
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

const MAGIC: [u8; 4] = *b"ARL2";
pub(super) const MAGIC_OF_OLDER: [u8; 4] = *b"ARL1";
/// The only kind there is.
const WHOLE_EPOCHS: u8 = 0;
/// Magic and checksum.
const PREFIX_LEN: usize = 8;
/// The longest header, beside its varint.
const HEADER_LEN: usize = PREFIX_LEN + 8 + 1 + 8 + 8;

/// What a valid batch says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Its place in the log.
    pub number: BatchNumber,
    /// The oldest epoch it closes.
    pub first: Epoch,
    /// The newest epoch that is whole with it.
    pub last: Epoch,
    /// When its epochs were closed: microseconds since 2000. Older batches do not say.
    pub closed_micros: Option<i64>,
}

/// Frames segments, ascending by their epochs, as batch `number` of the epochs from the first to the last
/// in `out`, whose content goes and whose memory stays.
pub fn encode_into<'a>(
    out: &mut Vec<u8>,
    number: BatchNumber,
    (first, last): (Epoch, Epoch),
    closed_micros: i64,
    segments: impl Iterator<Item = Segment<'a>> + Clone,
) {
    /// About the longest header of a segment.
    const SEGMENT_HEADER: usize = 24;
    let size: usize = segments.clone().map(|segment| SEGMENT_HEADER + segment.transactions.len()).sum();
    out.clear();
    out.reserve(HEADER_LEN + size);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&number.0.to_le_bytes());
    out.push(WHOLE_EPOCHS);
    out.extend_from_slice(&last.0.to_le_bytes());
    put_varint(out, last.0 - first.0);
    out.extend_from_slice(&closed_micros.to_le_bytes());
    for segment in segments {
        segment.encode(out, first);
    }
    let crc = crc32c::crc32c(&out[PREFIX_LEN..]);
    out[4..PREFIX_LEN].copy_from_slice(&crc.to_le_bytes());
}

/// A batch of its own memory, with the records of one transaction for each epoch, ascending, and number.
pub fn encode<'a>(
    number: BatchNumber,
    epochs: (Epoch, Epoch),
    transactions: impl IntoIterator<Item = (Epoch, u64, &'a [u8])>,
) -> Vec<u8> {
    let framed: Vec<(Epoch, u64, Vec<u8>)> = transactions
        .into_iter()
        .map(|(epoch, number, records)| {
            let mut framed = Vec::new();
            super::transaction::put(&mut framed, Author::Program, 1, records);
            (epoch, number, framed)
        })
        .collect();
    let segments = framed.iter().map(|(epoch, first, framed)| Segment {
        epoch: *epoch,
        thread: 0,
        first: *first,
        transactions: framed,
    });
    let mut out = Vec::new();
    encode_into(&mut out, number, epochs, 0, segments);
    out
}

/// What a batch begins with, behind its checksum, and the rest of it; `None` if it ends before that.
fn header(bytes: &[u8]) -> Option<(BatchHeader, Body<'_>)> {
    let is_older = bytes.get(..4)? == MAGIC_OF_OLDER;
    let mut input = Input { bytes: bytes.get(PREFIX_LEN..)? };
    let number = BatchNumber(input.word()?);
    if is_older {
        let (first, last) = (Epoch(input.word()?), Epoch(input.word()?));
        return Some((BatchHeader { number, first, last, closed_micros: None }, Body::Older(input)));
    }
    let kind = input.byte()?;
    let last = Epoch(input.word()?);
    let first = Epoch(last.0.checked_sub(input.varint()?)?);
    let closed_micros = Some(input.word()?.cast_signed());
    let body = if kind == WHOLE_EPOCHS { Body::Segments(input, first) } else { Body::Unknown(kind) };
    Some((BatchHeader { number, first, last, closed_micros }, body))
}

/// Checks a batch; `None` if it is torn or damaged.
pub fn check(bytes: &[u8]) -> Option<BatchHeader> {
    let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    if magic != MAGIC && magic != MAGIC_OF_OLDER {
        return None;
    }
    let crc = u32::from_le_bytes(bytes.get(4..PREFIX_LEN)?.try_into().ok()?);
    if crc != crc32c::crc32c(&bytes[PREFIX_LEN..]) {
        return None;
    }
    Some(header(bytes)?.0)
}

/// What comes behind a batch's header.
enum Body<'a> {
    /// Segments of transactions; the epoch that theirs are told from.
    Segments(Input<'a>, Epoch),
    Older(Input<'a>),
    Unknown(u8),
}

/// A segment of either format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnySegment<'a> {
    /// Of this version: transactions.
    Transactions(Segment<'a>),
    /// Of older ones: the records of an epoch, each with a sequence.
    Records {
        /// The epoch they committed in.
        epoch: Epoch,
        /// The records.
        records: &'a [u8],
    },
}

impl<'a> AnySegment<'a> {
    /// The epoch that all in it committed in.
    pub fn epoch(&self) -> Epoch {
        match self {
            AnySegment::Transactions(segment) => segment.epoch,
            AnySegment::Records { epoch, .. } => *epoch,
        }
    }

    /// The number of its first transaction, if it has any.
    pub(super) fn first(&self) -> Option<u64> {
        match self {
            AnySegment::Transactions(segment) => Some(segment.first),
            AnySegment::Records { .. } => None,
        }
    }

    /// What is in it.
    pub(super) fn bytes(&self) -> &'a [u8] {
        match self {
            AnySegment::Transactions(segment) => segment.transactions,
            AnySegment::Records { records, .. } => records,
        }
    }

    /// Its records.
    pub(crate) fn records(&self) -> Records<'a> {
        Records::new(self.bytes(), self.first())
    }
}

/// The segments of a batch that [`check`]ed, and what is wrong behind the last that is one.
pub fn segments(bytes: &[u8]) -> impl Iterator<Item = Result<AnySegment<'_>, Malformed>> {
    let mut batch = Some(header(bytes).ok_or(Malformed::Batch));
    std::iter::from_fn(move || {
        let found = match batch.as_mut()? {
            Ok((header, body)) => next_segment(body, header.last)?,
            Err(malformed) => Err(*malformed),
        };
        if found.is_err() {
            batch = None;
        }
        Some(found)
    })
}

fn next_segment<'a>(body: &mut Body<'a>, last: Epoch) -> Option<Result<AnySegment<'a>, Malformed>> {
    let found = match body {
        Body::Segments(input, _) | Body::Older(input) if input.bytes.is_empty() => return None,
        Body::Segments(input, first) => Segment::decode(input, *first).map(AnySegment::Transactions),
        Body::Older(input) => older_segment(input),
        Body::Unknown(kind) => return Some(Err(Malformed::BatchKind(*kind))),
    };
    Some(match found {
        // What is written later would come before it.
        Some(segment) if segment.epoch() > last => Err(Malformed::Epoch(segment.epoch())),
        found => found.ok_or(Malformed::Batch),
    })
}

/// Shows the records of a batch that [`check`]ed, with their epochs, up to the first that is none. Answers the
/// transactions that have records in parts besides.
pub(super) fn each_record<'a>(
    bytes: &'a [u8],
    mut visit: impl FnMut(Epoch, Located<'a>),
) -> Result<Vec<WithParts>, Malformed> {
    let mut with_parts = Vec::new();
    for segment in segments(bytes) {
        let segment = segment?;
        let mut records = segment.records();
        for located in records.by_ref() {
            visit(segment.epoch(), located?);
        }
        with_parts.extend(records.with_parts(segment.epoch()));
    }
    Ok(with_parts)
}

fn older_segment<'a>(input: &mut Input<'a>) -> Option<AnySegment<'a>> {
    let epoch = Epoch(input.word()?);
    let length = u32::from_le_bytes(input.take(4)?.try_into().ok()?);
    Some(AnySegment::Records { epoch, records: input.take(length as usize)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_batch_comes_back(
            parts in proptest::collection::vec(
                (0u64..300, any::<u64>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..300)), 0..10),
            number in any::<u64>(), first in 0u64..1 << 60, micros in any::<i64>(),
        ) {
            let segments = parts.iter().map(|(epoch, thread, number, bytes)| Segment {
                epoch: Epoch(first + epoch), thread: *thread, first: *number, transactions: bytes,
            });
            let (first, last) = (Epoch(first), Epoch(first + 300));
            let mut bytes = b"an older batch".to_vec();
            encode_into(&mut bytes, BatchNumber(number), (first, last), micros, segments.clone());
            let header = BatchHeader { number: BatchNumber(number), first, last, closed_micros: Some(micros) };
            prop_assert_eq!(check(&bytes), Some(header));
            let back: Result<Vec<AnySegment<'_>>, Malformed> = super::segments(&bytes).collect();
            prop_assert_eq!(back, Ok(segments.map(AnySegment::Transactions).collect()));
        }

        #[test]
        fn any_bytes_behind_a_checksum_are_taken_apart_or_refused(
            older in any::<bool>(), kind in 0u8..3, rest in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = if older { MAGIC_OF_OLDER } else { MAGIC }.to_vec();
            bytes.extend_from_slice(&crc32c::crc32c(&rest).to_le_bytes());
            bytes.extend_from_slice(&rest);
            if let Some(byte) = bytes.get_mut(16) {
                *byte = kind;
            }
            let crc = crc32c::crc32c(&bytes[PREFIX_LEN..]);
            bytes[4..PREFIX_LEN].copy_from_slice(&crc.to_le_bytes());
            let _ = check(&bytes);
            for segment in segments(&bytes).flatten() {
                let _ = segment.records().count();
            }
        }
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let bytes =
            encode(BatchNumber(9), (Epoch(3), Epoch(6)), [(Epoch(4), 7, &b"abc"[..]), (Epoch(5), 8, b"")]);
        assert!(check(&bytes).is_some());
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(check(&bad), None, "byte {at}");
            assert_eq!(check(&bytes[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn an_epoch_beyond_the_end_is_told_and_so_is_a_batch_that_has_no_end() {
        let bytes =
            encode(BatchNumber(9), (Epoch(3), Epoch(6)), [(Epoch(6), 7, &b"abc"[..]), (Epoch(7), 8, b"")]);
        let found: Vec<_> = segments(&bytes).collect();
        assert!(found[0].is_ok());
        assert_eq!(found[1..], [Err(Malformed::Epoch(Epoch(7)))]);
        assert_eq!(segments(&bytes[..20]).collect::<Vec<_>>(), [Err(Malformed::Batch)]);
    }

    /// It is whole, so no start may take it for a torn end.
    #[test]
    fn a_kind_that_is_not_known_is_told() {
        let mut bytes = encode(BatchNumber(9), (Epoch(3), Epoch(6)), [(Epoch(4), 7, &b"abc"[..])]);
        bytes[16] = 1;
        let crc = crc32c::crc32c(&bytes[PREFIX_LEN..]);
        bytes[4..PREFIX_LEN].copy_from_slice(&crc.to_le_bytes());
        assert!(check(&bytes).is_some());
        assert_eq!(segments(&bytes).collect::<Vec<_>>(), [Err(Malformed::BatchKind(1))]);
    }
}
