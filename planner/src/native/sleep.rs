//! `pg_sleep`: whoever sleeps does so on a thread of its own, never on an executor's.

use archipel_engine::Stop;
use archipel_sql::error::SqlError;

use super::CompiledExpr;
use super::expression::{Source, eval_all};

/// The code of `pg_sleep` over its arguments.
pub(super) fn compile(args: Vec<Source>) -> CompiledExpr {
    Box::new(move |ctx| {
        let values = eval_all(&args, ctx)?;
        if !ctx.txn.is_apart() {
            // What loads rows or computes columns holds partitions, and cannot go elsewhere.
            return Err(match ctx.budgeted {
                true => Stop::Interactive.into(),
                false => SqlError::unsupported("pg_sleep in COPY or in a definition").into(),
            });
        }
        Ok(ctx.functions.session.call("pg_sleep", &values)?)
    })
}
