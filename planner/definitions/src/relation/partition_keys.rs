//! Keys, indexes, foreign keys and row triggers of partitioned tables: each of their partitions has
//! its own of them, which name those of the table they are part of as theirs.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::names::undefined_column;
use archipel_sql::catalog::{
    EXPRESSION, ForeignKey, Index, IndexColumn, IndexExpression, KeyConstraint, PartitionKeyPart, Table,
    TableRef, Trigger,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::constraint::own_names;
use super::distribution;
use super::inheritance::{carried, same_condition};
use crate::bind::Clause;
use crate::row::{index_def, table_def};
use crate::work::{Work, change, column_source, has_constraint, validation};
use crate::{Computed, ComputedValue};

/// Where columns of a table are in one of its heirs.
pub(super) fn mapped(columns: &[u16], parent: &Table, child: &Table) -> Result<Vec<u16>> {
    let place = |column: &u16| {
        let Some(known) = parent.columns.get(usize::from(*column)) else { return Ok(*column) };
        child.column_index(&known.name).ok_or_else(|| undefined_column(&known.name, &child.name))
    };
    columns.iter().map(place).collect()
}

/// A key over a partitioned table tells rows apart only within a partition: it has to have all that
/// says which partition a row lies in.
pub(super) fn check_unique(table: &Table, columns: &[u16], primary: bool) -> Result<()> {
    let Some(key) = &table.partitioned_by else { return Ok(()) };
    let word = if primary { "PRIMARY KEY" } else { "UNIQUE" };
    for part in &key.parts {
        let PartitionKeyPart::Column(column) = part else {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("unsupported {word} constraint with partition key definition"),
            )
            .with_detail(format!(
                "{word} constraints cannot be used when partition keys include expressions."
            )));
        };
        if !columns.contains(column) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "unique constraint on partitioned table must include all partitioning columns",
            )
            .with_detail(format!(
                "{word} constraint on table \"{}\" lacks column \"{}\" which is part of the partition key.",
                table.name,
                table.columns[usize::from(*column)].name
            )));
        }
    }
    Ok(())
}

/// As [`check_unique`], of all the keys that a partitioned table has.
pub(crate) fn check_keys(table: &Table) -> Result<()> {
    if let Some(key) = &table.primary_key {
        check_unique(table, &key.columns, true)?;
    }
    for index in table.indexes.iter().filter(|index| index.unique) {
        let columns: Vec<u16> = index.columns.iter().map(|part| part.column).collect();
        check_unique(table, &columns, false)?;
    }
    Ok(())
}

/// Gives a partition what its parent has and it lacks; what it has already becomes part of the
/// parent's. Of the parent's keys and indexes those that are `wanted`, if not all: others may have
/// been made of the parent ONLY.
pub(super) fn take(
    parent: &TableRef,
    child: &mut Table,
    wanted: Option<&[Oid]>,
    work: &mut Work<'_>,
) -> Result<()> {
    let is_wanted = |oid: Oid| wanted.is_none_or(|wanted| wanted.contains(&oid));
    if parent.primary_key.as_ref().is_some_and(|key| is_wanted(key.oid)) {
        take_primary_key(parent, child, work)?;
    }
    for index in parent.indexes.iter().filter(|index| is_wanted(index.oid)) {
        take_index(parent, index, child, work)?;
    }
    check_keys(child)?;
    for key in &parent.foreign_keys {
        take_foreign_key(parent, key, child, work)?;
    }
    for trigger in parent.triggers.iter().filter(|trigger| trigger.row) {
        take_trigger(parent, trigger, child, work)?;
    }
    Ok(())
}

fn take_primary_key(parent: &TableRef, child: &mut Table, work: &mut Work<'_>) -> Result<()> {
    let Some(key) = &parent.primary_key else { return Ok(()) };
    let columns = mapped(&key.columns, parent, child)?;
    if let Some(own) = &mut child.primary_key {
        if own.parent == Some(key.oid) {
            return Ok(());
        }
        if own.columns == columns && own.parent.is_none() {
            own.parent = Some(key.oid);
            return Ok(());
        }
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("multiple primary keys for table \"{}\" are not allowed", child.name),
        ));
    }
    let include = mapped(&key.include, parent, child)?;
    for &column in &columns {
        child.columns[usize::from(column)].not_null = true;
    }
    let name = work.free_relation_name(&child.schema, [&child.name, "", "pkey"], &own_names(child));
    work.name_unique(child.tree, &name);
    let oid = work.oids(2);
    let options = key.options.clone();
    child.primary_key = Some(KeyConstraint { oid, name, columns, include, parent: Some(key.oid), options });
    Ok(())
}

fn take_index(parent: &TableRef, index: &Index, child: &mut Table, work: &mut Work<'_>) -> Result<()> {
    if child.indexes.iter().any(|own| own.parent == Some(index.oid))
        || child.primary_key.as_ref().is_some_and(|own| own.parent == Some(index.oid))
    {
        return Ok(());
    }
    let wanted = index_for(parent, index, child)?;
    if let Some(own) = &mut child.primary_key
        && own.parent.is_none()
        && wanted.is_plain_key()
        && wanted.predicate.is_none()
        && wanted.columns.iter().map(|part| part.column).eq(own.columns.iter().copied())
    {
        own.parent = Some(index.oid);
        return Ok(());
    }
    let place = child.indexes.iter().position(|own| {
        own.parent.is_none() && (own.constraint || !index.constraint) && same_index(own, &wanted, child, work)
    });
    if let Some(place) = place {
        child.indexes[place].parent = Some(index.oid);
        return Ok(());
    }
    let label = if index.constraint { "key" } else { "idx" };
    let name = work.free_relation_name(
        &child.schema,
        [&child.name, &part_names(&wanted, child).join("_"), label],
        &own_names(child),
    );
    let tree = if child.is_partitioned() { 0 } else { work.tree() };
    if index.unique {
        work.name_unique(tree, &name);
    }
    child.indexes.push(Index { oid: work.oids(2), name, tree, parent: Some(index.oid), ..wanted });
    Ok(())
}

/// What the parts of an index lend to its name.
pub(super) fn part_names(index: &Index, table: &Table) -> Vec<String> {
    let named = |(place, part): (usize, &IndexColumn)| match index.expression(place) {
        Some(expression) if part.column == EXPRESSION => expression.name.clone(),
        _ => table.columns[usize::from(part.column)].name.clone(),
    };
    let included = index.include.iter().map(|column| table.columns[usize::from(*column)].name.clone());
    index.columns.iter().enumerate().map(named).chain(included).collect()
}

/// An index of a table as one of its partitions would have it, without numbers of its own.
fn index_for(parent: &TableRef, index: &Index, child: &Table) -> Result<Index> {
    let carry = |text: &str, clause| carried(text, parent, &child.name, clause);
    let mut wanted = index.clone();
    for part in wanted.columns.iter_mut().filter(|part| part.column != EXPRESSION) {
        part.column = mapped(&[part.column], parent, child)?[0];
    }
    wanted.include = mapped(&index.include, parent, child)?;
    wanted.predicate =
        index.predicate.as_ref().map(|text| carry(text, Clause::IndexPredicate)).transpose()?;
    for expression in &mut wanted.expressions {
        expression.text = carry(&expression.text, Clause::IndexExpression)?;
    }
    wanted.global_group = None;
    Ok(wanted)
}

/// Whether two indexes of a table are over the same (CompareIndexInfo), and their entries asked to be in the
/// same place: that is said of all partitions alike.
fn same_index(own: &Index, wanted: &Index, table: &Table, work: &Work<'_>) -> bool {
    let same_text = |one: &str, other: &str| same_condition(one, other, table, work);
    let same_part = |(one, other): (&IndexExpression, &IndexExpression)| {
        one.place == other.place && same_text(&one.text, &other.text)
    };
    let same_predicate = match (&own.predicate, &wanted.predicate) {
        (None, None) => true,
        (Some(one), Some(other)) => same_text(one, other),
        _ => false,
    };
    (own.unique, own.nulls_equal) == (wanted.unique, wanted.nulls_equal)
        && own.placement() == wanted.placement()
        && own.columns == wanted.columns
        && own.include.len() == wanted.include.len()
        && own.expressions.len() == wanted.expressions.len()
        && same_predicate
        && own.expressions.iter().zip(&wanted.expressions).all(same_part)
}

/// Whether an index of a partition can become part of one of its parent.
pub(crate) fn fits(
    parent: &TableRef,
    index: &Index,
    child: &Table,
    own: &Index,
    work: &Work<'_>,
) -> Result<bool> {
    let wanted = index_for(parent, index, child)?;
    Ok(same_index(own, &wanted, child, work))
}

fn take_foreign_key(
    parent: &TableRef,
    key: &ForeignKey,
    child: &mut Table,
    work: &mut Work<'_>,
) -> Result<()> {
    if child.foreign_keys.iter().any(|own| own.parent == Some(key.oid)) {
        return Ok(());
    }
    let columns = mapped(&key.columns, parent, child)?;
    let on_delete_columns = mapped(&key.on_delete_columns, parent, child)?;
    let same = |own: &ForeignKey| {
        own.parent.is_none()
            && own.columns == columns
            && own.references == key.references
            && own.referenced_columns == key.referenced_columns
            && (own.on_delete, own.on_update, own.match_full)
                == (key.on_delete, key.on_update, key.match_full)
            && (own.deferrable, own.initially_deferred) == (key.deferrable, key.initially_deferred)
            && own.on_delete_columns == on_delete_columns
            && !own.not_valid
    };
    if let Some(own) = child.foreign_keys.iter_mut().find(|own| same(own)) {
        own.parent = Some(key.oid);
        return Ok(());
    }
    let name = if has_constraint(child, &key.name) {
        let names: Vec<String> =
            columns.iter().map(|column| child.columns[usize::from(*column)].name.clone()).collect();
        work.free_constraint_name(&child.schema, [&child.name, &names.join("_"), "fkey"], &own_names(child))
    } else {
        key.name.clone()
    };
    let oid = work.oids(1);
    let cloned = ForeignKey { oid, name, columns, on_delete_columns, parent: Some(key.oid), ..key.clone() };
    child.foreign_keys.push(cloned);
    Ok(())
}

fn take_trigger(parent: &TableRef, trigger: &Trigger, child: &mut Table, work: &mut Work<'_>) -> Result<()> {
    if let Some(known) = child.trigger(&trigger.name) {
        if known.parent == Some(trigger.oid) {
            return Ok(());
        }
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!("trigger \"{}\" for relation \"{}\" already exists", trigger.name, child.name),
        ));
    }
    let condition = match &trigger.condition {
        Some(text) if parent.schema != child.schema => Some(text.clone()),
        other => other.clone(),
    };
    let oid = work.oids(1);
    child.put_trigger(Trigger { oid, condition, parent: Some(trigger.oid), ..trigger.clone() });
    work.plan.triggers.push((child.oid, trigger.name.clone()));
    Ok(())
}

/// As [`take`], for all partitions of a table, and theirs.
pub(crate) fn spread(parent: Oid, wanted: Option<&[Oid]>, work: &mut Work<'_>) -> Result<()> {
    let partitioned = work.catalog.table_by_oid(parent).is_some_and(|table| table.is_partitioned());
    if partitioned {
        for child in work.catalog.heirs(parent) {
            ensure(parent, child.oid, wanted, work)?;
        }
    }
    Ok(())
}

/// The keys and indexes that a table has got.
pub(crate) fn fresh_keys(before: &Table, after: &Table) -> Vec<Oid> {
    let keys = |table: &Table| -> Vec<Oid> {
        let primary = table.primary_key.iter().map(|key| key.oid);
        primary.chain(table.indexes.iter().map(|index| index.oid)).collect()
    };
    let known = keys(before);
    keys(after).into_iter().filter(|oid| !known.contains(oid)).collect()
}

/// As [`take`], for a partition that is in the catalog and may have rows.
pub(crate) fn ensure(parent: Oid, child: Oid, wanted: Option<&[Oid]>, work: &mut Work<'_>) -> Result<()> {
    let tables = (work.catalog.table_by_oid(parent), work.catalog.table_by_oid(child));
    let (Some(parent), Some(before)) = tables else { return Ok(()) };
    let mut table = (*before).clone();
    take(&parent, &mut table, wanted, work)?;
    let fresh = fresh_keys(&before, &table);
    if table != *before {
        finish(&before, table, work)?;
    }
    // What was there before may have been made of the partition ONLY.
    spread(child, Some(&fresh), work)
}

/// Puts a table that got keys, indexes and the like, and has its rows follow.
fn finish(before: &TableRef, mut table: Table, work: &mut Work<'_>) -> Result<()> {
    for (place, column) in table.columns.iter().enumerate() {
        if column.not_null && !before.columns[place].not_null && table.is_stored() {
            change::validate_not_null(before, place, work);
        }
    }
    let new_keys: Vec<ForeignKey> = table.foreign_keys[before.foreign_keys.len()..].to_vec();
    if table.is_stored() {
        for key in new_keys.iter().filter(|key| !key.not_valid) {
            validation::foreign_key(&table, key, work);
        }
    }
    let new_primary = table.primary_key.is_some() && before.primary_key.is_none();
    let fresh: Vec<Oid> = table.indexes[before.indexes.len()..].iter().map(|index| index.oid).collect();
    if new_primary {
        distribution::choose_for_primary_key(before, &mut table, work)?;
    }
    distribution::place_indexes(&mut table, work);
    let table = work.put_table(table);
    let mut stores = false;
    for index in table.indexes.iter().filter(|index| fresh.contains(&index.oid)) {
        for expression in &index.expressions {
            let Some(column) = table.stored_place(index.oid, expression.place) else { continue };
            let text = index.stored_text(expression);
            stores = true;
            work.compute(Computed {
                column: usize::from(column),
                ty: expression.ty,
                not_null: None,
                once: false,
                value: ComputedValue::of_definition(&work.catalog, before, &text, expression.ty),
            });
        }
    }
    let mut def = table_def(&table);
    let known = |id: TreeId| before.indexes.iter().any(|index| TreeId(index.tree) == id);
    def.indexes.retain(|index| known(index.id));
    if new_primary || stores || fresh.is_empty() {
        let columns = column_source::sources(before, &table, column_source::all_kept(before));
        work.operation(DdlOp::AlterTable { def, columns });
    }
    for index in table.indexes.iter().filter(|index| fresh.contains(&index.oid)) {
        let index = index_def(&table, index);
        work.operation(DdlOp::CreateIndex { table: TreeId(table.tree), index });
    }
    for key in new_keys.iter().filter(|key| key.references != table.oid) {
        change::touch(key.references, work);
    }
    Ok(())
}

/// A partition that is no longer one keeps what it has, as its own.
pub(crate) fn release(table: &mut Table) {
    if let Some(key) = &mut table.primary_key {
        key.parent = None;
    }
    table.indexes.iter_mut().for_each(|index| index.parent = None);
    table.foreign_keys.iter_mut().for_each(|key| key.parent = None);
    table.triggers.retain(|trigger| trigger.parent.is_none());
}
