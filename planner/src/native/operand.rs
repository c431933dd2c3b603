//! Operands that are already somewhere: read without a closure call and without a clone.

use archipel_sql::datum::Datum;

use super::context::ExecContext;

/// A value with an address.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Slot(u32),
    Param(u16),
    Variable(u32),
    Const(Datum),
}

impl Operand {
    /// The value. A parameter or register beyond what the caller supplied reads as NULL; the
    /// server checks the count of parameters before it runs anything.
    #[inline(always)]
    pub fn get<'c>(&'c self, ctx: &'c ExecContext<'_, '_>) -> &'c Datum {
        match self {
            Operand::Slot(slot) => &ctx.frame.slots[*slot as usize],
            Operand::Param(index) => ctx.params.get(usize::from(*index)).unwrap_or(&Datum::Null),
            Operand::Variable(index) => ctx.variables.get(*index as usize).unwrap_or(&Datum::Null),
            Operand::Const(value) => value,
        }
    }
}
