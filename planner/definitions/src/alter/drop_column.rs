//! ALTER TABLE … DROP COLUMN: what goes with a column, and what speaks of those behind it.

use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::{
    Access, Distribution, EXPRESSION, Index, KeyConstraint, ObjectKind, PartitionKeyPart, Table, TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use crate::data_type::composite;
use crate::drop::cascade;
use crate::expression::check;
use crate::relation::{distribution, sequence, trigger, view};
use crate::row::table_def;
use crate::work::change::finish;
use crate::work::{Work, column_source};

/// Drops a column with whatever is over it, as a type's CASCADE does.
pub(crate) fn drop_column_of(table: &Table, column: &str, work: &mut Work<'_>) -> Result<()> {
    drop_column(table.clone(), column, true, true, work)
}

pub(super) fn drop_column(
    mut table: Table,
    column: &str,
    if_exists: bool,
    cascade: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let Some(place) = table.column_index(column) else {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
        if if_exists {
            work.notice(format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    };
    let rights = work.catalog.access(table.oid).filter(|access| !access.columns.is_empty());
    let rights = rights.map(|access| Access::clone(access));
    if let Some(changed) = release_users(&table, place, cascade, work)? {
        // Others have gone, and what is left of the table may have moved.
        return drop_column(changed, column, if_exists, cascade, work);
    }
    trigger::release_column(&mut table, column, cascade, work)?;
    view::release_column(&mut table, place, cascade, work)?;
    let before = table.clone();
    let mut checks = Vec::new();
    for check in std::mem::take(&mut table.checks) {
        if !check::text_uses_column(&check.condition, &table, place)? {
            checks.push(check);
        }
    }
    table.checks = checks;
    table.foreign_keys.retain(|key| !key.columns.contains(&place));
    // A key goes with its columns.
    let of_key = |key: &KeyConstraint| key.columns.contains(&place) || key.include.contains(&place);
    let loses_key = table.primary_key.as_ref().is_some_and(of_key);
    if loses_key {
        table.primary_key = None;
    }
    let loses_place = matches!(table.distribution, Distribution::Column { column, .. } if column == place);
    let mut kept = Vec::with_capacity(table.indexes.len());
    for index in std::mem::take(&mut table.indexes) {
        if !uses_column(&index, &table, place)? {
            kept.push(index);
        }
    }
    table.indexes = kept;
    for nominal in std::mem::take(&mut table.nominal.indexes) {
        if !uses_column(&nominal.index, &table, place)? {
            table.nominal.indexes.push(nominal);
        }
    }
    if let Some(mut rights) = rights {
        rights.drop_column(place + 1);
        work.put_access(rights);
    }
    composite::drop_stored_field(table.row_type(), usize::from(place), work)?;
    table.columns.remove(usize::from(place));
    let shift = |column: &mut u16| {
        if *column > place && *column != EXPRESSION {
            *column -= 1;
        }
    };
    if let Some(key) = &mut table.primary_key {
        key.columns.iter_mut().for_each(shift);
        key.include.iter_mut().for_each(shift);
    }
    for index in table.all_indexes_mut() {
        index.columns.iter_mut().for_each(|part| shift(&mut part.column));
        index.include.iter_mut().for_each(shift);
    }
    for key in &mut table.foreign_keys {
        key.columns.iter_mut().for_each(shift);
        key.on_delete_columns.iter_mut().for_each(shift);
        if key.references == table.oid {
            key.referenced_columns.iter_mut().for_each(shift);
        }
    }
    if let Distribution::Column { column, .. } = &mut table.distribution {
        shift(column);
    }
    for part in table.partitioned_by.iter_mut().flat_map(|key| &mut key.parts) {
        if let PartitionKeyPart::Column(column) = part {
            shift(column);
        }
    }
    if loses_place {
        distribution::choose_default(&mut table, work)?;
    }
    if loses_key || loses_place {
        distribution::place_indexes(&mut table, work);
    }
    let (oid, table) = (table.oid, work.put_table(table));
    shift_others(oid, place, work);
    let mut visible = column_source::all_kept(&before);
    visible.remove(usize::from(place));
    let columns = column_source::sources(&before, &table, visible);
    work.operation(DdlOp::AlterTable { def: table_def(&table), columns });
    Ok(())
}

/// Whether a part of an index is a column, or names it.
fn uses_column(index: &Index, table: &Table, place: u16) -> Result<bool> {
    let mut uses = index.include.contains(&place) || index.columns.iter().any(|part| part.column == place);
    if let Some(predicate) = &index.predicate {
        uses |= check::text_uses_column(predicate, table, place)?;
    }
    for expression in &index.expressions {
        uses |= check::text_uses_column(&expression.text, table, place)?;
    }
    Ok(uses)
}

/// Lets what needs a column go with it, or refuses: foreign keys that point at it, columns that are
/// generated from it. Answers the table as it is then, if there was something.
fn release_users(table: &Table, place: u16, cascade: bool, work: &mut Work<'_>) -> Result<Option<Table>> {
    let mut pointing: Vec<Dependent> = Vec::new();
    for other in work.catalog.tables() {
        for (at, key) in other.foreign_keys.iter().enumerate() {
            if key.references == table.oid && key.referenced_columns.contains(&place) {
                pointing.push(Dependent::ForeignKey(other.clone(), at));
            }
        }
    }
    let is_part = |dependent: &Dependent| matches!(dependent, Dependent::ForeignKey(of, at) if of.foreign_keys[*at].parent.is_some());
    let known = TableRef::new(table.clone());
    let generated = check::generated_from(table, place)?;
    let generated = generated.into_iter().map(|column| Dependent::Generated(known.clone(), column));
    let generated: Vec<Dependent> = generated.collect();
    if pointing.is_empty() && generated.is_empty() {
        return Ok(None);
    }
    // Those of partitions go with that of the table they are part of.
    let mut named: Vec<Dependent> = pointing.iter().filter(|key| !is_part(key)).cloned().collect();
    named.extend(generated.iter().cloned());
    if !cascade {
        let column = &table.columns[usize::from(place)].name;
        return Err(still_depended_on(&format!("column {column} of table {}", table.name), &named, work));
    }
    cascade::cascade_notice(&named, work);
    cascade::drop_foreign_keys(&pointing, &FxHashSet::default(), work);
    for dependent in &generated {
        if let Dependent::Generated(of, column) = dependent
            && let Some(table) = work.catalog.table_by_oid(of.oid)
        {
            let name = &of.columns[usize::from(*column)].name;
            drop_column((*table).clone(), name, true, cascade, work)?;
        }
    }
    Ok(work.catalog.table_by_oid(table.oid).map(|table| (*table).clone()))
}

/// Foreign keys of other tables and owned sequences speak of columns by place.
fn shift_others(oid: Oid, place: u16, work: &mut Work<'_>) {
    let others: Vec<_> = work
        .catalog
        .tables()
        .filter(|other| {
            other.oid != oid
                && other.foreign_keys.iter().any(|key| {
                    key.references == oid && key.referenced_columns.iter().any(|&column| column > place)
                })
        })
        .cloned()
        .collect();
    for other in others {
        let mut changed = (*other).clone();
        for key in changed.foreign_keys.iter_mut().filter(|key| key.references == oid) {
            for column in key.referenced_columns.iter_mut().filter(|column| **column > place) {
                *column -= 1;
            }
        }
        finish(changed, work);
    }
    for sequence in work.catalog.owned_sequences(oid) {
        match sequence.owned_by {
            Some((_, column)) if column == place => {
                work.operation(DdlOp::DropSequence(sequence::id(&sequence)));
                work.drop(ObjectKind::Sequence, sequence.oid);
            }
            Some((_, column)) if column > place => {
                let mut changed = (*sequence).clone();
                changed.owned_by = Some((oid, column - 1));
                work.put_sequence(changed);
            }
            _ => {}
        }
    }
}
