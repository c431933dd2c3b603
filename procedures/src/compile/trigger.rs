//! The function of a trigger, compiled for one table and event: NEW and OLD have the structure of
//! the table's rows, and the fields of both count as arguments when its routes are traced. Also the
//! conditions of triggers.

pub(super) mod rows;

use std::sync::Arc;

use crate::rights::Rights;
use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind};
use archipel_planner::native::RoutineLinker;
use archipel_planner::route::Access;
use archipel_sql::catalog::{Routine, RoutineRef, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Type;
use rows::{Rows, Transitions, TriggerRows};

use super::compiler::Compiler;
use super::environment::is_input;
use super::record::variable::Storage;
use super::statement::assignment::{assigned_in, assigned_where};
use super::trace::symbols::Symbol;
use super::{Environment, sql};
use crate::plpgsql::ast::*;
use crate::plpgsql::parser::{self, Signature};
use crate::run::operation::expression::Compiled;
use crate::run::operation::*;

impl Rows {
    /// Whether an expression is the bare name of a variable that is NULL.
    pub fn is_absent(&self, compiler: &Compiler<'_>, value: &Fragment) -> bool {
        let name = value.text.trim().to_lowercase();
        let is_record = |id: VariableId| compiler.storage[id as usize].is_record();
        let found = compiler.body.names.find(value.names, &[&name], &is_record);
        found.is_some_and(|(variable, _)| self.absent.contains(&variable))
    }

    /// Puts NULL in the place of rows that are not there, where they are values: as rows of NULLs
    /// they would be something.
    pub fn blank(&self, expr: &mut BoundExpr) {
        visit::visit_expr_mut(expr, 0, &mut |part, _| self.blank_one(part));
    }

    /// As [`Rows::blank`], in a statement.
    pub fn blank_statement(&self, statement: &mut BoundStatement) {
        visit::visit_statement_mut(statement, 0, &mut |part, _| self.blank_one(part));
    }

    fn blank_one(&self, part: &mut BoundExpr) -> bool {
        let absent = self.is_absent_row(part);
        if absent {
            part.kind = ExprKind::Const(Datum::Null);
        }
        !absent
    }

    fn is_absent_row(&self, expr: &BoundExpr) -> bool {
        let ExprKind::Row(items, _) = &expr.kind else { return false };
        // ROW(…) over the same fields is none of the variables.
        expr.ty != Type::RECORD
            && self.absent_fields.iter().any(|fields| {
                fields.len() == items.len()
                && fields.iter().zip(items).all(
                    |(field, item)| matches!(item.kind, ExprKind::Variable(register) if register == *field),
                )
            })
    }
}

/// Compiles the function of a trigger. `routine` stands for it with its variables as arguments,
/// OLD and NEW first, then the tables it names.
pub(crate) fn compile_trigger(
    routine: &RoutineRef,
    known: &TriggerRows<'_>,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Program> {
    let body = parser::parse(&routine.source, &Signature::of(routine))?;
    let mut compiler = Compiler::new(routine, &body, environment, linker)?;
    let statements = &body.block.body;
    let whole = assigned_where(&compiler, statements, |target| target.path.is_empty());
    let assigned = assigned_in(&compiler, statements);
    // What is told when it runs: a row that is assigned as a whole may be NULL afterwards, and one that is
    // not there may be there.
    let told = |variable: VariableId, present: bool| match present {
        true => whole.contains(&variable),
        false => assigned.contains(&variable),
    };
    let rows = body.parameters.iter().zip(known.present);
    let late: Vec<VariableId> = rows
        .filter(|(variable, present)| told(**variable, *present))
        .map(|(variable, _)| *variable)
        .collect();
    compiler.trace_rows(&late);
    let named = known.named.iter().zip(&body.parameters[2..]);
    let named = named.map(|(name, variable)| (name.to_string(), compiler.register_of(*variable))).collect();
    let transitions = Transitions { named, table: known.table.clone() };
    let mut rows = Rows { absent: Vec::new(), absent_fields: Vec::new(), transitions };
    for (variable, present) in body.parameters.iter().zip(known.present) {
        if !present && !late.contains(variable) {
            rows.absent.push(*variable);
            if let Storage::Row { fields, .. } = &compiler.storage[*variable as usize] {
                rows.absent_fields.push(fields.iter().map(|field| field.register).collect());
            }
        }
    }
    compiler.trigger = Some(rows);
    let pending = if known.before { compiler.generated_of_new(known.table) } else { Vec::new() };
    let mut program = super::finish(compiler)?;
    let as_defined = Routine { args: Vec::new(), ..(**routine).clone() };
    program.signature = super::signature_text(&as_defined, environment);
    if !pending.is_empty() {
        let (site, rights) = (program.body.site, program.body.rights.take());
        let kind = OperationKind::AssignRow { targets: Targets::of(pending), values: Vec::new() };
        let clear = Operation { site, rights: None, kind };
        let kind = OperationKind::Sequence(vec![clear, program.body]);
        program.body = Operation { site, rights, kind };
    }
    Ok(program)
}

/// A condition over OLD and NEW.
pub(crate) struct Condition {
    pub value: Compiled,
    /// What whoever fires the trigger must be allowed.
    pub rights: Option<Rights>,
    pub arguments: Vec<Place>,
    pub registers: u32,
    pub accesses: Vec<Access>,
}

/// Compiles a trigger's WHEN; `routine` has OLD and NEW as its arguments.
pub(crate) fn compile_condition(
    routine: &RoutineRef,
    text: &str,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Condition> {
    let body = sql::body_of(routine);
    let mut compiler = Compiler::new(routine, &body, environment, linker)?;
    compiler.trace_rows(&[]);
    let fragment = Fragment { text: text.to_string(), start: 0, line: 1, names: body.block.line };
    let bound = compiler.bind(&fragment, None)?;
    if bound.ty != Type::BOOL && !matches!(bound.kind, ExprKind::Const(Datum::Null)) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "argument of WHEN must be type boolean, not type {}",
                environment.type_names().type_name(bound.ty.oid)
            ),
        ));
    }
    let value = compiler.plan_expression(&bound)?;
    Ok(Condition {
        value,
        rights: Rights::of(compiler.needed.take()),
        arguments: compiler.argument_places(),
        registers: compiler.registers,
        accesses: compiler.accesses,
    })
}

impl Compiler<'_> {
    /// The registers of NEW's generated columns: a function sees NULL before they are computed.
    fn generated_of_new(&mut self, table: &TableRef) -> Vec<u32> {
        let new = self.body.parameters[1];
        let Storage::Row { fields, .. } = &self.storage[new as usize] else { return Vec::new() };
        let columns = table.columns.iter().zip(fields);
        let generated = columns.filter(|(column, _)| column.generated.is_some());
        let registers: Vec<u32> = generated.map(|(_, field)| field.register).collect();
        for register in &registers {
            self.trace.forget(*register, "generated after the trigger");
        }
        registers
    }

    /// The fields of the row arguments are arguments of their own, in order; nothing is known of
    /// the others. Whether those named are there is told when it runs.
    fn trace_rows(&mut self, told_late: &[VariableId]) {
        let mut next: u16 = 0;
        let inputs = self.routine.args.iter().zip(&self.body.parameters);
        let inputs: Vec<VariableId> =
            inputs.filter(|(arg, _)| is_input(arg.mode)).map(|(_, variable)| *variable).collect();
        for variable in inputs {
            match &mut self.storage[variable as usize] {
                Storage::Row { fields, present, .. } => {
                    // Any other is there, or it is known that it is not.
                    if !told_late.contains(&variable) {
                        *present = None;
                    }
                    for field in fields {
                        self.trace.set_argument(field.register, next, field.ty);
                        next += 1;
                    }
                }
                Storage::Scalar { register, .. } => {
                    self.trace.set(*register, Symbol::Unknown("told by the trigger".to_string()));
                }
                Storage::Record { .. } => {}
            }
        }
    }
}
