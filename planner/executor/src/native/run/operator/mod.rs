//! The operators of a plan.
//!
//! - [`node`] all of them
//! - [`append`] the members of a family
//! - [`join`] nested loops and hash joins
//! - [`aggregate`] GROUP BY
//! - [`transition`] what takes the rows of an aggregate call
//! - [`sort`] ORDER BY and DISTINCT
//! - [`postponed`] columns that are computed above a join
//! - [`set_operation`] UNION, INTERSECT, EXCEPT
//! - [`set_function`] set-returning functions
//! - [`limit`] LIMIT and OFFSET
//! - [`lock`] SELECT … FOR UPDATE
//! - [`with`] WITH and recursion
//! - [`modifying_cte`] the parts of a statement with WITH
//! - [`explain_analyze`] EXPLAIN ANALYZE as rows
//! - [`instrument`] nodes that are counted

pub(crate) mod aggregate;
pub(crate) mod append;
pub(crate) mod explain_analyze;
pub(crate) mod instrument;
pub(crate) mod join;
pub(crate) mod limit;
pub(crate) mod lock;
pub(crate) mod modifying_cte;
pub(crate) mod node;
pub(crate) mod postponed;
pub(crate) mod set_function;
pub(crate) mod set_operation;
pub(crate) mod sort;
pub(crate) mod transition;
pub(crate) mod with;
