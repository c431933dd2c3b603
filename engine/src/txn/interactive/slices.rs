//! COMMIT and ROLLBACK of many changes, in slices: nobody waits for longer than one of them takes.
//!
//! ```text
//! COMMIT    begin ─► prepare, slices ─► decide ─────────────────────► settle, slices ─► over
//!           no claim  redo to the log    all partitions at once, O(partitions):          table locks go,
//!                     in parts           validate, number, epoch, record, *flip*         the reply leaves
//! ROLLBACK  begin, *flip* ────────────────────────────────────────► sweep, slices  ─► over
//! ```
//!
//! A slice is a run of the same program on one partition: some changes, one behind the other in the order of
//! their keys. Then it enters the queues again, behind whoever waits there ([`crate::program::Program::goes_on`]).
//!
//! - *Begin.* From here on no statement adds a change, so images are final: their locks keep what is beneath.
//! - *Prepare.* Their redo goes ahead as parts ([`crate::log::parts`]) of a buffer of their own, so that a
//!   transaction which does not commit drops them behind the last one.
//! - *Decide* claims what was written, by one key a partition, and what a SERIALIZABLE transaction has read. The
//!   commit point is that of every transaction, with nothing left to write but the record which names the parts.
//!   *Flip*: the one word of its [`Writer`] says "committed in E", and each root is marked, before
//!   anybody else gets one of the partitions. After it nothing fails and nobody cancels.
//! - *Settle*, *sweep*: [`super::settle`], for those to whose keys nobody came.
//! - A client that vanishes meanwhile submits a rollback, which finds that somebody [ends](super::ending) the
//!   transaction, and leaves it to that.
//!
//! What writes reference tables, whose rows lie elsewhere, ends at once; as does what defines something.

use std::sync::{Arc, Weak};

use super::InteractiveState;
use crate::engine::Shared;
use crate::executor::{Finish, FinishedAs, refusal};
use crate::id::GroupId;
use crate::log::CommitBuffer;
use crate::log::parts::Framer;
use crate::log::redo;
use crate::partition::{ClaimSet, PartitionRef, RoutingTable};
use crate::program::Stop;
use crate::storage::row::entry_bytes;
use crate::txn::row_lock::WriterOutcome;
use crate::txn::{OverlayChange, OverlayUndo, Place, Txn, Writer};

/// A slice takes about so long at most.
const NANOS_MAX: u64 = 400_000;
/// The clock is looked at once for so many changes, or bytes.
const CHANGES_A_LOOK: usize = 64;
const BYTES_A_LOOK: usize = 64 << 10;
/// With so many parts that are not written yet a transaction prepares no more, and asks again.
const PARTS_AHEAD: usize = 16;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Prepare,
    Decide,
    /// Or sweep.
    Settle,
    Over,
}

/// An interactive transaction on its way to its end.
pub(super) struct Slices {
    commits: bool,
    phase: Phase,
    /// The next of its changes.
    at: usize,
    prepared: Option<Prepared>,
}

/// The redo of a transaction that has still to commit.
struct Prepared {
    buffer: Arc<CommitBuffer>,
    framer: Framer,
    /// What is in no part yet.
    redo: Vec<u8>,
    /// For so many bytes the log has promised room.
    promised: usize,
    /// How much larger the database will be.
    grown: i64,
    /// Whose redo it is.
    writer: Arc<Writer>,
    shared: Weak<Shared>,
}

impl Prepared {
    fn new(shared: &Arc<Shared>, writer: &Arc<Writer>, redo_bytes: usize) -> Result<Self, Stop> {
        let promised = if redo_bytes > shared.config.log.part_bytes { redo_bytes } else { 0 };
        if promised > 0 {
            refusal(shared.log.admits_parts(promised))?;
        }
        let framer = Framer::new(shared.next_transaction());
        Ok(Self {
            buffer: shared.log.new_buffer(),
            framer,
            redo: Vec::new(),
            promised,
            grown: 0,
            writer: writer.clone(),
            shared: Arc::downgrade(shared),
        })
    }

    /// Sends ahead what makes a part.
    fn send(&mut self, shared: &Shared) {
        if self.redo.len() < shared.config.log.part_bytes {
            return;
        }
        self.buffer.append_part(self.framer.frame(&self.redo));
        self.keep_promise(shared, self.redo.len());
        self.redo.clear();
        shared.log.nudge();
    }

    /// Whether the log's thread has much to write before there is room in memory for more.
    fn is_ahead(&self, shared: &Shared) -> bool {
        shared.config.background && self.buffer.pending_bytes() > PARTS_AHEAD * shared.config.log.part_bytes
    }

    fn keep_promise(&mut self, shared: &Shared, bytes: usize) {
        let kept = self.promised.min(bytes);
        self.promised -= kept;
        shared.log.keep_promise(kept);
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let parts = self.framer.parts();
        // A commit names them, whoever drops this.
        let named = matches!(self.writer.outcome(), WriterOutcome::Committed(_));
        if !named && parts.count > 0 {
            self.buffer.drop_parts(parts.id);
        }
        self.keep_promise(&shared, usize::MAX);
        shared.log.end_buffer(&self.buffer);
    }
}

impl Slices {
    /// For a transaction that has many changes; `None`: it ends at once.
    pub fn of(state: &InteractiveState, shared: &Shared, commits: bool) -> Option<Self> {
        let many = state.has_more_than(shared.config.ended_at_once) && !state.wrote_references();
        many.then_some(Self { commits, phase: Phase::Begin, at: 0, prepared: None })
    }

    pub fn goes_on(&self) -> bool {
        self.phase != Phase::Over
    }

    /// Whether what becomes of the transaction is decided.
    pub fn is_final(&self, state: &InteractiveState) -> bool {
        state.writer.has_ended()
    }

    pub fn predict(&self, state: &InteractiveState, routing: &RoutingTable, claims: &mut ClaimSet) {
        match self.phase {
            Phase::Begin | Phase::Over => {}
            Phase::Decide if !self.is_final(state) => {
                claim_sorted(&state.notes.lock(), routing, claims);
                state.reads().claim_all(claims);
            }
            Phase::Prepare | Phase::Decide | Phase::Settle => {
                let at = if self.phase == Phase::Decide { 0 } else { self.at };
                if let Some(note) = state.notes.lock().get(at) {
                    claims.add_point(note.place.group, &note.key);
                }
            }
        }
    }

    pub fn run(&mut self, state: &Arc<InteractiveState>, txn: &mut Txn<'_>) -> Result<(), Stop> {
        txn.finishing = Some(state.id);
        #[cfg(test)]
        crate::simulation::trace("slice", state.id.0, self.at);
        if self.phase == Phase::Decide && self.is_final(state) {
            (self.phase, self.at) = (Phase::Settle, 0);
            self.prepared = None;
        }
        match self.phase {
            Phase::Begin => self.begin(state, txn),
            Phase::Prepare => self.prepare(state, txn),
            Phase::Decide => self.decide(state, txn),
            Phase::Settle => self.settle(state, txn),
            Phase::Over => Ok(()),
        }
    }

    fn begin(&mut self, state: &InteractiveState, txn: &mut Txn<'_>) -> Result<(), Stop> {
        state.begin_end();
        // In the order of their trees, and keys therein; what lies so already costs one look.
        state.notes.lock().sort_by(|a, b| (a.place.id, &a.key).cmp(&(b.place.id, &b.key)));
        if self.commits {
            self.prepared = Some(Prepared::new(txn.shared, &state.writer, state.weight().redo_bytes())?);
            self.phase = Phase::Prepare;
        } else {
            state.writer.abort();
            self.phase = Phase::Settle;
        }
        Ok(())
    }

    /// Calls `each` with the next changes that lie in one partition, once for a key (but for one that the last
    /// slice ended with, maybe); it tells of how many bytes. Whether none is left.
    fn slice(
        &mut self,
        state: &InteractiveState,
        txn: &mut Txn<'_>,
        mut each: impl FnMut(&mut Txn<'_>, PartitionRef, Place, &[u8]) -> usize,
    ) -> Result<bool, Stop> {
        let mut notes = state.notes.lock();
        let began = txn.monotonic_nanos();
        let mut held: Option<PartitionRef> = None;
        let (mut done, mut looked, mut bytes) = (0, 0, 0);
        while let Some((note, before)) = note_at(&mut notes, self.at) {
            let is_again = before.as_ref().is_some_and(|before| is_same(before, note));
            if let Some(before) = before.filter(|_| self.phase == Phase::Settle) {
                // Nobody asks for it again; all of them at the end would be long.
                before.change = OverlayChange::Locked;
                before.key = Box::default();
            }
            if is_again || txn.is_given_up(note.place.id) {
                self.at += 1;
                continue;
            }
            let partition = match held {
                None => match txn.partition_of_note(note.place, &note.key) {
                    // A definition that has no table locks has taken its place, and has settled all before.
                    Err(Stop::Recompile) if self.phase == Phase::Settle => {
                        self.at += 1;
                        continue;
                    }
                    found => found?,
                },
                Some(partition) if txn.is_in(partition, note.place.group, &note.key) => partition,
                Some(_) => return Ok(false),
            };
            held = Some(partition);
            let is_there = txn.root(partition, note.place).is_ok();
            let place = if is_there { note.place } else { txn.place_now(note.place) };
            bytes += note.key.len() + each(txn, partition, place, &note.key);
            self.at += 1;
            done += 1;
            let looks = done - looked == CHANGES_A_LOOK || bytes > BYTES_A_LOOK;
            if looks {
                (looked, bytes) = (done, 0);
            }
            if done == txn.shared.config.slice_changes_max
                || looks && txn.monotonic_nanos().saturating_sub(began) > NANOS_MAX
            {
                return Ok(self.at == notes.len());
            }
        }
        Ok(true)
    }

    fn prepare(&mut self, state: &InteractiveState, txn: &mut Txn<'_>) -> Result<(), Stop> {
        // A full disk, or a log that has failed, takes no more.
        txn.worker.admit(txn.shared)?;
        let Some(mut prepared) = self.prepared.take() else { return Err(Stop::TransactionEnded) };
        if prepared.is_ahead(txn.shared) {
            txn.shared.log.nudge();
            self.prepared = Some(prepared);
            return Ok(());
        }
        let through = self.slice(state, txn, |txn, partition, place, key| {
            let Ok(root) = txn.root(partition, place) else { return 0 };
            let Some(image) = root.image_of(key, state.id) else { return 0 };
            let beneath = root.row(key).row.map(|row| entry_bytes(key, row));
            let bytes = image.row.map_or(0, |row| entry_bytes(key, row));
            prepared.grown += bytes - beneath.unwrap_or(0);
            match image.row {
                _ if !txn.is_table(place.id) => {}
                Some(row) => redo::put(&mut prepared.redo, place.id, key, row),
                // One that came and went within the transaction is nothing to log.
                None if beneath.is_some() => redo::delete(&mut prepared.redo, place.id, key),
                None => {}
            }
            prepared.send(txn.shared);
            usize::try_from(bytes).unwrap_or(0)
        });
        if through == Ok(true) {
            prepared.keep_promise(txn.shared, usize::MAX);
            self.phase = Phase::Decide;
        }
        self.prepared = Some(prepared);
        through.map(|_| ())
    }

    fn decide(&mut self, state: &Arc<InteractiveState>, txn: &mut Txn<'_>) -> Result<(), Stop> {
        txn.reads_hold_at_commit(state)?;
        let mut roots: Vec<(PartitionRef, Place)> = Vec::new();
        let notes = state.notes.lock();
        let mut at = 0;
        while let Some(note) = notes.get(at) {
            let tree = note.place.id;
            let mut high = None;
            if !txn.is_given_up(tree) {
                let (partition, place) = txn.root_of_note(note.place, &note.key)?;
                // SAFETY: held by this transaction; the reference ends with the statement.
                high = unsafe { partition.data_mut() }.high.clone();
                roots.push((partition, place));
            }
            let is_there = |note: &OverlayUndo| {
                note.place.id == tree && high.as_ref().is_none_or(|high| *note.key < high[..])
            };
            at += notes[at..].partition_point(is_there);
        }
        drop(notes);
        // The last look before nothing can be refused any more.
        txn.worker.admit(txn.shared)?;
        let prepared = self.prepared.as_ref().ok_or(Stop::TransactionEnded)?;
        if prepared.grown > 0 && txn.shared.memory.used() + prepared.grown > txn.shared.memory.max() {
            return Err(Stop::OutOfMemory);
        }
        for (partition, _) in &roots {
            // Some stamp is of this commit, for those who settle to have one that is no older.
            // SAFETY: as above.
            unsafe { partition.data_mut() }.next_sequence();
        }
        let parts = prepared.framer.parts();
        debug_assert!(prepared.redo.len() < txn.shared.config.log.part_bytes, "it is not cut again");
        txn.worker.scratch.redo.extend_from_slice(&prepared.redo);
        txn.worker.name_parts((parts.count > 0).then_some(parts));
        txn.decides = true;
        let how = FinishedAs::Decided(roots);
        txn.worker.scratch.finish = Some(Finish { state: state.clone(), keys: Vec::new(), how });
        Ok(())
    }

    fn settle(&mut self, state: &Arc<InteractiveState>, txn: &mut Txn<'_>) -> Result<(), Stop> {
        if let WriterOutcome::Committed(epoch) = state.writer.outcome() {
            txn.depend(epoch);
        }
        let through = self.slice(state, txn, |txn, partition, place, key| {
            let image = txn.root(partition, place).ok().and_then(|root| root.image(key));
            let bytes = image.and_then(|image| image.row).map_or(0, <[u8]>::len);
            txn.settle_key(partition, place, key);
            // It may have locked the row without an image.
            txn.drop_lock(partition, place, key, state.id);
            bytes
        })?;
        txn.look = true;
        if through {
            txn.end_transaction(state);
            self.phase = Phase::Over;
        }
        Ok(())
    }

    /// The program has ended.
    pub fn ended(&mut self) {
        self.prepared = None;
    }
}

/// A change and the one before it.
fn note_at(notes: &mut [OverlayUndo], at: usize) -> Option<(&OverlayUndo, Option<&mut OverlayUndo>)> {
    let (before, rest) = notes.split_at_mut_checked(at)?;
    Some((rest.first()?, before.last_mut()))
}

fn is_same(one: &OverlayUndo, other: &OverlayUndo) -> bool {
    one.place.id == other.place.id && one.key == other.key
}

/// One key in each partition that changes lie in, which stand in the order of their trees and keys.
fn claim_sorted(notes: &[OverlayUndo], routing: &RoutingTable, claims: &mut ClaimSet) {
    let mut at = 0;
    while let Some(note) = notes.get(at) {
        let (tree, group) = (note.place.id, note.place.group);
        claims.add_point(group, &note.key);
        let high = routing.routes(group).from(&note.key).nth(1).map(|next| &next.low[..]);
        let is_there =
            |note: &OverlayUndo| note.place.id == tree && high.is_none_or(|high| *note.key < *high);
        at += notes[at..].partition_point(is_there);
    }
}

impl Txn<'_> {
    /// The writer has committed what is in these roots, all of which are held.
    pub(super) fn flip(&mut self, state: &InteractiveState, roots: Vec<(PartitionRef, Place)>) {
        assert!(state.writer.decide(), "nobody else ends a transaction whose end was taken");
        state.writer.commit(self.depends_on);
        // What it has replaced need not be kept for itself.
        drop(state.snapshot.lock().take());
        for (partition, place) in roots {
            if let Some(root) = self.root_whatever(partition, place) {
                root.mark_unsettled();
            }
        }
    }

    /// Whether a held partition covers a key of a group.
    fn is_in(&self, partition: PartitionRef, group: GroupId, key: &[u8]) -> bool {
        // SAFETY: held by this transaction, and the reference ends with the expression.
        partition.group() == group && unsafe { partition.data_mut() }.covers(key)
    }
}
