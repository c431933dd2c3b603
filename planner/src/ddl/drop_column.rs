//! ALTER TABLE … DROP COLUMN: what goes with a column, and what speaks of those behind it.

use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::{Access, Distribution, EXPRESSION, ObjectKind, PartitionKeyPart, Table};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::alter::finish;
use super::work::Work;
use super::{composite, expression, stored, trigger, view};
use crate::row::table_def;

/// Drops a column with whatever is over it, as a type's CASCADE does.
pub(super) fn drop_column_of(table: &Table, column: &str, work: &mut Work<'_>) -> Result<()> {
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
    let in_key = table.storage_key().contains(&place);
    if in_key {
        return Err(SqlError::unsupported(format_args!("DROP COLUMN of the key column \"{column}\"")));
    }
    let pointed_at = work.catalog.tables().any(|other| {
        other
            .foreign_keys
            .iter()
            .any(|key| key.references == table.oid && key.referenced_columns.contains(&place))
    });
    if pointed_at {
        return Err(if cascade {
            SqlError::unsupported("DROP COLUMN CASCADE of a referenced column")
        } else {
            SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!(
                    "cannot drop column {column} of table {} because other objects depend on it",
                    table.name
                ),
            )
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
        });
    }
    trigger::release_column(&mut table, column, cascade, work)?;
    if let Some(&user) = expression::generated_from(&table, place)?.first() {
        if cascade {
            return Err(SqlError::unsupported(
                "DROP COLUMN CASCADE of a column that another is generated from",
            ));
        }
        let user = &table.columns[usize::from(user)].name;
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop column {column} of table {} because other objects depend on it", table.name),
        )
        .with_detail(format!(
            "column {user} of table {0} depends on column {column} of table {0}",
            table.name
        ))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    view::release_column(&table, place, cascade, work)?;
    let before = table.clone();
    let mut checks = Vec::new();
    for check in std::mem::take(&mut table.checks) {
        if !expression::text_uses_column(&check.condition, &table, place)? {
            checks.push(check);
        }
    }
    table.checks = checks;
    table.foreign_keys.retain(|key| !key.columns.contains(&place));
    let mut kept = Vec::with_capacity(table.indexes.len());
    for index in std::mem::take(&mut table.indexes) {
        let mut uses =
            index.include.contains(&place) || index.columns.iter().any(|part| part.column == place);
        if let Some(predicate) = &index.predicate {
            uses |= expression::text_uses_column(predicate, &table, place)?;
        }
        for expression in &index.expressions {
            uses |= expression::text_uses_column(&expression.text, &table, place)?;
        }
        if !uses {
            kept.push(index);
        }
    }
    table.indexes = kept;
    if let Some(mut rights) = rights {
        rights.drop_column(place + 1);
        work.put_access(rights);
    }
    composite::drop_stored_field(table.row_type(), usize::from(place), work);
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
    for index in &mut table.indexes {
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
    let (oid, table) = (table.oid, work.put_table(table));
    shift_others(oid, place, work);
    let mut visible = stored::all_kept(&before);
    visible.remove(usize::from(place));
    let columns = stored::sources(&before, &table, visible);
    work.operation(DdlOp::AlterTable { def: table_def(&table), columns });
    Ok(())
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
                work.operation(DdlOp::DropSequence(archipel_engine::id::SequenceId(sequence.oid.0)));
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
