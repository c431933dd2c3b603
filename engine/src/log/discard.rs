//! A store that forgets at a kill what was never synced.
//!
//! `kill -9` keeps the page cache, so a server that acknowledged before its sync would pass
//! every crash test that uses nothing else. This wrapper holds each write back in the process
//! until a sync asks for it: what was not synced dies with the process, as in a power cut.

use std::path::Path;
use std::sync::Mutex;

use super::batch::{self, BatchNumber};
use super::store::{
    BatchVisitor, CheckpointChange, CheckpointKey, LogStore, Losses, PartVisitor, RowVisitor, Space,
    StoreError,
};
use super::watermark::Watermark;
use crate::id::{TreeId, TxnId};

enum Held {
    Append(BatchNumber, Vec<u8>),
    Truncate(BatchNumber),
    TruncateTail(BatchNumber),
    Part(TxnId, u32, Vec<u8>),
    DropParts(Vec<TxnId>),
    Checkpoint(Losses, Vec<CheckpointChange>),
    CheckpointDrop(TreeId),
}

/// The wrapper.
pub struct DiscardUnsynced<S> {
    store: S,
    held: Mutex<Vec<Held>>,
}

impl<S: LogStore> DiscardUnsynced<S> {
    /// Wraps a store.
    pub fn new(store: S) -> Self {
        DiscardUnsynced { store, held: Mutex::new(Vec::new()) }
    }

    fn hold(&self, write: Held) {
        self.lock().push(write);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Hands everything held to the store, in order; what failed stays held.
    fn release(&self) -> Result<(), StoreError> {
        let mut held = self.lock();
        let mut done = 0;
        let mut result = Ok(());
        for write in held.iter() {
            result = match write {
                Held::Append(number, bytes) => self.store.append(*number, bytes, false),
                Held::Truncate(below) => self.store.truncate(*below),
                Held::TruncateTail(from) => self.store.truncate_tail(*from),
                Held::Part(id, part, value) => self.store.append_part(*id, *part, value),
                Held::DropParts(ids) => self.store.drop_parts(ids),
                Held::Checkpoint(since, changes) => match self.store.checkpoint_write(*since, changes) {
                    // The flush will say so, to whom it concerns.
                    Err(StoreError::RowsLost) => Ok(()),
                    written => written,
                },
                Held::CheckpointDrop(tree) => self.store.checkpoint_drop(*tree),
            };
            if result.is_err() {
                break;
            }
            done += 1;
        }
        held.drain(..done);
        result
    }
}

impl<S: LogStore> LogStore for DiscardUnsynced<S> {
    fn append(&self, number: BatchNumber, bytes: &[u8], sync: bool) -> Result<(), StoreError> {
        debug_assert!(batch::check(bytes).is_some());
        if sync {
            self.release()?;
            return self.store.append(number, bytes, true);
        }
        self.hold(Held::Append(number, bytes.to_vec()));
        Ok(())
    }

    fn nearly_full(&self) -> bool {
        self.store.nearly_full()
    }

    fn space(&self) -> Option<Space> {
        self.store.space()
    }

    fn append_part(&self, id: TxnId, part: u32, value: &[u8]) -> Result<(), StoreError> {
        self.hold(Held::Part(id, part, value.to_vec()));
        Ok(())
    }

    fn read_parts(&self, id: TxnId, from: u32, visit: &mut PartVisitor<'_>) -> Result<(), StoreError> {
        self.release()?;
        self.store.read_parts(id, from, visit)
    }

    fn part_ids(&self) -> Result<Vec<TxnId>, StoreError> {
        self.release()?;
        self.store.part_ids()
    }

    /// Those that are held back go with it, and take no room.
    fn drop_parts(&self, ids: &[TxnId]) -> Result<(), StoreError> {
        self.lock().retain(|held| !matches!(held, Held::Part(of, ..) if ids.contains(of)));
        self.hold(Held::DropParts(ids.to_vec()));
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.release()?;
        self.store.sync()
    }

    fn read_log(&self, from: BatchNumber, visit: &mut BatchVisitor<'_>) -> Result<(), StoreError> {
        self.release()?;
        self.store.read_log(from, visit)
    }

    fn last_batch(&self) -> Result<Option<BatchNumber>, StoreError> {
        self.release()?;
        self.store.last_batch()
    }

    fn truncate(&self, below: BatchNumber) -> Result<(), StoreError> {
        self.hold(Held::Truncate(below));
        Ok(())
    }

    fn truncate_tail(&self, from: BatchNumber) -> Result<(), StoreError> {
        self.hold(Held::TruncateTail(from));
        Ok(())
    }

    fn checkpoint_losses(&self) -> Losses {
        self.store.checkpoint_losses()
    }

    fn checkpoint_write(&self, since: Losses, changes: &[CheckpointChange]) -> Result<(), StoreError> {
        self.hold(Held::Checkpoint(since, changes.to_vec()));
        Ok(())
    }

    fn checkpoint_flush(&self, since: Losses) -> Result<(), StoreError> {
        self.release()?;
        self.store.checkpoint_flush(since)
    }

    fn checkpoint_get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.release()?;
        self.store.checkpoint_get(tree, key)
    }

    fn checkpoint_scan(
        &self,
        low: Option<&CheckpointKey>,
        high: Option<&CheckpointKey>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.release()?;
        self.store.checkpoint_scan(low, high, visit)
    }

    fn checkpoint_drop(&self, tree: TreeId) -> Result<(), StoreError> {
        self.hold(Held::CheckpointDrop(tree));
        Ok(())
    }

    fn checkpoint_cuts(&self) -> Result<Vec<CheckpointKey>, StoreError> {
        self.store.checkpoint_cuts()
    }

    fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.meta_get(key)
    }

    fn meta_put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.release()?;
        self.store.meta_put(key, value)
    }

    fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        self.store.watermark()
    }

    /// It may come to the disk at any time, with or without a sync.
    fn put_watermark(&self, watermark: Watermark, sync: bool) -> Result<(), StoreError> {
        self.store.put_watermark(watermark, sync)
    }

    fn copy_to(&self, directory: &Path) -> Result<(), StoreError> {
        self.release()?;
        self.store.copy_to(directory)
    }
}
