//! Snapshots: the database as of one epoch, read in pages.
//!
//! A snapshot registers, then asks for an advance of the epoch: the closed epoch is what it reads. A
//! commit of a later epoch entered after the advance, so it sees the registration and keeps the
//! before-images of what it changes. Snapshots that come while an advance is under way share the next one
//! ([`crate::txn::EpochClock::advance_since`]). Pages are programs on single partitions: a scan holds a
//! partition for one page and is addressed by key, so splits do not disturb it.
//!
//! Versions are collected when a snapshot ends, in slices that queue like everybody else. They
//! are bounded: when they take more than `version_memory_max_bytes`, the oldest snapshots are
//! cancelled, and whoever holds them learns it at the next read (SQLSTATE 72000).

mod registered;

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use std::sync::{Arc, Weak};

use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use registered::{Registered, SnapshotState, Trees};

use crate::engine::{Shared, SubmitOptions, submit_on};
use crate::id::{Epoch, PartitionId, TreeId};
use crate::partition::{ClaimSet, CollectFrom, PartitionRef, RoutingTable};
use crate::program::{Program, Stop};
use crate::storage::KeyBuf;
use crate::submission::Submission;
use crate::table::TableMeta;
use crate::txn::Txn;

/// Who reads which past.
pub(crate) struct Snapshots {
    /// Read at every commit point of a writer; changes when a snapshot comes or goes.
    active: CachePadded<AtomicUsize>,
    /// How many of them belong to interactive transactions, which read index entries, too.
    transactions: CachePadded<AtomicUsize>,
    /// The newest registered epoch, which tells what images are worth keeping; the greatest
    /// number there is while a snapshot registers.
    newest: AtomicU64,
    /// The trees whose rows any of them reads: what [`Trees`] says of all of them together.
    wanted: AtomicU64,
    registered: Mutex<Registered>,
    /// Partitions that hold old versions.
    with_versions: Mutex<FxHashMap<PartitionId, PartitionRef>>,
    /// What all old versions take, but for the last bytes each thread has not reported yet.
    bytes: AtomicI64,
    bytes_max: i64,
}

/// A row of `archipel.snapshots`.
#[derive(Clone, Debug)]
pub struct SnapshotView {
    pub epoch: Epoch,
    /// When it was taken, in microseconds since 2000-01-01 UTC.
    pub opened_micros: i64,
    /// Who holds it, as told to [`crate::Engine::snapshot_for`]; 0 is nobody in particular.
    pub holder: u64,
    pub cancelled: bool,
}

impl Snapshots {
    pub fn new(bytes_max: i64) -> Self {
        Self {
            active: CachePadded::default(),
            transactions: CachePadded::default(),
            newest: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            registered: Mutex::default(),
            with_versions: Mutex::default(),
            bytes: AtomicI64::new(0),
            bytes_max,
        }
    }

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

    /// What a commit that found a snapshot may take for the newest one.
    #[inline]
    pub fn newest(&self) -> Epoch {
        Epoch(self.newest.load(Ordering::SeqCst))
    }

    /// The trees of whose rows a commit that found a snapshot must keep before-images.
    #[inline]
    pub fn wanted(&self) -> Trees {
        Trees(self.wanted.load(Ordering::SeqCst))
    }

    fn register(&self, shared: &Shared, holder: u64, transaction: bool) -> Arc<SnapshotState> {
        let from = self.announce(shared.epochs.current(), transaction);
        // Without the lock, so that others who come meanwhile share the next advance.
        let epoch = shared.epochs.advance_since();
        self.admit(from, epoch, (shared.clock.wall_micros(), holder), transaction)
    }

    /// From here on every commit keeps before-images of all it changes. The epoch that will be read is
    /// `from`, which is open, or a later one: nobody collects what that needs.
    fn announce(&self, from: Epoch, transaction: bool) -> Epoch {
        let mut registered = self.registered.lock();
        self.active.fetch_add(1, Ordering::SeqCst);
        self.transactions.fetch_add(usize::from(transaction), Ordering::SeqCst);
        *registered.coming.entry(from).or_default() += 1;
        // A commit of a later epoch enters after the advance, so it finds this or the epoch.
        self.tell(&registered);
        from
    }

    /// The epoch of one that was announced is known.
    fn admit(
        &self,
        from: Epoch,
        epoch: Epoch,
        (opened_micros, holder): (i64, u64),
        transaction: bool,
    ) -> Arc<SnapshotState> {
        let trees = AtomicU64::new(Trees::ALL.0);
        let cancelled = AtomicBool::new(false);
        let mut registered = self.registered.lock();
        registered.numbered += 1;
        let number = registered.numbered;
        let state = SnapshotState { epoch, number, opened_micros, holder, transaction, trees, cancelled };
        let state = Arc::new(state);
        registered.came(from);
        registered.states.insert((epoch, number), state.clone());
        registered.count(Trees::ALL, true);
        self.tell(&registered);
        state
    }

    /// Whether old versions may go now: the oldest snapshot is another one.
    fn unregister(&self, state: &Arc<SnapshotState>) -> bool {
        let mut registered = self.registered.lock();
        let oldest = registered.oldest();
        if registered.states.remove(&(state.epoch, state.number)).is_none() {
            return false;
        }
        registered.count(Trees(state.trees.load(Ordering::SeqCst)), false);
        self.tell(&registered);
        self.transactions.fetch_sub(usize::from(state.transaction), Ordering::SeqCst);
        self.active.fetch_sub(1, Ordering::SeqCst);
        registered.oldest() != oldest
    }

    /// From now on a snapshot reads rows of these trees only.
    fn narrow(&self, state: &SnapshotState, trees: Trees) {
        // The lock keeps out a registration, which wants all there is.
        let mut registered = self.registered.lock();
        let before = state.trees.fetch_and(trees.0, Ordering::SeqCst);
        if registered.states.contains_key(&(state.epoch, state.number)) {
            registered.count(Trees(before & !trees.0), false);
            self.tell(&registered);
        }
    }

    /// Tells commits what to keep: everything, while somebody does not know the epoch yet.
    fn tell(&self, registered: &Registered) {
        let newest = registered.states.keys().next_back().map_or(0, |(epoch, _)| epoch.0);
        let (newest, wanted) = match registered.coming.is_empty() {
            true => (newest, registered.trees()),
            false => (u64::MAX, Trees::ALL),
        };
        self.newest.store(newest, Ordering::SeqCst);
        self.wanted.store(wanted.0, Ordering::SeqCst);
    }

    /// The oldest registered snapshot, or an epoch before that of one that is being registered.
    pub fn oldest(&self) -> Option<Epoch> {
        self.registered.lock().oldest()
    }

    pub fn registered(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    pub fn views(&self) -> Vec<SnapshotView> {
        let registered = self.registered.lock();
        let view = |state: &Arc<SnapshotState>| SnapshotView {
            epoch: state.epoch,
            opened_micros: state.opened_micros,
            holder: state.holder,
            cancelled: state.cancelled.load(Ordering::Relaxed),
        };
        registered.states.values().map(view).collect()
    }

    /// What old versions take, in bytes.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed).max(0)
    }

    /// Accounts for versions kept or collected.
    pub fn add_bytes(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Remembers that a partition holds old versions.
    pub fn note_versions(&self, partition: PartitionRef) {
        self.with_versions.lock().insert(partition.id, partition);
    }

    fn take_partitions(&self) -> Vec<PartitionRef> {
        let mut partitions: Vec<_> = std::mem::take(&mut *self.with_versions.lock()).into_values().collect();
        partitions.sort_unstable_by_key(|partition| partition.id);
        partitions
    }

    /// Ends the snapshots of the oldest epoch, whoever holds them: their next read is refused.
    fn cancel_oldest(&self) -> Option<Epoch> {
        let states: Vec<Arc<SnapshotState>> = {
            let registered = self.registered.lock();
            let oldest = registered.states.first_key_value()?.1.epoch;
            let of_it = registered.states.range((oldest, 0)..=(oldest, u64::MAX));
            of_it.map(|(_, state)| state.clone()).collect()
        };
        for state in &states {
            // Before its images may go: whoever reads later under a claim sees this first.
            state.cancelled.store(true, Ordering::SeqCst);
            self.unregister(state);
        }
        states.first().map(|state| state.epoch)
    }
}

/// Ends the oldest snapshots while old versions take more than they may.
pub(crate) fn bound_versions(shared: &Arc<Shared>) {
    if shared.snapshots.bytes() <= shared.snapshots.bytes_max {
        return;
    }
    if let Some(epoch) = shared.snapshots.cancel_oldest() {
        tracing::warn!(
            epoch = epoch.0,
            "old row versions exceed archipel.max_version_memory: cancelled the oldest snapshot"
        );
        collect(shared);
    }
}

/// Lets go of the versions nobody needs any more.
fn collect(shared: &Arc<Shared>) {
    shared.references.collect(|| shared.snapshots.oldest());
    for partition in shared.snapshots.take_partitions() {
        drop(submit_on(shared, CollectVersions { partition, from: None }, SubmitOptions::default()));
    }
}

/// A place among those who read the past. Dropping it lets old versions go.
pub(crate) struct Registration {
    /// Transactions parked inside the engine hold registrations: they must not hold the engine.
    shared: Weak<Shared>,
    state: Arc<SnapshotState>,
}

impl Registration {
    fn new(shared: &Arc<Shared>, holder: u64, transaction: bool) -> Arc<Self> {
        let state = shared.snapshots.register(shared, holder, transaction);
        Arc::new(Self { shared: Arc::downgrade(shared), state })
    }

    /// For a transaction, whose reads go through indexes.
    pub fn of_transaction(shared: &Arc<Shared>, holder: u64) -> Arc<Self> {
        Self::new(shared, holder, true)
    }

    pub fn epoch(&self) -> Epoch {
        self.state.epoch
    }

    /// Says that from now on no rows but those of these tables are read through it.
    pub fn narrow(&self, tables: &[TreeId]) {
        if let Some(shared) = self.shared.upgrade() {
            shared.snapshots.narrow(&self.state, Trees::of(tables.iter().copied()));
        }
    }

    /// See [`Snapshot::is_cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.state.cancelled.load(Ordering::SeqCst)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade()
            && shared.snapshots.unregister(&self.state)
        {
            collect(&shared);
        }
    }
}

/// The database as of one epoch. Dropping it lets old versions go.
pub struct Snapshot {
    shared: Arc<Shared>,
    registration: Arc<Registration>,
}

impl Snapshot {
    pub(crate) fn new(shared: &Arc<Shared>, holder: u64) -> Self {
        Self::of(shared, Registration::new(shared, holder, false))
    }

    /// What an interactive transaction sees.
    pub(crate) fn of(shared: &Arc<Shared>, registration: Arc<Registration>) -> Self {
        Self { shared: shared.clone(), registration }
    }

    /// What keeps it.
    pub(crate) fn registration(&self) -> Arc<Registration> {
        self.registration.clone()
    }

    /// Everything committed in this epoch or before is visible, nothing else. A reply made
    /// from the snapshot depends on it.
    pub fn epoch(&self) -> Epoch {
        self.registration.epoch()
    }

    /// Says that from now on only rows of these tables are read through this snapshot: no other
    /// table's old rows are kept for it, and scans of one are refused ([`Stop::ConcurrentUpdate`]).
    /// Snapshots of transactions stay as they are.
    pub fn narrow(&self, tables: &[Arc<TableMeta>]) {
        let state = &self.registration.state;
        if !state.transaction {
            self.shared.snapshots.narrow(state, Trees::of(tables.iter().map(|table| table.def.id)));
        }
    }

    /// Whether it was ended because old versions took too much memory. Certain only under the
    /// claim of what is to be read: check there, before reading.
    pub fn is_cancelled(&self) -> bool {
        self.registration.is_cancelled()
    }

    /// Reads up to `limit` rows of a table, and about [`PAGE_BYTES_MAX`], from `low` (inclusive) to `high` (exclusive),
    /// ascending. The page says where to go on. A cancelled snapshot answers
    /// [`Stop::SnapshotTooOld`].
    pub fn scan(
        &self,
        table: &Arc<TableMeta>,
        low: &[u8],
        high: Option<&[u8]>,
        limit: usize,
    ) -> Submission<ScanPage> {
        self.scan_into(table, low, high, limit, PageRows::default())
    }

    /// The same, and the rows come where those of a page already read were: a page of its own
    /// each time would be fresh memory that an executor has the kernel clear.
    pub fn scan_into(
        &self,
        table: &Arc<TableMeta>,
        low: &[u8],
        high: Option<&[u8]>,
        limit: usize,
        room: PageRows,
    ) -> Submission<ScanPage> {
        let page = ScanPage {
            table: table.clone(),
            state: self.registration.state.clone(),
            low: KeyBuf::from_slice(low),
            high: high.map(KeyBuf::from_slice),
            limit,
            asked_nanos: self.shared.clock.monotonic_nanos(),
            rows: room,
            next: None,
            waited_nanos: 0,
            held_nanos: 0,
        };
        submit_on(&self.shared, page, SubmitOptions { read_only: true, ..SubmitOptions::default() })
    }
}

/// A page that has this much ends: the partition is held while it is copied.
pub const PAGE_BYTES_MAX: usize = 128 << 10;

/// Rows in one piece of memory: a page is copied under a claim, which is no time to allocate
/// row by row.
#[derive(Default)]
pub struct PageRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl PageRows {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The rows in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.bytes[begin..end])
    }

    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// One page of a snapshot's scan.
pub struct ScanPage {
    table: Arc<TableMeta>,
    state: Arc<SnapshotState>,
    low: KeyBuf,
    high: Option<KeyBuf>,
    limit: usize,
    asked_nanos: u64,
    /// In ascending order of their storage keys.
    pub rows: PageRows,
    /// Where the next page starts; `None`: this was the last one.
    pub next: Option<KeyBuf>,
    /// How long the page waited for its partition and an executor, in nanoseconds.
    pub waited_nanos: u64,
    /// How long copying it took them.
    pub held_nanos: u64,
}

impl Program for ScanPage {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        if !self.table.is_reference() {
            claims.add_point(self.table.group(), &self.low);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let began = txn.shared.clock.monotonic_nanos();
        self.waited_nanos = began.saturating_sub(self.asked_nanos);
        self.rows.clear();
        self.next = None;
        if let Some(now) = txn.table(self.table.def.id)
            && now.version != self.table.version
            && now.def.columns == self.table.def.columns
            && now.def.key == self.table.def.key
        {
            // Only its place has changed, or its indexes: the rows are what they were.
            self.table = now;
        }
        let Self { table, state, low, high, limit, rows, next, .. } = self;
        if state.cancelled.load(Ordering::SeqCst) {
            return Err(Stop::SnapshotTooOld);
        }
        if !Trees(state.trees.load(Ordering::SeqCst)).has(table.def.id) {
            // Its old rows were not kept.
            return Err(Stop::ConcurrentUpdate);
        }
        let high_bound = high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if high.as_ref().is_some_and(|high| high <= low) {
            return Ok(());
        }
        let end =
            txn.scan_at(table, state.epoch, Bound::Included(&low[..]), high_bound, &mut |key, row| {
                if rows.len() >= *limit || rows.bytes.len() >= PAGE_BYTES_MAX {
                    *next = Some(KeyBuf::from_slice(key));
                    return ControlFlow::Break(());
                }
                rows.push(row);
                ControlFlow::Continue(())
            })?;
        if next.is_none()
            && let Some(end) = end
            && high.as_ref().is_none_or(|high| end < *high)
        {
            *next = Some(end);
        }
        self.held_nanos = txn.shared.clock.monotonic_nanos().saturating_sub(began);
        Ok(())
    }
}

/// Keys whose versions are looked at under one claim: some tens of microseconds.
const COLLECTED_KEYS_MAX: usize = 512;

/// Drops versions of one partition that no snapshot needs any more, slice by slice.
struct CollectVersions {
    partition: PartitionRef,
    /// The tree and key to go on from.
    from: Option<CollectFrom>,
}

impl Program for CollectVersions {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        if let Some((group, low)) = routing.range_of(self.partition.id) {
            claims.add_point(group, &low);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        if let Some(from) = txn.collect_versions(self.from.take(), COLLECTED_KEYS_MAX) {
            // Behind whatever waits for the partition now.
            let next = CollectVersions { partition: self.partition, from: Some(from) };
            drop(submit_on(txn.shared, next, SubmitOptions::default()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
