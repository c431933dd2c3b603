//! Snapshots: the database as of one epoch, read in pages.
//!
//! A snapshot registers, then advances the epoch: the closed epoch is what it reads. A commit
//! of a later epoch entered after the advance, so it sees the registration and keeps the
//! before-images of what it changes. Pages are programs on single partitions: a scan holds a
//! partition for one page and is addressed by key, so splits do not disturb it.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use crate::engine::{Shared, SubmitOptions, submit_on};
use crate::id::{Epoch, PartitionId};
use crate::partition::{ClaimSet, PartitionRef, RoutingTable};
use crate::program::{Program, Stop};
use crate::storage::KeyBuf;
use crate::submission::Submission;
use crate::table::TableMeta;
use crate::txn::Txn;

/// Who reads which past.
#[derive(Default)]
pub(crate) struct Snapshots {
    /// Read at every commit point of a writer; changes when a snapshot comes or goes.
    active: CachePadded<AtomicUsize>,
    registered: Mutex<BTreeMap<Epoch, usize>>,
    /// Partitions that hold old versions.
    with_versions: Mutex<FxHashSet<PartitionId>>,
    partitions: Mutex<Vec<PartitionRef>>,
}

impl Snapshots {
    /// Whether a commit must keep before-images.
    #[inline]
    pub fn any(&self) -> bool {
        self.active.load(Ordering::SeqCst) > 0
    }

    pub fn register(&self, shared: &Shared) -> Epoch {
        let mut registered = self.registered.lock();
        self.active.fetch_add(1, Ordering::SeqCst);
        // Under the lock: nobody collects versions between the registration and the epoch.
        let epoch = shared.epochs.advance();
        *registered.entry(epoch).or_default() += 1;
        epoch
    }

    fn unregister(&self, epoch: Epoch) {
        let mut registered = self.registered.lock();
        if let Some(count) = registered.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                registered.remove(&epoch);
            }
        }
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// The oldest registered snapshot.
    pub fn oldest(&self) -> Option<Epoch> {
        self.registered.lock().keys().next().copied()
    }

    pub fn registered(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Remembers that a partition holds old versions.
    pub fn note_versions(&self, partition: PartitionRef) {
        if self.with_versions.lock().insert(partition.id) {
            self.partitions.lock().push(partition);
        }
    }

    fn take_partitions(&self) -> Vec<PartitionRef> {
        let mut noted = self.with_versions.lock();
        noted.clear();
        std::mem::take(&mut *self.partitions.lock())
    }
}

/// The database as of one epoch. Dropping it lets old versions go.
pub struct Snapshot {
    shared: Arc<Shared>,
    epoch: Epoch,
}

impl Snapshot {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), epoch: shared.snapshots.register(shared) }
    }

    /// Everything committed in this epoch or before is visible, nothing else. A reply made
    /// from the snapshot depends on it.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Reads up to about `limit` rows of a table from `low` (inclusive) to `high` (exclusive),
    /// ascending. The page says where to go on.
    pub fn scan(
        &self,
        table: &Arc<TableMeta>,
        low: &[u8],
        high: Option<&[u8]>,
        limit: usize,
    ) -> Submission<ScanPage> {
        let page = ScanPage {
            table: table.clone(),
            epoch: self.epoch,
            low: KeyBuf::from_slice(low),
            high: high.map(KeyBuf::from_slice),
            limit,
            rows: Vec::new(),
            next: None,
        };
        submit_on(&self.shared, page, SubmitOptions { read_only: true, ..SubmitOptions::default() })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shared.snapshots.unregister(self.epoch);
        let oldest = self.shared.snapshots.oldest();
        self.shared.references.collect(oldest);
        for partition in self.shared.snapshots.take_partitions() {
            drop(submit_on(&self.shared, CollectVersions { partition }, SubmitOptions::default()));
        }
    }
}

/// A storage key and its row.
pub type PageRow = (Box<[u8]>, Box<[u8]>);

/// One page of a snapshot's scan.
pub struct ScanPage {
    table: Arc<TableMeta>,
    epoch: Epoch,
    low: KeyBuf,
    high: Option<KeyBuf>,
    limit: usize,
    /// Storage keys and rows, ascending.
    pub rows: Vec<PageRow>,
    /// Where the next page starts; `None`: this was the last one.
    pub next: Option<KeyBuf>,
}

impl Program for ScanPage {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        if !self.table.is_reference() {
            claims.add_point(self.table.group(), &self.low);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.rows.clear();
        self.next = None;
        let Self { table, epoch, low, high, limit, rows, next } = self;
        let high_bound = high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if high.as_ref().is_some_and(|high| high <= low) {
            return Ok(());
        }
        let end = txn.scan_at(table, *epoch, Bound::Included(&low[..]), high_bound, &mut |key, row| {
            if rows.len() >= *limit {
                *next = Some(KeyBuf::from_slice(key));
                return ControlFlow::Break(());
            }
            rows.push((Box::from(key), Box::from(row)));
            ControlFlow::Continue(())
        })?;
        if next.is_none()
            && let Some(end) = end
            && high.as_ref().is_none_or(|high| end < *high)
        {
            *next = Some(end);
        }
        Ok(())
    }
}

/// Drops the versions of one partition that no snapshot needs any more.
struct CollectVersions {
    partition: PartitionRef,
}

impl Program for CollectVersions {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        let low = routing
            .routes(self.partition.group)
            .iter()
            .find(|route| route.partition() == self.partition.id)
            .map(|route| route.low.clone());
        if let Some(low) = low {
            claims.add_point(self.partition.group, &low);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        txn.collect_versions();
        Ok(())
    }
}
