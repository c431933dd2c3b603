//! Definitions changed by a program that claims what they are about: the reference partition, and
//! the groups of the tables that change ([`claims`]).
//!
//! Definitions run one after another, as each holds the reference partition. So the schema of one
//! is a copy of the newest, and stays it. Others go on in all other groups meanwhile: they split
//! and merge partitions, and draw from sequences. So of routes the program keeps what it changes,
//! which is applied to those of the commit point; and what a sequence is altered from is read there,
//! under its latch ([`sequences`]).
//!
//! The roots of changed trees are replaced in the partitions at once, with what they were kept for
//! undo. The commit point logs the new definitions with the rows, in one epoch, and publishes them. A
//! program that was compiled before meets another layout version after it claims, and recompiles.

mod apply;
mod claims;
mod copying;
mod declared;
mod regroup;
mod sequences;

use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use copying::{BeginCopy, CopySlice};
pub use declared::FillIndex;
use serde::{Deserialize, Serialize};

use super::repartition::RepartitionView;
use super::{Inserted, LockMode, ReferenceTable, ReferenceVector, Sequence, Txn};
use crate::cell::Cell;
use crate::engine::Shared;
use crate::id::{Epoch, GroupId, SequenceId, TreeId, TxnId};
use crate::partition::{PartitionRef, Root, Route, RoutingTable};
use crate::program::Stop;
use crate::schema::{IndexDef, TableDef};
use crate::table::{REFERENCE_GROUP, Schema, SequenceDef};

/// One change of definitions.
#[derive(Clone, Debug)]
pub enum DdlOp {
    /// Makes an empty table with its indexes. A group not seen before is created with one
    /// partition.
    CreateTable(TableDef),
    DropTable(TreeId),
    /// Adds an index and fills it; [`Inserted::DuplicateKey`] if it is unique and cannot be.
    CreateIndex {
        table: TreeId,
        index: IndexDef,
    },
    /// A step on the way of an index that is filled while everybody else goes on.
    BuildIndex {
        table: TreeId,
        step: BuildStep,
    },
    DropIndex {
        table: TreeId,
        index: TreeId,
    },
    /// Replaces a table's definition: columns, key, placement. `columns` says where each new
    /// column comes from. The rows are rewritten unless nothing physical changes, or nothing but
    /// the co-location group, whose partitions then take the trees over as they are.
    AlterTable {
        def: TableDef,
        columns: Vec<ColumnSource>,
    },
    /// Makes a table with its indexes and fills it with the rows of another, which stays.
    /// `columns` says where each column comes from.
    CopyTable {
        from: TreeId,
        def: TableDef,
        columns: Vec<ColumnSource>,
        /// Whose view of the rows; nobody's is what is committed.
        reader: Option<CopyReader>,
    },
    /// Brings a copy that was filled beside writers up to date: rows of leaves stamped above
    /// `since`. [`Inserted::Missing`] if rows were deleted meanwhile.
    CatchUp {
        from: TreeId,
        to: TreeId,
        columns: Vec<ColumnSource>,
        since: u64,
    },
    /// Removes all rows.
    Truncate(TreeId),
    CreateSequence(SequenceDef),
    /// Changes a sequence; it goes on where `from`, itself or the one in whose place it comes, stands,
    /// unless `restart` says otherwise.
    AlterSequence {
        def: SequenceDef,
        restart: Option<i64>,
        from: SequenceId,
    },
    DropSequence(SequenceId),
}

/// A step of an index that is filled in slices: see [`FillIndex`].
#[derive(Clone, Debug)]
pub enum BuildStep {
    /// An empty index of a distributed table, which writers keep up from then on and nobody reads.
    Declare(IndexDef),
    /// The declared index, which is filled, becomes one like any other.
    Complete(TreeId),
    /// The declared index goes.
    GiveUp(TreeId),
}

/// Where a column of an altered table comes from.
#[derive(Clone, Debug)]
pub enum ColumnSource {
    /// This column of the old rows.
    Kept(u16),
    /// The same value in every row.
    Constant(OwnedCell),
    /// A value of its own for each row, in the order of the old rows' keys.
    Each(std::sync::Arc<[OwnedCell]>),
    /// A fresh hidden row id.
    HiddenRowId,
}

/// The transaction a table is copied for: its own changes count, and what others committed
/// since its snapshot, if it has one, must not be there.
#[derive(Clone, Copy, Debug)]
pub struct CopyReader {
    pub(crate) writer: TxnId,
    pub(crate) snapshot: Option<Epoch>,
}

/// A [`Cell`] that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedCell {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Fixed16([u8; 16]),
    Bytes(Vec<u8>),
}

impl OwnedCell {
    pub fn as_cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Bool(value) => Cell::Bool(*value),
            Self::Int2(value) => Cell::Int2(*value),
            Self::Int4(value) => Cell::Int4(*value),
            Self::Int8(value) => Cell::Int8(*value),
            Self::Float4(value) => Cell::Float4(*value),
            Self::Float8(value) => Cell::Float8(*value),
            Self::Fixed16(value) => Cell::Fixed16(*value),
            Self::Bytes(value) => Cell::Bytes(value),
        }
    }
}

impl From<Cell<'_>> for OwnedCell {
    fn from(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Bool(value) => Self::Bool(value),
            Cell::Int2(value) => Self::Int2(value),
            Cell::Int4(value) => Self::Int4(value),
            Cell::Int8(value) => Self::Int8(value),
            Cell::Float4(value) => Self::Float4(value),
            Cell::Float8(value) => Self::Float8(value),
            Cell::Fixed16(value) => Self::Fixed16(value),
            Cell::Bytes(value) => Self::Bytes(value.to_vec()),
        }
    }
}

/// A table as the log keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct TableRecord {
    pub def: TableDef,
    pub version: u32,
    /// Indexes that are still being filled. A start knows nothing of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<IndexDef>,
}

/// The key of a table's definition in the log's meta space.
pub(crate) fn table_key(id: TreeId) -> String {
    format!("table/{}", id.0)
}

/// The key of a sequence's definition in the log's meta space.
pub(crate) fn sequence_definition_key(id: SequenceId) -> String {
    format!("sequence/{}", id.0)
}

/// The definitions as this transaction sees them, and how to go back.
pub(crate) struct DdlWork {
    /// Nobody else publishes another one while this transaction holds the reference partition.
    pub schema: Schema,
    /// The routes of the groups it holds, with what it changes of them. Those of others may be old.
    pub routing: RoutingTable,
    /// What it changes of the routing table, in this order.
    groups: Vec<GroupChange>,
    sequences: SequenceChanges,
    /// Put back in reverse order on undo.
    before: Vec<Before>,
    /// Reference tables and indexes that are gone.
    dropped_references: Vec<TreeId>,
    /// Definitions to log; `None` is gone.
    meta: Vec<(String, Option<Vec<u8>>)>,
    /// Tables that changed their group, for the history.
    regrouped: Vec<RepartitionView>,
    /// Partitions of groups that are new: shells again if this is undone.
    made: Vec<PartitionRef>,
    /// Partitions of groups that are gone: shells once this is committed.
    left: Vec<PartitionRef>,
}

/// A change of the routing table by a definition.
enum GroupChange {
    Made(GroupId, Vec<Route>),
    Dropped(GroupId),
}

/// What a program changes of sequences.
#[derive(Default)]
struct SequenceChanges {
    made: Vec<MadeSequence>,
    /// Those that end with it, and that others may know.
    ended: Vec<Arc<Sequence>>,
}

/// A sequence that is made, or comes in the place of another one.
struct MadeSequence {
    sequence: Arc<Sequence>,
    /// Where it goes on; `None`: it has its place.
    from: Option<Arc<Sequence>>,
}

/// What a committed definition leaves behind: see [`Txn::clear_away`].
pub(crate) struct Remains {
    before: Vec<Before>,
    left: Vec<PartitionRef>,
}

/// What a root was before it was changed. One list for both kinds: a root that replaced another may
/// get a new version later, which is not the version of the one it replaced.
enum Before {
    Root(PartitionRef, u32, Box<Root>),
    /// The layout version of a root that stayed.
    Version(PartitionRef, u32, u32),
    /// A tree that went to another group.
    Moved(regroup::Moved),
    /// A tree that became a reference table's.
    Taken(Box<regroup::Taken>),
    /// Bytes that a partition was given, of another.
    Bytes(PartitionRef, i64),
    /// Bytes that came to a partition and to all that are in use, or with a minus went.
    Charged(PartitionRef, i64),
}

impl DdlWork {
    fn note(&mut self, key: String, record: Option<&impl Serialize>) {
        let bytes = record.map(|record| serde_json::to_vec(record).unwrap_or_default());
        self.meta.push((key, bytes));
    }

    /// Makes them current; between the redo and the leaving of the epoch. Answers what is to
    /// be cleared away once the epoch has been left: to free a large table takes long.
    pub fn publish(
        self: Box<Self>,
        shared: &Arc<Shared>,
        vector: &mut ReferenceVector,
        changed: &mut Vec<TreeId>,
        number: u64,
    ) -> Remains {
        for id in &self.dropped_references {
            vector.tables.remove(id);
            changed.push(*id);
        }
        shared.publish_definitions(self.schema, number, |routing| {
            self.groups.iter().for_each(|change| change.apply(routing));
        });
        self.regrouped.into_iter().for_each(|view| shared.repartitions.add(view));
        Remains { before: self.before, left: self.left }
    }
}

impl Txn<'_> {
    /// Changes definitions. Claims what [`Txn::claim_for`] does: the program restarts with that claim
    /// if it did not predict it and somebody has a part of it. Not undone by [`Txn::rollback_to`],
    /// only with the whole program, so a program that meets an error after it must stop with
    /// [`Stop::Abort`].
    pub fn ddl(&mut self, op: DdlOp) -> Result<Inserted, Stop> {
        self.claim_for([&op], [])?;
        self.worker.admit(self.shared)?;
        if self.ddl.is_none() {
            self.level_sequences();
            self.ddl = Some(Box::new(DdlWork {
                schema: (*self.worker.schema).clone(),
                routing: (*self.worker.routing).clone(),
                groups: Vec::new(),
                sequences: SequenceChanges::default(),
                before: Vec::new(),
                dropped_references: Vec::new(),
                meta: Vec::new(),
                regrouped: Vec::new(),
                made: Vec::new(),
                left: Vec::new(),
            }));
        }
        match op {
            DdlOp::CreateTable(def) => self.create_table(def),
            DdlOp::DropTable(id) => self.drop_table(id),
            DdlOp::CreateIndex { table, index } => self.create_index(table, index),
            DdlOp::BuildIndex { table, step } => self.build_index(table, step),
            DdlOp::DropIndex { table, index } => self.drop_index(table, index),
            DdlOp::AlterTable { def, columns } => self.alter_table(def, &columns),
            DdlOp::CopyTable { from, def, columns, reader } => self.copy_table(from, def, &columns, reader),
            DdlOp::CatchUp { from, to, columns, since } => self.catch_up(from, to, &columns, since),
            DdlOp::Truncate(id) => self.truncate(id),
            DdlOp::CreateSequence(def) => self.make_sequence(def),
            DdlOp::AlterSequence { def, restart, from } => self.alter_sequence(def, restart, from),
            DdlOp::DropSequence(id) => self.drop_sequence(id),
        }
    }

    /// Rows may move between partitions of different sequences below: all start from the
    /// greatest, so that stamps of one leaf keep growing.
    fn level_sequences(&mut self) {
        let data = |partition: PartitionRef| {
            // SAFETY: held by this transaction; one reference at a time.
            unsafe { partition.data_mut() }
        };
        let greatest = self.held().iter().map(|partition| data(partition).sequence).max().unwrap_or(0);
        for partition in self.held() {
            data(partition).sequence = greatest;
        }
    }

    /// Puts every replaced root back.
    pub(super) fn undo_ddl(&mut self) {
        let Some(mut work) = self.ddl.take() else { return };
        while let Some(before) = work.before.pop() {
            match before {
                Before::Root(partition, position, root) => {
                    let keys_locked = &self.shared.reference_keys_locked;
                    keys_locked.fetch_add(reference_keys_locked(partition, &root), Ordering::SeqCst);
                    // SAFETY: held by this transaction; the reference ends with the statement.
                    unsafe { partition.data_mut() }.put_root(position, *root);
                }
                Before::Version(partition, position, version) => {
                    // SAFETY: as above.
                    if let Some(root) = unsafe { partition.data_mut() }.roots.get_mut(position as usize) {
                        root.version = version;
                    }
                }
                Before::Moved(moved) => moved.undo(),
                Before::Taken(taken) => taken.undo(),
                // SAFETY: as above.
                Before::Bytes(partition, bytes) => unsafe { partition.data_mut() }.bytes -= bytes,
                Before::Charged(partition, bytes) => {
                    // SAFETY: as above.
                    unsafe { partition.data_mut() }.bytes -= bytes;
                    self.worker.memory.add(-bytes, &self.shared.memory);
                }
            }
        }
        // No routing table ever named them. Whoever holds them is this transaction, to its end.
        for partition in work.made {
            self.let_go(partition);
        }
    }

    /// Gives back what a committed definition has left behind: rows and old versions of trees that are
    /// gone, and the partitions of groups that are.
    ///
    /// This is the moment: the definitions and the routing table that named them are published no
    /// more, the epoch has been left, so that nobody waits for the memory to be freed who waits for the
    /// epoch, and this transaction still holds the partitions they were in. Snapshots find the trees no more
    /// than anybody else does: they look for them by the definitions of now. Whoever has the old
    /// routing table at hand claims a shell at the most (see `crate::partition`).
    pub(super) fn clear_away(&mut self, remains: Remains) {
        let roots = remains.before.iter().filter_map(|before| match before {
            Before::Root(_, _, root) => Some(root.versions.bytes()),
            _ => None,
        });
        let versions: u64 = roots.sum();
        if versions > 0 {
            self.shared.snapshots.add_bytes(-(versions as i64));
        }
        for partition in remains.left {
            self.let_go(partition);
        }
    }

    /// Makes a held partition a shell, and gives back what it still counts for.
    fn let_go(&mut self, partition: PartitionRef) {
        // SAFETY: held by this transaction; the reference ends with the statement.
        let bytes = unsafe { partition.data_mut() }.bytes;
        self.worker.memory.add(-bytes, &self.shared.memory);
        self.shared.retire(partition);
    }

    /// Remembers bytes that a held partition has been given, or with a minus has let go of.
    fn note_charged(&mut self, partition: PartitionRef, bytes: i64) -> Result<(), Stop> {
        if bytes != 0 {
            self.work()?.before.push(Before::Charged(partition, bytes));
        }
        Ok(())
    }

    fn work(&mut self) -> Result<&mut DdlWork, Stop> {
        self.ddl.as_deref_mut().ok_or(Stop::OneShotOnly)
    }

    /// Replaces the root at a position of a held partition, remembering the old one.
    fn replace_root(&mut self, partition: PartitionRef, position: u32, root: Root) -> Result<(), Stop> {
        // SAFETY: held by this transaction; the reference ends before the next access.
        let data = unsafe { partition.data_mut() };
        let (old, bytes) = data.take_root(position);
        data.put_root(position, root);
        self.worker.memory.add(-bytes, &self.shared.memory);
        // Who waits for a row of the old root finds out anew what there is.
        self.woken.extend(old.all_waiters().cloned());
        let keys_locked = &self.shared.reference_keys_locked;
        keys_locked.fetch_sub(reference_keys_locked(partition, &old), Ordering::SeqCst);
        self.work()?.before.push(Before::Root(partition, position, Box::new(old)));
        self.note_charged(partition, -bytes)
    }

    /// Publishes a reference table that this program created or rewrote.
    fn put_reference(&mut self, id: TreeId, version: u32, tree: super::reference::SharedTree) {
        self.reference_writes.retain(|(other, ..)| *other != id);
        self.reference_writes.push((id, version, tree));
        if let Some(work) = &mut self.ddl {
            work.dropped_references.retain(|other| *other != id);
        }
    }

    fn drop_reference(&mut self, id: TreeId) {
        self.reference_writes.retain(|(other, ..)| *other != id);
        if let Some(work) = &mut self.ddl {
            work.dropped_references.push(id);
        }
    }

    /// The published version of a reference table, for the layouts' changes.
    fn published_reference(&self, id: TreeId) -> Option<Arc<ReferenceTable>> {
        self.shared.references.load().tables.get(&id).cloned()
    }
}

/// How many locks of a root count for [`Txn::reference_keys_locked`].
fn reference_keys_locked(partition: PartitionRef, root: &Root) -> usize {
    if partition.group() != REFERENCE_GROUP {
        return 0;
    }
    root.locks_in(LockMode::Update)
}
