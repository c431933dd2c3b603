//! ALTER INDEX … SET and RESET: storage parameters, of which [`PLACEMENT`] alone changes anything: the index is
//! dropped and made again where it belongs, under the name and the oid that it has.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::{PLACEMENT, Relation, Table};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::distribution;
use super::index_placement::check_placement;
use super::storage_option::{Written, check_reset, index_options, primary_key_options};
use crate::alter::alter_inheritance::mark;
use crate::row::index_def;
use crate::work::Work;

/// What becomes of parameters: those that are `written` go, and these are set.
#[derive(Clone, Copy)]
struct Change<'a> {
    written: &'a Written,
    set: &'a [(String, String)],
}

impl Change<'_> {
    fn is_of(&self, name: &str) -> bool {
        self.written.iter().any(|(changed, _)| changed == name)
    }

    fn apply(&self, options: &mut Vec<(String, String)>) {
        options.retain(|(name, _)| !self.is_of(name));
        options.extend_from_slice(self.set);
    }
}

/// ALTER INDEX … SET (…).
pub(crate) fn set_index_options(relation: &Relation, written: &Written, work: &mut Work<'_>) -> Result<()> {
    check_whole(relation, "SET", written)?;
    let set = match relation {
        Relation::Nominal(table, place) => index_options(&table.nominal.indexes[*place].method, written)?,
        Relation::PrimaryKey(_) => primary_key_options(written)?,
        Relation::Index(table, place) if table.indexes[*place].hash => index_options("hash", written)?,
        _ => index_options("btree", written)?,
    };
    change_options(relation, Change { written, set: &set }, work)
}

/// ALTER INDEX … RESET (…): what is not there may be named.
pub(crate) fn reset_index_options(relation: &Relation, written: &Written, work: &mut Work<'_>) -> Result<()> {
    check_whole(relation, "RESET", written)?;
    check_reset(written)?;
    change_options(relation, Change { written, set: &[] }, work)
}

/// The indexes of partitioned tables have no pages of their own to speak of. Where entries are is said of
/// them, for all partitions.
fn check_whole(relation: &Relation, action: &str, written: &Written) -> Result<()> {
    let only_placement = written.iter().all(|(name, _)| name == PLACEMENT);
    match relation {
        Relation::Index(..) if only_placement => Ok(()),
        Relation::Index(table, _) | Relation::PrimaryKey(table) | Relation::Nominal(table, _)
            if table.is_partitioned() =>
        {
            let name = relation.name();
            let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_detail("This operation is not supported for partitioned indexes."))
        }
        _ => Ok(()),
    }
}

/// Changes the parameters of an index.
fn change_options(relation: &Relation, change: Change<'_>, work: &mut Work<'_>) -> Result<()> {
    match relation {
        Relation::Index(table, place) => {
            let index = &table.indexes[*place];
            let above = index.parent.and_then(|above| work.catalog.relation_by_oid(above));
            if let Some(above) = above.filter(|_| change.is_of(PLACEMENT)) {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("index \"{}\" has the placement of index \"{}\"", index.name, above.name()),
                )
                .with_hint(format!("ALTER INDEX \"{}\" is for all partitions.", above.name())));
            }
            for (table, index) in with_parts(table.oid, index.oid, work) {
                change_index(table, index, change, work)?;
            }
        }
        Relation::Nominal(table, place) => mark(table.oid, work, |table| {
            table
                .nominal
                .indexes
                .get_mut(*place)
                .iter_mut()
                .for_each(|index| change.apply(&mut index.options));
        }),
        Relation::PrimaryKey(table) => mark(table.oid, work, |table| {
            table.primary_key.iter_mut().for_each(|key| change.apply(&mut key.options));
        }),
        _ => {}
    }
    Ok(())
}

/// An index and those of partitions that are part of it, each with its table.
fn with_parts(table: Oid, index: Oid, work: &Work<'_>) -> Vec<(Oid, Oid)> {
    let mut found = vec![(table, index)];
    for heir in work.catalog.heirs(table) {
        let parts = heir.indexes.iter().filter(|part| part.parent == Some(index));
        for part in parts.map(|part| part.oid).collect::<Vec<Oid>>() {
            found.extend(with_parts(heir.oid, part, work));
        }
    }
    found
}

/// Changes the parameters of one index. Its entries are made anew if they belong elsewhere by those.
fn change_index(table: Oid, index: Oid, change: Change<'_>, work: &mut Work<'_>) -> Result<()> {
    let Some(before) = work.catalog.table_by_oid(table) else { return Ok(()) };
    let Some(place) = before.indexes.iter().position(|known| known.oid == index) else { return Ok(()) };
    let mut changed = (*before).clone();
    change.apply(&mut changed.indexes[place].options);
    if changed.indexes[place].placement() == before.indexes[place].placement() {
        mark(table, work, |table| *table = changed);
        return Ok(());
    }
    check_placement(&changed, &changed.indexes[place])?;
    distribution::place_some_indexes(&mut changed, place..place + 1, work);
    let defined = |table: &Table| index_def(table, &table.indexes[place]);
    if !before.is_stored() || defined(&before) == defined(&changed) {
        mark(table, work, |table| *table = changed);
        return Ok(());
    }
    // Under the number that it has: until a block commits, its statements go on with the tree of before. Who
    // has no block may fill another tree beside it.
    let (of, tree) = (TreeId(before.tree), before.indexes[place].tree);
    let beside = TreeId(work.tree());
    work.plan.moved_indexes.push((TreeId(tree), beside));
    work.operation(DdlOp::DropIndex { table: of, index: TreeId(tree) });
    if before.indexes[place].unique {
        work.name_unique(tree, &before.indexes[place].name);
    }
    let changed = work.put_table(changed);
    work.operation(DdlOp::CreateIndex { table: of, index: defined(&changed) });
    Ok(())
}

/// As [`check_placement`], of the parts that an index has got in partitions.
pub(super) fn check_parts(table: Oid, index: Oid, work: &Work<'_>) -> Result<()> {
    for (table, index) in with_parts(table, index, work) {
        if let Some(table) = work.catalog.table_by_oid(table) {
            let known = table.indexes.iter().find(|known| known.oid == index);
            known.map_or(Ok(()), |index| check_placement(&table, index))?;
        }
    }
    Ok(())
}
