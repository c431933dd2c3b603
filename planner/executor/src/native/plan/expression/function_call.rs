//! Calls of built-in functions, with their arguments evaluated in order.

use archipel_sql::datum::Datum;
use archipel_sql::function::ResolvedFunction;

use super::{arithmetic, text};
use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::{Source, eval_all};

/// A call with its arguments evaluated in order.
pub(crate) fn call(resolved: ResolvedFunction, args: Vec<Source>) -> CompiledExpr {
    let specialised = arithmetic::specialise(resolved.function, args);
    let args = match specialised.or_else(|args| text::specialise(resolved.function, args)) {
        Ok(code) => return code,
        Err(args) => args,
    };
    let (eval, strict) = (resolved.function.eval, resolved.function.strict);
    if args.is_empty() {
        return Box::new(move |ctx| Ok(eval(&ctx.functions, &[])?));
    }
    match <[Source; 1]>::try_from(args).map_err(<[Source; 2]>::try_from) {
        Ok([Source::Operand(a)]) => Box::new(move |ctx| {
            let arg = a.get(ctx);
            if strict && arg.is_null() {
                return Ok(Datum::Null);
            }
            Ok(eval(&ctx.functions, std::slice::from_ref(arg))?)
        }),
        Ok([Source::Code(a)]) => Box::new(move |ctx| {
            let args = [a(ctx)?];
            if strict && args[0].is_null() {
                return Ok(Datum::Null);
            }
            Ok(eval(&ctx.functions, &args)?)
        }),
        Err(Ok([a, b])) => Box::new(move |ctx| {
            let args = [a.eval(ctx)?, b.eval(ctx)?];
            if strict && (args[0].is_null() || args[1].is_null()) {
                return Ok(Datum::Null);
            }
            Ok(eval(&ctx.functions, &args)?)
        }),
        Err(Err(args)) => Box::new(move |ctx| {
            let args = eval_all(&args, ctx)?;
            if strict && args.iter().any(Datum::is_null) {
                return Ok(Datum::Null);
            }
            Ok(eval(&ctx.functions, &args)?)
        }),
    }
}
