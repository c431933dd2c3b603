//! Native execution: bound statements as closures and small plan nodes over a claimed
//! transaction.
//!
//! Two halves, with floors of the same names. [`plan`] compiles, and makes what [`run`] runs; `run` knows no
//! compiler.
//!
//! | | compiled in | runs in |
//! |---|---|---|
//! | a statement | `plan/statement` | `run/statement`; `run/program`: as an engine program |
//! | relational operators, joins | `plan/relation`, `plan/join` | `run/operator`, `run/window` |
//! | how tables are reached | `plan/access` | `run/access` |
//! | expressions and conditions | `plan/expression`, `plan/scalar`, `plan/constant` | `run/expression`, `run/function` |
//! | INSERT, UPDATE, DELETE, MERGE | `plan/change` | `run/change` |
//! | what they must not break | `plan/constraint` | `run/constraint` |
//! | EXPLAIN | `plan/explain` | `run/operator` |
//!
//! `plan/compiler` is the state of one compilation, `run/state` what a statement runs in and what it leaves,
//! `run/row` rows by themselves.
//!
//! Execution is push-based: a node runs its input with a closure that receives control once a
//! row, the row being in the frame's slots ([`context`]). Stopping early is `Break` all the way
//! down.
//!
//! Invariant: nothing here looks up a name, and nothing allocates per row for scalars.

#[cfg(test)]
mod catalog_tests;
#[cfg(test)]
mod placement_tests;
pub(crate) mod plan;
pub(crate) mod run;
#[cfg(test)]
mod tests;

pub use crate::array::element;
pub use crate::construct::convert_io;
pub use crate::known::{is_known, is_known_of_known, is_null, known_within};
pub use plan::access::inheritance::members_left;
pub use plan::constant::failure_of_expression;
pub use plan::environment::{CompileEnv, NoRoutines, RoutineLinker, TableSource, TriggerPart, is_outdated};
pub use plan::expression::{CompiledExpression, compile_condition, compile_expr, compile_expression};
pub use plan::scalar;
pub use plan::statement::{compile_explained, compile_statement};
pub use plan::walk::{visit_all_relations, visit_expressions, visit_relations};
pub use run::access::prefetch;
pub use run::constraint::deferral::{DeferredCheck, DeferredWork, finish_deferred};
pub use run::constraint::mode::ConstraintModes;
pub use run::constraint::referential_action::rows_as_table;
pub use run::expression::code::{CompiledExpr, CompiledPredicate};
pub use run::function::notify;
pub use run::function::sequence::{Drawn, LAST_SEQUENCE, numbers_for_next_attempt};
pub use run::program::{StatementHost, StatementProgram};
pub use run::routine::CompiledRoutine;
pub use run::row::equality::equality;
pub use run::row::hash;
pub use run::row::sink::{NoRows, RowSink};
pub use run::state::context::{
    CallerLine, ExecContext, NoSystemRows, Notice, Permits, RoutineForm, RunOf, SystemRows,
};
pub use run::state::error::{ExecError, ExecResult, stop_error};
pub use run::state::usage::{Usage, Used};
pub use run::state::{context, cursor, cursors, effects};
pub use run::statement::CompiledStatement;
pub use run::{program, statement};
