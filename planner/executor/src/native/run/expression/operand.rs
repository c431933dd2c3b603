//! Operands that are already somewhere: read without a closure call and without a clone.

use archipel_sql::datum::Datum;

use crate::array::element;
use crate::native::run::state::context::ExecContext;

/// A value with an address.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Slot(u32),
    Param(u16),
    Variable(u32),
    Const(Datum),
    /// One element of a one-dimensional array, both of them with an address: `items[i]`.
    Element(Box<(Operand, Operand)>),
    /// The same of two variables, as in a loop over arrays.
    VariableElement(u32, u32),
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
            Operand::VariableElement(array, index) => element_of_variables(*array, *index, ctx),
        }
    }

    /// One element of an array.
    pub fn element(array: Operand, index: Operand) -> Operand {
        match (array, index) {
            (Operand::Variable(array), Operand::Variable(index)) => Operand::VariableElement(array, index),
            (Operand::Const(array), Operand::Const(index)) => {
                Operand::Const(other_element(&array, &index).clone())
            }
            parts => Operand::Element(Box::new(parts)),
        }
    }
}

#[inline]
fn element_of_variables<'c>(array: u32, index: u32, ctx: &'c ExecContext<'_, '_>) -> &'c Datum {
    let variables = &ctx.variables[..];
    match (variables.get(array as usize), variables.get(index as usize)) {
        (Some(Datum::Array(array)), Some(Datum::Int4(index))) if array.dimensions.len() == 1 => {
            let at = i64::from(*index) - i64::from(array.dimensions[0].lower_bound);
            array.values.get(at as usize).unwrap_or(&Datum::Null)
        }
        (Some(array), Some(index)) => other_element(array, index),
        _ => &Datum::Null,
    }
}

#[inline(never)]
fn other_element<'c>(array: &'c Datum, index: &Datum) -> &'c Datum {
    match (array, crate::row::integer(index)) {
        (Datum::Array(array), Some(index)) => element(array, &[index]),
        _ => &Datum::Null,
    }
}

fn element_of<'c>((array, index): &'c (Operand, Operand), ctx: &'c ExecContext<'_, '_>) -> &'c Datum {
    match (array.get(ctx), crate::row::integer(index.get(ctx))) {
        (Datum::Array(array), Some(index)) => element(array, &[index]),
        _ => &Datum::Null,
    }
}
