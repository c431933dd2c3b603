//! The walk that takes calls out of a statement.

use std::sync::Arc;

use archipel_planner::bind::{case_operand, visit};
use archipel_planner::bound::{
    AggregateCall, BoundChildMut, BoundExpr, BoundQuery, BoundStatement, ChildRow, ExprKind, JoinKind,
    OutputColumn, Rel, SetCall, SetItem, SortKey, Subquery, SubqueryKind,
};
use archipel_planner::native;
use archipel_sql::catalog::RoutineRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::Volatility;
use archipel_sql::types::Type;

use super::condition::{
    all_of, asks_for_rows, conditions_to_sides, depends_on_rows, holds_call, is_bool, is_tested_above,
    item_reads_query, on_as_condition, parted, reads_query,
};
use super::join_side::{may_wait, turned};
use super::state::{EachRow, Walk};
use crate::compile::compiler::Compiler;
use crate::query_routine::query_as_routine;
use crate::run::operation::{Hoisted, HoistedRows};

impl<'c, 'a> Walk<'c, 'a> {
    /// `values`: as [`Walk::values`].
    pub(super) fn new(compiler: &'c mut Compiler<'a>, values: bool) -> Walk<'c, 'a> {
        let (ctes, guards) = (Vec::new(), Vec::new());
        Walk { compiler, blocked: false, ctes, values, row: None, guards, tested: false }
    }

    pub(super) fn of_statement(compiler: &'c mut Compiler<'a>, statement: &BoundStatement) -> Walk<'c, 'a> {
        let mut walk = Walk::new(compiler, false);
        walk.values = walk.is_called_in_statement(statement);
        walk
    }

    /// Whether something with effects stays in the statement.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Takes calls out of what a query evaluates once. Answers whether it has one row.
    pub(super) fn rel(&mut self, rel: &mut Rel) -> Result<bool> {
        match rel {
            Rel::Unit => Ok(true),
            Rel::Values { rows, .. } => {
                self.read_ahead(&mut rows.iter_mut().flatten().collect::<Vec<_>>())?;
                rows.iter_mut().try_for_each(|row| self.list(row))?;
                Ok(false)
            }
            Rel::Function { call, .. } => {
                match call {
                    SetCall::Routine { routine, args } => self.routine(routine, args)?,
                    SetCall::Builtin { args, .. } => self.list(args)?,
                    SetCall::Scalar(expr) => self.expr(expr)?,
                }
                Ok(false)
            }
            // What it tells is of the statement as it is.
            Rel::Explained { .. } => {
                self.blocked = true;
                Ok(false)
            }
            Rel::Project { input, exprs } => self.project(input, exprs),
            // What is computed of a row that is not answered is not computed.
            Rel::Limit { input, limit, offset: None, with_ties: false }
                if matches!(**input, Rel::Project { .. }) =>
            {
                let limit = limit.take();
                let Rel::Project { input, exprs } = std::mem::replace(&mut **input, Rel::Unit) else {
                    return Ok(false);
                };
                let input = Box::new(Rel::Limit { input, limit, offset: None, with_ties: false });
                *rel = Rel::Project { input, exprs };
                self.rel(rel)
            }
            Rel::Limit { input, .. } if matches!(**input, Rel::Sort { .. } | Rel::Aggregate { .. }) => {
                self.rel(input)?;
                Ok(false)
            }
            // A function in FROM runs to its end as soon as one row is asked for.
            Rel::Limit { input, limit, .. }
                if matches!(**input, Rel::Function { .. }) && asks_for_rows(limit.as_ref()) =>
            {
                self.rel(input)?;
                Ok(false)
            }
            Rel::ProjectSet { input, items } => {
                if self.below(input)? {
                    self.sets(items)?;
                } else if !items.iter().any(item_reads_query) {
                    self.each_tested_row(input, &mut |walk| walk.sets(items))?;
                }
                Ok(false)
            }
            Rel::Filter { .. } => {
                self.below(rel)?;
                self.each_tested_row(rel, &mut |_| Ok(()))?;
                Ok(false)
            }
            Rel::Join { kind: JoinKind::Inner, on: Some(on), .. } if holds_call(on) => {
                on_as_condition(rel);
                self.rel(rel)
            }
            Rel::Join { kind: JoinKind::Right, on: Some(on), lateral: false, .. } if holds_call(on) => {
                turned(rel);
                self.rel(rel)
            }
            Rel::Join { .. } => self.join(rel),
            Rel::Window { .. } => self.window(rel),
            Rel::With { ctes, body } => self.with(ctes, body),
            Rel::Sort { input, keys } => self.sort(input, keys),
            Rel::Aggregate { input, group_by, aggregates, .. } => {
                self.aggregation(input, group_by, aggregates)
            }
            Rel::SetOp { left, right, .. } => self.set_operation(left, right),
            Rel::Distinct { input, .. } => {
                self.contained(input)?;
                Ok(false)
            }
            _ => {
                self.blocked = true;
                Ok(false)
            }
        }
    }

    fn project(&mut self, input: &mut Rel, exprs: &mut [BoundExpr]) -> Result<bool> {
        self.read_before(input, exprs)?;
        let once = self.below(input)?;
        if once {
            self.read_ahead(&mut exprs.iter_mut().collect::<Vec<_>>())?;
            self.list(exprs)?;
        } else if self.queries_beside(input, &mut exprs.iter_mut().collect::<Vec<_>>()) {
            self.each_tested_row(input, &mut |walk| walk.list(exprs))?;
        } else {
            self.pass(exprs.iter());
        }
        Ok(once)
    }

    fn sort(&mut self, input: &mut Rel, keys: &mut [SortKey]) -> Result<bool> {
        self.below(input)?;
        let mut exprs: Vec<&mut BoundExpr> = keys.iter_mut().map(|key| &mut key.expr).collect();
        if self.queries_beside(input, &mut exprs) {
            self.each_tested_row(input, &mut |walk| {
                keys.iter_mut().try_for_each(|key| walk.expr(&mut key.expr))
            })?;
        }
        // All of it is there before the first row is answered.
        self.tested = false;
        Ok(false)
    }

    fn aggregation(
        &mut self,
        input: &mut Rel,
        group_by: &mut [BoundExpr],
        aggregates: &mut [AggregateCall],
    ) -> Result<bool> {
        self.below(input)?;
        let parts = aggregates.iter_mut().flat_map(|call| {
            let sorted = call.order_by.iter_mut().map(|key| &mut key.expr);
            call.args.iter_mut().chain(&mut call.filter).chain(sorted)
        });
        let mut parts: Vec<&mut BoundExpr> = group_by.iter_mut().chain(parts).collect();
        if self.queries_beside(input, &mut parts) {
            self.each_tested_row(input, &mut |walk| {
                walk.list(group_by)?;
                aggregates.iter_mut().try_for_each(|call| walk.aggregate(call))
            })?;
        }
        self.tested = false;
        Ok(false)
    }

    fn set_operation(&mut self, left: &mut Rel, right: &mut Rel) -> Result<bool> {
        // No part of a statement sees what a call in another one does.
        if self.is_called_in(left) && may_wait(right) {
            self.keep_tables(right)?;
        }
        self.contained(left)?;
        self.contained(right)?;
        Ok(false)
    }

    /// As [`Walk::rel`]; the rows keep their columns, and no answers behind them.
    pub(super) fn contained(&mut self, rel: &mut Rel) -> Result<bool> {
        let types = rel.types();
        let once = self.rel(rel)?;
        if rel.width() > types.len() {
            let exprs = types.iter().enumerate().map(|(place, ty)| BoundExpr::column(place, *ty)).collect();
            *rel = Rel::Project { input: Box::new(std::mem::replace(rel, Rel::Unit)), exprs };
        }
        Ok(once)
    }

    /// Takes calls out of what a query is over; a condition's own are for [`Walk::each_tested_row`].
    pub(super) fn below(&mut self, rel: &mut Rel) -> Result<bool> {
        on_as_condition(rel);
        conditions_to_sides(rel);
        match rel {
            Rel::Filter { input, predicate } => {
                if !self.queries_once(input, predicate)? {
                    self.rel(input)?;
                }
                Ok(false)
            }
            rel => self.rel(rel),
        }
    }

    /// Takes calls out of the queries in a condition that read nothing of the rows it is about: such a query
    /// is evaluated once. These rows, which call nothing, are read before. False if there is no such query.
    fn queries_once(&mut self, input: &mut Rel, predicate: &mut BoundExpr) -> Result<bool> {
        let apart = !self.is_called_in(input) && may_wait(input) && !visit::calls_volatile(input);
        let may = !self.blocked && self.row.is_none() && self.guards.is_empty() && apart;
        let items = match &mut predicate.kind {
            ExprKind::And(items) => &mut items[..],
            _ => std::slice::from_mut(predicate),
        };
        if !may || !items.iter().any(|item| self.asks_once(item)) {
            return Ok(false);
        }
        self.keep_tables(input)?;
        items.iter_mut().try_for_each(|item| self.ask_once(item))?;
        Ok(true)
    }

    /// Whether an expression certainly asks a query with calls that is evaluated once.
    pub(super) fn asks_once(&self, expr: &BoundExpr) -> bool {
        let mut found = false;
        visit::visit_expr(expr, 0, &mut |part, _| {
            if let ExprKind::Subquery(subquery) = &part.kind {
                found |= is_evaluated_once(subquery) && self.is_called_in(&subquery.rel);
                return false;
            }
            is_certain(part)
        });
        found
    }

    /// Takes calls out of such queries.
    pub(super) fn ask_once(&mut self, expr: &mut BoundExpr) -> Result<()> {
        let mut result = Ok(());
        visit::visit_expr_mut(expr, 0, &mut |part, _| {
            if let ExprKind::Subquery(subquery) = &mut part.kind {
                if result.is_ok() && is_evaluated_once(subquery) && self.is_called_in(&subquery.rel) {
                    result = self.contained(&mut subquery.rel).map(drop);
                }
                return false;
            }
            is_certain(part)
        });
        result
    }

    /// As [`Walk::each_row`]. Where the rows must meet a condition with calls, what holds none of them is
    /// tested before; what follows is done for a row that meets it before the next row is looked at.
    pub(super) fn each_tested_row(
        &mut self,
        rel: &mut Rel,
        walk: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Rel::Filter { input, predicate } = rel else { return self.each_row(rel, walk) };
        if !holds_call(predicate) || self.tested {
            return self.each_row(rel, walk);
        }
        if !is_tested_above(predicate, input) {
            if reads_query(predicate) {
                return self.each_row(rel, walk);
            }
            self.blocked = true;
            return Ok(());
        }
        let predicate = std::mem::replace(predicate, BoundExpr::constant(Datum::Null, Type::BOOL));
        let (mut calls, plain) = parted(predicate);
        let mut rows = std::mem::replace(&mut **input, Rel::Unit);
        if !plain.is_empty() {
            rows = Rel::Filter { input: Box::new(rows), predicate: all_of(plain) };
        }
        if !self.queries_ahead(&mut rows, &mut calls.iter_mut().collect::<Vec<_>>(), false) {
            *rel = Rel::Filter { input: Box::new(rows), predicate: all_of(calls) };
            return self.each_row(rel, walk);
        }
        self.each_row(&mut rows, &mut |inside| {
            for at in 0..calls.len() {
                inside.expr(&mut calls[at])?;
                if !inside.is_repeatable(&calls[at]) {
                    inside.pass(calls[at + 1..].iter());
                    inside.blocked = true;
                    return Ok(());
                }
                inside.guards.push(is_bool(calls[at].clone(), true, false));
            }
            walk(inside)?;
            inside.guards.clear();
            Ok(())
        })?;
        *rel = Rel::Filter { input: Box::new(rows), predicate: all_of(calls) };
        self.tested = true;
        Ok(())
    }

    /// An aggregate's arguments are computed for the rows that its FILTER lets through.
    fn aggregate(&mut self, call: &mut AggregateCall) -> Result<()> {
        let guards = self.guards.len();
        if let Some(filter) = &mut call.filter {
            self.expr(filter)?;
            if !self.is_repeatable(filter) {
                self.pass(call.args.iter());
                return Ok(());
            }
            self.guards.push(is_bool(filter.clone(), true, false));
        }
        self.list(&mut call.args)?;
        call.order_by.iter_mut().try_for_each(|key| self.expr(&mut key.expr))?;
        self.guards.truncate(guards);
        Ok(())
    }

    fn sets(&mut self, items: &mut [SetItem]) -> Result<()> {
        // Sets are expanded before the other items are evaluated.
        let (sets, scalars): (Vec<_>, Vec<_>) =
            items.iter_mut().partition(|item| matches!(item, SetItem::Set { .. }));
        for item in sets {
            match item {
                SetItem::Set { call: SetCall::Routine { routine, args }, .. } => {
                    self.routine(routine, args)?
                }
                SetItem::Set { call: SetCall::Builtin { args, .. }, .. } => self.list(args)?,
                _ => self.blocked = true,
            }
        }
        self.blocked |= !scalars.is_empty();
        Ok(())
    }

    /// Takes calls out of what `walk` walks over, which is evaluated for each row of `input`.
    pub(super) fn each_row(
        &mut self,
        input: &mut Rel,
        walk: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let row = self.calls_of_row(input.width(), walk)?;
        if !row.calls.is_empty() {
            *input = self.answered_query(std::mem::replace(input, Rel::Unit), row)?;
        }
        Ok(())
    }

    /// The calls in what `walk` walks over, which is evaluated for each row of so many columns.
    pub(super) fn calls_of_row(
        &mut self,
        width: usize,
        walk: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<EachRow> {
        let outer = self.row.replace(EachRow::of(width));
        // Those of one row come before those of the next.
        let blocked = std::mem::replace(&mut self.blocked, self.tested);
        let guards = std::mem::take(&mut self.guards);
        let walked = walk(self);
        self.guards = guards;
        let row = std::mem::replace(&mut self.row, outer);
        self.blocked |= blocked;
        walked?;
        Ok(row.unwrap_or_else(|| EachRow::of(width)))
    }

    /// Runs a query before the statement: its rows, from where they wait.
    pub(super) fn answered_query(&mut self, mut rel: Rel, row: EachRow) -> Result<Rel> {
        if rel.width() == 0 {
            let nothing = BoundExpr::constant(Datum::Null, Type::BOOL);
            rel = Rel::Project { input: Box::new(rel), exprs: vec![nothing] };
        }
        let types = rel.types();
        let column = |ty: &Type| OutputColumn { name: String::new(), ty: *ty, source: None };
        let query = BoundQuery { columns: types.iter().map(column).collect(), rel };
        let query = self.among_ctes(BoundStatement::Query(query));
        self.answered_rows(&query, types, row)
    }

    /// The same of a statement with rows of these types.
    pub(super) fn answered_rows(
        &mut self,
        statement: &BoundStatement,
        mut types: Vec<Type>,
        EachRow { width, columns, calls }: EachRow,
    ) -> Result<Rel> {
        let input = self.compiler.plan_whole(statement)?;
        types.extend(calls.iter().map(|_| Type::RECORD));
        let register = self.compiler.register_of_answer();
        let rows = HoistedRows { input, width, columns, calls, register };
        self.compiler.answers.calls.push(Hoisted::Rows(Box::new(rows)));
        let routine = self.compiler.answered((*query_as_routine("", &[])).clone(), Some(register));
        let call = SetCall::Routine { routine, args: Vec::new() };
        Ok(Rel::Function { call, ordinality: false, types, alias: None })
    }

    pub(super) fn list(&mut self, list: &mut [BoundExpr]) -> Result<()> {
        list.iter_mut().try_for_each(|item| self.expr(item))
    }

    pub(super) fn expr(&mut self, expr: &mut BoundExpr) -> Result<()> {
        // What is known to be NULL calls nothing.
        if native::is_null(expr) {
            return Ok(());
        }
        match &mut expr.kind {
            ExprKind::Routine { routine, args } => self.routine(routine, args)?,
            ExprKind::And(items) => {
                self.alternatives(items, &|item| is_bool(item, false, true))?;
            }
            ExprKind::Or(items) => {
                self.alternatives(items, &|item| is_bool(item, true, true))?;
            }
            ExprKind::Coalesce(items) => {
                self.alternatives(items, &|item| {
                    BoundExpr::new(ExprKind::IsNull(Box::new(item)), Type::BOOL)
                })?;
            }
            ExprKind::Case { arms, otherwise } => {
                let guards = self.guards.len();
                let mut certain = true;
                // What every condition repeats is evaluated with the first.
                let operand = arms.first().and_then(|(when, _)| case_operand::marked(when));
                let mut answered = None;
                for (when, then) in arms {
                    if let (Some(operand), Some(answered)) = (&operand, &answered) {
                        case_operand::replace(when, operand, answered);
                    }
                    if !certain {
                        self.pass([&*when, &*then].into_iter());
                        continue;
                    }
                    self.expr(when)?;
                    answered = answered.or_else(|| case_operand::marked(when));
                    certain = self.is_repeatable(when);
                    if !certain {
                        self.pass([&*then].into_iter());
                        continue;
                    }
                    self.guards.push(is_bool(when.clone(), true, false));
                    self.expr(then)?;
                    self.guards.pop();
                    self.guards.push(is_bool(when.clone(), true, true));
                }
                if let Some(otherwise) = otherwise {
                    match certain {
                        true => self.expr(otherwise)?,
                        false => self.pass([&**otherwise].into_iter()),
                    }
                }
                self.guards.truncate(guards);
            }
            // Evaluated once, here.
            ExprKind::Subquery(subquery)
                if !subquery.correlated && !self.blocked && self.row.is_none() && self.guards.is_empty() =>
            {
                let once = is_evaluated_once(subquery);
                if let SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } = &mut subquery.kind {
                    self.list(left)?;
                }
                if once {
                    self.contained(&mut subquery.rel)?;
                }
                if !once || self.blocked {
                    self.query_as_value(expr)?;
                }
                return Ok(());
            }
            ExprKind::Subquery(subquery) => self.subquery(subquery)?,
            _ => self.parts(expr)?,
        }
        match &expr.kind {
            ExprKind::Call { function, .. } if function.function.volatility == Volatility::Volatile => {
                self.value(expr)
            }
            _ => Ok(()),
        }
    }

    /// Items of which the next is evaluated where `goes_on` is true of those before it.
    fn alternatives(
        &mut self,
        items: &mut [BoundExpr],
        goes_on: &dyn Fn(BoundExpr) -> BoundExpr,
    ) -> Result<()> {
        let guards = self.guards.len();
        for at in 0..items.len() {
            self.expr(&mut items[at])?;
            if !self.is_repeatable(&items[at]) {
                self.pass(items[at + 1..].iter());
                break;
            }
            self.guards.push(goes_on(items[at].clone()));
        }
        self.guards.truncate(guards);
        Ok(())
    }

    /// Whether an expression may be evaluated twice: calls that have been made answer as often as they are
    /// asked.
    fn is_repeatable(&self, expr: &BoundExpr) -> bool {
        let mut repeatable = true;
        visit::visit_expr(expr, 0, &mut |part, _| {
            repeatable &= match &part.kind {
                ExprKind::Routine { routine, .. } => !self.is_call(routine),
                ExprKind::Call { function, .. } => function.function.volatility != Volatility::Volatile,
                ExprKind::Subquery(subquery) => self.is_answered(&subquery.rel),
                _ => true,
            };
            repeatable
        });
        repeatable
    }

    /// The parts of an expression; those that may or may not be evaluated stay.
    fn parts(&mut self, expr: &mut BoundExpr) -> Result<()> {
        let mut result = Ok(());
        expr.for_each_child_mut(|part, scope| {
            // What is made of a value at hand calls nothing.
            let BoundChildMut::Expr(part) = part else { return };
            if result.is_err() || scope.row != ChildRow::Same {
                return;
            }
            match scope.lazy {
                true => self.pass([&*part].into_iter()),
                false => result = self.expr(part),
            }
        });
        result
    }

    /// What may or may not be evaluated stays; if it has effects, so does what follows it.
    fn pass<'e>(&mut self, items: impl Iterator<Item = &'e BoundExpr>) {
        for item in items {
            visit::visit_expr(item, 0, &mut |part, _| {
                self.blocked |= matches!(part.kind, ExprKind::Subquery(_)) || visit::is_volatile_call(part);
                !self.blocked
            });
        }
    }

    /// Whether calls of a routine are taken out.
    pub(super) fn is_call(&self, routine: &RoutineRef) -> bool {
        let answers = &self.compiler.answers.registers;
        routine.volatility == 'v' && !answers.iter().any(|(known, _)| Arc::ptr_eq(known, routine))
    }

    /// Whether the rows of a query are the answer of a call that has been made.
    pub(super) fn is_answered(&self, rel: &Rel) -> bool {
        let answers = &self.compiler.answers.registers;
        matches!(rel, Rel::Function { call: SetCall::Routine { routine, .. }, .. }
            if answers.iter().any(|(known, _)| Arc::ptr_eq(known, routine)))
    }

    /// Whether the expression at hand is evaluated for each row of a query.
    pub(super) fn is_over_rows(&self) -> bool {
        self.row.is_some()
    }

    /// Whether what is evaluated here may be evaluated before the statement.
    pub(super) fn may_be_taken(&self, parts: &[BoundExpr]) -> bool {
        let on_rows = || parts.iter().chain(&self.guards).any(depends_on_rows);
        !self.blocked && (self.row.is_some() || !on_rows())
    }
}

/// Whether the parts of an expression are evaluated wherever it is.
fn is_certain(expr: &BoundExpr) -> bool {
    !matches!(expr.kind, ExprKind::Or(_) | ExprKind::Case { .. } | ExprKind::Coalesce(_))
}

/// Whether a query in an expression, where that comes to it, is evaluated to its end and once.
fn is_evaluated_once(subquery: &Subquery) -> bool {
    !subquery.correlated && (subquery.kind != SubqueryKind::Exists || runs_to_its_end(&subquery.rel))
}

/// Whether all calls of a query are made as soon as it is asked for a row: a function in FROM, or in a list
/// over nothing, runs to its end.
fn runs_to_its_end(rel: &Rel) -> bool {
    match rel {
        Rel::Function { .. } => true,
        Rel::ProjectSet { input, .. } => matches!(**input, Rel::Unit),
        Rel::Project { input, exprs } => !exprs.iter().any(holds_call) && runs_to_its_end(input),
        Rel::Filter { input, predicate } => !holds_call(predicate) && runs_to_its_end(input),
        Rel::Limit { input, limit, .. } => asks_for_rows(limit.as_ref()) && runs_to_its_end(input),
        _ => false,
    }
}
