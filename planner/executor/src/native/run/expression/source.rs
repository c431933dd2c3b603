//! Compiled expressions as their callers see them: where the value lies, or how to get it.

use archipel_sql::datum::Datum;

use super::code::CompiledExpr;
use super::operand::Operand;
use crate::array::Values;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A compiled expression: where the value is, or how to get it.
pub(crate) enum Source {
    Operand(Operand),
    Code(CompiledExpr),
}

impl Source {
    #[inline]
    pub fn eval(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
        match self {
            Source::Operand(operand) => Ok(operand.get(ctx).clone()),
            Source::Code(code) => code(ctx),
        }
    }

    pub fn constant(&self) -> Option<&Datum> {
        match self {
            Source::Operand(Operand::Const(value)) => Some(value),
            _ => None,
        }
    }

    pub fn into_code(self) -> CompiledExpr {
        match self {
            Source::Code(code) => code,
            Source::Operand(Operand::Slot(slot)) => {
                Box::new(move |ctx| Ok(ctx.frame.slots[slot as usize].clone()))
            }
            Source::Operand(Operand::Const(value)) => Box::new(move |_| Ok(value.clone())),
            Source::Operand(operand) => Box::new(move |ctx| Ok(operand.get(ctx).clone())),
        }
    }
}

pub(crate) fn eval_all(sources: &[Source], ctx: &mut ExecContext<'_, '_>) -> ExecResult<Values> {
    let mut values = Values::with_capacity(sources.len());
    eval_into(&mut values, sources, ctx)?;
    Ok(values)
}

/// As [`eval_all`], where the values are wanted.
#[inline]
pub(crate) fn eval_into(
    values: &mut Values,
    sources: &[Source],
    ctx: &mut ExecContext<'_, '_>,
) -> ExecResult<()> {
    for source in sources {
        values.push(source.eval(ctx)?);
    }
    Ok(())
}
