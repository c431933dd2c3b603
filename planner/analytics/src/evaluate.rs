//! Row-wise evaluation of bound expressions without subqueries, for everything DataFusion has no equal of:
//! the binder's interpreter ([`archipel_planner::evaluate`]) over what one execution reads.

use std::sync::Arc;

pub use archipel_planner::bind::visit::is_volatile;
use archipel_planner::bound::BoundExpr;
pub use archipel_planner::evaluate::refusal;
use archipel_planner::evaluate::{RouteInputs, evaluate_row};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::interrupt::Watch;

/// What expressions read beside their row: fixed for one execution.
pub struct Context {
    pub params: Vec<Datum>,
    pub session: Arc<dyn SessionHost + Send + Sync>,
    /// Transaction start, microseconds since 2000-01-01 UTC.
    pub now: i64,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

impl Context {
    /// For calls of scalar functions.
    pub fn functions(&self) -> FunctionContext<'_> {
        FunctionContext { now: self.now, session: &*self.session }
    }

    /// What expressions read, with functions called as [`Self::functions`] says.
    pub fn inputs<'a>(&'a self, functions: &'a FunctionContext<'a>) -> RouteInputs<'a> {
        RouteInputs { params: &self.params, variables: &[], functions }
    }

    /// Lets the work of one call hear that nobody waits for it: it may run on any thread.
    pub(crate) fn watch(&self) -> Watch {
        Watch::of(self.session.clone())
    }
}

/// The value of an expression over a row.
pub fn evaluate(expr: &BoundExpr, row: &[Datum], context: &Context) -> Result<Datum> {
    evaluate_row(expr, row, &context.inputs(&context.functions()))
}
