//! `pg_sleep` and its kin: whoever sleeps does so on a thread of its own, never on an executor's.

use archipel_engine::Stop;
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::{Intrinsic, ScalarFunction};

use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::{Source, eval_all};

/// Whether whoever calls it sleeps.
pub(crate) fn sleeps(function: &ScalarFunction) -> bool {
    function.is(Intrinsic::Sleep)
}

/// The code of a call that sleeps; its arguments back where it does not.
pub(crate) fn compile(
    function: &'static ScalarFunction,
    args: Vec<Source>,
) -> std::result::Result<CompiledExpr, Vec<Source>> {
    if !sleeps(function) {
        return Err(args);
    }
    Ok(sleeping(function, args))
}

fn sleeping(function: &'static ScalarFunction, args: Vec<Source>) -> CompiledExpr {
    Box::new(move |ctx| {
        let values = eval_all(&args, ctx)?;
        if !ctx.txn.is_apart() {
            // What loads rows or computes columns holds partitions, and cannot go elsewhere.
            return Err(match ctx.is_budgeted() {
                true => Stop::Interactive.into(),
                false => SqlError::unsupported("pg_sleep in COPY or in a definition").into(),
            });
        }
        if values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        Ok((function.eval)(&ctx.functions, &values)?)
    })
}
