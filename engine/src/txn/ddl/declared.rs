//! An index that is filled while everybody else goes on.
//!
//! ```text
//! declare    the groups of the table claimed: an empty index. Writers keep it up from here on, as any
//!            other; nobody reads it, for it is not in the table's definition
//! slices     some rows at a time, in key order, with the partitions of their entries: an entry that is
//!            there was put by a writer, whose row it is
//! complete   the group of the index claimed: it comes into the definition. Its past begins here
//! ```
//!
//! Of each row the last one to look has put the entry: a writer behind the declaration, or the slice that
//! came to it. Before the declaration no row may be locked, so that nobody has written without knowing of
//! the index. A row that an open transaction has deleted, or given another entry, cannot be told: that the
//! old entry is not there yet, the transaction has seen and noted nothing to take out. So a slice stops
//! before such a row until the transaction has ended.
//!
//! Nothing is logged of slices, as of no index: a start knows nothing of what was only declared. And
//! nothing is undone: an entry that is there is right, whatever becomes of the run that has put it.

use std::ops::{Bound, ControlFlow};

use crate::client::Refused;
use crate::heap;
use crate::id::{GroupId, TreeId};
use crate::partition::{ClaimSet, NOT_COMMITTED, PartitionRef, Root, RoutingTable};
use crate::program::{Program, Stop};
use crate::schema::IndexDef;
use crate::storage::row::entry_bytes;
use crate::storage::{KeyBuf, Row};
use crate::table::{IndexMeta, TableMeta};
use crate::txn::{BuildStep, Inserted, LockMode, Place, Txn};

/// Makes the entries of some rows in an index that is declared, from a key on.
///
/// Ends with [`Stop::LockNotAvailable`] where somebody's open transaction is in its way, which
/// [`FillIndex::refused`] tells; with [`Stop::Abort`] if two rows have one key; and with
/// [`Stop::Recompile`] if there is no such index any more.
pub struct FillIndex {
    table: TreeId,
    index: TreeId,
    /// The groups of the two, as far as the caller knows.
    groups: (GroupId, GroupId),
    from: KeyBuf,
    rows_max: usize,
    /// Set by the run: where the next slice begins; `None` when nothing is left.
    pub next: Option<KeyBuf>,
    /// Set by the run: what is in its way.
    pub refused: Option<Refused>,
}

impl FillIndex {
    /// A slice of `rows_max` rows at the most; `from` is what the slice before has answered.
    pub fn new(table: &TableMeta, index: &IndexMeta, from: KeyBuf, rows_max: usize) -> Self {
        let groups = (table.group, index.group);
        Self { table: table.def.id, index: index.def.id, groups, from, rows_max, next: None, refused: None }
    }
}

impl Program for FillIndex {
    fn counts(&self) -> bool {
        false
    }

    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        let (of_table, of_index) = self.groups;
        claims.add_point(of_table, &self.from);
        if of_index != of_table {
            // Where the entries go is in the rows.
            claims.add_group(of_index);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        (self.next, self.refused) = (None, None);
        txn.stop_at_locks();
        let table = txn.table(self.table).ok_or(Stop::Recompile)?;
        let declared = table.declared().iter().find(|index| index.def.id == self.index);
        let filled = txn.fill_slice(&table, declared.ok_or(Stop::Recompile)?, &self.from, self.rows_max);
        if filled == Err(Stop::LockNotAvailable) {
            self.refused = txn.refused().cloned();
        }
        self.next = filled?;
        Ok(())
    }
}

/// Entries to be made, and what comes behind them.
struct Page {
    /// With the storage keys of their rows.
    entries: Vec<(KeyBuf, Row)>,
    /// Where the next page begins.
    next: Option<KeyBuf>,
    /// The row there is one that cannot be told yet.
    is_blocked: bool,
}

impl Txn<'_> {
    pub(super) fn build_index(&mut self, table: TreeId, step: BuildStep) -> Result<Inserted, Stop> {
        match step {
            BuildStep::Declare(index) => self.declare_index(table, index),
            BuildStep::Complete(index) => self.complete_index(table, index),
            BuildStep::GiveUp(index) => self.give_up_index(table, index),
        }
    }

    fn declare_index(&mut self, id: TreeId, index: IndexDef) -> Result<Inserted, Stop> {
        let old = self.defined(id)?;
        if old.is_reference() || old.index(index.id).is_some() {
            return Err(Stop::Abort);
        }
        self.wait_for_locks(&old)?;
        let index_id = index.id;
        let version = self.shared.next_table_version();
        let work = self.work()?;
        let new = work.schema.declare_index(&old, index, version);
        work.note_table(&new);
        self.stamp_roots(&old, &new)?;
        let Some(index) = new.index(index_id).cloned() else { return Err(Stop::Recompile) };
        self.make_index_roots(&new, &index)?;
        Ok(Inserted::Ok)
    }

    /// A declared index of a table.
    fn declared(&mut self, table: &TableMeta, index: TreeId) -> Result<IndexMeta, Stop> {
        let declared = table.declared().iter().find(|declared| declared.def.id == index);
        declared.cloned().ok_or(Stop::Recompile)
    }

    /// Writers do with it what they did: no layout changes.
    fn complete_index(&mut self, id: TreeId, index: TreeId) -> Result<Inserted, Stop> {
        let old = self.defined(id)?;
        let index = self.declared(&old, index)?;
        let mut def = old.def.clone();
        def.indexes.push(index.def.clone());
        let work = self.work()?;
        let new = work.schema.put_table(def, old.version);
        work.note_table(&new);
        for partition in self.partitions_of(index.group) {
            let root = self.root(partition, Place::of_index(&old, &index))?;
            // Slices have put entries of rows that were there before them: snapshots from before the
            // commit find them nowhere else.
            root.since = NOT_COMMITTED;
        }
        Ok(Inserted::Ok)
    }

    /// Does nothing if it has gone with its table, or is complete.
    fn give_up_index(&mut self, id: TreeId, index: TreeId) -> Result<Inserted, Stop> {
        let Some(old) = self.work()?.schema.tables.get(&id).cloned() else { return Ok(Inserted::Ok) };
        let Ok(index) = self.declared(&old, index) else { return Ok(Inserted::Ok) };
        for partition in self.partitions_of(index.group) {
            self.replace_root(partition, index.root, Root::empty())?;
        }
        let work = self.work()?;
        let new = work.schema.give_up_index(&old, index.def.id);
        work.note_table(&new);
        work.drop_empty_groups(&old);
        Ok(Inserted::Ok)
    }

    /// Makes the entries of the rows from a key on; where the next slice begins.
    fn fill_slice(
        &mut self,
        table: &TableMeta,
        index: &IndexMeta,
        from: &[u8],
        rows_max: usize,
    ) -> Result<Option<KeyBuf>, Stop> {
        let partition = self.partition_for(table.group, from)?;
        let page = self.page_of_entries(table, index, partition, from, rows_max)?;
        let place = Place::of_index(table, index);
        for (entry, key) in &page.entries {
            self.check_size(entry, key.len())?;
            if heap::rows_exceed() {
                return Err(Stop::OutOfMemory);
            }
            let partition = self.partition_for(index.group, entry)?;
            // Of a unique one another row's entry may be about to come.
            self.check_lock_beside(partition, place, entry, LockMode::Update)?;
            // SAFETY: held by this transaction; the reference ends with the statement.
            let stamp = unsafe { partition.data_mut() }.sequence;
            let root = self.root(partition, place)?;
            if root.put_new(entry, key.clone(), stamp).is_ok() {
                self.account(partition, entry_bytes(entry, key));
            } else if root.row(entry).row.is_some_and(|known| known[..] != key[..]) {
                return Err(Stop::Abort);
            }
        }
        // It grows from one partition on.
        self.look = true;
        match page.next {
            Some(next) if page.is_blocked && page.entries.is_empty() => {
                self.check_lock_beside(partition, Place::of(table), &next, LockMode::Share)?;
                Ok(Some(next))
            }
            next => Ok(next),
        }
    }

    /// The entries of rows of one partition that are committed and stay what they are.
    fn page_of_entries(
        &mut self,
        table: &TableMeta,
        index: &IndexMeta,
        partition: PartitionRef,
        from: &[u8],
        rows_max: usize,
    ) -> Result<Page, Stop> {
        let root: &Root = self.root(partition, Place::of(table))?;
        let mut page = Page { entries: Vec::with_capacity(rows_max), next: None, is_blocked: false };
        root.rows().scan(Bound::Included(from), Bound::Unbounded, |key, row| {
            if page.entries.len() == rows_max {
                page.next = Some(KeyBuf::from_slice(key));
                return ControlFlow::Break(());
            }
            let mut entry = KeyBuf::new();
            table.index_key(index, row, key, &mut entry);
            if let Some(image) = root.image(key) {
                let stays = image.row.is_some_and(|row| {
                    let mut will_be = KeyBuf::new();
                    table.index_key(index, row, key, &mut will_be);
                    will_be == entry
                });
                #[cfg(test)]
                let stays = stays || crate::planted::is(crate::planted::Bug::FilledOverImages);
                if !stays {
                    (page.next, page.is_blocked) = (Some(KeyBuf::from_slice(key)), true);
                    return ControlFlow::Break(());
                }
            }
            page.entries.push((entry, Row::from(key)));
            ControlFlow::Continue(())
        });
        if page.next.is_none() {
            // SAFETY: held by this transaction; the reference ends with the statement.
            page.next = unsafe { partition.data_mut() }.high.clone();
        }
        Ok(page)
    }
}
