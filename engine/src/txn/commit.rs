//! The commit point.
//!
//! Reached with all claims held and every write in place, so nothing here can fail but the
//! check of what was read from reference tables; before it a commit of megabytes may be refused, which sends most
//! of its redo ahead in parts. Between `enter` and `leave` there are no
//! waits: an epoch is open for nanoseconds per transaction, however long it ran.
//!
//! Here a transaction gets its number, which says where it stands in the order that the log has: see
//! [`crate::log::transaction`].

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::ddl::Remains;
use super::undo::{Undo, UndoKind};
use super::{ReferenceTable, Txn};
use crate::client::Client;
use crate::id::{Epoch, PartitionId, TreeId};
use crate::partition::PartitionRef;
use crate::program::Stop;
use crate::storage::tree::AHEAD_MAX;
use crate::storage::versions::Replaced;

/// What the commit point answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Committed {
    Yes,
    /// A reference table that was read has changed: undo, and run again at once.
    Stale,
    /// The interactive transaction ended meanwhile: undo.
    Ended,
    /// What the SERIALIZABLE transaction read does not hold any more: undo.
    Doomed,
    /// The log has no room for it: undo.
    Refused(Stop),
}

/// A transaction with so many writes may have made a partition too large.
const BULK_WRITES: usize = 1_000;

impl Txn<'_> {
    /// Commits what the program did.
    pub(super) fn commit(&mut self) -> Committed {
        if self.interactive.is_some() {
            return self.keep_statement();
        }
        if !self.wrote() {
            // It would be logged with what the thread commits next.
            assert!(!self.worker.has_redo(), "what is logged was written");
            return if self.reads_are_current() { Committed::Yes } else { Committed::Stale };
        }
        self.look |= self.worker.scratch.undo.len() >= BULK_WRITES;
        if let Err(stop) = self.worker.send_parts(self.shared) {
            return Committed::Refused(stop);
        }
        let publishes = !self.reference_writes.is_empty() || self.ddl.is_some();
        if publishes {
            self.shared.references.mark(self.ddl.is_some());
        }
        // Before the epoch is entered, for who draws enters one with a latch held.
        let sequences = self.sequences_to_latch();
        let mut latched = sequences.latch();
        let number = self.number_to_give(publishes, latched.greatest_number());
        let epoch = self.shared.epochs.enter_with(&self.worker.slot, number);
        #[cfg(test)]
        let epoch = match crate::planted::is(crate::planted::Bug::EarlyEpoch) {
            true => self.began_in,
            false => epoch,
        };
        #[cfg(test)]
        assert!(!crate::planted::is(crate::planted::Bug::PanicAtCommit), "planted");
        if !self.references_valid(publishes) || !self.numbers_hold(self.ddl.is_some()) {
            self.shared.epochs.leave(&self.worker.slot);
            if publishes {
                self.shared.references.unmark();
            }
            match self.decides {
                // It tries again with those it has.
                true => self.worker.name_parts(None),
                false => self.worker.drop_parts(),
            }
            return Committed::Stale;
        }
        if self.shared.snapshots.any() {
            self.keep_before_images(epoch);
        }
        if self.ddl.is_some() {
            self.log_definitions(&mut latched);
            for partition in &self.held {
                // SAFETY: held by this transaction; the reference ends with the statement.
                unsafe { partition.data_mut() }.commit_definitions(epoch);
            }
        }
        // What logs nothing has changed no row, and leaves no epoch in the tags of checkpoint rows:
        // they must not be newer than the log.
        if self.worker.has_redo() {
            self.log_commit(epoch, number);
        }
        let remains = if publishes { self.publish(epoch, number) } else { None };
        self.shared.epochs.leave(&self.worker.slot);
        drop(latched);
        if let Some(remains) = remains {
            self.clear_away(remains);
        }
        self.depends_on = epoch;
        self.decides = false;
        self.worker.scratch.clear_writes();
        self.reference_writes.clear();
        Committed::Yes
    }

    /// The number that the transaction gets, with all claims held: one more than all it has met, and if it
    /// `publishes`, with the vector marked, than all who may have read what it replaces. `drawn`: that of the
    /// sequences that it ends.
    fn number_to_give(&self, publishes: bool, drawn: u64) -> u64 {
        let mut greatest = self.greatest_met().max(drawn);
        #[cfg(test)]
        let publishes = publishes && !crate::planted::is(crate::planted::Bug::ReferenceNumberAlone);
        if publishes {
            greatest = greatest.max(self.shared.epochs.greatest_number());
        }
        self.worker.next_number(greatest)
    }

    /// The greatest number of a transaction that this one may have seen something of, or is to come behind for
    /// another reason: what it holds, used without holding it, is defined by, and its client has met before.
    pub(super) fn greatest_met(&self) -> u64 {
        // SAFETY: held by this transaction; the reference ends with the expression.
        let number = |partition: &PartitionRef| unsafe { partition.data_mut() }.number;
        let held = self.held.iter().map(number).max().unwrap_or(0);
        let client = self.whose().map_or(0, |client| client.met());
        held.max(self.after).max(self.worker.definitions_number).max(client)
    }

    /// It uses, without holding it, what the transaction of this number has left.
    #[inline]
    pub(super) fn come_after(&mut self, number: u64) {
        if self.after < number {
            self.after = number;
        }
    }

    /// The client whose statements come one after the other, and this run is one of them.
    fn whose(&self) -> Option<&Arc<Client>> {
        let of_transaction = || self.interactive.as_ref().map(|interactive| &interactive.client);
        let ends = || self.worker.scratch.finish.as_ref().map(|finish| &finish.state.client);
        self.client.as_ref().or_else(of_transaction).or_else(ends)
    }

    /// Whoever comes behind this run comes behind all that it has met: who changes what it has read, where it
    /// has not found that changed, and what its client runs next. Before the release, if it answers anybody.
    pub(super) fn leave_met(&mut self) {
        let greatest = self.greatest_met();
        #[cfg(test)]
        let raises = !crate::planted::is(crate::planted::Bug::ReadersRaiseNothing);
        #[cfg(not(test))]
        let raises = true;
        for partition in self.held.iter().filter(|_| raises) {
            // SAFETY: held by this transaction; the reference ends with the iteration.
            let data = unsafe { partition.data_mut() };
            if data.number < greatest {
                data.number = greatest;
            }
        }
        if let Some(client) = self.whose() {
            client.note_met(greatest);
        }
    }

    /// A reader's place in the serial order is this check: whether what it has read without holding it is as it
    /// was. Whoever changes that later comes behind all that it has met.
    fn reads_are_current(&self) -> bool {
        if self.references.is_some() || self.drawn_under.is_some() {
            self.shared.epochs.note_met(&self.worker.slot, self.greatest_met());
        }
        self.references_valid(false) && self.numbers_hold(false)
    }

    /// Logs what the transaction has written under its number, which it leaves in all partitions it holds, and
    /// with its client.
    fn log_commit(&mut self, epoch: Epoch, number: u64) {
        self.worker.log_commit(epoch, number);
        if let Some(client) = self.whose() {
            client.note_met(number);
        }
        let durable = self.shared.log.durable();
        for partition in &self.held {
            // SAFETY: held by this transaction; the reference ends with the iteration.
            let data = unsafe { partition.data_mut() };
            #[cfg(test)]
            let number = match crate::planted::is(crate::planted::Bug::NumberNotStored) {
                true => data.number,
                false => number,
            };
            data.mark_commit(epoch, number, durable);
        }
    }

    /// The end of a statement of an interactive transaction: its locks and images stay, and
    /// the transaction remembers them.
    fn keep_statement(&mut self) -> Committed {
        if !self.reads_are_current() {
            return Committed::Stale;
        }
        if !self.worker.scratch.undo.is_empty() && !self.reads_hold_here() {
            return Committed::Doomed;
        }
        if let Some(interactive) = &self.interactive
            && !interactive.keep_notes(&mut self.worker.scratch.overlay_undo)
        {
            return Committed::Ended;
        }
        self.worker.scratch.clear_writes();
        Committed::Yes
    }

    /// Some snapshot is registered: what the rows were goes to the side tables. The undo list
    /// is in the order of the writes, and only the first image of an epoch is kept.
    fn keep_before_images(&mut self, epoch: Epoch) {
        let newest = self.shared.snapshots.newest();
        let mut kept = 0;
        let undo = std::mem::take(&mut self.worker.scratch.undo);
        let arena = std::mem::take(&mut self.worker.scratch.arena);
        // Snapshots of transactions look through indexes, too.
        let entries = self.shared.snapshots.any_transaction();
        let wanted = self.shared.snapshots.wanted();
        let writes = undo.iter().filter(|entry| {
            let kept = if entry.row { wanted.has(entry.place.id) } else { entries };
            kept && !entry.place.is_reference() && entry.kind != UndoKind::Overlay
        });
        // Each tree once: this is looked through for every write.
        let mut removed: SmallVec<[TreeId; 4]> = SmallVec::new();
        for entry in writes.clone().filter(|entry| entry.kind == UndoKind::Removed) {
            if !removed.contains(&entry.place.id) {
                removed.push(entry.place.id);
            }
        }
        let bytes = |range: &Range<u32>| &arena[range.start as usize..range.end as usize];
        self.fetch_images(writes.clone().filter(|entry| entry.kind == UndoKind::Updated), bytes);
        for entry in writes {
            let replaced = Replaced {
                key: bytes(&entry.key),
                row: (entry.kind != UndoKind::Inserted).then(|| bytes(&entry.image)),
                departure: entry.departure,
                may_run: !removed.contains(&entry.place.id),
            };
            if let Ok(root) = self.root(entry.partition, entry.place) {
                let first = root.versions.is_empty();
                kept += root.keep_version(replaced, epoch, newest);
                if first {
                    self.shared.snapshots.note_versions(entry.partition);
                }
            }
        }
        self.worker.report_versions(self.shared, kept as i64);
        self.worker.scratch.undo = undo;
        self.worker.scratch.arena = arena;
    }

    /// Asks the memory for the images of rows that were written: each lies some dependent loads
    /// away.
    fn fetch_images<'u>(
        &self,
        writes: impl Iterator<Item = &'u Undo> + Clone,
        bytes: impl Fn(&Range<u32>) -> &'u [u8],
    ) {
        let mut fetched: SmallVec<[(PartitionId, TreeId); 8]> = SmallVec::new();
        for entry in writes.clone() {
            let place = |entry: &Undo| (entry.partition.id, entry.place.id);
            let here = place(entry);
            if fetched.contains(&here) {
                continue;
            }
            fetched.push(here);
            if let Ok(root) = self.root(entry.partition, entry.place) {
                let others = writes.clone().filter(|entry| place(entry) == here);
                root.versions.fetch_ahead(others.map(|entry| bytes(&entry.key)).take(AHEAD_MAX));
            }
        }
    }

    /// Publishes reference tables and definitions; what definitions leave behind.
    fn publish(&mut self, epoch: Epoch, number: u64) -> Option<Remains> {
        let mut vector = (*self.shared.references.load()).clone();
        let mut changed = Vec::new();
        for (id, version, tree) in self.reference_writes.drain(..) {
            changed.push(id);
            vector.tables.insert(id, Arc::new(ReferenceTable { version, epoch, number, tree }));
        }
        let remains = self.ddl.take();
        let remains = remains.map(|work| work.publish(self.shared, &mut vector, &mut changed, number));
        self.shared.references.publish(vector, &changed, epoch, self.shared.snapshots.any());
        remains
    }
}
