//! Values with parts of them replaced, on ways through fields, elements and keys.

use super::array_assign;
use crate::datum::{Array, Datum};
use crate::error::{Result, SqlError};
use crate::function::args::*;
use crate::function::{Eval, json};
use crate::types::Oid;

/// `(value, changes, …)`. `changes` tells one change after the other: steps, then `=`. A step is
/// `f<place>/<width>;`, a field of a row of so many fields, or `e<element type>,<bounds>;`, an element
/// or a slice of an array (`bounds` as in `archipel_array_assign`), or `j<count>;`, a part of jsonb.
/// The bounds or keys that a step names follow in the order of the steps, then the new part.
pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[("archipel_part_assign", |_, v| assign(v))];

fn damaged() -> SqlError {
    SqlError::internal("a way to a part of a value cannot be read")
}

enum Step<'w> {
    Field { place: usize, width: usize },
    Elements { element: Oid, bounds: &'w str },
    Keys(usize),
}

impl<'w> Step<'w> {
    fn read(written: &'w str) -> Option<Step<'w>> {
        let (kind, rest) = written.split_at_checked(1)?;
        Some(match kind {
            "f" => {
                let (place, width) = rest.split_once('/')?;
                Step::Field { place: place.parse().ok()?, width: width.parse().ok()? }
            }
            "e" => {
                let (element, bounds) = rest.split_once(',')?;
                Step::Elements { element: Oid(element.parse().ok()?), bounds }
            }
            "j" => Step::Keys(rest.parse().ok()?),
            _ => return None,
        })
    }

    /// How many arguments it takes.
    fn arguments(&self) -> usize {
        match self {
            Step::Field { .. } => 0,
            Step::Elements { bounds, .. } => 2 * bounds.len(),
            Step::Keys(count) => *count,
        }
    }
}

fn assign(v: &[Datum]) -> Result<Datum> {
    let mut value = any(v, 0)?.clone();
    let mut args = v.get(2..).unwrap_or_default();
    for way in text(v, 1)?.split_terminator('=') {
        let steps = way.split_terminator(';').map(Step::read);
        let steps: Vec<Step<'_>> = steps.collect::<Option<_>>().ok_or_else(damaged)?;
        let own = steps.iter().map(Step::arguments).sum::<usize>() + 1;
        let (own, rest) = args.split_at_checked(own).ok_or_else(damaged)?;
        args = rest;
        value = changed(value, &steps, own)?;
    }
    Ok(value)
}

/// A value with the part at the end of a way replaced by the last of the arguments.
fn changed(base: Datum, steps: &[Step<'_>], args: &[Datum]) -> Result<Datum> {
    let Some((step, rest)) = steps.split_first() else {
        return args.last().cloned().ok_or_else(damaged);
    };
    let (own, args) = args.split_at(step.arguments());
    Ok(match step {
        Step::Field { place, width } => {
            let mut fields = match base {
                Datum::Record(fields) => fields.to_vec(),
                _ => Vec::new(),
            };
            // Fields that the type got after the value was made are NULL.
            fields.resize(*width, Datum::Null);
            let field = fields.get_mut(*place).ok_or_else(damaged)?;
            *field = changed(field.take(), rest, args)?;
            Datum::Record(fields.into())
        }
        Step::Elements { element, bounds } => {
            let now = if rest.is_empty() { Datum::Null } else { element_of(&base, own) };
            let part = changed(now, rest, args)?;
            let mut all = vec![base, part, Datum::text(bounds), Datum::Oid(*element)];
            all.extend_from_slice(own);
            array_assign::assign(&all)?
        }
        Step::Keys(_) => {
            let part = changed(Datum::Null, rest, args)?;
            let mut all = vec![base, part];
            all.extend_from_slice(own);
            json::assign(&all)?
        }
    })
}

/// The element that plain subscripts name, each after the lower bound that it does not have.
fn element_of(base: &Datum, bounds: &[Datum]) -> Datum {
    let Datum::Array(array) = base else { return Datum::Null };
    let subscripts = bounds.chunks_exact(2).map(|pair| match pair {
        [_, Datum::Int4(index)] => Some(*index),
        _ => None,
    });
    let place = subscripts.collect::<Option<Vec<i32>>>().and_then(|subscripts| place_of(array, &subscripts));
    place.and_then(|place| array.values.get(place)).cloned().unwrap_or(Datum::Null)
}

fn place_of(array: &Array, subscripts: &[i32]) -> Option<usize> {
    if array.dimensions.len() != subscripts.len() {
        return None;
    }
    array.dimensions.iter().zip(subscripts).try_fold(0, |place, (dimension, subscript)| {
        let inside = i64::from(*subscript) - i64::from(dimension.lower_bound);
        let inside = usize::try_from(inside).ok().filter(|inside| *inside < dimension.length)?;
        Some(place * dimension.length + inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: i32, b: Datum) -> Datum {
        Datum::Record([Datum::Int4(a), b].into())
    }

    #[test]
    fn a_field_of_an_element_is_replaced_and_missing_ones_are_made() {
        let index = |at: i32| [Datum::Null, Datum::Int4(at)];
        let mut args = vec![Datum::Null, Datum::text("e2249,i;f0/2;=e2249,i;f1/2;=e2249,i;f1/2;=")];
        for (at, value) in [(1, Datum::Int4(7)), (1, Datum::text("x")), (2, Datum::text("y"))] {
            args.extend(index(at));
            args.push(value);
        }
        let Ok(Datum::Array(array)) = assign(&args) else { panic!("no array") };
        let second = Datum::Record([Datum::Null, Datum::text("y")].into());
        assert_eq!(array.values, [pair(7, Datum::text("x")), second]);
    }
}
