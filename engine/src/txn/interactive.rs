//! BEGIN … COMMIT: statements as one-shot bodies under a transaction id.
//!
//! Each statement's writes stay beside the trees under row locks; this state remembers, by
//! key, what was locked and written. COMMIT and ROLLBACK are programs that claim every
//! partition of those keys at once, so nobody sees half of a transaction. Keys, not
//! partitions, are remembered: a split between two statements moves the side tables along.
//!
//! - [`ending`]   these programs    - [`slices`]  COMMIT and ROLLBACK of many changes
//! - [`settle`]   images of writers that have ended become rows, or nothing

mod ending;
mod settle;
mod slices;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

pub use self::ending::{Commit, Rollback, RollbackTo};
pub(super) use self::settle::Settled;
pub(crate) use self::settle::SettledTo;
use super::images::Images;
use super::limits::{KeptWeight, Weight};
use super::{CopyReader, Isolation, OverlayUndo, Place, ReadSet, Txn, Writer};
use crate::client::Client;
use crate::engine::Shared;
use crate::executor::{Finish, FinishedAs};
use crate::id::{Epoch, GroupId, PartitionId, TreeId, TxnId};
use crate::locks::Notes;
use crate::partition::{ClaimSet, PartitionRef, RoutingTable};
use crate::program::Stop;
use crate::snapshot::{Registration, Snapshot};
use crate::table::TableMeta;

/// Statements run.
const ACTIVE: u8 = 0;
/// COMMIT or ROLLBACK has begun: a statement that is still on its way is refused.
const ENDING: u8 = 1;
/// Over, with no lock left.
const ENDED: u8 = 2;

/// Trees that a transaction made, if there are any: shared with its statements, for there may be thousands.
pub(super) type OwnTrees = Option<Arc<FxHashSet<TreeId>>>;

/// What the engine keeps of an interactive transaction.
pub(crate) struct InteractiveState {
    pub id: TxnId,
    /// What those know of it who meet its images.
    pub writer: Arc<Writer>,
    /// Microseconds since 2000-01-01 UTC: `now()` of the whole transaction.
    pub started_at: i64,
    isolation: Isolation,
    /// It promised not to write, so what it reads needs no check at its commit.
    read_only: bool,
    phase: AtomicU8,
    /// Whether somebody ends it, or takes it back to a savepoint: see [`ending`].
    end: AtomicU8,
    wrote_references: AtomicBool,
    notes: Mutex<Vec<OverlayUndo>>,
    /// Of the notes.
    weight: KeptWeight,
    /// Set with the first statement, beyond READ COMMITTED.
    snapshot_epoch: OnceLock<Epoch>,
    snapshot: Mutex<Option<Arc<Registration>>>,
    reads: Mutex<ReadSet>,
    /// What it holds of tables and advisory locks.
    pub objects: Notes,
    /// Whose transaction it is.
    pub client: Arc<Client>,
    /// Trees it made, which nobody else knows before its commit.
    own_trees: Mutex<OwnTrees>,
    /// What it read in pages under the locks of somebody else, as it was at first.
    locked_tables: OnceLock<Vec<Arc<TableMeta>>>,
    /// What somebody else has written, over which it reads in pages.
    images: OnceLock<Images>,
}

impl InteractiveState {
    pub fn new(
        id: TxnId,
        started_at: i64,
        isolation: Isolation,
        read_only: bool,
        client: Arc<Client>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            writer: Arc::new(Writer::new(id)),
            started_at,
            isolation,
            read_only,
            phase: AtomicU8::new(ACTIVE),
            end: AtomicU8::new(ending::NOBODYS),
            wrote_references: AtomicBool::new(false),
            notes: Mutex::new(Vec::new()),
            weight: KeptWeight::default(),
            snapshot_epoch: OnceLock::new(),
            snapshot: Mutex::new(None),
            reads: Mutex::new(ReadSet::default()),
            objects: Notes::default(),
            client,
            own_trees: Mutex::new(None),
            locked_tables: OnceLock::new(),
            images: OnceLock::new(),
        })
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Takes the snapshot, if the isolation asks for one and it is not there yet.
    pub fn take_snapshot(&self, shared: &Arc<Shared>) {
        if self.isolation == Isolation::ReadCommitted || self.snapshot_epoch.get().is_some() {
            return;
        }
        let mut snapshot = self.snapshot.lock();
        if snapshot.is_none() {
            let registration = Registration::of_transaction(shared, self.client.number() as u64);
            let _ = self.snapshot_epoch.set(registration.epoch());
            *snapshot = Some(registration);
        }
    }

    pub fn snapshot_epoch(&self) -> Option<Epoch> {
        self.snapshot_epoch.get().copied()
    }

    /// What it sees, for others to see the same: its snapshot, or one of now if it keeps none.
    pub fn export(&self, shared: &Arc<Shared>) -> Snapshot {
        self.take_snapshot(shared);
        let own = self.snapshot.lock().clone();
        let holder = self.client.number() as u64;
        Snapshot::of(shared, own.unwrap_or_else(|| Registration::of_transaction(shared, holder)))
    }

    /// Sees what somebody else sees from now on; false if it keeps no snapshot, or has its own.
    fn adopt(&self, snapshot: &Snapshot) -> bool {
        let mut own = self.snapshot.lock();
        if self.isolation == Isolation::ReadCommitted || own.is_some() {
            return false;
        }
        let registration = snapshot.registration();
        let _ = self.snapshot_epoch.set(registration.epoch());
        *own = Some(registration);
        true
    }

    /// Whether its snapshot was ended by others. Certain once what was read is held.
    pub fn snapshot_is_cancelled(&self) -> bool {
        self.snapshot.lock().as_ref().is_some_and(|snapshot| snapshot.is_cancelled())
    }

    /// What keeps its snapshot, if it has one.
    pub fn registration(&self) -> Option<Arc<Registration>> {
        self.snapshot.lock().clone()
    }

    pub fn own_trees(&self) -> OwnTrees {
        self.own_trees.lock().clone()
    }

    /// The tables that it reads in pages under the locks of somebody else, as they were when it first did
    /// so: a plan that knows them as such finds them by that each time that it runs.
    pub fn locked_tables(&self, now: impl FnOnce() -> Vec<Arc<TableMeta>>) -> Vec<Arc<TableMeta>> {
        self.locked_tables.get_or_init(now).clone()
    }

    /// What somebody else has written, over which it reads in pages, if that was said.
    pub fn images(&self) -> Option<&Images> {
        self.images.get()
    }

    /// How many changes of rows and row locks it has made in some trees.
    pub fn notes_in(&self, is_meant: impl Fn(TreeId) -> bool) -> usize {
        self.notes.lock().iter().filter(|note| is_meant(note.place.id)).count()
    }

    /// What it did to some trees, by tree and key.
    pub fn keys_in(&self, is_meant: impl Fn(TreeId) -> bool) -> Vec<(Place, Box<[u8]>)> {
        let notes = self.notes.lock();
        let mut keys: Vec<(Place, Box<[u8]>)> = notes
            .iter()
            .filter(|note| is_meant(note.place.id))
            .map(|note| (note.place, note.key.clone()))
            .collect();
        keys.sort_unstable_by(|a, b| (a.0.id, &a.1).cmp(&(b.0.id, &b.1)));
        keys.dedup_by(|a, b| a.0.id == b.0.id && a.1 == b.1);
        keys
    }

    /// What it did to these trees, which are in their order, is settled: there is nothing to undo or to commit
    /// any more.
    fn forget_notes_of(&self, trees: &[TreeId]) {
        self.notes.lock().retain(|note| {
            let settled = trees.binary_search(&note.place.id).is_ok();
            if settled {
                self.weight.subtract(note.weight.into());
            }
            !settled
        });
    }

    /// Whether what its statements read is remembered.
    pub fn tracks_reads(&self) -> bool {
        self.isolation == Isolation::Serializable && !self.read_only
    }

    pub fn reads(&self) -> parking_lot::MutexGuard<'_, ReadSet> {
        self.reads.lock()
    }

    /// Takes over what one statement read.
    pub fn keep_reads(&self, reads: &mut ReadSet) {
        if !reads.is_empty() {
            self.reads.lock().append(reads);
        }
    }

    pub fn is_active(&self) -> bool {
        self.phase.load(Ordering::Acquire) == ACTIVE
    }

    pub fn is_ended(&self) -> bool {
        self.phase.load(Ordering::Acquire) == ENDED
    }

    /// From here on no statement adds a lock.
    fn begin_end(&self) {
        let _notes = self.notes.lock();
        self.phase.store(ENDING, Ordering::Release);
    }

    fn end(&self) {
        self.phase.store(ENDED, Ordering::Release);
        // Its last reader is through: old versions may go.
        let registration = self.snapshot.lock().take();
        drop(registration);
    }

    /// Ends a transaction that holds nothing; false if it holds something. Under the lock of
    /// the notes: a statement that ends at the same time is counted or refused.
    fn end_if_empty(&self) -> bool {
        let notes = self.notes.lock();
        let is_empty = notes.is_empty() && self.end.load(Ordering::Acquire) == ending::NOBODYS;
        if is_empty {
            self.phase.store(ENDED, Ordering::Release);
            self.writer.abort();
        }
        is_empty
    }

    pub fn wrote_references(&self) -> bool {
        self.wrote_references.load(Ordering::Relaxed)
    }

    pub fn set_wrote_references(&self) {
        self.wrote_references.store(true, Ordering::Relaxed);
    }

    /// Takes over what one statement did; false if the transaction has begun to end, so that
    /// the statement must be undone.
    pub fn keep_notes(&self, notes: &mut Vec<OverlayUndo>) -> bool {
        let mut kept = self.notes.lock();
        let active = self.is_active();
        if active {
            notes.iter().for_each(|note| self.weight.add(note.weight.into()));
            kept.append(notes);
        }
        active
    }

    /// What the images that its statements have left will be at its COMMIT.
    pub fn weight(&self) -> Weight {
        self.weight.get()
    }

    pub fn has_notes(&self) -> bool {
        !self.notes.lock().is_empty()
    }

    /// Whether ending it, or going back to its first `from` changes, takes longer than others
    /// should wait for a thread.
    pub fn ends_apart(&self, from: usize) -> bool {
        self.notes.lock().len().saturating_sub(from) > ENDED_ON_THE_SPOT
    }

    /// Whether it has made more than so many changes.
    fn has_more_than(&self, changes: usize) -> bool {
        self.notes.lock().len() > changes
    }

    fn claim_all(&self, from: usize, routing: &RoutingTable, claims: &mut ClaimSet) {
        let notes = self.notes.lock();
        if notes.len().saturating_sub(from) > ENDED_ON_THE_SPOT {
            return claim_partitions(&notes[from..], routing, claims);
        }
        let mut seen: SmallVec<[(GroupId, &[u8]); 8]> = SmallVec::new();
        for note in notes.iter().skip(from) {
            // Long transactions would compare every key with every other: cheap for the keys
            // at hand, and duplicates beyond them cost only their resolution.
            let entry = (note.place.group, &note.key[..]);
            if !seen.iter().rev().take(8).any(|other| *other == entry) {
                seen.push(entry);
                claims.add_point(note.place.group, &note.key);
            }
        }
    }
}

/// A transaction that did more than this ends in slices, or else on a thread of its own.
pub(crate) const ENDED_ON_THE_SPOT: usize = 1_000;

/// A group and the keys from one on, to another if there is an end.
type Covered<'k> = (GroupId, &'k [u8], Option<&'k [u8]>);

/// One key in each partition that many changes lie in, which resolves to the same claims as all of
/// them do.
fn claim_partitions(notes: &[OverlayUndo], routing: &RoutingTable, claims: &mut ClaimSet) {
    let mut claimed: FxHashSet<PartitionId> = FxHashSet::default();
    // Neighbours mostly lie together: the group, the first key and the end of the last one's range.
    let mut last: Option<Covered<'_>> = None;
    for note in notes {
        let group = note.place.group;
        let lies_there = |(of, low, high): Covered<'_>| {
            of == group && low <= &*note.key && high.is_none_or(|high| &*note.key < high)
        };
        if last.is_some_and(lies_there) {
            continue;
        }
        let mut from = routing.routes(group).from(&note.key);
        // A group that is gone has no partition to claim.
        let Some(route) = from.next() else { continue };
        last = Some((group, &route.low[..], from.next().map(|next| &next.low[..])));
        if claimed.insert(route.partition()) {
            claims.add_point(group, &note.key);
        }
    }
}

/// An open interactive transaction. Statements are submitted under it; dropping it without
/// commit rolls it back.
pub struct Interactive {
    pub(crate) state: Arc<InteractiveState>,
    pub(crate) shared: Arc<Shared>,
}

/// A SAVEPOINT of an interactive transaction.
#[derive(Clone, Copy, Debug)]
pub struct InteractiveSavepoint {
    /// How many changes of rows and row locks stay.
    pub(crate) notes: usize,
    /// How many locks on tables and advisory locks stay.
    objects: usize,
}

impl Interactive {
    pub fn id(&self) -> TxnId {
        self.state.id
    }

    /// Whether its COMMIT takes longer than others should wait for a thread.
    pub fn ends_apart(&self) -> bool {
        self.state.ends_apart(0)
    }

    /// Microseconds since 2000-01-01 UTC, when the transaction began.
    pub fn started_at(&self) -> i64 {
        self.state.started_at
    }

    pub fn isolation(&self) -> Isolation {
        self.state.isolation
    }

    /// What a REPEATABLE READ or SERIALIZABLE transaction sees, for scans in pages; taken now if
    /// no statement did before. `None` under READ COMMITTED.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.state.take_snapshot(&self.shared);
        let registration = self.state.snapshot.lock().clone()?;
        Some(Snapshot::of(&self.shared, registration))
    }

    /// Sees what a transaction sees that exported its snapshot ([`crate::client::Client::export_snapshot`]);
    /// false if it keeps no snapshot, or has one of its own.
    pub fn adopt(&self, snapshot: &Snapshot) -> bool {
        self.state.adopt(snapshot)
    }

    /// Takes its snapshot now, through which only rows of these tables will be read: no other table's old
    /// rows are kept for it. `None` under READ COMMITTED, and where it has a snapshot already.
    pub fn take_snapshot_of(&self, tables: &[TreeId]) -> Option<Epoch> {
        if self.state.snapshot_epoch().is_some() {
            return None;
        }
        self.state.take_snapshot(&self.shared);
        let registration = self.state.registration()?;
        registration.narrow(tables);
        Some(registration.epoch())
    }

    /// Reads in pages over what somebody else has written, as if that were its own. The first word
    /// counts.
    pub fn read_over(&self, images: Images) {
        let _ = self.state.images.set(images);
    }

    /// Whether it locked or wrote anything; an empty transaction ends without a program.
    pub fn is_empty(&self) -> bool {
        !self.state.has_notes()
    }

    /// Whether it wrote rows of reference tables: statements that read such tables claim their
    /// partition to see them.
    pub fn wrote_references(&self) -> bool {
        self.state.wrote_references()
    }

    /// Says that it made these trees: its own reads and writes of them need no snapshot.
    pub fn own(&self, trees: impl IntoIterator<Item = TreeId>) {
        let mut trees = trees.into_iter().peekable();
        if trees.peek().is_some() {
            // A statement that runs meanwhile has those of before.
            Arc::make_mut(self.state.own_trees.lock().get_or_insert_default()).extend(trees);
        }
    }

    /// Its view of rows, for a copy of a table.
    pub fn copies(&self) -> CopyReader {
        CopyReader { writer: self.state.id, snapshot: self.state.snapshot_epoch() }
    }

    /// Where it began: going back there undoes all of it, and it stays open.
    pub fn beginning(&self) -> InteractiveSavepoint {
        InteractiveSavepoint { notes: 0, objects: 0 }
    }

    /// Marks a point to return to between statements.
    pub fn savepoint(&self) -> InteractiveSavepoint {
        InteractiveSavepoint { notes: self.state.notes.lock().len(), objects: self.state.objects.mark() }
    }
}

impl Drop for Interactive {
    fn drop(&mut self) {
        if self.state.is_ended() {
            return;
        }
        if self.state.end_if_empty() {
            self.shared.waits.forget(self.state.id);
            let registration = self.state.snapshot.lock().take();
            drop(registration);
            let mut woken = Vec::new();
            self.shared.release_objects(&self.state, &mut woken);
            self.shared.wake(woken);
        } else {
            // A client that disappeared, or a commit that failed: its locks and images go.
            let rollback = Rollback::of(self.state.clone(), &self.shared);
            let options = rollback.options();
            drop(crate::engine::submit_on(&self.shared, rollback, options));
        }
    }
}

impl Txn<'_> {
    /// COMMIT or ROLLBACK of an interactive transaction: settles its images, drops its locks.
    fn finish_interactive(&mut self, state: &Arc<InteractiveState>, commit: bool) -> Result<(), Stop> {
        self.finishing = Some(state.id);
        state.begin_end();
        let mut keys: Vec<(Place, Box<[u8]>)> =
            state.notes.lock().iter().map(|note| (note.place, note.key.clone())).collect();
        keys.sort_unstable_by(|a, b| (a.0.id, &a.1).cmp(&(b.0.id, &b.1)));
        keys.dedup_by(|a, b| a.0.id == b.0.id && a.1 == b.1);
        keys.retain(|(place, _)| !self.is_given_up(place.id));
        if commit && !keys.is_empty() {
            self.reads_hold_at_commit(state)?;
        }
        // Everything is claimed before anything changes.
        for (place, key) in &mut keys {
            match commit {
                true => *place = self.root_of_note(*place, key)?.1,
                // Of a definition that had locked rows, and has put them elsewhere, nothing is left.
                false => match self.partition_of_note(*place, key) {
                    Ok(_) | Err(Stop::Recompile) => {}
                    Err(stop) => return Err(stop),
                },
            }
        }
        if commit {
            self.settle_images(state.id, &keys)?;
        }
        // From here on nothing fails before the commit point but its own checks, which restart
        // the program with the locks untouched: they go after it.
        let how = if commit { FinishedAs::Committed } else { FinishedAs::RolledBack };
        self.worker.scratch.finish = Some(Finish { state: state.clone(), keys, how });
        Ok(())
    }

    /// At COMMIT, with everything claimed that a SERIALIZABLE transaction has read: whether that still holds.
    fn reads_hold_at_commit(&mut self, state: &InteractiveState) -> Result<(), Stop> {
        let Some(snapshot) = state.snapshot_epoch().filter(|_| state.tracks_reads()) else { return Ok(()) };
        let reads = state.reads.lock();
        self.reads_hold(reads.notes(), snapshot)?;
        // Everything read is claimed, so this tells whether the check could be trusted.
        if state.snapshot_is_cancelled() { Err(Stop::SnapshotTooOld) } else { Ok(()) }
    }

    /// The partition of a change, and where its tree is now.
    fn root_of_note(&mut self, place: Place, key: &[u8]) -> Result<(PartitionRef, Place), Stop> {
        let partition = self.partition_of_note(place, key)?;
        if self.root(partition, place).is_ok() {
            return Ok((partition, place));
        }
        let place = self.place_now(place);
        match self.root(partition, place) {
            Ok(_) => Ok((partition, place)),
            Err(_) if self.is_given_up(place.id) => Err(Stop::Restart),
            Err(stop) => Err(stop),
        }
    }

    /// After the commit point of COMMIT or ROLLBACK, before the release: drops the locks.
    pub(super) fn drop_locks(&mut self) {
        let Some(Finish { state, keys, how }) = self.worker.scratch.finish.take() else { return };
        // They stand in the order of their trees and keys, so each root is met once in a row.
        let mut roots: Vec<(PartitionRef, Place)> = Vec::new();
        for (place, key) in keys {
            if let Ok(partition) = self.partition_for(place.group, &key) {
                self.drop_lock(partition, place, &key, state.id);
                if roots.last().is_none_or(|(last, at)| (last.id, *at) != (partition.id, place)) {
                    roots.push((partition, place));
                }
            }
        }
        let roots = roots.into_iter().filter_map(|(partition, place)| self.root_whatever(partition, place));
        roots.for_each(|root| root.unlist(state.id));
        match how {
            FinishedAs::Open(trees) => return state.forget_notes_of(&trees),
            FinishedAs::Decided(roots) => return self.flip(&state, roots),
            FinishedAs::Committed => {
                // One that had nothing may have been ended meanwhile by a client that went.
                if state.writer.decide() {
                    state.writer.commit(self.depends_on);
                }
            }
            FinishedAs::RolledBack => {
                state.writer.abort();
            }
        }
        self.end_transaction(&state);
    }

    /// Nothing of it is left in any partition: the transaction is over.
    pub(super) fn end_transaction(&mut self, state: &Arc<InteractiveState>) {
        state.writer.end();
        state.notes.lock().clear();
        state.end();
        self.shared.waits.forget(state.id);
        let mut woken = Vec::new();
        self.shared.release_objects(state, &mut woken);
        self.wake_later(woken);
    }

    /// Where a tree is whose definition has changed since it was written to. Only what leaves rows
    /// and images as they are may change while a transaction has written there.
    pub(super) fn place_now(&self, place: Place) -> Place {
        let now = self.worker.schema.owner(place.id).and_then(|table| match table.def.id == place.id {
            true => Some(Place::of(table)),
            false => Some(Place::of_index(table, table.index(place.id)?)),
        });
        now.filter(|now| (now.group, now.root) == (place.group, place.root)).unwrap_or(place)
    }

    /// The partition of a change. The run begins anew if that is of an index that was given up since it began.
    fn partition_of_note(&mut self, place: Place, key: &[u8]) -> Result<PartitionRef, Stop> {
        match self.partition_for(place.group, key) {
            Err(Stop::Recompile) if self.is_given_up(place.id) => Err(Stop::Restart),
            found => found,
        }
    }

    /// Whether it is an index that was given up before it was complete: what was written there is nobody's.
    fn is_given_up(&self, id: TreeId) -> bool {
        self.worker.schema.given_up.contains_key(&id)
    }

    pub(super) fn is_table(&self, id: TreeId) -> bool {
        self.worker.schema.tables.contains_key(&id)
    }
}
