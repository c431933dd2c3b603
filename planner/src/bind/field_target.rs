//! Fields of composite columns as targets: `UPDATE … SET column.field = …`, `INSERT INTO t
//! (column.field)`. What is stored is the whole value with the field changed.

use archipel_sql::catalog::{Column, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::format_type;
use archipel_sql::types::Type;
use sqlparser::ast::{Expr, ObjectName};

use super::modify::is_default;
use super::name::{object_name_parts, object_name_span};
use super::record::record_field;
use super::target::{Change, ChangeTarget};
use super::{Binder, Clause};
use crate::bound::{BoundExpr, ExprKind};

/// Whether what is assigned to is a field of a column.
pub(super) fn names_field(name: &ObjectName, target: &ChangeTarget) -> bool {
    let parts = object_name_parts(name).unwrap_or_default();
    parts.len() > 1 && target.column(&parts[0], Change::Update, None).is_ok()
}

/// 0A000.
pub(super) fn no_default_for_fields() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot set a subfield to DEFAULT")
}

impl Binder<'_, '_> {
    /// `column.field = value`: the column and its value with that field. Fields of one column may be
    /// assigned to one by one.
    pub(super) fn assigned_field(
        &mut self,
        target: &ChangeTarget,
        name: &ObjectName,
        value: &Expr,
        by_field: &[u16],
        set: &[(u16, BoundExpr)],
    ) -> Result<(u16, BoundExpr)> {
        let parts = object_name_parts(name)?;
        let first = ObjectName(name.0.iter().take(1).cloned().collect());
        let column = self.assigned_column(target, &first)?;
        if is_default(value) {
            return Err(no_default_for_fields().at(self.start(value)));
        }
        let position = self.position(object_name_span(name));
        let bound = self.clause_expr(value, Clause::UpdateSet)?;
        let before = set.iter().find(|(known, _)| *known == column && by_field.contains(known));
        let base = match before {
            Some((_, earlier)) => earlier.clone(),
            None => self.current_value(&target.table, &parts[0])?,
        };
        let of = &target.table.columns[usize::from(column)];
        let row = self.with_field(base, &parts[1..], bound, of).map_err(|error| error.at(position))?;
        Ok((column, self.assigned_value(&target.table, column, row)?))
    }

    /// The value of a column of the row that is changed: the first relation in sight is the target.
    pub(super) fn current_value(&mut self, table: &TableRef, column: &str) -> Result<BoundExpr> {
        let relation = self.level()?.relations.first();
        let found = relation.and_then(|relation| relation.columns.iter().find(|known| known.name == column));
        found
            .map(|known| known.expr.clone())
            .ok_or_else(|| SqlError::internal(format!("column {column} of {} is out of sight", table.name)))
    }

    /// A column's value with one of its fields, at whatever depth, become another.
    pub(super) fn with_field(
        &mut self,
        base: BoundExpr,
        path: &[String],
        value: BoundExpr,
        column: &Column,
    ) -> Result<BoundExpr> {
        let value = self.field_changed(base, column.ty, path, value, column)?;
        self.coerce_domain(value, column.domain)
    }

    /// A column's value of which only one field is given.
    pub(super) fn field_alone(
        &mut self,
        before: Option<BoundExpr>,
        path: &[String],
        value: BoundExpr,
        column: &Column,
    ) -> Result<BoundExpr> {
        let base = before.unwrap_or_else(|| BoundExpr::constant(Datum::Null, column.ty));
        self.with_field(base, path, value, column)
    }

    fn field_changed(
        &mut self,
        base: BoundExpr,
        ty: Type,
        path: &[String],
        value: BoundExpr,
        column: &Column,
    ) -> Result<BoundExpr> {
        let [field, rest @ ..] = path else { return Ok(value) };
        let Some(relation) = self.env.catalog.table_of_row_type(ty.oid) else {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot assign to field \"{field}\" of column \"{}\" because its type {} is not a composite type",
                    column.name,
                    format_type(Type::of(ty.oid))
                ),
            ));
        };
        let Some(place) = relation.column_index(field) else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "cannot assign to field \"{field}\" of column \"{}\" because there is no such column in data type {}",
                    column.name,
                    format_type(Type::of(ty.oid))
                ),
            ));
        };
        let mut items = Vec::with_capacity(relation.columns.len());
        let mut value = Some(value);
        for (at, attribute) in relation.columns.iter().enumerate() {
            let now = record_field(base.clone(), at, attribute.ty);
            items.push(match value.take_if(|_| at == usize::from(place)) {
                Some(value) if rest.is_empty() => self.assign_field(value, attribute)?,
                Some(value) => {
                    let changed = self.field_changed(now, attribute.ty, rest, value, column)?;
                    self.coerce_domain(changed, attribute.domain)?
                }
                None => now,
            });
        }
        Ok(BoundExpr::new(ExprKind::Row(items), ty))
    }

    fn assign_field(&mut self, value: BoundExpr, field: &Column) -> Result<BoundExpr> {
        let from = value.ty;
        let assigned = self
            .coerce(value, field.ty, archipel_sql::function::CastContext::Assignment)?
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "subfield \"{}\" is of type {} but expression is of type {}",
                        field.name,
                        format_type(Type::of(field.ty.oid)),
                        format_type(Type::of(from.oid))
                    ),
                )
                .with_hint("You will need to rewrite or cast the expression.")
            })?;
        self.coerce_domain(assigned, field.domain)
    }
}
