//! Advisory locks: functions of the transaction, for a lock that somebody else holds is waited
//! for with nothing claimed.
//!
//! A session's lock outlives the transaction, whatever becomes of it; one of a transaction goes
//! with it. A program that is undone to run again has taken nothing.

use archipel_engine::{LockScope, LockTag, LockWait, ObjectMode, Stop};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::{AdvisoryLock, Intrinsic, ScalarFunction};

use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// The code of the function over its arguments, or these back if it is none of them.
pub(crate) fn compile(
    function: &'static ScalarFunction,
    args: Vec<Source>,
) -> Result<CompiledExpr, Vec<Source>> {
    let Some(Intrinsic::Advisory(act, shared)) = function.intrinsic else { return Err(args) };
    let mode = if shared { ObjectMode::Share } else { ObjectMode::Exclusive };
    let scope = match act {
        AdvisoryLock::TakeForTransaction | AdvisoryLock::TryForTransaction => LockScope::Transaction,
        _ => LockScope::Session,
    };
    Ok(Box::new(move |ctx| {
        let values = eval_all(&args, ctx)?;
        let (first, second, two) = match &values[..] {
            [] => return all(act, ctx),
            // The halves of a number are told apart as pg_locks shows them.
            [Datum::Int8(key)] => ((key >> 32) as u32, *key as u32, false),
            [Datum::Int4(first), Datum::Int4(second)] => (*first as u32, *second as u32, true),
            _ => return Ok(Datum::Null),
        };
        let database = ctx.functions.session.database_oid()?.0;
        let tag = LockTag::Advisory { database, first, second, two };
        Ok(match act {
            AdvisoryLock::Take | AdvisoryLock::TakeForTransaction => {
                if ctx.is_budgeted() && ctx.txn.transaction_id().is_none() {
                    // What it waits with goes on with what it saw: no one-shot does.
                    if !ctx.txn.try_lock_object(tag, mode, scope)? {
                        return Err(Stop::Interactive.into());
                    }
                    return Ok(Datum::Text(Default::default()));
                }
                ctx.txn.lock_object(tag, mode, scope, LockWait::Wait)?;
                // void
                Datum::Text(Default::default())
            }
            AdvisoryLock::Try | AdvisoryLock::TryForTransaction => {
                Datum::Bool(ctx.txn.try_lock_object(tag, mode, scope)?)
            }
            AdvisoryLock::GiveBack => {
                let held = ctx.txn.unlock_object(tag, mode);
                if !held {
                    let message = format!("you don't own a lock of type {}", mode.name());
                    let error = SqlError::new(SqlState::WARNING, message);
                    ctx.notice("WARNING", error, ctx.depth);
                }
                Datum::Bool(held)
            }
            AdvisoryLock::GiveBackAll => return all(act, ctx),
        })
    }))
}

fn all(act: AdvisoryLock, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
    if matches!(act, AdvisoryLock::GiveBackAll) {
        ctx.txn.unlock_all_objects();
    }
    Ok(Datum::Text(Default::default()))
}
