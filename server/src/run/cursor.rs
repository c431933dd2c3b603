//! The query of a cursor as an engine program: its first rows, or all of them for as long as somebody
//! fetches them.
//!
//! ```text
//!   page ─ rows ─► taken ─ batch ─►│ queue │─► whoever fetches
//!   thread of the run, holding nothing     │   ([`crate::session`])
//! ```
//!
//! - *The first rows* are read as any short statement reads them, on whatever thread; the run ends when
//!   it has so many. Of most cursors these are all.
//! - *All of them* are read in pages ([`archipel_engine::SubmitOptions::paging`]), on a thread that
//!   stands still while nobody fetches: it holds nothing then. Who closes the queue ends the run. Rows
//!   of a batch that did not become full are told with the run's end. One that begins where another was
//!   ended passes over the rows that this has handed over.
//!
//! It is for queries that change nothing and call no routine ([`is_plain`]), so there is nothing that
//! such a run could leave to be done but its rows.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::txn::Txn;
use archipel_engine::{ClaimSet, Program, RoutingTable, Stop, heap};
use archipel_planner::bind::visit::calls_volatile;
use archipel_planner::bound::{BoundStatement, Rel};
use archipel_planner::native::{ExecContext, ExecResult, RowSink, visit_all_relations};
use archipel_planner::route::{RouteInputs, is_plain_query, predict};
use archipel_sql::catalog::TableKind;
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt::{Budget, Watch};
use archipel_sql::stack::Depth;
use tokio::sync::mpsc;

use super::{budget_of, if_in_time, outdated, panic_error, stop_with};
use crate::session::host::Host;
use crate::statement::{Code, RowPlan};

/// Rows as values.
pub type Rows = Vec<Vec<Datum>>;

/// A batch ends at so many rows, or about so many bytes.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: i64 = 64 << 10;

/// A run that begins once more hands over a part of what it passes over at a time, up to so much: where
/// that happens often, the rows of one query are computed a few times on the whole.
const LATER_SHARE: usize = 8;
const LATER_ROWS: usize = 8 << 10;
const LATER_BYTES: i64 = 512 << 10;

/// The first rows are about so many bytes at most.
const FIRST_BYTES: i64 = 256 << 10;

/// Whether the rows of a query may be read bit by bit, as of a snapshot and beside the statements of
/// its session: it neither writes, locks rows nor calls what is volatile or a routine, and asks nothing
/// of the server that is another answer later.
pub fn is_plain(plan: &RowPlan) -> bool {
    let (Code::Native(compiled), BoundStatement::Query(query)) = (&plan.code, &plan.bound) else {
        return false;
    };
    if compiled.writes || !plan.is_read_only() || !is_plain_query(&plan.bound) || calls_volatile(&query.rel) {
        return false;
    }
    !is_of_now(&query.rel)
}

/// Whether a query shows the state of the server, locks rows, or tells how a statement runs.
fn is_of_now(rel: &Rel) -> bool {
    let mut found = false;
    visit_all_relations(rel, &mut |rel| match rel {
        Rel::Scan { table, lock, .. } => found |= lock.is_some() || table.kind == TableKind::System,
        Rel::Family { lock, .. } => found |= lock.is_some(),
        Rel::Lock { .. } | Rel::Explained { .. } => found = true,
        _ => {}
    });
    found
}

/// See the module's head.
pub struct CursorRun {
    plan: Arc<RowPlan>,
    params: Vec<Datum>,
    host: Arc<Host>,
    /// When its transaction began, if that is known before it runs.
    now: Option<i64>,
    taken: Taken,
    pub error: Option<SqlError>,
}

/// The rows that have come and have not been handed over.
struct Taken {
    rows: Rows,
    /// How many come first that somebody has already, and how many of these are still to come.
    known: usize,
    passes: usize,
    rows_max: usize,
    bytes_max: i64,
    /// What the thread had taken of memory before them.
    before: i64,
    /// Who waits for them, and for those to come.
    queue: Option<mpsc::Sender<Rows>>,
    has_sent: bool,
    /// Whether there may be more, which nobody wants.
    is_cut: bool,
}

impl Taken {
    fn up_to(rows_max: usize, bytes_max: i64, queue: Option<mpsc::Sender<Rows>>) -> Taken {
        Taken {
            rows: Rows::new(),
            known: 0,
            passes: 0,
            rows_max,
            bytes_max,
            before: 0,
            queue,
            has_sent: false,
            is_cut: false,
        }
    }

    /// Those behind so many rows, which somebody has already.
    fn behind(known: usize, queue: mpsc::Sender<Rows>) -> Taken {
        let rows_max = (known / LATER_SHARE).clamp(BATCH_ROWS, LATER_ROWS);
        let bytes_max = if known > 0 { LATER_BYTES } else { BATCH_BYTES };
        Taken { known, ..Taken::up_to(rows_max, bytes_max, Some(queue)) }
    }

    fn begin(&mut self) {
        self.passes = self.known;
        self.rows.clear();
        self.before = heap::taken_bytes();
        self.is_cut = false;
    }

    /// Whether the row that has come is one of those that somebody has.
    fn passes_over(&mut self) -> bool {
        let is_known = self.passes > 0;
        self.passes -= usize::from(is_known);
        is_known
    }

    fn add(&mut self, row: Vec<Datum>) -> ExecResult<ControlFlow<()>> {
        self.rows.push(row);
        if self.rows.len() < self.rows_max && heap::taken_bytes() - self.before < self.bytes_max {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(queue) = &self.queue else {
            self.is_cut = true;
            return Ok(ControlFlow::Break(()));
        };
        self.has_sent = true;
        // Refused where nobody fetches them any more.
        queue.blocking_send(std::mem::take(&mut self.rows)).map_err(|_| Stop::Cancelled)?;
        // Whoever has fetched them gives back their memory.
        self.before = heap::taken_bytes();
        Ok(ControlFlow::Continue(()))
    }
}

impl RowSink for Taken {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        if self.passes_over() {
            return Ok(ControlFlow::Continue(()));
        }
        self.add(row.to_vec())
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        if self.passes_over() {
            return Ok(ControlFlow::Continue(()));
        }
        self.add(row.iter_mut().map(Datum::take).collect())
    }
}

impl CursorRun {
    /// A run for the first rows, so many at most.
    pub fn first(
        query: (Arc<RowPlan>, Vec<Datum>),
        host: Arc<Host>,
        now: Option<i64>,
        rows_max: usize,
    ) -> CursorRun {
        CursorRun::of(query, host, now, Taken::up_to(rows_max, FIRST_BYTES, None))
    }

    /// A run for all rows but the first `known`, which go into a queue batch by batch.
    pub fn behind(
        known: usize,
        query: (Arc<RowPlan>, Vec<Datum>),
        host: Arc<Host>,
        now: Option<i64>,
        queue: mpsc::Sender<Rows>,
    ) -> CursorRun {
        CursorRun::of(query, host, now, Taken::behind(known, queue))
    }

    fn of(
        (plan, params): (Arc<RowPlan>, Vec<Datum>),
        host: Arc<Host>,
        now: Option<i64>,
        taken: Taken,
    ) -> CursorRun {
        CursorRun { plan, params, host, now, taken, error: None }
    }

    /// The rows that were not handed over, and whether there may be more.
    pub fn into_rows(self) -> (Rows, bool) {
        (self.taken.rows, self.taken.is_cut)
    }

    /// Whether some were.
    pub fn has_sent(&self) -> bool {
        self.taken.has_sent
    }

    fn evaluate(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        let Code::Native(compiled) = &self.plan.code else {
            return Err(SqlError::internal("a cursor over what is no query").into());
        };
        let now = match self.now {
            Some(now) => now,
            None => txn.started_at(),
        };
        let host = self.host.clone();
        let functions = FunctionContext { now, session: &*host };
        let mut context = ExecContext::new(txn, functions, &*host);
        context.params = self.params.clone();
        context.read_only = true;
        context.memory_max = host.server.statement_memory_max;
        compiled.run(&mut context, &mut self.taken)?;
        Ok(())
    }
}

impl Program for CursorRun {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        // What takes longer is not known beforehand.
        let _budget = Budget::of(self.host.server.engine.one_shot_budget());
        let now = self.now.unwrap_or_else(crate::clock::now);
        let functions = FunctionContext { now, session: &*self.host };
        if let Code::Native(compiled) = &self.plan.code {
            let inputs = RouteInputs { params: &self.params, variables: &[], functions: &functions };
            predict(&compiled.accesses, &inputs, claims);
        }
    }

    fn keeps_view(&self) -> bool {
        true
    }

    fn tables(&self) -> Vec<TreeId> {
        match &self.plan.code {
            Code::Native(compiled) => compiled.tables.iter().map(|(tree, _)| *tree).collect(),
            Code::Call(_) | Code::Trigger(_) => Vec::new(),
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let _depth = Depth::of(self.host.settings.stack_depth_kb);
        let _watch = Watch::of(self.host.clone());
        if self.taken.has_sent {
            // It would answer them once more.
            self.error = Some(outdated());
            return Err(Stop::Abort);
        }
        if self.taken.queue.is_some() && (txn.executor().is_some() || txn.pages_at().is_none()) {
            // Neither an executor nor who holds something waits for whoever fetches.
            return Err(Stop::Interactive);
        }
        self.taken.begin();
        self.error = None;
        let budget = budget_of(txn, self.host.server.engine.one_shot_budget());
        let result = catch_unwind(AssertUnwindSafe(|| self.evaluate(txn)));
        match result.map(|ran| if_in_time(budget.as_ref(), ran)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(stop_with(error, &mut self.error)),
            Err(payload) => {
                self.error = Some(panic_error(&*payload));
                Err(Stop::Abort)
            }
        }
    }
}
