//! Analytical queries: the bound tree lowered to DataFusion, over a snapshot.
//!
//! A query that reads tables whole would hold every partition's claim if it ran natively. Here
//! it runs over a snapshot, beside the transactions, on threads of its own:
//!
//! 1. [`subquery`] runs uncorrelated subqueries and puts their results into the tree; those that ask
//!    for partners of a row become joins ([`subquery::semi_join`]), aggregates of the rows that belong to
//!    a row are computed for all rows together ([`subquery::correlated_aggregate`]); a query of WITH that
//!    several places read runs once ([`subquery::with`]);
//! 2. [`lower`] turns operators into DataFusion's, and expressions into native ones where they mean the
//!    same, else into row-wise [`function`]s over [`evaluate`]; aggregates keep PostgreSQL's states
//!    ([`aggregate`]) or count units ([`aggregate::scaled`]), and values that are carried in several forms
//!    are compared in one ([`aggregate::keys`]);
//! 3. DataFusion optimises and executes, tests that can fail last ([`ordered`], [`failure`]); tables are read
//!    page by page ([`scan`]), values travel in Arrow arrays ([`scan::carrier`]); a query that nobody waits
//!    for ends ([`stop`]), and so does one that there is no memory for ([`memory`]);
//! 4. [`Rows`] hands the result out as datums; errors come back as they were ([`error`]).
//!
//! Invariant: the same statement gives the same result on both executors. What cannot be
//! lowered with equal meaning is [`AnalyticsError::Unsupported`], and the caller runs it
//! natively.

pub mod aggregate;
mod environment;
pub mod error;
pub mod evaluate;
mod failure;
pub mod function;
pub mod lower;
mod memory;
mod ordered;
pub mod scan;
mod stop;
pub mod subquery;

use std::sync::{Arc, PoisonError};

use archipel_engine::{Snapshot, TableMeta};
use archipel_planner::bound::{BoundQuery, Rel};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::types::Type;
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{DataFrame, SessionConfig};
use futures::StreamExt;

pub use environment::{Analytics, Environment, TablesRead};
pub use error::AnalyticsError;
use error::sql_error;
use evaluate::Context;
use lower::Lowerer;
use ordered::{OrderTests, PushDown};
use scan::batch_slices::BATCH_ROWS;
use scan::carrier::Reader;

impl Analytics {
    /// An executor whose queries together may hold this much memory, beyond the tables' own.
    pub fn new(memory_bytes: usize) -> Result<Analytics, SqlError> {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(memory::Budgeted::new(memory_bytes))
            .build_arc()
            .map_err(|error| SqlError::internal(error.to_string()))?;
        // One partition: aggregates keep PostgreSQL's states, which do not merge; and the
        // scan is done by the executors that own the data anyway.
        let config = SessionConfig::new().with_target_partitions(1).with_batch_size(BATCH_ROWS);
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rules(physical_rules())
            .with_physical_optimizer_rule(Arc::new(OrderTests))
            .build();
        Ok(Analytics { state })
    }

    /// Plans a query over the environment's snapshot and starts it. The snapshot is the query's:
    /// it serves none that reads other tables afterwards. Run the query, and read its rows, on a
    /// runtime of its own, with timers: it computes on the thread that polls it.
    pub async fn execute(
        &self,
        query: &BoundQuery,
        environment: &Environment,
    ) -> Result<Rows, AnalyticsError> {
        let (rows, tables) = self.start(&query.rel, environment).await?;
        // Subqueries have read what they read: what is left are the plan's own tables.
        match &environment.tables_read {
            None => environment.snapshot.narrow(&tables),
            Some(read) => environment.snapshot.narrow(&read.lock().unwrap_or_else(PoisonError::into_inner)),
        }
        Ok(rows)
    }

    async fn execute_rel(&self, rel: &Rel, environment: &Environment) -> Result<Rows, AnalyticsError> {
        Ok(self.start(rel, environment).await?.0)
    }

    /// The running query, and the tables it reads.
    async fn start(
        &self,
        rel: &Rel,
        environment: &Environment,
    ) -> Result<(Rows, Vec<Arc<TableMeta>>), AnalyticsError> {
        let context = Arc::new(Context {
            params: environment.params.clone(),
            session: environment.session.clone(),
            now: environment.now,
        });
        let rel = subquery::resolve(self, rel, environment).await?;
        let mut lowerer = Lowerer::new(&environment.engine, environment.snapshot.clone(), context.clone());
        let lowered = lowerer.rel(&rel)?;
        let tables = std::mem::take(&mut lowerer.tables);
        if let Some(read) = &environment.tables_read {
            read.lock().unwrap_or_else(PoisonError::into_inner).extend(tables.iter().cloned());
        }
        let types: Vec<Type> = lowered.columns.iter().map(|(_, ty)| *ty).collect();
        let outputs: Vec<_> = lowered
            .columns
            .iter()
            .map(|(column, _)| datafusion::logical_expr::Expr::Column(column.clone()))
            .collect();
        let plan = if outputs.is_empty() {
            lowered.plan
        } else {
            lowered.plan.project(outputs).map_err(sql_error)?
        };
        let plan = plan.build().map_err(sql_error)?;
        let mut state = self.state.clone();
        let batch_rows = scan::batch_slices::batch_rows(&tables, &environment.snapshot).await?;
        if batch_rows < BATCH_ROWS {
            *state.config_mut() = state.config().clone().with_batch_size(batch_rows);
        }
        let frame = DataFrame::new(state, plan);
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.map_err(sql_error)?;
        let plan = stop::watched(plan, &context).map_err(sql_error)?;
        let stream = execute_stream(plan, task).map_err(sql_error)?;
        let snapshot = environment.snapshot.clone();
        Ok((Rows { stream, types, snapshot, batch: None, given: 0 }, tables))
    }
}

/// DataFusion's, but for the one that computes common parts of a filter's tests before the filter, and
/// with filters pushed below joins as [`PushDown`] does: what can fail would see rows that another
/// test rules out.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| rule.name() != "common_sub_expression_eliminate");
    for rule in &mut rules {
        if rule.name() == "push_down_filter" {
            *rule = Arc::new(PushDown::default());
        }
    }
    rules
}

/// DataFusion's, after one of them that usually comes late: aggregates are not computed in parts
/// where their input comes in several, as that of UNION ALL and of the members of a family does, for
/// their states do not merge.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(CombinePartialFinalAggregate::new()));
    rules
}

/// Rows are given in portions of about this size: what is one array may stand in many columns, and what takes
/// them takes several portions at a time.
const GIVEN_BYTES: usize = 4 << 20;

/// The rows of a running query, in batches. Dropping it stops the query.
pub struct Rows {
    stream: SendableRecordBatchStream,
    types: Vec<Type>,
    /// Kept until the last row is read.
    snapshot: Arc<Snapshot>,
    /// A batch of which not all rows are given yet, and how many are.
    batch: Option<RecordBatch>,
    given: usize,
}

impl Rows {
    /// The types of the columns.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// The snapshot the rows come from: a reply depends on its epoch.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<Datum>>>, SqlError> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => {
                let Some(batch) = self.stream.next().await else { return Ok(None) };
                self.given = 0;
                batch.map_err(sql_error)?
            }
        };
        let readers = self
            .types
            .iter()
            .enumerate()
            .map(|(i, ty)| Reader::new(batch.column(i).as_ref(), *ty))
            .collect::<Result<Vec<_>, _>>()?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while self.given < batch.num_rows() && bytes < GIVEN_BYTES {
            let row = self.given;
            bytes += readers.iter().map(|reader| reader.width(row)).sum::<usize>();
            rows.push(readers.iter().map(|reader| reader.get(row)).collect());
            self.given += 1;
        }
        if self.given < batch.num_rows() {
            self.batch = Some(batch);
        }
        Ok(Some(rows))
    }
}
