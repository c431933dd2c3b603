//! COPY … TO STDOUT, and to files and programs of the server ([`super::sink`]).

use std::sync::Arc;

use archipel_planner::bound::OutputColumn;
use archipel_sql::ast::{Copy, CopyColumns, CopyKind, CopyOptions, CopyTarget, QualifiedName, Statement};
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::{Relation, TableKind, TableRef};
use archipel_sql::copy::{CopyEncoder, CopyFormat};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Type;

use super::server_file::Place;
use super::target::{column_positions, require_binary, require_converted};
use crate::encode::RowsTo;
use crate::run::copy_rows::{CopyForm, CopyRows};
use crate::run::statement::{RowsLeave, Streaming};
use crate::session::Session;
use crate::session::execute::analytic::Analytic;
use crate::session::utility::in_whole;
use crate::statement::{Body, Prepared, RowPlan};

impl Session {
    /// The table of a COPY TO: one with rows of its own.
    fn table_to_copy(&mut self, name: &QualifiedName) -> Result<TableRef> {
        self.require_schema_of(name)?;
        let host = self.host();
        let path = self.search_path();
        let refused = |message: String| SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
        let is_filtered =
            |table: &TableRef| host.rights().is_under_row_security(table, host.settings.row_security);
        let table = match host.catalog.catalog.require_relation(name, &path)? {
            Relation::Table(table) => table,
            Relation::Sequence(sequence) => {
                return Err(refused(format!("cannot copy from sequence \"{}\"", sequence.name)));
            }
            index => return Err(refused(format!("\"{}\" is an index", index.name()))),
        };
        let what = match table.kind {
            TableKind::View => "view",
            // PostgreSQL copies ONLY its rows by a query then, of which there are none.
            _ if table.is_partitioned() && !is_filtered(&table)? => "partitioned table",
            _ => return Ok(table),
        };
        Err(refused(format!("cannot copy from {what} \"{}\"", table.name))
            .with_hint("Try the COPY (SELECT ...) TO variant."))
    }

    /// The query of a table's own rows, of these columns or of all that are not generated.
    fn table_query(&mut self, table: &TableRef, columns: &[String]) -> Result<String> {
        let host = self.host();
        let columns: Vec<String> = column_positions(table, columns)?
            .into_iter()
            .map(|at| quote_identifier(&table.columns[at].name).to_string())
            .collect();
        let name = quote_qualified(&table.schema, &table.name);
        // The rows of heirs are copied with them.
        let has_others = table.is_partitioned() || host.catalog.catalog.has_heirs(table.oid);
        let only = if has_others { "ONLY " } else { "" };
        Ok(format!("SELECT {} FROM {only}{name}", columns.join(", ")))
    }

    pub(in crate::session) async fn copy_out(
        &mut self,
        copy: &Copy,
        target: &CopyTarget,
        outer: &Arc<Prepared>,
        alone: bool,
    ) -> Result<()> {
        let table = match target {
            CopyTarget::Table { name, .. } => Some(self.table_to_copy(name)?),
            CopyTarget::Query(_) => None,
        };
        let format = CopyFormat::new(&CopyOptions::read(&copy.options, false)?, false, self.encoding())?;
        require_converted(&format, false)?;
        let mut before = "";
        let text: Arc<str> = match (target, &table) {
            (CopyTarget::Query(query), _) => {
                before = &outer.text[..query.range.start];
                outer.text[query.range.clone()].into()
            }
            (CopyTarget::Table { columns, .. }, Some(table)) => self.table_query(table, columns)?.into(),
            (CopyTarget::Table { .. }, None) => return Err(SqlError::internal("COPY of no table")),
        };
        let shift = |error: SqlError| in_whole(error, before);
        let statements = self.read(&text).await.map_err(shift)?;
        if statements.iter().any(|parsed| matches!(parsed.statement, Statement::Merge(_))) {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "MERGE not supported in COPY"));
        }
        let prepared = self.prepare_parsed(&text, statements, &[]).await.map_err(shift)?;
        prepared.allowed()?;
        let (Body::Rows(plan), Some(columns)) = (&prepared.body, &prepared.columns) else {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "COPY query must have a RETURNING clause",
            ));
        };
        let rows = rows_of(format, table.as_ref(), columns)?;
        let place = Place::of(&copy.direction);
        if !plan.is_read_only() || self.transaction.is_open() {
            // What cannot be written after all was not changed either.
            self.enter_transaction(alone && place.is_none());
        }
        let copied = match place {
            Some(place) => {
                self.open_copy_to(place).await?;
                let copied = self.run_copy_out(&prepared, plan, rows).await;
                self.close_copy_to(copied).await?
            }
            None => self.copy_to_client(&prepared, plan, rows, columns.len()).await?,
        };
        self.output.command_complete_count("COPY", copied);
        Ok(())
    }

    /// Sends the rows to the client. Those before an error stay sent, as PostgreSQL's do, which computes each
    /// row when the one before it is gone: what the client has got is whole rows, and no CopyDone.
    async fn copy_to_client(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &Arc<RowPlan>,
        rows: CopyRows,
        columns: usize,
    ) -> Result<u64> {
        let (start, flushes) = (self.output.len(), self.flushes);
        self.output.copy_out_response(columns, rows.is_binary());
        let copied = self.run_copy_out(prepared, plan, rows).await;
        if copied.is_ok() {
            self.output.copy_done();
        } else if self.reshaped {
            // It begins once more, unless the client has seen it begin.
            if self.flushes == flushes {
                self.output.truncate(start);
            } else {
                self.reshaped = false;
            }
        }
        copied
    }

    /// Runs the query of a COPY, and answers how many rows it has encoded.
    async fn run_copy_out(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &Arc<RowPlan>,
        rows: CopyRows,
    ) -> Result<u64> {
        self.encode_more(|out| rows.begin(out))?;
        let rows_to = RowsTo::Copy(rows);
        let analytic = match self.is_analytic(plan) {
            true => match self.run_analytic(plan, Vec::new(), &rows_to, RowsLeave::Early).await? {
                Analytic::Native(_) => None,
                Analytic::Ran(ran, _) => Some(ran.rows),
            },
            false => None,
        };
        let (binary, copied) = match analytic {
            Some(copied) => (rows_to.is_binary_copy(), copied),
            None => {
                let binary = rows_to.is_binary_copy();
                let mut run = self.statement_run(plan.clone(), Vec::new(), rows_to);
                if self.may_stream() {
                    run.streaming = Streaming::MayStream;
                }
                (binary, self.run_to_end(prepared, run).await?.0.rows)
            }
        };
        if binary {
            self.encode_more(|out| {
                CopyRows::end(copied, out);
                Ok(())
            })?;
        }
        Ok(copied)
    }

    /// Appends whole messages to the output.
    fn encode_more(&mut self, encode: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let mut out = self.output.take();
        let encoded = encode(&mut out);
        self.output.restore(out);
        encoded
    }
}

/// The form of the rows of these columns: of a table's, or of a query's.
fn rows_of(format: CopyFormat, table: Option<&TableRef>, columns: &Arc<[OutputColumn]>) -> Result<CopyRows> {
    let columns = columns.clone();
    if format.kind == CopyKind::Binary {
        let types: Vec<Type> = columns.iter().map(|column| column.ty).collect();
        require_binary(&types, "output")?;
        return Ok(CopyRows { form: CopyForm::Binary, columns, encoding: format.encoding });
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    match (&format.force_quote, table) {
        (Some(CopyColumns::Some(forced)), Some(table)) => drop(column_positions(table, forced)?),
        (Some(CopyColumns::Some(forced)), None) => require_columns(forced, &names)?,
        (Some(CopyColumns::All) | None, _) => {}
    }
    let encoding = format.encoding;
    Ok(CopyRows { form: CopyForm::Text(CopyEncoder::new(format, names)?), columns, encoding })
}

/// Refuses columns that a query does not have, or that are named twice.
fn require_columns(forced: &[String], names: &[String]) -> Result<()> {
    for (at, name) in forced.iter().enumerate() {
        if !names.contains(name) {
            let message = format!("column \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        }
        if forced[..at].contains(name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
    }
    Ok(())
}
