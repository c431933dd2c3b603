//! What the operations of a block's definitions make in the engine, and what of it they change.

use std::sync::Arc;

use archipel_engine::id::{SequenceId, TreeId};
use archipel_engine::schema::TableDef;
use archipel_engine::{ColumnSource, DdlOp, Engine};
use archipel_sql::catalog::Catalog;
use rustc_hash::FxHashSet;

/// What an operation has made in the engine.
pub(super) enum Made {
    Table { id: TreeId, indexes: Vec<TreeId> },
    Index(TreeId),
    Sequence(SequenceId),
}

/// What several definitions have made in the engine, to be looked up.
#[derive(Default)]
pub(super) struct MadeObjects {
    /// Tables, with their indexes; shared with runs that look at them.
    pub trees: Arc<FxHashSet<TreeId>>,
    sequences: FxHashSet<SequenceId>,
}

impl MadeObjects {
    /// Adds what one more has made.
    pub fn add(&mut self, made: &[Made]) {
        if made.is_empty() {
            return;
        }
        Arc::make_mut(&mut self.trees).extend(trees_of_made(made));
        self.sequences.extend(made.iter().filter_map(|made| match made {
            Made::Sequence(id) => Some(*id),
            Made::Table { .. } | Made::Index(_) => None,
        }));
    }

    /// Whether one of them has made this table or index.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.trees.contains(&tree)
    }

    /// Whether one of them has made this sequence.
    pub fn has_sequence(&self, sequence: SequenceId) -> bool {
        self.sequences.contains(&sequence)
    }
}

/// The tables among what was made, with their indexes.
pub(super) fn trees_of_made<'m>(made: impl IntoIterator<Item = &'m Made>) -> Vec<TreeId> {
    let trees = made.into_iter().flat_map(|made| match made {
        Made::Table { id, indexes } => std::iter::once(*id).chain(indexes.iter().copied()).collect(),
        Made::Index(id) => vec![*id],
        Made::Sequence(_) => Vec::new(),
    });
    trees.collect()
}

fn indexes_of(def: &TableDef) -> Vec<TreeId> {
    def.indexes.iter().map(|index| index.id).collect()
}

/// What operations make in the engine, and which tables they drop.
pub(super) fn made_by<'o>(operations: impl Iterator<Item = &'o DdlOp>) -> (Vec<Made>, Vec<TreeId>) {
    let (mut made, mut dropped) = (Vec::new(), Vec::new());
    for operation in operations {
        match operation {
            DdlOp::CreateTable(def) | DdlOp::CopyTable { def, .. } => {
                made.push(Made::Table { id: def.id, indexes: indexes_of(def) });
            }
            DdlOp::CreateIndex { index, .. } => made.push(Made::Index(index.id)),
            DdlOp::AlterTable { def, .. } => made.extend(indexes_of(def).into_iter().map(Made::Index)),
            DdlOp::CreateSequence(def) => made.push(Made::Sequence(def.id)),
            DdlOp::DropTable(id) => dropped.push(*id),
            DdlOp::DropIndex { .. }
            | DdlOp::BuildIndex { .. }
            | DdlOp::Truncate(_)
            | DdlOp::AlterSequence { .. }
            | DdlOp::DropSequence(_)
            | DdlOp::CatchUp { .. } => {}
        }
    }
    (made, dropped)
}

/// Whether operations change what was there before them, in a way that dropping what they made
/// does not take back.
pub(super) fn changes_something<'o>(mut operations: impl Iterator<Item = &'o DdlOp>) -> bool {
    let (mut made, mut sequences): (FxHashSet<TreeId>, FxHashSet<SequenceId>) = Default::default();
    operations.any(|operation| match operation {
        DdlOp::CreateTable(def) | DdlOp::CopyTable { def, .. } => {
            made.insert(def.id);
            false
        }
        DdlOp::CreateSequence(def) => {
            sequences.insert(def.id);
            false
        }
        DdlOp::AlterSequence { def, .. } => !sequences.contains(&def.id),
        DdlOp::AlterTable { def, .. } => !made.contains(&def.id),
        DdlOp::CreateIndex { table, .. } => !made.contains(table),
        _ => true,
    })
}

/// Whether an operation leaves the rows of its table as they are: an index, a name, a default,
/// a constraint, or a plan that must be made anew. Rows can be written before it and after it;
/// what a new unique index has to say about them, COMMIT says.
pub(super) fn keeps_rows(operation: &DdlOp, engine: &Engine) -> bool {
    let (def, columns) = match operation {
        DdlOp::CreateIndex { .. } | DdlOp::DropIndex { .. } => return true,
        DdlOp::AlterTable { def, columns } => (def, columns),
        _ => return false,
    };
    let Some(table) = engine.table(def.id) else { return false };
    let kept = |(at, source): (usize, &ColumnSource)| matches!(source, ColumnSource::Kept(column) if usize::from(*column) == at);
    columns.len() == table.def.columns.len()
        && columns.iter().enumerate().all(kept)
        && def.columns == table.def.columns
        && def.key == table.def.key
        && def.placement == table.def.placement
}

/// Whether an operation changes one of these tables and leaves it there.
pub(super) fn changes_one_of(operation: &DdlOp, tables: &FxHashSet<TreeId>) -> bool {
    match operation {
        DdlOp::CreateIndex { table, .. } | DdlOp::DropIndex { table, .. } => tables.contains(table),
        DdlOp::AlterTable { def, .. } => tables.contains(&def.id),
        DdlOp::Truncate(id) => tables.contains(id),
        _ => false,
    }
}

/// The tables whose rows operations concern.
pub(in crate::session) fn tables_of<'o>(
    operations: impl Iterator<Item = &'o DdlOp>,
    catalog: &Catalog,
    engine: &Engine,
) -> Vec<(TreeId, String)> {
    let mut found: Vec<(TreeId, String)> = Vec::new();
    for operation in operations.filter(|operation| !keeps_rows(operation, engine)) {
        let id = match operation {
            DdlOp::DropTable(id) | DdlOp::Truncate(id) => *id,
            DdlOp::CreateIndex { table, .. } | DdlOp::DropIndex { table, .. } => *table,
            DdlOp::AlterTable { def, .. } | DdlOp::CreateTable(def) | DdlOp::CopyTable { def, .. } => def.id,
            _ => continue,
        };
        let name = catalog.table_by_tree(id.0).map(|table| table.name.clone());
        found.push((id, name.unwrap_or_default()));
    }
    found
}
