//! Whether the checkpoint and the log belong to each other.
//!
//! They lie in folders of their own, and somebody may put the folder of another database in the place of
//! one, or of a copy of the same database that has gone another way since. Their batches and epochs number
//! alike. So the log notes a number that no other database has, and each checkpoint brings the next one of
//! a chain, with the one before:
//!
//! ```text
//! first start                                  note(A)
//! rows … stamp, pair(B after A)  flush         note(B)
//! ```
//!
//! A checkpoint belongs to the log whose note is its own number or, where a crash came in between, the one
//! before. Directories of versions that knew no such numbers get theirs at the next start.

use super::batch::BatchNumber;
use super::checkpoint::{decode_row, encode_row};
use super::redo::{META_TREE, Tag};
use super::store::{CheckpointChange, LogStore, StoreError};
use super::watermark::WAYS_OUT;
use crate::id::{Epoch, TreeId};
use crate::random::RandomStream;

/// The pair's key among the rows of [`META_TREE`], which no piece of engine state has.
const ROW_KEY: &[u8] = b"\0checkpoint pair";

/// The word of a store that notes which checkpoint belongs to it.
const NOTE_KEY: &str = "checkpoint pair";

/// What a checkpoint says: its own number, and that of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    own: u64,
    before: u64,
}

/// What the log notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    number: u64,
    /// Whether a checkpoint has said it; the first one has still to come otherwise.
    said: bool,
}

/// Whether a row of the checkpoint is its pair.
pub(super) fn is_pair(tree: TreeId, key: &[u8]) -> bool {
    tree == META_TREE && key == ROW_KEY
}

impl Pair {
    /// What the next checkpoint says; `None` beside a log that notes nothing.
    pub(super) fn next(
        store: &dyn LogStore,
        cut: BatchNumber,
        end: Epoch,
    ) -> Result<Option<Pair>, StoreError> {
        let Some(Note { number: before, .. }) = read_note(store)? else { return Ok(None) };
        // Copies of one database draw alike only as long as they have gone the same way.
        let way = before ^ cut.0.rotate_left(24) ^ end.0.rotate_left(48);
        Ok(Some(Pair { own: RandomStream::new(way).next_u64(), before }))
    }

    /// The row that says it.
    pub(super) fn row(self) -> CheckpointChange {
        let mut value = self.own.to_le_bytes().to_vec();
        value.extend_from_slice(&self.before.to_le_bytes());
        CheckpointChange { tree: META_TREE, key: ROW_KEY.into(), value: Some(encode_row(Tag::ZERO, &value)) }
    }

    /// Notes in the log that this checkpoint, which is durable, belongs to it.
    pub(super) fn note(self, store: &dyn LogStore) -> Result<(), StoreError> {
        write_note(store, Note { number: self.own, said: true })
    }
}

fn write_note(store: &dyn LogStore, note: Note) -> Result<(), StoreError> {
    let mut value = note.number.to_le_bytes().to_vec();
    value.push(u8::from(note.said));
    store.meta_put(NOTE_KEY, &value)
}

fn read_note(store: &dyn LogStore) -> Result<Option<Note>, StoreError> {
    let malformed = || StoreError::Damaged("the note of the checkpoint's pair is malformed".to_owned());
    let Some(value) = store.meta_get(NOTE_KEY)? else { return Ok(None) };
    let (said, number) = value.split_last().ok_or_else(malformed)?;
    let number = number.try_into().map_err(|_| malformed())?;
    Ok(Some(Note { number: u64::from_le_bytes(number), said: *said != 0 }))
}

fn read_row(store: &dyn LogStore) -> Result<Option<Pair>, StoreError> {
    let malformed = || StoreError::Damaged("the checkpoint's pair is malformed".to_owned());
    let Some(value) = store.checkpoint_get(META_TREE, ROW_KEY)? else { return Ok(None) };
    let (own, before) = decode_row(&value)?.1.split_at_checked(8).ok_or_else(malformed)?;
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).map_err(|_| malformed());
    Ok(Some(Pair { own: number(own)?, before: number(before)? }))
}

/// Gives a log its first number, if it has none. `moment` is one at which no other database begins.
pub(crate) fn begin(store: &dyn LogStore, moment: u64) -> Result<(), StoreError> {
    if read_note(store)?.is_some() {
        return Ok(());
    }
    // What is there already belongs to it: there was nothing to tell it by.
    let note = match read_row(store)? {
        Some(pair) => Note { number: pair.own, said: true },
        None => Note { number: RandomStream::new(moment).next_u64(), said: false },
    };
    write_note(store, note)
}

/// What is wrong if the checkpoint is not the log's, in words.
pub(super) fn missing(store: &dyn LogStore) -> Result<Option<String>, StoreError> {
    let Some(note) = read_note(store)? else { return Ok(None) };
    let belongs = match read_row(store)? {
        Some(pair) => pair.own == note.number || pair.before == note.number,
        None => !note.said,
    };
    Ok((!belongs).then(|| {
        format!(
            "the checkpoint and the log do not belong to each other: one of their folders is another \
             database's, or a copy's that has gone another way; {WAYS_OUT}"
        )
    }))
}

/// Takes what is there for what belongs together.
pub(super) fn accept(store: &dyn LogStore) -> Result<(), StoreError> {
    match (read_row(store)?, read_note(store)?) {
        (Some(pair), _) => pair.note(store),
        (None, Some(note)) => write_note(store, Note { said: false, ..note }),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemoryStore;
    use super::super::store::Losses;
    use super::*;

    fn checkpoint(store: &MemoryStore, pair: Pair) {
        store.checkpoint_write(Losses::default(), &[pair.row()]).expect("written");
    }

    fn told(store: &MemoryStore) -> Option<String> {
        missing(store).expect("readable")
    }

    fn next(store: &MemoryStore, cut: u64) -> Pair {
        Pair::next(store, BatchNumber(cut), Epoch(cut)).expect("readable").expect("it has a number")
    }

    #[test]
    fn a_checkpoint_belongs_to_its_log_at_every_step() {
        let store = MemoryStore::new();
        let unknown = Pair::next(&store, BatchNumber(1), Epoch(1)).expect("readable");
        assert_eq!(unknown, None, "it knows no numbers");
        assert_eq!(told(&store), None);
        begin(&store, 7).expect("noted");
        assert_eq!(told(&store), None, "no checkpoint yet");
        for cut in 1..4 {
            let pair = next(&store, cut);
            checkpoint(&store, pair);
            assert_eq!(told(&store), None, "not noted yet");
            begin(&store, 8).expect("it has its number");
            assert_eq!(next(&store, cut), pair, "a checkpoint that was given up comes again");
            pair.note(&store).expect("noted");
            assert_eq!(told(&store), None);
        }
    }

    #[test]
    fn checkpoints_of_other_databases_and_of_copies_are_found() {
        let (ours, other) = (MemoryStore::new(), MemoryStore::new());
        begin(&ours, 1).expect("noted");
        begin(&other, 2).expect("noted");
        let mine = next(&ours, 1);
        checkpoint(&ours, next(&other, 1));
        assert!(told(&ours).is_some(), "another database's");
        mine.note(&ours).expect("noted");
        let (here, there) = (next(&ours, 5), next(&ours, 6));
        here.note(&ours).expect("noted");
        checkpoint(&ours, there);
        assert!(told(&ours).is_some(), "a copy's that has gone another way");
        accept(&ours).expect("accepted");
        assert_eq!(told(&ours), None);
        checkpoint(&ours, mine);
        assert!(told(&ours).is_some(), "an older one");
        ours.checkpoint_drop(META_TREE).expect("gone");
        assert!(told(&ours).is_some(), "none");
        accept(&ours).expect("accepted");
        assert_eq!(told(&ours), None);
    }
}
