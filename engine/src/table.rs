//! Tables as the running engine knows them: definition, row layout, and where the roots are.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::cell::ColumnKind;
use crate::id::{GroupId, SequenceId, TreeId};
use crate::index_uses::IndexUses;
use crate::schema::{IndexDef, IndexPlacement, KeyColumn, Placement, TableDef};
use crate::storage::key::{decode_cell, encode_cell};
use crate::storage::{KeyBuf, RowLayout, SharedMap};
use crate::txn::Sequence;

/// The system catalog: a reference table `(database Int4, kind Bytes, oid Int4 | payload Bytes)`, made
/// by the engine at its first start. Tree ids below [`FIRST_FREE_TREE`] are reserved.
pub const CATALOG_TREE: TreeId = TreeId(2);
/// Where the only database's catalog was before there could be several: `(kind Bytes, oid Int4 | payload
/// Bytes)`. Whoever reads it writes its rows to [`CATALOG_TREE`] and drops it, in one commit.
pub const EARLIER_CATALOG_TREE: TreeId = TreeId(1);
/// The first tree id that tables and indexes may use.
pub const FIRST_FREE_TREE: TreeId = TreeId(16);
/// The group of all reference tables: one partition, held by whoever writes one of them.
pub const REFERENCE_GROUP: GroupId = GroupId(0);

/// A table at one layout version. Compiled programs keep it; after a change of the table they
/// meet [`crate::Stop::Recompile`].
#[derive(Clone, Debug)]
pub struct TableMeta {
    pub def: TableDef,
    pub layout: RowLayout,
    /// Grows with every change of the table's columns, key, placement or indexes.
    pub version: u32,
    /// Those of `def` in its order, then those that are declared: see [`TableMeta::declared`].
    pub indexes: Vec<IndexMeta>,
    /// Where a partition of the group keeps this tree.
    pub(crate) root: u32,
    pub(crate) group: GroupId,
}

/// An index of a [`TableMeta`].
#[derive(Clone, Debug)]
pub struct IndexMeta {
    pub def: IndexDef,
    /// What it was used for since it has this tree.
    pub uses: Arc<IndexUses>,
    pub(crate) root: u32,
    pub(crate) group: GroupId,
}

impl TableMeta {
    /// The group whose partitions hold the rows; [`REFERENCE_GROUP`] for a reference table.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Whether the rows are read from a published version, without a claim.
    pub fn is_reference(&self) -> bool {
        self.def.placement == Placement::Reference
    }

    /// The index with this id.
    pub fn index(&self, id: TreeId) -> Option<&IndexMeta> {
        self.indexes.iter().find(|index| index.def.id == id)
    }

    /// The indexes that writers keep up and nobody reads yet, for they are still being filled: they are
    /// not in `def`.
    pub fn declared(&self) -> &[IndexMeta] {
        &self.indexes[self.def.indexes.len()..]
    }

    /// Appends the storage key of `row` to `out`.
    pub fn storage_key(&self, row: &[u8], out: &mut KeyBuf) {
        append_key(&self.layout, &self.def.key, row, out);
    }

    /// Appends the key of `row`'s entry in `index`; `storage_key` follows it unless the index
    /// is unique and no column of the entry is NULL, or NULLs equal each other.
    pub fn index_key(&self, index: &IndexMeta, row: &[u8], storage_key: &[u8], out: &mut KeyBuf) -> bool {
        append_key(&self.layout, &index.def.key, row, out);
        let has_null = || index.def.key.iter().any(|column| self.layout.is_null(row, column.column.into()));
        let alone = index.def.unique && (index.def.nulls_equal || !has_null());
        if !alone {
            out.extend_from_slice(storage_key);
        }
        alone
    }
}

impl IndexMeta {
    /// The group whose partitions hold the entries.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Whether a change of any of `columns` moves the entry.
    pub(crate) fn depends_on(&self, mut columns: impl Iterator<Item = u16>) -> bool {
        columns.any(|column| self.def.key.iter().any(|part| part.column == column))
    }
}

fn append_key(layout: &RowLayout, key: &[KeyColumn], row: &[u8], out: &mut KeyBuf) {
    for column in key {
        let position = usize::from(column.column);
        encode_cell(out, layout.get(row, position), column, layout.columns()[position]);
    }
}

/// Appends the storage key of a row of a table with this definition, laid out so, to `out`.
pub fn storage_key(def: &TableDef, layout: &RowLayout, row: &[u8], out: &mut KeyBuf) {
    append_key(layout, &def.key, row, out);
}

/// The length of the first column's encoding in `key`: partitions are bounded by whole
/// distribution values.
pub(crate) fn distribution_prefix(key: &[u8], column: &KeyColumn, kind: ColumnKind) -> usize {
    if let (false, Some(length)) = (column.nullable, kind.fixed_length()) {
        return key.len().min(length);
    }
    let mut scratch = Vec::new();
    decode_cell(key, column, kind, &mut scratch).map_or(key.len(), |(_, taken)| taken)
}

/// A sequence's definition, as PostgreSQL has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceDef {
    pub id: SequenceId,
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycle: bool,
}

/// What a group's trees have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupMeta {
    /// Which tree is at which root position; `None` is free.
    pub roots: Vec<Option<TreeId>>,
    /// The distribution column's key part and kind, to cut split keys to whole values.
    pub distribution: Option<(KeyColumn, ColumnKind)>,
}

impl GroupMeta {
    fn take_root(&mut self, id: TreeId) -> u32 {
        let position = self.roots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.roots.push(None);
            self.roots.len() - 1
        });
        self.roots[position] = Some(id);
        u32::try_from(position).expect("a group has fewer trees than there are ids of trees")
    }

    fn free_root(&mut self, id: TreeId) {
        for root in &mut self.roots {
            if *root == Some(id) {
                *root = None;
            }
        }
    }
}

/// All definitions, immutable once published; DDL publishes a new one, which shares what it leaves as it
/// was: a definition costs the same however many tables there are.
#[derive(Clone, Default)]
pub(crate) struct Schema {
    pub tables: SharedMap<TreeId, Arc<TableMeta>>,
    pub groups: SharedMap<GroupId, GroupMeta>,
    pub sequences: SharedMap<SequenceId, Arc<Sequence>>,
    /// The tables that indexes are of.
    owners: SharedMap<TreeId, TreeId>,
    /// Indexes that were declared and given up since the start. Open transactions may have written to
    /// them, and will not find them at their end.
    pub given_up: SharedMap<TreeId, ()>,
}

impl Schema {
    /// Adds a table or a new version of one, keeping the root positions of trees that stay in
    /// their group, and the indexes that are declared.
    pub fn put_table(&mut self, def: TableDef, version: u32) -> Arc<TableMeta> {
        let mut declared = self.declared_of(def.id);
        declared.retain(|index| def.indexes.iter().all(|known| known.id != index.id));
        self.put_with(def, version, declared)
    }

    fn declared_of(&self, table: TreeId) -> Vec<IndexDef> {
        let declared = self.tables.get(&table).into_iter().flat_map(|table| table.declared());
        declared.map(|index| index.def.clone()).collect()
    }

    /// Declares an index of a table.
    pub fn declare_index(&mut self, table: &TableMeta, index: IndexDef, version: u32) -> Arc<TableMeta> {
        let mut declared = self.declared_of(table.def.id);
        declared.push(index);
        self.put_with(table.def.clone(), version, declared)
    }

    /// Gives a declared index up; the layout of nothing else changes.
    pub fn give_up_index(&mut self, table: &TableMeta, index: TreeId) -> Arc<TableMeta> {
        let mut declared = self.declared_of(table.def.id);
        declared.retain(|known| known.id != index);
        self.given_up.insert(index, ());
        self.put_with(table.def.clone(), table.version, declared)
    }

    fn put_with(&mut self, def: TableDef, version: u32, declared: Vec<IndexDef>) -> Arc<TableMeta> {
        let old = self.take_table(def.id);
        let group = group_of(&def.placement);
        let indexes_before = old.iter().flat_map(|old| &old.indexes);
        let indexes_before = indexes_before.map(|index| ((index.def.id, index.group), index.root));
        let tables_before = old.iter().map(|old| ((old.def.id, old.group), old.root));
        let before: FxHashMap<(TreeId, GroupId), u32> = indexes_before.chain(tables_before).collect();
        let kept = |id: TreeId, group: GroupId| before.get(&(id, group)).copied();
        let uses_before = old.iter().flat_map(|old| &old.indexes);
        let uses_before: FxHashMap<TreeId, &Arc<IndexUses>> =
            uses_before.map(|index| (index.def.id, &index.uses)).collect();
        let root = match kept(def.id, group) {
            Some(root) => root,
            None => self.groups.get_or_default(group).take_root(def.id),
        };
        let describe = |columns: &[KeyColumn]| {
            columns.first().map(|first| (*first, def.columns[usize::from(first.column)]))
        };
        self.distribute(group, describe(&def.key));
        let mut indexes = Vec::new();
        for index in def.indexes.iter().chain(&declared) {
            let group = match index.placement {
                IndexPlacement::Local => group,
                IndexPlacement::Global { group } => group,
            };
            let root = match kept(index.id, group) {
                Some(root) => root,
                None => self.groups.get_or_default(group).take_root(index.id),
            };
            self.distribute(group, describe(&index.key));
            let uses = uses_before.get(&index.id).copied().cloned().unwrap_or_default();
            indexes.push(IndexMeta { def: index.clone(), uses, root, group });
        }
        // Positions of trees that left their group are free again.
        if let Some(old) = &old {
            let stay: FxHashSet<(TreeId, GroupId)> =
                indexes.iter().map(|index| (index.def.id, index.group)).chain([(def.id, group)]).collect();
            let stays = |id: TreeId, group: GroupId| stay.contains(&(id, group));
            if !stays(old.def.id, old.group) {
                self.free(old.group, old.def.id);
            }
            for index in &old.indexes {
                if !stays(index.def.id, index.group) {
                    self.free(index.group, index.def.id);
                }
            }
        }
        let meta =
            Arc::new(TableMeta { layout: RowLayout::new(&def.columns), version, indexes, root, group, def });
        for index in &meta.indexes {
            self.owners.insert(index.def.id, meta.def.id);
        }
        self.tables.insert(meta.def.id, meta.clone());
        meta
    }

    /// Notes what a group is distributed by, if nothing is noted yet.
    fn distribute(&mut self, group: GroupId, distribution: Option<(KeyColumn, ColumnKind)>) {
        let is_open = self.groups.get(&group).is_some_and(|meta| meta.distribution.is_none());
        if is_open
            && group != REFERENCE_GROUP
            && let Some(meta) = self.groups.get_mut(&group)
        {
            meta.distribution = distribution;
        }
    }

    pub fn drop_table(&mut self, id: TreeId) -> Option<Arc<TableMeta>> {
        let old = self.take_table(id)?;
        self.free(old.group, old.def.id);
        for index in &old.indexes {
            self.free(index.group, index.def.id);
        }
        Some(old)
    }

    fn take_table(&mut self, id: TreeId) -> Option<Arc<TableMeta>> {
        let old = self.tables.remove(&id)?;
        for index in &old.indexes {
            self.owners.remove(&index.def.id);
        }
        Some(old)
    }

    /// The table that a tree belongs to: its own, or that of an index.
    pub fn owner(&self, tree: TreeId) -> Option<&Arc<TableMeta>> {
        self.tables.get(self.owners.get(&tree).unwrap_or(&tree))
    }

    fn free(&mut self, group: GroupId, id: TreeId) {
        if let Some(meta) = self.groups.get_mut(&group) {
            meta.free_root(id);
        }
    }

    /// Whether it is a group that can go: it holds no tree any more.
    pub fn is_empty_group(&self, group: GroupId) -> bool {
        let is_empty = |meta: &GroupMeta| meta.roots.iter().all(Option::is_none);
        group != REFERENCE_GROUP && self.groups.get(&group).is_some_and(is_empty)
    }

    /// Tables in id order.
    pub fn tables_sorted(&self) -> Vec<Arc<TableMeta>> {
        let mut tables: Vec<_> = self.tables.values().cloned().collect();
        tables.sort_unstable_by_key(|table| table.def.id);
        tables
    }
}

/// The group a placement means.
pub(crate) fn group_of(placement: &Placement) -> GroupId {
    match placement {
        Placement::Distributed { group } => *group,
        Placement::Reference => REFERENCE_GROUP,
    }
}

/// The catalog table's definition.
pub(crate) fn catalog_table() -> TableDef {
    let part = |column| KeyColumn {
        column,
        descending: false,
        nulls_first: false,
        nullable: false,
        form: Default::default(),
    };
    TableDef {
        id: CATALOG_TREE,
        name: "pg_catalog".to_owned(),
        columns: vec![ColumnKind::Int4, ColumnKind::Bytes, ColumnKind::Int4, ColumnKind::Bytes],
        key: vec![part(0), part(1), part(2)],
        placement: Placement::Reference,
        indexes: Vec::new(),
    }
}
