//! A batch of COPY rows as an engine program: one INSERT plan, run once a row.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use archipel_engine::txn::Txn;
use archipel_engine::{ClaimSet, Program, RoutingTable, Stop};
use archipel_planner::native::{ExecContext, ExecResult, NoRows};
use archipel_planner::route::{RouteInputs, predict};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;

use super::{panic_error, stop_with};
use crate::session::host::Host;
use crate::statement::{Code, RowPlan};

/// Batches up to this size claim just the partitions of their rows; larger ones whole groups,
/// because they would meet most partitions anyway.
const ROWS_ROUTED_MAX: usize = 256;

/// See the module's head.
pub struct LoadRun {
    /// `INSERT INTO table (columns) VALUES ($1, …)`.
    pub plan: Arc<RowPlan>,
    pub rows: Vec<Vec<Datum>>,
    pub host: Arc<Host>,
    pub now: Option<i64>,
    /// The row that failed, if one did.
    pub failed_row: Option<usize>,
    pub error: Option<SqlError>,
}

impl LoadRun {
    fn insert_all(&mut self, txn: &mut Txn<'_>) -> ExecResult<()> {
        let Code::Native(insert) = &self.plan.code else {
            return Err(SqlError::internal("COPY without an INSERT plan").into());
        };
        let now = match self.now {
            Some(now) => now,
            None => txn.started_at(),
        };
        let host = self.host.clone();
        let functions = FunctionContext { now, session: &*host };
        let mut context = ExecContext::new(txn, functions, &*host);
        context.budgeted = false;
        for (index, row) in self.rows.iter_mut().enumerate() {
            if index % 1024 == 1023 && functions.session.interrupted() {
                return Err(Stop::Cancelled.into());
            }
            context.params = std::mem::take(row);
            let inserted = insert.run(&mut context, &mut NoRows);
            *row = std::mem::take(&mut context.params);
            if let Err(error) = inserted {
                self.failed_row = Some(index);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Program for LoadRun {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        let Code::Native(insert) = &self.plan.code else { return };
        if self.rows.len() > ROWS_ROUTED_MAX {
            for group in insert.accesses.iter().filter_map(|access| access.group) {
                claims.add_group(group);
            }
            return;
        }
        let functions = FunctionContext { now: self.now.unwrap_or(0), session: &*self.host };
        for row in &self.rows {
            let inputs = RouteInputs { params: row, variables: &[], functions: &functions };
            predict(&insert.accesses, &inputs, routing, claims);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.error = None;
        self.failed_row = None;
        self.host.begin_run();
        match catch_unwind(AssertUnwindSafe(|| self.insert_all(txn))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(stop_with(error, &mut self.error)),
            Err(payload) => {
                self.error = Some(panic_error(&*payload));
                Err(Stop::Abort)
            }
        }
    }
}
