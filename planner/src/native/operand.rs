//! Operands that are already somewhere: read without a closure call and without a clone.

use archipel_sql::datum::{Array, Datum};

use super::context::ExecContext;

/// A value with an address.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Slot(u32),
    Param(u16),
    Variable(u32),
    Const(Datum),
    /// One element of a one-dimensional array, both of them with an address: `items[i]`.
    Element(Box<(Operand, Operand)>),
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
            Operand::Element(parts) => element_of(parts, ctx),
        }
    }
}

fn element_of<'c>((array, index): &'c (Operand, Operand), ctx: &'c ExecContext<'_, '_>) -> &'c Datum {
    match (array.get(ctx), crate::row::integer(index.get(ctx))) {
        (Datum::Array(array), Some(index)) => element(array, &[index]),
        _ => &Datum::Null,
    }
}

/// One element; NULL outside the bounds or with the wrong number of subscripts.
#[inline]
pub fn element<'a>(array: &'a Array, indexes: &[i64]) -> &'a Datum {
    if let ([dimension], [index]) = (&array.dimensions[..], indexes) {
        let offset = index - i64::from(dimension.lower_bound);
        return usize::try_from(offset).ok().and_then(|at| array.values.get(at)).unwrap_or(&Datum::Null);
    }
    if array.dimensions.len() != indexes.len() {
        return &Datum::Null;
    }
    let mut at = 0usize;
    for (dimension, index) in array.dimensions.iter().zip(indexes) {
        let offset = index - i64::from(dimension.lower_bound);
        if offset < 0 || offset >= dimension.length as i64 {
            return &Datum::Null;
        }
        at = at * dimension.length + offset as usize;
    }
    array.values.get(at).unwrap_or(&Datum::Null)
}
