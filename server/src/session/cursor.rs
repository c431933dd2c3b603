//! DECLARE, FETCH, MOVE and CLOSE: a query whose rows are asked for bit by bit.
//!
//! The query runs when the cursor is declared, and its rows are kept: the cursor shows the
//! database as it was then, as PostgreSQL's insensitive cursors do. What fails over the rows is kept
//! too, for FETCH to tell.

use std::sync::Arc;

use archipel_planner::bound::{BoundStatement, OutputColumn};
use archipel_planner::native::cursor::{CursorRows, OpenCursor};
use archipel_sql::ast::{DeclareCursor, Fetch};
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};

use super::Session;
use super::analytic::Analytic;
use super::host::CursorShown;
use crate::encode::{Formats, RowEncoder, RowsTo};
use crate::statement::{Body, Prepared, RowPlan};

/// Whether a query fails because of what its rows hold: classes 21, 22 and P0.
fn is_of_rows(error: &SqlError) -> bool {
    ["21", "22", "P0"].iter().any(|class| error.state().as_str().starts_with(class))
}

impl Session {
    /// Lets the statement that comes see in `pg_cursors` what is open.
    pub(super) fn show_cursors(&self) {
        if self.cursors.is_unused() {
            return;
        }
        let shown = self.cursors.iter().map(|(name, cursor)| CursorShown {
            name: name.to_owned(),
            text: cursor.text.clone(),
            hold: cursor.hold,
            scroll: cursor.backward,
            at: cursor.at,
        });
        *self.memory.cursors.lock() = shown.collect();
    }

    pub(super) async fn declare_cursor(&mut self, declare: &DeclareCursor, alone: bool) -> Result<()> {
        if !declare.hold && !self.transaction.is_open() && alone {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if self.cursors.has(&declare.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{}\" already exists", declare.name),
            ));
        }
        let text: Arc<str> = declare.text.as_str().into();
        let statements = archipel_sql::parser::parse(&text)?;
        let prepared = self.prepare_parsed(&text, statements, &[])?;
        prepared.allowed()?;
        let (Body::Rows(plan), Some(columns)) = (&prepared.body, &prepared.columns) else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DECLARE CURSOR needs a query"));
        };
        let is_lazy = match &plan.bound {
            BoundStatement::Query(query) => query.rel.is_over_rows() || !plan.read_only,
            _ => true,
        };
        let (rows, failure) = match is_lazy && !declare.hold && self.transaction.is_open() {
            true => self.rows_or_failure(&prepared, plan, alone).await?,
            false => (self.cursor_rows(&prepared, plan, alone).await?, None),
        };
        let count = rows.len();
        let width = columns.len();
        let rows = CursorRows { values: rows.into_iter().flatten().collect(), width, count };
        let mut cursor = OpenCursor::new(columns.clone(), rows, declare.scroll != Some(false));
        let scroll = match declare.scroll {
            None => "",
            Some(true) => "SCROLL ",
            Some(false) => "NO SCROLL ",
        };
        let hold = if declare.hold { " WITH HOLD" } else { "" };
        let name = quote_identifier(&declare.name);
        cursor.text = format!("DECLARE {name} {scroll}CURSOR{hold} FOR {}", declare.text).into();
        cursor.at = self.transaction.start().unwrap_or_else(crate::server::now);
        cursor.hold = declare.hold;
        cursor.failure = failure;
        self.cursors.open(declare.name.clone(), cursor);
        Ok(())
    }

    async fn cursor_rows(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &Arc<RowPlan>,
        alone: bool,
    ) -> Result<Vec<Vec<Datum>>> {
        let analytic = match self.is_analytic(plan) {
            true => self.run_analytic(plan, Vec::new(), &RowsTo::Kept, false).await?,
            false => Analytic::Native(Vec::new()),
        };
        match analytic {
            Analytic::Ran(_, rows) => Ok(rows),
            Analytic::Native(params) => {
                self.enter_transaction(alone);
                let run = self.statement_run(plan.clone(), params, RowsTo::Kept);
                Ok(self.run_to_end(prepared, run).await?.1)
            }
        }
    }

    /// The rows of a cursor's query; or what it fails with, as if it had not run.
    async fn rows_or_failure(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &Arc<RowPlan>,
        alone: bool,
    ) -> Result<(Vec<Vec<Datum>>, Option<Arc<SqlError>>)> {
        if !self.is_analytic(plan) {
            // Before the savepoint: a transaction that begins inside of one is not READ ONLY to the engine.
            self.enter_transaction(alone);
        }
        let savepoints = self.transaction.savepoints();
        self.set_savepoint("");
        let mut rows = self.cursor_rows(prepared, plan, alone).await.map(|rows| (rows, None));
        if let Err(error) = &rows
            && is_of_rows(error)
            && self.transaction.savepoints() > savepoints
        {
            let failure = Arc::new(error.clone());
            rows = self.rollback_to(savepoints).await.map(|()| (Vec::new(), Some(failure)));
        }
        self.transaction.release(savepoints);
        rows
    }

    /// The columns FETCH answers.
    pub(super) fn cursor_columns(&self, fetch: &Fetch) -> Result<Option<Vec<OutputColumn>>> {
        let cursor = self.cursors.get(&fetch.cursor)?;
        Ok((!fetch.move_only).then(|| cursor.columns.to_vec()))
    }

    /// Moves a cursor and, for FETCH, appends the rows passed; answers how many.
    pub(super) fn fetch(&mut self, fetch: &Fetch, formats: &Formats) -> Result<u64> {
        let cursor = self.cursors.get_mut(&fetch.cursor)?;
        if cursor.spent {
            let message = format!("portal \"{}\" cannot be run", fetch.cursor);
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        let places = cursor.advance(fetch.direction)?;
        let count = places.len() as u64;
        if !fetch.move_only {
            let encoder = RowEncoder { columns: cursor.columns.clone(), formats: formats.clone() };
            let visible = cursor.columns.len();
            let rows: Vec<Vec<Datum>> =
                places.into_iter().map(|place| cursor.rows.row(place)[..visible].to_vec()).collect();
            self.send_rows(&encoder, &rows);
        }
        Ok(count)
    }

    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.cursors.clear(),
            Some(name) => self.cursors.close(name)?,
        }
        Ok(())
    }
}
