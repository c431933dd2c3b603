//! COPY … FROM STDIN, and from a file ([`super::copy_file`]).
//!
//! Rows are decoded as they arrive and inserted in batches through the table's INSERT plan, so
//! defaults, checks and indexes are those of INSERT. A COPY whose data fits into the first
//! batch (8 MiB) is one transaction. A larger one outside a transaction block commits batch by
//! batch, so that a bulk load neither holds its partitions nor its memory to the end; if it
//! then fails, the error's DETAIL says how many rows stay. Inside BEGIN … COMMIT, and with
//! `archipel.atomic_copy`, every COPY is all or nothing: its rows are then uncommitted versions
//! to the end, at several times the memory and time.
//!
//! The first batch also shows how the distribution column spreads: its group is split at
//! quantiles of that sample before anything is inserted, so that the load ends on all
//! executors.

use std::sync::Arc;

use archipel_engine::id::GroupId;
use archipel_engine::{Stop, SubmitOptions};
use archipel_planner::bound::BoundStatement;
use archipel_planner::native::DeferredCheck;
use archipel_sql::ast::{Copy, CopyDirection, CopyTarget};
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{Table, TableKind, TableRef, Trigger, TriggerEvent};
use archipel_sql::copy::{CopyDecoder, CopyFormat};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::io;
use archipel_sql::types::{Oid, Type};

use super::Session;
use super::connection::Flow;
use super::execute::{RECOMPILES_MAX, severity_of};
use super::simple::Script;
use crate::run::load::LoadRun;
use crate::statement::prepare::failed_transaction;
use crate::statement::{Body, Code, Prepared, RowPlan};
use crate::wire::frame::Message;

/// A COPY up to this many bytes is one transaction, and a larger one's first batch.
const FIRST_BATCH_BYTES: usize = 8 << 20;
/// Later batches: a few milliseconds of work each.
const NEXT_BATCH_BYTES: usize = 512 << 10;

/// A COPY FROM STDIN that is taking data.
pub(super) struct CopyIn {
    decoder: CopyDecoder,
    table: TableRef,
    /// The INSERT of one row.
    insert: Arc<Prepared>,
    plan: Arc<RowPlan>,
    types: Vec<Type>,
    /// The position of the distribution column among the copied columns.
    distribution: Option<usize>,
    rows: Vec<Vec<Datum>>,
    /// Line numbers of the rows, for errors.
    first_line: u64,
    bytes: usize,
    batch_bytes: usize,
    /// Whether all rows are one batch, which is as large as memory may be.
    is_whole: bool,
    /// Whether a row may reference one of a later batch.
    references_itself: bool,
    /// Constraints that are checked when all rows are there.
    unchecked: Vec<Oid>,
    pub total: u64,
    committed: u64,
    alone: bool,
    /// The rest of the text, in the simple protocol.
    pub script: Option<Script>,
    simple: bool,
}

fn references_itself(table: &Table) -> bool {
    table.foreign_keys.iter().any(|key| key.references == table.oid)
}

impl Session {
    /// Runs COPY. Data for COPY FROM arrives in messages to come.
    pub(super) async fn copy(&mut self, copy: &Copy, prepared: &Arc<Prepared>, alone: bool) -> Result<()> {
        match (&copy.direction, &copy.target) {
            (CopyDirection::FromStdin | CopyDirection::FromFile(_), CopyTarget::Table { name, columns }) => {
                if copy.filter.is_some() {
                    return Err(SqlError::unsupported("COPY FROM … WHERE"));
                }
                if matches!(copy.direction, CopyDirection::FromFile(_)) {
                    self.require_file_reader()?;
                }
                let host = self.host();
                let path = self.search_path();
                let table = host.catalog.catalog.require_table(name, &path)?;
                if !is_temporary_schema(&table.schema) {
                    self.require_writable("COPY FROM")?;
                }
                self.require_settled_table(&table)?;
                self.begin_copy_in(copy, table, columns, alone).await?;
                match (&copy.direction, &self.copy_in) {
                    (CopyDirection::FromFile(file), _) => self.copy_from_file(file).await?,
                    (_, Some(begun)) => self.output.copy_in_response(begun.types.len()),
                    _ => {}
                }
                Ok(())
            }
            (CopyDirection::ToStdout, target) => self.copy_out(copy, target, prepared, alone).await,
            (CopyDirection::FromStdin | CopyDirection::FromFile(_), CopyTarget::Query(_)) => {
                Err(SqlError::new(SqlState::SYNTAX_ERROR, "COPY FROM needs a table"))
            }
            _ => Err(SqlError::unsupported("COPY to a file, or to or from a program on the server")
                .with_hint("Use COPY … FROM STDIN or TO STDOUT, or psql's \\copy.")),
        }
    }

    async fn begin_copy_in(
        &mut self,
        copy: &Copy,
        table: TableRef,
        columns: &[String],
        alone: bool,
    ) -> Result<()> {
        if table.kind != TableKind::Table {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot copy to view \"{}\"", table.name),
            ));
        }
        let positions = column_positions(&table, columns)?;
        let names: Vec<String> = positions.iter().map(|at| table.columns[*at].name.clone()).collect();
        let types: Vec<Type> = positions.iter().map(|at| table.columns[*at].ty).collect();
        let format = CopyFormat::new(&copy.options, true)?;
        let decoder = CopyDecoder::new(format, &table.name, names.clone())?;
        let (insert, plan) = self.insert_plan(&table, &names, &types).await?;
        // Rows are inserted in batches, each a statement of its own: where triggers tell, there is
        // one batch of all rows.
        let tells = |trigger: &Trigger| {
            let of_all = !trigger.row || !trigger.transitions().is_empty();
            of_all && trigger.answers(TriggerEvent::Insert, &table, None)
        };
        let is_whole = table.triggers.iter().any(tells);
        let memory_max = self.server.config.integer("max_memory").max(0) as usize;
        let batch_bytes = if is_whole { memory_max } else { FIRST_BATCH_BYTES };
        let references_itself = references_itself(&table);
        let distribution = match table.distribution {
            archipel_sql::catalog::Distribution::Column { column, .. } => {
                positions.iter().position(|at| *at == usize::from(column))
            }
            _ => None,
        };
        self.copy_in = Some(Box::new(CopyIn {
            decoder,
            table,
            insert,
            plan,
            types,
            distribution,
            rows: Vec::new(),
            first_line: 0,
            bytes: 0,
            batch_bytes,
            is_whole,
            references_itself,
            unchecked: Vec::new(),
            total: 0,
            committed: 0,
            alone,
            script: None,
            simple: false,
        }));
        Ok(())
    }

    /// `INSERT INTO table (columns) VALUES ($1, …)`, through the binder like any INSERT.
    async fn insert_plan(
        &mut self,
        table: &TableRef,
        names: &[String],
        types: &[Type],
    ) -> Result<(Arc<Prepared>, Arc<RowPlan>)> {
        use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
        let columns: Vec<String> = names.iter().map(|name| quote_identifier(name).to_string()).collect();
        let values: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
        let text = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            quote_qualified(&table.schema, &table.name),
            columns.join(", "),
            values.join(", ")
        );
        let declared: Vec<Oid> = types.iter().map(|ty| ty.oid).collect();
        let prepared = self.prepare_text(&text.as_str().into(), &declared).await?;
        prepared.allowed()?;
        let plan = plan_of(&prepared)?;
        Ok((prepared, plan))
    }

    /// Compiles the INSERT anew: the table was defined anew, or lives elsewhere.
    fn renew_insert(&mut self) -> Result<Arc<RowPlan>> {
        let before = self.copy_in.as_ref().map(|copy| copy.insert.clone());
        let before = before.ok_or_else(|| SqlError::internal("there is no COPY"))?;
        let insert = self.renew(&before)?;
        insert.allowed()?;
        let plan = plan_of(&insert)?;
        let state = self.catalog_state();
        if let Some(copy) = &mut self.copy_in {
            copy.plan = plan.clone();
            copy.insert = insert;
            // It may reference itself by now.
            if let Some(table) = state.catalog.table_by_oid(copy.table.oid) {
                copy.references_itself = references_itself(&table);
                copy.table = table;
            }
        }
        Ok(plan)
    }

    /// A message while COPY takes data.
    pub(super) async fn copy_message(&mut self, message: Message<'_>) -> Flow {
        let result = match message {
            Message::CopyData(data) => self.copy_data(data).await,
            Message::CopyDone => {
                let result = self.copy_done().await;
                if result.is_ok() {
                    return self.copy_finished().await;
                }
                result
            }
            Message::CopyFail(reason) => {
                Err(SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {reason}")))
            }
            // The client may send Flush or Sync here, as PostgreSQL allows.
            Message::Flush | Message::Sync => Ok(()),
            Message::Terminate => return Flow::Close,
            _ => Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                "unexpected message type during COPY from stdin",
            )),
        };
        if let Err(error) = result {
            let simple = self.abandon_copy();
            self.fail(&error).await;
            if simple {
                self.end_script().await;
            } else {
                self.skip_until_sync = true;
            }
        }
        Flow::Continue
    }

    fn abandon_copy(&mut self) -> bool {
        self.copy_in.take().is_some_and(|copy| copy.script.is_some() || copy.simple)
    }

    async fn copy_finished(&mut self) -> Flow {
        let Some(copy) = self.copy_in.take() else { return Flow::Continue };
        self.output.command_complete_count("COPY", copy.total);
        if let Some(script) = copy.script {
            if let Err(error) = Box::pin(self.run_script(script)).await {
                self.fail(&error).await;
            }
            if self.copy_in.is_none() {
                self.end_script().await;
            } else {
                self.flush().await;
            }
        } else if copy.simple {
            self.end_script().await;
        }
        Flow::Continue
    }

    /// Says that the COPY just begun came in a simple query.
    pub(super) fn mark_copy_simple(&mut self) {
        if let Some(copy) = &mut self.copy_in {
            copy.simple = true;
        }
    }

    pub(super) async fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        if self.entry().is_cancelled() {
            return Err(self.entry().cancel_error());
        }
        let Some(copy) = &mut self.copy_in else { return Ok(()) };
        copy.decoder.push(data);
        self.copy_rows(false).await
    }

    pub(super) async fn copy_done(&mut self) -> Result<()> {
        if let Some(copy) = &mut self.copy_in {
            copy.decoder.finish();
        }
        self.copy_rows(true).await
    }

    async fn copy_rows(&mut self, last: bool) -> Result<()> {
        loop {
            let host = self.host();
            let context = self.context(&host);
            let Some(copy) = &mut self.copy_in else { return Ok(()) };
            let full = loop {
                if copy.bytes >= copy.batch_bytes {
                    if copy.is_whole {
                        let error = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory");
                        return Err(error.with_detail(
                            "All rows of a COPY are kept until its end where statement triggers fire.",
                        ));
                    }
                    break true;
                }
                let Some(row) =
                    copy.decoder.next_row().map_err(|error| copy_detail(error, copy.committed))?
                else {
                    break false;
                };
                if copy.rows.is_empty() {
                    copy.first_line = row.line();
                }
                let mut values = Vec::with_capacity(copy.types.len());
                for (index, ty) in copy.types.iter().enumerate() {
                    let value = match row.field(index) {
                        None => Datum::Null,
                        Some(text) => {
                            copy.bytes += text.len();
                            io::text_in(text, *ty, &context).map_err(|mut error| {
                                error.fields_mut().context = Some(row.context(index));
                                copy_detail(error, copy.committed)
                            })?
                        }
                    };
                    values.push(value);
                }
                copy.bytes += size_of_val(&values[..]);
                copy.rows.push(values);
            };
            let ends = last && !full;
            // Statement triggers fire for no rows, too.
            let needed = !copy.rows.is_empty() || !copy.unchecked.is_empty() || copy.is_whole;
            if full || (ends && needed) {
                self.copy_batch(!full).await?;
            }
            if !full {
                return Ok(());
            }
        }
    }

    /// Inserts the rows gathered so far.
    async fn copy_batch(&mut self, last: bool) -> Result<()> {
        let Some(copy) = &mut self.copy_in else { return Ok(()) };
        let rows = std::mem::take(&mut copy.rows);
        let (plan, table, first_line) = (copy.plan.clone(), copy.table.clone(), copy.first_line);
        let (first, committed) = (copy.total == 0, copy.committed);
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
        let (mut plan, mut rows, mut recompiles) = (plan, rows, 0);
        let mut completed = loop {
            let (host, now) = (self.host(), self.transaction.start());
            let run = LoadRun {
                plan,
                rows,
                host,
                now,
                constraints: self.transaction.is_open().then(|| self.transaction.constraint_modes()),
                unfinished: !last,
                deferred: Vec::new(),
                notices: Vec::new(),
                sequences: Vec::new(),
                notifications: Default::default(),
                ticket: None,
                one_shot: self.transaction.interactive().is_none(),
                failed_row: None,
                error: None,
            };
            let options =
                SubmitOptions { transaction: self.transaction.interactive(), ..SubmitOptions::default() };
            let submission = self.server.engine.submit(run, options);
            let completed = self.cancellable(submission).await;
            if completed.outcome.result != Err(Stop::Recompile) || recompiles == RECOMPILES_MAX {
                break completed;
            }
            recompiles += 1;
            rows = completed.program.rows;
            self.await_definitions().await;
            plan = self.renew_insert()?;
        };
        self.depend_on(completed.outcome.depends_on);
        for notice in std::mem::take(&mut completed.program.notices) {
            self.notice(severity_of(notice.severity), &notice.error);
        }
        if let Err(stop) = completed.outcome.result {
            let mut error = match completed.program.error {
                Some(error) => error,
                None => self.stop_error(stop),
            };
            if let Some(row) = completed.program.failed_row {
                let place = format!("COPY {}, line {}", table.name, first_line + row as u64);
                error.fields_mut().context.get_or_insert(place);
            }
            return Err(copy_detail(error, committed));
        }
        self.remember_sequences(&std::mem::take(&mut completed.program.sequences));
        let said = std::mem::take(&mut completed.program.notifications);
        self.take_said(said, completed.program.ticket.take(), completed.outcome.depends_on)?;
        self.keep_unchecked(std::mem::take(&mut completed.program.deferred), &table);
        if last {
            self.check_copied().await.map_err(|error| copy_detail(error, committed))?;
        }
        let in_transaction = self.transaction.interactive().is_some();
        if let Some(copy) = &mut self.copy_in {
            copy.total += count;
            if !in_transaction {
                copy.committed += count;
            }
        }
        if !last {
            // Other sessions and the partitions of this thread come first.
            tokio::task::yield_now().await;
        }
        Ok(())
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
    async fn pre_split(&mut self, plan: &RowPlan, table: &TableRef, rows: &[Vec<Datum>], column: usize) {
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

fn plan_of(insert: &Prepared) -> Result<Arc<RowPlan>> {
    match &insert.body {
        Body::Rows(plan) if matches!(plan.bound, BoundStatement::Insert(_)) => Ok(plan.clone()),
        _ => Err(SqlError::internal("an INSERT was prepared as something else")),
    }
}

/// Column numbers of a COPY's column list; all columns without one.
pub(super) fn column_positions(table: &TableRef, names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() {
        // Generated columns make their own values.
        let given = table.columns.iter().enumerate().filter(|(_, column)| column.generated.is_none());
        return Ok(given.map(|(at, _)| at).collect());
    }
    let mut positions: Vec<usize> = Vec::with_capacity(names.len());
    for name in names {
        let at = table.column_index(name).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
            )
        })?;
        if table.columns[usize::from(at)].generated.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{name}\" is a generated column"),
            )
            .with_detail("Generated columns cannot be used in COPY."));
        }
        if positions.contains(&usize::from(at)) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        positions.push(usize::from(at));
    }
    Ok(positions)
}

/// Says what stays of a COPY that committed batch by batch.
fn copy_detail(error: SqlError, committed: u64) -> SqlError {
    if committed == 0 || error.fields().detail.is_some() {
        return error;
    }
    error.with_detail(format!("The first {committed} rows were committed before the error; a transaction block or archipel.atomic_copy makes COPY all or nothing."))
}
