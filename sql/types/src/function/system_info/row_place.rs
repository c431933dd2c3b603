//! The places of rows that are kept by a primary key: `ctid`.
//!
//! Such a row lies where its key says, and has no other place. A `tid` of it has 47 bits here (a block of 32, and
//! an offset from 1 to 2^15, as offset 0 is none in PostgreSQL), and stands for the key:
//!
//! - **Keys of up to three integers** are written into it where they are small enough: 46 bits of one, 23 of each of
//!   two, 15 of each of three. The row with the key 1 is at `(0,1)`. This is an arithmetic: it costs no memory, no
//!   look-up, holds over restarts, keeps the order of keys, and such a `tid` is computed back into its key.
//! - **Other keys** have numbers with the highest bit set, which the server draws when a key is first asked for its
//!   place, and remembers in both directions ([`super::super::SessionHost::call`]): for as long as a transaction
//!   that has asked is under way, and then as long as there is room. No number is drawn twice. One that is not
//!   known any more finds no row, as after VACUUM in PostgreSQL.
//!
//! Weighed and left: a hidden number in each row (16 bytes of rows of whoever never asks, and an index more to find
//! it by); a hash of the key (two rows of a large table would share one, and a DELETE take both); numbers in the
//! order of the tree (an insert would move all places behind it).
//!
//! So a place is one row's as long as its key stays what it is; UPDATE leaves it alone, unlike in PostgreSQL. A
//! statement that asks for no `ctid` pays nothing.
//!
//! No statement can name these functions: a place would tell the key of a row that its asker may not see. They are given
//! what the key is of: the number of the constraint, and whether its columns are integers.

use super::tid::{tid_place, tid_value};
use crate::datum::Datum;
use crate::error::Result;
use crate::function::args::*;
use crate::function::{Eval, FunctionContext};
use crate::types::Oid;

/// Offsets within a block, from 1 on.
const OFFSET_BITS: u32 = 15;

/// Bits of keys that are written into places.
const KEY_BITS: u32 = 46;

/// How many columns such keys have at most.
const COLUMNS_MAX: usize = 3;

/// What drawn numbers are counted from.
const DRAWN: u64 = 1 << KEY_BITS;

/// How many drawn numbers there are: the last block is none to PostgreSQL.
pub const PLACE_NUMBERS: u64 = DRAWN - (1 << OFFSET_BITS);

/// Whether values of a type may be written into places.
pub fn is_place_integer(ty: Oid) -> bool {
    matches!(ty, Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::OID)
}

/// The `tid` of a number of 47 bits.
fn tid_of(number: u64) -> Datum {
    let offset = (number & ((1 << OFFSET_BITS) - 1)) as u16 + 1;
    Datum::Int8(tid_value((number >> OFFSET_BITS) as u32, offset))
}

/// The number that a `tid` is made of, if it may be a row's here.
fn number_of(tid: i64) -> Option<u64> {
    let (block, offset) = tid_place(tid);
    let offset = u64::from(offset.checked_sub(1)?);
    (offset >> OFFSET_BITS == 0).then(|| u64::from(block) << OFFSET_BITS | offset)
}

/// The `tid` of a drawn number, less than [`PLACE_NUMBERS`].
pub fn drawn_place(number: u64) -> Datum {
    tid_of(DRAWN + number % PLACE_NUMBERS)
}

/// The drawn number that a `tid` is; `None` if it is none.
pub fn drawn_number(tid: i64) -> Option<u64> {
    number_of(tid)?.checked_sub(DRAWN)
}

/// How many bits each of so many columns has.
fn column_bits(columns: usize) -> Option<u32> {
    ((1..=COLUMNS_MAX).contains(&columns)).then(|| KEY_BITS / columns as u32)
}

/// A key as a number of [`KEY_BITS`], where it is small enough: each column less one, so that the first row of a
/// table comes first, as a number of two's complement.
fn key_number(key: &[Datum]) -> Option<u64> {
    let bits = column_bits(key.len())?;
    let mut number = 0;
    for value in key {
        let value = match value {
            Datum::Int2(n) => i64::from(*n),
            Datum::Int4(n) => i64::from(*n),
            Datum::Int8(n) => *n,
            Datum::Oid(oid) => i64::from(oid.0),
            _ => return None,
        };
        let value = value.checked_sub(1)?;
        let half = 1_i64 << (bits - 1);
        if !(-half..half).contains(&value) {
            return None;
        }
        number = number << bits | value as u64 & ((1 << bits) - 1);
    }
    Some(number)
}

/// A column of a key of so many that is written into a number, as a value of its type; `None` if no row has it.
fn key_column(number: u64, columns: usize, column: usize, ty: Oid) -> Option<Datum> {
    let bits = column_bits(columns)?;
    let behind = u32::try_from(columns.checked_sub(column + 1)?).ok()? * bits;
    // What no key fills is zero.
    if number >> (bits * columns as u32) != 0 {
        return None;
    }
    let value = number >> behind & ((1 << bits) - 1);
    let unused = u64::BITS - bits;
    let value = (((value << unused) as i64) >> unused) + 1;
    Some(match ty {
        Oid::INT2 => Datum::Int2(value.try_into().ok()?),
        Oid::INT4 => Datum::Int4(value.try_into().ok()?),
        Oid::INT8 => Datum::Int8(value),
        Oid::OID => Datum::Oid(Oid(value.try_into().ok()?)),
        _ => return None,
    })
}

/// `archipel_row_place(constraint, integers, key …)`: the place of the row with a key.
fn row_place(context: &FunctionContext<'_>, values: &[Datum]) -> Result<Datum> {
    let key = values.get(2..).unwrap_or_default();
    // What an outer join has put in the place of a row.
    if key.is_empty() || key.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    match boolean(values, 1)?.then(|| key_number(key)).flatten() {
        Some(number) => Ok(tid_of(number)),
        None => context.session.call("archipel_row_place", values),
    }
}

/// `archipel_place_key(tid, constraint, integers, columns, column, type)`: a column of the key of the row at a
/// place; NULL where there is none.
fn place_key(context: &FunctionContext<'_>, values: &[Datum]) -> Result<Datum> {
    if values.first().is_none_or(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let place = int8(values, 0)?;
    let (columns, column) = (int4(values, 3)? as usize, int4(values, 4)? as usize);
    match number_of(place) {
        None => Ok(Datum::Null),
        Some(number) if number < DRAWN => {
            let found =
                boolean(values, 2)?.then(|| key_column(number, columns, column, oid(values, 5).ok()?));
            Ok(found.flatten().unwrap_or(Datum::Null))
        }
        Some(_) => context.session.call("archipel_place_key", values),
    }
}

/// `archipel_place_keys`: the same of each element of an array of places.
fn place_keys(context: &FunctionContext<'_>, values: &[Datum]) -> Result<Datum> {
    if values.first().is_none_or(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let mut one = values.to_vec();
    let places = array(values, 0)?;
    let mut keys = Vec::with_capacity(places.values.len());
    for place in &places.values {
        one[0] = place.clone();
        keys.push(place_key(context, &one)?);
    }
    Ok(crate::function::array_of_values(oid(values, 5)?, keys))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("archipel_row_place", row_place),
    ("archipel_place_key", place_key),
    ("archipel_place_keys", place_keys),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(number: u64) -> String {
        let Datum::Int8(place) = tid_of(number) else { return String::new() };
        let mut text = String::new();
        let _ = super::super::tid::show_tid(place, &mut text);
        text
    }

    #[test]
    fn keys_of_integers_come_back() {
        for key in
            [1, 2, 0, -1, 32_768, 32_769, i64::from(i32::MAX), i64::from(i32::MIN), 1 << 45, 2 - (1 << 45)]
        {
            let number = key_number(&[Datum::Int8(key)]).expect("small enough");
            assert_eq!(key_column(number, 1, 0, Oid::INT8), Some(Datum::Int8(key)));
            let Datum::Int8(place) = tid_of(number) else { panic!("a place is a number") };
            assert_eq!(number_of(place), Some(number));
        }
        let pair = [Datum::Int4(-7), Datum::Int2(300)];
        let number = key_number(&pair).expect("small enough");
        assert_eq!(key_column(number, 2, 0, Oid::INT4).as_ref(), Some(&pair[0]));
        assert_eq!(key_column(number, 2, 1, Oid::INT2).as_ref(), Some(&pair[1]));
    }

    #[test]
    fn first_rows_come_first() {
        assert_eq!(shown(key_number(&[Datum::Int4(1)]).expect("small enough")), "(0,1)");
        assert_eq!(shown(key_number(&[Datum::Int4(32_769)]).expect("small enough")), "(1,1)");
        assert_eq!(shown(key_number(&[Datum::Int4(1), Datum::Int4(1)]).expect("small enough")), "(0,1)");
    }

    #[test]
    fn large_keys_and_strange_places_are_none() {
        assert_eq!(key_number(&[Datum::Int8((1 << 45) + 1)]), None);
        assert_eq!(key_number(&[Datum::Int8(i64::MIN)]), None);
        assert_eq!(key_number(&[Datum::Int4(1), Datum::Int4(1 << 23)]), None);
        assert_eq!(key_number(&[Datum::text("1")]), None);
        assert_eq!(number_of(tid_value(7, 0)), None);
        assert_eq!(number_of(tid_value(7, 32_769)), None);
        // An integer of 16 bits has no key 40,000; of three columns 46 bits are not filled.
        assert_eq!(key_column(39_999, 1, 0, Oid::INT2), None);
        assert_eq!(key_column(1 << 45, 3, 0, Oid::INT4), None);
        assert_eq!(key_column(0, 4, 0, Oid::INT4), None);
    }

    #[test]
    fn drawn_numbers_are_no_keys() {
        let Datum::Int8(place) = drawn_place(5) else { panic!("a place is a number") };
        assert_eq!(drawn_number(place), Some(5));
        assert_eq!(drawn_number(tid_value(0, 1)), None);
        let Datum::Int8(last) = drawn_place(PLACE_NUMBERS - 1) else { panic!("a place is a number") };
        assert_eq!(tid_place(last).0, u32::MAX - 1);
    }
}
