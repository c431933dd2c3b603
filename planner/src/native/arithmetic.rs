//! Fast paths for integer arithmetic: operands read in place, checked, no argument slice.

use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::ScalarFunction;

use super::CompiledExpr;
use super::context::{ExecContext, ExecResult};
use super::expression::Source;
use super::operand::Operand;

/// A specialised closure for a call, or its arguments back.
pub(crate) fn specialise(
    function: &'static ScalarFunction,
    args: Vec<Source>,
) -> Result<CompiledExpr, Vec<Source>> {
    let args = <[Source; 2]>::try_from(args)?;
    type Checked<T> = fn(T, T) -> Option<T>;
    let narrow: Option<Checked<i32>> = match function.name {
        "int4pl" => Some(i32::checked_add),
        "int4mi" => Some(i32::checked_sub),
        "int4mul" => Some(i32::checked_mul),
        _ => None,
    };
    if let Some(operate) = narrow {
        return Ok(binary(args, move |a, b| match (a, b) {
            (Datum::Int4(a), Datum::Int4(b)) => match operate(*a, *b) {
                Some(v) => Ok(Datum::Int4(v)),
                None => Err(out_of_range("integer")),
            },
            _ => Ok(Datum::Null),
        }));
    }
    let wide: Option<Checked<i64>> = match function.name {
        "int8pl" | "int48pl" | "int84pl" => Some(i64::checked_add),
        "int8mi" | "int48mi" | "int84mi" => Some(i64::checked_sub),
        "int8mul" | "int48mul" | "int84mul" => Some(i64::checked_mul),
        _ => None,
    };
    if let Some(operate) = wide {
        return Ok(binary(args, move |a, b| match (crate::row::integer(a), crate::row::integer(b)) {
            (Some(a), Some(b)) => match operate(a, b) {
                Some(v) => Ok(Datum::Int8(v)),
                None => Err(out_of_range("bigint")),
            },
            _ => Ok(Datum::Null),
        }));
    }
    Err(args.into())
}

fn out_of_range(ty: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

/// A closure over two sources; `apply` sees NULLs and answers them.
fn binary(
    [left, right]: [Source; 2],
    apply: impl Fn(&Datum, &Datum) -> Result<Datum, SqlError> + Send + Sync + 'static,
) -> CompiledExpr {
    match (left, right) {
        (Source::Operand(Operand::Slot(a)), Source::Operand(Operand::Const(b))) => {
            Box::new(move |ctx: &mut ExecContext<'_, '_>| -> ExecResult<Datum> {
                Ok(apply(&ctx.frame.slots[a as usize], &b)?)
            })
        }
        (Source::Operand(a), Source::Operand(b)) => Box::new(move |ctx| Ok(apply(a.get(ctx), b.get(ctx))?)),
        (Source::Operand(a), Source::Code(b)) => Box::new(move |ctx| {
            let b = b(ctx)?;
            Ok(apply(a.get(ctx), &b)?)
        }),
        (Source::Code(a), Source::Operand(b)) => Box::new(move |ctx| {
            let a = a(ctx)?;
            Ok(apply(&a, b.get(ctx))?)
        }),
        (Source::Code(a), Source::Code(b)) => Box::new(move |ctx| {
            let a = a(ctx)?;
            let b = b(ctx)?;
            Ok(apply(&a, &b)?)
        }),
    }
}
