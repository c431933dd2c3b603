//! Order, equality and hash of values, as PostgreSQL's btree and hash operator classes.
//!
//! Both values have one type (integers of different widths may meet, and floats too). NULL
//! equals NULL and follows everything: what sorting and grouping need; `=` on NULLs is the
//! planner's to settle first.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::datum::{Array, Datum, Interval};
use crate::json::order;
use crate::typmod::without_blanks;

/// Microseconds of a day.
const DAY: i128 = 86_400_000_000;

/// An interval as one number: a month is 30 days, a day 24 hours (interval_cmp_value).
pub fn interval_value(interval: &Interval) -> i128 {
    i128::from(interval.microseconds) + DAY * (i128::from(interval.days) + 30 * i128::from(interval.months))
}

/// Floats in PostgreSQL's order: NaN equals itself and follows everything; -0 equals 0.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn compare_arrays(a: &Array, b: &Array) -> Ordering {
    for (x, y) in a.values.iter().zip(&b.values) {
        let order = compare(x, y);
        if order != Ordering::Equal {
            return order;
        }
    }
    a.values
        .len()
        .cmp(&b.values.len())
        .then_with(|| a.dimensions.len().cmp(&b.dimensions.len()))
        .then_with(|| a.dimensions.iter().map(|d| d.length).cmp(b.dimensions.iter().map(|d| d.length)))
        .then_with(|| {
            a.dimensions.iter().map(|d| d.lower_bound).cmp(b.dimensions.iter().map(|d| d.lower_bound))
        })
}

/// Fields that a type got after a value was made are NULL.
fn compare_records(a: &[Datum], b: &[Datum]) -> Ordering {
    let field = |of: &[Datum], place: usize| compare(of.get(place).unwrap_or(&Datum::Null), &Datum::Null);
    a.iter()
        .zip(b)
        .map(|(x, y)| compare(x, y))
        .chain((b.len()..a.len()).map(|place| field(a, place)))
        .chain((a.len()..b.len()).map(|place| field(b, place).reverse()))
        .find(|order| *order != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// The order of two values of one type.
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    use Datum::*;
    match (a, b) {
        (Int4(a), Int4(b)) => a.cmp(b),
        (Int8(a), Int8(b)) => a.cmp(b),
        (Text(a), Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Bpchar(a), Bpchar(b)) => without_blanks(a).as_bytes().cmp(without_blanks(b).as_bytes()),
        (Numeric(a), Numeric(b)) => a.cmp(b),
        (Null, Null) => Ordering::Equal,
        (Null, _) => Ordering::Greater,
        (_, Null) => Ordering::Less,
        (Bool(a), Bool(b)) => a.cmp(b),
        (Int2(a), Int2(b)) => a.cmp(b),
        (Float8(a), Float8(b)) => compare_floats(*a, *b),
        (Float4(a), Float4(b)) => compare_floats(f64::from(*a), f64::from(*b)),
        (Bytea(a), Bytea(b)) => a.cmp(b),
        (Bits(a), Bits(b)) => a.cmp(b),
        (Date(a), Date(b)) => a.cmp(b),
        (Time(a), Time(b)) | (Timestamp(a), Timestamp(b)) | (TimestampTz(a), TimestampTz(b)) => a.cmp(b),
        (TimeTz(a), TimeTz(b)) => a.cmp(b),
        (Interval(a), Interval(b)) => interval_value(a).cmp(&interval_value(b)),
        (Uuid(a), Uuid(b)) => a.cmp(b),
        (Inet(a), Inet(b)) => a.cmp(b),
        (MacAddress(a), MacAddress(b)) => a.cmp(b),
        (MacAddress8(a), MacAddress8(b)) => a.cmp(b),
        (Oid(a), Oid(b)) => a.cmp(b),
        (Array(a), Array(b)) => compare_arrays(a, b),
        (Record(a), Record(b)) => compare_records(a, b),
        (Jsonb(a), Jsonb(b)) => order::compare_texts(a, b),
        _ => compare_mixed(a, b),
    }
}

/// Integers and floats of different widths, and fields of `char(n)` that were stored when they were
/// texts without blanks; anything else by kind, so that the order is total.
fn compare_mixed(a: &Datum, b: &Datum) -> Ordering {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        return a.cmp(&b);
    }
    match (a, b) {
        (Datum::Float4(a), Datum::Float8(b)) => compare_floats(f64::from(*a), *b),
        (Datum::Float8(a), Datum::Float4(b)) => compare_floats(*a, f64::from(*b)),
        (Datum::Text(a), Datum::Bpchar(b)) | (Datum::Bpchar(a), Datum::Text(b)) => {
            without_blanks(a).as_bytes().cmp(without_blanks(b).as_bytes())
        }
        _ => kind(a).cmp(&kind(b)),
    }
}

fn integer(value: &Datum) -> Option<i64> {
    match value {
        Datum::Int2(n) => Some(i64::from(*n)),
        Datum::Int4(n) => Some(i64::from(*n)),
        Datum::Int8(n) => Some(*n),
        Datum::Oid(n) => Some(i64::from(n.0)),
        _ => None,
    }
}

fn kind(value: &Datum) -> u8 {
    match value {
        Datum::Bool(_) => 0,
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Oid(_) => 1,
        Datum::Float4(_) | Datum::Float8(_) => 2,
        Datum::Numeric(_) => 3,
        Datum::Text(_) | Datum::Bpchar(_) => 4,
        Datum::Bytea(_) => 5,
        Datum::Date(_) => 6,
        Datum::Time(_) => 7,
        Datum::Timestamp(_) => 8,
        Datum::TimestampTz(_) => 9,
        Datum::Interval(_) => 10,
        Datum::Uuid(_) => 11,
        Datum::Array(_) => 12,
        Datum::Record(_) => 13,
        Datum::TimeTz(_) => 14,
        Datum::Jsonb(_) => 15,
        Datum::Bits(_) => 16,
        Datum::Inet(_) => 17,
        Datum::MacAddress(_) => 18,
        Datum::MacAddress8(_) => 19,
        Datum::Null => 20,
    }
}

/// Whether two values of one type are equal; NULL equals NULL.
pub fn equal(a: &Datum, b: &Datum) -> bool {
    compare(a, b) == Ordering::Equal
}

/// Feeds a value to a hasher, such that equal values (by [`equal`]) hash alike; integers of
/// different widths too.
pub fn hash<H: Hasher>(value: &Datum, state: &mut H) {
    match value {
        Datum::Null => 0xffu8.hash(state),
        Datum::Bool(b) => b.hash(state),
        Datum::Int2(n) => i64::from(*n).hash(state),
        Datum::Int4(n) => i64::from(*n).hash(state),
        Datum::Int8(n) => n.hash(state),
        Datum::Oid(n) => i64::from(n.0).hash(state),
        Datum::Float4(x) => hash_float(f64::from(*x), state),
        Datum::Float8(x) => hash_float(*x, state),
        Datum::Numeric(n) => n.hash(state),
        Datum::Text(s) => s.as_bytes().hash(state),
        Datum::Bpchar(s) => without_blanks(s).as_bytes().hash(state),
        Datum::Jsonb(text) => order::hash_text(text, state),
        Datum::Bytea(b) => b.hash(state),
        Datum::Bits(b) => b.hash(state),
        Datum::Date(d) => d.hash(state),
        Datum::Time(t) | Datum::Timestamp(t) | Datum::TimestampTz(t) => t.hash(state),
        Datum::TimeTz(t) => t.hash(state),
        Datum::Interval(i) => interval_value(i).hash(state),
        Datum::Uuid(u) => u.hash(state),
        Datum::Inet(inet) => inet.hash(state),
        Datum::MacAddress(address) => address.hash(state),
        Datum::MacAddress8(address) => address.hash(state),
        Datum::Array(array) => {
            array.dimensions.len().hash(state);
            array.values.iter().for_each(|v| hash(v, state));
        }
        Datum::Record(fields) => {
            let known = fields.iter().rposition(|field| !field.is_null()).map_or(0, |last| last + 1);
            fields[..known].iter().for_each(|v| hash(v, state));
        }
    }
}

fn hash_float<H: Hasher>(x: f64, state: &mut H) {
    let canonical = if x == 0.0 {
        0.0
    } else if x.is_nan() {
        f64::NAN
    } else {
        x
    };
    canonical.to_bits().hash(state);
}

/// Values as a key of a hash table or an ordered map: grouping, DISTINCT, hash joins.
#[derive(Clone, Debug)]
pub struct GroupKey(pub Vec<Datum>);

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| equal(a, b))
    }
}

impl Eq for GroupKey {}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|v| hash(v, state));
    }
}

impl PartialOrd for GroupKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GroupKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0
            .iter()
            .zip(&other.0)
            .map(|(a, b)| compare(a, b))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}
