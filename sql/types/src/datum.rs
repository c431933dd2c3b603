//! Values at run time: one enum, small enough to live in registers and rows of registers.

use std::sync::Arc;

use compact_str::CompactString;

use crate::bit_string::BitString;
use crate::datetime::TimeTz;
use crate::network::{Inet, MacAddress, MacAddress8};
use crate::record::Record;
use crate::types::Oid;

/// A value. Which SQL type it has is known to the plan, not to the value: `text`, `varchar` and
/// `name` are all [`Datum::Text`].
#[derive(Debug, PartialEq)]
pub enum Datum {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Numeric(crate::numeric::Numeric),
    /// `text`, `varchar`, `name`, json text.
    Text(CompactString),
    /// `char(n)` and `bpchar`, with the blanks at the end: they show, and count for nothing where values
    /// are compared, wherever they stand.
    Bpchar(CompactString),
    /// The canonical text of a `jsonb` value: told from text because its order and equality are
    /// others, wherever it stands.
    Jsonb(CompactString),
    Bytea(Arc<[u8]>),
    /// `bit(n)` and `bit varying(n)`.
    Bits(BitString),
    /// Days since 2000-01-01; `i32::MAX` and `i32::MIN` are ±infinity.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    TimeTz(TimeTz),
    /// Microseconds since 2000-01-01; `i64::MAX` and `i64::MIN` are ±infinity.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC.
    TimestampTz(i64),
    Interval(Arc<Interval>),
    Uuid(Box<[u8; 16]>),
    /// `inet` and `cidr`, which show differently.
    Inet(Inet),
    MacAddress(MacAddress),
    MacAddress8(MacAddress8),
    /// `oid` and the reg* types.
    Oid(Oid),
    Array(Arc<Array>),
    /// A composite value: its fields, and what they are where the plan does not know it.
    Record(Record),
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
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// Whether the value is all in place: nothing is owned elsewhere.
    #[inline]
    fn is_plain(&self) -> bool {
        use Datum::*;
        matches!(
            self,
            Null | Bool(_)
                | Int2(_)
                | Int4(_)
                | Int8(_)
                | Float4(_)
                | Float8(_)
                | Date(_)
                | Time(_)
                | TimeTz(_)
                | Timestamp(_)
                | TimestampTz(_)
                | Inet(_)
                | MacAddress(_)
                | MacAddress8(_)
                | Oid(_)
        )
    }

    /// Assigns a value; where the old one owns nothing, without a call.
    #[inline]
    pub fn set(&mut self, value: Datum) {
        if self.is_plain() {
            // The old value goes nowhere, not even to the stack.
            std::mem::forget(std::mem::replace(self, value));
        } else {
            *self = value;
        }
    }

    /// The value, leaving NULL.
    #[inline]
    pub fn take(&mut self) -> Datum {
        std::mem::replace(self, Datum::Null)
    }

    #[inline(never)]
    fn clone_other(&self) -> Datum {
        use Datum::*;
        match self {
            Null => Null,
            Bool(v) => Bool(*v),
            Int2(v) => Int2(*v),
            Int4(v) => Int4(*v),
            Int8(v) => Int8(*v),
            Float4(v) => Float4(*v),
            Float8(v) => Float8(*v),
            Numeric(v) => Numeric(v.clone()),
            Text(v) => Text(v.clone()),
            Bpchar(v) => Bpchar(v.clone()),
            Jsonb(v) => Jsonb(v.clone()),
            Bytea(v) => Bytea(v.clone()),
            Bits(v) => Bits(v.clone()),
            Date(v) => Date(*v),
            Time(v) => Time(*v),
            TimeTz(v) => TimeTz(*v),
            Timestamp(v) => Timestamp(*v),
            TimestampTz(v) => TimestampTz(*v),
            Interval(v) => Interval(v.clone()),
            Uuid(v) => Uuid(v.clone()),
            Inet(v) => Inet(*v),
            MacAddress(v) => MacAddress(*v),
            MacAddress8(v) => MacAddress8(*v),
            Oid(v) => Oid(*v),
            Array(v) => Array(v.clone()),
            Record(v) => Record(v.clone()),
        }
    }

    /// A text value.
    pub fn text(s: &str) -> Datum {
        Datum::Text(CompactString::new(s))
    }

    /// A value of `bpchar`, with the blanks at its end.
    pub fn bpchar(s: &str) -> Datum {
        Datum::Bpchar(CompactString::new(s))
    }

    /// A jsonb value, from its canonical text.
    pub fn jsonb(s: &str) -> Datum {
        Datum::Jsonb(CompactString::new(s))
    }

    /// The text of a JSON value of either type.
    #[inline]
    pub fn json_text(&self) -> Option<&str> {
        match self {
            Datum::Text(text) | Datum::Jsonb(text) => Some(text),
            _ => None,
        }
    }
}

impl Clone for Datum {
    /// The commonest values are copied without a call.
    #[inline]
    fn clone(&self) -> Datum {
        match self {
            Datum::Null => Datum::Null,
            Datum::Int4(v) => Datum::Int4(*v),
            Datum::Int8(v) => Datum::Int8(*v),
            other => other.clone_other(),
        }
    }
}

const _: () = assert!(size_of::<Datum>() <= 32, "registers hold datums: keep them small");

/// An integer of any width.
#[inline]
pub fn integer(datum: &Datum) -> Option<i64> {
    match datum {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        Datum::Oid(v) => Some(i64::from(v.0)),
        _ => None,
    }
}
