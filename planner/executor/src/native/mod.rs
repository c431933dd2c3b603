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

pub(crate) mod plan;
pub(crate) mod run;
#[cfg(test)]
mod catalog_tests;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archipel_engine::TableMeta;
use archipel_engine::id::TreeId;
use archipel_sql::catalog::{Catalog, RoutineRef, TableRef, Trigger, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::system::Defined;

pub use crate::array::element;
pub use crate::construct::convert_io;
pub use crate::known::{is_known, is_known_of_known, is_null, known_within};
use crate::route::Access;
pub use plan::scalar;
pub use plan::access::inheritance::members_left;
pub use plan::constant::failure_of_expression;
pub use plan::expression::{CompiledExpression, compile_condition, compile_expr, compile_expression};
pub use plan::walk::{visit_all_relations, visit_expressions, visit_relations};
pub use run::{program, statement};
pub use run::access::prefetch as ahead;
pub use run::constraint::deferral::{ConstraintModes, DeferredCheck, DeferredWork, finish_deferred};
pub use run::constraint::referential_action::rows_as_table;
pub use run::function::notify;
pub use run::function::sequence::{Drawn, LAST_SEQUENCE, numbers_for_next_attempt};
pub use run::program::{StatementHost, StatementProgram, stop_error};
pub use run::row::hash;
pub use run::row::equality::equality;
pub use run::state::{context, cursor, effects};
pub use run::state::context::{CallerLine, ExecContext, ExecError, ExecResult, NoSystemRows, Notice, Permits, RoutineForm, RunOf, SystemRows};
pub use run::state::usage::{Usage, Used};
pub use run::statement::{CompiledStatement, compile_explained, compile_statement};

/// A scalar expression, compiled.
pub type CompiledExpr = Box<dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Datum> + Send + Sync>;

/// A condition, compiled: `None` is UNKNOWN.
pub type CompiledPredicate = Box<dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Option<bool>> + Send + Sync>;

/// Where result rows go. `Break` asks for no more of them.
pub trait RowSink {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>>;

    /// A row nobody reads afterwards: its values may be taken out of it.
    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        self.row(row)
    }
}

/// Collects everything.
impl RowSink for Vec<Vec<Datum>> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.push(row.to_vec());
        Ok(ControlFlow::Continue(()))
    }
}

/// Forgets every row.
pub struct NoRows;
impl RowSink for NoRows {
    fn row(&mut self, _row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}

/// The engine's tables, by tree.
pub trait TableSource {
    fn table(&self, tree: TreeId) -> Option<Arc<TableMeta>>;

    /// How many rows a table has, about; zero where that is not known.
    fn rows(&self, _tree: TreeId) -> u64 {
        0
    }
}

impl TableSource for archipel_engine::Engine {
    fn table(&self, tree: TreeId) -> Option<Arc<TableMeta>> {
        archipel_engine::Engine::table(self, tree)
    }

    fn rows(&self, tree: TreeId) -> u64 {
        self.rows_at_most(tree)
    }
}

/// Whether a plan failed because the engine has a definition that the catalog does not say yet: it
/// can be made as soon as whoever defines has published it.
pub fn is_outdated(error: &archipel_sql::error::SqlError) -> bool {
    error.state() == archipel_sql::error::SqlState::INTERNAL_ERROR && error.fields().table.is_some()
}

/// Finds the compiled form of a deployed routine, compiling it if need be.
pub trait RoutineLinker {
    fn link(&self, routine: &RoutineRef) -> Result<Arc<dyn CompiledRoutine>>;

    /// The compiled form of a trigger of a table for one event: called with the old and the new
    /// row, NULL for one there is not. Its function answers the row to go on with, or none; its
    /// condition answers whether to call the function.
    fn link_trigger(
        &self,
        table: &TableRef,
        trigger: &Trigger,
        event: TriggerEvent,
        part: TriggerPart,
    ) -> Result<Arc<dyn CompiledRoutine>> {
        let _ = (event, part);
        Err(archipel_sql::error::SqlError::unsupported(format_args!(
            "firing trigger {} of {} here",
            trigger.name, table.name
        )))
    }

    /// The same for another version of the catalog; `None` where that makes no difference.
    fn at(&self, catalog: &Catalog) -> Option<Arc<dyn RoutineLinker + Send + Sync>> {
        let _ = catalog;
        None
    }

    /// Set once what was linked here may ask where its callers are
    /// ([`CompiledRoutine::asks_callers`]): the routine it is linked into has to tell then.
    fn asked_below(&self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// What of a trigger is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriggerPart {
    Function,
    /// WHEN.
    Condition,
    /// The function, in the form that can stop for the session if there is one.
    Pieces,
}

/// A linker for places without routines.
pub struct NoRoutines;
impl RoutineLinker for NoRoutines {
    fn link(&self, routine: &RoutineRef) -> Result<Arc<dyn CompiledRoutine>> {
        Err(archipel_sql::error::SqlError::unsupported(format_args!(
            "calling {}.{} here",
            routine.schema, routine.name
        )))
    }
}

/// A deployed routine as expressions and FROM items call it.
pub trait CompiledRoutine: Send + Sync {
    /// Runs it. Result rows (one for a scalar function) go to `sink`.
    fn call(&self, ctx: &mut ExecContext<'_, '_>, args: &[Datum], sink: &mut dyn RowSink) -> ExecResult<()>;
    /// What it will touch, over its arguments as `Param(n)`.
    fn accesses(&self) -> &[Access];
    /// Whether it, or something that it calls, asks where its callers are (`PG_CONTEXT`).
    fn asks_callers(&self) -> bool {
        false
    }
    /// Of a function whose expression PostgreSQL puts in the place of its calls: whether that never
    /// changes, so that it fails with known arguments while the call is planned.
    fn dissolved(&self) -> Option<bool> {
        None
    }
    /// As CONTEXT lines name it, where that is known.
    fn signature(&self) -> Option<&str> {
        None
    }
    /// The routine itself: CALL needs more of a procedure than an expression of a function.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// What compilation may ask of the outside.
pub struct CompileEnv<'a> {
    pub tables: &'a dyn TableSource,
    pub catalog: &'a Catalog,
    /// Along which plans that are told name the types of users.
    pub search_path: &'a [String],
    pub routines: &'a dyn RoutineLinker,
}

impl<'a> CompileEnv<'a> {
    /// Who says what types are called and what values of users' types are.
    fn session(&self) -> Defined<'a> {
        Defined { catalog: self.catalog, search_path: self.search_path }
    }
}
