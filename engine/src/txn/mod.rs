//! What a running program may do: read, scan, write, undo, commit.
//!
//! A one-shot runs over partitions it holds, so its reads and writes go straight to the trees:
//! no latches, no locks, an undo list for errors. Every access checks its key against the
//! bounds of the held partitions; a miss claims the missing partition on the spot, or notes it
//! and restarts the program with the larger set.
//!
//! A statement of an interactive transaction is the same program under a transaction id. Its
//! writes stay beside the trees as uncommitted images under row locks (`row_lock`) until COMMIT,
//! an action that claims every written partition, puts them in place.
//!
//! ```text
//!  claims held ──────────────────────────────────────────────► released
//!     run … run │ mark references │ enter epoch │ check │ keep │ redo │ publish │ leave
//!               └──────────────── commit point ──────────────────────────────────┘
//! ```
//!
//! - `access`      finding, or claiming, the partition of a key
//! - `read`        get and scans        - `write`  insert, update, delete with their indexes
//! - `prefetch`  rows that will be asked for soon
//! - `fan_out` bodies over many partitions side by side
//! - `row_lock`    row locks and uncommitted images  - `waits` the graph of waiters
//! - `isolation`   snapshots of interactive transactions, conflicts, validation
//! - `view`        what a READ COMMITTED statement sees after it has waited
//! - `statement_view` what a statement sees while routines that it calls write
//! - `undo`        the undo list and savepoints   - `commit`  the commit point
//! - `limits`      how much one transaction may write
//! - `reference`   reference tables     - `sequence`  sequences and hidden row ids
//! - `ddl`         definitions changed under a claim of their tables' groups
//! - `repartition` splits, merges and moves   - `memory` rows that follow to another memory node
//! - `interactive` BEGIN … COMMIT; images of writers that have ended
//! - `private_table` rows of tables that nobody else knows
//! - `images`      what a transaction has written so far, for a cursor that it opens
//! - `attempt`   running, restarting, waiting  - `pages` long reads
//! - `epoch`       epochs, and numbers beside the slots of threads

mod access;
pub(crate) mod attempt;
mod commit;
mod ddl;
mod epoch;
#[cfg(test)]
#[path = "epoch/tests.rs"]
mod epoch_tests;
mod fan_out;
mod images;
mod interactive;
mod isolation;
mod limits;
mod memory;
mod pages;
mod prefetch;
mod private_table;
mod read;
mod reference;
mod repartition;
mod row_lock;
mod sequence;
mod snapshot_read;
mod statement_view;
mod undo;
mod view;
mod waits;
mod write;

use std::ops::Bound;
use std::sync::Arc;

pub(crate) use ddl::TableRecord;
pub use ddl::{BeginCopy, BuildStep, ColumnSource, CopyReader, CopySlice, DdlOp, FillIndex, OwnedCell};
pub use epoch::EpochClock;
pub(crate) use epoch::EpochSlot;
pub use fan_out::PartRows;
pub use images::{Images, TakeImages};
pub use interactive::{Commit, Interactive, InteractiveSavepoint, Rollback, RollbackTo};
pub(crate) use interactive::{ENDED_ON_THE_SPOT, InteractiveState, SettledTo};
pub use isolation::Isolation;
pub(crate) use isolation::ReadSet;
pub use limits::TransactionLimits;
pub(crate) use memory::{FollowMemory, Followed};
pub use private_table::SettleEarly;
pub use read::Visit;
pub(crate) use reference::{ReferenceTable, ReferenceVector, References, SharedTree};
pub use repartition::{
    Cut, Mark, PreSplit, Repartition, RepartitionKind, RepartitionRefused, RepartitionView, Repartitioning,
    SplitPartition,
};
pub(crate) use repartition::{GroupPlaces, History, LoggedPlace, recovered_places};
pub use row_lock::LockMode;
pub(crate) use row_lock::{RowWaiter, Writer, WriterOutcome, push_waiter};
pub(crate) use sequence::{LoggedBound, ROW_ID_SEQUENCE, START_SEQUENCE, SequenceRecord, sequence_key};
pub use sequence::{NextValue, Sequence, SequencePosition};
pub use undo::Savepoint;
pub(crate) use undo::{OverlayChange, OverlayUndo, Undo};
pub(crate) use view::StatementView;
pub use waits::{WaitEdge, WaitGraph};

use crate::client::{Client, Refused, Wait, WaitOn};
use crate::engine::Shared;
use crate::executor::Worker;
use crate::id::{Epoch, ExecutorId, GroupId, SequenceId, TreeId, TxnId};
use crate::locks::{Noted, ObjectMode, ObjectWork};
use crate::partition::{HeldList, HeldOrder, PartitionRef};
use crate::program::Stop;
use crate::storage::KeyBuf;
use crate::storage::versions::Departure;
use crate::sync;
use crate::table::{IndexMeta, REFERENCE_GROUP, TableMeta};

/// A range of keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyRange<'k> {
    pub low: Bound<&'k [u8]>,
    pub high: Bound<&'k [u8]>,
}

impl KeyRange<'_> {
    /// Every key.
    pub const ALL: KeyRange<'static> = KeyRange { low: Bound::Unbounded, high: Bound::Unbounded };
}

impl<'k> KeyRange<'k> {
    /// One key.
    pub fn point(key: &'k [u8]) -> Self {
        Self { low: Bound::Included(key), high: Bound::Included(key) }
    }

    /// The least key the range may hold.
    pub(crate) fn start(&self) -> &'k [u8] {
        match self.low {
            Bound::Included(low) | Bound::Excluded(low) => low,
            Bound::Unbounded => &[],
        }
    }

    /// The least key above the range; `None`: there is none.
    pub(crate) fn end(&self) -> Option<KeyBuf> {
        match self.high {
            Bound::Excluded(high) => Some(KeyBuf::from_slice(high)),
            Bound::Included(high) => {
                let mut next = KeyBuf::from_slice(high);
                next.push(0);
                Some(next)
            }
            Bound::Unbounded => None,
        }
    }
}

/// Which way a scan walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// What became of an insert or update. Nothing is changed unless it is `Ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Inserted {
    Ok,
    /// A row with an equal storage key (`None`) or an equal key in this unique index exists.
    DuplicateKey(Option<TreeId>),
    /// Update only: there is no such row.
    Missing,
}

/// Whether a statement waits for a row that somebody else locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWait {
    #[default]
    Wait,
    /// Stop with [`Stop::LockNotAvailable`].
    NoWait,
}

/// What a run does at what somebody else has locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtLocks {
    /// It waits, where the statement does.
    Wait,
    /// It stops.
    NoWait,
    /// It stops, and notes what was in the way: see [`Txn::stop_at_locks`].
    Note,
}

impl From<LockWait> for AtLocks {
    fn from(wait: LockWait) -> Self {
        match wait {
            LockWait::Wait => AtLocks::Wait,
            LockWait::NoWait => AtLocks::NoWait,
        }
    }
}

/// How long a run may take; moments are the engine's clock's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowance {
    /// As long as it takes: it runs apart.
    Unlimited,
    /// As long as a one-shot, from the first look at the clock on.
    Budget,
    /// From this moment on.
    BudgetSince(u64),
    /// No longer: it has been told so.
    Outlived,
}

/// What a run holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// What it was predicted to need; it may claim more.
    Predicted,
    /// Nothing, and it claims nothing: a look at reference tables for a prediction.
    Nothing,
}

/// Where a tree is: its group, its root position, and what must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub group: GroupId,
    pub root: u32,
    pub id: TreeId,
    pub version: u32,
}

impl Place {
    #[inline]
    pub fn of(table: &TableMeta) -> Self {
        Self { group: table.group, root: table.root, id: table.def.id, version: table.version }
    }

    #[inline]
    pub fn of_index(table: &TableMeta, index: &IndexMeta) -> Self {
        Self { group: index.group, root: index.root, id: index.def.id, version: table.version }
    }

    pub fn is_reference(&self) -> bool {
        self.group == REFERENCE_GROUP
    }
}

/// A row whose lock a starved one-shot takes under a transaction id: where it is, by its key, and how it is locked.
type Touched = (PartitionRef, Place, Box<[u8]>, LockMode);

/// A running transaction, or a statement of an interactive one.
pub struct Txn<'w> {
    pub(crate) shared: &'w Arc<Shared>,
    worker: &'w mut Worker,
    held: HeldList,
    /// Set: the writes stay uncommitted, under this transaction's row locks.
    interactive: Option<Arc<InteractiveState>>,
    /// The epoch at which a REPEATABLE READ or SERIALIZABLE transaction reads.
    snapshot: Option<Epoch>,
    /// Checks of constraints read what is committed now.
    reads_newest: bool,
    /// What a READ COMMITTED statement saw before it waited.
    view: Option<view::ViewOf>,
    /// It met rows that changed since its view.
    reevaluates: bool,
    /// Since when statements do not see what their routines write, innermost last, and whether what
    /// reads now is the last of them itself.
    beneath: smallvec::SmallVec<[statement_view::Beneath; 1]>,
    reads_beneath: bool,
    /// What becomes of a row that is being taken out.
    leaving: Departure,
    /// Trees that this transaction made, and nobody else knows.
    own_trees: interactive::OwnTrees,
    /// What was read, if the transaction must answer for it at its commit.
    reads: Option<ReadSet>,
    /// Reference tables as of the snapshot.
    past_references: smallvec::SmallVec<[(TreeId, Arc<ReferenceTable>); 2]>,
    /// Under which transaction id a starved one-shot locked rows in earlier runs.
    locker: Option<TxnId>,
    /// The rows it got past, where they stay locked if this run has to wait.
    touched: Option<Vec<Touched>>,
    at_locks: AtLocks,
    /// What was in the way where it has stopped.
    refused: Option<Refused>,
    read_only: bool,
    claimed: Claimed,
    /// Which of the held partitions was used last.
    recent: usize,
    order: HeldOrder,
    /// The newest epoch seen in leaves, reference tables and sequences.
    depends_on: Epoch,
    /// The greatest number of a transaction of which it has used something without holding it: reference
    /// tables, bounds of sequences, pages that it has given back.
    after: u64,
    started_at: Option<i64>,
    /// See [`Txn::budget_exceeded`].
    allowance: Allowance,
    /// The reference tables as of the first access to one.
    references: Option<Arc<ReferenceVector>>,
    references_read: smallvec::SmallVec<[TreeId; 4]>,
    /// Reference tables this transaction writes, as it sees them.
    reference_writes: Vec<(TreeId, u32, reference::SharedTree)>,
    ddl: Option<Box<ddl::DdlWork>>,
    /// Groups of which it holds all partitions, so that nobody changes them: see [`Txn::claim_for`].
    whole_groups: Vec<GroupId>,
    /// The row waiter this program enqueued before [`Stop::Wait`].
    waiting: Option<Arc<RowWaiter>>,
    /// What it has waited for before this run.
    woken_at: Option<Arc<RowWaiter>>,
    /// Waiters whose row lock this transaction dropped: woken after the commit.
    woken: Vec<Arc<RowWaiter>>,
    /// This is the commit or rollback of an interactive transaction, whose overlay entries it
    /// may touch.
    finishing: Option<TxnId>,
    /// Set: it reads page by page, and holds nothing in between.
    pages: Option<Box<pages::Pages>>,
    client: Option<Arc<Client>>,
    /// Locks on tables and advisory locks this run took or gave back.
    objects: Option<Box<ObjectWork>>,
    /// Tables this statement may use in these modes, and their indexes.
    admitted: Noted<TreeId>,
    /// Sequences it may draw from.
    pub(crate) drawn_from: smallvec::SmallVec<[SequenceId; 2]>,
    /// The version of the definitions when a number was drawn first, and the sequences that numbers
    /// were drawn from, with their incarnations.
    drawn_under: Option<u64>,
    drawn: smallvec::SmallVec<[(SequenceId, u64); 2]>,
    /// The partitions may have another size than they had: look at them before the release.
    look: bool,
    /// What it has put in place of others.
    settled: interactive::Settled,
    /// It commits what is prepared: see [`Commit`].
    decides: bool,
    /// Bytes of rows that it has added, and of images beside them.
    added_bytes: i64,
    /// What the images that this run has written will be at the COMMIT.
    images: limits::Weight,
    /// The epoch in which it began, for a planted bug that commits in it.
    #[cfg(test)]
    began_in: Epoch,
}

impl<'w> Txn<'w> {
    pub(crate) fn new(
        shared: &'w Arc<Shared>,
        worker: &'w mut Worker,
        held: HeldList,
        interactive: Option<Arc<InteractiveState>>,
        lock_wait: LockWait,
        read_only: bool,
        claimed: Claimed,
    ) -> Self {
        debug_assert!(worker.scratch.undo.is_empty() && worker.scratch.arena.is_empty());
        let (mut snapshot, mut reads, mut own_trees) = (None, None, None);
        if let Some(interactive) = &interactive {
            snapshot = interactive.snapshot_epoch();
            own_trees = snapshot.and_then(|_| interactive.own_trees());
            reads = interactive.tracks_reads().then(ReadSet::default);
        }
        #[cfg(test)]
        assert!(crate::planted::any() || held.windows(2).all(|pair| pair[0].id < pair[1].id));
        Self {
            shared,
            worker,
            interactive,
            snapshot,
            reads_newest: false,
            view: None,
            reevaluates: false,
            beneath: smallvec::SmallVec::new(),
            reads_beneath: false,
            leaving: Departure::Deleted,
            own_trees,
            reads,
            past_references: smallvec::SmallVec::new(),
            locker: None,
            touched: None,
            at_locks: lock_wait.into(),
            refused: None,
            read_only,
            claimed,
            recent: 0,
            order: HeldOrder::new(held.len()),
            held,
            depends_on: Epoch(0),
            after: 0,
            started_at: None,
            allowance: Allowance::Budget,
            references: None,
            references_read: smallvec::SmallVec::new(),
            reference_writes: Vec::new(),
            ddl: None,
            whole_groups: Vec::new(),
            waiting: None,
            woken_at: None,
            woken: Vec::new(),
            finishing: None,
            pages: None,
            client: None,
            objects: None,
            admitted: Noted::default(),
            drawn_from: smallvec::SmallVec::new(),
            drawn_under: None,
            drawn: smallvec::SmallVec::new(),
            look: false,
            settled: interactive::Settled::default(),
            decides: false,
            added_bytes: 0,
            images: limits::Weight::default(),
            #[cfg(test)]
            began_in: shared.epochs.current(),
        }
    }

    /// Microseconds since 2000-01-01 UTC, the same for the whole call.
    pub fn started_at(&mut self) -> i64 {
        match self.started_at {
            Some(micros) => micros,
            None => {
                let micros = match &self.interactive {
                    Some(interactive) => interactive.started_at,
                    None => self.shared.clock.wall_micros(),
                };
                *self.started_at.insert(micros)
            }
        }
    }

    /// Uniform in `0.0 .. 1.0`.
    pub fn random(&mut self) -> f64 {
        self.worker.random.next_f64()
    }

    /// The interactive transaction this statement belongs to.
    pub fn transaction_id(&self) -> Option<TxnId> {
        self.interactive.as_ref().map(|interactive| interactive.id)
    }

    /// The executor whose thread runs this program.
    pub fn executor(&self) -> Option<ExecutorId> {
        self.worker.executor
    }

    /// Whether the program runs on a thread of its own, so that nobody waits behind it but those
    /// who want what it claims.
    pub fn is_apart(&self) -> bool {
        self.allowance == Allowance::Unlimited
    }

    /// About how much memory this run has taken for what it wrote: rows, images, undo and redo. The
    /// rest of what its thread has taken ([`crate::heap`]) are values of statements.
    pub fn written_bytes(&self) -> i64 {
        let scratch = &self.worker.scratch;
        let noted = scratch.arena.capacity()
            + scratch.redo.capacity()
            + scratch.undo.capacity() * size_of::<Undo>()
            + scratch.overlay_undo.capacity() * size_of::<OverlayUndo>();
        // Nodes that are half full, keys in inner ones, boxes.
        3 * self.added_bytes + noted as i64
    }

    /// Nanoseconds of the engine's clock, from some moment on.
    pub fn monotonic_nanos(&self) -> u64 {
        self.shared.clock.monotonic_nanos()
    }

    /// Whether the program ran longer than `archipel.one_shot_budget`; looks at the clock, so
    /// ask once per loop of some size. Always false for a program that runs apart.
    pub fn budget_exceeded(&mut self) -> bool {
        self.allowance = match self.allowance {
            Allowance::Unlimited => return false,
            Allowance::Outlived => return true,
            Allowance::Budget => Allowance::BudgetSince(self.shared.clock.monotonic_nanos()),
            Allowance::BudgetSince(began) => {
                let took = self.shared.clock.monotonic_nanos() - began;
                if took <= self.shared.config.one_shot_budget_micros * 1_000 {
                    return false;
                }
                Allowance::Outlived
            }
        };
        self.has_outlived()
    }

    /// Whether [`Txn::budget_exceeded`] has said so.
    pub fn has_outlived(&self) -> bool {
        self.allowance == Allowance::Outlived
    }

    /// Whether somebody asked for this program's end: long loops look, and stop with
    /// [`Stop::Cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.is_cancelled())
    }

    /// Says what this program is about to wait for.
    pub(crate) fn publish_wait(&self, on: WaitOn, waiter: &Arc<RowWaiter>) {
        if let Some(client) = &self.client {
            let since = self.shared.clock.wall_micros();
            client.begin_wait(Wait { on, blockers: Vec::new(), since }, waiter);
        }
    }

    pub(crate) fn interactive_state(&self) -> Option<&Arc<InteractiveState>> {
        self.interactive.as_ref()
    }

    /// Commits, rollbacks and definitions: whoever submits them holds the table locks it needs.
    pub(crate) fn is_maintenance(&self) -> bool {
        self.finishing.is_some() || self.ddl.is_some() || self.claimed == Claimed::Nothing
    }

    pub(crate) fn admitted(&self, id: TreeId, mode: ObjectMode) -> bool {
        self.admitted.bits(id) & mode.bit() != 0
    }

    pub(crate) fn note_admitted(&mut self, id: TreeId, mode: ObjectMode) {
        self.admitted.note(id, mode.bit());
    }

    /// The table a tree belongs to: itself, or an index's.
    pub(crate) fn table_of(&self, id: TreeId) -> TreeId {
        self.worker.schema.owner(id).map_or(id, |table| table.def.id)
    }

    /// Under which id it waits, if it holds anything while it does.
    pub(crate) fn waits_as(&self) -> Option<TxnId> {
        let session = self.client.as_ref().filter(|client| client.holds_any());
        self.transaction_id().or(self.locker).or(session.map(|client| client.owner()))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.shared
    }

    pub(crate) fn client(&self) -> Option<&Arc<Client>> {
        self.client.as_ref()
    }

    pub(crate) fn lock_wait(&self) -> LockWait {
        if self.at_locks == AtLocks::NoWait { LockWait::NoWait } else { LockWait::Wait }
    }

    /// Whether the run waits, from here on, for what somebody else locks, or stops with
    /// [`Stop::LockNotAvailable`].
    pub fn set_lock_wait(&mut self, wait: LockWait) {
        self.at_locks = wait.into();
    }

    /// Has a one-shot stop with [`Stop::LockNotAvailable`] at what somebody has locked (a table, a
    /// sequence, a row, an advisory lock), instead of waiting: for whoever keeps something meanwhile that
    /// they may need to end. [`Txn::refused`] tells where.
    pub fn stop_at_locks(&mut self) {
        self.at_locks = AtLocks::Note;
    }

    /// Whether the run stops instead of waiting.
    pub(crate) fn stops_at_locks(&self) -> bool {
        self.at_locks == AtLocks::Note
    }

    /// Notes what the run stops at.
    pub(crate) fn refuse(&mut self, on: WaitOn, blockers: Vec<TxnId>) {
        self.refused = Some(Refused { on, blockers });
    }

    /// What was in the way of a run that stops at locks.
    pub fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    pub(crate) fn objects(&mut self) -> &mut ObjectWork {
        self.objects.get_or_insert_default()
    }

    pub(crate) fn take_objects(&mut self) -> Option<Box<ObjectWork>> {
        self.objects.take()
    }

    pub(crate) fn set_waiting(&mut self, waiter: Arc<RowWaiter>) {
        self.waiting = Some(waiter);
    }

    /// Waiters to run again when this program has released its partitions.
    pub(crate) fn wake_later(&mut self, mut woken: Vec<Arc<RowWaiter>>) {
        self.woken.append(&mut woken);
    }

    /// The table as this transaction sees it (its own DDL included).
    pub fn table(&self, id: TreeId) -> Option<Arc<TableMeta>> {
        match &self.ddl {
            Some(work) => work.schema.tables.get(&id).cloned(),
            None => self.worker.schema.tables.get(&id).cloned(),
        }
    }

    /// How many partitions it holds.
    pub fn partitions_held(&self) -> usize {
        self.held.len()
    }

    /// The partitions it holds, for EXPLAIN and the tests.
    pub fn held_partitions(&self) -> Vec<crate::id::PartitionId> {
        self.held.iter().map(|partition| partition.id).collect()
    }

    /// The reference tables as published now; current, if the reference partition is held.
    pub(crate) fn published_references(&self) -> Arc<ReferenceVector> {
        self.shared.references.load()
    }

    /// The data of the partition that covers a key, claimed if need be.
    pub(crate) fn partition_data(
        &mut self,
        group: GroupId,
        key: &[u8],
    ) -> Result<&mut crate::partition::PartitionData, Stop> {
        let partition = self.partition_for(group, key)?;
        // SAFETY: held by this transaction, which the reference borrows mutably.
        Ok(unsafe { partition.data_mut() })
    }

    pub(crate) fn depend(&mut self, epoch: Epoch) {
        if self.depends_on < epoch {
            self.depends_on = epoch;
        }
    }

    /// Whether the run has written or locked a row, or has changed a definition.
    pub fn has_written(&self) -> bool {
        self.wrote() || !self.worker.scratch.overlay_undo.is_empty()
    }

    /// Whether anything was written, so that there is something to commit.
    fn wrote(&self) -> bool {
        !self.worker.scratch.undo.is_empty()
            || self.ddl.is_some()
            || !self.reference_writes.is_empty()
            || self.decides
    }

    fn held(&self) -> &[PartitionRef] {
        &self.held
    }
}
