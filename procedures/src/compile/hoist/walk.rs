//! The walk that takes calls out of a statement.

use std::sync::Arc;

use archipel_planner::bind::visit;
use archipel_planner::bound::{
    AggregateCall, BoundExpr, BoundQuery, BoundStatement, ExprKind, JoinKind, OutputColumn, Rel, SetCall,
    SetItem, SubqueryKind,
};
use archipel_planner::native;
use archipel_sql::catalog::RoutineRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::Volatility;
use archipel_sql::types::Type;

use super::super::{Compiler, trace};
use crate::run::operation::{Hoisted, HoistedCall, HoistedRows};

/// One walk over what a statement evaluates, in its order.
pub(super) struct Walk<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    /// Something with effects stays in the statement: what comes after it stays, too.
    blocked: bool,
    /// What is evaluated for each row of a query.
    row: Option<EachRow>,
    /// What is true where the expression at hand is evaluated at all.
    guards: Vec<BoundExpr>,
    /// Whether rows come one by one from a condition whose calls were taken out.
    tested: bool,
}

/// The calls for each row.
struct EachRow {
    /// Columns of the query.
    width: usize,
    /// Columns that calls read, and the registers they read them in.
    columns: Vec<(u16, u32)>,
    calls: Vec<HoistedCall>,
    /// One of what is called.
    routine: Option<RoutineRef>,
}

impl<'c, 'a> Walk<'c, 'a> {
    pub(super) fn new(compiler: &'c mut Compiler<'a>) -> Walk<'c, 'a> {
        Walk { compiler, blocked: false, row: None, guards: Vec::new(), tested: false }
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
            Rel::Project { input, exprs } => {
                let once = self.below(input)?;
                if once {
                    self.list(exprs)?;
                } else if !exprs.iter().any(reads_query) {
                    self.each_tested_row(input, &mut |walk| walk.list(exprs))?;
                }
                Ok(once)
            }
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
            Rel::Sort { input, keys } => {
                self.below(input)?;
                if !keys.iter().any(|key| reads_query(&key.expr)) {
                    self.each_tested_row(input, &mut |walk| {
                        keys.iter_mut().try_for_each(|key| walk.expr(&mut key.expr))
                    })?;
                }
                // All of it is there before the first row is answered.
                self.tested = false;
                Ok(false)
            }
            Rel::Aggregate { input, group_by, aggregates, .. } => {
                self.below(input)?;
                let parts = aggregates.iter().flat_map(|call| {
                    let sorted = call.order_by.iter().map(|key| &key.expr);
                    call.args.iter().chain(&call.filter).chain(sorted)
                });
                if !group_by.iter().chain(parts).any(reads_query) {
                    self.each_tested_row(input, &mut |walk| {
                        walk.list(group_by)?;
                        aggregates.iter_mut().try_for_each(|call| walk.aggregate(call))
                    })?;
                }
                self.tested = false;
                Ok(false)
            }
            Rel::SetOp { left, right, .. } => {
                self.rel(left)?;
                self.rel(right)?;
                Ok(false)
            }
            Rel::Distinct { input, .. } => {
                self.rel(input)?;
                Ok(false)
            }
            _ => {
                self.blocked = true;
                Ok(false)
            }
        }
    }

    /// Takes calls out of what a query is over; a condition's own are for [`Walk::each_tested_row`].
    fn below(&mut self, rel: &mut Rel) -> Result<bool> {
        on_as_condition(rel);
        match rel {
            Rel::Filter { input, .. } => {
                self.rel(input)?;
                Ok(false)
            }
            rel => self.rel(rel),
        }
    }

    /// As [`Walk::each_row`]. Where the rows must meet a condition with calls, what holds none of them is
    /// tested before; what follows is done for a row that meets it before the next row is looked at.
    fn each_tested_row(
        &mut self,
        rel: &mut Rel,
        walk: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Rel::Filter { input, predicate } = rel else { return self.each_row(rel, walk) };
        if !holds_call(predicate) || reads_query(predicate) || self.tested {
            return self.each_row(rel, walk);
        }
        if !is_tested_above(predicate, input) {
            self.blocked = true;
            return Ok(());
        }
        let predicate = std::mem::replace(predicate, BoundExpr::constant(Datum::Null, Type::BOOL));
        let (mut calls, plain) = parted(predicate);
        let mut rows = std::mem::replace(&mut **input, Rel::Unit);
        if !plain.is_empty() {
            rows = Rel::Filter { input: Box::new(rows), predicate: all_of(plain) };
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
    fn each_row(&mut self, input: &mut Rel, walk: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        // A row that is one answer could not be told from the row it is made of.
        let width = input.width().max(1);
        let row = EachRow { width, columns: Vec::new(), calls: Vec::new(), routine: None };
        let outer = self.row.replace(row);
        // Those of one row come before those of the next.
        let blocked = std::mem::replace(&mut self.blocked, self.tested);
        let guards = std::mem::take(&mut self.guards);
        let walked = walk(self);
        self.guards = guards;
        let row = std::mem::replace(&mut self.row, outer);
        self.blocked |= blocked;
        walked?;
        let Some(EachRow { columns, calls, routine: Some(routine), .. }) = row else { return Ok(()) };
        let mut below = std::mem::replace(input, Rel::Unit);
        if below.width() == 0 {
            let nothing = BoundExpr::constant(Datum::Null, Type::BOOL);
            below = Rel::Project { input: Box::new(below), exprs: vec![nothing] };
        }
        let mut types = below.types();
        let column = |ty: &Type| OutputColumn { name: String::new(), ty: *ty, source: None };
        let below = BoundQuery { columns: types.iter().map(column).collect(), rel: below };
        let compiled = self.compiler.plan_whole(&BoundStatement::Query(below))?;
        types.extend(calls.iter().map(|_| Type::RECORD));
        let register = self.compiler.register_of_answer();
        let rows = HoistedRows { input: compiled, width, columns, calls, register };
        self.compiler.answers.calls.push(Hoisted::Rows(Box::new(rows)));
        let mut answering = (*routine).clone();
        (answering.returns_set, answering.result) = (true, Type::RECORD);
        let routine = self.compiler.answered(answering, Some(register));
        let call = SetCall::Routine { routine, args: Vec::new() };
        *input = Rel::Function { call, ordinality: false, types };
        Ok(())
    }

    fn list(&mut self, list: &mut [BoundExpr]) -> Result<()> {
        list.iter_mut().try_for_each(|item| self.expr(item))
    }

    pub(super) fn expr(&mut self, expr: &mut BoundExpr) -> Result<()> {
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
                for (when, then) in arms {
                    if !certain {
                        self.pass([&*when, &*then].into_iter());
                        continue;
                    }
                    self.expr(when)?;
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
                if subquery.kind == SubqueryKind::Scalar
                    && !subquery.correlated
                    && self.row.is_none()
                    && self.guards.is_empty() =>
            {
                self.rel(&mut subquery.rel)?;
            }
            ExprKind::InList { left, list, .. } => {
                self.expr(left)?;
                self.pass(list.iter());
            }
            ExprKind::Subquery(_) => self.blocked = true,
            _ => self.parts(expr)?,
        }
        if let ExprKind::Call { function, .. } = &expr.kind {
            self.blocked |= function.function.volatility == Volatility::Volatile;
        }
        Ok(())
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
        let answers = &self.compiler.answers.registers;
        let mut repeatable = true;
        visit::visit_expr(expr, 0, &mut |part, _| {
            repeatable &= match &part.kind {
                ExprKind::Routine { routine, .. } => {
                    routine.volatility != 'v' || answers.iter().any(|(known, _)| Arc::ptr_eq(known, routine))
                }
                ExprKind::Call { function, .. } => function.function.volatility != Volatility::Volatile,
                ExprKind::Subquery(_) => false,
                _ => true,
            };
            repeatable
        });
        repeatable
    }

    /// The parts of an expression all of which are evaluated.
    fn parts(&mut self, expr: &mut BoundExpr) -> Result<()> {
        let mut result = Ok(());
        visit::visit_children_mut(expr, 0, &mut |part, _| {
            if result.is_ok() {
                result = self.expr(part);
            }
            false
        });
        result
    }

    /// What may or may not be evaluated stays; if it has effects, so does what follows it.
    fn pass<'e>(&mut self, items: impl Iterator<Item = &'e BoundExpr>) {
        for item in items {
            visit::visit_expr(item, 0, &mut |part, _| {
                self.blocked |= match &part.kind {
                    ExprKind::Routine { routine, .. } => routine.volatility == 'v',
                    ExprKind::Call { function, .. } => function.function.volatility == Volatility::Volatile,
                    ExprKind::Subquery(_) => true,
                    _ => false,
                };
                !self.blocked
            });
        }
    }

    /// A call, its arguments first.
    fn routine(&mut self, routine: &mut RoutineRef, args: &mut Vec<BoundExpr>) -> Result<()> {
        self.list(args)?;
        let answers = &self.compiler.answers.registers;
        if routine.volatility != 'v' || answers.iter().any(|(known, _)| Arc::ptr_eq(known, routine)) {
            return Ok(());
        }
        let on_rows = args.iter().chain(&self.guards).any(depends_on_rows);
        if self.blocked || (self.row.is_none() && on_rows) {
            self.blocked = true;
            return Ok(());
        }
        let mut given = std::mem::take(args);
        let mut when = (!self.guards.is_empty()).then(|| all_of(self.guards.clone()));
        if let Some(row) = &mut self.row {
            row.columns_in_registers(&mut given, self.compiler);
            row.columns_in_registers(when.as_mut_slice(), self.compiler);
        }
        let compiler = &mut *self.compiler;
        let linked = compiler.linker.link(routine)?;
        for access in linked.accesses() {
            let access = trace::bind_arguments(access, &given);
            let access = compiler.trace.access(&access);
            compiler.note(access);
        }
        let given = given.iter().map(|arg| compiler.native(|env| native::compile_expr(arg, env)));
        let given = given.collect::<Result<Vec<_>>>()?;
        let when = when.map(|when| compiler.native(|env| native::compile_expr(&when, env))).transpose()?;
        let call = HoistedCall { routine: linked, args: given, strict: routine.strict, when };
        let answering = (**routine).clone();
        match &mut self.row {
            None => {
                let register = compiler.register_of_answer();
                compiler.answers.calls.push(Hoisted::Call { call, register });
                *routine = compiler.answered(answering, Some(register));
            }
            Some(row) => {
                args.push(BoundExpr::column(row.width + row.calls.len(), Type::RECORD));
                row.calls.push(call);
                row.routine = Some(routine.clone());
                *routine = compiler.answered(answering, None);
            }
        }
        Ok(())
    }
}

impl EachRow {
    /// Lets arguments read the row's columns from registers.
    fn columns_in_registers(&mut self, args: &mut [BoundExpr], compiler: &mut Compiler<'_>) {
        let mut read = |part: &mut BoundExpr, _: u16| {
            if let ExprKind::Column { index, .. } = part.kind {
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

/// `expr IS [NOT] value`.
fn is_bool(expr: BoundExpr, value: bool, negated: bool) -> BoundExpr {
    BoundExpr::new(ExprKind::IsBool { expr: Box::new(expr), value, negated }, Type::BOOL)
}

/// Conditions as one.
fn all_of(mut conditions: Vec<BoundExpr>) -> BoundExpr {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => BoundExpr::new(ExprKind::And(conditions), Type::BOOL),
    }
}

/// The parts of a condition that hold calls, and those that do not.
fn parted(condition: BoundExpr) -> (Vec<BoundExpr>, Vec<BoundExpr>) {
    let items = match condition.kind {
        ExprKind::And(items) => items,
        kind => vec![BoundExpr::new(kind, condition.ty)],
    };
    items.into_iter().partition(holds_call)
}

/// What ON of an inner join says with calls becomes a condition on its rows.
fn on_as_condition(rel: &mut Rel) {
    let Rel::Join { kind: JoinKind::Inner, on, .. } = rel else { return };
    let Some(condition) = on.take_if(|on| holds_call(on)) else { return };
    let (calls, plain) = parted(condition);
    *on = (!plain.is_empty()).then(|| all_of(plain));
    let input = Box::new(std::mem::replace(rel, Rel::Unit));
    *rel = Rel::Filter { input, predicate: all_of(calls) };
}

/// Whether the calls of a condition are made for the rows it is on: below a join one that is about one side
/// alone is tested on the rows of that side, all of them, and of more tables than two nobody knows which come first.
fn is_tested_above(condition: &BoundExpr, input: &Rel) -> bool {
    let Rel::Join { left, right, .. } = input else { return true };
    let several = [left, right].into_iter().any(|side| matches!(**side, Rel::Join { .. }));
    let items = match &condition.kind {
        ExprKind::And(items) => &items[..],
        _ => std::slice::from_ref(condition),
    };
    let width = left.width();
    let on_both = |item: &BoundExpr| {
        let mut sides = [false; 2];
        visit::visit_expr(item, 0, &mut |part, nesting| {
            if let ExprKind::Column { depth, index } = part.kind
                && depth == nesting
            {
                sides[usize::from(usize::from(index) >= width)] = true;
            }
            true
        });
        sides == [true; 2]
    };
    !several && items.iter().filter(|item| holds_call(item)).all(on_both)
}

/// Whether an expression holds a call that may be taken out.
fn holds_call(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(&part.kind, ExprKind::Routine { routine, .. } if routine.volatility == 'v');
        !found
    });
    found
}

/// Whether an expression reads the row of a query, or runs one.
fn depends_on_rows(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(part.kind, ExprKind::Column { .. } | ExprKind::Subquery(_));
        !found
    });
    found
}

/// Whether an expression runs a query: that would see what calls before it have done.
fn reads_query(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(part.kind, ExprKind::Subquery(_));
        !found
    });
    found
}

fn item_reads_query(item: &SetItem) -> bool {
    match item {
        SetItem::Scalar(expr) => reads_query(expr),
        SetItem::Set { call: SetCall::Scalar(expr), .. } => reads_query(expr),
        SetItem::Set { call: SetCall::Routine { args, .. } | SetCall::Builtin { args, .. }, .. } => {
            args.iter().any(reads_query)
        }
    }
}
