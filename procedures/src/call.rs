//! One call of a routine as a program of the engine: `CALL f(…)`, `SELECT f(…)` and
//! `SELECT * FROM f(…)` with the arguments at hand.
//!
//! The call predicts its partitions from the routine's accesses and its arguments, runs the
//! compiled body, and keeps rows and notices until it has committed. It starts afresh each time
//! it is run, and a finished one may be given new arguments and used again.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::{ClaimSet, Engine, Program as EngineProgram, RoutingTable, Stop, Txn};
use archipel_planner::native::{
    Drawn, ExecContext, ExecError, ExecResult, Notice, RowSink, StatementHost, SystemRows,
};
use archipel_planner::route::{self, RouteInputs};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;

use crate::run::operation::Program;

/// Result rows, flat.
#[derive(Debug, Default)]
pub struct Rows {
    pub values: Vec<Datum>,
    pub count: usize,
}

impl Rows {
    /// Columns of a row; zero without rows.
    pub fn width(&self) -> usize {
        self.values.len().checked_div(self.count).unwrap_or(0)
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[Datum]> {
        let width = self.width();
        (0..self.count).map(move |row| &self.values[row * width..(row + 1) * width])
    }

    fn clear(&mut self) {
        self.values.clear();
        self.count = 0;
    }
}

impl RowSink for Rows {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.values.extend(row.iter().cloned());
        self.count += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        self.values.extend(row.iter_mut().map(Datum::take));
        self.count += 1;
        Ok(ControlFlow::Continue(()))
    }
}

/// A call with its arguments and, afterwards, its results.
pub struct CallProgram<H: StatementHost> {
    pub routine: Arc<Program>,
    pub args: Vec<Datum>,
    pub host: Arc<H>,
    /// Reads what keys depend on in reference tables before the call is routed.
    pub engine: Engine,
    pub rows: Rows,
    pub notices: Vec<Notice>,
    /// What `nextval` gave, for `currval` and `lastval`.
    pub sequences: Vec<Drawn>,
    /// Why the call failed, when the engine answers [`Stop::Abort`].
    pub error: Option<SqlError>,
}

impl<H: StatementHost> CallProgram<H> {
    pub fn new(routine: Arc<Program>, args: Vec<Datum>, host: Arc<H>, engine: Engine) -> Self {
        CallProgram {
            routine,
            args,
            host,
            engine,
            rows: Rows::default(),
            notices: Vec::new(),
            sequences: Vec::new(),
            error: None,
        }
    }
}

impl<H: StatementHost> EngineProgram for CallProgram<H> {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        let functions = FunctionContext { now: 0, session: &*self.host };
        self.routine.predict(&self.args, &functions, &*self.host, &self.engine, claims);
    }

    fn class(&self) -> u32 {
        self.routine.routine.oid.0
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.rows.clear();
        self.error = None;
        let functions = FunctionContext { now: txn.started_at(), session: &*self.host };
        let mut ctx = ExecContext::new(txn, functions, &*self.host);
        let result = self.routine.invoke(&mut ctx, &self.args, &mut self.rows);
        self.notices = std::mem::take(&mut ctx.notices);
        self.sequences.clear();
        if let Some(effects) = ctx.take_effects() {
            self.sequences = effects.sequences;
        }
        match result {
            Ok(()) => Ok(()),
            Err(ExecError::Stop(stop)) => Err(stop),
            Err(ExecError::Sql(error)) => {
                self.error = Some(error);
                Err(Stop::Abort)
            }
        }
    }
}

impl Program {
    /// Adds what a call with these arguments will touch to its claims. A wrong prediction costs
    /// a restart, never an answer.
    pub fn predict(
        &self,
        args: &[Datum],
        functions: &FunctionContext<'_>,
        system: &dyn SystemRows,
        engine: &Engine,
        claims: &mut ClaimSet,
    ) {
        if self.reference_reads.is_empty() {
            let inputs = RouteInputs { params: args, variables: &[], functions };
            return route::predict(&self.routes, &inputs, claims);
        }
        let params = self.with_reference_reads(args, functions, system, engine);
        let inputs = RouteInputs { params: &params, variables: &[], functions };
        route::predict(&self.routes, &inputs, claims);
    }

    /// The arguments, and behind them what keys depend on in reference tables. What cannot be
    /// read now is NULL, a key no row has: the call finds its partition as it runs.
    fn with_reference_reads(
        &self,
        args: &[Datum],
        functions: &FunctionContext<'_>,
        system: &dyn SystemRows,
        engine: &Engine,
    ) -> Vec<Datum> {
        let mut params = args.to_vec();
        for read in &self.reference_reads {
            let value = engine.read_references(|txn| {
                let functions = FunctionContext { now: functions.now, session: functions.session };
                let mut ctx = ExecContext::new(txn, functions, system);
                ctx.params = std::mem::take(&mut params);
                let value = (read.value)(&mut ctx);
                params = std::mem::take(&mut ctx.params);
                match value {
                    Ok(value) => Ok(value),
                    Err(ExecError::Stop(stop)) => Err(stop),
                    Err(ExecError::Sql(_)) => Ok(Datum::Null),
                }
            });
            params.push(value.unwrap_or(Datum::Null));
        }
        params
    }
}
