//! One row statement or CALL as an engine program. Its rows are encoded as it runs, into a
//! buffer that becomes (part of) the session's output.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::txn::Txn;
use archipel_engine::{ClaimSet, Program, RoutingTable, Stop};
use archipel_planner::bind::visit::calls_volatile;
use archipel_planner::bound::BoundStatement;
use archipel_planner::native::cursors::Cursors;
use archipel_planner::native::notify::Notifications;
use archipel_planner::native::{
    CompiledRoutine, ConstraintModes, DeferredCheck, Drawn, ExecContext, ExecError, ExecResult, Notice,
    Permits, RoutineForm, Usage, finish_deferred, numbers_for_next_attempt,
};
use archipel_planner::route::{RouteInputs, is_plain_query, predict};
use archipel_procedures::run::pause::Paused;
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt::{Budget, Watch};
use archipel_sql::stack::Depth;
use archipel_sql::types::Oid;

use super::portions::Portions;
use super::{budget_of, if_in_time, is_spent, outdated, panic_error, stop_with};
use crate::encode::{RowsTo, Sink};
use crate::notifications::Ticket;
use crate::session::host::Host;
use crate::settings::session::Tracked;
use crate::statement::{Code, RowPlan};

/// Whether rows of a statement may leave before it is known how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsLeave {
    AtEnd,
    Early,
}

/// When rows of a run leave.
pub enum Streaming {
    /// When the last one is known.
    AtEnd,
    /// Earlier, where the run reads in pages: its client may have them.
    MayStream,
    /// As they come, these ways.
    Streams(Portions),
}

impl Streaming {
    fn portions(&mut self) -> Option<&mut Portions> {
        match self {
            Streaming::Streams(portions) => Some(portions),
            Streaming::AtEnd | Streaming::MayStream => None,
        }
    }
}

/// What a run has found that it needs: it is undone, to be run again with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// Its routines in the form that stops for the session wherever it can.
    InPieces,
    /// A block, where the session can run statements for a routine.
    InBlock,
    /// Rows that its session has still to bring: a routine has moved a cursor to them.
    WithRows,
}

/// How far an attempt had come when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastAttempt {
    /// It had only read.
    OnlyRead,
    /// So it had, and took longer than a one-shot may.
    Outlived,
    /// It had written or locked something, or was about to do what others see.
    Written,
}

/// See the module's head.
pub struct StatementRun {
    pub plan: Arc<RowPlan>,
    pub params: Vec<Datum>,
    pub host: Arc<Host>,
    pub rows_to: RowsTo,
    /// Encoded rows are appended; what was there before stays.
    pub out: Vec<u8>,
    /// Where this program's rows begin in `out`.
    pub mark: usize,
    /// Where the last whole row of an attempt ends.
    pub answered: usize,
    /// When the surrounding transaction block began.
    pub now: Option<i64>,
    /// Whether the transaction is READ ONLY.
    pub read_only: bool,
    /// Rows read, or affected.
    pub rows: u64,
    pub streaming: Streaming,
    /// The rows themselves, for [`RowsTo::Kept`].
    pub kept: Vec<Vec<Datum>>,
    pub notices: Vec<Notice>,
    /// Where the session's random numbers are when it begins, if they have a seed: whoever begins again draws
    /// the same.
    pub random: Option<[u64; 2]>,
    /// Which routines are counted and timed, and what they took.
    pub tracked: Tracked,
    pub usage: Option<Box<Usage>>,
    /// What `nextval` gave.
    pub sequences: Vec<Drawn>,
    /// What it gave to attempts that were abandoned.
    pub numbers_left: VecDeque<Drawn>,
    /// Sequences that the last attempt has set.
    pub sequences_set: Vec<Oid>,
    /// What it tells sessions that listen.
    pub notifications: Notifications,
    /// Its turn to do so, where the run is a transaction that may have written.
    pub ticket: Option<Ticket>,
    pub error: Option<SqlError>,
    /// When the transaction checks its constraints; `None` where this statement is all of it.
    pub constraints: Option<Arc<ConstraintModes>>,
    /// What COMMIT has to check.
    pub deferred: Vec<DeferredCheck>,
    /// The session's cursors, before the run.
    pub cursors: Cursors,
    /// And after it, if routines changed them.
    pub cursors_changed: Option<Cursors>,
    /// Whether the run is a transaction of the engine, and so there is no COMMIT to come.
    pub one_shot: bool,
    /// Whether a procedure may end the transaction.
    pub may_end: bool,
    /// Whether it runs inside of a block, where the session can run statements for a routine.
    pub in_block: bool,
    /// What the last attempt has found that it needs.
    pub rerun: Option<Rerun>,
    /// How far the last attempt had come.
    pub last_attempt: LastAttempt,
    /// Whether its routines are in the form that stops for the session wherever it can.
    pub in_pieces: bool,
    /// What its waits for locks have ended with so far, since it last paused.
    pub refused_waits: Vec<SqlError>,
    /// Whether it has stopped to wait inside of a block that would catch such an error.
    pub guards_waits: bool,
    /// How many savepoints there were before it.
    pub savepoints: usize,
    /// Where the procedure goes on after it ended its last transaction.
    pub resume: Option<Paused>,
    /// Where it ends this one: the run is to be committed or undone, and to go on from there.
    pub paused: Option<Paused>,
}

impl StatementRun {
    /// Takes another form of the statement, compiled anew; false if a call that has ended a
    /// transaction cannot go on in it.
    pub fn go_on_with(&mut self, plan: Arc<RowPlan>) -> bool {
        if let Some(paused) = &self.resume {
            let (Code::Call(before), Code::Call(next)) = (&self.plan.code, &plan.code) else { return false };
            let Some(renewed) = paused.renewed(&before.program, &next.program) else { return false };
            self.resume = Some(renewed);
        }
        self.plan = plan;
        true
    }

    /// Whether a run that cannot go on as a one-shot may begin again in pages, where it holds nobody: it
    /// has written nothing so far, and it is not known that it will. What has only stopped to sleep is
    /// not to sleep twice. What reads no table holds nobody anyway: it does so for its rows to leave.
    pub fn goes_by_pages(&self) -> bool {
        let gathers = self.plan.touches_nothing() && !(self.streams() && is_calm(&self.plan.bound));
        if self.last_attempt == LastAttempt::Written || gathers || self.plan.writes_late() {
            return false;
        }
        let writes = match &self.plan.code {
            Code::Native(compiled) => compiled.writes,
            Code::Call(call) => CompiledRoutine::accesses(&*call.program).iter().any(|access| access.write),
            Code::Trigger(_) => return false,
        };
        let is_change = !matches!(self.plan.bound, BoundStatement::Query(_) | BoundStatement::Call(_));
        !writes || (self.last_attempt == LastAttempt::Outlived && !is_change)
    }

    /// Whether its rows can leave while it runs, where it reads in pages.
    pub fn streams(&self) -> bool {
        !matches!(self.streaming, Streaming::AtEnd)
            && self.plan.is_read_only()
            && matches!(self.plan.code, Code::Native(_))
            && is_plain_query(&self.plan.bound)
    }

    /// Whether its client gets the rows before an error: PostgreSQL sends each one before it computes the
    /// next, where a statement changes nothing, and those of a COPY whatever it changes.
    pub fn keeps_rows(&self) -> bool {
        let sends_each = match self.rows_to {
            RowsTo::Wire(_) => self.plan.is_read_only(),
            RowsTo::Copy(_) => true,
            RowsTo::Nowhere | RowsTo::Kept => false,
        };
        sends_each
            && self.error.is_some()
            && !matches!(self.streaming, Streaming::AtEnd)
            && matches!(self.plan.code, Code::Native(_))
    }

    /// Whether rows have left.
    pub fn has_sent(&self) -> bool {
        matches!(&self.streaming, Streaming::Streams(portions) if portions.has_sent())
    }

    /// Gives a run what it begins with.
    fn begin_in(&mut self, context: &mut ExecContext<'_, '_>) {
        context.params = std::mem::take(&mut self.params);
        context.read_only = self.read_only;
        context.memory_max = self.host.server.statement_memory_max;
        if self.resume.is_some() {
            context.holds_memory();
        }
        if self.tracked != Tracked::None {
            context.usage = Some(Box::new(Usage::new(self.tracked == Tracked::All)));
        }
        context.constraints = self.constraints.clone();
        context.permits = Permits { end: self.may_end, command: true };
        context.routine_form = if self.in_pieces {
            RoutineForm::InPieces
        } else if self.resume.is_none() && self.plan.can_run_in_pieces() {
            // From its beginning, and as long as what it is made of has another form.
            RoutineForm::WholeSoFar
        } else {
            RoutineForm::Whole
        };
        context.fail_waits(&self.refused_waits);
        if !self.cursors.is_unused() {
            context.effects_mut().cursors = self.cursors.clone();
        }
        if !self.numbers_left.is_empty() {
            context.effects_mut().numbers_left = std::mem::take(&mut self.numbers_left);
        }
    }

    /// Takes what a run has left.
    fn take_from(&mut self, context: &mut ExecContext<'_, '_>) {
        self.last_attempt = match (context.txn.has_written(), context.txn.has_outlived()) {
            (true, _) => LastAttempt::Written,
            (false, true) => LastAttempt::Outlived,
            (false, false) => LastAttempt::OnlyRead,
        };
        self.params = std::mem::take(&mut context.params);
        self.notices = std::mem::take(&mut context.notices);
        self.usage = context.usage.take();
        if context.routine_form == RoutineForm::PiecesWanted {
            self.rerun = Some(Rerun::InPieces);
        }
        // Where it has not come to what an attempt before it failed with, it would not the next time.
        self.guards_waits = context.guards_waits && context.refused_wait().is_none();
        if let Some(mut effects) = context.take_effects() {
            if effects.cursors.is_wanting() && self.rerun.is_none() {
                self.rerun = Some(Rerun::WithRows);
            }
            self.sequences = effects.sequences;
            self.numbers_left = effects.numbers_left;
            self.sequences_set = effects.sequences_set;
            self.cursors_changed = effects.cursors.take_changed();
            self.deferred = effects.deferred;
            self.notifications = effects.notifications;
        }
    }

    fn evaluate(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        let now = self.now.unwrap_or_else(|| txn.started_at());
        if let Some(portions) = self.streaming.portions() {
            // An executor's thread does not wait for a client.
            portions.begin(txn.pages_at().filter(|_| txn.executor().is_none()));
        }
        let host = self.host.clone();
        let functions = FunctionContext { now, session: &*host };
        let whole = Cell::new(0);
        let mut context = ExecContext::new(txn, functions, &*host);
        context.answered = Some(&whole);
        self.begin_in(&mut context);
        let mut sink = Sink {
            rows_to: &self.rows_to,
            context: functions,
            out: &mut self.out,
            kept: &mut self.kept,
            portions: self.streaming.portions(),
            rows: 0,
            whole: &whole,
        };
        let done = match &self.plan.code {
            Code::Native(compiled) => compiled.run(&mut context, &mut sink),
            Code::Trigger(trigger) => trigger.run(&mut context).map(|()| 0),
            Code::Call(call) => {
                call.run(&mut context, &mut sink, self.resume.clone()).and_then(|paused| {
                    self.paused = paused;
                    match &self.paused {
                        Some(Paused { left: Some(_), .. }) if !self.in_block => {
                            self.rerun = Some(Rerun::InBlock);
                            Err(Stop::Abort.into())
                        }
                        // The engine undoes what aborts: ROLLBACK.
                        Some(Paused { commit: false, .. }) => Err(Stop::Abort.into()),
                        _ => Ok(sink.rows),
                    }
                })
            }
        };
        self.answered = whole.get();
        // What waits for the end of the transaction, where this is all of it.
        let done = done.and_then(|rows| {
            if !self.one_shot {
                return Ok(rows);
            }
            match (finish_deferred(&mut context), &self.paused, &self.plan.code) {
                (Ok(true), ..) => Ok(rows),
                // The checks that COMMIT makes are statements of their own.
                (Ok(false), ..) => Err(Stop::Interactive.into()),
                (Err(ExecError::Sql(error)), Some(paused), Code::Call(call)) => {
                    Err(paused.add_context(&call.program, error).into())
                }
                (Err(error), ..) => Err(error),
            }
        });
        self.take_from(&mut context);
        let done = done.map_err(|error| match error {
            ExecError::Stop(Stop::LockNotAvailable) => why_not_locked(&mut context),
            error => error,
        });
        if self.rerun == Some(Rerun::WithRows) {
            // Whatever became of it, it did not see what it was to see.
            self.paused = None;
            return Err(Stop::Abort.into());
        }
        self.rows = done?;
        self.draw_ticket()
    }

    /// Takes its place among those who notify, if it does. It holds its partitions: whoever comes after it
    /// draws later.
    fn draw_ticket(&mut self) -> ExecResult<()> {
        if !self.notifications.is_empty() && self.one_shot && !self.plan.is_read_only() {
            self.ticket = Some(self.host.database.notifications.ticket(&self.notifications)?);
        }
        Ok(())
    }
}

/// Why a lock was not waited for, where the one who refused the wait has said so.
fn why_not_locked(context: &mut ExecContext<'_, '_>) -> ExecError {
    context.take_refused_wait().map_or_else(|| Stop::LockNotAvailable.into(), Into::into)
}

impl Program for StatementRun {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        // What takes longer is not known beforehand.
        let _budget = Budget::of(self.host.server.engine.one_shot_budget());
        let now = self.now.unwrap_or_else(crate::clock::now);
        let functions = FunctionContext { now, session: &*self.host };
        match &self.plan.code {
            Code::Native(compiled) => {
                let inputs = RouteInputs { params: &self.params, variables: &[], functions: &functions };
                predict(&compiled.accesses, &inputs, claims);
            }
            // It runs in a transaction that has begun.
            Code::Trigger(_) => {}
            Code::Call(call) => {
                call.predict(&*self.host, &self.host.server.engine, &self.params, &functions, claims);
            }
        }
    }

    fn class(&self) -> u32 {
        match &self.plan.code {
            Code::Native(_) | Code::Trigger(_) => 0,
            Code::Call(_) => self.plan.counts.as_ref().map_or(0, |counts| counts.class),
        }
    }

    fn keeps_view(&self) -> bool {
        // The statements of a routine each see what is committed when they begin.
        matches!(self.plan.code, Code::Native(_))
    }

    fn tables(&self) -> Vec<TreeId> {
        match &self.plan.code {
            Code::Native(compiled) => compiled.tables.iter().map(|(tree, _)| *tree).collect(),
            // As it comes to them.
            Code::Call(_) | Code::Trigger(_) => Vec::new(),
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let _depth = Depth::of(self.host.settings.stack_depth_kb);
        let _watch = Watch::of(self.host.clone());
        if self.has_sent() {
            // It would answer them once more.
            self.error = Some(outdated());
            return Err(Stop::Abort);
        }
        self.out.truncate(self.mark);
        self.answered = 0;
        self.kept.clear();
        self.error = None;
        self.notices.clear();
        if let Some(state) = self.random {
            self.host.memory.random.go_back(state);
        }
        // Something is there where an attempt was abandoned.
        if !self.sequences.is_empty() {
            let left = std::mem::take(&mut self.numbers_left);
            self.numbers_left = numbers_for_next_attempt(&self.sequences, &self.sequences_set, left);
            self.sequences.clear();
        }
        self.sequences_set.clear();
        self.cursors_changed = None;
        self.notifications.clear();
        self.ticket = None;
        self.deferred.clear();
        self.paused = None;
        self.rerun = None;
        self.guards_waits = false;
        // What panics is not run again.
        self.last_attempt = LastAttempt::Written;
        self.host.forget_asked();
        let budget = budget_of(txn, self.host.server.engine.one_shot_budget());
        let result = catch_unwind(AssertUnwindSafe(|| self.evaluate(txn)));
        let result = result.map(|ran| if_in_time(budget.as_ref(), ran));
        if budget.as_ref().is_some_and(Budget::is_spent_for_once) {
            self.last_attempt = LastAttempt::Written;
        } else if is_spent(budget.as_ref()) && self.last_attempt == LastAttempt::OnlyRead {
            self.last_attempt = LastAttempt::Outlived;
        }
        drop(budget);
        if self.has_sent() {
            // What was before the rows has left with them.
            self.mark = 0;
        }
        match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let stop = stop_with(error, &mut self.error);
                self.out.truncate(if self.keeps_rows() { self.answered.max(self.mark) } else { self.mark });
                Err(stop)
            }
            Err(payload) => {
                self.out.truncate(self.mark);
                self.error = Some(panic_error(&*payload));
                Err(Stop::Abort)
            }
        }
    }
}

/// Whether a query may begin again, and the snapshot that it goes on at is not held while it sleeps.
fn is_calm(bound: &BoundStatement) -> bool {
    matches!(bound, BoundStatement::Query(query) if !calls_volatile(&query.rel))
}
