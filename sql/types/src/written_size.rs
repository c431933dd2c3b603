//! How much a value takes where it is written down.
//!
//! In memory a value may hold one part many times: the elements of an array of rows may all be one row, both
//! fields of a record one value, level by level. Whoever writes it down, as text, as JSON, for the
//! wire or into a row that is kept, writes each of them by itself, and a kilobyte becomes any number
//! of gigabytes. So whatever writes values that are made of others asks here first.

use crate::datum::Datum;
use crate::error::Result;
use crate::function::length::{ALLOCATION_MAX, buffer_too_large};
use crate::{interrupt, memory};

/// What a value takes at least in any form, a NULL too: a comma, a length.
const LEAST_BYTES: usize = 1;

/// The values that one is made of.
fn parts_of(value: &Datum) -> Option<&[Datum]> {
    match value {
        Datum::Record(fields) => Some(&fields[..]),
        Datum::Array(array) => Some(&array.values[..]),
        _ => None,
    }
}

/// About what a value takes that is made of no others.
fn bytes_of(value: &Datum) -> usize {
    match value {
        Datum::Text(text) | Datum::Bpchar(text) | Datum::Jsonb(text) => LEAST_BYTES + text.len(),
        Datum::Bytea(bytes) => LEAST_BYTES + bytes.len(),
        // A digit each, as a text.
        Datum::Bits(bits) => LEAST_BYTES + bits.len(),
        Datum::Numeric(number) => LEAST_BYTES + number.digits_about(),
        _ => LEAST_BYTES,
    }
}

/// Refuses to write down a value whose parts take more memory than there is (53200), or are more than
/// one value has room for (54000). Of those that are made of no others nobody needs to ask.
#[inline]
pub fn check(value: &Datum) -> Result<()> {
    match parts_of(value) {
        None => Ok(()),
        Some(parts) => check_all(parts),
    }
}

#[inline(never)]
fn check_all(parts: &[Datum]) -> Result<()> {
    let mut open = vec![parts.iter()];
    let (mut bytes, mut asked) = (0_usize, memory::LARGE_BYTES);
    while let Some(level) = open.last_mut() {
        let Some(value) = level.next() else {
            open.pop();
            continue;
        };
        interrupt::step()?;
        bytes += bytes_of(value);
        // Early: nobody walks over the rest of what there is no room for.
        if bytes > asked {
            if bytes > ALLOCATION_MAX {
                return Err(buffer_too_large(ALLOCATION_MAX, bytes - ALLOCATION_MAX));
            }
            memory::check(bytes)?;
            asked = bytes.saturating_mul(2).min(ALLOCATION_MAX);
        }
        if let Some(inner) = parts_of(value) {
            open.push(inner.iter());
        }
    }
    memory::check(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::datum::{Array, Dimension};
    use crate::types::Oid;

    fn pair(value: &Datum) -> Datum {
        let dimensions = vec![Dimension { length: 2, lower_bound: 1 }];
        Datum::Array(Arc::new(Array {
            element: Oid::RECORD,
            dimensions,
            values: vec![value.clone(), value.clone()],
        }))
    }

    #[test]
    fn a_part_counts_wherever_it_stands() {
        let mut value = Datum::text(&"x".repeat(1 << 20));
        check(&value).expect("one text is as long as it is");
        for _ in 0..9 {
            value = pair(&value);
        }
        check(&value).expect("half a gigabyte can be one value");
        value = pair(&value);
        let error = check(&value).expect_err("a gigabyte cannot");
        assert_eq!(error.state(), crate::error::SqlState::PROGRAM_LIMIT_EXCEEDED);
        for _ in 0..20 {
            value = pair(&value);
        }
        assert!(check(&value).is_err(), "and nobody walks over a petabyte");
    }
}
