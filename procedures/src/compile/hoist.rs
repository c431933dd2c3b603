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
//! Calls keep their order among themselves and against whatever else has effects: behind a call of
//! a volatile function, or a query, that stays in the statement, none is taken out.
//!
//! [`Environment::in_pieces`]: super::Environment::in_pieces

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind, Rel, SetCall, SetItem};
use archipel_planner::native::{
    self, CompiledRoutine, ExecContext, ExecResult, RoutineLinker, RowSink, TriggerPart,
};
use archipel_planner::route::Access;
use archipel_sql::catalog::{RoutineRef, TableRef, Trigger, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::Volatility;
use archipel_sql::types::Oid;

use super::Compiler;
use crate::run::operation::{HoistedCall, Operation, OperationKind};
use crate::run::renewed::Home;

/// What stands in statements for routines that have been called before.
#[derive(Default)]
pub(crate) struct Answers {
    /// By what is linked: the register of its rows.
    registers: Vec<(RoutineRef, u32)>,
    /// Registers that keep their values while the routine waits for its session.
    homes: Vec<Home>,
    /// Calls taken out of the statement that is being compiled, in order.
    calls: Vec<HoistedCall>,
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

/// Answers the rows of a call that has been made.
struct Answer {
    register: u32,
}

impl CompiledRoutine for Answer {
    fn call(&self, ctx: &mut ExecContext<'_, '_>, _args: &[Datum], sink: &mut dyn RowSink) -> ExecResult<()> {
        let Datum::Record(rows) = ctx.variables[self.register as usize].clone() else { return Ok(()) };
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
}

impl Compiler<'_> {
    /// Whether calls are taken out of the statement at hand from here on; answers what was.
    pub(super) fn open_for_calls(&mut self, open: bool) -> bool {
        std::mem::replace(&mut self.answers.open, open && self.environment.in_pieces)
    }

    /// Begins a statement on a line, whose calls are taken out if it is `open`; answers what was
    /// known of the statement around it.
    pub(super) fn begin_calls(&mut self, line: u32, open: bool) -> (Vec<HoistedCall>, bool) {
        self.answers.line = line;
        (std::mem::take(&mut self.answers.calls), self.open_for_calls(open))
    }

    /// Ends it: answers its calls.
    pub(super) fn end_calls(&mut self, (calls, open): (Vec<HoistedCall>, bool)) -> Vec<HoistedCall> {
        self.answers.open = open;
        std::mem::replace(&mut self.answers.calls, calls)
    }

    /// Where the answers live, as [`Compiler::homes`].
    pub(super) fn homes_of_answers(&mut self) -> Vec<Home> {
        std::mem::take(&mut self.answers.homes)
    }

    /// A statement without the calls that can be made before it; `None` if there are none.
    pub(super) fn hoist_statement(&mut self, bound: &BoundStatement) -> Result<Option<BoundStatement>> {
        let BoundStatement::Query(query) = bound else { return Ok(None) };
        if !self.answers.open {
            return Ok(None);
        }
        let mut query = query.clone();
        let before = self.answers.calls.len();
        let mut walk = Walk { compiler: self, blocked: false };
        walk.rel(&mut query.rel)?;
        let blocked = walk.blocked;
        self.answers.open &= !blocked;
        Ok((self.answers.calls.len() > before).then_some(BoundStatement::Query(query)))
    }

    /// The same for an expression.
    pub(super) fn hoist_expression(&mut self, bound: &BoundExpr) -> Result<Option<BoundExpr>> {
        if !self.answers.open {
            return Ok(None);
        }
        let mut bound = bound.clone();
        let before = self.answers.calls.len();
        let mut walk = Walk { compiler: self, blocked: false };
        walk.expr(&mut bound)?;
        let blocked = walk.blocked;
        self.answers.open &= !blocked;
        Ok((self.answers.calls.len() > before).then_some(bound))
    }
}

/// An operation after the calls that were taken out of it.
pub(super) fn after_calls(calls: Vec<HoistedCall>, operation: Operation) -> Operation {
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
                }
                Ok(once)
            }
            Rel::ProjectSet { input, items } => {
                if self.rel(input)? {
                    // Sets are expanded before the other items are evaluated.
                    let (sets, scalars): (Vec<_>, Vec<_>) =
                        items.iter_mut().partition(|item| matches!(item, SetItem::Set { .. }));
                    for item in sets {
                        match item {
                            SetItem::Set { call: SetCall::Routine { routine, args }, .. } => {
                                self.routine(routine, args)?;
                            }
                            SetItem::Set { call: SetCall::Builtin { args, .. }, .. } => self.list(args)?,
                            _ => self.blocked = true,
                        }
                    }
                    self.blocked |= !scalars.is_empty();
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
        let constant = |arg: &BoundExpr| {
            let mut constant = true;
            visit::visit_expr(arg, 0, &mut |part, _| {
                constant &= !matches!(part.kind, ExprKind::Column { .. } | ExprKind::Subquery(_));
                constant
            });
            constant
        };
        let answers = &self.compiler.answers.registers;
        if routine.volatility != 'v' || answers.iter().any(|(known, _)| Arc::ptr_eq(known, routine)) {
            return Ok(());
        }
        if self.blocked || !args.iter().all(constant) {
            self.blocked = true;
            return Ok(());
        }
        let compiler = &mut *self.compiler;
        let register = compiler.scratch();
        compiler.trace.forget(register, "answered before the statement");
        let linked = compiler.linker.link(routine)?;
        for access in linked.accesses() {
            let access = super::trace::bind_arguments(access, args);
            let access = compiler.trace.access(&access);
            compiler.note(access);
        }
        let args = std::mem::take(args);
        let args = args.iter().map(|arg| compiler.native(|env| native::compile_expr(arg, env)));
        let args = args.collect::<Result<Vec<_>>>()?;
        let strict = routine.strict;
        compiler.answers.calls.push(HoistedCall { routine: linked, args, strict, register });
        // Named by its place in the source, which is the same in every form of the routine.
        let line = format!("{}.", compiler.answers.line);
        let here = compiler.answers.homes.iter().filter(|home| home.field.starts_with(&line)).count();
        let field = format!("{line}{here}").into();
        let shape = compiler.answers.homes.len() as u32;
        compiler.answers.homes.push(Home { variable: u32::MAX, shape, field, ty: Oid::RECORD, register });
        let mut answering = (**routine).clone();
        answering.strict = false;
        answering.args.clear();
        *routine = Arc::new(answering);
        compiler.answers.registers.push((routine.clone(), register));
        Ok(())
    }
}
