//! Native execution: bound statements as closures and small plan nodes over a claimed
//! transaction.
//!
//! In the order a statement meets them:
//!
//! - [`compile`]   the state of one compilation: scopes, slots, what was used
//! - [`expression`] scalar expressions → closures; [`predicate`] boolean ones; [`mod@case`] CASE
//!   and the like; `conversion` changes of type; `fold` what planning computes, `planned` what it
//!   fails at; [`operand`] and [`arithmetic`] the fast paths
//! - [`conjunct`]  WHERE and ON taken apart, and which columns each part reads
//! - [`path`]      how a table is reached: key and index ranges from conjuncts
//! - `family`    tables whose rows are in others, `placing` which of them a row is for
//! - [`relation`]  relational operators → [`node::Node`]s; [`join`] their order;
//!   `set_function` set-returning functions
//! - [`node`]      the operators at run time; [`scan`] those that touch tables; [`aggregate`],
//!   [`window`], [`sort`], [`setop`], [`with`]; `quicksort` the order of few rows
//! - [`insert`]    INSERT; [`modify`] UPDATE and DELETE, [`target`] their targets; [`constraint`]
//!   what they check, [`duplicate`] what is there already
//! - [`ahead`]     rows whose keys are known before they are read
//! - `subquery`  nested queries; `partners` those of EXISTS that no key leads to
//! - [`trigger`]   what fires when rows are written; `usage` how long routines take
//! - [`explained`] EXPLAIN ANALYZE among the rows of another statement; `described` what columns of a
//!   plan are called, [`watched`] what its nodes do
//! - [`effects`]   what a run leaves: the open [`cursor`]s of a transaction, what it tells listeners
//!   ([`notify`]), numbers of sequences, checks that wait
//! - [`statement`] the whole, and [`program`]: one statement as an engine program
//!
//! Execution is push-based: a node runs its input with a closure that receives control once a
//! row, the row being in the frame's slots ([`context`]). Stopping early is `Break` all the way
//! down.
//!
//! Invariant: nothing here looks up a name, and nothing allocates per row for scalars.

pub mod context;
pub mod cursor;
pub mod effects;
pub mod statement;

mod action;
mod advisory;
mod aggregate;
pub mod ahead;
mod arithmetic;
mod case;
#[cfg(test)]
mod catalog_tests;
mod compile;
mod conjunct;
mod constraint;
mod conversion;
mod deferral;
mod defined;
mod defined_aggregate;
mod described;
mod described_nodes;
mod duplicate;
mod equality;
mod explained;
mod expression;
mod family;
mod fold;
mod foreseen;
pub mod hash;
mod immutable;
mod insert;
mod instead;
mod integer;
mod join;
mod join_keys;
mod lateral;
mod lock;
mod lookup;
mod merge;
mod modify;
mod node;
pub mod notify;
mod operand;
mod partners;
mod parts;
mod path;
mod placing;
mod planned;
mod predicate;
pub mod program;
mod quicksort;
mod relation;
mod row_read;
mod rows;
pub mod scalar;
mod scan;
mod scan_text;
mod sequence;
mod set_function;
mod setop;
pub(crate) mod sleep;
mod sort;
mod span;
mod stored;
mod subquery;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod trigger;
mod usage;
mod walk;
mod watched;
mod window;
mod with;
mod write;

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

pub use action::rows_as_table;
pub use context::{
    CallerLine, ExecContext, ExecError, ExecResult, NoSystemRows, Notice, Permits, RoutineForm, RunOf,
    SystemRows,
};
pub use deferral::{ConstraintModes, DeferredCheck, DeferredWork, finish_deferred};
pub use equality::equality;
pub use expression::{CompiledExpression, compile_condition, compile_expr, compile_expression, convert_io};
pub use family::members_left;
pub use fold::{is_null, known_within};
pub use immutable::{is_known, is_known_of_known};
pub use operand::element;
pub use planned::failure_of_expression;
pub use program::{StatementHost, StatementProgram, stop_error};
pub use sequence::{Drawn, LAST_SEQUENCE, numbers_for_next_attempt};
pub use statement::{CompiledStatement, compile_explained, compile_statement};
pub use usage::{Usage, Used};
pub use walk::{visit_all_relations, visit_expressions, visit_relations};

use crate::comparison as operator;
use crate::route::Access;

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
