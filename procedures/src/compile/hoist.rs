//! Calls that are made before the statement they stand in.
//!
//! A routine that a query calls runs inside of that query, which cannot stop half-way: so it could
//! not leave a definition to its session ([`crate::run::pause`]). Where a call is made exactly once
//! whatever else the statement does (`SELECT f(…)`, `SELECT * FROM f(…)`, `x := f(…)`), it can as
//! well be made before the statement: its rows wait in a register, and in the statement stands a
//! routine that answers them. A routine compiled like this is in pieces
//! ([`Environment::in_pieces`]); that is done for runs that have come to a definition, and for no
//! others.
//!
//! Calls in the SELECT list of a query over rows (`SELECT f(x) FROM t`) are made row by row: the query
//! below the list is run first, then the calls are made for each of its rows, and in the statement
//! stands a routine that answers the rows with their answers behind them.
//!
//! Calls keep their order among themselves and against whatever else has effects: behind a call of
//! a volatile function, or a query, that stays in the statement, none is taken out.
//!
//! [`Environment::in_pieces`]: super::Environment::in_pieces

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archipel_planner::bind::visit;
use archipel_planner::bound::{
    BoundExpr, BoundQuery, BoundStatement, ExprKind, OutputColumn, Rel, SetCall, SetItem,
};
use archipel_planner::native::{
    self, CompiledRoutine, ExecContext, ExecResult, RoutineLinker, RowSink, TriggerPart,
};
use archipel_planner::route::Access;
use archipel_sql::catalog::{Routine, RoutineRef, TableRef, Trigger, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::Volatility;
use archipel_sql::types::{Oid, Type};

use super::Compiler;
use crate::run::operation::{Hoisted, HoistedCall, HoistedRows, Operation, OperationKind};
use crate::run::renewed::Home;

/// What stands in statements for routines that have been called before.
#[derive(Default)]
pub(crate) struct Answers {
    /// By what is linked: the register of its rows; `None` where they are its argument.
    registers: Vec<(RoutineRef, Option<u32>)>,
    /// Registers that keep their values while the routine waits for its session.
    homes: Vec<Home>,
    /// Calls taken out of the statement that is being compiled, in order.
    calls: Vec<Hoisted>,
    /// Whether that statement evaluates what is being compiled once, and first.
    open: bool,
    /// The line it begins on.
    line: u32,
}

/// Links routines, and those that have been called before to their answers.
pub(crate) struct Answering<'a> {
    pub linker: &'a (dyn RoutineLinker + Send + Sync),
    pub answers: &'a Answers,
}

impl RoutineLinker for Answering<'_> {
    fn link(&self, routine: &RoutineRef) -> Result<Arc<dyn CompiledRoutine>> {
        match self.answers.registers.iter().find(|(known, _)| Arc::ptr_eq(known, routine)) {
            Some((_, register)) => Ok(Arc::new(Answer { register: *register })),
            None => self.linker.link(routine),
        }
    }

    fn link_trigger(
        &self,
        table: &TableRef,
        trigger: &Trigger,
        event: TriggerEvent,
        part: TriggerPart,
    ) -> Result<Arc<dyn CompiledRoutine>> {
        self.linker.link_trigger(table, trigger, event, part)
    }

    fn asked_below(&self) -> Arc<AtomicBool> {
        self.linker.asked_below()
    }
}

/// Answers the rows of a call that has been made: those in a register, or its argument.
struct Answer {
    register: Option<u32>,
}

impl CompiledRoutine for Answer {
    fn call(&self, ctx: &mut ExecContext<'_, '_>, args: &[Datum], sink: &mut dyn RowSink) -> ExecResult<()> {
        let rows = match self.register {
            Some(register) => ctx.variables.get(register as usize),
            None => args.first(),
        };
        let Some(Datum::Record(rows)) = rows.cloned() else { return Ok(()) };
        for row in rows.iter() {
            if let Datum::Record(values) = row
                && sink.row(values)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn accesses(&self) -> &[Access] {
        &[]
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// One walk over what a statement evaluates, in its order.
struct Walk<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    /// Something with effects stays in the statement: what comes after it stays, too.
    blocked: bool,
    /// What is evaluated for each row of a query.
    row: Option<EachRow>,
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

impl Compiler<'_> {
    /// Whether calls are taken out of the statement at hand from here on; answers what was.
    pub(super) fn open_for_calls(&mut self, open: bool) -> bool {
        std::mem::replace(&mut self.answers.open, open && self.environment.in_pieces)
    }

    /// Begins a statement on a line, whose calls are taken out if it is `open`; answers what was
    /// known of the statement around it.
    pub(super) fn begin_calls(&mut self, line: u32, open: bool) -> (Vec<Hoisted>, bool) {
        self.answers.line = line;
        (std::mem::take(&mut self.answers.calls), self.open_for_calls(open))
    }

    /// Ends it: answers its calls.
    pub(super) fn end_calls(&mut self, (calls, open): (Vec<Hoisted>, bool)) -> Vec<Hoisted> {
        self.answers.open = open;
        std::mem::replace(&mut self.answers.calls, calls)
    }

    /// Where the answers live, as [`Compiler::homes`].
    pub(super) fn homes_of_answers(&mut self) -> Vec<Home> {
        std::mem::take(&mut self.answers.homes)
    }

    /// A statement without the calls that can be made before it; `None` if there are none.
    pub(super) fn hoist_statement(&mut self, bound: &BoundStatement) -> Result<Option<BoundStatement>> {
        if !self.answers.open || !matches!(bound, BoundStatement::Query(_) | BoundStatement::Insert(_)) {
            return Ok(None);
        }
        let mut bound = bound.clone();
        let before = self.answers.calls.len();
        let mut walk = Walk { compiler: self, blocked: false, row: None };
        match &mut bound {
            BoundStatement::Query(query) => walk.rel(&mut query.rel)?,
            BoundStatement::Insert(insert) => walk.rel(&mut insert.source)?,
            _ => false,
        };
        let blocked = walk.blocked;
        self.answers.open &= !blocked;
        Ok((self.answers.calls.len() > before).then_some(bound))
    }

    /// The same for an expression.
    pub(super) fn hoist_expression(&mut self, bound: &BoundExpr) -> Result<Option<BoundExpr>> {
        if !self.answers.open {
            return Ok(None);
        }
        let mut bound = bound.clone();
        let before = self.answers.calls.len();
        let mut walk = Walk { compiler: self, blocked: false, row: None };
        walk.expr(&mut bound)?;
        let blocked = walk.blocked;
        self.answers.open &= !blocked;
        Ok((self.answers.calls.len() > before).then_some(bound))
    }
}

/// An operation after the calls that were taken out of it.
pub(super) fn after_calls(calls: Vec<Hoisted>, operation: Operation) -> Operation {
    if calls.is_empty() || matches!(operation.kind, OperationKind::Fail { .. }) {
        return operation;
    }
    let site = operation.site;
    let kind = OperationKind::Hoisted { calls, statement: Box::new(operation) };
    Operation { site, rights: None, kind }
}

impl Walk<'_, '_> {
    /// Takes calls out of what a query evaluates once. Answers whether it has one row.
    fn rel(&mut self, rel: &mut Rel) -> Result<bool> {
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
                let once = self.rel(input)?;
                if once {
                    self.list(exprs)?;
                } else if !exprs.iter().any(reads_query) {
                    self.each_row(input, &mut |walk| walk.list(exprs))?;
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
                if self.rel(input)? {
                    self.sets(items)?;
                } else if !items.iter().any(item_reads_query) {
                    self.each_row(input, &mut |walk| walk.sets(items))?;
                }
                Ok(false)
            }
            Rel::Filter { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Aggregate { input, .. }
            | Rel::Distinct { input, .. } => {
                self.rel(input)?;
                Ok(false)
            }
            _ => {
                self.blocked = true;
                Ok(false)
            }
        }
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
    fn each_row(
        &mut self,
        input: &mut Box<Rel>,
        walk: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        // A row that is one answer could not be told from the row it is made of.
        let width = input.width().max(1);
        let row = EachRow { width, columns: Vec::new(), calls: Vec::new(), routine: None };
        let outer = self.row.replace(row);
        let blocked = std::mem::take(&mut self.blocked);
        let walked = walk(self);
        let row = std::mem::replace(&mut self.row, outer);
        self.blocked |= blocked;
        walked?;
        let Some(EachRow { columns, calls, routine: Some(routine), .. }) = row else { return Ok(()) };
        let mut below = std::mem::replace(&mut **input, Rel::Unit);
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
        **input = Rel::Function { call, ordinality: false, types };
        Ok(())
    }

    fn list(&mut self, list: &mut [BoundExpr]) -> Result<()> {
        list.iter_mut().try_for_each(|item| self.expr(item))
    }

    fn expr(&mut self, expr: &mut BoundExpr) -> Result<()> {
        match &mut expr.kind {
            ExprKind::Routine { routine, args } => self.routine(routine, args)?,
            // The first of them is evaluated in any case.
            ExprKind::And(items) | ExprKind::Or(items) | ExprKind::Coalesce(items) => {
                let Some((first, rest)) = items.split_first_mut() else { return Ok(()) };
                self.expr(first)?;
                self.pass(rest.iter());
            }
            ExprKind::Case { arms, otherwise } => {
                let Some(((first, value), rest)) = arms.split_first_mut() else { return Ok(()) };
                self.expr(first)?;
                self.pass([&*value].into_iter().chain(rest.iter().flat_map(|(when, then)| [when, then])));
                self.pass(otherwise.as_deref().into_iter());
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
        if self.blocked || (self.row.is_none() && args.iter().any(depends_on_rows)) {
            self.blocked = true;
            return Ok(());
        }
        let mut given = std::mem::take(args);
        if let Some(row) = &mut self.row {
            row.columns_in_registers(&mut given, self.compiler);
        }
        let compiler = &mut *self.compiler;
        let linked = compiler.linker.link(routine)?;
        for access in linked.accesses() {
            let access = super::trace::bind_arguments(access, &given);
            let access = compiler.trace.access(&access);
            compiler.note(access);
        }
        let given = given.iter().map(|arg| compiler.native(|env| native::compile_expr(arg, env)));
        let given = given.collect::<Result<Vec<_>>>()?;
        let call = HoistedCall { routine: linked, args: given, strict: routine.strict };
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

impl Compiler<'_> {
    /// A register for answers, which keeps them while the routine waits for its session.
    fn register_of_answer(&mut self) -> u32 {
        let register = self.scratch();
        self.trace.forget(register, "answered before the statement");
        // Named by its place in the source, which is the same in every form of the routine.
        let line = format!("{}.", self.answers.line);
        let here = self.answers.homes.iter().filter(|home| home.field.starts_with(&line)).count();
        let field = format!("{line}{here}").into();
        let shape = self.answers.homes.len() as u32;
        self.answers.homes.push(Home { variable: u32::MAX, shape, field, ty: Oid::RECORD, register });
        register
    }

    /// What stands for a routine that has been called: it answers the rows in a register, or its
    /// argument.
    fn answered(&mut self, mut answering: Routine, register: Option<u32>) -> RoutineRef {
        answering.strict = false;
        answering.args.clear();
        let answering = Arc::new(answering);
        self.answers.registers.push((answering.clone(), register));
        answering
    }
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
