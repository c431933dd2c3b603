//! The statements of a pipeline as one program: all that a client sent up to its Sync.
//!
//! Once its messages are here, the implicit transaction they make up needs its client no more, so
//! it is a one-shot: its rows are written where they belong, under claims, without the row locks
//! and images beside the trees that a transaction needs between two statements.
//!
//! It commits as a whole or is undone as a whole. An error is not told from here: whoever submitted
//! the program runs the statements one by one then, and tells what each of them answers.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use archipel_engine::txn::Txn;
use archipel_engine::{ClaimSet, Program, RoutingTable, Stop};
use archipel_planner::native::{
    CompiledStatement, ConstraintModes, Drawn, ExecContext, ExecError, ExecResult, numbers_for_next_attempt,
};
use archipel_planner::route::{RouteInputs, predict};
use archipel_sql::datum::Datum;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt::{Budget, Watch};
use archipel_sql::stack::Depth;
use archipel_sql::types::Oid;

use super::{budget_of, if_in_time, panic_error};
use crate::encode::{Formats, RowsTo, Sink};
use crate::session::host::Host;
use crate::statement::{Body, Code, Prepared};
use crate::wire::output::Output;

/// After so many statements the program looks at the clock.
const STEPS_BETWEEN_LOOKS: usize = 8;

/// One statement of a pipeline, with its parameters.
pub struct Step {
    pub prepared: Arc<Prepared>,
    pub params: Vec<Datum>,
    pub formats: Formats,
    /// How many bytes of [`PipelineRun::replies`] come before its answer.
    pub at: usize,
    rows_to: RowsTo,
}

impl Step {
    /// `encoding` is the client's.
    pub fn new(
        prepared: Arc<Prepared>,
        params: Vec<Datum>,
        formats: Formats,
        encoding: Encoding,
        at: usize,
    ) -> Step {
        let rows_to = RowsTo::client(prepared.columns.as_ref(), &formats, encoding);
        Step { prepared, params, formats, at, rows_to }
    }
}

/// The code of a statement that can be a step.
pub fn native(prepared: &Prepared) -> Option<&CompiledStatement> {
    match &prepared.body {
        Body::Rows(plan) => match &plan.code {
            Code::Native(compiled) => Some(compiled),
            Code::Call(_) | Code::Trigger(_) => None,
        },
        Body::Empty | Body::Utility(_) => None,
    }
}

/// See the module's head.
pub struct PipelineRun {
    pub steps: Vec<Step>,
    /// Replies to the messages around the steps (BindComplete, RowDescription).
    pub replies: Vec<u8>,
    /// These, and the steps' answers in their places.
    pub out: Output,
    /// What `nextval` gave.
    pub sequences: Vec<Drawn>,
    /// A step that panicked: it has lost its parameters.
    pub panicked: Option<(usize, SqlError)>,
    host: Arc<Host>,
    constraints: Arc<ConstraintModes>,
    numbers_left: VecDeque<Drawn>,
    sequences_set: Vec<Oid>,
    running: usize,
}

impl PipelineRun {
    pub fn new(
        steps: Vec<Step>,
        replies: Vec<u8>,
        host: Arc<Host>,
        constraints: Arc<ConstraintModes>,
    ) -> PipelineRun {
        PipelineRun {
            steps,
            replies,
            out: Output::new(),
            sequences: Vec::new(),
            panicked: None,
            host,
            constraints,
            numbers_left: VecDeque::new(),
            sequences_set: Vec::new(),
            running: 0,
        }
    }

    /// What `nextval` gave to a run that is undone for good: whoever runs the steps one by one gives
    /// it again.
    pub fn take_numbers(&mut self) -> VecDeque<Drawn> {
        let left = std::mem::take(&mut self.numbers_left);
        numbers_for_next_attempt(&self.sequences, &self.sequences_set, left)
    }

    /// The answers of a run that was told to stop, up to the statement at which it was.
    pub fn into_answers(mut self) -> Output {
        if self.out.is_empty() {
            // It has not come to run.
            let first = self.steps.first().map_or(0, |step| step.at);
            self.out.append(&self.replies[..first]);
        }
        self.out
    }

    fn evaluate(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        let host = self.host.clone();
        let functions = FunctionContext { now: txn.started_at(), session: &*host };
        let mut context = ExecContext::new(txn, functions, &*host);
        context.constraints = Some(self.constraints.clone());
        if !self.numbers_left.is_empty() {
            context.effects_mut().numbers_left = std::mem::take(&mut self.numbers_left);
        }
        let done = self.run_steps(&mut context, functions);
        // What a statement leaves to its session takes hold before the next one begins.
        let mut leaves = !context.notices.is_empty();
        if let Some(mut effects) = context.take_effects() {
            leaves |= !effects.deferred.is_empty()
                || !effects.notifications.is_empty()
                || effects.cursors.take_changed().is_some();
            self.sequences = effects.sequences;
            self.numbers_left = effects.numbers_left;
            self.sequences_set = effects.sequences_set;
        }
        done?;
        leaves |= !host.asked.is_empty();
        if leaves { Err(Stop::Interactive.into()) } else { Ok(()) }
    }

    fn run_steps(
        &mut self,
        context: &mut ExecContext<'_, '_>,
        functions: FunctionContext<'_>,
    ) -> ExecResult<()> {
        let (mut from, mut kept) = (0, Vec::new());
        let whole = Cell::new(0);
        for (number, step) in self.steps.iter_mut().enumerate() {
            self.running = number;
            if number % STEPS_BETWEEN_LOOKS == STEPS_BETWEEN_LOOKS - 1 && context.txn.budget_exceeded() {
                return Err(Stop::Interactive.into());
            }
            let Step { prepared, params, rows_to, at, .. } = step;
            let Some(compiled) = native(prepared) else { return Err(Stop::Interactive.into()) };
            let mut out = self.out.take();
            out.extend_from_slice(&self.replies[from..*at]);
            from = *at;
            let before = out.len();
            context.params = std::mem::take(params);
            let mut sink = Sink {
                rows_to: &*rows_to,
                context: functions,
                out: &mut out,
                kept: &mut kept,
                portions: None,
                rows: 0,
                whole: &whole,
            };
            let ran = compiled.run(context, &mut sink);
            *params = std::mem::take(&mut context.params);
            if ran.is_err() {
                out.truncate(before);
            }
            self.out.restore(out);
            self.out.rows_complete(prepared.tag, ran?);
        }
        self.out.append(&self.replies[from..]);
        Ok(())
    }
}

impl Program for PipelineRun {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        // What takes longer is not known beforehand.
        let _budget = Budget::of(self.host.server.engine.one_shot_budget());
        // The transaction begins a moment later.
        let functions = FunctionContext { now: crate::clock::now(), session: &*self.host };
        for step in &self.steps {
            if let Some(compiled) = native(&step.prepared) {
                let inputs = RouteInputs { params: &step.params, variables: &[], functions: &functions };
                predict(&compiled.accesses, &inputs, claims);
            }
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let _depth = Depth::of(self.host.settings.stack_depth_kb);
        let _watch = Watch::of(self.host.clone());
        self.out.clear();
        // Something is there where an attempt was abandoned.
        if !self.sequences.is_empty() {
            self.numbers_left = self.take_numbers();
            self.sequences.clear();
        }
        self.sequences_set.clear();
        self.host.forget_asked();
        let budget = budget_of(txn, self.host.server.engine.one_shot_budget());
        let result = catch_unwind(AssertUnwindSafe(|| self.evaluate(txn)));
        match result.map(|ran| if_in_time(budget.as_ref(), ran)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(ExecError::Stop(stop))) => Err(stop),
            Ok(Err(ExecError::Sql(_))) => Err(Stop::Abort),
            Err(payload) => {
                self.panicked = Some((self.running, panic_error(&*payload)));
                Err(Stop::Abort)
            }
        }
    }
}
