//! Queries in expressions and on the right side of joins, beside calls and with calls in them.
//!
//! A query that calls nothing is evaluated with the rows it is about, before calls are made for these: its
//! value is one more column of them. One that calls something is called itself, as a routine would be whose
//! arguments are what it reads of the rows around it; tables in it are read before, like whatever else
//! stands beside a call.

use std::sync::Arc;

use archipel_planner::bind::visit;
use archipel_planner::bound::{
    BoundChildMut, BoundExpr, BoundQuery, BoundStatement, ExprKind, OutputColumn, Rel, SetCall, Subquery,
    SubqueryKind,
};
use archipel_planner::native::CompiledRoutine;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::{Oid, Type};

use super::super::sql;
use super::condition::{all_of, holds_call, parted, reads_query};
use super::join_side::{is_apart, may_wait};
use super::reads::{reads_tables, shift_from, without_answers};
use super::state::Walk;
use crate::query_routine::query_as_routine;

/// A query that is called, and what it is given.
type Called = (Arc<dyn CompiledRoutine>, Vec<BoundExpr>);

impl Walk<'_, '_> {
    /// Puts the queries in expressions over the rows of `input` among its columns, but for those that are
    /// called; false if that cannot be, or if nothing is `called` that they could come before.
    pub(super) fn queries_ahead(
        &mut self,
        input: &mut Rel,
        exprs: &mut [&mut BoundExpr],
        called: bool,
    ) -> bool {
        if !exprs.iter().any(|expr| reads_query(expr)) {
            return true;
        }
        let called = called || exprs.iter().any(|expr| self.is_called_within(expr));
        if !called || !exprs.iter().all(|expr| self.may_be_ahead(expr)) {
            return false;
        }
        let types = input.types();
        let mut columns: Vec<BoundExpr> =
            types.iter().enumerate().map(|(place, ty)| BoundExpr::column(place, *ty)).collect();
        for expr in exprs {
            visit::visit_expr_mut(expr, 0, &mut |part, _| {
                let ExprKind::Subquery(subquery) = &part.kind else { return true };
                if !self.is_called_in(&subquery.rel) && !self.is_answered(&subquery.rel) {
                    let column = BoundExpr::column(columns.len(), part.ty);
                    columns.push(std::mem::replace(part, column));
                }
                false
            });
        }
        if columns.len() > types.len() {
            let input = below_calls(input);
            let rel = Box::new(std::mem::replace(input, Rel::Unit));
            *input = Rel::Project { input: rel, exprs: columns };
        }
        true
    }

    /// The same, where the rows themselves may have to meet a condition with calls.
    pub(super) fn queries_beside(&mut self, input: &mut Rel, exprs: &mut [&mut BoundExpr]) -> bool {
        let called = matches!(input, Rel::Filter { predicate, .. } if holds_call(predicate)) && !self.tested;
        self.queries_ahead(input, exprs, called)
    }

    /// Reads what queries read in expressions that are evaluated once, where calls stand before them: no
    /// part of a statement sees what these do.
    pub(super) fn read_ahead(&mut self, exprs: &mut [&mut BoundExpr]) -> Result<()> {
        if self.blocked || self.is_over_rows() {
            return Ok(());
        }
        let mut called = false;
        let mut result = Ok(());
        for expr in exprs {
            visit::visit_expr_mut(expr, 0, &mut |part, _| {
                match &mut part.kind {
                    ExprKind::Routine { routine, .. } => called |= self.is_call(routine),
                    ExprKind::Subquery(subquery) => {
                        if called && result.is_ok() && may_wait(&subquery.rel) {
                            result = self.keep_tables(&mut subquery.rel);
                        }
                        called |= self.is_called_in(&subquery.rel);
                        return false;
                    }
                    _ => {}
                }
                true
            });
        }
        result
    }

    /// The same in expressions over rows that come from calls.
    pub(super) fn read_before(&mut self, input: &Rel, exprs: &mut [BoundExpr]) -> Result<()> {
        let rows: &Rel = match input {
            Rel::Filter { input, predicate } if holds_call(predicate) => input,
            input => input,
        };
        if self.blocked || self.is_over_rows() || !self.is_called_in(rows) {
            return Ok(());
        }
        exprs.iter_mut().try_for_each(|expr| self.read_all(expr))
    }

    /// Reads what queries in an expression read.
    pub(super) fn read_all(&mut self, expr: &mut BoundExpr) -> Result<()> {
        let mut result = Ok(());
        visit::visit_expr_mut(expr, 0, &mut |part, _| {
            let ExprKind::Subquery(subquery) = &mut part.kind else { return true };
            if result.is_ok() && may_wait(&subquery.rel) {
                result = self.keep_tables(&mut subquery.rel);
            }
            false
        });
        result
    }

    /// Whether all queries in an expression can be evaluated before calls are made, or be called.
    pub(super) fn may_be_ahead(&self, expr: &BoundExpr) -> bool {
        let mut may = true;
        visit::visit_expr(expr, 0, &mut |part, _| {
            let ExprKind::Subquery(subquery) = &part.kind else { return may };
            let left: &[BoundExpr] = match &subquery.kind {
                SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } => &left[..],
                _ => &[],
            };
            may &= match self.is_called_in(&subquery.rel) {
                true => self.may_be_called(subquery),
                false => !visit::is_volatile(part) && !left.iter().any(holds_call),
            };
            false
        });
        may
    }

    /// Whether a query is evaluated for each row, and to its end.
    fn may_be_called(&self, subquery: &Subquery) -> bool {
        let kind = matches!(subquery.kind, SubqueryKind::Scalar | SubqueryKind::Array { .. });
        kind && is_apart(&subquery.rel) && visit::is_correlated(&subquery.rel)
    }

    /// Whether an expression, or a query in it, holds a call that may be taken out.
    fn is_called_within(&self, expr: &BoundExpr) -> bool {
        let mut found = false;
        visit::visit_expr(expr, 0, &mut |part, _| {
            found |= match &part.kind {
                ExprKind::Routine { routine, .. } => self.is_call(routine),
                ExprKind::Subquery(subquery) => self.is_called_in(&subquery.rel),
                _ => false,
            };
            !found
        });
        found
    }

    /// A query in an expression that is evaluated for each row.
    pub(super) fn subquery(&mut self, subquery: &mut Subquery) -> Result<()> {
        if self.is_answered(&subquery.rel) {
            return Ok(());
        }
        let called = self.is_called_in(&subquery.rel) && self.may_be_called(subquery);
        if !called || self.blocked || !self.is_over_rows() {
            self.blocked = true;
            return Ok(());
        }
        let mut rel = subquery.rel.clone();
        match self.answered_call(&mut rel)? {
            Some(answered) => (subquery.rel, subquery.correlated) = (answered, true),
            None => self.blocked = true,
        }
        Ok(())
    }

    /// Calls a query for each row: its rows, over those with the answers.
    fn answered_call(&mut self, rel: &mut Rel) -> Result<Option<Rel>> {
        let types = rel.types();
        self.keep_tables(rel)?;
        let Some((routine, args)) = self.query_as_call(rel)? else { return Ok(None) };
        let (routine, mut args) = self.called_for_row(routine, args)?;
        args.iter_mut().for_each(|arg| visit::raise_depth(arg, 1));
        let call = SetCall::Routine { routine, args };
        Ok(Some(Rel::Function { call, ordinality: false, types, alias: None }))
    }

    /// Reads the tables of a query before the statement, in parts of it that read no rows around them and
    /// call nothing.
    pub(super) fn keep_tables(&mut self, rel: &mut Rel) -> Result<()> {
        if !reads_tables(rel) {
            return Ok(());
        }
        let alone = !visit::is_correlated(rel) && !self.is_called_in(rel) && !visit::calls_volatile(rel);
        if alone && is_apart(rel) && rel.width() > 0 {
            return self.keep_as_argument(rel);
        }
        let mut result = Ok(());
        if !matches!(rel, Rel::With { .. } | Rel::Lock { .. }) {
            rel.for_each_child_mut(|child, _| {
                if let BoundChildMut::Rel(rel) = child
                    && result.is_ok()
                {
                    result = self.keep_tables(rel);
                }
            });
        }
        visit::visit_rel_mut(rel, 0, &mut |part, _| {
            let ExprKind::Subquery(subquery) = &mut part.kind else { return true };
            if result.is_ok() {
                result = self.keep_tables(&mut subquery.rel);
            }
            false
        });
        result
    }

    /// A query as a routine of what it reads of the rows around it, and of variables; `None` if nothing in
    /// it is called before it.
    fn query_as_call(&mut self, rel: &mut Rel) -> Result<Option<Called>> {
        let mut args: Vec<BoundExpr> = Vec::new();
        visit::visit_rel_mut(rel, 0, &mut |part, nesting| {
            let kind = match part.kind {
                ExprKind::Column { depth, index } if depth > nesting => {
                    ExprKind::Column { depth: depth - nesting - 1, index }
                }
                ExprKind::Variable(register) => ExprKind::Variable(register),
                _ => return true,
            };
            let read = BoundExpr::new(kind, part.ty);
            let known = args.iter().position(|known| *known == read);
            let place = known.unwrap_or_else(|| {
                args.push(read);
                args.len() - 1
            });
            part.kind = ExprKind::Param(place as u16);
            true
        });
        // What has fields would be given field by field.
        let whole = |ty: Type| match ty.oid.has_fields() {
            true => Type::of(Oid::RECORD_ARRAY),
            false => ty,
        };
        let params: Vec<Type> = args.iter().map(|arg| whole(arg.ty)).collect();
        let routine = query_as_routine("", &params);
        let column = |ty: &Type| OutputColumn { name: String::new(), ty: *ty, source: None };
        let columns = rel.types().iter().map(column).collect();
        let query = BoundStatement::Query(BoundQuery { rel: rel.clone(), columns });
        let compiler = &*self.compiler;
        let answers = compiler.answers.by_argument();
        let program = sql::compile_within(query, &routine, compiler.environment, compiler.linker, answers)?;
        Ok(program.map(|program| (Arc::new(program) as Arc<dyn CompiledRoutine>, args)))
    }

    /// A query on the right side of a join that reads the rows of the left one, called for each of them.
    pub(super) fn lateral_query(&mut self, rel: &mut Rel) -> Result<bool> {
        let Rel::Join { left, right, on, .. } = &mut *rel else { return Ok(false) };
        let apart = self.is_called_in(right) && is_apart(right);
        if !apart || right.width() == 0 || on.as_ref().is_some_and(|on| holds_call(on) || reads_query(on)) {
            self.blocked = true;
            return Ok(false);
        }
        let columns = left.width();
        let mut called = (**right).clone();
        let mut answered = None;
        self.each_row(left, &mut |walk| {
            answered = walk.answered_call(&mut called)?;
            Ok(())
        })?;
        let Some(answered) = answered else {
            self.blocked = true;
            return Ok(false);
        };
        **right = answered;
        // Whatever was read has been.
        self.blocked = false;
        let answers = left.width() - columns;
        if let Some(on) = on {
            shift_from(on, columns, answers);
        }
        without_answers(rel, columns, answers);
        Ok(false)
    }
}

/// The rows that conditions with calls are tested on, those without being tested before.
fn below_calls(rel: &mut Rel) -> &mut Rel {
    let has_calls = matches!(rel, Rel::Filter { predicate, .. } if holds_call(predicate));
    match rel {
        rel if !has_calls => rel,
        Rel::Filter { input, predicate } => {
            let whole = std::mem::replace(predicate, BoundExpr::constant(Datum::Null, Type::BOOL));
            let (calls, plain) = parted(whole);
            *predicate = all_of(calls);
            if !plain.is_empty() {
                let rows = Box::new(std::mem::replace(&mut **input, Rel::Unit));
                **input = Rel::Filter { input: rows, predicate: all_of(plain) };
            }
            input
        }
        rel => rel,
    }
}
