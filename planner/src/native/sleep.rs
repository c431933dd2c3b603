//! `pg_sleep`: whoever sleeps does so on a thread of its own, never on an executor's.

use archipel_engine::Stop;

use super::CompiledExpr;
use super::expression::{Source, eval_all};

/// The code of `pg_sleep` over its arguments.
pub(super) fn compile(args: Vec<Source>) -> CompiledExpr {
    Box::new(move |ctx| {
        let values = eval_all(&args, ctx)?;
        if ctx.budgeted && !ctx.txn.is_apart() {
            return Err(Stop::Interactive.into());
        }
        Ok(ctx.functions.session.call("pg_sleep", &values)?)
    })
}
