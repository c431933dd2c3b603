//! Fast paths for calls: operands read in place, no argument slice. Integers have one of their own:
//! [`super::integer`].

use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::{Intrinsic, ScalarFunction};
use archipel_sql::numeric::Numeric;
use archipel_sql::types::Type;
use archipel_sql::typmod::coerce_typmod;

use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A specialised closure for a call, or its arguments back.
pub(crate) fn specialise(
    function: &'static ScalarFunction,
    args: Vec<Source>,
) -> Result<CompiledExpr, Vec<Source>> {
    let args = match coercion(function, args) {
        Ok(code) => return Ok(code),
        Err(args) => args,
    };
    let args = <[Source; 2]>::try_from(args)?;
    type Exact = fn(&Numeric, &Numeric) -> Result<Numeric, SqlError>;
    let exact: Option<Exact> = match function.intrinsic {
        Some(Intrinsic::NumericAdd) => Some(Numeric::add),
        Some(Intrinsic::NumericSubtract) => Some(Numeric::sub),
        Some(Intrinsic::NumericMultiply) => Some(Numeric::mul),
        _ => None,
    };
    if let Some(operate) = exact {
        return Ok(binary(args, move |a, b| match (a, b) {
            (Datum::Numeric(a), Datum::Numeric(b)) => operate(a, b).map(Datum::Numeric),
            _ => Ok(Datum::Null),
        }));
    }
    Err(args.into())
}

/// A length coercion with a constant modifier, as an assignment makes it: `numeric(12,2)`,
/// `varchar(20)`, `char(2)`.
fn coercion(function: &'static ScalarFunction, args: Vec<Source>) -> Result<CompiledExpr, Vec<Source>> {
    if !function.is(Intrinsic::ToLength) {
        return Err(args);
    }
    let explicit = match args.get(2).map(Source::constant) {
        None => false,
        Some(Some(Datum::Bool(explicit))) => *explicit,
        Some(_) => return Err(args),
    };
    let Some(Some(Datum::Int4(typmod))) = args.get(1).map(Source::constant) else { return Err(args) };
    let ty = Type { oid: function.result, typmod: *typmod };
    let mut args = args;
    let value = args.swap_remove(0);
    Ok(Box::new(move |ctx| Ok(coerce_typmod(value.eval(ctx)?, ty, explicit)?)))
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
