//! Cursors and portals whose query goes on beside the session, where DataFusion runs it.
//!
//! A query that reads tables whole runs on an analytical thread, over a snapshot, and hands its rows over
//! in batches through a queue that holds a few ([`crate::session::execute::analytic`]). A statement takes all
//! of them; a cursor takes as many as somebody fetches and leaves the query waiting for room, so that FETCH 10
//! of two million rows costs ten rows, and memory is bounded by the queue and the cursor's window
//! ([`archipel_planner::native::cursor`]).
//!
//! ```text
//!   DECLARE, Execute with a limit ──► query ── batch ─►│ queue │─► window ──► FETCH, MOVE, Execute
//!                                     waits for room ──┘       └── as far as they move
//! ```
//!
//! Decisions.
//! - *What is seen* is the snapshot of the moment the cursor was opened (beyond READ COMMITTED, the
//!   transaction's), and its tables stay locked (ACCESS SHARE) as long as the transaction. Where that has
//!   written, native execution gathers the rows: they would have to show its writes, and none that come
//!   later. Whatever DataFusion does not run goes on in pages ([`super::paged_cursor`]), if it can.
//! - *Back to rows that have gone*: the query runs again over the same snapshot, which gives the same
//!   rows. The snapshot keeps old versions of the query's tables and of no others. Where other rows might
//!   come, or in another order ([`repeats`]), a cursor that moves back lets go of none.
//! - *Errors* come where their row would be, or where its batch would; of one table's rows, where their row
//!   would be if that is in the first batch ([`super::paged_cursor`] reads such a query). A query that has failed
//!   is at its end.
//! - *Cancels* and timeouts are those of the statement that fetches, after which the cursor cannot be moved
//!   any more; one between two of them does not touch it.
//! - *WITH HOLD*: what is left is gathered at COMMIT, before the snapshot goes.
//! - *Threads*: a query holds one while its cursor is open, so the server has [`OPEN_MAX`] such cursors at
//!   most; those beyond are read as what DataFusion does not run.
//! - *Routines* wait for nobody: one that moves a cursor of the session's to rows that have not come is
//!   undone, and run again when all of them have ([`Session::complete_cursors`]).
//! - *Durability*: the reply that opens the cursor waits for the snapshot's epoch, and all others come
//!   after it.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use archipel_analytics::AnalyticsError;
use archipel_planner::bind::visit::calls_volatile;
use archipel_planner::bound::{BoundStatement, Rel};
use archipel_planner::native::cursor::{MoreRows, OpenCursor};
use archipel_planner::native::cursors::Cursors;
use archipel_planner::native::visit_all_relations;
use archipel_sql::ast::FetchDirection;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::memory;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::is_of_rows;
use super::late_columns::LateRows;
use crate::encode::{Formats, RowEncoder};
use crate::session::execute::analytic::{BATCHES_UNDERWAY, Event, GivenUpOnDrop, Query, failed_by_bug};
use crate::session::{EARLY_BYTES_MIN, Session};
use crate::statement::cursor::cursor_over;
use crate::statement::{Prepared, RowPlan};

/// How many cursors of all sessions may have a query going on.
const OPEN_MAX: usize = 32;

/// How many there are.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// So many rows of a large FETCH are sent at a time at most.
const ROWS_AT_ONCE: i64 = 1024;

/// So many rows that are computed late are computed before other sessions of the thread have a turn.
const LATE_ROWS_AT_ONCE: usize = 64;

/// A place among as many cursors as may be open.
struct Place;

impl Place {
    /// Takes one if there is one.
    fn take() -> Option<Arc<Place>> {
        let more = |open: usize| (open < OPEN_MAX).then_some(open + 1);
        OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Arc::new(Place))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the values of rows take, but for those that lie elsewhere.
pub(super) fn bytes_of(rows: &[Vec<Datum>]) -> usize {
    rows.iter().map(|row| size_of_val(&row[..])).sum()
}

/// The rows of a query that goes on; it ends when nobody keeps them.
struct Streamed {
    query: Query,
    events: Mutex<mpsc::Receiver<Event>>,
    place: Arc<Place>,
    repeats: bool,
    _given_up: GivenUpOnDrop,
}

impl Streamed {
    fn start(query: Query, place: Arc<Place>, repeats: bool) -> Result<Streamed> {
        let (events, given_up) = query.start()?;
        Ok(Streamed { query, events: Mutex::new(events), place, repeats, _given_up: given_up })
    }

    /// The same query, which could not begin again.
    fn failed(&self, error: SqlError) -> Streamed {
        let (sender, events) = mpsc::channel(1);
        // There is room for one.
        let _ = sender.try_send(Event::Ended(Err(AnalyticsError::Sql(error))));
        Streamed {
            query: self.query.clone(),
            events: Mutex::new(events),
            place: self.place.clone(),
            repeats: self.repeats,
            _given_up: GivenUpOnDrop(Arc::default()),
        }
    }
}

/// Whether a query answers the same rows in the same order, however often it runs over one snapshot: it
/// makes no volatile call, and does not take what comes first of several inputs.
fn repeats(plan: &RowPlan) -> bool {
    let BoundStatement::Query(query) = &plan.bound else { return false };
    let mut mixes = false;
    visit_all_relations(&query.rel, &mut |rel| {
        mixes |= matches!(rel, Rel::SetOp { .. } | Rel::Family { .. });
    });
    !mixes && !calls_volatile(&query.rel)
}

/// Whether a query makes each of its rows of one row of a table: native execution comes to the one that it
/// fails at as fast as DataFusion does, about.
fn is_row_by_row(plan: &RowPlan) -> bool {
    let BoundStatement::Query(query) = &plan.bound else { return false };
    let (mut scans, mut is_plain) = (0, true);
    visit_all_relations(&query.rel, &mut |rel| match rel {
        Rel::Scan { .. } => scans += 1,
        Rel::Project { .. } | Rel::Filter { .. } | Rel::Sort { .. } | Rel::Limit { .. } => {}
        _ => is_plain = false,
    });
    is_plain && scans == 1
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows of a query that goes on")
    }
}

impl MoreRows for Streamed {
    fn poll_more(&self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<Vec<Datum>>>>> {
        loop {
            return Poll::Ready(match ready!(self.events.lock().poll_recv(context)) {
                Some(Event::Started(_)) => continue,
                Some(Event::Rows(rows)) => Some(Ok(rows)),
                Some(Event::Ended(Ok(()))) => None,
                Some(Event::Ended(Err(AnalyticsError::Sql(error)))) => Some(Err(error)),
                Some(Event::Ended(Err(AnalyticsError::Unsupported(reason)))) => {
                    Some(Err(SqlError::internal(format!("a query that ran does not run again: {reason}"))))
                }
                None => Some(Err(failed_by_bug())),
            });
        }
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn again(&self) -> Arc<dyn MoreRows> {
        let started = Streamed::start(self.query.clone(), self.place.clone(), self.repeats);
        Arc::new(started.unwrap_or_else(|error| self.failed(error)))
    }
}

impl Session {
    /// A cursor over a query that goes on beside the session, or computes of its rows what is late, if there
    /// are rows left when it is open; `None`: they are to be gathered. `only`: how many will be asked for at
    /// most, where that is known.
    pub(super) async fn open_streamed(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &Arc<RowPlan>,
        params: &[Datum],
        backward: bool,
        only: Option<usize>,
    ) -> Result<Option<OpenCursor>> {
        if let Some(cursor) = self.open_analytic(prepared, plan, params, backward).await? {
            return Ok(Some(cursor));
        }
        match self.open_paged(prepared, plan, params, backward, only).await? {
            Some(cursor) => Ok(Some(cursor)),
            None => self.open_late(prepared, plan, params, backward).await,
        }
    }

    /// The same for a query that is for DataFusion.
    async fn open_analytic(
        &mut self,
        prepared: &Prepared,
        plan: &Arc<RowPlan>,
        params: &[Datum],
        backward: bool,
    ) -> Result<Option<OpenCursor>> {
        if !self.is_analytic(plan) {
            return Ok(None);
        }
        let Some(place) = Place::take() else { return Ok(None) };
        prepared.allowed()?;
        self.require_settled(plan)?;
        self.require_route(plan, params)?;
        // It keeps the tables as they are.
        self.enter_transaction(false);
        if !self.is_analytic(plan) {
            return Ok(None);
        }
        self.note_query();
        let version = self.catalog_version();
        let _locks = self.lock_for_reading(plan).await?;
        if self.catalog_version() != version {
            return Ok(None);
        }
        let mut query = self.query(plan, params.to_vec());
        let epoch = query.take_snapshot().epoch();
        let streamed = Streamed::start(query, place, repeats(plan))?;
        let first = self.next_event(&streamed).await?;
        self.depend_on(epoch);
        let (mut rows, mut ended) = match first {
            Event::Rows(rows) => (rows, None),
            Event::Ended(Ok(())) => (Vec::new(), Some(None)),
            // A batch that fails takes the rows with it that come before the one that does.
            Event::Ended(Err(AnalyticsError::Sql(error))) if is_of_rows(&error) && is_row_by_row(plan) => {
                return Ok(None);
            }
            Event::Ended(Err(AnalyticsError::Sql(error))) => (Vec::new(), Some(Some(error))),
            Event::Ended(Err(AnalyticsError::Unsupported(_))) => return Ok(None),
            Event::Started(_) => return Err(SqlError::internal("a query began twice")),
        };
        // What has come by now is taken: of a few rows nothing is left to go on.
        for _ in 0..=BATCHES_UNDERWAY {
            if ended.is_some() {
                break;
            }
            match streamed.events.lock().try_recv() {
                Ok(Event::Rows(more)) => rows.extend(more),
                Ok(Event::Ended(Ok(()))) => ended = Some(None),
                Ok(Event::Ended(Err(AnalyticsError::Sql(error)))) => ended = Some(Some(error)),
                _ => break,
            }
        }
        let mut cursor = cursor_over(prepared, rows, backward);
        match ended {
            Some(failure) => cursor.end(failure),
            None => cursor = cursor.with_more(Arc::new(streamed)),
        }
        Ok(Some(cursor))
    }

    /// What comes from a query after it has begun.
    async fn next_event(&self, streamed: &Streamed) -> Result<Event> {
        let entry = self.entry().clone();
        loop {
            let event = tokio::select! {
                biased;
                event = poll_fn(|context| streamed.events.lock().poll_recv(context)) => event,
                () = entry.cancel_asked() => return Err(entry.cancel_error()),
                () = self.client_lost() => return Err(entry.cancel_error()),
            };
            match event {
                Some(Event::Started(_)) => {}
                Some(event) => return Ok(event),
                None => return Err(failed_by_bug()),
            }
        }
    }

    /// Brings the rows of a cursor that it needs to move so.
    pub(super) async fn bring_rows(&mut self, name: &str, direction: FetchDirection) -> Result<()> {
        let Ok(cursor) = self.cursors.get(name) else { return Ok(()) };
        if cursor.is_complete() {
            return Ok(());
        }
        let needs = cursor.needs(direction);
        if needs.passed {
            self.cursors.get_mut(name)?.begin_again();
        }
        self.bring(name, needs.rows).await
    }

    /// Brings rows of a cursor up to some number, from its first one on; all without it. Where that is
    /// stopped, the cursor cannot be moved any more, as in PostgreSQL.
    pub(super) async fn bring(&mut self, name: &str, rows: Option<usize>) -> Result<()> {
        let brought = self.bring_up_to(name, rows).await;
        self.give_up_on_error(name, &brought);
        brought
    }

    /// Lets a cursor's query end if some of its rows have got lost on their way.
    fn give_up_on_error<T>(&mut self, name: &str, done: &Result<T>) {
        if let Err(error) = done
            && let Ok(cursor) = self.cursors.get_mut(name)
        {
            cursor.give_up(error);
        }
    }

    async fn bring_up_to(&mut self, name: &str, rows: Option<usize>) -> Result<()> {
        let entry = self.entry().clone();
        loop {
            let Ok(cursor) = self.cursors.get(name) else { return Ok(()) };
            let Some(source) = cursor.source().cloned() else { return Ok(()) };
            let known = cursor.known();
            if rows.is_some_and(|rows| known >= rows) {
                return Ok(());
            }
            let late = source.as_any().and_then(|source| source.downcast_ref::<LateRows>());
            let more = match late {
                Some(late) => {
                    // None of them may have to wait for anything: others have their turns in between.
                    if known.is_multiple_of(LATE_ROWS_AT_ONCE) {
                        tokio::task::yield_now().await;
                    }
                    if entry.is_cancelled() {
                        return Err(entry.cancel_error());
                    }
                    self.next_late(late).await
                }
                None => tokio::select! {
                    biased;
                    () = entry.cancel_asked() => return Err(entry.cancel_error()),
                    more = poll_fn(|context| source.poll_more(context)) => more,
                    () = self.client_lost() => return Err(entry.cancel_error()),
                },
            };
            if let Some(Ok(rows)) = &more {
                memory::require(bytes_of(rows), "PortalContext")?;
            }
            let cursor = self.cursors.get_mut(name)?;
            match more {
                Some(Ok(rows)) => cursor.add_rows(rows),
                Some(Err(error)) => cursor.end(Some(error)),
                None => cursor.end(None),
            }
        }
    }

    /// Brings all rows of the cursors that a routine has moved further than they were there; `after` are
    /// the cursors as it has left them.
    pub(in crate::session) async fn complete_cursors(&mut self, after: Option<Cursors>) -> Result<()> {
        let after = after.unwrap_or_default();
        let wanting = after.iter().filter(|(_, cursor)| cursor.is_wanting());
        let mut names: Vec<String> = wanting.map(|(name, _)| name.to_owned()).collect();
        names.retain(|name| self.cursors.has(name));
        if names.is_empty() {
            names = self.cursors.iter().map(|(name, _)| name.to_owned()).collect();
        }
        for name in names {
            if self.cursors.get(&name)?.has_passed() {
                self.cursors.get_mut(&name)?.begin_again();
            }
            self.bring(&name, None).await?;
        }
        self.cursors.forget_wants();
        Ok(())
    }

    /// Moves a cursor forward, and sends the rows it passes as they come and as the client takes them,
    /// if it is to; answers how many there were.
    pub(super) async fn move_forward(
        &mut self,
        name: &str,
        rows_max: i64,
        formats: Option<&Formats>,
    ) -> Result<u64> {
        let columns = self.cursors.get(name)?.columns.clone();
        let encoding = self.encoding();
        let encoder = formats.map(|formats| RowEncoder { columns, formats: formats.clone(), encoding });
        let mut sent = 0;
        loop {
            let left = rows_max.saturating_sub(sent);
            // Of rows that are there already, all; nobody looks behind the last one that is asked for, or
            // waits for more rows than have come: few wide ones may be all that there is room for.
            let step = match self.cursors.get(name)?.goes_on() {
                true => {
                    self.bring_rows(name, FetchDirection::Forward(1)).await?;
                    let ahead = self.cursors.get(name)?.ahead() as i64;
                    left.min(ahead.clamp(1, ROWS_AT_ONCE))
                }
                false => left,
            };
            let direction = FetchDirection::Forward(step);
            self.bring_rows(name, direction).await?;
            let cursor = self.cursors.get_mut(name)?;
            // Rows before the one that has failed are sent.
            let step = match cursor.ahead() as i64 {
                ahead if ahead > 0 && cursor.failure.is_some() => step.min(ahead),
                _ => step,
            };
            let places = cursor.advance(FetchDirection::Forward(step))?;
            if let Some(encoder) = &encoder {
                let cursor = cursor.clone();
                self.send_places(encoder, &cursor, &places)?;
            }
            self.cursors.get_mut(name)?.forget_passed();
            sent += places.len() as i64;
            if (places.len() as i64) < step || sent >= rows_max {
                return Ok(sent as u64);
            }
            if encoder.is_some() && self.output.len() >= EARLY_BYTES_MIN && self.may_stream() {
                let taken = self.flush_part().await;
                self.give_up_on_error(name, &taken);
                taken?;
            }
        }
    }
}
