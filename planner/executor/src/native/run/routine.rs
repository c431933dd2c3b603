//! Compiled routines, as expressions and FROM items call them.

use std::any::Any;
use std::sync::Arc;

use archipel_sql::datum::Datum;

use crate::native::run::row::sink::RowSink;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::route::Access;

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
