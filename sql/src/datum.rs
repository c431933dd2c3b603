//! Values at run time: one enum, small enough to live in registers and rows of registers.

use std::sync::Arc;

use compact_str::CompactString;

use crate::types::Oid;

/// A value. Which SQL type it has is known to the plan, not to the value: `text`, `varchar`,
/// `bpchar` and `name` are all [`Datum::Text`].
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Numeric(crate::numeric::Numeric),
    /// `text`, `varchar`, `name`, json text; `char(n)` without its trailing blanks.
    Text(CompactString),
    Bytea(Arc<[u8]>),
    /// Days since 2000-01-01; `i32::MAX` and `i32::MIN` are ±infinity.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 2000-01-01; `i64::MAX` and `i64::MIN` are ±infinity.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC.
    TimestampTz(i64),
    Interval(Arc<Interval>),
    Uuid(Box<[u8; 16]>),
    /// `oid` and the reg* types.
    Oid(Oid),
    Array(Arc<Array>),
    /// A composite value; field types are known to the plan.
    Record(Arc<[Datum]>),
}

/// An interval, in PostgreSQL's three independent parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub microseconds: i64,
}

/// An array of any number of dimensions; elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub element: Oid,
    /// Length and lower bound per dimension; empty for the empty array.
    pub dimensions: Vec<Dimension>,
    pub values: Vec<Datum>,
}

/// One dimension of an [`Array`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    pub length: usize,
    pub lower_bound: i32,
}

impl Datum {
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// A text value.
    pub fn text(s: &str) -> Datum {
        Datum::Text(CompactString::new(s))
    }
}

const _: () = assert!(size_of::<Datum>() <= 32, "registers hold datums: keep them small");
