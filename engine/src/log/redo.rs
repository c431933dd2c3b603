//! Redo records.
//!
//! ```text
//! [operation 1][tree varint][key length varint][key]
//!   1 put          [row length varint][row]     insert, or an update that changes the length
//!   2 patch        [count varint] { [gap varint][length varint][bytes] } …   the bytes of changed columns
//!   3 delete       nothing
//!   4 drop         nothing, and an empty key                 the whole tree is gone
//!   6 meta put     [sequence varint][length varint][value]   engine state, whose tree is 0
//!   7 meta delete  [sequence varint]
//! ```
//!
//! The epoch is that of the segment a record stands in, and its number that of its transaction
//! ([`super::transaction`]): together they are the tag that settles the order of a key's records. Only
//! engine state is written by those who hold no partition; each of its records has a sequence instead.
//!
//! An update is logged as the bytes of the row that changed, not as column numbers: replay needs no table
//! definitions, so it can run before they are known and across any change of them.
//!
//! In batches of versions that knew no transactions each record has a sequence behind its tree, which every
//! write of its partition had another of, and engine state is put and deleted as rows are.

use std::ops::Range;

use super::input::{Input, Malformed, VARINT_BYTES_MAX, put_varint, write_varint};
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
    /// The number of the transaction; of engine state its sequence. Of what was written before there were
    /// transactions the sequence, too: numbers are above all of these.
    pub number: u64,
}

impl Tag {
    /// Before every commit.
    pub const ZERO: Tag = Tag { epoch: Epoch(0), number: 0 };
}

const PUT: u8 = 1;
const PATCH: u8 = 2;
const DELETE: u8 = 3;
const DROP_TREE: u8 = 4;
const META_PUT: u8 = 6;
const META_DELETE: u8 = 7;

/// Changed bytes closer than this are logged as one range.
const GAP_MIN: usize = 4;

/// So many bytes are logged sooner than compared: some columns of numbers beside each other.
const TOUCHED_MAX: usize = 32;

/// The longest header without its key.
const HEADER_MAX: usize = 1 + 5 + VARINT_BYTES_MAX;

/// A record that puts a row, or deletes it, has no more bytes beside key and row.
pub(crate) const RECORD_OVERHEAD_MAX: usize = HEADER_MAX + VARINT_BYTES_MAX;

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
    /// What stands in its tag.
    pub number: u64,
    /// The storage key.
    pub key: &'a [u8],
    /// The change.
    pub operation: Operation<'a>,
}

fn header(out: &mut Vec<u8>, operation: u8, tree: TreeId, key: &[u8]) {
    let mut bytes = [operation; HEADER_MAX];
    let end = write_varint(&mut bytes, 1, u64::from(tree.0));
    let end = write_varint(&mut bytes, end, key.len() as u64);
    out.extend_from_slice(&bytes[..end]);
    out.extend_from_slice(key);
}

/// Logs an insert, or any change as the whole row.
pub fn put(out: &mut Vec<u8>, tree: TreeId, key: &[u8], row: &[u8]) {
    header(out, PUT, tree, key);
    put_varint(out, row.len() as u64);
    out.extend_from_slice(row);
}

/// Logs an update as the bytes that differ, or as the whole row if its length changed. Rows of one
/// length differ in `touched` only; few bytes are logged as they are.
pub fn update(
    out: &mut Vec<u8>,
    tree: TreeId,
    key: &[u8],
    (before, after): (&[u8], &[u8]),
    touched: &Touched,
) {
    if before.len() != after.len() {
        return put(out, tree, key, after);
    }
    header(out, PATCH, tree, key);
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
pub fn delete(out: &mut Vec<u8>, tree: TreeId, key: &[u8]) {
    header(out, DELETE, tree, key);
}

/// Logs that a tree and all its rows are gone. Tree ids are never used again.
pub fn drop_tree(out: &mut Vec<u8>, tree: TreeId) {
    header(out, DROP_TREE, tree, &[]);
}

/// Logs a piece of engine state; `None` removes it. `sequence` orders the writes of one key
/// within an epoch.
pub fn meta(out: &mut Vec<u8>, sequence: u64, key: &[u8], value: Option<&[u8]>) {
    header(out, if value.is_some() { META_PUT } else { META_DELETE }, META_TREE, key);
    put_varint(out, sequence);
    if let Some(value) = value {
        put_varint(out, value.len() as u64);
        out.extend_from_slice(value);
    }
}

/// Applies a patch to the row it was made for.
pub fn apply_patch(row: &mut [u8], patch: &[u8]) -> Result<(), Malformed> {
    patched(row, patch).ok_or(Malformed::Record)
}

fn patched(row: &mut [u8], patch: &[u8]) -> Option<()> {
    let mut input = Input { bytes: patch };
    let count = input.varint()?;
    let mut at = 0usize;
    for _ in 0..count {
        at = at.checked_add(input.size()?)?;
        let bytes = input.length_prefixed()?;
        let end = at.checked_add(bytes.len())?;
        row.get_mut(at..end)?.copy_from_slice(bytes);
        at = end;
    }
    Some(())
}

/// Takes the record that comes next, of the transaction of this number; `None`: of a version that knew none.
pub(super) fn take<'a>(input: &mut Input<'a>, transaction: Option<u64>) -> Result<Record<'a>, Malformed> {
    let operation = input.byte().ok_or(Malformed::Record)?;
    let is_known = match operation {
        PUT | PATCH | DELETE | DROP_TREE => true,
        META_PUT | META_DELETE => transaction.is_some(),
        _ => false,
    };
    if !is_known {
        return Err(Malformed::RecordKind(operation));
    }
    taken(input, operation, transaction).ok_or(Malformed::Record)
}

/// The rest of a record of a kind that is known.
fn taken<'a>(input: &mut Input<'a>, operation: u8, transaction: Option<u64>) -> Option<Record<'a>> {
    let is_meta = matches!(operation, META_PUT | META_DELETE);
    let tree = TreeId(u32::try_from(input.varint()?).ok()?);
    let mut number = match transaction {
        Some(number) => number,
        None => input.varint()?,
    };
    let key = input.length_prefixed()?;
    if is_meta {
        number = input.varint()?;
    }
    if transaction.is_some() && is_meta != (tree == META_TREE) {
        // Its number would stand among sequences, or the other way round.
        return None;
    }
    let operation = match operation {
        PUT | META_PUT => Operation::Put(input.length_prefixed()?),
        PATCH => Operation::Patch(patch(input)?),
        DROP_TREE => Operation::DropTree,
        _ => Operation::Delete,
    };
    Some(Record { tree, number, key, operation })
}

/// The bytes of a patch.
fn patch<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    let start = input.bytes;
    for _ in 0..input.varint()? {
        input.varint()?;
        input.length_prefixed()?;
    }
    Some(&start[..start.len() - input.bytes.len()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_come_back_in_order() {
        let mut out = Vec::new();
        put(&mut out, TreeId(300), b"key", b"row");
        update(&mut out, TreeId(300), b"key", (b"row", b"raw"), &Touched::all(3));
        delete(&mut out, TreeId(1), b"");
        drop_tree(&mut out, TreeId(9));
        meta(&mut out, 2, b"m", Some(b"v"));
        meta(&mut out, u64::MAX, b"m", None);
        let all = all_of(&out, Some(7)).expect("well formed");
        let record = |tree, number, key, operation| Record { tree: TreeId(tree), number, key, operation };
        assert_eq!(all[0], record(300, 7, b"key", Operation::Put(b"row")));
        assert!(matches!(all[1].operation, Operation::Patch(_)));
        assert_eq!(
            all[2..],
            [
                record(1, 7, b"", Operation::Delete),
                record(9, 7, b"", Operation::DropTree),
                record(0, 2, b"m", Operation::Put(b"v")),
                record(0, u64::MAX, b"m", Operation::Delete),
            ]
        );
    }

    #[test]
    fn kinds_that_are_not_known_are_told_and_trees_have_their_own_kinds() {
        for kind in [0, 5, 8, 16, 17, 18, 19, 255] {
            let refused = all_of(&[kind, 1, 0], Some(7)).expect_err("refused");
            assert_eq!(refused, Malformed::RecordKind(kind));
        }
        let mut engine_state = Vec::new();
        meta(&mut engine_state, 2, b"m", Some(b"v"));
        assert_eq!(all_of(&engine_state, None), Err(Malformed::RecordKind(META_PUT)), "nobody wrote it then");
        engine_state[1] = 20;
        assert_eq!(all_of(&engine_state, Some(7)), Err(Malformed::Record));
        let mut row = Vec::new();
        put(&mut row, META_TREE, b"m", b"v");
        assert_eq!(all_of(&row, Some(7)), Err(Malformed::Record));
    }

    /// All records, or what is wrong with the first that is none.
    fn all_of(bytes: &[u8], transaction: Option<u64>) -> Result<Vec<Record<'_>>, Malformed> {
        let mut input = Input { bytes };
        let mut all = Vec::new();
        while !input.bytes.is_empty() {
            all.push(take(&mut input, transaction)?);
        }
        Ok(all)
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
            update(&mut out, TreeId(1), b"k", (&before, &after), &touched);
            let all = all_of(&out, Some(1)).expect("well formed");
            let [Record { operation: Operation::Patch(patch), .. }] = all[..] else {
                panic!("equal lengths make a patch")
            };
            let mut row = before.clone();
            apply_patch(&mut row, patch).expect("well formed");
            prop_assert_eq!(row, after);
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
            update(&mut out, TreeId(1), b"k", (&before, &after), &touched);
            let all = all_of(&out, Some(1)).expect("well formed");
            let [Record { operation: Operation::Patch(patch), .. }] = all[..] else {
                panic!("equal lengths make a patch")
            };
            let mut row = before;
            apply_patch(&mut row, patch).expect("well formed");
            prop_assert_eq!(row, after);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            for transaction in [None, Some(1)] {
                for record in all_of(&bytes, transaction).into_iter().flatten() {
                    if let Operation::Patch(patch) = record.operation {
                        let _ = apply_patch(&mut [0; 10], patch);
                    }
                }
            }
        }
    }
}
