//! Tables and indexes made, changed and dropped, under a claim of all their groups.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use super::regroup::{only_becomes_reference, only_regroups};
use super::{Before, ColumnSource, CopyReader, DdlWork, TableRecord, table_key};
use crate::cell::Cell;
use crate::heap;
use crate::id::{GroupId, TreeId, TxnId};
use crate::log::redo;
use crate::partition::{Partition, PartitionData, PartitionRef, Root, Route};
use crate::program::Stop;
use crate::schema::{IndexDef, TableDef};
use crate::storage::row::entry_bytes;
use crate::storage::{KeyBuf, Row};
use crate::table::{IndexMeta, REFERENCE_GROUP, TableMeta, group_of};
use crate::txn::isolation::ReadNote;
use crate::txn::reference::SharedTree;
use crate::txn::{Direction, GroupPlaces, Inserted, KeyRange, LockMode, LockWait, Place, Txn};

impl Txn<'_> {
    pub(super) fn create_table(&mut self, def: TableDef) -> Result<Inserted, Stop> {
        if self.work()?.schema.tables.contains_key(&def.id) {
            // Somebody else drew the same number: nothing of theirs is overwritten.
            return Err(Stop::ConcurrentUpdate);
        }
        let table = self.define(def)?;
        self.make_roots(&table)?;
        Ok(Inserted::Ok)
    }

    /// Enters a definition into the working schema, with a layout version never used before.
    pub(super) fn define(&mut self, def: TableDef) -> Result<std::sync::Arc<TableMeta>, Stop> {
        let version = self.shared.next_table_version();
        let work = self.work()?;
        let table = work.schema.put_table(def, version);
        work.note_table(&table);
        Ok(table)
    }

    /// Empty roots for a table and all its indexes, in every partition of their groups.
    pub(super) fn make_roots(&mut self, table: &TableMeta) -> Result<(), Stop> {
        let trees = std::iter::once((table.def.id, table.group, table.root))
            .chain(table.indexes.iter().map(|index| (index.def.id, index.group, index.root)));
        for (id, group, position) in trees {
            self.make_group(group)?;
            for partition in self.partitions_of(group) {
                self.replace_root(partition, position, Root::defined(id, table.version))?;
            }
            if group == REFERENCE_GROUP {
                self.discharge_reference(id)?;
                self.put_reference(id, table.version, SharedTree::new());
            }
        }
        Ok(())
    }

    /// A group not seen before gets one partition, held by this transaction.
    pub(super) fn make_group(&mut self, group: GroupId) -> Result<(), Stop> {
        if !self.work()?.routing.routes(group).is_empty() {
            return Ok(());
        }
        let mut data = PartitionData::new(KeyBuf::new(), None);
        data.sequence = self.held.iter().map(sequence).max().unwrap_or(0);
        data.number = self.held.iter().map(number).max().unwrap_or(0);
        let partition = self.shared.new_partition(group, data);
        self.held.push(partition);
        let work = self.work()?;
        work.made.push(partition);
        work.put_group(group, vec![Route { low: KeyBuf::new(), partition }]);
        work.note_group(group);
        Ok(())
    }

    pub(super) fn partitions_of(&self, group: GroupId) -> Vec<PartitionRef> {
        match &self.ddl {
            Some(work) => work.routing.routes(group).iter().map(|route| route.partition).collect(),
            None => Vec::new(),
        }
    }

    pub(super) fn drop_table(&mut self, id: TreeId) -> Result<Inserted, Stop> {
        let table = self.defined(id)?;
        self.wait_for_locks(&table)?;
        self.clear_roots(&table, |_| true)?;
        let work = self.work()?;
        work.schema.drop_table(id);
        work.note(table_key(id), None::<&TableRecord>);
        work.drop_empty_groups(&table);
        redo::drop_tree(&mut self.worker.scratch.redo, id);
        Ok(Inserted::Ok)
    }

    pub(super) fn defined(&mut self, id: TreeId) -> Result<std::sync::Arc<TableMeta>, Stop> {
        self.work()?.schema.tables.get(&id).cloned().ok_or(Stop::Recompile)
    }

    /// Takes the roots of a table's trees out of their partitions.
    pub(super) fn clear_roots(
        &mut self,
        table: &TableMeta,
        which: impl Fn(TreeId) -> bool,
    ) -> Result<(), Stop> {
        let trees = std::iter::once((table.def.id, table.group, table.root))
            .chain(table.indexes.iter().map(|index| (index.def.id, index.group, index.root)));
        for (id, group, position) in trees.filter(|(id, ..)| which(*id)) {
            for partition in self.partitions_of(group) {
                self.replace_root(partition, position, Root::empty())?;
            }
            if group == REFERENCE_GROUP {
                self.discharge_reference(id)?;
                self.drop_reference(id);
            }
        }
        Ok(())
    }

    /// Interactive transactions hold locks on rows of the table: the change waits for them.
    pub(super) fn wait_for_locks(&mut self, table: &TableMeta) -> Result<(), Stop> {
        let place = Place::of(table);
        for partition in self.partitions_of(table.group) {
            // Those of transactions that have ended go with the look, so it is asked again.
            while let Some(key) = self.root(partition, place)?.first_locked().map(KeyBuf::from_slice) {
                self.check_lock(partition, place, &key, LockMode::Update, LockWait::Wait)?;
                if let Some(own) = self.locker {
                    // It has what it has waited for, and its rows may go where nobody would look for the lock.
                    self.drop_lock(partition, place, &key, own);
                }
                if self.root(partition, place)?.first_locked() == Some(&key[..]) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Gives the roots that stay a new layout version. Undo puts the definitions back, and
    /// with them the old version, so the roots go into the undo list as they are.
    pub(super) fn stamp_roots(&mut self, old: &TableMeta, new: &TableMeta) -> Result<(), Stop> {
        let trees = std::iter::once((new.def.id, new.group, new.root))
            .chain(new.indexes.iter().map(|index| (index.def.id, index.group, index.root)));
        for (id, group, position) in trees {
            let stays = id == old.def.id || old.index(id).is_some();
            if !stays {
                continue;
            }
            for partition in self.partitions_of(group) {
                // SAFETY: the group is held; the reference ends in this iteration.
                let data = unsafe { partition.data_mut() };
                if let Some(root) = data.roots.get_mut(position as usize) {
                    self.ddl_versions_note(partition, position, root.version);
                    root.version = new.version;
                }
            }
            if group == REFERENCE_GROUP {
                let tree = self.reference_now(id)?;
                self.put_reference(id, new.version, tree);
            }
        }
        Ok(())
    }

    pub(super) fn ddl_versions_note(&mut self, partition: PartitionRef, position: u32, version: u32) {
        if let Some(work) = &mut self.ddl {
            work.before.push(Before::Version(partition, position, version));
        }
    }

    /// A reference tree as this transaction sees it, whatever its layout version.
    fn reference_now(&mut self, id: TreeId) -> Result<SharedTree, Stop> {
        if let Some((.., tree)) = self.reference_writes.iter().find(|(other, ..)| *other == id) {
            return Ok(tree.clone());
        }
        self.published_reference(id).map(|table| table.tree.clone()).ok_or(Stop::Recompile)
    }

    /// Gives back what the rows of a reference table, or the entries of an index of one, count for:
    /// they are about to go.
    fn discharge_reference(&mut self, id: TreeId) -> Result<(), Stop> {
        let is_gone = self.work()?.dropped_references.contains(&id);
        let Ok(tree) = self.reference_now(id) else { return Ok(()) };
        if is_gone || tree.is_empty() {
            return Ok(());
        }
        let mut bytes = 0;
        tree.scan(Bound::Unbounded, Bound::Unbounded, |key, row| {
            bytes += entry_bytes(key, row);
            ControlFlow::Continue(())
        });
        let partition = self.partition_for(REFERENCE_GROUP, &[])?;
        self.account(partition, -bytes);
        self.note_charged(partition, -bytes)
    }

    pub(super) fn create_index(&mut self, id: TreeId, index: IndexDef) -> Result<Inserted, Stop> {
        let old = self.defined(id)?;
        self.wait_for_locks(&old)?;
        let index_id = index.id;
        let mut def = old.def.clone();
        def.indexes.push(index);
        let new = self.define(def)?;
        self.stamp_roots(&old, &new)?;
        let Some(index) = new.index(index_id).cloned() else { return Err(Stop::Recompile) };
        self.make_index_roots(&new, &index)?;
        self.fill_index(&new, &index)
    }

    /// Empty roots of an index, in every partition of its group.
    pub(super) fn make_index_roots(&mut self, table: &TableMeta, index: &IndexMeta) -> Result<(), Stop> {
        self.make_group(index.group)?;
        for partition in self.partitions_of(index.group) {
            self.replace_root(partition, index.root, Root::defined(index.def.id, table.version))?;
        }
        if index.group == REFERENCE_GROUP {
            self.put_reference(index.def.id, table.version, SharedTree::new());
        }
        Ok(())
    }

    /// Makes the entries of all rows. Straight into the new trees: undo drops them whole.
    pub(super) fn fill_index(&mut self, table: &TableMeta, index: &IndexMeta) -> Result<Inserted, Stop> {
        let mut added = Vec::new();
        let filled = self.put_entries(table, index, &mut added);
        for (partition, bytes) in added {
            self.note_charged(partition, bytes)?;
        }
        filled
    }

    /// The same; `added` is told what the entries count for in each partition.
    fn put_entries(
        &mut self,
        table: &TableMeta,
        index: &IndexMeta,
        added: &mut Vec<(PartitionRef, i64)>,
    ) -> Result<Inserted, Stop> {
        let rows = self.all_rows(table)?;
        let place = Place::of_index(table, index);
        for (key, row) in rows {
            let mut entry = KeyBuf::new();
            table.index_key(index, &row, &key, &mut entry);
            self.check_size(&entry, key.len())?;
            if heap::rows_exceed() {
                return Err(Stop::OutOfMemory);
            }
            let partition = self.partition_for(index.group, &entry)?;
            let stamp = sequence(&partition);
            let mut tree = self.tree_for_write(partition, place)?;
            if tree.insert_new(&entry, Row::from(&key[..]), stamp).is_err() {
                return Ok(Inserted::DuplicateKey(Some(index.def.id)));
            }
            let bytes = entry_bytes(&entry, &key);
            self.account(partition, bytes);
            match added.iter_mut().find(|(known, _)| known.id == partition.id) {
                Some((_, all)) => *all += bytes,
                None => added.push((partition, bytes)),
            }
        }
        Ok(Inserted::Ok)
    }

    /// Copies of all rows, in key order.
    pub(super) fn all_rows(&mut self, table: &TableMeta) -> Result<Vec<(Row, Row)>, Stop> {
        let (mut rows, mut fits) = (Vec::new(), true);
        self.scan(table, KeyRange::ALL, Direction::Ascending, &mut |key, row| {
            rows.push((Row::from(key), Row::from(row)));
            fits = !heap::work_exceeds(0);
            if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if fits { Ok(rows) } else { Err(Stop::OutOfMemory) }
    }

    pub(super) fn drop_index(&mut self, id: TreeId, index: TreeId) -> Result<Inserted, Stop> {
        let old = self.defined(id)?;
        self.wait_for_locks(&old)?;
        self.clear_roots(&old, |tree| tree == index)?;
        let mut def = old.def.clone();
        def.indexes.retain(|other| other.id != index);
        let new = self.define(def)?;
        self.stamp_roots(&old, &new)?;
        self.work()?.drop_empty_groups(&old);
        Ok(Inserted::Ok)
    }

    pub(super) fn alter_table(&mut self, def: TableDef, columns: &[ColumnSource]) -> Result<Inserted, Stop> {
        let old = self.defined(def.id)?;
        let same_columns = columns.len() == old.def.columns.len()
            && columns.iter().enumerate().all(
                |(at, source)| matches!(source, ColumnSource::Kept(column) if usize::from(*column) == at),
            );
        let same = same_columns
            && def.columns == old.def.columns
            && def.key == old.def.key
            && def.placement == old.def.placement
            && def.indexes == old.def.indexes;
        if same {
            // Rows stay where they are, locked ones and uncommitted images with them: whoever asks
            // for this has locked the table against those it must not meet.
            let new = self.define(def)?;
            self.stamp_roots(&old, &new)?;
            return Ok(Inserted::Ok);
        }
        self.wait_for_locks(&old)?;
        if columns.len() != def.columns.len() {
            return Err(Stop::Abort);
        }
        if same_columns && only_regroups(&old.def, &def) {
            return self.regroup_table(&old, def);
        }
        if same_columns && only_becomes_reference(&old.def, &def) {
            return self.become_reference(&old, def);
        }
        let began = self.shared.clock.monotonic_nanos();
        let rows = self.all_rows(&old)?;
        self.clear_roots(&old, |_| true)?;
        // Old keys go in the log before new rows come; equal keys are put again.
        for (key, _) in &rows {
            self.check_room(&[])?;
            self.log_delete(&old, key);
        }
        let new = self.define(def)?;
        debug_assert_eq!(group_of(&new.def.placement), new.group);
        self.make_roots(&new)?;
        self.level_sequences();
        let filled = self.fill_table(&old, &new, &rows, columns)?;
        self.work()?.drop_empty_groups(&old);
        if old.group != new.group {
            self.note_regrouped(&new, began);
        }
        Ok(filled)
    }

    /// Makes a table of the rows of another.
    pub(super) fn copy_table(
        &mut self,
        from: TreeId,
        def: TableDef,
        columns: &[ColumnSource],
        reader: Option<CopyReader>,
    ) -> Result<Inserted, Stop> {
        let old = self.defined(from)?;
        if self.work()?.schema.tables.contains_key(&def.id) {
            return Err(Stop::ConcurrentUpdate);
        }
        if columns.len() != def.columns.len() {
            return Err(Stop::Abort);
        }
        let mut rows = self.all_rows(&old)?;
        if let Some(reader) = reader {
            if let Some(snapshot) = reader.snapshot {
                let all =
                    ReadNote::Range { place: Place::of(&old), low: Bound::Unbounded, high: Bound::Unbounded };
                self.reads_hold(&[all], snapshot).map_err(|_| Stop::ConcurrentUpdate)?;
            }
            self.with_changes_of(&old, reader.writer, &mut rows)?;
        }
        let new = self.define(def)?;
        self.make_roots(&new)?;
        self.level_sequences();
        self.fill_table(&old, &new, &rows, columns)
    }

    /// Applies what a transaction has changed and not committed; the rows stay in key order.
    fn with_changes_of(
        &mut self,
        table: &TableMeta,
        writer: TxnId,
        rows: &mut Vec<(Row, Row)>,
    ) -> Result<(), Stop> {
        let place = Place::of(table);
        let mut images: BTreeMap<Row, Option<Row>> = BTreeMap::new();
        for partition in self.partitions_of(table.group) {
            let root = self.root(partition, place)?;
            let own = root.images_of(writer, Bound::Unbounded, Bound::Unbounded).into_iter().flatten();
            images.extend(own.map(|(key, image)| (Row::from(key), image.row.map(Row::from))));
        }
        rows.retain(|(key, _)| !images.contains_key(key));
        rows.extend(images.into_iter().filter_map(|(key, image)| Some((key, image?))));
        // Two runs in order: the sort merges them.
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(())
    }

    /// Puts rows of one table into another, which is empty.
    fn fill_table(
        &mut self,
        old: &TableMeta,
        new: &TableMeta,
        rows: &[(Row, Row)],
        columns: &[ColumnSource],
    ) -> Result<Inserted, Stop> {
        if columns
            .iter()
            .any(|source| matches!(source, ColumnSource::Each(cells) if cells.len() != rows.len()))
        {
            return Err(Stop::Abort);
        }
        for (at, (_, row)) in rows.iter().enumerate() {
            let mut cells = Vec::with_capacity(columns.len());
            for source in columns {
                cells.push(match source {
                    ColumnSource::Kept(column) => old.layout.get(row, usize::from(*column)),
                    ColumnSource::Constant(cell) => cell.as_cell(),
                    ColumnSource::Each(cells) => cells[at].as_cell(),
                    ColumnSource::HiddenRowId => Cell::Int8(self.hidden_row_id()),
                });
            }
            let image = new.layout.encode_row(&cells);
            let mut key = KeyBuf::new();
            new.storage_key(&image, &mut key);
            match self.insert(new, &key, &image)? {
                Inserted::Ok => {}
                refused => return Ok(refused),
            }
        }
        Ok(Inserted::Ok)
    }

    /// Logs that a row is gone with the root it was in. Its partition counts as written.
    fn log_delete(&mut self, table: &TableMeta, key: &[u8]) {
        if let Some(partition) = self.ddl.as_ref().and_then(|work| work.routing.find(table.group, key)) {
            // SAFETY: the group is held; the reference ends with the statement.
            unsafe { partition.data_mut() }.next_sequence();
        }
        redo::delete(&mut self.worker.scratch.redo, table.def.id, key);
    }

    pub(super) fn truncate(&mut self, id: TreeId) -> Result<Inserted, Stop> {
        let table = self.defined(id)?;
        self.wait_for_locks(&table)?;
        // Keys alone, and whatever there is of memory: this makes room.
        let mut keys = Vec::new();
        self.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |key, _| {
            keys.push(Row::from(key));
            ControlFlow::Continue(())
        })?;
        for key in &keys {
            self.check_room(&[])?;
            self.log_delete(&table, key);
        }
        self.make_roots(&table)?;
        Ok(Inserted::Ok)
    }
}

impl DdlWork {
    /// Logs a table's definition.
    pub(super) fn note_table(&mut self, table: &TableMeta) {
        let declared = table.declared().iter().map(|index| index.def.clone()).collect();
        let record = TableRecord { def: table.def.clone(), version: table.version, declared };
        self.note(table_key(table.def.id), Some(&record));
    }

    /// Logs the partitions of a group.
    pub(super) fn note_group(&mut self, group: GroupId) {
        self.meta.extend(GroupPlaces::of_group(group, self.routing.routes(group)));
    }

    /// Drops the groups that a table, as it was, and its indexes had their trees in, where no tree is
    /// left. Of no other can the last tree have gone.
    pub(super) fn drop_empty_groups(&mut self, was: &TableMeta) {
        let mut groups: Vec<GroupId> = was.indexes.iter().map(|index| index.group).collect();
        groups.push(was.group);
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            if !self.schema.is_empty_group(group) {
                continue;
            }
            self.schema.groups.remove(&group);
            let routes = self.routing.routes(group);
            self.left.extend(routes.iter().map(|route| route.partition));
            self.meta.extend(GroupPlaces::of_dropped_group(group, routes));
            self.drop_group(group);
        }
    }
}

fn sequence(partition: &PartitionRef) -> u64 {
    let partition: &Partition = partition;
    // SAFETY: callers hold the partition; the reference ends with the expression.
    unsafe { partition.data_mut() }.sequence
}

fn number(partition: &PartitionRef) -> u64 {
    // SAFETY: as above.
    unsafe { partition.data_mut() }.number
}
