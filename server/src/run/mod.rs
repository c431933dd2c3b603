//! Engine programs of the server: what a session hands to the engine to run.
//!
//! - [`statement`]  one row statement or CALL
//! - [`pipeline`]   several row statements that the client sent at once
//! - [`call`]       a routine with the arguments of one CALL
//! - [`definition`] one DDL statement; [`catalog_rows`] what it writes of it
//! - [`load`]       a batch of COPY rows; [`copy_rows`] those of COPY TO
//! - [`portions`]   rows that leave while a run goes on
//! - [`cursor`]     rows that come as a cursor fetches them
//! - [`row_values`]   what a definition gives the rows that are there; [`computed_value`] of which columns
//!
//! Invariant: a program owns all it needs, may run on any executor, and starts afresh at every
//! run. A panic in evaluation is caught here, undone by the engine and answered XX000; panics
//! inside the engine's storage are the engine's to judge.

pub mod call;
pub mod catalog_rows;
pub(crate) mod computed_value;
pub mod copy_rows;
pub mod cursor;
pub mod definition;
pub mod load;
pub mod pipeline;
pub mod portions;
pub mod row_values;
pub mod statement;

use std::any::Any;
use std::time::Duration;

use archipel_engine::Stop;
use archipel_engine::txn::Txn;
use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::interrupt::Budget;

/// Turns a panic's payload into the error the client sees.
pub(crate) fn panic_error(payload: &(dyn Any + Send)) -> SqlError {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned());
    // What a text cannot be had for; most others would have ended the process.
    if text.starts_with("Cannot allocate memory") {
        return SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory");
    }
    SqlError::internal(format!("the statement failed by a bug in the server: {text}"))
}

/// Refuses NOTIFY where nobody would send it: in what a definition computes.
pub(crate) fn require_silence(context: &ExecContext<'_, '_>) -> ExecResult<()> {
    match context.effects() {
        Some(effects) if !effects.notifications.is_empty() => {
            Err(SqlError::unsupported("NOTIFY in what a definition computes").into())
        }
        _ => Ok(()),
    }
}

/// What a statement fails with that others do not let come to its end.
pub(crate) fn outdated() -> SqlError {
    SqlError::new(
        SqlState::OBJECT_IN_USE,
        "the definitions this statement uses changed while it ran, again and again",
    )
}

/// The time for which a run may keep its thread; `None` for one that runs apart.
pub(crate) fn budget_of(txn: &Txn<'_>, most: Duration) -> Option<Budget> {
    (!txn.is_apart()).then(|| Budget::of(most))
}

/// Whether a run has taken longer.
pub(crate) fn is_spent(budget: Option<&Budget>) -> bool {
    budget.is_some_and(Budget::is_spent)
}

/// What a run comes to: one that was over its budget begins anew apart, whatever it has made of that.
/// What it waits for, and what it is to begin anew for at once, comes first.
pub(crate) fn if_in_time(budget: Option<&Budget>, ran: ExecResult<()>) -> ExecResult<()> {
    let begins_anew = matches!(&ran, Err(ExecError::Stop(stop)) if *stop != Stop::Abort);
    if is_spent(budget) && !begins_anew { Err(Stop::Interactive.into()) } else { ran }
}

/// Keeps an SQL error in `slot` and answers how the engine must stop.
pub(crate) fn stop_with(error: ExecError, slot: &mut Option<SqlError>) -> Stop {
    match error {
        ExecError::Stop(stop) => stop,
        ExecError::Sql(error) => {
            *slot = Some(error);
            Stop::Abort
        }
    }
}
