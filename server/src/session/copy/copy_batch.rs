//! The batches of a COPY FROM: one INSERT plan, run over the rows gathered so far.
//!
//! Where a batch is a transaction of its own, the next one is decoded while it runs: it goes
//! through the queues of its partitions, so that another executor of the island takes it if one
//! has time. Batches run one after the other all the same, so that what is committed when a row
//! fails are the rows before its batch.

use std::collections::VecDeque;
use std::sync::Arc;

use archipel_engine::id::GroupId;
use archipel_engine::{Completed, Start, Stop, Submission, SubmitOptions};
use archipel_planner::bound::BoundStatement;
use archipel_planner::native::{DeferredCheck, Drawn};
use archipel_sql::catalog::{Column, Table, TableRef, TriggerEvent};
use archipel_sql::copy::shorten;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::io::to_text;
use archipel_sql::types::Oid;

use super::state::{Batch, references_itself};
use crate::run::load::{LoadRun, Rows};
use crate::session::Session;
use crate::session::execute::RECOMPILES_MAX;
use crate::statement::prepare::failed_transaction;
use crate::statement::{Body, Code, Prepared, RowPlan};

/// The class of errors of values.
const DATA_EXCEPTION: &str = "22";

/// Later batches than the first one: a few milliseconds of work each.
const NEXT_BATCH_BYTES: usize = 512 << 10;

impl Session {
    /// Inserts the rows gathered so far; where others follow in transactions of their own, while
    /// they are gathered ([`Session::finish_batch`]).
    pub(in crate::session) async fn copy_batch(&mut self, last: bool) -> Result<()> {
        self.finish_batch().await?;
        let Some(copy) = &mut self.copy_in else { return Ok(()) };
        let rows = copy.rows.take();
        let contexts = std::mem::take(&mut copy.contexts);
        let (plan, table, first_line) = (copy.plan.clone(), copy.table.clone(), copy.first_line);
        let first = copy.total == 0;
        // A COPY that is alone and not over yet commits batch by batch, unless it must not.
        let whole = !last && (copy.references_itself || self.settings.effective().atomic_copy);
        let alone = copy.alone && !whole;
        let distribution = copy.distribution;
        copy.bytes = 0;
        if !copy.is_whole {
            copy.batch_bytes = NEXT_BATCH_BYTES;
        }
        if self.transaction.is_failed() {
            return Err(failed_transaction());
        }
        self.enter_transaction(alone);
        if let (true, Some(column)) = (first, distribution) {
            self.pre_split(&plan, &table, &rows, column).await;
        }
        let count = rows.len() as u64;
        let ahead = !last && self.transaction.interactive().is_none();
        let start = match ahead {
            _ if self.copy_in.as_ref().is_some_and(|copy| copy.takes_long) => Start::Apart,
            true => Start::Queued,
            false => Start::OnTheSpot,
        };
        let submission = self.submit_batch(plan, rows, VecDeque::new(), last, start);
        if let Some(copy) = &mut self.copy_in {
            copy.running = Some(Batch { submission, count, first_line, contexts, last });
        }
        if ahead {
            return Ok(());
        }
        self.finish_batch().await?;
        if !last {
            // Other sessions and the partitions of this thread come first.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Hands a batch to the engine; `numbers_left` is what sequences have given for it, in vain.
    fn submit_batch(
        &mut self,
        plan: Arc<RowPlan>,
        rows: Rows,
        numbers_left: VecDeque<Drawn>,
        last: bool,
        start: Start,
    ) -> Submission<LoadRun> {
        let run = self.load_run(plan, rows, numbers_left, last);
        let (transaction, client) = (self.transaction.interactive(), Some(&self.entry().engine));
        let options = SubmitOptions { transaction, client, start, ..SubmitOptions::default() };
        self.server.engine.submit(run, options)
    }

    fn load_run(
        &mut self,
        plan: Arc<RowPlan>,
        rows: Rows,
        numbers_left: VecDeque<Drawn>,
        last: bool,
    ) -> LoadRun {
        let (host, now) = (self.host(), self.transaction.start());
        LoadRun {
            plan,
            rows,
            host,
            now,
            constraints: self.transaction.is_open().then(|| self.transaction.constraint_modes()),
            unfinished: !last,
            undone: false,
            deferred: Vec::new(),
            notices: Vec::new(),
            sequences: Vec::new(),
            numbers_left,
            sequences_set: Vec::new(),
            notifications: Default::default(),
            ticket: None,
            one_shot: self.transaction.interactive().is_none(),
            inserted: 0,
            failed_row: None,
            error: None,
        }
    }

    /// What a COPY fails with of which a row has no form: that, or what is wrong with the rows before it, as far
    /// as PostgreSQL finds it row by row.
    pub(super) async fn of_earlier_rows(&mut self, error: SqlError) -> SqlError {
        if let Err(earlier) = self.finish_batch().await {
            return earlier;
        }
        let Some(copy) = self.copy_in.as_mut().filter(|copy| !copy.rows.is_empty()) else { return error };
        let (rows, contexts) = (copy.rows.take_whole(), std::mem::take(&mut copy.contexts));
        let (plan, table, first_line) = (copy.plan.clone(), copy.table.clone(), copy.first_line);
        let (alone, takes_long, committed) = (copy.alone, copy.takes_long, copy.committed);
        if self.transaction.is_failed() {
            return error;
        }
        self.enter_transaction(alone);
        let mut run = self.load_run(plan, rows, VecDeque::new(), false);
        run.undone = true;
        let mut start = Start::apart_if(takes_long);
        let mut completed: Completed<LoadRun> = loop {
            let (transaction, client) = (self.transaction.interactive(), Some(&self.entry().engine));
            let options = SubmitOptions { transaction, client, start, ..SubmitOptions::default() };
            let submission = self.server.engine.submit(run, options);
            let completed = self.cancellable(submission).await;
            if completed.outcome.result != Err(Stop::Interactive) || start == Start::Apart {
                break completed;
            }
            (run, start) = (completed.program, Start::Apart);
        };
        self.depend_on(completed.outcome.depends_on);
        self.tell_notices(std::mem::take(&mut completed.program.notices));
        self.remember_sequences(&completed.program.sequences);
        let (found, row) = (completed.program.error.take(), completed.program.failed_row);
        match (found, row) {
            (Some(mut found), Some(row)) if is_about_row(&found, &table) => {
                let line = format!("COPY {}, line {}", table.name, first_line + row as u64);
                let values = completed.program.rows.iter().nth(row).unwrap_or_default();
                self.tell_line(&mut found, line, contexts.get(row).cloned(), values);
                copy_detail(found, committed)
            }
            _ => error,
        }
    }

    /// Waits for the batch that runs, if one does, and takes what it leaves.
    pub(super) async fn finish_batch(&mut self) -> Result<()> {
        let running = self.copy_in.as_mut().and_then(|copy| copy.running.take());
        let Some(Batch { mut submission, count, first_line, contexts, last }) = running else {
            return Ok(());
        };
        let mut recompiles = 0;
        let mut completed = loop {
            let completed: Completed<LoadRun> = self.cancellable(submission).await;
            let takes_long = self.copy_in.as_ref().is_some_and(|copy| copy.takes_long);
            if completed.outcome.result == Err(Stop::Interactive) && !takes_long {
                // Much is computed for its rows: it begins anew where it keeps nobody, and so do the next.
                if let Some(copy) = &mut self.copy_in {
                    copy.takes_long = true;
                }
                let mut program = completed.program;
                let numbers = program.take_numbers();
                submission = self.submit_batch(program.plan, program.rows, numbers, last, Start::Apart);
                continue;
            }
            if completed.outcome.result != Err(Stop::Recompile) || recompiles == RECOMPILES_MAX {
                break completed;
            }
            recompiles += 1;
            self.await_definitions().await;
            let plan = self.renew_insert().await?;
            let start = Start::apart_if(takes_long);
            let mut program = completed.program;
            let numbers = program.take_numbers();
            submission = self.submit_batch(plan, program.rows, numbers, last, start);
        };
        let Some(copy) = &self.copy_in else { return Ok(()) };
        let (table, committed) = (copy.table.clone(), copy.committed);
        self.depend_on(completed.outcome.depends_on);
        self.tell_notices(std::mem::take(&mut completed.program.notices));
        if let Err(stop) = completed.outcome.result {
            if stop == Stop::Abort {
                // No error takes back what sequences gave.
                self.remember_sequences(&completed.program.sequences);
            }
            let mut error = match completed.program.error {
                Some(error) => error,
                None => self.stop_error(stop),
            };
            if let Some(row) = completed.program.failed_row.filter(|_| !is_of_own_key(&error)) {
                let line = format!("COPY {}, line {}", table.name, first_line + row as u64);
                let shown = contexts.get(row).filter(|_| is_about_row(&error, &table)).cloned();
                let values = completed.program.rows.iter().nth(row).unwrap_or_default();
                self.tell_line(&mut error, line, shown, values);
            }
            return Err(copy_detail(error, committed));
        }
        self.remember_sequences(&std::mem::take(&mut completed.program.sequences));
        let said = std::mem::take(&mut completed.program.notifications);
        self.take_said(said, completed.program.ticket.take(), completed.outcome.depends_on)?;
        self.keep_unchecked(std::mem::take(&mut completed.program.deferred), &table);
        let LoadRun { host, plan, .. } = &completed.program;
        self.take_settings(host, plan)?;
        if last {
            self.check_copied().await.map_err(|error| copy_detail(error, committed))?;
        }
        let in_transaction = self.transaction.interactive().is_some();
        if let Some(copy) = &mut self.copy_in {
            // Rows that WHERE or a trigger keeps back do not count, but lie before an error as well.
            copy.total += completed.program.inserted;
            if !in_transaction {
                copy.committed += count;
            }
        }
        Ok(())
    }

    /// Tells in an error which line it is about, as it is shown, behind the functions that were called for it.
    fn tell_line(&mut self, error: &mut SqlError, line: String, shown: Option<String>, values: &[Datum]) {
        let place = match self.refused_by_domain(error, values) {
            Some(column) => format!("{line}, {column}"),
            None => shown.unwrap_or(line),
        };
        let context = &mut error.fields_mut().context;
        *context = Some(match context.take() {
            Some(called) => format!("{called}\n{place}"),
            None => place,
        });
    }

    /// The column of a row whose domain refuses its value, as CONTEXT has it, if the error is about that.
    /// Of several that could be it none is told.
    fn refused_by_domain(&mut self, error: &SqlError, values: &[Datum]) -> Option<String> {
        let fields = error.fields();
        let (schema, domain) = (fields.schema.as_ref()?, fields.data_type.as_ref()?);
        let wants_null = match error.state() {
            SqlState::NOT_NULL_VIOLATION => true,
            SqlState::CHECK_VIOLATION => false,
            _ => return None,
        };
        let state = self.catalog_state();
        let is_of_it = |column: &Column| {
            let mut next = column.domain;
            while let Some(ty) = next.and_then(|oid| state.catalog.user_type_of(oid)) {
                if ty.schema == *schema && ty.name == *domain {
                    return true;
                }
                next = ty.domain.as_ref().and_then(|domain| domain.parent);
            }
            false
        };
        let copy = self.copy_in.as_ref()?;
        let columns = values.iter().zip(&copy.positions);
        let mut columns = columns
            .filter_map(|(value, at)| Some((value, copy.table.columns.get(*at)?)))
            .filter(|&(value, column)| value.is_null() == wants_null && is_of_it(column));
        let (value, column) = columns.next()?;
        if wants_null {
            return Some(format!("column {}: null input", column.name));
        }
        if columns.next().is_some() {
            return None;
        }
        let (value, name, ty) = (value.clone(), column.name.clone(), column.ty);
        let host = self.host();
        let written = to_text(&value, ty, &self.context(&host));
        Some(format!("column {name}: \"{}\"", shorten(&written)))
    }

    /// Compiles the INSERT anew: the table was defined anew, or lives elsewhere.
    async fn renew_insert(&mut self) -> Result<Arc<RowPlan>> {
        let before = self.copy_in.as_ref().map(|copy| copy.insert.clone());
        let before = before.ok_or_else(|| SqlError::internal("there is no COPY"))?;
        let insert = self.renew(&before).await?;
        insert.allowed()?;
        let state = self.catalog_state();
        let (table, filter) = match &self.copy_in {
            Some(copy) => (state.catalog.table_by_oid(copy.table.oid), copy.filter.clone()),
            None => (None, None),
        };
        let plan = match (&table, filter) {
            (Some(table), Some(filter)) => self.filtered_plan(&insert, table, &filter)?,
            _ => plan_of(&insert)?,
        };
        if let Some(copy) = &mut self.copy_in {
            copy.plan = plan.clone();
            copy.insert = insert;
            // It may reference itself by now.
            if let Some(table) = table {
                copy.references_itself = references_itself(&table);
                copy.table = table;
            }
        }
        Ok(plan)
    }

    /// Keeps what a batch left to check: at COMMIT, or when the last row is there.
    fn keep_unchecked(&mut self, checks: Vec<DeferredCheck>, table: &TableRef) {
        let modes = self.transaction.constraint_modes();
        let waits = |constraint: Oid| {
            table.foreign_keys.iter().any(|key| key.oid == constraint && !modes.is_deferred(key))
        };
        if let Some(copy) = &mut self.copy_in {
            for check in checks.iter().filter(|check| waits(check.constraint)) {
                if !copy.unchecked.contains(&check.constraint) {
                    copy.unchecked.push(check.constraint);
                }
            }
        }
        self.transaction.add_deferred(checks);
    }

    /// Checks what could not be before the last row was there.
    async fn check_copied(&mut self) -> Result<()> {
        let unchecked = self.copy_in.as_mut().map(|copy| std::mem::take(&mut copy.unchecked));
        match unchecked.filter(|unchecked| !unchecked.is_empty()) {
            Some(constraints) => self.check_deferred(Some(&constraints)).await,
            None => Ok(()),
        }
    }

    /// Splits the table's group at quantiles of the first rows' distribution column, unless it
    /// is spread over the executors already.
    async fn pre_split(&mut self, plan: &RowPlan, table: &TableRef, rows: &Rows, column: usize) {
        let Some(group) = table.group() else { return };
        let group = GroupId(group);
        let wanted = archipel_engine::PARTITIONS_PER_EXECUTOR * self.server.engine.active_executors();
        let routing = self.server.engine.routing();
        if routing.routes(group).len() >= wanted {
            return;
        }
        let Code::Native(insert) = &plan.code else { return };
        let Some(access) = insert.accesses.iter().find(|access| access.write && access.group == Some(group))
        else {
            return;
        };
        let mut keys: Vec<_> = rows
            .iter()
            .filter_map(|row| archipel_planner::route::route_key_bytes(access, row.get(column)?))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() < 2 {
            return;
        }
        let parts = wanted.min(keys.len());
        let boundaries = (1..parts).map(|part| keys[part * keys.len() / parts].clone()).collect();
        // A group that cannot be split now will be split by size.
        let _ = self.server.engine.pre_split(group, boundaries).await;
    }
}

/// Whether an error comes of a row by itself: of a rule of its table, of a function that is called for it,
/// of what is computed. PostgreSQL finds it while it has the line, and what is about indexes when it has
/// several rows.
fn is_about_row(error: &SqlError, table: &Table) -> bool {
    // With such a trigger it inserts one row after the other.
    let inserts_singly = table
        .triggers
        .iter()
        .any(|trigger| trigger.row && trigger.before && trigger.answers(TriggerEvent::Insert, table, None));
    if inserts_singly && error.state() == SqlState::UNIQUE_VIOLATION {
        return true;
    }
    let rules = [SqlState::NOT_NULL_VIOLATION, SqlState::CHECK_VIOLATION];
    let fields = error.fields();
    let is_data = || error.state().as_str().starts_with(DATA_EXCEPTION);
    rules.contains(&error.state()) && fields.table.is_some()
        || fields.context.is_some()
        || is_data() && table.index_expressions().next().is_none()
}

/// Whether an error is that of a foreign key, which PostgreSQL looks at when the lines have all been read, and
/// not one within a trigger's function.
fn is_of_own_key(error: &SqlError) -> bool {
    error.state() == SqlState::FOREIGN_KEY_VIOLATION && error.fields().context.is_none()
}

pub(super) fn plan_of(insert: &Prepared) -> Result<Arc<RowPlan>> {
    match &insert.body {
        Body::Rows(plan) if matches!(plan.bound, BoundStatement::Insert(_)) => Ok(plan.clone()),
        _ => Err(SqlError::internal("an INSERT was prepared as something else")),
    }
}

/// Says what stays of a COPY that committed batch by batch.
pub(super) fn copy_detail(error: SqlError, committed: u64) -> SqlError {
    if committed == 0 || error.fields().detail.is_some() {
        return error;
    }
    error.with_detail(format!("The first {committed} rows were committed before the error; a transaction block or archipel.atomic_copy makes COPY all or nothing."))
}
