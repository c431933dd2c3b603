//! What the rows of a COPY FROM go to: which relations and columns take them, and under which condition.

use std::sync::Arc;

use archipel_planner::bind::stored_expression;
use archipel_planner::bound::{BoundExpr, BoundStatement, Rel};
use archipel_planner::ddl::check_copied_condition;
use archipel_sql::ast::{CopyKind, Expression, QualifiedName};
use archipel_sql::catalog::{Relation, Table, TableKind, TableRef, Trigger, TriggerEvent};
use archipel_sql::copy::{BinaryDecoder, CopyDecoder, CopyFormat};
use archipel_sql::encoding::{Encoding, no_conversion};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};

use super::copy_batch::plan_of;
use super::state::Decoder;
use crate::session::Session;
use crate::statement::{Prepared, RowPlan};

impl Session {
    /// The table or view of a COPY FROM.
    pub(super) fn table_to_copy_to(&mut self, name: &QualifiedName) -> Result<TableRef> {
        self.require_schema_of(name)?;
        let host = self.host();
        let path = self.search_path();
        match host.catalog.catalog.require_relation(name, &path)? {
            Relation::Table(table) => Ok(table),
            Relation::Sequence(sequence) => {
                Err(no_rows(format!("cannot copy to sequence \"{}\"", sequence.name)))
            }
            index => Err(no_rows(format!("\"{}\" is an index", index.name()))),
        }
    }

    /// Refuses a relation that takes no rows, or not as FREEZE wants them (CopyFrom).
    pub(super) fn takes_rows(&self, table: &Table, freeze: bool) -> Result<()> {
        if table.kind != TableKind::Table {
            let takes = |event| {
                table.triggers.iter().any(|trigger| trigger.instead && trigger.answers(event, table, None))
            };
            if table.kind == TableKind::View && takes(TriggerEvent::Insert) {
                return Ok(());
            }
            let refused = no_rows(format!("cannot copy to view \"{}\"", table.name));
            return Err(
                refused.with_hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.")
            );
        }
        if freeze && table.is_partitioned() {
            let message = "cannot perform COPY FREEZE on a partitioned table";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if freeze && !self.transaction.has_made_or_emptied(table) {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction",
            ));
        }
        Ok(())
    }

    /// WHERE of a COPY FROM over a row of the table; its errors tell places in the statement.
    pub(super) fn copied_condition(&mut self, table: &TableRef, filter: &Expression) -> Result<BoundExpr> {
        check_copied_condition(filter)?;
        let (host, path) = (self.host(), self.search_path());
        let (catalog, context) = (&host.catalog.catalog, self.context(&host));
        stored_expression::copied_condition(catalog, &path, &filter.text, table, &context).map_err(
            |mut error| {
                if let Some(position) = &mut error.fields_mut().position {
                    *position += filter.position.saturating_sub(1);
                }
                error
            },
        )
    }

    /// The plan of an INSERT, of the rows that WHERE lets pass: it is asked of the whole row, with the defaults
    /// of what is not copied.
    pub(super) fn filtered_plan(
        &mut self,
        insert: &Prepared,
        table: &TableRef,
        filter: &Expression,
    ) -> Result<Arc<RowPlan>> {
        let plan = plan_of(insert)?;
        let BoundStatement::Insert(insert) = &plan.bound else { return Ok(plan) };
        let predicate = self.copied_condition(table, filter)?;
        let mut insert = insert.clone();
        insert.source = Rel::Filter { input: Box::new(insert.source), predicate };
        self.compile_rows(BoundStatement::Insert(insert)).map(Arc::new)
    }
}

fn no_rows(message: String) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// What makes rows of the bytes that come for these columns.
pub(super) fn decoder_of(
    format: CopyFormat,
    table: &TableRef,
    names: &[String],
    types: &[Type],
) -> Result<Decoder> {
    if format.kind == CopyKind::Binary {
        require_binary(types, "input")?;
        return Ok(Decoder::Binary(Box::new(BinaryDecoder::new(&table.name, names.to_vec()))));
    }
    for forced in [&format.force_not_null, &format.force_null] {
        column_positions(table, forced)?;
    }
    CopyDecoder::new(format, &table.name, names.to_vec()).map(|decoder| Decoder::Text(Box::new(decoder)))
}

/// Refuses an encoding that text is not converted to, or `from`.
pub(super) fn require_converted(format: &CopyFormat, from: bool) -> Result<()> {
    let (encoding, binary) = (format.encoding, format.kind == CopyKind::Binary);
    if encoding.is_servers() || encoding.is_converted() || binary && !from {
        return Ok(());
    }
    let (from, to) = if from { (encoding, Encoding::UTF8) } else { (Encoding::UTF8, encoding) };
    Err(no_conversion(from, to))
}

/// Refuses types that have no binary form.
pub(super) fn require_binary(types: &[Type], direction: &str) -> Result<()> {
    match types.iter().any(|ty| ty.oid == Oid::ACLITEM) {
        true => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("no binary {direction} function available for type aclitem"),
        )),
        false => Ok(()),
    }
}

/// Which of the copied columns may not be NULL, if every row is written as it comes: no WHERE passes it over, no
/// trigger changes it.
pub(super) fn needed_columns(table: &TableRef, positions: &[usize], is_filtered: bool) -> Vec<bool> {
    let changes = |trigger: &Trigger| trigger.row && trigger.before;
    if is_filtered
        || table.kind != TableKind::Table
        || table.is_partitioned()
        || table.triggers.iter().any(changes)
    {
        return Vec::new();
    }
    positions.iter().map(|at| table.columns[*at].not_null).collect()
}

/// Column numbers of a COPY's column list; all columns without one.
pub(super) fn column_positions(table: &TableRef, names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() {
        // Generated columns make their own values.
        let given = table.columns.iter().enumerate().filter(|(_, column)| column.generated.is_none());
        return Ok(given.map(|(at, _)| at).collect());
    }
    let mut positions: Vec<usize> = Vec::with_capacity(names.len());
    for name in names {
        let at = table.column_index(name).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
            )
        })?;
        if table.columns[usize::from(at)].generated.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{name}\" is a generated column"),
            )
            .with_detail("Generated columns cannot be used in COPY."));
        }
        if positions.contains(&usize::from(at)) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        positions.push(usize::from(at));
    }
    Ok(positions)
}
