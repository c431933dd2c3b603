//! What a running program does with the lock table: the mode a statement needs at a table, and
//! advisory locks.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::noted::Noted;
use super::table::{Asked, Asker, Looked};
use super::{LockTag, ObjectLock, ObjectMode};
use crate::client::{Client, WaitOn};
use crate::id::{SequenceId, TreeId, TxnId};
use crate::partition::Root;
use crate::program::Stop;
use crate::table::TableMeta;
use crate::txn::{InteractiveState, LockWait, Place, RowWaiter, Txn, WaitEdge};

/// How many changes of queues are tried together before a cycle counts as a deadlock.
const REARRANGEMENTS_MAX: usize = 4;

/// How long a lock is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockScope {
    /// To the end of the transaction, a one-shot's own included.
    Transaction,
    /// Until it is given back, or the client goes.
    Session,
}

/// What an interactive transaction holds: weak modes noted at home, and locks in the table.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Tables and sequences, and the bits of the weak modes noted.
    weak: Noted<LockTag>,
    /// In the lock table, oldest first.
    table: Vec<(LockTag, ObjectMode)>,
    /// In the lock table, because somebody gathered notes: no savepoint gives them back.
    gathered: Vec<(LockTag, ObjectMode)>,
}

impl Notes {
    fn note(&self, tag: LockTag, mode: ObjectMode) {
        self.0.lock().weak.note(tag, mode.bit());
    }

    fn is_noted(&self, tag: LockTag, mode: ObjectMode) -> bool {
        self.0.lock().weak.bits(tag) & mode.bit() != 0
    }

    fn keep(&self, tag: LockTag, mode: ObjectMode) {
        self.0.lock().table.push((tag, mode));
    }

    /// A point to return to: how many locks are held in the table.
    pub fn mark(&self) -> usize {
        self.0.lock().table.len()
    }

    /// The weak modes noted at home, for `pg_locks`.
    pub fn weak(&self) -> Vec<(LockTag, u8)> {
        self.0.lock().weak.to_vec()
    }
}

/// What one run of a program did to locks, to be kept or taken back when it ends.
#[derive(Default)]
pub(crate) struct ObjectWork {
    taken: Vec<(LockTag, ObjectMode, TxnId, LockScope)>,
    /// Session locks to be given back at the end.
    given_back: BTreeMap<(LockTag, ObjectMode), u32>,
    give_all_back: bool,
}

impl Txn<'_> {
    /// What every access to a table asks first: nothing, for a one-shot at a table without a
    /// mark.
    #[inline]
    pub(crate) fn admit(&mut self, root: &mut Root, place: Place, mode: ObjectMode) -> Result<(), Stop> {
        if root.is_table_locked() || self.interactive_state().is_some() {
            return self.admit_slowly(root, place, mode);
        }
        Ok(())
    }

    #[inline(never)]
    fn admit_slowly(&mut self, root: &mut Root, place: Place, mode: ObjectMode) -> Result<(), Stop> {
        if self.is_maintenance() || self.admitted(place.id, mode) {
            return Ok(());
        }
        let Some(state) = self.interactive_state().cloned() else {
            let locked = self.pass_by(LockTag::Table(self.table_of(place.id)), mode)?;
            root.set_table_locked(locked);
            return Ok(());
        };
        // An index is reached through its table, which asks for itself.
        if self.table(place.id).is_some() {
            if !root.is_table_locked() {
                state.objects.note(LockTag::Table(place.id), mode);
            } else if !state.objects.is_noted(LockTag::Table(place.id), mode) {
                self.lock_object(LockTag::Table(place.id), mode, LockScope::Transaction, self.lock_wait())?;
            }
        }
        self.note_admitted(place.id, mode);
        Ok(())
    }

    /// [`Txn::admit`] for readers of reference tables, who claim nothing. A note is made before
    /// the look, and whoever locks a table says so before it looks for notes: one of the two
    /// sees the other.
    #[inline]
    pub(crate) fn admit_reference(&mut self, place: Place) -> Result<(), Stop> {
        if self.interactive_state().is_some() || self.shared().locks.is_strong() {
            return self.admit_reference_slowly(place);
        }
        Ok(())
    }

    #[cold]
    fn admit_reference_slowly(&mut self, place: Place) -> Result<(), Stop> {
        let mode = ObjectMode::AccessShare;
        if self.is_maintenance() || self.admitted(place.id, mode) {
            return Ok(());
        }
        self.admit_unclaimed(LockTag::Table(self.table_of(place.id)), mode)?;
        self.note_admitted(place.id, mode);
        Ok(())
    }

    /// As [`Txn::admit_reference`], for whoever draws from a sequence.
    #[inline]
    pub(crate) fn admit_sequence(&mut self, id: SequenceId) -> Result<(), Stop> {
        if self.interactive_state().is_some() || self.shared().locks.is_strong() {
            return self.admit_sequence_slowly(id);
        }
        Ok(())
    }

    #[cold]
    fn admit_sequence_slowly(&mut self, id: SequenceId) -> Result<(), Stop> {
        if self.is_maintenance() || self.drawn_from.contains(&id) {
            return Ok(());
        }
        self.admit_unclaimed(LockTag::Sequence(id), ObjectMode::RowExclusive)?;
        self.drawn_from.push(id);
        Ok(())
    }

    /// Takes the ACCESS SHARE locks of a statement that is about to read these tables in pages.
    pub(crate) fn admit_tables(&mut self, tables: &[TreeId]) -> Result<(), Stop> {
        let mode = ObjectMode::AccessShare;
        for id in tables.iter().copied() {
            // Of the tables that are gone by now the statement finds out itself.
            if !self.admitted(id, mode) && self.table(id).is_some() {
                self.admit_unclaimed(LockTag::Table(id), mode)?;
                self.note_admitted(id, mode);
            }
        }
        Ok(())
    }

    fn admit_unclaimed(&mut self, tag: LockTag, mode: ObjectMode) -> Result<(), Stop> {
        match self.interactive_state().cloned() {
            None => self.pass_by(tag, mode).map(drop),
            Some(state) => {
                state.objects.note(tag, mode);
                if self.shared().locks.is_strong() {
                    self.lock_object(tag, mode, LockScope::Transaction, self.lock_wait())?;
                }
                Ok(())
            }
        }
    }

    /// A one-shot at a table or a sequence that may be locked; whether it is, in whatever mode.
    fn pass_by(&mut self, tag: LockTag, mode: ObjectMode) -> Result<bool, Stop> {
        let shared = self.shared().clone();
        let now = shared.clock.monotonic_nanos();
        match shared.locks.look(tag, mode, self.client(), self.waits_as(), now) {
            Looked::Unlocked => Ok(false),
            Looked::Passes => Ok(true),
            Looked::Wait(waiter, blockers) => {
                let on = WaitOn::Object(ObjectLock { tag, mode });
                if self.lock_wait() == LockWait::NoWait {
                    return Err(Stop::LockNotAvailable);
                }
                if self.stops_at_locks() {
                    self.refuse(on, blockers);
                    return Err(Stop::LockNotAvailable);
                }
                self.wait_for(waiter, on);
                Err(Stop::Wait)
            }
        }
    }

    /// Locks whole tables for the rest of the interactive transaction.
    pub(crate) fn lock_table(
        &mut self,
        meta: &TableMeta,
        mode: ObjectMode,
        wait: LockWait,
    ) -> Result<(), Stop> {
        let tag = LockTag::Table(meta.def.id);
        if !mode.is_strong() {
            return self.lock_object(tag, mode, LockScope::Transaction, wait);
        }
        self.shared().locks.announce();
        let locked = self
            .mark_table(meta)
            .map(|()| self.gather_notes(tag))
            .and_then(|()| self.lock_object(tag, mode, LockScope::Transaction, wait));
        self.shared().locks.announced();
        locked
    }

    /// Locks a sequence for the rest of the interactive transaction.
    pub(crate) fn lock_sequence(&mut self, id: SequenceId, mode: ObjectMode) -> Result<(), Stop> {
        let tag = LockTag::Sequence(id);
        self.shared().locks.announce();
        self.gather_notes(tag);
        let locked = self.lock_object(tag, mode, LockScope::Transaction, self.lock_wait());
        self.shared().locks.announced();
        locked
    }

    /// Whoever noted a weak mode at home holds it in the table from here on.
    fn gather_notes(&mut self, tag: LockTag) {
        for client in self.shared().clients() {
            let Some(state) = client.interactive() else { continue };
            let mut held = state.objects.0.lock();
            if state.is_ended() {
                continue;
            }
            let Some(bits) = held.weak.take(tag) else { continue };
            for mode in ObjectMode::of_bits(bits) {
                self.shared().locks.put(tag, mode, state.id, &client);
                held.gathered.push((tag, mode));
            }
        }
    }

    /// Sets the mark on every root of a table, all of whose partitions are claimed here.
    fn mark_table(&mut self, meta: &TableMeta) -> Result<(), Stop> {
        let places = std::iter::once(Place::of(meta))
            .chain(meta.indexes.iter().map(|index| Place::of_index(meta, index)));
        for place in places.collect::<SmallVec<[Place; 4]>>() {
            for partition in self.claim_group(place.group)? {
                self.root_of(partition, place)?.set_table_locked(true);
            }
        }
        Ok(())
    }

    /// Takes a lock that is no row's. Waits, if need be, with nothing claimed.
    pub fn lock_object(
        &mut self,
        tag: LockTag,
        mode: ObjectMode,
        scope: LockScope,
        wait: LockWait,
    ) -> Result<(), Stop> {
        let shared = self.shared().clone();
        let state = self.interactive_state().cloned();
        let client = match (self.client(), &state) {
            (Some(client), _) => client.clone(),
            (None, Some(state)) => state.client.clone(),
            (None, None) => shared.client(0),
        };
        let owner = match (scope, &state) {
            (LockScope::Transaction, Some(state)) => state.id,
            _ => client.owner(),
        };
        let now_nanos = shared.clock.monotonic_nanos();
        let node = Some(self.waits_as().unwrap_or_else(|| client.owner()));
        let asker = Asker { owner, node, client: &client, now_nanos, waits: &shared.waits };
        let may_wait = wait == LockWait::Wait && self.lock_wait() == LockWait::Wait;
        match shared.locks.ask(tag, mode, &asker, may_wait && !self.stops_at_locks()) {
            Asked::Granted => {
                if scope == LockScope::Session {
                    client.hold(tag, mode);
                }
                self.objects().taken.push((tag, mode, owner, scope));
                Ok(())
            }
            Asked::Refused => {
                if may_wait {
                    self.refuse(WaitOn::Object(ObjectLock { tag, mode }), Vec::new());
                }
                Err(Stop::LockNotAvailable)
            }
            Asked::Deadlock => Err(Stop::Deadlock),
            Asked::Wait(waiter) => {
                self.wait_for(waiter, WaitOn::Object(ObjectLock { tag, mode }));
                Err(Stop::Wait)
            }
        }
    }

    /// As [`Txn::lock_object`], without waiting: whether it is held now.
    pub fn try_lock_object(
        &mut self,
        tag: LockTag,
        mode: ObjectMode,
        scope: LockScope,
    ) -> Result<bool, Stop> {
        match self.lock_object(tag, mode, scope, LockWait::NoWait) {
            Ok(()) => Ok(true),
            Err(Stop::LockNotAvailable) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// Gives a session's lock back when the program has ended; whether it is held.
    pub fn unlock_object(&mut self, tag: LockTag, mode: ObjectMode) -> bool {
        let Some(client) = self.client().cloned() else { return false };
        let held = self.shared().locks.held(tag, mode, client.owner());
        let work = self.objects();
        if work.give_all_back {
            return false;
        }
        let given = work.given_back.entry((tag, mode)).or_default();
        if held <= *given {
            return false;
        }
        *given += 1;
        true
    }

    /// Gives all of the session's locks back when the program has ended.
    pub fn unlock_all_objects(&mut self) {
        self.objects().give_all_back = true;
    }

    /// Gives back what an interactive transaction has locked since a savepoint.
    pub(crate) fn release_objects_since(&mut self, state: &InteractiveState, mark: usize) {
        let released = {
            let mut held = state.objects.0.lock();
            let from = mark.min(held.table.len());
            held.table.split_off(from)
        };
        let shared = self.shared().clone();
        let mut woken = Vec::new();
        for (tag, mode) in released {
            shared.locks.release(&shared.waits, tag, mode, state.id, &mut woken);
        }
        self.wake_later(woken);
    }

    fn wait_for(&mut self, waiter: Arc<RowWaiter>, on: WaitOn) {
        self.publish_wait(on, &waiter);
        self.set_waiting(waiter);
    }

    /// The run has ended: its locks stay, or go with what else it did.
    pub(crate) fn settle_objects(&mut self, result: Result<(), Stop>) {
        let Some(work) = self.take_objects() else { return };
        let shared = self.shared().clone();
        let mut woken = Vec::new();
        // An error ends a program as well; only what runs again starts from nothing.
        let ended = !matches!(
            result,
            Err(Stop::Restart | Stop::Reevaluate | Stop::Wait | Stop::Interactive | Stop::Recompile)
        );
        let state = self.interactive_state().cloned();
        for &(tag, mode, owner, scope) in &work.taken {
            let keep = match scope {
                LockScope::Session => ended,
                LockScope::Transaction => result.is_ok() && state.is_some(),
            };
            if !keep {
                if scope == LockScope::Session
                    && let Some(client) = self.client()
                {
                    client.unhold(tag, mode);
                }
                shared.locks.release(&shared.waits, tag, mode, owner, &mut woken);
            } else if let (LockScope::Transaction, Some(state)) = (scope, &state) {
                state.objects.keep(tag, mode);
            }
        }
        if ended && let Some(client) = self.client().cloned() {
            for (&(tag, mode), &times) in &work.given_back {
                for _ in 0..times {
                    client.unhold(tag, mode);
                    shared.locks.release(&shared.waits, tag, mode, client.owner(), &mut woken);
                }
            }
            if work.give_all_back {
                shared.release_client(&client, &mut woken);
            }
        }
        self.wake_later(woken);
    }
}

impl crate::engine::Shared {
    /// Everything a client holds beyond transactions goes.
    pub(crate) fn release_client(&self, client: &Arc<Client>, woken: &mut Vec<Arc<RowWaiter>>) {
        for (tag, mode) in client.take_held() {
            self.locks.release(&self.waits, tag, mode, client.owner(), woken);
        }
    }

    /// What an interactive transaction holds goes.
    pub(crate) fn release_objects(&self, state: &InteractiveState, woken: &mut Vec<Arc<RowWaiter>>) {
        let released = {
            let mut held = state.objects.0.lock();
            held.weak.clear();
            let gathered = std::mem::take(&mut held.gathered);
            std::mem::take(&mut held.table).into_iter().chain(gathered)
        };
        for (tag, mode) in released {
            self.locks.release(&self.waits, tag, mode, state.id, woken);
        }
        if state.client.holds_any() {
            self.waits.forget(state.client.owner());
        }
    }

    /// A cycle of waiters without those that stand between two of which one waits for the other anyway: in the
    /// graph, who is nearest in a queue stands for those further ahead.
    pub(crate) fn shortened(&self, cycle: Vec<WaitEdge>) -> Vec<WaitEdge> {
        let mut short: Vec<WaitEdge> = Vec::new();
        let mut at = 0;
        while let Some(&edge) = cycle.get(at) {
            let all = self.locks.in_the_way_of(edge.waiter).unwrap_or_default();
            let last = cycle.iter().rposition(|further| all.contains(&further.blocker));
            let last = last.filter(|last| *last > at).unwrap_or(at);
            short.push(WaitEdge { waiter: edge.waiter, blocker: cycle[last].blocker });
            at = last + 1;
        }
        short
    }

    /// Breaks a cycle of waiters, which begins with `first`, if it is enough that some go ahead
    /// of others whom only a place in a queue puts before them: then nobody must give up.
    pub(crate) fn overtake(self: &Arc<Self>, cycle: &[WaitEdge], first: &RowWaiter) -> bool {
        let mut woken = Vec::new();
        let broken = self.rearrange(cycle, first, &mut Vec::new(), &mut woken);
        if !broken {
            first.leave(&self.waits);
        }
        // Who was woken for a place it has lost again looks, and waits again.
        self.wake(woken);
        broken
    }

    /// Tries one change after another, the last of the cycle first, as PostgreSQL does; what
    /// leads into another cycle is tried further, but never against what was `changed` before.
    fn rearrange(
        &self,
        cycle: &[WaitEdge],
        first: &RowWaiter,
        changed: &mut Vec<WaitEdge>,
        woken: &mut Vec<Arc<RowWaiter>>,
    ) -> bool {
        for &edge in cycle.iter().rev() {
            let against = WaitEdge { waiter: edge.blocker, blocker: edge.waiter };
            if changed.len() == REARRANGEMENTS_MAX || changed.contains(&against) {
                continue;
            }
            // The first has left the graph as the victim that it may not be.
            if !first.publish_again(&self.waits) {
                return true;
            }
            let Some(moved) = self.locks.overtake(&self.waits, edge.waiter, edge.blocker, woken) else {
                continue;
            };
            let Some(next) = first.break_cycle(&self.waits) else { return true };
            let next = self.shortened(next);
            changed.push(edge);
            if self.rearrange(&next, first, changed, woken) {
                return true;
            }
            changed.pop();
            self.locks.put_back(&self.waits, moved, woken);
        }
        false
    }

    /// A client's program has ended: the places it kept in queues are free.
    pub(crate) fn withdraw(self: &Arc<Self>, client: &Arc<Client>) {
        let queued = client.take_queued();
        let mut woken = Vec::new();
        for tag in queued {
            self.locks.withdraw(&self.waits, tag, client, &mut woken);
        }
        self.wake(woken);
    }

    /// Runs woken programs again, from outside of any.
    pub(crate) fn wake(self: &Arc<Self>, woken: Vec<Arc<RowWaiter>>) {
        if woken.is_empty() {
            return;
        }
        self.with_worker(|shared, worker| {
            for waiter in woken {
                if let Some(job) = waiter.wake(&shared.waits) {
                    job.resubmit(shared, worker);
                }
            }
        });
    }
}
