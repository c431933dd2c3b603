//! A table that goes to another co-location group, or becomes a reference table, and keeps its
//! rows and their keys.
//!
//! ```text
//! group of its own    [· · · · · · ·)[· · · · ·)           the tree's parts are joined
//! the other group     [· · · ·)[· · · · · ·)[· ·)          and cut at its boundaries
//! ```
//!
//! Joining and cutting cost O(height) for each partition, whatever the number of rows. Nothing
//! of a row changes, so nothing of it is logged: redo and checkpoints know rows by table and
//! key, and replay distributes them by the definition of now. What belongs to a range goes with
//! it: old versions, row locks, the stamps that checkpoints and durability go by.
//!
//! A table becomes a reference table by its nodes being held otherwise: O(nodes).

use super::Before;
use crate::id::{GroupId, TreeId};
use crate::panics::NoUnwind;
use crate::partition::{PartitionRef, Root};
use crate::program::Stop;
use crate::schema::{IndexPlacement, Placement, TableDef};
use crate::table::{REFERENCE_GROUP, TableMeta};
use crate::txn::reference::SharedTree;
use crate::txn::repartition::RepartitionKind;
use crate::txn::{Inserted, Txn};

/// Whether only the co-location group of the rows changes: same rows under the same keys.
pub(super) fn only_regroups(old: &TableDef, new: &TableDef) -> bool {
    let distributed = |def: &TableDef| matches!(def.placement, Placement::Distributed { .. });
    distributed(old)
        && distributed(new)
        && old.placement != new.placement
        && old.columns == new.columns
        && old.key == new.key
        && old.indexes == new.indexes
}

/// Whether the rows of a distributed table only become those of a reference table.
pub(super) fn only_becomes_reference(old: &TableDef, new: &TableDef) -> bool {
    old.placement != Placement::Reference
        && new.placement == Placement::Reference
        && old.columns == new.columns
        && old.key == new.key
}

/// A tree that went to another group: how it comes back.
pub(super) struct Moved {
    /// The layout version it had.
    version: u32,
    /// The partitions it came from, in key order, and where each kept it.
    from: Parts,
    to: Parts,
}

/// Partitions of one group in key order, and the position of one tree in them.
struct Parts {
    partitions: Vec<PartitionRef>,
    position: u32,
}

impl Moved {
    /// Puts the tree back.
    pub fn undo(self) {
        move_parts(&self.to, &self.from, self.version);
    }
}

/// A tree that became a reference table's: how it comes back.
pub(super) struct Taken {
    /// The root it was in, but for the tree itself.
    rest: Root,
    tree: SharedTree,
    bytes: i64,
    from: Parts,
}

impl Taken {
    /// Puts the tree back.
    pub fn undo(self) {
        let whole = self.rest.with_rows(self.tree.held_by());
        cut_parts(whole, self.bytes, &self.from);
    }
}

/// Moves a tree from the partitions of one group to those of another, all of them held by the
/// caller, and gives it a layout version.
fn move_parts(from: &Parts, to: &Parts, version: u32) {
    let whole_move = NoUnwind::new("in the middle of a change of groups");
    let (mut whole, bytes) = join_parts(from);
    whole.version = version;
    cut_parts(whole, bytes, to);
    for target in &to.partitions {
        for source in &from.partitions {
            // SAFETY: both are held by the caller, and differ, being of different groups; the
            // references end with the statement.
            unsafe { target.data_mut().take_marks(source.data_mut()) };
            target.mix_memory(source);
        }
    }
    whole_move.pass();
}

/// Takes a tree out of its partitions, held by the caller, as one, with the bytes of its rows.
fn join_parts(from: &Parts) -> (Root, i64) {
    let (mut whole, mut bytes) = (Root::empty(), 0);
    for partition in &from.partitions {
        // SAFETY: held by the caller; the reference ends with the iteration.
        let (part, part_bytes) = unsafe { partition.data_mut() }.take_root(from.position);
        whole.append(part);
        bytes += part_bytes;
    }
    (whole, bytes)
}

/// Cuts a tree at the boundaries of partitions, held by the caller, and puts it into them.
fn cut_parts(mut whole: Root, bytes: i64, to: &Parts) {
    let rows = whole.rows().len().max(1);
    let mut parts = Vec::with_capacity(to.partitions.len());
    for partition in to.partitions.iter().rev() {
        // SAFETY: as above; the reference ends with the statement.
        let low = unsafe { partition.data_mut() }.low.clone();
        parts.push(if low.is_empty() {
            std::mem::replace(&mut whole, Root::empty())
        } else {
            whole.split_off(&low)
        });
    }
    let mut left = bytes;
    for (at, (partition, part)) in to.partitions.iter().zip(parts.into_iter().rev()).enumerate() {
        let last = at + 1 == to.partitions.len();
        let share = (i128::from(bytes) * i128::from(part.rows().len()) / i128::from(rows)) as i64;
        let share = if last { left } else { share };
        left -= share;
        // SAFETY: as above.
        unsafe { partition.data_mut() }.give_root(to.position, part, share);
    }
}

impl Txn<'_> {
    /// Moves a table and its local indexes to another group. Nobody holds a row of it.
    pub(super) fn regroup_table(&mut self, old: &TableMeta, def: TableDef) -> Result<Inserted, Stop> {
        let began = self.shared.clock.monotonic_nanos();
        let new = self.define(def)?;
        self.make_group(new.group)?;
        self.move_tree(new.def.id, (old.group, old.root), (new.group, new.root), old.version, new.version)?;
        for index in &new.indexes {
            let Some(before) = old.index(index.def.id) else { return Err(Stop::Recompile) };
            if index.def.placement == IndexPlacement::Local {
                let (from, to) = ((before.group, before.root), (index.group, index.root));
                self.move_tree(index.def.id, from, to, old.version, new.version)?;
            } else {
                self.stamp_tree(index.def.id, index.group, index.root, new.version)?;
            }
        }
        self.level_sequences();
        self.settle_groups(&[old.group, new.group]);
        self.work()?.drop_empty_groups(old);
        self.note_regrouped(&new, began);
        // Boundaries that suited the group's own rows may leave these too many in one partition.
        self.look = true;
        Ok(Inserted::Ok)
    }

    fn move_tree(
        &mut self,
        id: TreeId,
        from: (GroupId, u32),
        to: (GroupId, u32),
        was: u32,
        version: u32,
    ) -> Result<(), Stop> {
        let parts = |txn: &Self, (group, position)| Parts { partitions: txn.partitions_of(group), position };
        let (from, to) = (parts(self, from), parts(self, to));
        let complete = from.partitions.iter().all(|partition| {
            // SAFETY: held by this transaction; the reference ends here.
            unsafe { partition.data_mut() }.root(from.position, id, was).is_some()
        });
        if !complete || to.partitions.is_empty() {
            return Err(Stop::Recompile);
        }
        move_parts(&from, &to, version);
        let versions = to.partitions.iter().filter(|partition| {
            // SAFETY: as above.
            unsafe { partition.data_mut() }.has_versions()
        });
        versions.for_each(|partition| self.shared.snapshots.note_versions(partition));
        self.work()?.before.push(Before::Moved(Moved { version: was, from, to }));
        Ok(())
    }

    /// Numbers for the views.
    fn settle_groups(&self, groups: &[GroupId]) {
        for partition in groups.iter().flat_map(|group| self.partitions_of(*group)) {
            // SAFETY: as above.
            partition.note_size(unsafe { partition.data_mut() });
        }
    }

    /// A row of the history of repartitionings, once this commits.
    pub(super) fn note_regrouped(&mut self, table: &TableMeta, began_nanos: u64) {
        let Some(partition) = self.partitions_of(table.group).first().copied() else { return };
        let view = self.repartition_view(RepartitionKind::Regroup, partition, began_nanos, table.def.id);
        if let Some(work) = &mut self.ddl {
            work.regrouped.push(view);
        }
    }

    /// Makes a distributed table a reference table. Its rows keep their keys, so the log need
    /// not hear of them. Nobody holds a row of it, or has a snapshot from before.
    pub(super) fn become_reference(&mut self, old: &TableMeta, def: TableDef) -> Result<Inserted, Stop> {
        let began = self.shared.clock.monotonic_nanos();
        let from = Parts { partitions: self.partitions_of(old.group), position: old.root };
        let (tree, bytes) = self.take_tree(old, from)?;
        // What is left are the roots of indexes, which are made anew.
        self.clear_roots(old, |id| id != old.def.id)?;
        let new = self.define(def)?;
        self.make_roots(&new)?;
        self.put_reference(new.def.id, new.version, tree);
        self.level_sequences();
        let partition = self.partition_for(REFERENCE_GROUP, &[])?;
        // SAFETY: the group is held; the reference ends before the next access.
        let data = unsafe { partition.data_mut() };
        data.bytes += bytes;
        // It counts as written: the rows that came may be of a newer epoch than its own last one, and the log
        // have deletes of their keys from before they were put again.
        data.next_sequence();
        self.work()?.before.push(Before::Bytes(partition, bytes));
        for index in &new.indexes {
            match self.fill_index(&new, index)? {
                Inserted::Ok => {}
                refused => return Ok(refused),
            }
        }
        self.work()?.drop_empty_groups(old);
        self.note_regrouped(&new, began);
        Ok(Inserted::Ok)
    }

    /// Takes a table's tree out of its partitions, to be shared, and the bytes of its rows.
    fn take_tree(&mut self, table: &TableMeta, from: Parts) -> Result<(SharedTree, i64), Stop> {
        let version = table.version;
        let quiet = from.partitions.iter().all(|partition| {
            // SAFETY: held by this transaction; the reference ends here.
            let root = unsafe { partition.data_mut() }.root(from.position, table.def.id, version);
            root.is_some_and(|root| !root.has_row_locks() && root.versions.is_empty())
        });
        if !quiet {
            return Err(Stop::ConcurrentUpdate);
        }
        let whole_move = NoUnwind::new("in the middle of a change of groups");
        let (mut rest, bytes) = join_parts(&from);
        let tree: SharedTree = rest.take_rows().held_by();
        let taken = Taken { rest, tree: tree.clone(), bytes, from };
        match &mut self.ddl {
            Some(work) => work.before.push(Before::Taken(Box::new(taken))),
            None => taken.undo(),
        }
        whole_move.pass();
        Ok((tree, bytes))
    }

    /// Gives the roots of a tree that stays where it is another layout version.
    fn stamp_tree(&mut self, id: TreeId, group: GroupId, position: u32, version: u32) -> Result<(), Stop> {
        for partition in self.partitions_of(group) {
            // SAFETY: the group is held; the reference ends in this iteration.
            let data = unsafe { partition.data_mut() };
            if let Some(root) = data.roots.get_mut(position as usize).filter(|root| root.id == Some(id)) {
                self.ddl_versions_note(partition, position, root.version);
                root.version = version;
            }
        }
        Ok(())
    }
}
