//! Memcomparable keys: comparing the bytes compares the columns.
//!
//! Each key column writes its cell so that unsigned byte order is the column's order:
//! integers big-endian with the sign flipped, floats by their total order (all NaNs equal and
//! greatest, -0 equal to 0, as PostgreSQL), `Bytes` with 0x00 and 0x01 escaped and a 0x00 at
//! the end so that a prefix sorts first. A descending column has its value bytes inverted.
//! Only a nullable column spends a marker byte; the marker alone decides where NULLs go. Values whose
//! stored bytes are no order of theirs have their key bytes made above the engine ([`KeyForm`]).

use std::ops::Bound;
use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::cell::{Cell, ColumnKind};
use crate::schema::{KeyColumn, KeyForm};

/// A key under construction; keys of OLTP tables stay inside the inline buffer.
pub type KeyBuf = SmallVec<[u8; 64]>;

const NULL_FIRST: u8 = 0x00;
const NOT_NULL: u8 = 0x01;
const NULL_LAST: u8 = 0x02;

const END: u8 = 0x00;
const ESCAPE: u8 = 0x01;

/// Makes from stored bytes those that stand in keys: equal for equal values, sorted as the values are,
/// and none of them the beginning of another one.
pub type DeriveKey = fn(form: u8, stored: &[u8], key: &mut Vec<u8>);

static DERIVED: OnceLock<DeriveKey> = OnceLock::new();

/// Says how [`KeyForm::Derived`] bytes are made, before an engine with such keys is opened. Only the
/// first call counts.
pub fn set_derived_keys(derive: DeriveKey) {
    let _ = DERIVED.set(derive);
}

/// The key bytes of a column whose stored bytes do not sort as its values do.
#[inline(never)]
fn encode_derived(out: &mut KeyBuf, stored: &[u8], form: u8) {
    let derive = DERIVED.get().expect("whoever opens an engine with derived keys says how they are made");
    let mut bytes = Vec::with_capacity(stored.len() + 8);
    derive(form, stored, &mut bytes);
    encode_value(out, Cell::Bytes(&bytes), ColumnKind::Bytes);
}

/// Appends one cell to a key. The cell is `Null` (for a nullable column) or of `kind`.
///
/// # Panics
/// On a cell of another kind, or NULL for a column that cannot be NULL: a bug above.
#[inline]
pub fn encode_cell(out: &mut KeyBuf, cell: Cell<'_>, column: &KeyColumn, kind: ColumnKind) {
    if column.nullable {
        let null_marker = if column.nulls_first { NULL_FIRST } else { NULL_LAST };
        if matches!(cell, Cell::Null) {
            out.push(null_marker);
            return;
        }
        out.push(NOT_NULL);
    }
    let start = out.len();
    match (column.form, cell) {
        (KeyForm::Derived(form), Cell::Bytes(stored)) => encode_derived(out, stored, form),
        _ => encode_value(out, cell, kind),
    }
    if column.descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

/// Appends an integer of 2 bytes of a [`KeyColumn::is_plain`] column, as [`encode_cell`] does.
#[inline]
pub fn append_int2(out: &mut KeyBuf, value: i16) {
    append(out, ((value as u16) ^ (1 << 15)).to_be_bytes());
}

/// Appends an integer of 4 bytes of a [`KeyColumn::is_plain`] column, as [`encode_cell`] does.
#[inline]
pub fn append_int4(out: &mut KeyBuf, value: i32) {
    append(out, ((value as u32) ^ (1 << 31)).to_be_bytes());
}

/// Appends an integer of 8 bytes of a [`KeyColumn::is_plain`] column, as [`encode_cell`] does.
#[inline]
pub fn append_int8(out: &mut KeyBuf, value: i64) {
    append(out, ((value as u64) ^ (1 << 63)).to_be_bytes());
}

/// Appends a few bytes with one store: a slice is copied by calls, and an iterator byte by byte.
#[inline]
fn append<const N: usize>(out: &mut KeyBuf, bytes: [u8; N]) {
    let end = out.len();
    if out.capacity() - end < N {
        out.reserve(N);
    }
    // SAFETY: there is room for `N` bytes behind the `end` that are there, and all of them are written
    // before they count.
    unsafe {
        out.as_mut_ptr().add(end).cast::<[u8; N]>().write(bytes);
        out.set_len(end + N);
    }
}

#[inline]
fn encode_value(out: &mut KeyBuf, cell: Cell<'_>, kind: ColumnKind) {
    match (cell, kind) {
        (Cell::Bool(value), ColumnKind::Bool) => append(out, [u8::from(value)]),
        (Cell::Int2(value), ColumnKind::Int2) => append_int2(out, value),
        (Cell::Int4(value), ColumnKind::Int4) => append_int4(out, value),
        (Cell::Int8(value), ColumnKind::Int8) => append_int8(out, value),
        (Cell::Float4(value), ColumnKind::Float4) => {
            let value = if value.is_nan() { f32::NAN } else { value + 0.0 };
            let bits = value.to_bits() & if value.is_nan() { u32::MAX >> 1 } else { u32::MAX };
            let ordered = if bits >> 31 == 0 { bits | (1 << 31) } else { !bits };
            append(out, ordered.to_be_bytes());
        }
        (Cell::Float8(value), ColumnKind::Float8) => {
            let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
            let bits = value.to_bits() & if value.is_nan() { u64::MAX >> 1 } else { u64::MAX };
            let ordered = if bits >> 63 == 0 { bits | (1 << 63) } else { !bits };
            append(out, ordered.to_be_bytes());
        }
        (Cell::Fixed16(value), ColumnKind::Fixed16) => append(out, value),
        (Cell::Bytes(value), ColumnKind::Bytes) => {
            if value.iter().all(|&byte| byte > ESCAPE) {
                out.extend_from_slice(value);
            } else {
                for &byte in value {
                    if byte <= ESCAPE {
                        out.push(ESCAPE);
                        out.push(byte + 1);
                    } else {
                        out.push(byte);
                    }
                }
            }
            out.push(END);
        }
        (cell, kind) => panic!("cell {cell:?} cannot be a key column of kind {kind:?}"),
    }
}

/// Reads one key column back: the cell and the bytes it took, or `None` if `key` is not such a
/// key. `Bytes` are unescaped into `scratch`.
pub fn decode_cell<'s>(
    key: &[u8],
    column: &KeyColumn,
    kind: ColumnKind,
    scratch: &'s mut Vec<u8>,
) -> Option<(Cell<'s>, usize)> {
    let mut at = 0;
    if column.nullable {
        match (*key.first()?, column.nulls_first) {
            (NULL_FIRST, true) | (NULL_LAST, false) => return Some((Cell::Null, 1)),
            (NOT_NULL, _) => at = 1,
            _ => return None,
        }
    }
    let flip = if column.descending { 0xFF } else { 0x00 };
    if kind == ColumnKind::Bytes {
        scratch.clear();
        loop {
            let byte = *key.get(at)? ^ flip;
            at += 1;
            match byte {
                END => return Some((Cell::Bytes(scratch), at)),
                ESCAPE => {
                    let escaped = *key.get(at)? ^ flip;
                    at += 1;
                    if !(1..=2).contains(&escaped) {
                        return None;
                    }
                    scratch.push(escaped - 1);
                }
                byte => scratch.push(byte),
            }
        }
    }
    fn fixed<const N: usize>(bytes: &[u8], flip: u8) -> Option<[u8; N]> {
        let mut out: [u8; N] = bytes.get(..N)?.try_into().ok()?;
        for byte in &mut out {
            *byte ^= flip;
        }
        Some(out)
    }
    let rest = &key[at..];
    let (cell, taken) = match kind {
        ColumnKind::Bool => (Cell::Bool(fixed::<1>(rest, flip)?[0] != 0), 1),
        ColumnKind::Int2 => (Cell::Int2((u16::from_be_bytes(fixed(rest, flip)?) ^ (1 << 15)) as i16), 2),
        ColumnKind::Int4 => (Cell::Int4((u32::from_be_bytes(fixed(rest, flip)?) ^ (1 << 31)) as i32), 4),
        ColumnKind::Int8 => (Cell::Int8((u64::from_be_bytes(fixed(rest, flip)?) ^ (1 << 63)) as i64), 8),
        ColumnKind::Float4 => {
            let bits = u32::from_be_bytes(fixed(rest, flip)?);
            let bits = if bits >> 31 == 1 { bits & (u32::MAX >> 1) } else { !bits };
            (Cell::Float4(f32::from_bits(bits)), 4)
        }
        ColumnKind::Float8 => {
            let bits = u64::from_be_bytes(fixed(rest, flip)?);
            let bits = if bits >> 63 == 1 { bits & (u64::MAX >> 1) } else { !bits };
            (Cell::Float8(f64::from_bits(bits)), 8)
        }
        ColumnKind::Fixed16 => (Cell::Fixed16(fixed(rest, flip)?), 16),
        ColumnKind::Bytes => unreachable!("handled above"),
    };
    Some((cell, at + taken))
}

/// Whether `key` lies below an upper bound.
pub(crate) fn reaches(high: Bound<&[u8]>, key: &[u8]) -> bool {
    match high {
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
        Bound::Unbounded => true,
    }
}

/// Whether the bounds exclude every key (`BTreeMap` panics on some of them).
pub(crate) fn excludes_all(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
            low >= high
        }
    }
}

/// Turns `prefix` into the smallest key greater than every key that starts with it. Returns
/// false, leaving it empty, if there is none (all bytes 0xFF): the range is unbounded above.
pub fn successor(prefix: &mut KeyBuf) -> bool {
    while let Some(last) = prefix.last_mut() {
        if *last < 0xFF {
            *last += 1;
            return true;
        }
        prefix.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn column(descending: bool, nullable: bool, nulls_first: bool) -> KeyColumn {
        KeyColumn { column: 0, descending, nulls_first, nullable, form: KeyForm::Stored }
    }

    fn encoded(cell: Cell<'_>, column: &KeyColumn, kind: ColumnKind) -> KeyBuf {
        let mut out = KeyBuf::new();
        encode_cell(&mut out, cell, column, kind);
        out
    }

    fn check_order(a: Cell<'_>, b: Cell<'_>, kind: ColumnKind, order: std::cmp::Ordering) {
        for nullable in [false, true] {
            let ascending = column(false, nullable, false);
            assert_eq!(encoded(a, &ascending, kind).cmp(&encoded(b, &ascending, kind)), order);
            let descending = column(true, nullable, true);
            assert_eq!(encoded(a, &descending, kind).cmp(&encoded(b, &descending, kind)), order.reverse());
        }
    }

    fn check_decode(cell: Cell<'_>, kind: ColumnKind) {
        for (descending, nullable) in [(false, false), (true, false), (false, true), (true, true)] {
            let column = column(descending, nullable, descending);
            let key = encoded(cell, &column, kind);
            let mut scratch = Vec::new();
            assert_eq!(decode_cell(&key, &column, kind, &mut scratch), Some((cell, key.len())));
        }
    }

    proptest! {
        #[test]
        fn integers_keep_their_order(a: i64, b: i64, c: i16, d: i16) {
            check_order(Cell::Int8(a), Cell::Int8(b), ColumnKind::Int8, a.cmp(&b));
            check_order(Cell::Int4(a as i32), Cell::Int4(b as i32), ColumnKind::Int4, (a as i32).cmp(&(b as i32)));
            check_order(Cell::Int2(c), Cell::Int2(d), ColumnKind::Int2, c.cmp(&d));
            check_decode(Cell::Int8(a), ColumnKind::Int8);
            check_decode(Cell::Int4(a as i32), ColumnKind::Int4);
            check_decode(Cell::Int2(c), ColumnKind::Int2);
        }

        #[test]
        fn floats_keep_their_order(a: f64, b: f64) {
            let order = a.partial_cmp(&b).expect("proptest makes no NaN by default");
            check_order(Cell::Float8(a), Cell::Float8(b), ColumnKind::Float8, order);
            let (a, b) = (a as f32, b as f32);
            if let Some(order) = a.partial_cmp(&b) {
                check_order(Cell::Float4(a), Cell::Float4(b), ColumnKind::Float4, order);
            }
        }

        #[test]
        fn bytes_keep_their_order_and_prefixes_sort_first(
            a in proptest::collection::vec(0u8..4, 0..6), b in proptest::collection::vec(0u8..4, 0..6),
            tail_a: i16, tail_b: i16,
        ) {
            check_order(Cell::Bytes(&a), Cell::Bytes(&b), ColumnKind::Bytes, a.cmp(&b));
            check_decode(Cell::Bytes(&a), ColumnKind::Bytes);
            let ascending = column(false, false, false);
            let pair = |bytes: &[u8], tail| {
                let mut key = encoded(Cell::Bytes(bytes), &ascending, ColumnKind::Bytes);
                encode_cell(&mut key, Cell::Int2(tail), &ascending, ColumnKind::Int2);
                key
            };
            prop_assert_eq!(pair(&a, tail_a).cmp(&pair(&b, tail_b)), (&a, tail_a).cmp(&(&b, tail_b)));
        }
    }

    #[test]
    fn nan_is_greatest_and_zeros_are_equal() {
        let ascending = column(false, false, false);
        let float = |value| encoded(Cell::Float8(value), &ascending, ColumnKind::Float8);
        assert!(float(f64::NAN) > float(f64::INFINITY));
        assert_eq!(float(f64::NAN), float(-f64::NAN));
        assert_eq!(float(-0.0), float(0.0));
    }

    #[test]
    fn nulls_go_where_the_column_says_whatever_its_direction() {
        for descending in [false, true] {
            let first = column(descending, true, true);
            let last = column(descending, true, false);
            for value in [i32::MIN, 0, i32::MAX] {
                let (null, value) = (Cell::Null, Cell::Int4(value));
                assert!(encoded(null, &first, ColumnKind::Int4) < encoded(value, &first, ColumnKind::Int4));
                assert!(encoded(null, &last, ColumnKind::Int4) > encoded(value, &last, ColumnKind::Int4));
            }
        }
    }

    #[test]
    fn successor_is_the_least_upper_bound() {
        let mut key = KeyBuf::from_slice(&[1, 0xFF, 0xFF]);
        assert!(successor(&mut key));
        assert_eq!(&key[..], &[2]);
        let mut key = KeyBuf::from_slice(&[0xFF, 0xFF]);
        assert!(!successor(&mut key));
    }
}
