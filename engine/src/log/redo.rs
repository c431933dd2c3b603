//! Redo records.
//!
//! ```text
//! [operation 1][tree varint][sequence varint][key length varint][key]
//!   put     [row length varint][row]                     insert, or an update that changes the length
//!   patch   [count varint] { [gap varint][length varint][bytes] } …   the bytes of changed columns
//!   delete  nothing
//!   drop    nothing, and an empty key                    the whole tree is gone
//! ```
//!
//! The epoch is that of the segment the record stands in. An update is logged as the bytes of
//! the row that changed, not as column numbers: replay needs no table definitions, so it can
//! run before they are known and across any change of them. Every write counts in its partition's
//! sequence, so no two records of a key share a tag.

use std::ops::Range;

use crate::id::{Epoch, TreeId};
use crate::storage::Touched;

/// Engine state that is no table (definitions, sequences, routing hints) is logged as rows of
/// this tree.
pub const META_TREE: TreeId = TreeId(0);

/// When a row was written: the order of all writes to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// Epoch of the commit.
    pub epoch: Epoch,
    /// The partition's sequence number of the write.
    pub sequence: u64,
}

impl Tag {
    /// Before every commit.
    pub const ZERO: Tag = Tag { epoch: Epoch(0), sequence: 0 };
}

const PUT: u8 = 1;
const PATCH: u8 = 2;
const DELETE: u8 = 3;
const DROP_TREE: u8 = 4;

/// Changed bytes closer than this are logged as one range.
const GAP_MIN: usize = 4;

/// So many bytes are logged sooner than compared: some columns of numbers beside each other.
const TOUCHED_MAX: usize = 32;

/// The longest header without its key.
const HEADER_MAX: usize = 1 + 5 + 10 + 10;

/// A record that puts a row, or deletes it, has no more bytes beside key and row.
pub(crate) const RECORD_OVERHEAD_MAX: usize = HEADER_MAX + 10;

/// What a record does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// The row is now this.
    Put(&'a [u8]),
    /// Bytes of the row changed; see [`apply_patch`].
    Patch(&'a [u8]),
    /// The row is gone.
    Delete,
    /// The tree is gone, and its id is never used again.
    DropTree,
}

/// One decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The table the row belongs to.
    pub tree: TreeId,
    /// The partition's sequence number of the write.
    pub sequence: u64,
    /// The storage key.
    pub key: &'a [u8],
    /// The change.
    pub operation: Operation<'a>,
}

/// Bytes that are no redo records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed redo record")]
pub struct Malformed;

fn header(out: &mut Vec<u8>, operation: u8, tree: TreeId, sequence: u64, key: &[u8]) {
    // Put together aside: the vector is asked for room twice, not for every byte.
    let mut bytes = [0u8; HEADER_MAX];
    bytes[0] = operation;
    let mut len = 1;
    for mut value in [u64::from(tree.0), sequence, key.len() as u64] {
        while value >= 0x80 {
            bytes[len] = value as u8 | 0x80;
            value >>= 7;
            len += 1;
        }
        bytes[len] = value as u8;
        len += 1;
    }
    out.extend_from_slice(&bytes[..len]);
    out.extend_from_slice(key);
}

/// Logs an insert, or any change as the whole row.
pub fn put(out: &mut Vec<u8>, tree: TreeId, sequence: u64, key: &[u8], row: &[u8]) {
    header(out, PUT, tree, sequence, key);
    put_varint(out, row.len() as u64);
    out.extend_from_slice(row);
}

/// Logs an update as the bytes that differ, or as the whole row if its length changed. Rows of one
/// length differ in `touched` only; few bytes are logged as they are.
pub fn update(
    out: &mut Vec<u8>,
    tree: TreeId,
    sequence: u64,
    key: &[u8],
    (before, after): (&[u8], &[u8]),
    touched: &Touched,
) {
    if before.len() != after.len() {
        return put(out, tree, sequence, key, after);
    }
    header(out, PATCH, tree, sequence, key);
    if touched.ranges().iter().map(Range::len).sum::<usize>() <= TOUCHED_MAX {
        // A range has a byte at least, so there are not many.
        out.push(touched.ranges().len() as u8);
        let mut written = 0;
        for range in touched.ranges() {
            put_varint(out, (range.start - written) as u64);
            put_varint(out, range.len() as u64);
            out.extend_from_slice(&after[range.clone()]);
            written = range.end;
        }
        return;
    }
    let hull = touched.hull();
    let (before, after) = (&before[..hull.end], &after[..hull.end]);
    let count_at = out.len();
    out.push(0);
    let mut count = 0u8;
    let mut written = 0;
    let mut at = first_difference(before, after, hull.start);
    while at < after.len() && count < 127 {
        let mut end = at + 1;
        let mut next = first_difference(before, after, end);
        // The last range that fits the count takes all the rest.
        while next < after.len() && (next - end < GAP_MIN || count == 126) {
            end = next + 1;
            next = first_difference(before, after, end);
        }
        put_varint(out, (at - written) as u64);
        put_varint(out, (end - at) as u64);
        out.extend_from_slice(&after[at..end]);
        written = end;
        count += 1;
        at = next;
    }
    out[count_at] = count;
}

fn first_difference(a: &[u8], b: &[u8], from: usize) -> usize {
    let mut at = from;
    while let (Some(left), Some(right)) = (a[at..].first_chunk::<32>(), b[at..].first_chunk::<32>())
        && left == right
    {
        at += 32;
    }
    while let (Some(left), Some(right)) = (a[at..].first_chunk::<8>(), b[at..].first_chunk::<8>()) {
        let different = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if different != 0 {
            return at + different.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

/// Logs a delete.
pub fn delete(out: &mut Vec<u8>, tree: TreeId, sequence: u64, key: &[u8]) {
    header(out, DELETE, tree, sequence, key);
}

/// Logs that a tree and all its rows are gone. Tree ids are never used again.
pub fn drop_tree(out: &mut Vec<u8>, tree: TreeId, sequence: u64) {
    header(out, DROP_TREE, tree, sequence, &[]);
}

/// Logs a piece of engine state; `None` removes it. `sequence` orders the writes of one key
/// within an epoch.
pub fn meta(out: &mut Vec<u8>, sequence: u64, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => put(out, META_TREE, sequence, key, value),
        None => delete(out, META_TREE, sequence, key),
    }
}

/// Applies a patch to the row it was made for.
pub fn apply_patch(row: &mut [u8], patch: &[u8]) -> Result<(), Malformed> {
    let mut input = Input { bytes: patch };
    let count = input.varint()?;
    let mut at = 0usize;
    for _ in 0..count {
        at = at.checked_add(input.size()?).ok_or(Malformed)?;
        let bytes = input.length_prefixed()?;
        let end = at.checked_add(bytes.len()).ok_or(Malformed)?;
        row.get_mut(at..end).ok_or(Malformed)?.copy_from_slice(bytes);
        at = end;
    }
    Ok(())
}

/// The records of a segment, in order. After an error there are no more.
pub fn records(segment: &[u8]) -> impl Iterator<Item = Result<Record<'_>, Malformed>> {
    located(segment).map(|located| located.map(|(_, record)| record))
}

/// As [`records`], with the offset at which each begins.
pub(super) fn located(segment: &[u8]) -> impl Iterator<Item = Result<(usize, Record<'_>), Malformed>> {
    let mut input = Input { bytes: segment };
    std::iter::from_fn(move || {
        if input.bytes.is_empty() {
            return None;
        }
        let offset = segment.len() - input.bytes.len();
        let record = input.record();
        if record.is_err() {
            input.bytes = &[];
        }
        Some(record.map(|record| (offset, record)))
    })
}

/// The record at an offset that [`located`] told.
pub(super) fn record_at(segment: &[u8], offset: usize) -> Result<Record<'_>, Malformed> {
    Input { bytes: segment.get(offset..).ok_or(Malformed)? }.record()
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (&byte, rest) = self.bytes.split_first().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn size(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed)
    }

    fn length_prefixed(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.size()?;
        let (bytes, rest) = self.bytes.split_at_checked(length).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(bytes)
    }

    fn record(&mut self) -> Result<Record<'a>, Malformed> {
        let operation = self.byte()?;
        let tree = TreeId(u32::try_from(self.varint()?).map_err(|_| Malformed)?);
        let sequence = self.varint()?;
        let key = self.length_prefixed()?;
        let operation = match operation {
            PUT => Operation::Put(self.length_prefixed()?),
            PATCH => {
                let start = self.bytes;
                for _ in 0..self.varint()? {
                    self.varint()?;
                    self.length_prefixed()?;
                }
                Operation::Patch(&start[..start.len() - self.bytes.len()])
            }
            DELETE => Operation::Delete,
            DROP_TREE => Operation::DropTree,
            _ => return Err(Malformed),
        };
        Ok(Record { tree, sequence, key, operation })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_come_back_in_order() {
        let mut out = Vec::new();
        put(&mut out, TreeId(300), 7, b"key", b"row");
        update(&mut out, TreeId(300), 8, b"key", (b"row", b"raw"), &Touched::all(3));
        delete(&mut out, TreeId(1), u64::MAX, b"");
        drop_tree(&mut out, TreeId(9), 1);
        meta(&mut out, 2, b"m", Some(b"v"));
        let all: Vec<Record<'_>> = records(&out).map(|record| record.expect("well formed")).collect();
        assert_eq!(all.len(), 5);
        assert_eq!(
            all[0],
            Record { tree: TreeId(300), sequence: 7, key: b"key", operation: Operation::Put(b"row") }
        );
        assert!(matches!(all[1].operation, Operation::Patch(_)));
        assert_eq!(all[2].operation, Operation::Delete);
        assert_eq!(all[2].sequence, u64::MAX);
        assert_eq!(all[3].operation, Operation::DropTree);
        assert_eq!(all[4].tree, META_TREE);
    }

    proptest! {
        #[test]
        fn a_patch_turns_the_old_row_into_the_new(
            before in proptest::collection::vec(any::<u8>(), 0..400),
            edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..40),
        ) {
            let mut after = before.clone();
            let mut touched = Touched::default();
            for (at, byte) in edits {
                if !after.is_empty() {
                    let at = at % after.len();
                    after[at] = byte;
                    touched.add(at..at + 1);
                }
            }
            let mut out = Vec::new();
            update(&mut out, TreeId(1), 1, b"k", (&before, &after), &touched);
            let record = records(&out).next().expect("one").expect("well formed");
            let Operation::Patch(patch) = record.operation else { panic!("equal lengths make a patch") };
            let mut row = before.clone();
            apply_patch(&mut row, patch).expect("well formed");
            prop_assert_eq!(row, after);
            prop_assert_eq!(records(&out).count(), 1);
        }

        #[test]
        fn scattered_changes_of_a_long_row_fit(step in 1usize..20) {
            let before = vec![0u8; 5_000];
            let mut after = before.clone();
            for at in (0..after.len()).step_by(step) {
                after[at] = 1;
            }
            let touched = Touched::all(after.len());
            let mut out = Vec::new();
            update(&mut out, TreeId(1), 1, b"k", (&before, &after), &touched);
            let record = records(&out).next().expect("one").expect("well formed");
            let Operation::Patch(patch) = record.operation else { panic!("equal lengths make a patch") };
            let mut row = before;
            apply_patch(&mut row, patch).expect("well formed");
            prop_assert_eq!(row, after);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            for record in records(&bytes) {
                if let Ok(Record { operation: Operation::Patch(patch), .. }) = record {
                    let _ = apply_patch(&mut [0; 10], patch);
                }
            }
        }
    }
}
