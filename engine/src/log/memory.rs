//! A log store in memory, with the faults of a disk.
//!
//! For tests, the simulator and servers that ask for no durability. It keeps what was synced
//! apart from what was merely written, so that a simulated crash can lose the second, keep any
//! prefix of it, or tear the last batch in the middle.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::batch::BatchNumber;
use super::store::{
    BatchVisitor, CheckpointChange, CheckpointKey, LogStore, Losses, PartVisitor, RowVisitor, StoreError,
};
use super::watermark::Watermark;
use crate::id::{TreeId, TxnId};

#[derive(Clone, Default)]
struct Contents {
    log: BTreeMap<u64, Vec<u8>>,
    parts: BTreeMap<(TxnId, u32), Vec<u8>>,
    checkpoint: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    meta: BTreeMap<String, Vec<u8>>,
    /// Lies apart from all the rest: no prefix of the other writes says what became of it.
    watermark: Option<Watermark>,
}

/// One write, remembered until it is synced.
#[derive(Clone)]
enum Write {
    Append(u64, Vec<u8>),
    Truncate(u64),
    TruncateTail(u64),
    Part(TxnId, u32, Vec<u8>),
    DropParts(TxnId),
    Checkpoint(TreeId, Box<[u8]>, Option<Vec<u8>>),
    CheckpointDrop(TreeId),
}

impl Contents {
    fn apply(&mut self, write: Write) {
        match write {
            Write::Append(number, bytes) => drop(self.log.insert(number, bytes)),
            Write::Truncate(below) => self.log = self.log.split_off(&below),
            Write::TruncateTail(from) => drop(self.log.split_off(&from)),
            Write::Part(id, part, value) => drop(self.parts.insert((id, part), value)),
            Write::DropParts(id) => self.parts.retain(|(of, _), _| *of != id),
            Write::Checkpoint(tree, key, Some(value)) => {
                self.checkpoint.insert((tree.0, key.into_vec()), value);
            }
            Write::Checkpoint(tree, key, None) => {
                self.checkpoint.remove(&(tree.0, key.into_vec()));
            }
            Write::CheckpointDrop(tree) => self.checkpoint.retain(|(id, _), _| *id != tree.0),
        }
    }
}

#[derive(Default)]
struct State {
    current: Contents,
    synced: Contents,
    unsynced: Vec<Write>,
    losses: Losses,
    faults: Faults,
}

/// What goes wrong from now on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Every write fails with [`StoreError::Full`].
    pub full: bool,
    /// Every sync fails with [`StoreError::Failed`].
    pub sync_fails: bool,
    /// Every sync takes this long.
    pub sync_delay: Duration,
}

/// What a crash leaves of the writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// Nothing: the power went.
    Synced,
    /// All: only the process died.
    All,
    /// The first so many writes.
    First(usize),
    /// The first so many, and of the next one, a batch or a part, this share of its bytes (of 256).
    Torn(usize, u8),
}

/// The store; clones share it.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the faults.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// The store as the next start finds it. The old one stays as it is.
    pub fn crash(&self, survivors: Survivors) -> MemoryStore {
        let state = self.state.lock();
        let mut contents = state.synced.clone();
        if survivors != Survivors::Synced {
            contents.watermark = state.current.watermark;
        }
        let (count, torn) = match survivors {
            Survivors::Synced => (0, None),
            Survivors::All => (state.unsynced.len(), None),
            Survivors::First(count) => (count, None),
            Survivors::Torn(count, share) => (count, Some(share)),
        };
        for write in state.unsynced.iter().take(count) {
            contents.apply(write.clone());
        }
        if let (Some(share), Some(next)) = (torn, state.unsynced.get(count)) {
            let some = |bytes: &[u8]| bytes[..bytes.len() * usize::from(share) / 256].to_vec();
            match next {
                Write::Append(number, bytes) => contents.apply(Write::Append(*number, some(bytes))),
                Write::Part(id, part, value) => contents.apply(Write::Part(*id, *part, some(value))),
                _ => {}
            }
        }
        let state = State { current: contents.clone(), synced: contents, ..State::default() };
        MemoryStore { state: Arc::new(Mutex::new(state)) }
    }

    /// Loses the checkpoint rows that were not synced, as a store on a disk does that must be
    /// opened again after the disk was full.
    pub fn lose_checkpoint_rows(&self) {
        let mut state = self.state.lock();
        state.unsynced.retain(|write| !matches!(write, Write::Checkpoint(..) | Write::CheckpointDrop(_)));
        let watermark = state.current.watermark;
        state.current = Contents { watermark, ..state.synced.clone() };
        for write in state.unsynced.clone() {
            state.current.apply(write);
        }
        state.losses.0 += 1;
    }

    /// Writes a crash could lose now.
    pub fn unsynced_writes(&self) -> usize {
        self.state.lock().unsynced.len()
    }

    /// Damages a byte of a batch, synced or not.
    pub fn damage(&self, number: BatchNumber, at: usize) {
        let mut state = self.state.lock();
        let State { current, synced, .. } = &mut *state;
        for contents in [current, synced] {
            if let Some(bytes) = contents.log.get_mut(&number.0) {
                let at = at % bytes.len();
                bytes[at] ^= 0x40;
            }
        }
    }

    /// Damages a byte of a part, synced or not; once more, and it is as before.
    pub fn damage_part(&self, id: TxnId, part: u32, at: usize) {
        let mut state = self.state.lock();
        let State { current, synced, .. } = &mut *state;
        for contents in [current, synced] {
            if let Some(value) = contents.parts.get_mut(&(id, part)) {
                let at = at % value.len();
                value[at] ^= 0x40;
            }
        }
    }

    /// Removes a part, as no crash could.
    pub fn lose_part(&self, id: TxnId, part: u32) {
        let mut state = self.state.lock();
        state.current.parts.remove(&(id, part));
        state.synced.parts.remove(&(id, part));
    }

    /// Removes a batch, as no crash could.
    pub fn lose(&self, number: BatchNumber) {
        let mut state = self.state.lock();
        state.current.log.remove(&number.0);
        state.synced.log.remove(&number.0);
    }

    /// Numbers of the batches there are.
    pub fn batches(&self) -> Vec<BatchNumber> {
        self.state.lock().current.log.keys().map(|&number| BatchNumber(number)).collect()
    }

    fn require_rows(&self, since: Losses) -> Result<(), StoreError> {
        if self.checkpoint_losses() == since { Ok(()) } else { Err(StoreError::RowsLost) }
    }

    fn write(&self, writes: impl IntoIterator<Item = Write>) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.faults.full {
            return Err(StoreError::Full("injected".into()));
        }
        for write in writes {
            state.current.apply(write.clone());
            state.unsynced.push(write);
        }
        Ok(())
    }
}

impl LogStore for MemoryStore {
    fn append(&self, number: BatchNumber, batch: &[u8], sync: bool) -> Result<(), StoreError> {
        self.write([Write::Append(number.0, batch.to_vec())])?;
        if sync { self.sync() } else { Ok(()) }
    }

    fn sync(&self) -> Result<(), StoreError> {
        let delay = self.state.lock().faults.sync_delay;
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        let mut state = self.state.lock();
        if state.faults.sync_fails {
            return Err(StoreError::Failed("injected sync error".into()));
        }
        for write in std::mem::take(&mut state.unsynced) {
            state.synced.apply(write);
        }
        state.synced.watermark = state.current.watermark;
        Ok(())
    }

    fn read_log(&self, from: BatchNumber, visit: &mut BatchVisitor<'_>) -> Result<(), StoreError> {
        let state = self.state.lock();
        for (&number, bytes) in state.current.log.range(from.0..) {
            if visit(BatchNumber(number), bytes).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last_batch(&self) -> Result<Option<BatchNumber>, StoreError> {
        Ok(self.batches().last().copied())
    }

    fn append_part(&self, id: TxnId, part: u32, value: &[u8]) -> Result<(), StoreError> {
        self.write([Write::Part(id, part, value.to_vec())])
    }

    fn read_parts(&self, id: TxnId, from: u32, visit: &mut PartVisitor<'_>) -> Result<(), StoreError> {
        let state = self.state.lock();
        for ((_, part), value) in state.current.parts.range((id, from)..=(id, u32::MAX)) {
            if visit(*part, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn part_ids(&self) -> Result<Vec<TxnId>, StoreError> {
        let mut ids: Vec<TxnId> = self.state.lock().current.parts.keys().map(|(id, _)| *id).collect();
        ids.dedup();
        Ok(ids)
    }

    /// On a full disk too.
    fn drop_parts(&self, ids: &[TxnId]) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        for id in ids {
            state.current.apply(Write::DropParts(*id));
            state.unsynced.push(Write::DropParts(*id));
        }
        Ok(())
    }

    fn truncate(&self, below: BatchNumber) -> Result<(), StoreError> {
        self.write([Write::Truncate(below.0)])
    }

    fn truncate_tail(&self, from: BatchNumber) -> Result<(), StoreError> {
        self.write([Write::TruncateTail(from.0)])
    }

    fn checkpoint_losses(&self) -> Losses {
        self.state.lock().losses
    }

    fn checkpoint_write(&self, since: Losses, changes: &[CheckpointChange]) -> Result<(), StoreError> {
        self.require_rows(since)?;
        self.write(
            changes
                .iter()
                .map(|change| Write::Checkpoint(change.tree, change.key.clone(), change.value.clone())),
        )
    }

    fn checkpoint_flush(&self, since: Losses) -> Result<(), StoreError> {
        self.require_rows(since)?;
        self.sync()
    }

    fn checkpoint_get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state.lock().current.checkpoint.get(&(tree.0, key.to_vec())).cloned())
    }

    fn checkpoint_scan(
        &self,
        low: Option<&CheckpointKey>,
        high: Option<&CheckpointKey>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), StoreError> {
        let place = |key: &CheckpointKey| (key.0.0, key.1.clone());
        let low = low.map_or(Bound::Unbounded, |key| Bound::Included(place(key)));
        let high = high.map_or(Bound::Unbounded, |key| Bound::Excluded(place(key)));
        let state = self.state.lock();
        for ((tree, key), value) in state.current.checkpoint.range((low, high)) {
            if visit(TreeId(*tree), key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn checkpoint_drop(&self, tree: TreeId) -> Result<(), StoreError> {
        self.write([Write::CheckpointDrop(tree)])
    }

    fn checkpoint_cuts(&self) -> Result<Vec<CheckpointKey>, StoreError> {
        let state = self.state.lock();
        let rows = &state.current.checkpoint;
        let step = (rows.len() / 8).max(1);
        Ok(rows.keys().step_by(step).skip(1).map(|(tree, key)| (TreeId(*tree), key.clone())).collect())
    }

    fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state.lock().current.meta.get(key).cloned())
    }

    fn meta_put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.write([])?;
        self.sync()?;
        let mut state = self.state.lock();
        state.current.meta.insert(key.to_owned(), value.to_vec());
        state.synced.meta.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        Ok(self.state.lock().current.watermark)
    }

    fn put_watermark(&self, watermark: Watermark, sync: bool) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.faults.full {
            return Err(StoreError::Full("injected".into()));
        }
        state.current.watermark = Some(watermark);
        if sync && state.faults.sync_fails {
            return Err(StoreError::Failed("injected sync error".into()));
        }
        if sync {
            state.synced.watermark = Some(watermark);
        }
        Ok(())
    }
}
