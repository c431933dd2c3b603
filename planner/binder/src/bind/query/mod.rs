//! Queries, from WITH to LIMIT.
//!
//! - [`set_operation`] whole queries: set operations, VALUES, ORDER BY and LIMIT
//! - [`column_types`] columns of a finished query that are to be of other types
//! - [`select`] one SELECT: its clauses, and the operators that answer it
//! - [`target_list`] what a SELECT says
//! - [`grouping`] GROUP BY and the rule that everything else must be grouped
//! - [`project_set`] SELECT lists that call functions that answer rows
//! - [`postpone`] output columns with effects under ORDER BY
//! - [`cte`] WITH
//! - [`recursion`] where a recursive query may name itself
//! - [`search_cycle`] SEARCH and CYCLE
//! - [`show`] SHOW as a query

mod column_types;
pub(crate) mod cte;
pub mod grouping;
pub(crate) mod postpone;
pub(crate) mod project_set;
pub(crate) mod recursion;
pub(crate) mod search_cycle;
pub mod select;
pub(crate) mod set_operation;
pub(crate) mod show;
pub(crate) mod target_list;
