//! The state of lowering one query, and what becomes of each of its operators ([`crate::lower`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use archipel_engine::{Engine, Snapshot, TableMeta};
use archipel_planner::bind::visit::visit_expr;
use archipel_planner::bound::{BoundExpr, ExprKind, Rel};
use archipel_sql::types::Type;
use datafusion::common::Column;
use datafusion::logical_expr::LogicalPlanBuilder;

use crate::error::{AnalyticsError, sql_error};
use crate::evaluate::Context;

pub(crate) type Lowering<T> = Result<T, AnalyticsError>;

pub(crate) fn unsupported<T>(what: &str) -> Lowering<T> {
    Err(AnalyticsError::Unsupported(what.to_owned()))
}

/// DataFusion's errors while a plan is built.
pub(crate) fn planned<T>(result: datafusion::common::Result<T>) -> Lowering<T> {
    result.map_err(|error| AnalyticsError::Sql(sql_error(error)))
}

/// A plan and where the operator's columns are in it.
pub struct Lowered {
    pub plan: LogicalPlanBuilder,
    pub columns: Vec<(Column, Type)>,
}

/// The state of lowering one query.
pub struct Lowerer<'a> {
    pub engine: &'a Engine,
    pub snapshot: Arc<Snapshot>,
    pub context: Arc<Context>,
    /// CTE bodies by id: lowered once for each place that reads them.
    pub ctes: BTreeMap<u32, Rel>,
    /// The tables that the plan reads.
    pub tables: Vec<Arc<TableMeta>>,
    pub(crate) names: u32,
}

/// The columns of the operator's row that an expression reads, each once.
pub(crate) fn columns_of(expr: &BoundExpr) -> Vec<u16> {
    let mut used = Vec::new();
    visit_expr(expr, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = part.kind
            && depth == nesting
            && !used.contains(&index)
        {
            used.push(index);
        }
        true
    });
    used
}
