//! Analytical queries: planned and computed by DataFusion over a snapshot, each on a niced thread
//! of its own, and streamed to the client batch by batch.
//!
//! A thread for each, because a query computes for as long as it likes between two polls: on
//! threads that queries share, as many long ones as there are threads would keep all others from
//! beginning. Whatever ends the wait for its rows — the last of them, an error, a cancel, a timeout,
//! a client that has gone — ends the query, which looks at `given_up` after each batch of its work.
//!
//! A query that reads one small table whole and looks rows of large ones up for it runs natively in the first
//! place; so do some that would only be planned longer, or look at all pairs of rows here. What cannot be
//! lowered runs natively like any other statement, and so does a query inside a transaction that has written:
//! only native execution sees those writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archipel_analytics::{AnalyticsError, Environment, TablesRead};
use archipel_engine::id::{Epoch, TreeId};
use archipel_engine::{Interactive, Isolation, Snapshot};
use archipel_planner::bind::visit::visit_rel;
use archipel_planner::bound::{BoundChild, BoundStatement, ExprKind, Rel, SubqueryKind};
use archipel_planner::native::visit_relations;
use archipel_planner::route::RouteKey;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::interrupt::Watch;
use archipel_sql::memory;
use archipel_sql::stack::Depth;
use archipel_sql::types::Oid;
use tokio::sync::mpsc;

use super::outcome::Ran;
use crate::encode::RowsTo;
use crate::run::statement::RowsLeave;
use crate::server::Server;
use crate::session::Session;
use crate::session::host::Host;
use crate::statement::{Code, RowPlan};

/// Batches underway between the analytical threads and the session.
pub(in crate::session) const BATCHES_UNDERWAY: usize = 4;
/// Encoded rows are handed over in portions of this size.
const PORTION_BYTES: usize = 64 * 1024;

pub(in crate::session) enum Event {
    /// The query runs over the snapshot of this epoch.
    Started(Epoch),
    Rows(Vec<Vec<Datum>>),
    /// It ended, or did not begin.
    Ended(std::result::Result<(), AnalyticsError>),
}

/// Tells a query, or whatever else goes on beside the session, that nobody waits for it any longer.
pub(in crate::session) struct GivenUpOnDrop(pub Arc<AtomicBool>);

impl Drop for GivenUpOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A query and what it runs in.
#[derive(Clone)]
pub(in crate::session) struct Query {
    server: Arc<Server>,
    host: Arc<Host>,
    plan: Arc<RowPlan>,
    params: Vec<Datum>,
    now: i64,
    holder: u64,
    snapshot: Option<Arc<Snapshot>>,
    /// Set if it is to run again over that.
    tables_read: Option<TablesRead>,
}

impl Query {
    /// Settles what it is about to see, however often it runs.
    pub fn take_snapshot(&mut self) -> Arc<Snapshot> {
        self.tables_read.get_or_insert_default();
        let (engine, holder) = (&self.server.engine, self.holder);
        self.snapshot.get_or_insert_with(|| Arc::new(engine.snapshot_for(holder))).clone()
    }

    /// Lets it run, for as long as somebody keeps the second part of the answer; 53200 if there can be no
    /// thread for it.
    pub fn start(&self) -> Result<(mpsc::Receiver<Event>, GivenUpOnDrop)> {
        let (sender, events) = mpsc::channel(BATCHES_UNDERWAY);
        let given_up = Arc::new(AtomicBool::new(false));
        let host = Arc::new(match self.tables_read.is_some() {
            true => self.host.between_statements(given_up.clone()),
            false => self.host.beside(given_up.clone()),
        });
        let asked = host.clone();
        let Query { server, plan, params, now, holder, snapshot, tables_read, .. } = self.clone();
        let (threads, analytics) = (server.niced.clone(), server.analytics.clone());
        let runtime = server.analytical_threads.clone();
        let query = async move {
            let snapshot = snapshot.unwrap_or_else(|| Arc::new(server.engine.snapshot_for(holder)));
            // The session may be gone: then nobody wants the rows.
            let _ = sender.send(Event::Started(snapshot.epoch())).await;
            let engine = server.engine.clone();
            let environment = Environment { engine, snapshot, session: host, now, params, tables_read };
            let BoundStatement::Query(query) = &plan.bound else { return };
            let ended = async {
                let mut rows = analytics.execute(query, &environment).await?;
                while let Some(batch) = rows.next().await? {
                    if sender.send(Event::Rows(batch)).await.is_err() {
                        break;
                    }
                }
                Ok(())
            };
            let ended = ended.await;
            let _ = sender.send(Event::Ended(ended)).await;
        };
        threads.run(move || {
            let _depth = Depth::of(asked.settings.stack_depth_kb);
            let _watch = Watch::of(asked);
            runtime.block_on(query);
        })?;
        Ok((events, GivenUpOnDrop(given_up)))
    }
}

/// What a query has failed with that ended without saying so.
pub(in crate::session) fn failed_by_bug() -> SqlError {
    SqlError::internal("the analytical query failed by a bug in the server")
}

/// How an analytical query went.
pub(in crate::session) enum Analytic {
    Ran(Ran, Vec<Vec<Datum>>),
    /// It runs natively, with its parameters back.
    Native(Vec<Datum>),
}

/// A plan that reads one row of its tables in so many, and looks for the others by their keys, does so.
const LOOKED_UP_PER_ROW_READ: f64 = 16.0;
/// Up to so many rows are looked up fast enough: beyond, trees and rows are in no cache any longer, and what
/// holds partitions for so long begins again page by page.
const LOOKED_UP_ANYWAY: f64 = 50_000.0;
/// The rows that EXISTS looks for by keys may be so many times those that would be read and joined.
const TESTED_PER_ROW_READ: f64 = 0.3;
/// The rows that subqueries find by keys may be so many times those that would be read and grouped.
const FOUND_PER_ROW_READ: f64 = 4.0;

/// The tables that a query reads.
#[derive(Default)]
struct Reads {
    once: BTreeMap<Oid, TreeId>,
    /// By subqueries that run for each row.
    per_row: BTreeMap<Oid, TreeId>,
    /// Whether there are such subqueries that stop at the first row, and others.
    tests: bool,
    values: bool,
}

impl Reads {
    /// `None` for families.
    fn of(rel: &Rel) -> Option<Reads> {
        let mut reads = Reads::default();
        let mut plain = tables_of(rel, &mut reads.once);
        visit_rel(rel, 0, &mut |expr, _| {
            if let ExprKind::Subquery(subquery) = &expr.kind {
                let into = if subquery.correlated { &mut reads.per_row } else { &mut reads.once };
                plain &= tables_of(&subquery.rel, into);
                let test = subquery.kind == SubqueryKind::Exists;
                reads.tests |= subquery.correlated && test;
                reads.values |= subquery.correlated && !test;
            }
            plain
        });
        plain.then_some(reads)
    }
}

/// Adds the tables that a relation reads outside of its expressions; false if there is a family among them.
fn tables_of(rel: &Rel, into: &mut BTreeMap<Oid, TreeId>) -> bool {
    let mut plain = true;
    visit_relations(rel, &mut |rel| match rel {
        Rel::Scan { table, .. } => {
            into.insert(table.oid, TreeId(table.tree));
        }
        Rel::Family { .. } => plain = false,
        _ => {}
    });
    plain
}

/// From how many columns on an operator is wide: DataFusion looks for each of them among all of them, rule by
/// rule.
const COLUMNS_WIDE: usize = 64;
/// So many rows of it cost the native executor what planning one more column costs then.
const ROWS_PER_COLUMN: u64 = 8;

/// From how many members on a family is large: each of them is a table of the analytical plan.
const MEMBERS_LARGE: usize = 16;
/// So many rows cost the native executor what planning one more member costs then.
const ROWS_PER_MEMBER: u64 = 500;

/// From how many operators on a plan is deep: DataFusion plans it in the square of them and more, for each of
/// its rules goes over all of them, and many look at all columns below.
const OPERATORS_DEEP: u64 = 24;
/// So many rows passing one operator cost the native executor what planning costs for each pair of operators.
const PASSES_PER_PAIR: u64 = 8;

/// How deep a plan is.
#[derive(Default)]
struct Nesting {
    operators: u64,
    /// How many operators the rows of each table pass, in all its places together.
    passes: BTreeMap<TreeId, u64>,
}

impl Nesting {
    /// `None` if subqueries run for each row: how many rows those read is not looked into.
    fn of(rel: &Rel) -> Option<Nesting> {
        let mut depth = Nesting::default();
        depth.add(rel, 1);
        let mut once = true;
        visit_rel(rel, 0, &mut |expr, _| {
            if let ExprKind::Subquery(subquery) = &expr.kind {
                once &= !subquery.correlated;
                depth.add(&subquery.rel, 1);
            }
            once
        });
        once.then_some(depth)
    }

    /// Adds a relation whose rows pass so many operators, itself included.
    fn add(&mut self, rel: &Rel, above: u64) {
        self.operators += 1;
        let mut read = |tree: u32| *self.passes.entry(TreeId(tree)).or_default() += above;
        match rel {
            Rel::Scan { table, .. } => read(table.tree),
            Rel::Family { family, .. } => {
                family.members.iter().for_each(|member| read(member.table.tree));
            }
            _ => {}
        }
        // The arms of a set operation pass their rows on as they are.
        let above = if matches!(rel, Rel::SetOp { all: true, .. }) { above } else { above + 1 };
        rel.for_each_child(|child, _| {
            if let BoundChild::Rel(rel) = child {
                self.add(rel, above);
            }
        });
    }
}

impl Session {
    /// Whether a plan is for the analytical executor, here and now.
    pub(in crate::session) fn is_analytic(&self, plan: &RowPlan) -> bool {
        plan.is_analytic() && !self.is_better_native(plan) && self.reads_beside()
    }

    /// Whether what is read now may be read as of a snapshot, beside the transaction: this has nothing to
    /// show that is not in it.
    pub(super) fn reads_beside(&self) -> bool {
        self.transaction.interactive().is_none_or(Interactive::is_empty) && self.reads_above_snapshot()
    }

    /// Whether what is read now may be read as of a snapshot, with what the transaction has written above it.
    pub(in crate::session) fn reads_above_snapshot(&self) -> bool {
        if self.transaction.interactive().is_none() {
            return true;
        }
        // SERIALIZABLE answers at its commit for what it read, which native execution notes.
        let answers = self.isolation() == Isolation::Serializable && !self.is_read_only();
        // Tables made in this transaction have no past for a snapshot to show.
        let made = self.transaction.staged().is_some();
        !answers && !made
    }

    /// Whether an analytical query runs natively in the first place.
    pub(super) fn is_better_native(&self, plan: &RowPlan) -> bool {
        // DataFusion looks at all pairs of rows where it sees nothing equal to hash by.
        let in_pairs = matches!(&plan.code, Code::Native(compiled) if compiled.pairs_elsewhere);
        in_pairs || self.looks_up(plan) || self.is_wide(plan) || self.is_deep(plan)
    }

    /// Whether a plan is of so many operators that DataFusion would plan it for longer than the native
    /// executor runs it over as few rows as there are.
    fn is_deep(&self, plan: &RowPlan) -> bool {
        let BoundStatement::Query(query) = &plan.bound else { return false };
        let Some(Nesting { operators, passes }) = Nesting::of(&query.rel) else { return false };
        if operators < OPERATORS_DEEP {
            return false;
        }
        // Tables of one group lie in the same partitions, whose rows count once.
        let engine = &self.server.engine;
        let mut groups: BTreeMap<_, (TreeId, u64)> = BTreeMap::new();
        for (tree, passes) in passes {
            if let Some(meta) = engine.table(tree) {
                let most = groups.entry(meta.group()).or_insert((tree, passes));
                most.1 = most.1.max(passes);
            }
        }
        let passed = groups
            .into_values()
            .map(|(tree, passes)| engine.rows_at_most(tree).saturating_mul(passes))
            .fold(0, u64::saturating_add);
        passed <= PASSES_PER_PAIR * operators * operators
    }

    /// Whether a plan names so many columns, or reads so many tables of a family, that DataFusion would plan it
    /// for longer than the native executor runs it over as few rows as there are.
    fn is_wide(&self, plan: &RowPlan) -> bool {
        let BoundStatement::Query(query) = &plan.bound else { return false };
        let (mut trees, mut columns, mut members) = (Vec::new(), 0, 0);
        visit_relations(&query.rel, &mut |rel| {
            let named = match rel {
                Rel::Scan { table, .. } => {
                    trees.push(TreeId(table.tree));
                    0
                }
                Rel::Family { family, .. } => {
                    members += family.members.len();
                    trees.extend(family.members.iter().map(|member| TreeId(member.table.tree)));
                    0
                }
                Rel::Project { exprs, .. } => exprs.len(),
                Rel::Aggregate { group_by, aggregates, .. } => group_by.len() + aggregates.len(),
                Rel::Sort { keys, .. } => keys.len(),
                _ => 0,
            };
            columns = columns.max(named);
        });
        if columns < COLUMNS_WIDE && members < MEMBERS_LARGE {
            return false;
        }
        let mut nested = false;
        visit_rel(&query.rel, 0, &mut |expr, _| {
            // How many rows those read is not looked into.
            nested |= matches!(expr.kind, ExprKind::Subquery(_));
            !nested
        });
        if nested {
            return false;
        }
        // Tables of one group lie in the same partitions, whose rows count once.
        let engine = &self.server.engine;
        let mut groups = BTreeMap::new();
        for tree in trees {
            if let Some(meta) = engine.table(tree) {
                groups.entry(meta.group()).or_insert(tree);
            }
        }
        let rows: u64 = groups.into_values().map(|tree| engine.rows_at_most(tree)).sum();
        (columns >= COLUMNS_WIDE && rows <= ROWS_PER_COLUMN * columns as u64)
            || (members >= MEMBERS_LARGE && rows <= ROWS_PER_MEMBER * members as u64)
    }

    /// Whether a plan begins with few rows, beside those of the other tables, and comes to these by indexes:
    /// the analytical executor would read all of them.
    pub(in crate::session) fn looks_up(&self, plan: &RowPlan) -> bool {
        let (Code::Native(compiled), BoundStatement::Query(query)) = (&plan.code, &plan.bound) else {
            return false;
        };
        let Some(Reads { once, per_row, tests, values }) = Reads::of(&query.rel) else { return false };
        let rows_of = |tree: TreeId| self.server.engine.rows_at_most(tree) as f64;
        let tables: BTreeMap<Oid, TreeId> =
            once.iter().chain(&per_row).map(|(oid, tree)| (*oid, *tree)).collect();
        let all: f64 = tables.values().map(|tree| rows_of(*tree)).sum();
        let (mut whole, mut kept) = (0.0, 0.0);
        for access in &compiled.accesses {
            let open = matches!(
                access.key,
                RouteKey::All | RouteKey::Range { low: None, .. } | RouteKey::Range { high: None, .. }
            );
            if open {
                let Some(tree) = tables.get(&access.oid) else { return false };
                // What a subquery reads whole is read for each row.
                if per_row.contains_key(&access.oid) {
                    return false;
                }
                let rows = rows_of(*tree);
                whole += rows;
                kept += rows * access.kept;
            }
        }
        if whole == 0.0 {
            return false;
        }
        // As many of the other tables' rows are taken to belong to those that are kept.
        let share = kept / whole;
        let rest: f64 = once.values().map(|tree| rows_of(*tree)).sum();
        let looked_up = share * (rest - whole).max(0.0);
        if !tests && !values {
            return whole * LOOKED_UP_PER_ROW_READ <= all
                && looked_up <= (all / LOOKED_UP_PER_ROW_READ).max(LOOKED_UP_ANYWAY);
        }
        let most =
            |tables: &BTreeMap<Oid, TreeId>| tables.values().map(|tree| rows_of(*tree)).fold(0.0, f64::max);
        let (per_run, bound) = match values {
            true => (1.0 + (most(&per_row) / whole).max(1.0), FOUND_PER_ROW_READ),
            false => (2.0, TESTED_PER_ROW_READ),
        };
        whole + looked_up + share * most(&once) * per_run <= all * bound
    }

    /// Runs an analytical query.
    pub(in crate::session) async fn run_analytic(
        &mut self,
        plan: &Arc<RowPlan>,
        params: Vec<Datum>,
        rows_to: &RowsTo,
        leave: RowsLeave,
    ) -> Result<Analytic> {
        // The engine's scans of a snapshot ask nobody; the session does, for all tables at once.
        let version = self.catalog_version();
        let _locks = self.lock_for_reading(plan).await?;
        if self.catalog_version() != version {
            // Its tables may have changed while it waited: native execution finds out.
            return Ok(Analytic::Native(params));
        }
        let (mut events, _given_up) = self.query(plan, params.clone()).start()?;
        let entry = self.entry().clone();
        let (mut rows, mut kept) = (0, Vec::new());
        loop {
            let event = tokio::select! {
                biased;
                event = events.recv() => event,
                () = entry.cancel_asked() => return Err(entry.cancel_error()),
                () = self.client_lost() => return Err(entry.cancel_error()),
            };
            match event {
                Some(Event::Started(epoch)) => self.depend_on(epoch),
                Some(Event::Rows(batch)) => {
                    let before = rows;
                    rows += batch.len() as u64;
                    self.take_batch(batch, before, rows_to, &mut kept)?;
                    if leave == RowsLeave::Early && self.output.len() > PORTION_BYTES {
                        self.pass_rows_on().await?;
                    }
                }
                Some(Event::Ended(Ok(()))) => return Ok(Analytic::Ran(Ran { rows }, kept)),
                Some(Event::Ended(Err(AnalyticsError::Unsupported(reason)))) => {
                    tracing::debug!("an analytical query runs natively: {reason}");
                    return Ok(Analytic::Native(params));
                }
                Some(Event::Ended(Err(AnalyticsError::Sql(error)))) => return Err(error),
                None => return Err(failed_by_bug()),
            }
        }
    }

    /// A query, to be run over a snapshot: that of the transaction beyond READ COMMITTED, which sees what
    /// its first statement saw; otherwise one that is taken when it starts.
    pub(in crate::session) fn query(&mut self, plan: &Arc<RowPlan>, params: Vec<Datum>) -> Query {
        let snapshot = self.transaction.interactive().and_then(Interactive::snapshot);
        Query {
            server: self.server.clone(),
            host: self.host(),
            plan: plan.clone(),
            params,
            now: self.began_at().unwrap_or_else(crate::clock::now),
            holder: self.entry().process_id as u64,
            snapshot: snapshot.map(Arc::new),
            tables_read: None,
        }
    }

    /// Takes rows, of which there were so many before.
    fn take_batch(
        &mut self,
        batch: Vec<Vec<Datum>>,
        before: u64,
        rows_to: &RowsTo,
        kept: &mut Vec<Vec<Datum>>,
    ) -> Result<()> {
        let host = self.host();
        let context = host.context();
        if !kept.is_empty() || self.output.len() > memory::LARGE_BYTES {
            memory::require(self.output.len(), "PortalContext")?;
        }
        let mut out = self.output.take();
        let taken = match rows_to {
            RowsTo::Nowhere => Ok(()),
            RowsTo::Wire(encoder) => batch.iter().try_for_each(|row| encoder.encode(row, &context, &mut out)),
            RowsTo::Copy(rows) => batch
                .iter()
                .enumerate()
                .try_for_each(|(at, row)| rows.row(row, before + at as u64 == 0, &context, &mut out)),
            RowsTo::Kept => {
                kept.extend(batch);
                Ok(())
            }
        };
        self.output.restore(out);
        taken
    }
}
