//! A batch of COPY rows as an engine program: one INSERT plan, run over all of them as a statement.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use archipel_engine::txn::Txn;
use archipel_engine::{ClaimSet, Program, RoutingTable, Stop};
use archipel_planner::native::notify::Notifications;
use archipel_planner::native::{
    ConstraintModes, DeferredCheck, Drawn, ExecContext, ExecResult, Notice, RunOf, numbers_for_next_attempt,
};
use archipel_planner::route::{RouteInputs, predict};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt::Watch;
use archipel_sql::stack::Depth;
use archipel_sql::types::Oid;

use super::{budget_of, if_in_time, panic_error, stop_with};
use crate::notifications::Ticket;
use crate::session::host::Host;
use crate::statement::{Code, RowPlan};

/// Batches up to this size claim just the partitions of their rows; larger ones whole groups,
/// because they would meet most partitions anyway.
const ROWS_ROUTED_MAX: usize = 256;

/// A batch may take so many times as long as a one-shot: it is bounded by its bytes, and only rows for which
/// much is computed make it longer. Then it begins anew apart.
const ONE_SHOTS_PER_BATCH: u32 = 5;

/// Rows of as many values each, one behind the other.
#[derive(Default)]
pub struct Rows {
    width: usize,
    count: usize,
    values: Vec<Datum>,
}

impl Rows {
    /// No rows yet, of `width` values each.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a value to the row that [`Rows::end_row`] ends.
    pub fn push(&mut self, value: Datum) {
        self.values.push(value);
    }

    pub fn end_row(&mut self) {
        self.count += 1;
        debug_assert_eq!(self.values.len(), self.width * self.count);
    }

    pub fn iter(&self) -> impl Iterator<Item = &[Datum]> {
        (0..self.count).map(|row| &self.values[row * self.width..][..self.width])
    }

    /// Exchanges a row's values for `values`, of which there are as many.
    fn swap(&mut self, row: usize, values: &mut [Datum]) {
        self.values[row * self.width..][..self.width].swap_with_slice(values);
    }

    /// Takes the rows, without the beginning of one that has no end.
    pub fn take_whole(&mut self) -> Rows {
        let mut rows = std::mem::take(self);
        rows.values.truncate(rows.width * rows.count);
        self.width = rows.width;
        rows
    }

    /// Takes the rows and leaves none, with room for as many.
    pub fn take(&mut self) -> Rows {
        let values = Vec::with_capacity(self.values.len());
        std::mem::replace(self, Rows { width: self.width, count: 0, values })
    }
}

/// See the module's head.
pub struct LoadRun {
    /// `INSERT INTO table (columns) VALUES ($1, …)`.
    pub plan: Arc<RowPlan>,
    pub rows: Rows,
    pub host: Arc<Host>,
    pub now: Option<i64>,
    /// When the transaction checks its constraints; `None` where this batch is all of it.
    pub constraints: Option<Arc<ConstraintModes>>,
    /// Whether more batches come.
    pub unfinished: bool,
    /// Whether nothing of it shall stay: it only finds out what is wrong with its rows.
    pub undone: bool,
    /// What is still to be checked.
    pub deferred: Vec<DeferredCheck>,
    pub notices: Vec<Notice>,
    /// What `nextval` gave.
    pub sequences: Vec<Drawn>,
    /// What it gave to attempts that were abandoned.
    pub numbers_left: VecDeque<Drawn>,
    /// Sequences that the last attempt has set.
    pub sequences_set: Vec<Oid>,
    /// What the triggers tell sessions that listen.
    pub notifications: Notifications,
    /// The turn to do so, if the batch is a transaction.
    pub ticket: Option<Ticket>,
    pub one_shot: bool,
    /// How many rows it has written: those that WHERE and the triggers let pass.
    pub inserted: u64,
    /// The row that failed, if one did.
    pub failed_row: Option<usize>,
    pub error: Option<SqlError>,
}

impl LoadRun {
    /// What `nextval` gave to a run that is undone: whoever inserts the same rows gives it again.
    pub fn take_numbers(&mut self) -> VecDeque<Drawn> {
        let drawn = std::mem::take(&mut self.sequences);
        let set = std::mem::take(&mut self.sequences_set);
        numbers_for_next_attempt(&drawn, &set, std::mem::take(&mut self.numbers_left))
    }

    fn insert_all(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        let Code::Native(insert) = &self.plan.code else {
            return Err(SqlError::internal("COPY without an INSERT plan").into());
        };
        let now = match self.now {
            Some(now) => now,
            None => txn.started_at(),
        };
        let host = self.host.clone();
        let functions = FunctionContext { now, session: &*host };
        let mut context = ExecContext::new(txn, functions, &*host);
        context.run_of = if self.unfinished { RunOf::BulkPart } else { RunOf::Bulk };
        context.constraints = self.constraints.clone();
        if !self.numbers_left.is_empty() {
            context.effects_mut().numbers_left = std::mem::take(&mut self.numbers_left);
        }
        let (rows, undone) = (&mut self.rows, self.undone);
        context.params = vec![Datum::Null; rows.width];
        let mut next = 0_usize;
        let done = insert.run_each(&mut context, &mut |context| {
            // Before the row goes back: who stops here stopped at that row.
            if next % 1024 == 1023 && functions.session.interrupted() {
                return Err(Stop::Cancelled.into());
            }
            if let Some(before) = next.checked_sub(1) {
                rows.swap(before, &mut context.params);
            }
            let there = next < rows.len();
            if there {
                rows.swap(next, &mut context.params);
            }
            next += 1;
            if !there && undone {
                // What comes behind the last row, triggers above all, is not for rows that do not stay.
                return Err(Stop::Abort.into());
            }
            Ok(there)
        });
        self.inserted = *done.as_ref().unwrap_or(&0);
        // What fails behind the last row is about all of them.
        if done.is_err() && (1..=rows.len()).contains(&next) {
            let failed = next - 1;
            rows.swap(failed, &mut context.params);
            self.failed_row = Some(failed);
        }
        self.notices = std::mem::take(&mut context.notices);
        if let Some(effects) = context.take_effects() {
            self.deferred = effects.deferred;
            self.sequences = effects.sequences;
            self.numbers_left = effects.numbers_left;
            self.sequences_set = effects.sequences_set;
            self.notifications = effects.notifications;
        }
        done?;
        if !self.notifications.is_empty() && self.one_shot {
            self.ticket = Some(host.database.notifications.ticket(&self.notifications)?);
        }
        Ok(())
    }
}

impl Program for LoadRun {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        let Code::Native(insert) = &self.plan.code else { return };
        if self.rows.len() > ROWS_ROUTED_MAX {
            for group in insert.accesses.iter().filter_map(|access| access.group) {
                claims.add_group(group);
            }
            return;
        }
        let now = self.now.unwrap_or_else(crate::clock::now);
        let functions = FunctionContext { now, session: &*self.host };
        for row in self.rows.iter() {
            let inputs = RouteInputs { params: row, variables: &[], functions: &functions };
            predict(&insert.accesses, &inputs, claims);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let _depth = Depth::of(self.host.settings.stack_depth_kb);
        let _watch = Watch::of(self.host.clone());
        self.error = None;
        self.failed_row = None;
        self.deferred.clear();
        self.notices.clear();
        self.numbers_left = self.take_numbers();
        self.notifications.clear();
        self.ticket = None;
        self.host.forget_asked();
        let most = self.host.server.engine.one_shot_budget() * ONE_SHOTS_PER_BATCH;
        let budget = budget_of(txn, most);
        let result = catch_unwind(AssertUnwindSafe(|| self.insert_all(txn)));
        match result.map(|ran| if_in_time(budget.as_ref(), ran)) {
            Ok(Ok(())) if self.undone => Err(Stop::Abort),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(stop_with(error, &mut self.error)),
            Err(payload) => {
                self.error = Some(panic_error(&*payload));
                Err(Stop::Abort)
            }
        }
    }
}
