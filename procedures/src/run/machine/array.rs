//! Arrays of the machine of loops ([`crate::run::machine`]).
//!
//! An array that the loop itself changes is taken out of its register the first time: to change
//! one in a register is to ask each time whether somebody shares it. It goes back before anything
//! else reads or writes the register, and when the loop ends.

use std::sync::Arc;

use archipel_planner::native::element;
use archipel_planner::native::scalar::text::Extent;
use archipel_sql::datum::{Array, Datum};
use archipel_sql::types::Oid;

use super::instruction::Place;
use crate::run::element::array_of;

/// An array that is changed: where it belongs, and the array if it has been taken out.
pub(super) struct Held {
    register: u32,
    element: Oid,
    taken: Option<Array>,
}

impl Held {
    pub fn all(places: &[(u32, Oid)]) -> Vec<Held> {
        places
            .iter()
            .map(|(register, element)| Held { register: *register, element: *element, taken: None })
            .collect()
    }

    /// The array, to be changed. NULL becomes an empty one.
    #[inline]
    pub fn array(&mut self, variables: &mut [Datum]) -> &mut Array {
        let (register, element) = (self.register as usize, self.element);
        self.taken.get_or_insert_with(|| {
            let array = array_of(&mut variables[register], element);
            std::mem::replace(array, empty(array.element))
        })
    }

    pub fn give_back(&mut self, variables: &mut [Datum]) {
        if let Some(array) = self.taken.take() {
            *array_of(&mut variables[self.register as usize], self.element) = array;
        }
    }
}

fn empty(element: Oid) -> Array {
    Array { element, dimensions: Vec::new(), values: Vec::new() }
}

/// An array, wherever it is; `None` is NULL.
#[inline]
pub(super) fn array_at<'a>(variables: &'a [Datum], held: &'a [Held], place: Place) -> Option<&'a Array> {
    if let Some(at) = place.held
        && let Some(array) = &held[usize::from(at)].taken
    {
        return Some(array);
    }
    match &variables[place.register as usize] {
        Datum::Array(array) => Some(array),
        _ => None,
    }
}

/// An element of an array of one dimension; NULL for one beyond it.
#[inline]
pub(super) fn element_at<'a>(
    variables: &'a [Datum],
    held: &'a [Held],
    place: Place,
    index: Option<i64>,
) -> &'a Datum {
    match (array_at(variables, held, place), index) {
        (Some(array), Some(index)) => element(array, &[index]),
        _ => &Datum::Null,
    }
}

/// How long an array is along a dimension, and the like.
pub(super) fn extent(array: &Array, extent: Extent, dimension: i64) -> Option<i64> {
    if extent == Extent::Cardinality {
        return Some(array.values.len() as i64);
    }
    let dimension = array.dimensions.get(usize::try_from(dimension).ok()?.checked_sub(1)?)?;
    let (lower, length) = (i64::from(dimension.lower_bound), dimension.length as i64);
    Some(match extent {
        Extent::Length | Extent::Cardinality => length,
        Extent::Lower => lower,
        Extent::Upper => lower + length - 1,
    })
}

/// An array that FOREACH goes over, and how far it is.
#[derive(Default)]
pub(super) struct Each {
    array: Option<Arc<Array>>,
    at: usize,
}

impl Each {
    pub fn over(array: Arc<Array>) -> Each {
        Each { array: Some(array), at: 0 }
    }

    /// The next element.
    #[inline]
    pub fn next(&mut self) -> Option<&Datum> {
        let value = self.array.as_ref()?.values.get(self.at);
        self.at += usize::from(value.is_some());
        value
    }

    /// Ends it; answers whether there was an element.
    pub fn end(&mut self) -> bool {
        self.array = None;
        self.at > 0
    }
}
