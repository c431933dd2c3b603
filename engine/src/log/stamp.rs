//! How far the checkpoint has come, as known to itself.
//!
//! Rows of the checkpoint and the log lie in files of their own, and somebody may put one of the two
//! back from an older copy. A log that is older than the checkpoint is found out by the watermark
//! and by the epochs of the rows. A checkpoint that is older than the log looks like any other one;
//! what the log no longer has would be gone without a word. So the last thing that a checkpoint
//! writes among its rows is the first batch that it leaves to replay, and once that is durable the log
//! notes it too, in front of its mark:
//!
//! ```text
//! rows … stamp(N)  flush   note(N)   mark(N)   cut the log below N
//! ```
//!
//! A stamp may be ahead of the note, where a crash came in between; one that is behind it, or
//! missing, is an older checkpoint's. A log without the note was written before there were stamps.

use super::batch::BatchNumber;
use super::checkpoint::encode_row;
use super::pair;
use super::redo::{META_TREE, Tag};
use super::store::{CheckpointChange, LogStore, StoreError};
use crate::id::TreeId;

/// The stamp's key among the rows of [`META_TREE`], which no piece of engine state has.
const STAMP_KEY: &[u8] = b"\0checkpoint";

/// The word of a store that notes what the stamp must be at least.
const NOTE_KEY: &str = "checkpoint stamp";

/// Whether a row of the checkpoint is its stamp, or says to which log it belongs.
pub(super) fn is_stamp(tree: TreeId, key: &[u8]) -> bool {
    tree == META_TREE && key == STAMP_KEY || pair::is_pair(tree, key)
}

/// The row that says how far the checkpoint has come.
pub(super) fn stamp(replay_from: BatchNumber) -> CheckpointChange {
    let value = encode_row(Tag::ZERO, &replay_from.0.to_le_bytes());
    CheckpointChange { tree: META_TREE, key: STAMP_KEY.into(), value: Some(value) }
}

/// Notes in the log what the checkpoint's stamp, which is durable, must be at least.
pub(super) fn note(store: &dyn LogStore, replay_from: BatchNumber) -> Result<(), StoreError> {
    store.meta_put(NOTE_KEY, &replay_from.0.to_le_bytes())
}

fn number(bytes: &[u8], what: &str) -> Result<BatchNumber, StoreError> {
    let bytes: [u8; 8] = bytes.try_into().map_err(|_| StoreError::Damaged(format!("{what} is malformed")))?;
    Ok(BatchNumber(u64::from_le_bytes(bytes)))
}

/// What the checkpoint says of itself; the first batch where it says nothing.
pub(super) fn read_stamp(store: &dyn LogStore) -> Result<BatchNumber, StoreError> {
    match store.checkpoint_get(META_TREE, STAMP_KEY)? {
        None => Ok(BatchNumber(0)),
        Some(value) => number(super::checkpoint::decode_row(&value)?.1, "the checkpoint's stamp"),
    }
}

/// What is wrong if the checkpoint is older than the log says, or another log's, in words.
pub(super) fn missing(store: &dyn LogStore) -> Result<Option<String>, StoreError> {
    let Some(noted) = store.meta_get(NOTE_KEY)? else { return pair::missing(store) };
    let noted = number(&noted, "the note of the checkpoint's stamp")?;
    let found = read_stamp(store)?;
    if found >= noted {
        return pair::missing(store);
    }
    Ok(Some(format!(
        "the checkpoint is an older one: it goes as far as batch {}, and the log begins behind one that \
             went as far as batch {}; put back the checkpoint's folder as it was, or restore a backup; \
             \"archipel reset-log\" goes on without what it held",
        found.0, noted.0
    )))
}

#[cfg(test)]
mod tests {
    use super::super::MemoryStore;
    use super::super::store::Losses;
    use super::*;

    #[test]
    fn a_stamp_may_be_ahead_of_the_note_and_not_behind_it() {
        let store = MemoryStore::new();
        assert_eq!(missing(&store).expect("readable"), None, "there never was a checkpoint");
        store.checkpoint_write(Losses::default(), &[stamp(BatchNumber(5))]).expect("written");
        assert_eq!(missing(&store).expect("readable"), None, "it ended before it was noted");
        note(&store, BatchNumber(5)).expect("noted");
        assert_eq!(missing(&store).expect("readable"), None);
        note(&store, BatchNumber(6)).expect("noted");
        let told = missing(&store).expect("readable").expect("it is older");
        assert!(told.contains("it goes as far as batch 5"), "{told}");
        store.checkpoint_drop(META_TREE).expect("gone");
        let told = missing(&store).expect("readable").expect("it is empty");
        assert!(told.contains("it goes as far as batch 0"), "{told}");
    }
}
