//! Calls, as they are made before the statement.

use std::sync::Arc;

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, ExprKind, Rel, SetCall};
use archipel_planner::native::{self, CompiledRoutine};
use archipel_sql::catalog::{Routine, RoutineRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use super::super::trace;
use super::condition::{all_of, reads_query};
use super::state::{EachRow, Walk};
use crate::compile::compiler::Compiler;
use crate::query_routine::query_as_routine;
use crate::run::operation::{Hoisted, HoistedCall};

impl Walk<'_, '_> {
    /// A call, its arguments first.
    pub(super) fn routine(&mut self, routine: &mut RoutineRef, args: &mut Vec<BoundExpr>) -> Result<()> {
        self.list(args)?;
        if !self.is_call(routine) {
            return Ok(());
        }
        args.iter_mut().try_for_each(|arg| self.queries_of_argument(arg))?;
        if !self.may_be_taken(args) {
            self.blocked = true;
            return Ok(());
        }
        let linked = self.compiler.linker.link(routine)?;
        let call = self.call(Some(linked), std::mem::take(args), routine.strict)?;
        (*routine, *args) = self.answer(call, (**routine).clone());
        Ok(())
    }

    /// A call for the row at hand: what answers its rows in the statement.
    pub(super) fn called_for_row(
        &mut self,
        routine: Arc<dyn CompiledRoutine>,
        args: Vec<BoundExpr>,
    ) -> Result<(RoutineRef, Vec<BoundExpr>)> {
        let call = self.call(Some(routine), args, false)?;
        Ok(self.answer(call, (*query_as_routine("", &[])).clone()))
    }

    /// Runs a query before the statement, in which its rows are those that an argument holds.
    pub(super) fn keep_as_argument(&mut self, rel: &mut Rel) -> Result<()> {
        let types = rel.types();
        self.keep(rel)?;
        if let Some(Hoisted::Rows(kept)) = self.compiler.answers.calls.last() {
            let kept = BoundExpr::new(ExprKind::Variable(kept.register), Type::RECORD);
            let routine = self.compiler.answered((*query_as_routine("", &[])).clone(), None);
            let call = SetCall::Routine { routine, args: vec![kept] };
            *rel = Rel::Function { call, ordinality: false, types, alias: None };
        }
        Ok(())
    }

    /// A call of a volatile function, whose arguments have been walked over.
    pub(super) fn value(&mut self, expr: &mut BoundExpr) -> Result<()> {
        let is_row = expr.ty.oid.has_fields();
        if !self.values || is_row || !self.may_be_taken(std::slice::from_ref(expr)) {
            self.blocked = true;
            return Ok(());
        }
        self.take(expr)
    }

    /// An argument that queries are read for, and that is computed once, is computed before its call.
    fn queries_of_argument(&mut self, arg: &mut BoundExpr) -> Result<()> {
        let once = self.row.is_none() && self.guards.is_empty() && self.ctes.is_empty();
        let is_row = arg.ty.oid.has_fields();
        if self.blocked || !once || is_row || !reads_query(arg) {
            return Ok(());
        }
        self.take(arg)
    }

    /// Computes a value before the statement.
    fn take(&mut self, expr: &mut BoundExpr) -> Result<()> {
        let ty = expr.ty;
        let taken = std::mem::replace(expr, BoundExpr::constant(Datum::Null, ty));
        let call = self.call(None, vec![taken], false)?;
        let scalar = Routine { returns_set: false, result: ty, ..(*query_as_routine("", &[])).clone() };
        let (routine, args) = self.answer(call, scalar);
        expr.kind = ExprKind::Routine { routine, args };
        Ok(())
    }

    /// A query that is evaluated once: what stays in it is evaluated in its turn, too.
    pub(super) fn query_as_value(&mut self, expr: &mut BoundExpr) -> Result<()> {
        self.blocked = true;
        let is_row = expr.ty.oid.has_fields();
        if !self.values || is_row || !self.ctes.is_empty() {
            return Ok(());
        }
        self.take(expr)?;
        self.blocked = false;
        Ok(())
    }

    /// A call as it is made before the statement.
    fn call(
        &mut self,
        routine: Option<Arc<dyn CompiledRoutine>>,
        mut given: Vec<BoundExpr>,
        strict: bool,
    ) -> Result<HoistedCall> {
        let mut when = (!self.guards.is_empty()).then(|| all_of(self.guards.clone()));
        let compiler = &mut *self.compiler;
        if let Some(row) = &mut self.row {
            row.columns_in_registers(&mut given, compiler);
            row.columns_in_registers(when.as_mut_slice(), compiler);
        }
        for access in routine.iter().flat_map(|routine| routine.accesses()) {
            let access = trace::bind_arguments(access, &given);
            let access = compiler.trace.access(&access);
            compiler.note(access);
        }
        let args = given.iter().map(|arg| compiler.native(|env| native::compile_expr(arg, env)));
        let args = args.collect::<Result<Vec<_>>>()?;
        let when = when.map(|when| compiler.native(|env| native::compile_expr(&when, env))).transpose()?;
        Ok(HoistedCall { routine, args, strict, when })
    }

    /// What stands in the statement for a call: a routine like `answering`, and its arguments.
    fn answer(&mut self, call: HoistedCall, answering: Routine) -> (RoutineRef, Vec<BoundExpr>) {
        match &mut self.row {
            None => {
                let register = self.compiler.register_of_answer();
                self.compiler.answers.calls.push(Hoisted::Call { call, register });
                (self.compiler.answered(answering, Some(register)), Vec::new())
            }
            Some(row) => {
                let answer = BoundExpr::column(row.width + row.calls.len(), Type::RECORD);
                row.calls.push(call);
                (self.compiler.answered(answering, None), vec![answer])
            }
        }
    }
}

impl EachRow {
    /// A row that is one answer could not be told from the row it is made of: it has a column at least.
    pub(super) fn of(width: usize) -> EachRow {
        EachRow { width: width.max(1), columns: Vec::new(), calls: Vec::new() }
    }

    /// Lets arguments read the row's columns from registers.
    fn columns_in_registers(&mut self, args: &mut [BoundExpr], compiler: &mut Compiler<'_>) {
        let mut read = |part: &mut BoundExpr, nesting: u16| {
            if let ExprKind::Column { depth, index } = part.kind
                && depth == nesting
            {
                let known = self.columns.iter().find(|(column, _)| *column == index);
                let register = match known {
                    Some((_, register)) => *register,
                    None => {
                        let register = compiler.scratch();
                        compiler.trace.forget(register, "a column of a row");
                        self.columns.push((index, register));
                        register
                    }
                };
                part.kind = ExprKind::Variable(register);
            }
            true
        };
        args.iter_mut().for_each(|arg| visit::visit_expr_mut(arg, 0, &mut read));
    }
}
