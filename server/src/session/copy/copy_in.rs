//! COPY … FROM STDIN, and from files and programs of the server ([`super::source`]).
//!
//! Rows are decoded as they arrive and inserted in batches through the table's INSERT plan, so
//! defaults, checks and indexes are those of INSERT. A COPY whose data fits into the first
//! batch (8 MiB) is one transaction. A larger one outside a transaction block commits batch by
//! batch, so that a bulk load neither holds its partitions nor its memory to the end; if it
//! then fails, the error's DETAIL says how many rows stay. Inside BEGIN … COMMIT, and with
//! `archipel.atomic_copy`, every COPY is all or nothing: its rows are then uncommitted versions
//! to the end, at several times the memory and time.
//!
//! What is wrong with the form of a row is told when the row comes, and so is a NULL where none may be. Other
//! constraints are looked at when the batch of the row is written, or when a row behind it has no form.
//!
//! The first batch also shows how the distribution column spreads: its group is split at
//! quantiles of that sample before anything is inserted, so that the load ends on all
//! executors.

use std::sync::Arc;

use archipel_sql::ast::{Copy, CopyDirection, CopyKind, CopyOptions, CopyTarget, QualifiedName};
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{Column, Identity, TableRef, Trigger, TriggerEvent};
use archipel_sql::copy::CopyFormat;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::memory;
use archipel_sql::types::{Oid, Type};

use super::copy_batch::{copy_detail, plan_of};
use super::server_file::Place;
use super::state::{COPY_CONTEXT, CopyIn, CopySent, Fill, references_itself};
use super::target::{column_positions, decoder_of, needed_columns, require_converted};
use crate::run::load::Rows;
use crate::session::Session;
use crate::session::protocol::connection::Flow;
use crate::statement::{Prepared, RowPlan};
use crate::wire::frame::Frame;
use crate::wire::message::Message;
use crate::wire::output::Severity;

/// A COPY up to this many bytes is one transaction, and a larger one's first batch.
const FIRST_BATCH_BYTES: usize = 8 << 20;

impl Session {
    /// Runs COPY. Data for COPY FROM STDIN arrives in messages to come.
    pub(in crate::session) async fn copy(
        &mut self,
        copy: &Copy,
        prepared: &Arc<Prepared>,
        alone: bool,
    ) -> Result<()> {
        self.require_server_access(&copy.direction)?;
        match (&copy.direction, &copy.target) {
            (CopyDirection::ToStdout | CopyDirection::ToFile(_) | CopyDirection::ToProgram(_), target) => {
                self.copy_out(copy, target, prepared, alone).await
            }
            (_, CopyTarget::Table { name, columns }) => self.copy_in(copy, name, columns, alone).await,
            (_, CopyTarget::Query(_)) => {
                Err(SqlError::new(SqlState::SYNTAX_ERROR, "COPY FROM needs a table"))
            }
        }
    }

    async fn copy_in(
        &mut self,
        copy: &Copy,
        name: &QualifiedName,
        columns: &[String],
        alone: bool,
    ) -> Result<()> {
        let table = self.table_to_copy_to(name)?;
        if let Some(filter) = &copy.filter {
            self.copied_condition(&table, filter)?;
        }
        if !is_temporary_schema(&table.schema) {
            self.require_writable("COPY FROM")?;
        }
        let options = CopyOptions::read(&copy.options, true)?;
        let format = CopyFormat::new(&options, true, self.encoding())?;
        require_converted(&format, true)?;
        let positions = column_positions(&table, columns)?;
        let binary = format.kind == CopyKind::Binary;
        // PostgreSQL asks the client for rows before it finds that there is no place for them.
        if let Err(refused) = self.takes_rows(&table, options.freeze) {
            if copy.direction == CopyDirection::FromStdin {
                self.output.copy_in_response(positions.len(), binary);
            }
            return Err(refused);
        }
        self.require_settled_table(&table)?;
        self.begin_copy_in(copy, format, table, positions, alone).await?;
        match Place::of(&copy.direction) {
            Some(place) => self.copy_from_server(place).await,
            None => {
                if let Some(begun) = &self.copy_in {
                    self.output.copy_in_response(begun.types.len(), binary);
                }
                Ok(())
            }
        }
    }

    async fn begin_copy_in(
        &mut self,
        copy: &Copy,
        format: CopyFormat,
        table: TableRef,
        positions: Vec<usize>,
        alone: bool,
    ) -> Result<()> {
        let names: Vec<String> = positions.iter().map(|at| table.columns[*at].name.clone()).collect();
        let types: Vec<Type> = positions.iter().map(|at| table.columns[*at].ty).collect();
        let decoder = decoder_of(format, &table, &names, &types)?;
        let (insert, mut plan) = self.insert_plan(&table, &names, &types).await?;
        let host = self.host();
        if host.rights().is_under_row_security(&table, host.settings.row_security)? {
            let message = "COPY FROM not supported with row-level security";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_hint("Use INSERT statements instead."));
        }
        let filter = copy.filter.clone().map(Arc::new);
        if let Some(filter) = &filter {
            plan = self.filtered_plan(&insert, &table, filter)?;
        }
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
        let needed = needed_columns(&table, &positions, filter.is_some());
        let distribution = match table.distribution {
            archipel_sql::catalog::Distribution::Column { column, .. } => {
                positions.iter().position(|at| *at == usize::from(column))
            }
            _ => None,
        };
        let rows = Rows::new(types.len());
        self.copy_in = Some(Box::new(CopyIn {
            decoder,
            table,
            insert,
            plan,
            filter,
            types,
            positions,
            distribution,
            rows,
            running: None,
            first_line: 0,
            contexts: Vec::new(),
            bytes: 0,
            batch_bytes,
            is_whole,
            takes_long: false,
            needed,
            references_itself,
            unchecked: Vec::new(),
            total: 0,
            committed: 0,
            alone,
            sent: CopySent::Extended,
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
        // COPY brings values for identity columns whatever they say.
        let always =
            |column: &Column| column.identity == Some(Identity::Always) && names.contains(&column.name);
        let overriding = if table.columns.iter().any(always) { "OVERRIDING SYSTEM VALUE " } else { "" };
        let text = format!(
            "INSERT INTO {} ({}) {overriding}VALUES ({})",
            quote_qualified(&table.schema, &table.name),
            columns.join(", "),
            values.join(", ")
        );
        let declared: Vec<Oid> = types.iter().map(|ty| ty.oid).collect();
        let prepared = self.prepare_text(&text.as_str().into(), &declared).await?;
        prepared.allowed()?;
        prepared.planned()?;
        let plan = plan_of(&prepared)?;
        Ok((prepared, plan))
    }

    /// A message while COPY takes data.
    /// A message to a COPY that takes rows.
    pub(in crate::session) async fn copy_message(&mut self, frame: Frame<'_>) -> Flow {
        let result = match frame.kind {
            b'd' => self.copy_data(frame.body).await,
            b'c' => {
                let result = self.copy_done().await;
                if result.is_ok() {
                    return self.copy_finished().await;
                }
                result
            }
            b'f' => Err(self.told_to_fail(frame)),
            // The client may send Flush or Sync here, as PostgreSQL allows.
            b'H' | b'S' => Ok(()),
            kind => return self.lose_step(kind).await,
        };
        match result {
            Err(error) => self.fail_copy(error).await,
            // What triggers say of the rows so far.
            Ok(()) => self.flush_early().await,
        }
        Flow::Continue
    }

    /// The error of CopyFail.
    fn told_to_fail(&self, frame: Frame<'_>) -> SqlError {
        self.at_next_line(match frame.message() {
            Ok(Message::CopyFail(reason)) => {
                SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {reason}"))
            }
            Ok(_) => SqlError::internal("CopyFail is another message"),
            Err(error) => error,
        })
    }

    /// An error between the rows of a COPY.
    fn at_next_line(&self, mut error: SqlError) -> SqlError {
        error.fields_mut().context = self.copy_in.as_ref().map(|copy| copy.decoder.next_place());
        error
    }

    /// Ends the session of a client that sends what no COPY takes: nobody knows where its data ends.
    pub(in crate::session) async fn lose_step(&mut self, kind: u8) -> Flow {
        let message = format!("unexpected message type 0x{kind:02X} during COPY from stdin");
        let error = self.at_next_line(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        let error = self.copy_failed(error).await;
        self.timer = None;
        self.abandon_copy();
        self.fail(&error).await;
        let message = "terminating connection because protocol synchronization was lost";
        self.output.report(Severity::Fatal, &SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        self.flush().await;
        Flow::Close
    }

    /// Ends the COPY that takes data with an error. What the client still sends of them is passed over.
    pub(in crate::session) async fn fail_copy(&mut self, error: SqlError) {
        let error = self.copy_failed(error).await;
        self.timer = None;
        let simple = self.abandon_copy();
        self.fail(&error).await;
        if simple {
            self.end_script().await;
        } else {
            self.skip_until_sync = true;
            self.flush().await;
        }
    }

    /// Resolves when the session is asked to stop that waits for what its client sends next: for the data
    /// of a COPY, or for the rest of a statement whose time runs. Where it ends, its socket tells.
    pub(in crate::session) async fn wait_stopped(&self) {
        let runs = self.copy_in.is_some() || self.timer.is_some();
        if runs {
            self.entry().cancel_asked().await;
        }
        if !runs || self.entry().is_terminated() {
            std::future::pending::<()>().await;
        }
    }

    /// Ends what waits for more from the client, if it was asked to stop: a COPY, or a statement between
    /// its messages that has used up its time.
    pub(in crate::session) async fn end_stopped_wait(&mut self) {
        let entry = self.entry();
        if !entry.is_cancelled() || entry.is_terminated() {
            return;
        }
        let error = entry.cancel_error();
        if self.copy_in.is_some() {
            self.fail_copy(error).await;
        } else if self.timer.is_some() {
            if entry.has_timed_out() {
                self.refuse(error).await;
                self.flush().await;
            } else {
                // Between messages there is nothing that a request could stop.
                entry.forget_cancellation();
            }
        }
    }

    /// The error to tell of a COPY that ends with `error`, when nothing of it runs any more.
    pub(super) async fn copy_failed(&mut self, error: SqlError) -> SqlError {
        // Of two errors that of the earlier rows.
        let error = self.finish_batch().await.err().unwrap_or(error);
        let committed = self.copy_in.as_ref().map_or(0, |copy| copy.committed);
        copy_detail(error, committed)
    }

    fn abandon_copy(&mut self) -> bool {
        self.copy_in.take().is_some_and(|copy| !matches!(copy.sent, CopySent::Extended))
    }

    async fn copy_finished(&mut self) -> Flow {
        let Some(copy) = self.copy_in.take() else { return Flow::Continue };
        self.output.command_complete_count("COPY", copy.total);
        match copy.sent {
            CopySent::Script(script) => {
                self.start_timer();
                if let Err(error) = Box::pin(self.run_script(script)).await {
                    self.fail(&error).await;
                }
                if self.copy_in.is_none() {
                    self.end_script().await;
                } else {
                    self.flush().await;
                }
            }
            CopySent::Simple => self.end_script().await,
            CopySent::Extended => {}
        }
        Flow::Continue
    }

    /// Says that the COPY just begun came in a simple query.
    pub(in crate::session) fn mark_copy_simple(&mut self) {
        if let Some(copy) = &mut self.copy_in {
            copy.sent = CopySent::Simple;
        }
    }

    pub(in crate::session) async fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        if self.entry().is_cancelled() {
            return Err(self.entry().cancel_error());
        }
        let Some(copy) = &mut self.copy_in else { return Ok(()) };
        memory::require(data.len(), COPY_CONTEXT)?;
        copy.decoder.push(data)?;
        self.copy_rows(false).await
    }

    pub(in crate::session) async fn copy_done(&mut self) -> Result<()> {
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
            let fill = match copy.gather(&context) {
                Ok(fill) => fill,
                Err(error) => return Err(self.of_earlier_rows(error).await),
            };
            let full = fill != Fill::Waits;
            let ends = last && !full;
            // Statement triggers fire for no rows, too.
            let needed = !copy.rows.is_empty() || !copy.unchecked.is_empty() || copy.is_whole;
            if full || (ends && needed) {
                self.copy_batch(!full).await?;
            }
            if ends || fill == Fill::Fails {
                self.finish_batch().await?;
            }
            if !full {
                return Ok(());
            }
        }
    }
}
