//! Calls that PostgreSQL computes when it plans: what their errors say.

use archipel_sql::catalog::Routine;
use archipel_sql::function::{ScalarFunction, Volatility, is_written_in_sql};

use crate::bound::BoundExpr;
use crate::known::is_known;
use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::routine::CompiledRoutine;
use crate::native::run::state::error::ExecError;

/// The place an error in a function is told with that PostgreSQL has in SQL: one of constants it runs,
/// any other call becomes part of the expression around it.
pub(crate) fn body_context(function: &ScalarFunction, args: &[BoundExpr]) -> Option<String> {
    let runs = is_written_in_sql(function)
        && function.volatility == Volatility::Immutable
        && args.iter().all(is_known);
    runs.then(|| format!("SQL function \"{}\" statement 1", function.name))
}

/// The place that errors in a function of the user's are told with, one that PostgreSQL puts in the
/// place of its calls: with known arguments it is called, or put there, while the statement is planned.
pub(crate) fn dissolved_context(
    routine: &Routine,
    compiled: &dyn CompiledRoutine,
    args: &[BoundExpr],
) -> Option<String> {
    let never_changes = compiled.dissolved()?;
    if !args.iter().all(is_known) {
        return None;
    }
    let name = &routine.name;
    match (routine.volatility, never_changes) {
        ('i', _) => Some(format!("SQL function \"{name}\" statement 1")),
        (_, true) => Some(format!("SQL function \"{name}\" during inlining")),
        _ => None,
    }
}

/// A call whose errors are told with a place.
pub(crate) fn in_context(code: CompiledExpr, line: String) -> CompiledExpr {
    Box::new(move |ctx| {
        code(ctx).map_err(|error| match error {
            ExecError::Sql(mut error) => {
                let context = &mut error.fields_mut().context;
                *context = Some(match context.take() {
                    Some(inner) => format!("{inner}\n{line}"),
                    None => line.clone(),
                });
                ExecError::Sql(error)
            }
            other => other,
        })
    })
}
