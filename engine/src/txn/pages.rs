//! Long reads: a run that holds a partition for one page, and nothing in between.
//!
//! A one-shot that outlives `archipel.one_shot_budget` without having written is undone, and begins
//! again *in pages* on a thread of its own:
//!
//! ```text
//!   lock its tables ─ register S ─┬─ claim, read a page as of S, release ─┬─ … ─ reply, once S is durable
//!                                 └───────── again, by the last key ◄─────┘
//! ```
//!
//! - A page is one row read by its key, or up to [`crate::EngineConfig::page_rows_max`] rows of a scan,
//!   with those that came after S and are passed over; the row is copied, those of a scan go to the
//!   visitor, which decodes them and does no more. Whatever is computed from them, and whoever takes
//!   the result, comes while nothing is held: others wait for one page at most, a client that reads
//!   slowly keeps nobody, and rows may leave before the last one is known.
//! - Pages are addressed by key, so splits, merges and moves between two of them do not matter.
//! - **Claims.** A page claims its partition directly if that is idle soon, else it enters the queue like
//!   everybody; the thread stands still meanwhile, which it may: it is no executor, and holds nothing.
//! - **Strictly serializable.** S is taken after the statement began and before it answers, and its rows
//!   are those of S exactly: it stands in the serial order where S closed. What it answers depends on
//!   the epochs of what it read, up to S.
//! - **Writes.** Whatever asks for a partition in another way than to read a page stops the run with
//!   [`Stop::Interactive`]: it has written nothing, and begins again under claims. `FOR UPDATE` is a
//!   write.
//! - **Transactions.** Beyond READ COMMITTED S is the transaction's own snapshot, otherwise the
//!   statement's. Images of the transaction's own lie above S, and nobody else changes those meanwhile.
//!   A cursor's lie there, too, which are those of the transaction that has opened it, as of then
//!   ([`super::images`]).
//! - **Definitions.** The tables known beforehand are locked (ACCESS SHARE) before S is taken, so none
//!   of them is made anew. One whose place alone has changed, by CREATE INDEX say, is found again. The
//!   rows of a cursor are read under the locks of the transaction that has opened it
//!   ([`crate::Paging::Locked`]), maybe more than once: each time the tables are taken for what they
//!   were at first.
//! - **Memory.** Old versions kept for S count against `archipel.max_version_memory`; past it the oldest
//!   snapshot ends, and its next page says so ([`Stop::SnapshotTooOld`]).

use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{Direction, InteractiveState, Isolation, KeyRange, Place, Txn, Visit};
use crate::engine::{Point, Shared};
use crate::executor::Worker;
use crate::id::{Epoch, GroupId, TreeId};
use crate::locks::ObjectMode;
use crate::partition::{ClaimSet, HeldList, HeldOrder, Job, PartitionData, PartitionRef, Ticket};
use crate::program::Stop;
use crate::snapshot::{PAGE_BYTES_MAX, Registration};
use crate::storage::key::{KeyBuf, excludes_all, reaches};
use crate::sync::Backoff;
use crate::table::TableMeta;

/// For each row that a page may have it passes over this many at most.
const PASSED_PER_ROW_MAX: usize = 4;

/// How often a thread that waits for its turn looks whether it is still to go on.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// See the module's head.
pub(super) struct Pages {
    registration: Arc<Registration>,
    /// The statement's tables, as they were when its snapshot was taken.
    tables: Vec<Arc<TableMeta>>,
    /// The row that was read last by its key.
    row: Vec<u8>,
}

/// Where a page lies.
#[derive(Clone, Copy)]
enum At<'k> {
    /// In the partition of this key.
    Key(&'k [u8]),
    /// In the partition of the greatest keys below this one; of the group, without one.
    Below(Option<&'k [u8]>),
}

impl At<'_> {
    fn is_in(self, data: &PartitionData) -> bool {
        match (self, &data.high) {
            (At::Key(key), _) => data.covers(key),
            (At::Below(None), high) => high.is_none(),
            (At::Below(Some(below)), None) => data.low[..] < *below,
            (At::Below(Some(below)), Some(high)) => data.low[..] < *below && *below <= high[..],
        }
    }
}

/// How a page of a scan ended.
enum PageEnd {
    /// The visitor had enough.
    Enough,
    /// After this key.
    Full(KeyBuf),
    /// With its partition; where the range goes on, if it does.
    Through(Option<KeyBuf>),
}

impl Txn<'_> {
    /// Lets the run read in pages. Stops with [`Stop::Wait`] where a table is locked against it, unless
    /// somebody holds the locks for it.
    pub(super) fn begin_pages(&mut self, tables: &[TreeId], locked: bool) -> Result<(), Stop> {
        let Some(interactive) = self.interactive.clone().filter(|_| self.pages.is_none()) else {
            return Ok(());
        };
        if !locked {
            self.admit_tables(tables)?;
        }
        let holder = interactive.client.number() as u64;
        let own = interactive.registration();
        let registration = own.unwrap_or_else(|| Registration::of_transaction(self.shared, holder));
        // What changed while a lock was waited for is there to see.
        self.worker.refresh(self.shared);
        let now = || -> Vec<Arc<TableMeta>> { tables.iter().filter_map(|id| self.table(*id)).collect() };
        let tables = if locked { interactive.locked_tables(now) } else { now() };
        if locked {
            for table in &tables {
                self.note_admitted(table.def.id, ObjectMode::AccessShare);
                for index in &table.indexes {
                    self.note_admitted(index.def.id, ObjectMode::AccessShare);
                }
            }
        }
        let snapshot = registration.epoch();
        self.snapshot = Some(snapshot);
        self.own_trees = interactive.own_trees();
        let mut references: Vec<Place> = Vec::new();
        for table in tables.iter().filter(|table| table.is_reference()) {
            references.push(Place::of(table));
            references.extend(table.indexes.iter().map(|index| Place::of_index(table, index)));
        }
        self.pages = Some(Box::new(Pages { registration, tables, row: Vec::new() }));
        // As they are now they can be read later, whatever becomes of them, or of the snapshot. One that
        // cannot be found says so to whoever reads it.
        for place in references {
            let _ = self.reference_at(place, snapshot);
        }
        if let Some(images) = interactive.images() {
            self.read_over(images.trees());
        }
        Ok(())
    }

    /// Whether the snapshot that the run reads in pages has ended, so that what it needs may be gone.
    pub(super) fn pages_are_gone(&self) -> bool {
        self.pages.as_ref().is_some_and(|pages| pages.registration.is_cancelled())
    }

    /// The epoch as of which the run reads in pages, if it does. Everything it has read by now depends
    /// on this epoch or on older ones.
    pub fn pages_at(&self) -> Option<Epoch> {
        self.pages.as_ref().map(|pages| pages.registration.epoch())
    }

    /// Whether the run can begin again at another snapshot.
    pub(super) fn renews_snapshot(&self) -> bool {
        let reads_committed = |own: &Arc<InteractiveState>| own.isolation() == Isolation::ReadCommitted;
        self.pages.is_some() && self.interactive.as_ref().is_some_and(reads_committed)
    }

    /// A row by its key, as a page of its own.
    pub(super) fn page_row(
        &mut self,
        place: Place,
        key: &[u8],
        snapshot: Option<Epoch>,
        own: bool,
    ) -> Result<Option<&[u8]>, Stop> {
        if snapshot.is_none() && !self.is_own(place) {
            // Whoever asks for what is committed now is about to write.
            return Err(Stop::Interactive);
        }
        let found = self.in_page(place, At::Key(key), |txn, partition, place| {
            let row = txn.row_in(partition, place, key, (snapshot, own))?;
            // It is copied to where it stays when the partition has been given back.
            let (Some(row), Some(pages)) = (row, &mut txn.pages) else { return Ok(false) };
            pages.row.clear();
            pages.row.extend_from_slice(row);
            Ok(true)
        })?;
        Ok(self.pages.as_ref().filter(|_| found).map(|pages| &pages.row[..]))
    }

    /// Visits a range, page by page.
    pub(super) fn scan_pages(
        &mut self,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Stop> {
        if self.reads_at(place).is_none() && !self.is_own(place) {
            return Err(Stop::Interactive);
        }
        let (mut low, mut high) = (range.low.map(KeyBuf::from_slice), range.high.map(KeyBuf::from_slice));
        let mut below = range.end();
        loop {
            let left = KeyRange { low: borrowed(&low), high: borrowed(&high) };
            if excludes_all(left.low, left.high) {
                return Ok(());
            }
            let at = match direction {
                Direction::Ascending => At::Key(left.start()),
                Direction::Descending => At::Below(below.as_deref()),
            };
            let end = self.in_page(place, at, |txn, partition, place| {
                txn.scan_page(partition, place, left, direction, visit)
            })?;
            match (end, direction) {
                (PageEnd::Enough | PageEnd::Through(None), _) => return Ok(()),
                (PageEnd::Full(last), Direction::Ascending) => low = Bound::Excluded(last),
                (PageEnd::Through(Some(next)), Direction::Ascending) => low = Bound::Included(next),
                #[cfg(test)]
                (PageEnd::Through(Some(next)), Direction::Descending)
                    if crate::planted::is(crate::planted::Bug::StaleBound) =>
                {
                    below = Some(next);
                }
                // Of a range that goes on in the next partition, too: by then it may be one with this.
                (PageEnd::Full(next) | PageEnd::Through(Some(next)), Direction::Descending) => {
                    below = Some(next.clone());
                    high = Bound::Excluded(next);
                }
            }
        }
    }

    /// Visits a range as far as one page goes.
    fn scan_page(
        &mut self,
        partition: PartitionRef,
        place: Place,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<PageEnd, Stop> {
        let upto = self.settle_ahead(partition, place, range, direction)?;
        let range = upto.as_deref().map_or(range, |upto| range.divided(upto, direction).0);
        let rows_max = self.shared.config.page_rows_max;
        let passed_max = rows_max.saturating_mul(PASSED_PER_ROW_MAX);
        let (mut rows, mut bytes, mut passed, mut enough) = (0, 0, 0, false);
        // Where the page is full: either of the two looks may find that it is.
        let last: RefCell<Option<KeyBuf>> = RefCell::new(None);
        let fill = |is_full: bool, key: &[u8]| {
            if !is_full {
                return ControlFlow::Continue(());
            }
            *last.borrow_mut() = Some(KeyBuf::from_slice(key));
            ControlFlow::Break(())
        };
        let mut visit_row = |key: &[u8], row: &[u8]| {
            if visit(key, row).is_break() {
                enough = true;
                return ControlFlow::Break(());
            }
            rows += 1;
            bytes += row.len();
            fill(rows >= rows_max || bytes >= PAGE_BYTES_MAX, key)
        };
        let mut pass_row = |key: &[u8]| {
            passed += 1;
            fill(passed >= passed_max, key)
        };
        #[cfg(test)]
        let snapshot = self.snapshot;
        #[cfg(test)]
        if crate::planted::is(crate::planted::Bug::NewerPage) {
            self.snapshot = None;
        }
        let scanned = self.scan_partition(partition, place, range, direction, &mut visit_row, &mut pass_row);
        #[cfg(test)]
        {
            self.snapshot = snapshot;
        }
        let _ = scanned?;
        if enough {
            return Ok(PageEnd::Enough);
        }
        if let Some(last) = last.into_inner() {
            return Ok(PageEnd::Full(last));
        }
        if let Some(upto) = upto {
            return Ok(PageEnd::Full(upto));
        }
        // SAFETY: held by this transaction; read until the end of the function.
        let data = unsafe { partition.data_mut() };
        Ok(PageEnd::Through(match direction {
            Direction::Ascending => data.high.clone().filter(|high| reaches(range.high, high)),
            Direction::Descending => {
                let goes_on = match range.low {
                    Bound::Included(low) | Bound::Excluded(low) => *low < data.low[..],
                    Bound::Unbounded => true,
                };
                (goes_on && !data.low.is_empty()).then(|| data.low.clone())
            }
        }))
    }

    /// Runs `body` over the partition of a page; once more where the table has another place by now.
    fn in_page<R>(
        &mut self,
        mut place: Place,
        at: At<'_>,
        mut body: impl FnMut(&mut Self, PartitionRef, Place) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        loop {
            self.shared.point(Point::BeforePage);
            let done = match self.begin_page(place.group, at) {
                Ok(partition) => {
                    let done = body(self, partition, place);
                    self.end_page();
                    done
                }
                Err(stop) => Err(stop),
            };
            match done {
                Err(Stop::Recompile) => {
                    // It may have waited behind whoever changed the definition.
                    self.worker.refresh(self.shared);
                    place = self.place_of_page(place).ok_or(Stop::Recompile)?;
                }
                done => return done,
            }
        }
    }

    /// Claims the partition of a page, when its turn comes.
    fn begin_page(&mut self, group: GroupId, at: At<'_>) -> Result<PartitionRef, Stop> {
        debug_assert!(self.held.is_empty(), "a page is read with nothing else held");
        loop {
            if self.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            self.worker.refresh(self.shared);
            let routes = self.worker.routing.routes(group);
            let route = match at {
                At::Key(key) => routes.covering(key),
                At::Below(below) => routes.below(below),
            };
            let Some(route) = route else {
                // The group is gone, so the table is, too.
                return Err(Stop::Recompile);
            };
            let (partition, low) = (route.partition, route.low.clone());
            if claims_soon(partition) {
                self.held.push(partition);
            } else {
                self.held = self.await_turn(partition, &low)?;
            }
            // SAFETY: held by this transaction, and each reference ends with its look.
            let is_here = |held: &PartitionRef| held.group() == group && at.is_in(unsafe { held.data_mut() });
            if let Some(place) = self.held.iter().position(is_here) {
                // Asked under the claim: until here nothing that it needs may have gone.
                if self.pages_are_gone() {
                    self.end_page();
                    return Err(Stop::SnapshotTooOld);
                }
                self.recent = place;
                return Ok(self.held[place]);
            }
            // The range went elsewhere meanwhile.
            self.end_page();
        }
    }

    /// Gives back what the page was read from; what comes later comes behind what it may have shown.
    fn end_page(&mut self) {
        self.come_after(self.greatest_met());
        let held = std::mem::take(&mut self.held);
        self.recent = 0;
        self.order = HeldOrder::default();
        self.shared.release_all(self.worker, &held);
        // What it has settled on its way nobody waits for.
        self.wake_woken();
    }

    /// Waits in the queue of a partition until this thread holds it; with nothing, if the queue has
    /// moved.
    fn await_turn(&mut self, partition: PartitionRef, low: &[u8]) -> Result<HeldList, Stop> {
        if self.worker.executor.is_some() {
            // No executor ever stands still.
            return Err(Stop::Interactive);
        }
        let shared = self.shared;
        let seat = Arc::new(Seat::default());
        let mut claims = ClaimSet::new();
        claims.add_point(partition.group(), low);
        let mut wanted = HeldList::new();
        wanted.push(partition);
        let entered: RefCell<Option<Arc<Ticket>>> = RefCell::new(None);
        let note = |ticket: &Arc<Ticket>| *entered.borrow_mut() = Some(ticket.clone());
        let job = Box::new(Turn { claims, seat: seat.clone() });
        shared.enter_queues(self.worker, wanted, job, false, &note);
        loop {
            if let Some(held) = seat.take() {
                return Ok(held);
            }
            shared.point(Point::AwaitsPage);
            // Otherwise it is being brought: the next look finds it, and the page's own look the request.
            if self.is_cancelled()
                && let Some((_, lent)) = entered.borrow().as_ref().and_then(|ticket| ticket.cancel())
            {
                shared.release_all(self.worker, &lent);
                return Err(Stop::Cancelled);
            }
            if !shared.help() {
                seat.wait();
            }
        }
    }

    /// Where a tree of the statement is now, if nothing but its place has changed.
    fn place_of_page(&self, place: Place) -> Option<Place> {
        let is_of = |table: &&Arc<TableMeta>| {
            table.version == place.version && (table.def.id == place.id || table.index(place.id).is_some())
        };
        let before = self.pages.as_ref()?.tables.iter().find(is_of)?;
        let now = self.table(before.def.id)?;
        let is_same = now.def.columns == before.def.columns && now.def.key == before.def.key;
        if !is_same || now.version == before.version || now.is_reference() {
            return None;
        }
        if now.def.id == place.id {
            return Some(Place::of(&now));
        }
        now.index(place.id).map(|index| Place::of_index(&now, index))
    }
}

/// Claims a partition if it is idle, or about to be: a thread that it has to be brought to holds it for
/// nothing until it wakes.
fn claims_soon(partition: PartitionRef) -> bool {
    let backoff = Backoff::new();
    loop {
        if partition.try_claim() {
            return true;
        }
        if backoff.is_completed() {
            return false;
        }
        backoff.snooze();
    }
}

fn borrowed(bound: &Bound<KeyBuf>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(&key[..]),
        Bound::Excluded(key) => Bound::Excluded(&key[..]),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// A thread's place in the queue of a partition, which is brought to it.
struct Turn {
    claims: ClaimSet,
    seat: Arc<Seat>,
}

/// Where the thread waits for what is brought.
#[derive(Default)]
struct Seat {
    brought: Mutex<Option<HeldList>>,
    came: Condvar,
}

impl Seat {
    fn put(&self, held: HeldList) {
        *self.brought.lock() = Some(held);
        self.came.notify_one();
    }

    fn take(&self) -> Option<HeldList> {
        self.brought.lock().take()
    }

    /// Waits a moment, unless something has come.
    fn wait(&self) {
        let mut brought = self.brought.lock();
        if brought.is_none() {
            self.came.wait_for(&mut brought, LOOK_EVERY);
        }
    }
}

impl Job for Turn {
    fn run(self: Box<Self>, _shared: &Arc<Shared>, _worker: &mut Worker, held: HeldList) {
        self.seat.put(held);
    }

    fn resubmit(self: Box<Self>, _shared: &Arc<Shared>, _worker: &mut Worker) {
        self.seat.put(HeldList::new());
    }

    fn end(self: Box<Self>, _reason: Stop) {
        self.seat.put(HeldList::new());
    }

    fn claims(&self) -> &ClaimSet {
        &self.claims
    }
}
