//! Portals: statements that Bind has given their parameters, and how far their rows have been fetched.
//!
//! A portal whose rows are fetched bit by bit is a cursor of the session's, and so is what DECLARE and
//! routines open: Describe, Execute and Close take either, and so do FETCH, MOVE, CLOSE and WHERE
//! CURRENT OF. Rows are values, kept or brought as they are fetched ([`super::streamed_cursor`],
//! [`super::paged_cursor`]), and encoded for whoever fetches them. What Execute runs to its end goes to the
//! client without being kept.

use std::sync::Arc;

use archipel_planner::bound::{BoundStatement, OutputColumn};
use archipel_planner::native::cursor::OpenCursor;
use archipel_sql::ast::Statement;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::portal_state::{Portal, PortalState};
use crate::encode::{Formats, RowsTo};
use crate::run::statement::RowsLeave;
use crate::session::Session;
use crate::session::utility::sees_database;
use crate::statement::cursor::cursor_over;
use crate::statement::prepare::failed_transaction;
use crate::statement::{Body, Prepared, same_columns};
use crate::wire::message::unsupported_format;

/// The rows of a statement, kept.
struct Gathered {
    cursor: OpenCursor,
    tag: &'static str,
}

fn missing_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}

fn spent_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("portal \"{name}\" cannot be run"))
}

impl Session {
    fn portal_mut(&mut self, name: &str) -> Option<&mut Portal> {
        if name.is_empty() { self.unnamed_portal.as_mut() } else { self.portals.get_mut(name) }
    }

    /// The columns and formats of a portal, or of a cursor that SQL has opened.
    pub(in crate::session) fn portal_columns(
        &self,
        name: &str,
    ) -> Result<(Option<Arc<[OutputColumn]>>, Formats)> {
        let portal = if name.is_empty() { self.unnamed_portal.as_ref() } else { self.portals.get(name) };
        match (portal, self.cursors.get(name)) {
            (Some(portal), _) => Ok((portal.columns.clone(), portal.formats.clone())),
            (None, Ok(cursor)) => Ok((Some(cursor.columns.clone()), Formats::TEXT)),
            (None, Err(_)) => Err(missing_portal(name)),
        }
    }

    /// The columns a portal for a statement has: what FETCH and EXECUTE name shows when they are bound.
    pub(in crate::session) fn columns_now(
        &mut self,
        prepared: &Prepared,
    ) -> Result<Option<Arc<[OutputColumn]>>> {
        match &prepared.body {
            Body::Utility(statement)
                if matches!(**statement, Statement::Fetch(_) | Statement::Execute(_)) =>
            {
                Ok(self.utility_columns(statement)?.map(Arc::from))
            }
            _ => Ok(prepared.columns.clone()),
        }
    }

    /// Another statement is bound in its place, or its transaction is over.
    pub(in crate::session) fn drop_unnamed_portal(&mut self) {
        if let Some(Portal { state: PortalState::Open, .. }) = self.unnamed_portal.take() {
            // It may have gone already.
            let _ = self.cursors.close("");
        }
    }

    /// Close: a name that nobody has is closed, too.
    pub(in crate::session) fn close_portal(&mut self, name: &str) {
        if name.is_empty() {
            return self.drop_unnamed_portal();
        }
        self.portals.remove(name);
        if self.cursors.has(name) {
            let _ = self.cursors.close(name);
        }
    }

    /// Execute, for at most so many rows; zero: for all.
    pub(in crate::session) async fn execute_portal(
        &mut self,
        name: &str,
        rows_max: usize,
        last: bool,
        rest: &[u8],
    ) -> Result<()> {
        let Some(portal) = self.portal_mut(name) else {
            return self.fetch_portal(name, rows_max, &Formats::TEXT).await;
        };
        let (prepared, formats) = (portal.prepared.clone(), portal.formats.clone());
        if let Formats::Unsupported(code) = formats {
            return Err(unsupported_format(code));
        }
        let whole = rows_max == 0 || portal.columns.is_none();
        match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Ready(params) => {
                if whole && self.may_wait_for_sync(&prepared, last, rest) {
                    self.put_off(prepared, params, formats);
                    return Ok(());
                }
                if self.has_put_off() {
                    self.run_apart().await?;
                }
                self.begin_statement(&prepared.text);
                if whole {
                    self.execute(&prepared, params, &formats, last).await?;
                    self.step_has_run(&prepared);
                    return Ok(());
                }
                self.executor.outbox.write();
                self.open_portal(name, &prepared, params, last, last.then_some(rows_max)).await?;
                self.step_has_run(&prepared);
                self.fetch_portal(name, rows_max, &formats).await
            }
            PortalState::Open => {
                portal.state = PortalState::Open;
                self.show_activity(&prepared.text);
                self.fetch_portal(name, rows_max, &formats).await
            }
            PortalState::Done => match (&prepared.body, &portal.columns) {
                (Body::Empty, _) => {
                    self.output.empty_query_response();
                    Ok(())
                }
                // Rows are over, or have ended in an error; asking again answers none, and after an error it.
                (_, Some(_)) => {
                    if self.in_failed_transaction() {
                        return Err(failed_transaction());
                    }
                    self.output.rows_complete(prepared.tag, 0);
                    Ok(())
                }
                (_, None) => Err(spent_portal(name)),
            },
        }
    }

    /// Runs what a portal was bound to, and keeps its rows, or lets them come as they are fetched. `only`:
    /// how many are asked for at most, where nobody can come back for others.
    async fn open_portal(
        &mut self,
        name: &str,
        prepared: &Arc<Prepared>,
        params: Vec<Datum>,
        alone: bool,
        only: Option<usize>,
    ) -> Result<()> {
        self.allowed_now(prepared)?;
        if let Body::Rows(plan) = &prepared.body {
            self.show_cursors(plan);
        }
        let begun = std::time::Instant::now();
        let Gathered { mut cursor, tag } = self.gather(name, prepared, params, alone, only).await?;
        self.tell_if_slow(prepared, begun.elapsed());
        if let Some(portal) = self.portal_mut(name) {
            if !same_columns(portal.columns.as_deref(), Some(&cursor.columns[..])) {
                return Err(SqlError::changed_result_type());
            }
            portal.state = PortalState::Open;
            cursor.at = portal.at;
        }
        (cursor.tag, cursor.text) = (tag, prepared.text.clone());
        self.cursors.open(name.to_owned(), cursor);
        Ok(())
    }

    /// The rows of a statement that answers some.
    async fn gather(
        &mut self,
        name: &str,
        prepared: &Arc<Prepared>,
        params: Vec<Datum>,
        alone: bool,
        only: Option<usize>,
    ) -> Result<Gathered> {
        let statement = match &prepared.body {
            Body::Rows(_) => {
                let prepared = self.with_keys(name, prepared).await;
                let Body::Rows(plan) = &prepared.body else {
                    return Err(SqlError::internal("a query that is none"));
                };
                if let Some(cursor) = self.open_streamed(&prepared, plan, &params, false, only).await? {
                    cursor.begins_well(|_| false)?;
                    return Ok(Gathered { cursor, tag: prepared.tag });
                }
                let (_, rows) = self
                    .run_rows_to(&prepared, plan.clone(), params, RowsTo::Kept, alone, RowsLeave::AtEnd)
                    .await?;
                return Ok(Gathered { cursor: cursor_over(&prepared, rows, false), tag: prepared.tag });
            }
            Body::Utility(statement) => statement.clone(),
            Body::Empty => return Err(SqlError::internal("an empty statement answers no rows")),
        };
        if sees_database(&statement) {
            self.note_query();
        }
        let rows = match &*statement {
            Statement::Execute(execute) => {
                let (inner, params) = self.prepared_with_arguments(execute).await?;
                self.allowed_now(&inner)?;
                return Box::pin(self.gather(name, &inner, params, alone, only)).await;
            }
            Statement::Fetch(fetch) => {
                Box::pin(self.open_named(&fetch.cursor, alone)).await?;
                let (columns, rows) = self.fetched(fetch).await?;
                let mut cursor = cursor_over(prepared, rows, false);
                cursor.columns = columns;
                return Ok(Gathered { cursor, tag: prepared.tag });
            }
            Statement::Positioned(positioned) => {
                let (at_row, params) = self.at_row(positioned, prepared, params, alone).await?;
                return Box::pin(self.gather("", &at_row, params, alone, only)).await;
            }
            _ => self.utility_rows(&statement, prepared, params, alone).await?,
        };
        Ok(Gathered { cursor: cursor_over(prepared, rows, false), tag: prepared.tag })
    }

    /// The query of a named portal with the keys of its rows, which WHERE CURRENT OF may ask for.
    async fn with_keys(&mut self, name: &str, prepared: &Arc<Prepared>) -> Arc<Prepared> {
        let is_plain = match &prepared.body {
            Body::Rows(plan) => matches!(plan.bound, BoundStatement::Query(_)),
            Body::Utility(_) | Body::Empty => false,
        };
        if name.is_empty() || !is_plain || prepared.session_dependent {
            return prepared.clone();
        }
        let declared: Vec<Oid> = prepared.params.iter().map(|ty| ty.oid).collect();
        match self.prepare_cursor(&prepared.text, &declared).await {
            Ok(keyed) if keyed.params == prepared.params => keyed,
            _ => prepared.clone(),
        }
    }

    /// Lets a portal that SQL names be a cursor: it runs now, if it has not.
    pub(in crate::session) async fn open_named(&mut self, name: &str, alone: bool) -> Result<()> {
        if self.cursors.has(name) {
            return Ok(());
        }
        let Some(portal) = self.portals.get_mut(name) else { return Ok(()) };
        let Some(columns) = portal.columns.clone() else { return Ok(()) };
        let prepared = portal.prepared.clone();
        match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Ready(params) => self.open_portal(name, &prepared, params, alone, None).await,
            // It has run to its end.
            PortalState::Open | PortalState::Done => {
                let cursor = OpenCursor::new(columns, Default::default(), false);
                self.cursors.open(name.to_owned(), cursor);
                Ok(())
            }
        }
    }

    /// The next rows of an open portal or cursor, for Execute.
    async fn fetch_portal(&mut self, name: &str, rows_max: usize, formats: &Formats) -> Result<()> {
        if self.in_failed_transaction() && self.cursors.has(name) {
            return Err(failed_transaction());
        }
        let cursor = self.cursors.get(name).map_err(|_| missing_portal(name))?;
        if cursor.spent {
            return Err(spent_portal(name));
        }
        let tag = cursor.tag;
        let wanted = if rows_max == 0 { i64::MAX } else { rows_max as i64 };
        let sent = self.move_forward(name, wanted, Some(formats)).await?;
        // As PostgreSQL, it does not look past the limit: reaching it exactly suspends.
        if rows_max > 0 && sent >= rows_max as u64 {
            self.output.portal_suspended();
        } else {
            self.output.rows_complete(tag, sent);
        }
        Ok(())
    }
}
