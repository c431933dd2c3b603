//! Parts of a query that are run before it: so many rows of them, and which of their errors are told only where
//! somebody reads them.

use archipel_planner::bound::{BoundExpr, Rel};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::types::Type;

/// Whether an error is one of the rows, which PostgreSQL may never come to: not of what ends a query.
pub(crate) fn is_told_later(error: &SqlError) -> bool {
    let state = error.state();
    !["53", "57", "XX"].iter().any(|class| state.as_str().starts_with(class))
}

pub(crate) fn limited(rel: Rel, rows: i64) -> Rel {
    let limit = Some(BoundExpr::constant(Datum::Int8(rows), Type::INT8));
    Rel::Limit { input: Box::new(rel), limit, offset: None, with_ties: false }
}
