//! What definitions claim: the reference partition, whose holder alone changes definitions, and all
//! partitions of the groups in which the trees of their tables are, or come to be.
//!
//! ```text
//! CREATE INDEX i ON t (b)     reference │ group of t │ groups of t's indexes │ group of i
//! ```
//!
//! All of it is claimed at once, through the queues or, where everything is idle, on the spot. A
//! partition that split while the program queued has an upper part that the claim did not know. Once
//! all partitions that the routing table names for a group are held, the group changes no more.

use smallvec::SmallVec;

use super::GroupChange;
use crate::id::{GroupId, PartitionId, TreeId};
use crate::partition::{Route, RoutingTable};
use crate::program::Stop;
use crate::schema::{IndexPlacement, TableDef};
use crate::table::{REFERENCE_GROUP, Schema, TableMeta, group_of};
use crate::txn::{BuildStep, DdlOp, Txn};

impl GroupChange {
    /// Makes it in a routing table.
    pub fn apply(&self, routing: &mut RoutingTable) {
        match self {
            Self::Made(group, routes) => routing.put_group(*group, routes.clone()),
            Self::Dropped(group) => routing.drop_group(*group),
        }
    }
}

/// The groups that a table's trees are in.
fn groups_of_table(table: &TableMeta) -> impl Iterator<Item = GroupId> {
    std::iter::once(table.group).chain(table.indexes.iter().map(|index| index.group))
}

/// The groups that the trees of a table come to be in.
fn groups_of_definition(def: &TableDef) -> impl Iterator<Item = GroupId> {
    let of_index = def.indexes.iter().filter_map(|index| match index.placement {
        IndexPlacement::Local => None,
        IndexPlacement::Global { group } => Some(group),
    });
    std::iter::once(group_of(&def.placement)).chain(of_index)
}

impl DdlOp {
    /// The groups that it is about, as far as these definitions know its tables.
    fn add_groups(&self, schema: &Schema, groups: &mut Vec<GroupId>) {
        let mut add_table = |id: &TreeId| {
            if let Some(table) = schema.tables.get(id) {
                groups.extend(groups_of_table(table));
            }
        };
        match self {
            Self::CreateTable(def) => groups.extend(groups_of_definition(def)),
            Self::DropTable(id) | Self::Truncate(id) | Self::DropIndex { table: id, .. } => add_table(id),
            Self::CreateIndex { table, index }
            | Self::BuildIndex { table, step: BuildStep::Declare(index) } => {
                add_table(table);
                if let IndexPlacement::Global { group } = index.placement {
                    groups.push(group);
                }
            }
            // Nothing of the table itself changes.
            Self::BuildIndex { table, step: BuildStep::Complete(index) | BuildStep::GiveUp(index) } => {
                let index = schema.tables.get(table).and_then(|table| table.index(*index));
                groups.extend(index.map(|index| index.group));
            }
            Self::AlterTable { def, .. } => {
                add_table(&def.id);
                groups.extend(groups_of_definition(def));
            }
            Self::CopyTable { from, def, .. } => {
                add_table(from);
                groups.extend(groups_of_definition(def));
            }
            Self::CatchUp { from, to, .. } => {
                add_table(from);
                add_table(to);
            }
            Self::CreateSequence(_) | Self::AlterSequence { .. } | Self::DropSequence(_) => {}
        }
    }
}

impl Txn<'_> {
    /// Claims what these changes of definitions need, in whole groups, and what these tables lie in, which
    /// the program looks at before it changes anything. A program with several changes calls it first, so
    /// that it is all claimed at once and nothing is done twice.
    ///
    /// # Errors
    /// [`Stop::Restart`] if somebody has a part of it: the program runs again with all of it.
    pub fn claim_for<'o>(
        &mut self,
        ops: impl IntoIterator<Item = &'o DdlOp>,
        tables: impl IntoIterator<Item = TreeId>,
    ) -> Result<(), Stop> {
        let ops: SmallVec<[&DdlOp; 4]> = ops.into_iter().collect();
        let tables: SmallVec<[TreeId; 4]> = tables.into_iter().collect();
        self.claim_groups(|schema, groups| {
            ops.iter().for_each(|op| op.add_groups(schema, groups));
            let tables = tables.iter().filter_map(|id| schema.tables.get(id));
            groups.extend(tables.flat_map(|table| groups_of_table(table)));
        })
    }

    fn claim_groups(&mut self, add: impl Fn(&Schema, &mut Vec<GroupId>)) -> Result<(), Stop> {
        if self.interactive.is_some() {
            return Err(Stop::OneShotOnly);
        }
        loop {
            let schema = match &self.ddl {
                Some(work) => &work.schema,
                None => &*self.worker.schema,
            };
            let mut groups = vec![REFERENCE_GROUP];
            add(schema, &mut groups);
            groups.sort_unstable();
            groups.dedup();
            // Those that are held as a whole change no more.
            if groups.iter().all(|group| self.whole_groups.contains(group)) {
                return Ok(());
            }
            // What these definitions are is settled once the reference partition is held.
            self.hold_groups(groups)?;
            self.level_sequences();
        }
    }

    /// Claims all partitions of groups, or notes them and restarts.
    fn hold_groups(&mut self, groups: Vec<GroupId>) -> Result<(), Stop> {
        let mut known: rustc_hash::FxHashSet<PartitionId> =
            self.held.iter().map(|partition| partition.id).collect();
        loop {
            self.worker.refresh(self.shared);
            let routing = self.worker.routing.clone();
            let routes = groups.iter().flat_map(|group| routing.routes(*group).iter());
            let mut are_held = true;
            for partition in routes.map(|route| route.partition) {
                if !known.insert(partition.id) {
                    continue;
                }
                if !partition.try_claim() {
                    groups.iter().for_each(|group| self.worker.scratch.missing.add_group(*group));
                    return Err(Stop::Restart);
                }
                are_held = false;
                self.held.push(partition);
            }
            // All of what this table names was held when it was loaded.
            if are_held {
                break;
            }
        }
        if let Some(work) = &mut self.ddl {
            work.take_up_routes(&self.worker.routing);
        }
        self.whole_groups.extend(groups);
        Ok(())
    }
}

impl super::DdlWork {
    /// Takes up the routes of now: of groups that are held by now, and were not.
    fn take_up_routes(&mut self, routing: &RoutingTable) {
        self.routing = routing.clone();
        self.groups.iter().for_each(|change| change.apply(&mut self.routing));
    }

    /// Adds the routes of a group.
    pub(super) fn put_group(&mut self, group: GroupId, routes: Vec<Route>) {
        self.change_groups(GroupChange::Made(group, routes));
    }

    pub(super) fn drop_group(&mut self, group: GroupId) {
        self.change_groups(GroupChange::Dropped(group));
    }

    fn change_groups(&mut self, change: GroupChange) {
        change.apply(&mut self.routing);
        self.groups.push(change);
    }
}
