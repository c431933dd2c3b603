//! Results: the columns a routine answers, RETURN in its forms.

use std::sync::Arc;

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::catalog::ArgMode;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Type;

use super::result_columns::{Columns, check_columns, mismatch_error};
use super::text_purpose::TextFor;
use crate::compile::cast::{always_casts, as_records};
use crate::compile::compiler::Compiler;
use crate::compile::error_context::expression_line;
use crate::compile::record::storage::declared_columns;
use crate::plpgsql::ast::*;
use crate::run::context;
use crate::run::operation::expression::Compiled;
use crate::run::operation::site::Site;
use crate::run::operation::*;

impl Compiler<'_> {
    pub(super) fn return_value(&mut self, value: Option<&Fragment>) -> Result<OperationKind> {
        let Some(value) = value else {
            let has_out = self.body_has_out();
            return Ok(if self.routine.returns_set {
                OperationKind::Return
            } else if has_out {
                OperationKind::ReturnColumns
            } else if self.routine.kind == archipel_sql::catalog::RoutineKind::Procedure {
                OperationKind::Return
            } else {
                let void = Self::constant(Datum::text(""), Type::VOID);
                OperationKind::ReturnRow { values: vec![self.plan_expression(&void)?] }
            });
        };
        if let Some(rows) = &self.trigger
            && rows.is_absent(self, value)
        {
            // The variable is NULL: no row.
            return Ok(OperationKind::Return);
        }
        if let Some(cast) = self.return_cast(value)? {
            return Ok(cast);
        }
        Ok(match self.row_of(value)? {
            RowValue::Values(values) => OperationKind::ReturnRow { values },
            RowValue::Record(value, width) => OperationKind::ReturnRecord { value, width },
        })
    }

    /// A value whose cast to the result's type may fail: it is computed by RETURN, and cast when the
    /// routine has ended, where no handler sees it.
    fn return_cast(&mut self, value: &Fragment) -> Result<Option<OperationKind>> {
        let Columns::Scalar { ty, .. } = &self.columns else { return Ok(None) };
        let ty = if self.routine.result_domain.is_some() { self.routine.declared_result() } else { *ty };
        let Ok(mut bound) = self.bind(value, None) else { return Ok(None) };
        let is_constant = self.routine.result_domain.is_none() && matches!(bound.kind, ExprKind::Const(_));
        if is_constant && self.bind(value, Some(ty)).is_ok() {
            return Ok(None);
        }
        if bound.domain == Some(ty.oid) {
            return Ok(None);
        }
        if bound.ty == Type::UNKNOWN {
            bound.ty = Type::TEXT;
        }
        if bound.ty.oid == ty.oid || always_casts(bound.ty.oid, ty.oid) {
            return Ok(None);
        }
        let register = self.scratch();
        let read = BoundExpr::new(ExprKind::Variable(register), bound.ty);
        // What has no cast is told as ever.
        let Ok(cast) = self.cast(read, ty) else { return Ok(None) };
        let cast = Arc::new(self.plan_expression(&cast)?);
        let value = self.plan_spoken(&bound, expression_line(value))?;
        Ok(Some(OperationKind::ReturnCast { value, register, cast }))
    }

    fn body_has_out(&self) -> bool {
        self.routine.args.iter().any(|arg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table))
    }

    pub(super) fn return_next(&mut self, value: Option<&Fragment>) -> Result<OperationKind> {
        let Some(value) = value else {
            return Ok(OperationKind::NextColumns);
        };
        Ok(match self.row_of(value)? {
            RowValue::Values(values) => OperationKind::NextRow { values },
            RowValue::Record(value, width) => OperationKind::NextRecord { value, width },
        })
    }

    /// An expression as a result row.
    fn row_of(&mut self, value: &Fragment) -> Result<RowValue> {
        let columns = self.columns.clone();
        match columns {
            Columns::None => {
                let bound = self.bind(value, None)?;
                Ok(RowValue::Values(vec![self.plan_expression(&bound)?]))
            }
            Columns::Scalar { ty, .. } => {
                let ty =
                    if self.routine.result_domain.is_some() { self.routine.declared_result() } else { ty };
                Ok(RowValue::Values(vec![self.expression(value, Some(ty))?]))
            }
            Columns::Row(columns) => {
                let bound = self.bind(value, None)?;
                let declared = self.environment.catalog.table_of_row_type(self.routine.result.oid);
                self.composite(bound, Some(&declared.map_or(columns, |table| declared_columns(&table))))
            }
            Columns::Record => {
                let bound = self.bind(value, None)?;
                self.composite(bound, None)
            }
        }
    }

    fn composite(&mut self, bound: BoundExpr, columns: Option<&[(String, Type)]>) -> Result<RowValue> {
        match (bound.kind, columns) {
            (ExprKind::Row(items, _), Some(columns)) => {
                self.check_returned_row(&items, columns)?;
                let mut values = Vec::new();
                for (index, item) in items.into_iter().enumerate() {
                    let item = self.cast_unless_one(item, columns[index].1)?;
                    values.push(self.plan_expression(&item)?);
                }
                Ok(RowValue::Values(values))
            }
            (kind, columns) => {
                let is_null = matches!(&kind, ExprKind::Const(value) if value.is_null());
                let named = self.environment.catalog.table_of_row_type(bound.ty.oid).is_some();
                let composite = bound.ty == Type::RECORD || named;
                if !is_null && !composite {
                    return Err(SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        "cannot return non-composite value from function returning composite type",
                    ));
                }
                let width = columns.map(|columns| columns.len() as u32);
                let mut value = BoundExpr::new(kind, bound.ty);
                if named && width.is_none() {
                    value = BoundExpr::new(ExprKind::Relabel(Box::new(value)), Type::RECORD);
                }
                Ok(RowValue::Record(self.plan_expression(&value)?, width))
            }
        }
    }

    /// A row has the columns that are declared, of their types.
    fn check_returned_row(&self, items: &[BoundExpr], columns: &[(String, Type)]) -> Result<()> {
        for (index, (item, (_, declared))) in items.iter().zip(columns).enumerate() {
            self.check_returned(item, *declared, index)?;
        }
        if items.len() == columns.len() {
            return Ok(());
        }
        let (given, wanted) = (items.len(), columns.len());
        let detail =
            format!("Number of returned columns ({given}) does not match expected column count ({wanted}).");
        Err(mismatch_error(self.mismatched(), detail))
    }

    /// What is said of a row that is not the one that is declared.
    fn mismatched(&self) -> &'static str {
        match self.trigger {
            Some(_) => "returned row structure does not match the structure of the triggering table",
            None => "returned record type does not match expected record type",
        }
    }

    /// Where RETURN finds that a row is not the one that is declared: when the routine has ended.
    pub(super) fn site_of_return(&self, site: Site, kind: &Result<OperationKind>) -> Site {
        match kind {
            Err(error) if error.message() == self.mismatched() => match self.trigger {
                Some(_) => Self::site(0, "during function exit"),
                None => Self::site(0, "while casting return value to function's return type"),
            },
            _ => site,
        }
    }

    /// RETURN converts no field of a row: each must be of the type that is declared.
    fn check_returned(&self, item: &BoundExpr, declared: Type, index: usize) -> Result<()> {
        let (wanted, domain) = self.environment.catalog.plain_type(declared);
        let given = item.ty;
        let is_plain = domain.is_none() && given.oid == wanted.oid;
        if self.is_one_of(item, declared)
            || (is_plain && (wanted.typmod < 0 || given.typmod == wanted.typmod))
        {
            return Ok(());
        }
        let names = self.environment.type_names();
        Err(mismatch_error(
            self.mismatched(),
            format!(
                "Returned type {} does not match expected type {} in column {}.",
                names.format_type(given),
                names.format_type(declared),
                index + 1
            ),
        ))
    }

    pub(super) fn return_query(&mut self, query: &Fragment) -> Result<OperationKind> {
        let mut bound = self.bind_sql(query)?;
        let names = self.environment.type_names();
        let message = "structure of query does not match function result type";
        check_columns(&bound, &self.columns, message, &names)
            .map_err(|error| context::of_statement(error, &query.text))?;
        if self.columns == Columns::Record {
            as_records(&mut bound);
        }
        let compiled = self.plan(&bound)?;
        let text = Some(query.text.as_str().into());
        self.found_unknown();
        Ok(OperationKind::ReturnQuery { statement: SqlStatement { compiled, text }, spread: false })
    }

    pub(super) fn return_dynamic(&mut self, query: &Dynamic) -> Result<OperationKind> {
        let plan = self.dynamic_plan(query, None, TextFor::Result)?;
        self.found_unknown();
        Ok(OperationKind::Dynamic(Box::new(plan)))
    }
}

enum RowValue {
    Values(Vec<Compiled>),
    /// A record, and how many columns are answered: `None` for the record itself.
    Record(Compiled, Option<u32>),
}
