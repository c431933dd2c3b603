//! Cursors and portals over what native execution reads: keys and ranges, joins by them, functions.
//!
//! The first rows are read when the cursor is opened, as those of any short statement; mostly they are
//! all. A query that has more, or takes long, is read in pages ([`crate::run::cursor`]) by a thread of
//! its own, as of a snapshot, and waits with a few batches until somebody fetches them.
//!
//! Decisions.
//! - *What is seen*: the snapshot is of the moment the cursor is opened (beyond READ COMMITTED, the
//!   transaction's). It belongs to an engine's transaction of its own, which reads and nothing else: so
//!   later changes of the session's transaction are not in it, and it is there as long as the cursor.
//!   What the session's has written to the query's tables before lies above it, in a copy
//!   ([`archipel_engine::txn::TakeImages`]); where that is too much, rows are gathered.
//! - *Locks* are those of the session's transaction, which stay until it ends. The other one asks for
//!   none: in a queue it could stand behind who waits for the first.
//! - *Others*: a partition is held for a page at a time. Nothing is held while nobody fetches, but a
//!   thread and old versions of the query's tables. These count against `archipel.max_version_memory`;
//!   past it the oldest snapshot ends, and the cursor's next FETCH says so (72000).
//! - *Threads* that stand still, a batch or two ahead, are bounded by [`IDLE_MAX`]. Where one more cursor is
//!   fetched from, the run of another ends, and begins again when somebody fetches from that: native
//!   execution answers the same rows in the same order whenever it reads the same snapshot, so those that
//!   have been fetched are passed over. Where somebody waits for all of them, one more thread there is.
//! - *The end*: of the cursor, its transaction or its session, or of a FETCH that is stopped, is the end
//!   of the query, which nobody waits for.
//! - *Back to rows that have gone*: as [`super::streamed_cursor`] does it; the query runs again, too.
//! - *Alone*: where nothing but Sync follows an Execute, nobody can come back for more rows than it asks
//!   for, and no more are read.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use archipel_engine::id::{Epoch, TreeId};
use archipel_engine::txn::{Images, Interactive, Isolation, TakeImages};
use archipel_engine::{Client, Completed, Paging, Start, Stop, Submission, SubmitOptions};
use archipel_planner::native::cursor::{MoreRows, OpenCursor};
use archipel_planner::native::stop_error;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::memory;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::streamed_cursor::bytes_of;
use crate::run::cursor::{CursorRun, Rows, is_plain};
use crate::run::outdated;
use crate::server::Server;
use crate::session::Session;
use crate::session::execute::analytic::GivenUpOnDrop;
use crate::session::host::Host;
use crate::statement::cursor::cursor_over;
use crate::statement::{Code, Prepared, RowPlan};

/// How many cursors may have a thread that stands still.
const IDLE_MAX: usize = 64;

/// Those that have a thread.
static AWAKE: Mutex<Vec<Weak<Mutex<State>>>> = Mutex::new(Vec::new());

/// So many rows are read when a cursor is opened, before a thread is asked for the rest.
const FIRST_ROWS: usize = 1024;

/// Batches that wait to be fetched, beside the one that its thread waits with.
const BATCHES_UNDERWAY: usize = 1;

/// How the first rows of a query were read.
enum First {
    /// There are no others.
    All(Rows),
    /// As many as were wanted; there may be others.
    Enough(Rows),
    /// There are more, or it took too long, or failed.
    More,
    /// Its tables have changed.
    Outdated,
}

/// What a transaction has written to the tables of a query.
enum Written {
    /// `None`: nothing.
    Known(Option<Images>),
    /// More than is copied for a cursor.
    TooMuch,
}

/// A query and what it runs in.
#[derive(Clone)]
struct PagedQuery {
    server: Arc<Server>,
    host: Arc<Host>,
    plan: Arc<RowPlan>,
    params: Vec<Datum>,
    now: i64,
    /// The session's, for who asks whose snapshot it is.
    number: i32,
    /// What keeps its snapshot.
    past: Arc<Interactive>,
}

impl PagedQuery {
    /// Lets it run, for as long as somebody keeps the answer; its first `given` rows are known.
    fn start(&self, given: usize) -> Underway {
        let (queue, batches) = mpsc::channel(BATCHES_UNDERWAY);
        let given_up = Arc::new(AtomicBool::new(false));
        let host = Arc::new(self.host.between_statements(given_up.clone()));
        let query = (self.plan.clone(), self.params.clone());
        let run = CursorRun::behind(given, query, host, Some(self.now), queue);
        // Who asks a statement of the session to stop does not mean it.
        let client = self.server.engine.client(self.number);
        let options = SubmitOptions {
            transaction: Some(&self.past),
            read_only: true,
            client: Some(&client),
            start: Start::Apart,
            paging: Paging::Locked,
            ..SubmitOptions::default()
        };
        let submission = self.server.engine.submit(run, options);
        let given_up = (GivenUpOnDrop(given_up), CancelledOnDrop(client));
        Underway { batches, submission, over: None, _given_up: given_up }
    }
}

/// Ends a run that waits for its turn at a partition.
struct CancelledOnDrop(Arc<Client>);

impl Drop for CancelledOnDrop {
    fn drop(&mut self) {
        self.0.set_cancelled(true);
    }
}

/// The rows of a query that goes on; it ends when nobody keeps them.
struct Paged {
    query: PagedQuery,
    state: Arc<Mutex<State>>,
}

/// How far a query is.
#[derive(Default)]
struct State {
    /// How many rows whoever fetches has been given.
    given: usize,
    /// Whether somebody waits for the next ones.
    is_awaited: bool,
    /// `None`: nobody has asked for rows yet, or others have needed the thread meanwhile.
    underway: Option<Underway>,
}

struct Underway {
    batches: mpsc::Receiver<Rows>,
    submission: Submission<CursorRun>,
    /// Set when the run has ended.
    over: Option<Over>,
    _given_up: (GivenUpOnDrop, CancelledOnDrop),
}

/// A run that has ended.
struct Over {
    /// The rows behind those of the queue.
    rest: Rows,
    /// Whether it has handed nothing over, and cannot.
    refused: bool,
    failure: Option<SqlError>,
}

impl Over {
    fn of(completed: Completed<CursorRun>) -> Over {
        let Completed { mut program, outcome } = completed;
        let refused = matches!(outcome.result, Err(Stop::Interactive | Stop::Recompile));
        let failure = match outcome.result {
            Ok(()) => None,
            Err(Stop::Recompile) => Some(outdated()),
            Err(stop) => {
                let told = program.error.take().filter(|_| stop == Stop::Abort);
                Some(told.unwrap_or_else(|| stop_error(stop)))
            }
        };
        let refused = refused && !program.has_sent();
        Over { rest: program.into_rows().0, refused, failure }
    }
}

impl Underway {
    /// Whether the run has ended.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        if self.over.is_none()
            && let Poll::Ready(completed) = Pin::new(&mut self.submission).poll(context)
        {
            self.over = Some(Over::of(completed));
        }
        self.over.is_some()
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Rows>>> {
        // Asked first: what it has sent by its end is in the queue.
        self.is_over(context);
        if let Poll::Ready(Some(batch)) = self.batches.poll_recv(context) {
            return Poll::Ready(Some(Ok(batch)));
        }
        let Some(over) = &mut self.over else { return Poll::Pending };
        let rest = std::mem::take(&mut over.rest);
        Poll::Ready(if rest.is_empty() { over.failure.clone().map(Err) } else { Some(Ok(rest)) })
    }
}

impl State {
    /// Whether a thread computes its rows, or stands still with them.
    fn has_thread(&mut self) -> bool {
        match &mut self.underway {
            // Who waits is told when it ends, and nobody else is to ask.
            Some(underway) if self.is_awaited => underway.over.is_none(),
            Some(underway) => !underway.is_over(&mut Context::from_waker(Waker::noop())),
            None => false,
        }
    }
}

/// Notes that one more has a thread. Where too many have one, those stop that cost least to bring back to
/// where they are, unless somebody waits for them.
fn make_room_for(state: &Arc<Mutex<State>>) {
    let mut awake = AWAKE.lock();
    // One that somebody looks at is locked, and has a thread or soon will.
    let known: Vec<Arc<Mutex<State>>> = awake.iter().filter_map(Weak::upgrade).collect();
    let (mut running, mut others): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|other| other.try_lock().is_none_or(|mut other| other.has_thread()));
    let mut stopped = Vec::new();
    while running.len() >= IDLE_MAX {
        let given = |other: &Arc<Mutex<State>>| {
            other.try_lock().filter(|other| !other.is_awaited).map(|other| other.given)
        };
        let idle = running.iter().enumerate().filter_map(|(at, other)| given(other).map(|given| (given, at)));
        let Some((_, at)) = idle.min() else { break };
        let underway = running[at]
            .try_lock()
            .filter(|other| !other.is_awaited)
            .and_then(|mut other| other.underway.take());
        let Some(underway) = underway else { break };
        stopped.push(underway);
        others.push(running.swap_remove(at));
    }
    *awake = running.iter().map(Arc::downgrade).collect();
    awake.push(Arc::downgrade(state));
    drop(awake);
    // Runs end, and what nobody knows any more goes, with the list unlocked.
    drop((stopped, running, others));
}

impl Paged {
    fn of(query: PagedQuery) -> Paged {
        Paged { query, state: Arc::default() }
    }

    fn is_over(&self, context: &mut Context<'_>) -> bool {
        self.state.lock().underway.as_mut().is_some_and(|underway| underway.is_over(context))
    }

    /// Whether its rows can only be gathered.
    fn is_refused(&self) -> bool {
        let state = self.state.lock();
        state.underway.as_ref().and_then(|underway| underway.over.as_ref()).is_some_and(|over| over.refused)
    }
}

impl fmt::Debug for Paged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows of a query that is read in pages")
    }
}

impl MoreRows for Paged {
    fn poll_more(&self, context: &mut Context<'_>) -> Poll<Option<Result<Rows>>> {
        let mut state = self.state.lock();
        state.is_awaited = true;
        let State { given, underway, .. } = &mut *state;
        let underway = underway.get_or_insert_with(|| {
            make_room_for(&self.state);
            self.query.start(*given)
        });
        let more = underway.poll_more(context);
        if let Poll::Ready(more) = &more {
            if let Some(Ok(rows)) = more {
                *given += rows.len();
            }
            state.is_awaited = false;
        }
        more
    }

    fn repeats(&self) -> bool {
        true
    }

    fn again(&self) -> Arc<dyn MoreRows> {
        Arc::new(Paged::of(self.query.clone()))
    }
}

/// The rows that a run has answered so far, from the first batch on, and how it has ended if it has: of one
/// that has ended all is taken, nothing is left to go on.
async fn what_has_come(
    paged: &Paged,
    mut more: Option<Result<Rows>>,
) -> Result<(Rows, Option<Option<SqlError>>)> {
    let (mut rows, mut ended) = (Rows::new(), None);
    loop {
        match more {
            Some(Ok(batch)) => {
                memory::require(bytes_of(&batch), "PortalContext")?;
                rows.extend(batch);
            }
            Some(Err(error)) => ended = Some(Some(error)),
            None => ended = Some(None),
        }
        if ended.is_some() || !poll_fn(|context| Poll::Ready(paged.is_over(context))).await {
            return Ok((rows, ended));
        }
        more = poll_fn(|context| paged.poll_more(context)).await;
    }
}

impl Session {
    /// A cursor over a query that native execution reads, which goes on beside the session if it has many
    /// rows; `None`: they are to be gathered. `only`: how many rows will be asked for at most, where that
    /// is known.
    pub(super) async fn open_paged(
        &mut self,
        prepared: &Prepared,
        plan: &Arc<RowPlan>,
        params: &[Datum],
        backward: bool,
        only: Option<usize>,
    ) -> Result<Option<OpenCursor>> {
        if !self.reads_above_snapshot() || !is_plain(plan) {
            return Ok(None);
        }
        prepared.allowed()?;
        self.require_settled(plan)?;
        self.require_route(plan, params)?;
        let is_own = !self.transaction.is_open() && self.isolation() == Isolation::ReadCommitted;
        // What is known to take long is not begun in vain.
        let is_short = !plan.is_long() && (!plan.is_analytic() || self.looks_up(plan));
        if let Some(only) = only.filter(|only| is_own && is_short && *only <= FIRST_ROWS) {
            self.note_query();
            match self.first_rows(plan, params, only).await? {
                First::All(rows) | First::Enough(rows) => {
                    return Ok(Some(cursor_over(prepared, rows, backward)));
                }
                First::More => {}
                First::Outdated => return Ok(None),
            }
        }
        // It keeps the tables as they are.
        self.enter_transaction(false);
        if !self.reads_above_snapshot() {
            return Ok(None);
        }
        self.note_query();
        if is_short && !plan.is_long() {
            match self.first_rows(plan, params, FIRST_ROWS).await? {
                First::All(rows) => return Ok(Some(cursor_over(prepared, rows, backward))),
                First::Enough(_) | First::More => {}
                First::Outdated => return Ok(None),
            }
        }
        let version = self.catalog_version();
        let _locks = self.lock_for_reading(plan).await?;
        if self.catalog_version() != version {
            return Ok(None);
        }
        let Some((query, epoch)) = self.paged_query(plan, params).await? else { return Ok(None) };
        let paged = Paged::of(query);
        let more = self.next_batch(&paged).await?;
        if paged.is_refused() {
            return Ok(None);
        }
        self.depend_on(epoch);
        let (rows, ended) = what_has_come(&paged, more).await?;
        let mut cursor = cursor_over(prepared, rows, backward);
        match ended {
            Some(failure) => cursor.end(failure),
            None => cursor = cursor.with_more(Arc::new(paged)),
        }
        Ok(Some(cursor))
    }

    /// Reads the first rows of a query, as a statement of the transaction or as one of its own.
    async fn first_rows(&mut self, plan: &Arc<RowPlan>, params: &[Datum], rows_max: usize) -> Result<First> {
        let run = CursorRun::first((plan.clone(), params.to_vec()), self.host(), self.began_at(), rows_max);
        let options = SubmitOptions {
            transaction: self.transaction.interactive(),
            read_only: true,
            client: Some(&self.entry().engine),
            ..SubmitOptions::default()
        };
        let submission = self.server.engine.submit(run, options);
        let Completed { program, outcome } = self.cancellable(submission).await;
        match outcome.result {
            Ok(()) => {
                self.depend_on(outcome.depends_on);
                Ok(match program.into_rows() {
                    (rows, false) => First::All(rows),
                    (rows, true) if rows.len() >= rows_max => First::Enough(rows),
                    (_, true) => First::More,
                })
            }
            Err(Stop::Interactive) => {
                plan.note_long(true);
                Ok(First::More)
            }
            // Rows before the one that fails are told as they are fetched.
            Err(Stop::Abort) => Ok(First::More),
            Err(Stop::Recompile) => Ok(First::Outdated),
            Err(stop) => Err(self.stop_error(stop)),
        }
    }

    /// A query of the open transaction, with a snapshot to read and what the transaction has written above
    /// it; and of which epoch the snapshot is. `None` where there is no such thing.
    async fn paged_query(
        &mut self,
        plan: &Arc<RowPlan>,
        params: &[Datum],
    ) -> Result<Option<(PagedQuery, Epoch)>> {
        let Code::Native(compiled) = &plan.code else { return Ok(None) };
        let tables: Vec<_> = compiled.tables.iter().map(|(tree, _)| *tree).collect();
        let Written::Known(images) = self.written_to(&tables).await? else { return Ok(None) };
        let number = self.entry().process_id;
        let engine = &self.server.engine;
        let past = engine.begin_for(&engine.client(number), Isolation::RepeatableRead, true);
        let epoch = match self.transaction.interactive().and_then(Interactive::snapshot) {
            Some(snapshot) => past.adopt(&snapshot).then(|| snapshot.epoch()),
            None => past.take_snapshot_of(&tables),
        };
        let Some(epoch) = epoch else { return Ok(None) };
        if let Some(images) = images {
            past.read_over(images);
        }
        let query = PagedQuery {
            server: self.server.clone(),
            host: self.host(),
            plan: plan.clone(),
            params: params.to_vec(),
            now: self.began_at().unwrap_or_else(crate::clock::now),
            number,
            past: Arc::new(past),
        };
        Ok(Some((query, epoch)))
    }

    /// What the transaction has written to some tables so far, for a cursor that it opens now.
    async fn written_to(&self, tables: &[TreeId]) -> Result<Written> {
        let Some(open) = self.transaction.interactive().filter(|open| !open.is_empty()) else {
            return Ok(Written::Known(None));
        };
        let mut trees = tables.to_vec();
        for table in tables.iter().filter_map(|tree| self.server.engine.table(*tree)) {
            trees.extend(table.indexes.iter().map(|index| index.def.id));
        }
        let Some(take) = TakeImages::new(open, trees) else { return Ok(Written::TooMuch) };
        let options = take.options();
        let submission = self.server.engine.submit(take, options);
        let Completed { program, outcome } = self.cancellable(submission).await;
        outcome.result.map_err(|stop| self.stop_error(stop))?;
        let Some(images) = program.images else { return Ok(Written::TooMuch) };
        memory::require(images.bytes(), "PortalContext")?;
        Ok(Written::Known(Some(images)))
    }

    /// What comes first from a query that has begun.
    async fn next_batch(&self, paged: &Paged) -> Result<Option<Result<Rows>>> {
        let entry = self.entry().clone();
        tokio::select! {
            biased;
            more = poll_fn(|context| paged.poll_more(context)) => Ok(more),
            () = entry.cancel_asked() => Err(entry.cancel_error()),
            () = self.client_lost() => Err(entry.cancel_error()),
        }
    }
}
