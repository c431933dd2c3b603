//! Snapshots: the database as of one epoch, read in pages.
//!
//! A snapshot registers, then advances the epoch: the closed epoch is what it reads. A commit
//! of a later epoch entered after the advance, so it sees the registration and keeps the
//! before-images of what it changes. Pages are programs on single partitions: a scan holds a
//! partition for one page and is addressed by key, so splits do not disturb it.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

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
    /// How many of them belong to interactive transactions, which read index entries, too.
    transactions: CachePadded<AtomicUsize>,
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

    /// Whether a commit must keep before-images of index entries.
    #[inline]
    pub fn any_transaction(&self) -> bool {
        self.transactions.load(Ordering::SeqCst) > 0
    }

    fn register(&self, shared: &Shared, transaction: bool) -> Epoch {
        let mut registered = self.registered.lock();
        self.active.fetch_add(1, Ordering::SeqCst);
        self.transactions.fetch_add(usize::from(transaction), Ordering::SeqCst);
        // Under the lock: nobody collects versions between the registration and the epoch.
        let epoch = shared.epochs.advance();
        *registered.entry(epoch).or_default() += 1;
        epoch
    }

    /// Whether old versions may go now: the oldest snapshot is another one.
    fn unregister(&self, epoch: Epoch, transaction: bool) -> bool {
        let mut registered = self.registered.lock();
        let oldest = registered.keys().next().copied();
        if let Some(count) = registered.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                registered.remove(&epoch);
            }
        }
        self.transactions.fetch_sub(usize::from(transaction), Ordering::SeqCst);
        self.active.fetch_sub(1, Ordering::SeqCst);
        registered.keys().next().copied() != oldest
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

/// A place among those who read the past. Dropping it lets old versions go.
pub(crate) struct Registration {
    /// Transactions parked inside the engine hold registrations: they must not hold the engine.
    shared: Weak<Shared>,
    epoch: Epoch,
    transaction: bool,
}

impl Registration {
    fn new(shared: &Arc<Shared>, transaction: bool) -> Arc<Self> {
        let epoch = shared.snapshots.register(shared, transaction);
        Arc::new(Self { shared: Arc::downgrade(shared), epoch, transaction })
    }

    /// For a transaction, whose reads go through indexes.
    pub fn of_transaction(shared: &Arc<Shared>) -> Arc<Self> {
        Self::new(shared, true)
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        if !shared.snapshots.unregister(self.epoch, self.transaction) {
            return;
        }
        let oldest = shared.snapshots.oldest();
        shared.references.collect(oldest);
        for partition in shared.snapshots.take_partitions() {
            drop(submit_on(&shared, CollectVersions { partition }, SubmitOptions::default()));
        }
    }
}

/// The database as of one epoch. Dropping it lets old versions go.
pub struct Snapshot {
    shared: Arc<Shared>,
    registration: Arc<Registration>,
}

impl Snapshot {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self::of(shared, Registration::new(shared, false))
    }

    /// What an interactive transaction sees.
    pub(crate) fn of(shared: &Arc<Shared>, registration: Arc<Registration>) -> Self {
        Self { shared: shared.clone(), registration }
    }

    /// Everything committed in this epoch or before is visible, nothing else. A reply made
    /// from the snapshot depends on it.
    pub fn epoch(&self) -> Epoch {
        self.registration.epoch
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
            epoch: self.registration.epoch,
            low: KeyBuf::from_slice(low),
            high: high.map(KeyBuf::from_slice),
            limit,
            rows: Vec::new(),
            next: None,
        };
        submit_on(&self.shared, page, SubmitOptions { read_only: true, ..SubmitOptions::default() })
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
