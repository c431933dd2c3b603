//! DECLARE, FETCH, MOVE and CLOSE: a query whose rows are asked for bit by bit.
//!
//! The query runs when the cursor is declared, and its rows are kept, or come as they are fetched
//! ([`streamed_cursor`], [`paged_cursor`]): the cursor shows the database as it was then, as
//! PostgreSQL's insensitive cursors do. What fails over the rows is kept too, for FETCH to tell. Portals
//! of the protocol are cursors as well ([`portal`]).
//!
//! WITH HOLD is a cursor like others until COMMIT. That gathers what is left of its rows, or fails with
//! what they fail with ([`Session::hold_cursors`]).
//!
//! - [`portal`]   a bound statement and how far its rows have been sent
//! - [`streamed_cursor`], [`paged_cursor`] rows that come when they are fetched
//! - [`late_columns`] columns that are computed when they are fetched
//! - [`portal_state`] what a portal is

mod late_columns;
mod paged_cursor;
pub(super) mod portal;
pub(super) mod portal_state;
pub(crate) mod streamed_cursor;

use std::sync::Arc;

use archipel_planner::bound::{BoundStatement, OutputColumn};
use archipel_planner::native::cursor::missing_cursor;
use archipel_planner::native::cursors::CursorAttributes;
use archipel_sql::ast::{DeclareCursor, Fetch, FetchDirection, Positioned, Statement, row_lock};
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::Session;
use super::execute::analytic::Analytic;
use super::host::CursorsShown;
use crate::encode::{Formats, RowEncoder, RowsTo};
use crate::run::statement::RowsLeave;
use crate::statement::cursor::cursor_over;
use crate::statement::{Body, Code, Prepared, RowPlan};

/// Whether a query fails because of what its rows hold: classes 21, 22 and P0.
pub(super) fn is_of_rows(error: &SqlError) -> bool {
    ["21", "22", "P0"].iter().any(|class| error.state().as_str().starts_with(class))
}

/// Refuses what a cursor that locks its rows cannot be.
fn require_lockable(declare: &DeclareCursor) -> Result<()> {
    let Some(lock) = declare.query.locks.first() else { return Ok(()) };
    let strength = format!("FOR {}", row_lock(lock)?.strength.as_str());
    let refused = |state: SqlState, message: String, detail: &str| {
        Err(SqlError::new(state, message).with_detail(detail))
    };
    if declare.hold {
        let message = format!("DECLARE CURSOR WITH HOLD ... {strength} is not supported");
        return refused(SqlState::FEATURE_NOT_SUPPORTED, message, "Holdable cursors must be READ ONLY.");
    }
    if declare.scroll == Some(true) {
        let message = format!("DECLARE SCROLL CURSOR ... {strength} is not supported");
        return refused(SqlState::FEATURE_NOT_SUPPORTED, message, "Scrollable cursors must be READ ONLY.");
    }
    if declare.insensitive {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {strength} is not valid");
        return refused(SqlState(*b"42P11"), message, "Insensitive cursors must be READ ONLY.");
    }
    Ok(())
}

/// The columns of a cursor, and rows of it.
type Fetched = (Arc<[OutputColumn]>, Vec<Vec<Datum>>);

impl Session {
    /// Lets the statement that comes see in `pg_cursors` what is open. The unnamed portal, which is its
    /// own mostly, is shown to queries that can ask for it.
    pub(super) fn show_cursors(&self, plan: &RowPlan) {
        let unnamed = self.unnamed_portal.as_ref().filter(|_| plan.touches_nothing());
        if self.cursors.is_unused() && unnamed.is_none() {
            if plan.touches_nothing() {
                *self.memory.cursors.lock() = CursorsShown::default();
            }
            return;
        }
        let portals = self.portals.iter().map(|(name, portal)| (name.as_str(), portal.at, portal));
        let unnamed = unnamed.map(|portal| ("", crate::clock::now(), portal));
        let bound = portals.chain(unnamed).filter(|(name, ..)| !self.cursors.has(name));
        let bound = bound.map(|(name, at, portal)| {
            let text = portal.prepared.text.clone();
            (name.to_owned(), CursorAttributes { text, hold: false, binary: false, scroll: false, at })
        });
        let open = self.cursors.attributes().clone();
        *self.memory.cursors.lock() = CursorsShown { open, bound: bound.collect() };
    }

    pub(super) async fn declare_cursor(
        &mut self,
        declare: &DeclareCursor,
        outer: &Prepared,
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<()> {
        if !declare.hold && !self.transaction.is_open() && alone {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        require_lockable(declare)?;
        if self.cursors.has(&declare.name) || self.portals.contains_key(&declare.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{}\" already exists", declare.name),
            ));
        }
        let types: Vec<Oid> = outer.params.iter().map(|ty| ty.oid).collect();
        let prepared = self.prepare_cursor(&declare.text.as_str().into(), &types).await;
        let prepared = prepared.map_err(|error| error.moved(declare.before))?;
        prepared.allowed()?;
        if prepared.params.len() > params.len() {
            // A simple query brings no values.
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        let (Body::Rows(plan), Some(_)) = (&prepared.body, &prepared.columns) else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DECLARE CURSOR needs a query"));
        };
        if let Code::Native(compiled) = &plan.code {
            compiled.planned()?;
        }
        let is_lazy = match &plan.bound {
            BoundStatement::Query(query) => query.rel.is_over_rows() || !plan.is_read_only(),
            _ => true,
        };
        let locks = !declare.query.locks.is_empty();
        let backward = declare.scroll.unwrap_or(!locks);
        let tells_later = is_lazy && self.transaction.is_open();
        // Alone its COMMIT follows at once.
        let streamed = match declare.hold && !self.transaction.is_open() && alone {
            false => self.open_streamed(&prepared, plan, &params, backward, None).await?,
            true => None,
        };
        let mut cursor = match streamed {
            Some(cursor) => {
                cursor.begins_well(|error| tells_later && is_of_rows(error))?;
                cursor
            }
            None => {
                let (rows, failure) = match tells_later {
                    true => self.rows_or_failure(&prepared, plan, params, alone).await?,
                    false => (self.cursor_rows(&prepared, plan, params, alone).await?, None),
                };
                let mut cursor = cursor_over(&prepared, rows, backward);
                cursor.failure = failure;
                cursor
            }
        };
        cursor.text = shown_text(declare).into();
        cursor.at = self.transaction.start().unwrap_or_else(crate::clock::now);
        (cursor.hold, cursor.binary, cursor.locks) = (declare.hold, declare.binary, locks);
        self.cursors.open(declare.name.clone(), cursor);
        Ok(())
    }

    async fn cursor_rows(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &Arc<RowPlan>,
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<Vec<Vec<Datum>>> {
        let analytic = match self.is_analytic(plan) {
            true => self.run_analytic(plan, params, &RowsTo::Kept, RowsLeave::AtEnd).await?,
            false => Analytic::Native(params),
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
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<(Vec<Vec<Datum>>, Option<Arc<SqlError>>)> {
        if !self.is_analytic(plan) {
            // Before the savepoint: a transaction that begins inside of one is not READ ONLY to the engine.
            self.enter_transaction(alone);
        }
        let savepoints = self.transaction.savepoints();
        self.set_savepoint("");
        let mut rows = self.cursor_rows(prepared, plan, params, alone).await.map(|rows| (rows, None));
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

    /// The columns FETCH answers; `None` if it answers no rows, or its cursor is still to come.
    pub(super) fn cursor_columns(&self, fetch: &Fetch) -> Option<Vec<OutputColumn>> {
        if fetch.move_only {
            return None;
        }
        match (self.cursors.get(&fetch.cursor), self.portals.get(&fetch.cursor)) {
            (Ok(cursor), _) => Some(cursor.columns.to_vec()),
            (Err(_), Some(portal)) => portal.columns.as_ref().map(|columns| columns.to_vec()),
            (Err(_), None) => None,
        }
    }

    /// Whether a statement of the simple protocol answers values in binary: FETCH from such a cursor.
    pub(super) fn fetches_binary(&self, prepared: &Prepared) -> bool {
        match &prepared.body {
            Body::Utility(statement) => match &**statement {
                Statement::Fetch(fetch) => self.cursors.get(&fetch.cursor).is_ok_and(|cursor| cursor.binary),
                _ => false,
            },
            Body::Rows(_) | Body::Empty => false,
        }
    }

    /// Refuses a cursor whose query has failed for somebody to see.
    fn require_unspent(&self, name: &str) -> Result<()> {
        if self.cursors.get(name)?.spent {
            let message = format!("portal \"{name}\" cannot be run");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        Ok(())
    }

    /// Moves a cursor; answers the places of the rows passed.
    async fn advance(&mut self, fetch: &Fetch) -> Result<Vec<usize>> {
        self.require_unspent(&fetch.cursor)?;
        self.bring_rows(&fetch.cursor, fetch.direction).await?;
        self.cursors.get_mut(&fetch.cursor)?.advance(fetch.direction)
    }

    /// Moves a cursor and, for FETCH, sends the rows passed; answers how many.
    pub(super) async fn fetch(&mut self, fetch: &Fetch, formats: &Formats) -> Result<u64> {
        if let FetchDirection::Forward(rows) = fetch.direction
            && rows > 0
        {
            self.require_unspent(&fetch.cursor)?;
            return self.move_forward(&fetch.cursor, rows, (!fetch.move_only).then_some(formats)).await;
        }
        let places = self.advance(fetch).await?;
        if !fetch.move_only {
            let cursor = self.cursors.get(&fetch.cursor)?.clone();
            let (columns, formats) = (cursor.columns.clone(), formats.clone());
            let encoder = RowEncoder { columns, formats, encoding: self.encoding() };
            self.send_places(&encoder, &cursor, &places)?;
        }
        Ok(places.len() as u64)
    }

    /// Moves a cursor; answers its columns and the rows passed.
    pub(super) async fn fetched(&mut self, fetch: &Fetch) -> Result<Fetched> {
        let places = self.advance(fetch).await?;
        let cursor = self.cursors.get(&fetch.cursor)?;
        let visible = cursor.columns.len();
        let rows = places.into_iter().map(|place| cursor.row(place)[..visible].to_vec()).collect();
        Ok((cursor.columns.clone(), rows))
    }

    /// UPDATE or DELETE … WHERE CURRENT OF with the key of the row that the cursor stands on.
    pub(super) async fn at_row(
        &mut self,
        positioned: &Positioned,
        prepared: &Prepared,
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<(Arc<Prepared>, Vec<Datum>)> {
        prepared.allowed()?;
        if prepared.params.len() > params.len() {
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        Box::pin(self.open_named(&positioned.cursor, alone)).await?;
        let cursor = self.cursors.get(&positioned.cursor)?.clone();
        if self.cursors.is_held(&positioned.cursor) {
            let message = format!("cursor \"{}\" is held from a previous transaction", positioned.cursor);
            return Err(SqlError::new(SqlState::INVALID_CURSOR_STATE, message));
        }
        self.prepare_at_row(positioned, prepared, &cursor, params).await
    }

    /// Gathers the rows of the cursors WITH HOLD that the transaction has opened, before it commits. Of one
    /// that does not move back those that it has passed are gone; one whose query has failed for somebody
    /// to see is closed.
    pub(super) async fn hold_cursors(&mut self) -> Result<()> {
        for name in self.cursors.to_hold() {
            let cursor = self.cursors.get_mut(&name)?;
            if cursor.spent {
                self.cursors.close(&name)?;
                continue;
            }
            cursor.forget_passed();
            if cursor.has_passed() {
                cursor.begin_again();
            }
            self.bring(&name, None).await?;
            if let Some(failure) = &self.cursors.get(&name)?.failure {
                return Err(SqlError::clone(failure));
            }
        }
        Ok(())
    }

    /// CLOSE of a cursor or a portal; of all without a name.
    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<()> {
        let Some(name) = name else {
            self.cursors.clear();
            self.portals.clear();
            return Ok(());
        };
        let bound = self.portals.remove(name).is_some();
        if self.cursors.has(name) {
            return self.cursors.close(name);
        }
        if bound { Ok(()) } else { Err(missing_cursor(name)) }
    }
}

/// The statement that declared a cursor, as pg_cursors shows it.
fn shown_text(declare: &DeclareCursor) -> String {
    let scroll = match declare.scroll {
        None => "",
        Some(true) => "SCROLL ",
        Some(false) => "NO SCROLL ",
    };
    let hold = if declare.hold { " WITH HOLD" } else { "" };
    let name = quote_identifier(&declare.name);
    format!("DECLARE {name} {scroll}CURSOR{hold} FOR {}", declare.text)
}
