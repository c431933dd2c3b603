//! What a READ COMMITTED statement sees after it has waited.
//!
//! PostgreSQL's statement keeps the snapshot it began with, however long it waits for a row, and
//! only looks again at the row it waited for (13.2.1): if that has changed, the newest version is
//! judged by the statement's conditions and, if it passes, is what is changed or locked. Here a
//! program that must wait is undone and run again, with nothing of the first run left. So that the
//! second run is that same statement and not a later one, the first leaves its *view*:
//!
//! ```text
//!  first run          waits: registers a snapshot S        woken: runs again, reading at S
//!  newest = S   ──────┤ while it holds all it read ├───────┤ rows of `newer` in their newest version
//! ```
//!
//! `S` is registered before the partitions are released, so it is exactly the state the first run
//! saw. A run under a view that meets a row somebody changed after `S` puts the row's key among
//! `newer`, keeps its lock, and the program runs once more ([`Stop::Reevaluate`]): scans that look
//! for rows to change or to lock then show that row in its newest version, if it still satisfies
//! their conditions, and every other row as of `S`. As many changed rows as a run meets are noted
//! together, so this takes one more run, or a few.
//!
//! Decisions. Running again instead of keeping the half-done statement: a thread that waits holds
//! no partition, and a suspended executor frame would hold both; effects are undone, so nothing is
//! done twice but `nextval`, which PostgreSQL does not take back either. Statements inside of
//! volatile functions, procedures and triggers read what is committed when they run, as
//! PostgreSQL's do, so they leave the view for that long. One-shots have no view: they are
//! serializable, and run anew. A row that left for another key while the statement waited (its
//! newest version is elsewhere in its table), a table that was redefined, and a view whose old versions took too
//! much memory end the view, and the statement runs anew at what is committed then. A row that went
//! to another partition is no version of the one that was waited for ([`Stop::MovedAway`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;

use super::{Isolation, Place, Txn};
use crate::id::{Epoch, TreeId};
use crate::locks::{LockTag, ObjectLock};
use crate::partition::PartitionRef;
use crate::program::Stop;
use crate::snapshot::Registration;
use crate::storage::versions::Departure;
use crate::table::TableMeta;

/// After so many rounds of looking again a statement is run anew: others change what it is about
/// faster than it can follow.
const ROUNDS_MAX: u32 = 64;

/// Whether the row that the statement saw was deleted: what its key leads to now is another row.
type IsGone = bool;
/// Storage keys of one table's rows.
type NewerRows = BTreeMap<Box<[u8]>, IsGone>;

/// The view of one statement; see the module.
pub(crate) struct StatementView {
    registration: Arc<Registration>,
    /// Rows, by table and storage key, that are seen in their newest version, if they are not gone.
    /// They are locked.
    newer: Mutex<BTreeMap<TreeId, NewerRows>>,
    rounds: AtomicU32,
    lost: AtomicBool,
}

impl StatementView {
    pub fn new(registration: Arc<Registration>) -> Arc<Self> {
        Arc::new(Self {
            registration,
            newer: Mutex::default(),
            rounds: AtomicU32::new(0),
            lost: AtomicBool::new(false),
        })
    }

    /// Whether it shows nothing any more. Certain once what is to be read is held.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed) || self.registration.is_cancelled()
    }

    fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// One more run under this view begins.
    pub fn begin_round(&self) {
        if self.rounds.fetch_add(1, Ordering::Relaxed) >= ROUNDS_MAX {
            self.lose();
        }
    }
}

/// The view of the statement that a transaction runs.
pub(super) struct ViewOf {
    view: Arc<StatementView>,
    /// Whether what runs now is not the statement itself.
    is_left: bool,
}

impl Txn<'_> {
    /// Runs the statement again under its view.
    pub(super) fn set_view(&mut self, view: Arc<StatementView>) {
        if let Some(interactive) = &self.interactive {
            self.own_trees = interactive.own_trees();
        }
        self.view = Some(ViewOf { view, is_left: false });
    }

    /// What the statement saw, when it must wait for the first time; with everything still held
    /// that it read. A table is waited for before anything of it is seen.
    pub(super) fn left_view(&self) -> Option<Arc<StatementView>> {
        let interactive = self.interactive.as_ref()?;
        let object = self.waiting.as_ref()?.object;
        let for_table = matches!(object, Some(ObjectLock { tag: LockTag::Table(_), .. }));
        if for_table || self.view.is_some() || interactive.isolation() != Isolation::ReadCommitted {
            return None;
        }
        let holder = interactive.client.number() as u64;
        Some(StatementView::new(Registration::of_transaction(self.shared, holder)))
    }

    /// The epoch at which the statement reads, while it is the statement itself that reads.
    #[inline]
    pub(super) fn view_epoch(&self) -> Option<Epoch> {
        self.view.as_ref().filter(|of| !of.is_left).map(|of| of.view.registration.epoch())
    }

    /// Whether the statement has waited, and sees what it saw before.
    #[inline]
    pub fn has_view(&self) -> bool {
        self.view.as_ref().is_some_and(|of| !of.is_left)
    }

    /// From now on, reads see what is committed now, and not what the statement saw before it
    /// waited (`outside`); or the statement goes on. Answers what was so before, for the way back.
    pub fn leave_view(&mut self, outside: bool) -> bool {
        self.view.as_mut().is_some_and(|of| std::mem::replace(&mut of.is_left, outside))
    }

    /// Whether rows of some table are seen in their newest version.
    pub fn sees_newer(&self) -> bool {
        self.view.as_ref().is_some_and(|of| !of.is_left && !of.view.newer.lock().is_empty())
    }

    /// Whether this row is.
    pub fn is_newer(&self, table: &TableMeta, key: &[u8]) -> bool {
        self.has_view() && self.knows_newer(table.def.id, key)
    }

    fn knows_newer(&self, table: TreeId, key: &[u8]) -> bool {
        let Some(of) = &self.view else { return false };
        of.view.newer.lock().get(&table).is_some_and(|rows| rows.contains_key(key))
    }

    /// The keys of the rows of a table that are seen in their newest version, in order.
    pub fn newer_rows(&self, table: &TableMeta) -> Vec<Box<[u8]>> {
        let Some(of) = self.view.as_ref().filter(|of| !of.is_left) else { return Vec::new() };
        let newer = of.view.newer.lock();
        newer.get(&table.def.id).into_iter().flatten().map(|(key, _)| key.clone()).collect()
    }

    /// The newest version of one of these rows; `None` if it is gone.
    pub fn get_newer(&mut self, table: &TableMeta, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let view = self.view.as_ref().map(|of| of.view.newer.lock());
        let is_gone =
            view.is_some_and(|newer| newer.get(&table.def.id).and_then(|rows| rows.get(key)) == Some(&true));
        if is_gone { Ok(None) } else { self.get_newest(table, key) }
    }

    /// The newest version of a row, this transaction's own first.
    pub fn get_newest(&mut self, table: &TableMeta, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.read_as_of(Place::of(table), key, None, true)
    }

    /// A row that is about to be written: as it is now, where the statement has waited.
    pub fn get_for_write(&mut self, table: &TableMeta, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        if self.view.is_some() { self.get_newest(table, key) } else { self.get(table, key) }
    }

    /// Whether a row was changed since the view, so that the run is to look again. Stops with
    /// [`Stop::Reevaluate`] then; whoever can go on to the next row does, and the engine runs the
    /// program again when it ends.
    pub(super) fn check_viewed(
        &mut self,
        partition: PartitionRef,
        place: Place,
        key: &[u8],
        epoch: Epoch,
    ) -> Result<(), Stop> {
        if self.knows_newer(place.id, key) {
            return Ok(());
        }
        match self.check_unchanged_since(partition, place, key, epoch) {
            Err(stop @ (Stop::ConcurrentUpdate | Stop::ConcurrentDelete)) => {
                let departure = self.departure_since(partition, place, key, epoch)?;
                if departure == Departure::MovedAway {
                    return Err(Stop::MovedAway);
                }
                self.note_newer(place, key, departure == Departure::Moved, stop == Stop::ConcurrentDelete);
                Err(Stop::Reevaluate)
            }
            checked => checked,
        }
    }

    fn note_newer(&mut self, place: Place, key: &[u8], moved: bool, is_gone: IsGone) {
        self.reevaluates = true;
        if let Some(of) = &self.view {
            if moved {
                of.view.lose();
            }
            of.view.newer.lock().entry(place.id).or_default().insert(key.into(), is_gone);
        }
    }

    /// The answer to a read of a past that is not kept: a conflict for a transaction that lives
    /// there, and the end of a statement's view.
    pub(super) fn past_is_gone(&mut self) -> Stop {
        match &self.view {
            Some(of) if self.snapshot.is_none() => {
                of.view.lose();
                self.reevaluates = true;
                Stop::Reevaluate
            }
            _ if self.renews_snapshot() => Stop::Recompile,
            _ => Stop::ConcurrentUpdate,
        }
    }

    /// Whether the run is to be repeated, whatever it came to.
    pub(super) fn must_reevaluate(&self, result: Result<(), Stop>) -> bool {
        let ended = matches!(result, Ok(()) | Err(Stop::Abort | Stop::Reevaluate | Stop::LockNotAvailable));
        let lost = self.view.as_ref().is_some_and(|of| of.view.is_lost());
        ended && (self.reevaluates || lost)
    }
}
