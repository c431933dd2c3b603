//! Records whose structure the value itself tells: arguments of type `record`, what functions answer
//! that are declared so, elements of arrays of rows.
//!
//! An argument that a body reads as a whole alone is one value in one register. Where it asks for fields,
//! or assigns to it, the body is compiled once more, and the argument is given to a record variable at the
//! beginning. That, as every assignment of such a value, finds the structure as FETCH does
//! ([`super::shape`]).

use archipel_planner::bind::field_name;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};

use super::shape;
use super::storage::declared_columns;
use super::variable::Storage;
use crate::compile::Columns;
use crate::compile::compiler::Compiler;
use crate::plpgsql::ast::*;
use crate::run::operation::FoundRecord;
use crate::run::operation::expression::Compiled;
use crate::run::operation::{Operation, OperationKind};

/// What the places of arguments begin with.
const ARGUMENTS: u64 = 1 << 62;

impl Compiler<'_> {
    /// Gives the record variables among the parameters the values that have come for them.
    pub(in crate::compile) fn take_records(&mut self) -> Result<Vec<Operation>> {
        let mut operations = Vec::new();
        for (variable, register) in self.arrivals.clone() {
            let value = BoundExpr::new(ExprKind::Variable(register), Type::RECORD);
            let value = self.plan_expression(&value)?;
            let kind = self.assign_found(variable, ARGUMENTS | u64::from(variable), value)?;
            let site = Self::site(0, "during statement block entry");
            operations.push(Operation { site, rights: None, kind });
        }
        Ok(operations)
    }

    /// An assignment of a record, at a place, that tells its structure when it is there.
    pub(in crate::compile) fn assign_found(
        &mut self,
        variable: VariableId,
        at: u64,
        value: Compiled,
    ) -> Result<OperationKind> {
        let place = shape::Place::new(self.routine, at);
        let structures = self.environment.shapes.get(place);
        let targets = self.each_of(variable, &structures)?.into_iter().map(|(targets, _)| targets).collect();
        let registers = self.record_registers(variable);
        for register in &registers {
            self.trace.forget(*register, "a field of a record whose structure shows when it is there");
        }
        Ok(OperationKind::AssignFound(Box::new(FoundRecord {
            value,
            place,
            shapes: self.environment.shapes.clone(),
            structures,
            targets,
            registers,
            not_null: self.not_null(variable),
        })))
    }

    /// Names and types of the fields of what is assigned to a record variable; `None` where the value
    /// alone tells them.
    pub(in crate::compile) fn assigned_columns(
        &self,
        bound: &BoundExpr,
    ) -> Result<Option<Vec<(String, Type)>>> {
        let catalog = &self.environment.catalog;
        if let (Some(table), false) =
            (catalog.table_of_row_type(bound.ty.oid), matches!(bound.kind, ExprKind::Routine { .. }))
        {
            return Ok(Some(declared_columns(&table)));
        }
        Ok(match &bound.kind {
            ExprKind::Row(items, names) => {
                // A literal that stays one is text.
                let ty = |item: &BoundExpr| if item.ty.oid == Oid::UNKNOWN { Type::TEXT } else { item.ty };
                let columns = items.iter().enumerate();
                Some(columns.map(|(place, item)| (field_name(names, place), ty(item))).collect())
            }
            // Of a variable with a type.
            ExprKind::Const(value) if value.is_null() => Some(Vec::new()),
            ExprKind::Routine { routine, .. } => match crate::compile::result_columns(routine, catalog)? {
                Columns::Record => None,
                columns => Some(columns.named()),
            },
            _ if bound.ty == Type::RECORD => None,
            _ => {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    "cannot assign non-composite value to a record variable",
                ));
            }
        })
    }

    /// Whether a variable takes the structure of what is assigned to it.
    pub(in crate::compile) fn is_open_record(&self, variable: VariableId) -> bool {
        matches!(self.storage[variable as usize], Storage::Record { .. })
    }
}
