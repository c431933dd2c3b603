//! Compiled expressions: closures over the context of a run.

use archipel_sql::datum::Datum;

use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A scalar expression, compiled.
pub type CompiledExpr = Box<dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Datum> + Send + Sync>;

/// A condition, compiled: `None` is UNKNOWN.
pub type CompiledPredicate = Box<dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Option<bool>> + Send + Sync>;
