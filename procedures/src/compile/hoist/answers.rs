//! What stands in statements for routines that have been called before.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archipel_planner::native::{
    CompiledRoutine, ExecContext, ExecResult, RoutineLinker, RowSink, TriggerPart,
};
use archipel_planner::route::Access;
use archipel_sql::catalog::{RoutineRef, TableRef, Trigger, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;

use crate::plpgsql::ast::StatementKind;
use crate::run::operation::{Hoisted, Operation, OperationKind};
use crate::run::pause::recompile::Home;

/// What stands in statements for routines that have been called before.
#[derive(Default)]
pub(crate) struct Answers {
    /// By what is linked: the register of its rows; `None` where they are its argument.
    pub(super) registers: Vec<(RoutineRef, Option<u32>)>,
    /// Registers that keep their values while the routine waits for its session.
    pub(super) homes: Vec<Home>,
    /// Calls taken out of the statement that is being compiled, in order.
    pub(super) calls: Vec<Hoisted>,
    /// Whether that statement evaluates what is being compiled once, and first.
    pub(super) open: bool,
    /// The line it begins on.
    pub(super) line: u32,
}

impl Answers {
    /// Those that a statement needs whose rows wait in its arguments.
    pub(in crate::compile) fn by_argument(&self) -> Answers {
        let known = self.registers.iter().filter(|(_, register)| register.is_none());
        Answers { registers: known.cloned().collect(), ..Answers::default() }
    }
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
    pub(super) register: Option<u32>,
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

/// An operation after the calls that were taken out of it.
pub(in crate::compile) fn after_calls(calls: Vec<Hoisted>, operation: Operation) -> Operation {
    if calls.is_empty() || matches!(operation.kind, OperationKind::Fail { .. }) {
        return operation;
    }
    let site = operation.site;
    let kind = OperationKind::Hoisted { calls, statement: Box::new(operation) };
    Operation { site, rights: None, kind }
}

/// Whether all that a statement evaluates itself is evaluated once, before anything else.
pub(crate) fn is_open_for_calls(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Assign { .. }
            | StatementKind::If { .. }
            | StatementKind::Case { .. }
            | StatementKind::ForInteger { .. }
            | StatementKind::ForQuery { .. }
            | StatementKind::ForDynamic { .. }
            | StatementKind::ForEach { .. }
            | StatementKind::Leave { .. }
            | StatementKind::Assert { .. }
            | StatementKind::Open { .. }
            | StatementKind::ReturnQueryDynamic { .. }
            | StatementKind::Return { .. }
            | StatementKind::ReturnNext { .. }
            | StatementKind::ReturnQuery { .. }
            | StatementKind::Sql { .. }
            | StatementKind::Perform { .. }
            | StatementKind::Raise(_)
            | StatementKind::Dynamic { .. }
    )
}
