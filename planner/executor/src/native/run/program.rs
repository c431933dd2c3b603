//! One statement as an engine program: autocommit, or a statement of an open transaction.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::txn::Txn;
use archipel_engine::{ClaimSet, Program, RoutingTable, Stop};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::{FunctionContext, SessionHost};

use super::statement::CompiledStatement;
use crate::native::run::function::sequence::Drawn;
use crate::native::run::row::sink::RowSink;
use crate::native::run::state::context::{ExecContext, Notice, SystemRows};
use crate::native::run::state::error::{ExecError, ExecResult};
use crate::route;
use crate::route::predict;

/// What statements need of their session, shared with the executor that runs them.
pub trait StatementHost: SessionHost + SystemRows + Send + Sync + 'static {}
impl<T: SessionHost + SystemRows + Send + Sync + 'static> StatementHost for T {}

/// Runs one compiled statement with parameters and keeps its rows.
pub struct StatementProgram<H: StatementHost> {
    pub statement: Arc<CompiledStatement>,
    pub params: Vec<Datum>,
    pub host: Arc<H>,
    /// Beyond this many result rows the statement stops with `Interactive`; the server then
    /// streams. Zero is no limit.
    pub rows_max: usize,
    /// Result rows of the last run, one after the other, `statement.columns.len()` wide.
    pub rows: Vec<Datum>,
    pub row_count: usize,
    /// Rows answered by a query, written by anything else.
    pub count: u64,
    pub error: Option<SqlError>,
    pub notices: Vec<Notice>,
    /// What `nextval` gave, for `currval` and `lastval`.
    pub sequences: Vec<Drawn>,
}

impl<H: StatementHost> StatementProgram<H> {
    pub fn new(statement: Arc<CompiledStatement>, params: Vec<Datum>, host: Arc<H>) -> Self {
        StatementProgram {
            statement,
            params,
            host,
            rows_max: 0,
            rows: Vec::new(),
            row_count: 0,
            count: 0,
            error: None,
            notices: Vec::new(),
            sequences: Vec::new(),
        }
    }

    /// The result rows.
    pub fn result_rows(&self) -> impl Iterator<Item = &[Datum]> {
        let width = self.statement.columns.len();
        (0..self.row_count).map(move |row| &self.rows[row * width..(row + 1) * width])
    }
}

/// Buffers rows up to a limit.
struct Buffer<'b> {
    rows: &'b mut Vec<Datum>,
    count: &'b mut usize,
    rows_max: usize,
}

impl RowSink for Buffer<'_> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        *self.count += 1;
        if self.rows_max > 0 && *self.count > self.rows_max {
            return Err(Stop::Interactive.into());
        }
        self.rows.extend_from_slice(row);
        Ok(ControlFlow::Continue(()))
    }
}

impl<H: StatementHost> Program for StatementProgram<H> {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        let host: &dyn SessionHost = &*self.host;
        let functions = FunctionContext { now: 0, session: host };
        let inputs = route::RouteInputs { params: &self.params, variables: &[], functions: &functions };
        predict(&self.statement.accesses, &inputs, claims);
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.rows.clear();
        self.row_count = 0;
        self.count = 0;
        self.error = None;
        self.notices.clear();
        self.sequences.clear();
        let now = txn.started_at();
        let host = self.host.clone();
        let functions = FunctionContext { now, session: &*host };
        let mut ctx = ExecContext::new(txn, functions, &*host);
        ctx.params = std::mem::take(&mut self.params);
        let mut buffer = Buffer { rows: &mut self.rows, count: &mut self.row_count, rows_max: self.rows_max };
        let result = self.statement.run(&mut ctx, &mut buffer);
        self.params = std::mem::take(&mut ctx.params);
        self.notices = std::mem::take(&mut ctx.notices);
        if let Some(effects) = ctx.take_effects() {
            self.sequences = effects.sequences;
        }
        match result {
            Ok(count) => {
                self.count = count;
                Ok(())
            }
            Err(ExecError::Stop(stop)) => Err(stop),
            Err(ExecError::Sql(error)) => {
                self.error = Some(error);
                Err(Stop::Abort)
            }
        }
    }
}
