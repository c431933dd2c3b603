//! Running one prepared statement, and everything that can happen to it on the way.
//!
//! - [`submit`]    by whom a statement runs; [`wait`] until it is over; [`slow_statement`] what the log says of it
//! - [`analytic`]  queries for DataFusion; [`planning_thread`] long texts, which are planned beside the executors
//! - [`block`]     DO; [`command`] statements that a routine leaves to the session
//! - [`arguments`] what EXECUTE is given; [`explain`] EXPLAIN
//! - [`triggers`], [`truncate`] triggers that no statement fires; TRUNCATE with triggers
//! - [`outcome`]   what a row statement leaves; [`said`] what it says at length

pub(super) mod analytic;
mod arguments;
mod block;
mod command;
mod explain;
mod outcome;
mod planning_thread;
mod said;
mod slow_statement;
mod submit;
mod triggers;
mod truncate;
mod wait;

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_engine::id::Epoch;
use archipel_engine::txn::Isolation;
use archipel_engine::{Outcome, Stop};
use archipel_planner::native::{Drawn, is_outdated};
use archipel_planner::route::{Access, RouteKey};
use archipel_sql::ast::{Statement, TransactionModes};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;

use super::host::Host;
use super::{Session, role_setting};
use crate::catalog::CatalogState;
use crate::encode::{Formats, RowsTo};
use crate::run::outdated;
use crate::run::statement::{LastAttempt, Rerun, RowsLeave, StatementRun, Streaming};
use crate::statement::{Body, Code, Origin, Prepared, RowPlan};
use crate::wire::output::Severity;
use analytic::Analytic;
use command::Begun;
use outcome::Ran;

/// Attempts with a plan compiled anew before the statement gives up: each needs a DDL statement
/// that committed in between, or finds a structure of rows that its routine had not met.
pub(crate) const RECOMPILES_MAX: u32 = 40;

/// A definition holds its latch for about as long as it holds the partitions; longer than this
/// only while it waits for somebody.
const DEFINED_WITHIN: Duration = Duration::from_millis(500);

/// Whether a utility tells the client no columns of the query that it runs before it has run it.
fn reads_for_itself(statement: &Statement) -> bool {
    matches!(statement, Statement::DeclareCursor(_) | Statement::Copy(_))
}

impl Session {
    /// The catalog in force, with the definitions of the transaction so far.
    pub(crate) fn catalog_state(&self) -> Arc<CatalogState> {
        match self.transaction.staged() {
            Some(staged) => staged.catalog_state().clone(),
            None => self.published_catalog(),
        }
    }

    /// The newest catalog of the database; the session's copy is renewed only when DDL has published
    /// another.
    fn published_catalog(&self) -> Arc<CatalogState> {
        let mut cached = self.catalog.borrow_mut();
        if cached.version != self.database.catalog.version() {
            *cached = self.database.catalog.current();
        }
        cached.clone()
    }

    /// The version of that catalog.
    pub(crate) fn catalog_version(&self) -> u64 {
        match self.transaction.staged() {
            Some(staged) => staged.catalog_state().version,
            None => self.database.catalog.version(),
        }
    }

    /// The host of the current settings and catalog.
    pub(crate) fn host(&mut self) -> Arc<Host> {
        if let Some(host) = &self.host
            && host.catalog.version == self.catalog_version()
        {
            return host.clone();
        }
        let catalog = self.catalog_state();
        let host = Arc::new(Host::new(
            (self.server.clone(), self.database.clone(), self.entry().clone()),
            self.settings.effective().clone(),
            catalog,
            self.memory.clone(),
        ));
        self.host = Some(host.clone());
        host
    }

    /// The context of what is read and folded for a statement: in a transaction block, its time is
    /// that of the block's start.
    pub(crate) fn context<'h>(&self, host: &'h Host) -> FunctionContext<'h> {
        let context = host.context();
        FunctionContext { now: self.began_at().unwrap_or(context.now), ..context }
    }

    /// When the transaction of the statement began, as far as that is known before it runs: what reads
    /// `now` when it is planned and when it runs reads the same.
    pub(super) fn began_at(&self) -> Option<i64> {
        self.transaction.start().or(self.message_start)
    }

    /// Runs a statement; its rows and its completion go to the output. `alone` says that
    /// nothing of the same implicit transaction comes after it.
    pub(super) async fn execute(
        &mut self,
        prepared: &Arc<Prepared>,
        params: Vec<Datum>,
        formats: &Formats,
        alone: bool,
    ) -> Result<()> {
        self.allowed_now(prepared)?;
        self.took = None;
        self.reshaped = false;
        match &prepared.body {
            Body::Empty => {
                self.output.empty_query_response();
                Ok(())
            }
            Body::Utility(statement) => {
                let statement = statement.clone();
                self.executor.outbox.write();
                let begun = Instant::now();
                let ran = self.utility(&statement, prepared, params.clone(), formats, alone).await;
                match ran {
                    // The client has been told no columns: it is as if the statement had come later.
                    Err(_) if std::mem::take(&mut self.reshaped) && reads_for_itself(&statement) => {
                        self.utility(&statement, prepared, params, formats, alone).await?;
                    }
                    ran => ran?,
                }
                self.tell_if_slow(prepared, begun.elapsed());
                Ok(())
            }
            Body::Rows(plan) => {
                if !prepared.pace.is_quick() {
                    self.executor.outbox.write();
                }
                self.show_cursors(plan);
                let begun = Instant::now();
                let ran =
                    self.run_rows(prepared, plan.clone(), params, formats, alone, RowsLeave::Early).await?;
                let took = begun.elapsed();
                prepared.pace.note(took);
                self.took = Some(took);
                self.tell_if_slow(prepared, took);
                self.complete(prepared, &ran);
                Ok(())
            }
        }
    }

    fn complete(&mut self, prepared: &Prepared, ran: &Ran) {
        self.count(|counters| &counters.statements, 1);
        self.output.rows_complete(prepared.tag, ran.rows);
    }

    /// Runs a row statement to its end, compiling anew if its tables changed and going on as
    /// an interactive transaction if it cannot be a one-shot.
    pub(super) async fn run_rows(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: Arc<RowPlan>,
        params: Vec<Datum>,
        formats: &Formats,
        alone: bool,
        leave: RowsLeave,
    ) -> Result<Ran> {
        let rows_to = RowsTo::client(prepared.columns.as_ref(), formats, self.encoding());
        self.run_rows_to(prepared, plan, params, rows_to, alone, leave).await.map(|(ran, _)| ran)
    }

    /// The same where the caller says where rows go; answers those that are kept.
    pub(super) async fn run_rows_to(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: Arc<RowPlan>,
        params: Vec<Datum>,
        rows_to: RowsTo,
        alone: bool,
        leave: RowsLeave,
    ) -> Result<(Ran, Vec<Vec<Datum>>)> {
        prepared.allowed()?;
        self.require_settled(&plan)?;
        self.require_route(&plan, &params)?;
        // A statement that only reads is a one-shot even inside an implicit transaction that
        // has not written: READ COMMITTED lets it.
        if !plan.is_read_only() || self.transaction.is_open() || self.isolation() != Isolation::ReadCommitted
        {
            self.enter_transaction(alone);
        }
        self.note_query();
        let mut params = params;
        if self.is_analytic(&plan) {
            match self.run_analytic(&plan, params, &rows_to, leave).await? {
                Analytic::Ran(ran, kept) => return Ok((ran, kept)),
                Analytic::Native(back) => params = back,
            }
        }
        let mut run = self.statement_run(plan, params, rows_to);
        run.may_end = self.may_end();
        if leave == RowsLeave::Early && self.may_stream() {
            run.streaming = Streaming::MayStream;
        }
        self.run_to_end(prepared, run).await
    }

    /// Runs an already made program of `prepared`, compiling anew as often as need be.
    pub(super) async fn run_to_end(
        &mut self,
        prepared: &Arc<Prepared>,
        run: Box<StatementRun>,
    ) -> Result<(Ran, Vec<Vec<Datum>>)> {
        if let Err(error) = prepared.allowed() {
            self.output.restore(run.out);
            return Err(error);
        }
        let (ran, host) = self.run_until_done(prepared, run).await?;
        self.run_asked_for(&host).await?;
        Ok(ran)
    }

    /// Runs what functions of a statement asked for beside it.
    async fn run_asked_for(&mut self, host: &Host) -> Result<()> {
        let asked = host.asked.take();
        for warning in &asked.warnings {
            self.notice(Severity::Warning, warning);
        }
        if !asked.definitions.is_empty() {
            self.run_pending_definitions(asked.definitions).await?;
        }
        for change in asked.repartitions {
            self.run_repartition(change).await?;
        }
        if asked.reload {
            let server = self.server.clone();
            // Files are read elsewhere. What cannot be used is told in the server's log.
            let _ = self.server.waiting.begin(move || server.reload())?.await;
        }
        Ok(())
    }

    /// Splits, merges or moves partitions, by hand: no part of any transaction.
    async fn run_repartition(&mut self, change: archipel_engine::Repartition) -> Result<()> {
        let submission = self.server.engine.repartition(change, "asked for");
        let completed = self.cancellable(submission).await;
        self.depend_on(completed.outcome.depends_on);
        if let Err(stop) = completed.outcome.result {
            return Err(self.stop_error(stop));
        }
        completed.program.result.map_err(crate::system::repartition::refusal)
    }

    /// Runs a program until it is over; `block` says what was begun for it.
    pub(super) async fn run_pieces(
        &mut self,
        prepared: &Arc<Prepared>,
        mut run: Box<StatementRun>,
        block: &mut Option<Begun>,
    ) -> Result<((Ran, Vec<Vec<Datum>>), Arc<Host>)> {
        let mut prepared = prepared.clone();
        let mut recompiles = 0;
        while recompiles < RECOMPILES_MAX {
            let (finished, outcome) = self.submit(run).await;
            run = finished;
            match outcome.result {
                Err(Stop::Abort) if run.rerun == Some(Rerun::InPieces) && run.error.is_none() => {
                    if !run.in_block {
                        *block = Some(self.begin_for(&mut run, &TransactionModes::default())?);
                    }
                    run.in_pieces = true;
                    run.out.truncate(run.mark);
                    match self.renewed(&prepared, &mut run).await? {
                        Some(renewed) => prepared = renewed,
                        None => break,
                    }
                }
                Ok(()) | Err(Stop::Abort) if run.rerun == Some(Rerun::InBlock) && run.error.is_none() => {
                    *block = Some(self.begin_for(&mut run, &TransactionModes::default())?);
                }
                Ok(()) | Err(Stop::Abort) if run.rerun == Some(Rerun::WithRows) && run.error.is_none() => {
                    if let Err(error) = self.complete_cursors(run.cursors_changed.take()).await {
                        run.out.truncate(run.mark);
                        self.output.restore(run.out);
                        return Err(error);
                    }
                    run.cursors = self.cursors.clone();
                }
                Ok(()) if run.has_command() => {
                    self.run_command(&mut run, outcome.depends_on).await?;
                    recompiles = 0;
                    if run.in_pieces && self.means_the_same(&prepared) {
                        run.host = self.host();
                        continue;
                    }
                    match self.renewed(&prepared, &mut run).await? {
                        Some(renewed) => prepared = renewed,
                        None => break,
                    }
                }
                Ok(()) | Err(Stop::Abort) if run.paused.is_some() && run.error.is_none() => {
                    if !run.paused.as_ref().is_some_and(|paused| paused.commit) {
                        run.notifications.clear();
                        run.ticket = None;
                    }
                    self.tell_at_length(&mut run, outcome.depends_on).await;
                    let chained = run.paused.as_ref().is_some_and(|paused| paused.chain);
                    let modes = chained.then(|| self.current_modes());
                    self.take_over(&mut run, outcome.depends_on)?;
                    let begun = block.take();
                    // That of a pipeline: it ends here, and what follows is part of the next one.
                    let joined = begun != Some(Begun::Block) && self.transaction.is_open();
                    if joined || begun == Some(Begun::Block) {
                        self.end_for(&mut run).await?;
                    }
                    // Another transaction begins, and not where the message came.
                    run.now = None;
                    self.message_start = None;
                    self.next_transaction(&mut run).await?;
                    if let Some(modes) = modes.filter(|modes| *modes != self.current_modes()) {
                        *block = Some(self.begin_for(&mut run, &modes)?);
                    } else if joined {
                        self.enter_transaction(false);
                        run.now = self.transaction.start();
                    }
                    recompiles = 0;
                }
                Err(stop @ (Stop::LockNotAvailable | Stop::Deadlock)) if run.guards_waits => {
                    let error = self.stop_error(stop);
                    run.refused_waits.push(error);
                }
                Err(Stop::Recompile) => {
                    recompiles += 1;
                    self.await_definitions().await;
                    self.see_definitions();
                    match self.renewed(&prepared, &mut run).await? {
                        Some(renewed) => prepared = renewed,
                        None => break,
                    }
                }
                _ => {
                    self.tell_at_length(&mut run, outcome.depends_on).await;
                    let host = run.host.clone();
                    return Ok((self.finish_run(run, outcome)?, host));
                }
            }
        }
        run.out.truncate(run.mark);
        self.output.restore(run.out);
        Err(outdated())
    }

    /// Whether the names in what was prepared are those of the same objects still.
    fn means_the_same(&self, prepared: &Prepared) -> bool {
        prepared.catalog_version == self.catalog_version()
            && prepared.session_path == self.settings.effective().search_path
    }

    /// Compiles what a run goes on with anew.
    async fn renew_for(&mut self, prepared: &Prepared, in_pieces: bool) -> Result<Arc<Prepared>> {
        match in_pieces {
            false => self.renew(prepared).await,
            true => self.renew_in_pieces(prepared).await,
        }
    }

    /// Compiles a program anew, for a run to go on with; `None` if that cannot.
    async fn renewed(
        &mut self,
        prepared: &Arc<Prepared>,
        run: &mut StatementRun,
    ) -> Result<Option<Arc<Prepared>>> {
        let mut renewed = self.renew_for(prepared, run.in_pieces).await;
        for _ in 0..RECOMPILES_MAX {
            if !renewed.as_ref().is_err_and(is_outdated) {
                break;
            }
            self.await_definitions().await;
            self.see_definitions();
            renewed = self.renew_for(prepared, run.in_pieces).await;
        }
        let renewed = renewed.and_then(|renewed| renewed.allowed().map(|()| renewed));
        let renewed = renewed.inspect_err(|_| {
            self.reshaped = run.resume.is_none();
            run.out.truncate(run.mark);
            self.output.restore(std::mem::take(&mut run.out));
        })?;
        // Rows that nobody takes may be of any shape.
        let taken = !matches!(run.rows_to, RowsTo::Nowhere) || prepared.columns.is_none();
        if taken && !prepared.answers_as(&renewed) {
            self.reshaped = run.resume.is_none();
            run.out.truncate(run.mark);
            self.output.restore(std::mem::take(&mut run.out));
            return Err(SqlError::changed_result_type());
        }
        if let Body::Rows(plan) = &renewed.body
            && !run.go_on_with(plan.clone())
        {
            return Ok(None);
        }
        run.host = self.host();
        Ok(Some(renewed))
    }

    /// Waits until whoever has changed definitions in the engine has published the catalog that
    /// says so: before that, a plan would be made of what was.
    pub(crate) async fn await_definitions(&self) {
        let _ = tokio::time::timeout(DEFINED_WITHIN, self.database.definitions.lock()).await;
    }

    /// Takes what a run that has paused said, drew and depends on.
    pub(super) fn take_over(&mut self, run: &mut StatementRun, depends_on: Epoch) -> Result<()> {
        run.refused_waits.clear();
        run.out.truncate(run.mark);
        self.output.restore(std::mem::take(&mut run.out));
        self.tell_notices(std::mem::take(&mut run.notices));
        self.depend_on(depends_on);
        self.remember_sequences(&std::mem::take(&mut run.sequences));
        self.take_said(std::mem::take(&mut run.notifications), run.ticket.take(), depends_on)
    }

    /// A procedure has ended its transaction: what that leaves behind takes hold, and the run is
    /// made ready to go on.
    async fn next_transaction(&mut self, run: &mut StatementRun) -> Result<()> {
        let paused = run.paused.take();
        let committed = paused.as_ref().is_some_and(|paused| paused.commit);
        self.memory.transaction.end(committed);
        run.resume = paused;
        let host = run.host.clone();
        if committed {
            self.apply_settings(&host)?;
            self.run_asked_for(&host).await?;
            self.change_settings(|all| {
                all.commit();
                Ok(())
            })?;
        }
        let changed = run.cursors_changed.take();
        if let Some(cursors) = changed.filter(|_| committed) {
            self.cursors = cursors;
        }
        // Cursors end with their transaction, and so do rows of some temporary tables.
        if committed {
            self.cursors.end_transaction();
            self.end_temporary().await?;
        } else {
            self.cursors.abort_transaction();
        }
        self.flush_early().await;
        run.cursors = self.cursors.clone();
        run.random = self.memory.random.state();
        run.host = self.host();
        run.out = self.output.take();
        run.mark = run.out.len();
        Ok(())
    }

    pub(super) fn statement_run(
        &mut self,
        plan: Arc<RowPlan>,
        params: Vec<Datum>,
        rows_to: RowsTo,
    ) -> Box<StatementRun> {
        let out = self.output.take();
        Box::new(StatementRun {
            plan,
            params,
            host: self.host(),
            rows_to,
            mark: out.len(),
            answered: 0,
            out,
            now: self.began_at(),
            read_only: self.is_read_only(),
            rows: 0,
            streaming: Streaming::AtEnd,
            kept: Vec::new(),
            notices: Vec::new(),
            random: self.memory.random.state(),
            tracked: self.settings.effective().tracked,
            usage: None,
            sequences: Vec::new(),
            numbers_left: self.pipeline.take_numbers(),
            sequences_set: Vec::new(),
            notifications: Default::default(),
            ticket: None,
            error: None,
            constraints: Some(self.transaction.constraint_modes()),
            deferred: Vec::new(),
            cursors: self.cursors.clone(),
            cursors_changed: None,
            one_shot: false,
            may_end: false,
            in_block: self.transaction.is_block(),
            rerun: None,
            last_attempt: LastAttempt::OnlyRead,
            in_pieces: false,
            refused_waits: Vec::new(),
            guards_waits: false,
            savepoints: self.transaction.savepoints(),
            resume: None,
            paused: None,
        })
    }

    /// Takes rows, notices and effects of a finished run.
    fn finish_run(&mut self, mut run: Box<StatementRun>, outcome: Outcome) -> Result<(Ran, Vec<Vec<Datum>>)> {
        let failed = outcome.result.is_err();
        if failed && !run.keeps_rows() {
            run.out.truncate(run.mark);
        }
        if run.notices.is_empty() {
            self.output.restore(run.out);
        } else {
            self.tell_answered(&mut run);
        }
        // An error, too, may tell what is not durable yet.
        self.depend_on(outcome.depends_on);
        if let Err(stop) = outcome.result {
            if stop == Stop::Abort {
                // No error takes back what sequences gave, and what was warned of.
                self.remember_sequences(&run.sequences);
                for warning in run.host.asked.take().warnings {
                    self.notice(Severity::Warning, &warning);
                }
            }
            return Err(match run.error.take() {
                Some(error) if stop == Stop::Abort => error,
                _ => self.stop_error(stop),
            });
        }
        self.remember_sequences(&run.sequences);
        self.pipeline.keep_numbers(&mut run.numbers_left);
        self.take_said(run.notifications, run.ticket, outcome.depends_on)?;
        if let Some(cursors) = run.cursors_changed {
            self.cursors = cursors;
            self.pin_large_objects();
        }
        self.transaction.add_deferred(std::mem::take(&mut run.deferred));
        self.take_settings(&run.host, &run.plan)?;
        Ok((Ran { rows: run.rows }, run.kept))
    }

    /// Takes the settings that functions of a statement have changed which is over.
    pub(super) fn take_settings(&mut self, host: &Host, plan: &RowPlan) -> Result<()> {
        let (sets, local) = host
            .asked
            .look(|asked| (!asked.settings.is_empty(), asked.settings.iter().any(|change| change.local)));
        if sets {
            plan.note_settings();
        }
        self.apply_settings(host)?;
        if local && !self.transaction.is_open() {
            // The statement was the transaction.
            self.change_settings(|all| {
                all.commit();
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Whether a procedure that runs now may end the transaction: outside of blocks, and of texts of
    /// several statements. In a pipeline it may, and ends what came before with it.
    pub(super) fn may_end(&self) -> bool {
        !self.in_script && !self.transaction.is_block()
    }

    /// What `nextval` gave, for `currval` and `lastval`.
    pub(super) fn remember_sequences(&mut self, sequences: &[Drawn]) {
        if sequences.is_empty() {
            return;
        }
        let mut values = self.memory.sequence_values.lock();
        values.extend(sequences.iter().map(|drawn| (drawn.sequence.0, drawn.value)));
        if let Some(last) = sequences.iter().rev().find(|drawn| !drawn.set) {
            *self.memory.last_sequence.lock() = Some(last.sequence.0);
        }
    }

    /// Settings that functions of a statement changed.
    pub(super) fn apply_settings(&mut self, host: &Host) -> Result<()> {
        for change in host.asked.take_settings() {
            if role_setting::is_role_setting(&change.name) {
                self.set_role(&change.name, Some(&change.value), change.local)?;
                continue;
            }
            self.change_setting(&change.name, Some(&change.value), change.local)?;
        }
        Ok(())
    }

    /// The SQL error of a program the engine stopped.
    pub(super) fn stop_error(&self, stop: Stop) -> SqlError {
        match stop {
            Stop::Cancelled => self.entry().cancel_error(),
            Stop::Deadlock => {
                let error = archipel_planner::native::stop_error(stop);
                match self.deadlock.borrow_mut().take() {
                    Some(detail) => error.with_detail(detail).with_hint("See server log for query details."),
                    None => error,
                }
            }
            other => archipel_planner::native::stop_error(other),
        }
    }

    /// Runs `text` for its rows, inside whatever transaction is open.
    pub(super) async fn rows_of(&mut self, text: &str, alone: bool) -> Result<Vec<Vec<Datum>>> {
        self.rows_as(Origin::Text, text, alone).await
    }

    /// As [`Session::rows_of`]; what the text is made for may say more of it.
    pub(super) async fn rows_as(
        &mut self,
        origin: Origin,
        text: &str,
        alone: bool,
    ) -> Result<Vec<Vec<Datum>>> {
        let text: Arc<str> = text.into();
        let statements = self.read(&text).await?;
        let prepared = self.prepare_as(origin, &text, statements, &[], None).await?;
        let Body::Rows(plan) = &prepared.body else {
            return Err(SqlError::internal("a text that should answer rows does not"));
        };
        if !plan.is_read_only() || self.transaction.is_open() {
            self.enter_transaction(alone);
        }
        let run = self.statement_run(plan.clone(), Vec::new(), RowsTo::Kept);
        self.run_to_end(&prepared, run).await.map(|(_, kept)| kept)
    }

    /// `archipel.require_route`: refuses what would claim every partition of a group for want
    /// of a route, and says why.
    pub(super) fn require_route(&mut self, plan: &RowPlan, _params: &[Datum]) -> Result<()> {
        if !self.settings.effective().require_route {
            return Ok(());
        }
        let accesses = match &plan.code {
            Code::Native(compiled) => &compiled.accesses[..],
            Code::Call(call) => archipel_planner::native::CompiledRoutine::accesses(&*call.program),
            Code::Trigger(_) => return Ok(()),
        };
        match accesses.iter().find_map(|access| Some((access, unrouted(access)?))) {
            None => Ok(()),
            Some((access, reason)) => Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("statement would touch every partition of table \"{}\"", access.table),
            )
            .with_detail(reason)
            .with_hint(format!(
                "Compare the distribution column \"{}\" with a parameter or constant, or set archipel.require_route to off.",
                access.column
            ))),
        }
    }
}

pub(super) fn severity_of(word: &str) -> Severity {
    match word {
        "DEBUG" => Severity::Debug,
        "LOG" => Severity::Log,
        "INFO" => Severity::Info,
        "WARNING" => Severity::Warning,
        _ => Severity::Notice,
    }
}

/// Why an access reaches every partition of its group, if it does.
fn unrouted(access: &Access) -> Option<String> {
    access.group?;
    match &access.key {
        RouteKey::All => Some("No condition bounds the distribution column.".to_owned()),
        RouteKey::Unknown(reason) => Some(reason.clone()),
        _ => None,
    }
}
