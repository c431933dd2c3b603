//! COPY … TO STDOUT.

use std::sync::Arc;

use archipel_sql::ast::{Copy, CopyTarget, QualifiedName, Statement};
use archipel_sql::catalog::TableKind;
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::copy::{CopyEncoder, CopyFormat};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::copy_in::column_positions;
use crate::encode::RowsTo;
use crate::run::statement::{RowsLeave, Streaming};
use crate::session::Session;
use crate::session::execute::analytic::Analytic;
use crate::session::utility::in_whole;
use crate::statement::{Body, Prepared};

impl Session {
    /// The query of a table's own rows, of these columns or of all that are not generated.
    fn table_query(&mut self, name: &QualifiedName, columns: &[String]) -> Result<String> {
        let host = self.host();
        let path = self.search_path();
        let table = host.catalog.catalog.require_table(name, &path)?;
        let refused = |what: &str| {
            let message = format!("cannot copy from {what} \"{}\"", table.name);
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_hint("Try the COPY (SELECT ...) TO variant.")
        };
        if table.kind == TableKind::View {
            return Err(refused("view"));
        }
        if table.is_partitioned() {
            return Err(refused("partitioned table"));
        }
        let columns: Vec<String> = column_positions(&table, columns)?
            .into_iter()
            .map(|at| quote_identifier(&table.columns[at].name).to_string())
            .collect();
        let name = quote_qualified(&table.schema, &table.name);
        // The rows of heirs are copied with them.
        let only = if host.catalog.catalog.has_heirs(table.oid) { "ONLY " } else { "" };
        Ok(format!("SELECT {} FROM {only}{name}", columns.join(", ")))
    }

    pub(in crate::session) async fn copy_out(
        &mut self,
        copy: &Copy,
        target: &CopyTarget,
        outer: &Arc<Prepared>,
        alone: bool,
    ) -> Result<()> {
        let mut before = "";
        let text: Arc<str> = match target {
            CopyTarget::Query(query) => {
                before = &outer.text[..query.range.start];
                outer.text[query.range.clone()].into()
            }
            CopyTarget::Table { name, columns } => self.table_query(name, columns)?.into(),
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
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let encoder = CopyEncoder::new(CopyFormat::new(&copy.options, false)?, names)?;
        if !plan.is_read_only() || self.transaction.is_open() {
            self.enter_transaction(alone);
        }
        let start = self.output.len();
        self.output.copy_out_response(columns.len());
        let mut header = Vec::new();
        encoder.header(&mut header);
        if !header.is_empty() {
            // Appending to a buffer cannot fail.
            let _ = self.output.copy_data(|bytes| {
                bytes.extend_from_slice(&header);
                Ok::<(), ()>(())
            });
        }
        let rows_to = RowsTo::Copy { encoder, columns: columns.clone() };
        let analytic = match self.is_analytic(plan) {
            true => match self.run_analytic(plan, Vec::new(), &rows_to, RowsLeave::Early).await {
                Ok(Analytic::Native(_)) => None,
                Ok(Analytic::Ran(ran, kept)) => Some(Ok((ran, kept))),
                Err(error) => Some(Err(error)),
            },
            false => None,
        };
        let done = match analytic {
            Some(done) => done,
            None => {
                let mut run = self.statement_run(plan.clone(), Vec::new(), rows_to);
                if self.may_stream() {
                    run.streaming = Streaming::MayStream;
                }
                self.run_to_end(&prepared, run).await
            }
        };
        match done {
            Ok((ran, _)) => {
                self.output.copy_done();
                self.output.command_complete_count("COPY", ran.rows);
                Ok(())
            }
            Err(error) => {
                self.output.truncate(start);
                Err(error)
            }
        }
    }
}
