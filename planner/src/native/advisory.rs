//! Advisory locks: functions of the transaction, for a lock that somebody else holds is waited
//! for with nothing claimed.
//!
//! A session's lock outlives the transaction, whatever becomes of it; one of a transaction goes
//! with it. A program that is undone to run again has taken nothing.

use archipel_engine::{LockScope, LockTag, LockWait, ObjectMode, Stop};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::ScalarFunction;

use super::CompiledExpr;
use super::context::{ExecContext, ExecResult};
use super::expression::{Source, eval_all};

/// What one of the functions does.
#[derive(Clone, Copy)]
enum Act {
    Lock(LockScope),
    Try(LockScope),
    Unlock,
    UnlockAll,
}

/// Which of the functions it is, by name and number of arguments: all but the last word say
/// what, a last `shared` in which mode.
fn act(name: &str) -> Option<(Act, ObjectMode)> {
    let (name, mode) = match name.strip_suffix("_shared") {
        Some(name) => (name, ObjectMode::Share),
        None => (name, ObjectMode::Exclusive),
    };
    let act = match name {
        "pg_advisory_lock" => Act::Lock(LockScope::Session),
        "pg_advisory_xact_lock" => Act::Lock(LockScope::Transaction),
        "pg_try_advisory_lock" => Act::Try(LockScope::Session),
        "pg_try_advisory_xact_lock" => Act::Try(LockScope::Transaction),
        "pg_advisory_unlock" => Act::Unlock,
        "pg_advisory_unlock_all" => Act::UnlockAll,
        _ => return None,
    };
    Some((act, mode))
}

/// The code of the function over its arguments, or these back if it is none of them.
pub(crate) fn compile(
    function: &'static ScalarFunction,
    args: Vec<Source>,
) -> Result<CompiledExpr, Vec<Source>> {
    let Some((act, mode)) = act(function.name) else { return Err(args) };
    Ok(Box::new(move |ctx| {
        let values = eval_all(&args, ctx)?;
        let tag = match &values[..] {
            [] => return all(act, ctx),
            // The halves of a number are told apart as pg_locks shows them.
            [Datum::Int8(key)] => LockTag::Advisory((key >> 32) as u32, *key as u32, false),
            [Datum::Int4(first), Datum::Int4(second)] => {
                LockTag::Advisory(*first as u32, *second as u32, true)
            }
            _ => return Ok(Datum::Null),
        };
        Ok(match act {
            Act::Lock(scope) => {
                if ctx.budgeted && ctx.txn.transaction_id().is_none() {
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
            Act::Try(scope) => Datum::Bool(ctx.txn.try_lock_object(tag, mode, scope)?),
            Act::Unlock => {
                let held = ctx.txn.unlock_object(tag, mode);
                if !held {
                    let message = format!("you don't own a lock of type {}", mode.name());
                    let error = SqlError::new(SqlState::WARNING, message);
                    ctx.notice("WARNING", error, ctx.depth);
                }
                Datum::Bool(held)
            }
            Act::UnlockAll => return all(act, ctx),
        })
    }))
}

fn all(act: Act, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
    if matches!(act, Act::UnlockAll) {
        ctx.txn.unlock_all_objects();
    }
    Ok(Datum::Text(Default::default()))
}
