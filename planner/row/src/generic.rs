//! The self-describing form of values, for what has no cell of its own: arrays, rows, and whatever the
//! plan's type does not tell apart.
//!
//! The bytes are stored: a tag keeps its meaning. Rows of a column's named type say nothing of their
//! fields; others, which only pass between operators, keep their descriptor.

use std::sync::Arc;

use archipel_sql::datetime::TimeTz;
use archipel_sql::datum::{Array, Datum, Dimension, Interval};
use archipel_sql::network::{MacAddress, MacAddress8};
use archipel_sql::record::{Record, RecordDescriptor};
use archipel_sql::types::{Oid, Type};

use super::{decode_bits, decode_inet, decode_numeric, encode_bits, encode_inet, encode_numeric, text_of};

/// The self-describing form: a tag, then the payload.
pub fn write_generic(datum: &Datum, out: &mut Vec<u8>) {
    let bytes = |out: &mut Vec<u8>, tag: u8, b: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&(b.len() as u32).to_be_bytes());
        out.extend_from_slice(b);
    };
    match datum {
        Datum::Null => out.push(0),
        Datum::Bool(v) => out.extend_from_slice(&[1, u8::from(*v)]),
        Datum::Int2(v) => bytes(out, 2, &v.to_be_bytes()),
        Datum::Int4(v) => bytes(out, 3, &v.to_be_bytes()),
        Datum::Int8(v) => bytes(out, 4, &v.to_be_bytes()),
        Datum::Float4(v) => bytes(out, 5, &v.to_be_bytes()),
        Datum::Float8(v) => bytes(out, 6, &v.to_be_bytes()),
        Datum::Numeric(n) => {
            let mut space = Vec::new();
            encode_numeric(n, &mut space);
            bytes(out, 7, &space);
        }
        Datum::Text(s) => bytes(out, 8, s.as_bytes()),
        Datum::Bpchar(s) => bytes(out, 23, s.as_bytes()),
        Datum::Jsonb(s) => bytes(out, 19, s.as_bytes()),
        Datum::Bytea(b) => bytes(out, 9, b),
        Datum::Bits(b) => {
            let mut space = Vec::new();
            encode_bits(b, &mut space);
            bytes(out, 24, &space);
        }
        Datum::Date(v) => bytes(out, 10, &v.to_be_bytes()),
        Datum::Time(v) => bytes(out, 11, &v.to_be_bytes()),
        Datum::Timestamp(v) => bytes(out, 12, &v.to_be_bytes()),
        Datum::TimestampTz(v) => bytes(out, 13, &v.to_be_bytes()),
        Datum::Interval(v) => {
            let mut space = [0u8; 16];
            space[..4].copy_from_slice(&v.months.to_be_bytes());
            space[4..8].copy_from_slice(&v.days.to_be_bytes());
            space[8..].copy_from_slice(&v.microseconds.to_be_bytes());
            bytes(out, 14, &space);
        }
        Datum::Uuid(v) => bytes(out, 15, v.as_slice()),
        Datum::Inet(v) => {
            let mut space = Vec::new();
            encode_inet(v, &mut space);
            bytes(out, 25, &space);
        }
        Datum::MacAddress(v) => bytes(out, 26, &v.0),
        Datum::MacAddress8(v) => bytes(out, 27, &v.0),
        Datum::Oid(v) => bytes(out, 16, &v.0.to_be_bytes()),
        Datum::TimeTz(v) => bytes(out, 20, &v.packed().to_be_bytes()),
        Datum::Array(a) => {
            out.push(17);
            out.extend_from_slice(&a.element.0.to_be_bytes());
            out.push(a.dimensions.len() as u8);
            for d in &a.dimensions {
                out.extend_from_slice(&(d.length as u32).to_be_bytes());
                out.extend_from_slice(&d.lower_bound.to_be_bytes());
            }
            out.extend_from_slice(&(a.values.len() as u32).to_be_bytes());
            a.values.iter().for_each(|v| write_generic(v, out));
        }
        Datum::Record(fields) => {
            match fields.descriptor().map(|descriptor| &**descriptor) {
                None => out.push(18),
                Some(RecordDescriptor::Named(ty)) => {
                    out.push(21);
                    out.extend_from_slice(&ty.0.to_be_bytes());
                }
                Some(RecordDescriptor::Fields(fields)) => {
                    out.push(22);
                    out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
                    for (name, ty) in fields {
                        out.extend_from_slice(&(name.len() as u32).to_be_bytes());
                        out.extend_from_slice(name.as_bytes());
                        out.extend_from_slice(&ty.oid.0.to_be_bytes());
                        out.extend_from_slice(&ty.typmod.to_be_bytes());
                    }
                }
            }
            out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
            fields.iter().for_each(|v| write_generic(v, out));
        }
    }
}

/// Elements were written as texts once.
fn as_jsonb(value: &mut Datum) {
    if let Datum::Text(text) = value {
        *value = Datum::Jsonb(std::mem::take(text));
    }
}

/// Elements were written as texts once, without the blanks at their ends.
fn as_bpchar(value: &mut Datum) {
    if let Datum::Text(text) = value {
        *value = Datum::Bpchar(std::mem::take(text));
    }
}

/// Reads what [`write_generic`] wrote; `None` when the bytes are cut or foreign.
pub fn read_generic(bytes: &[u8], at: &mut usize) -> Option<Datum> {
    fn take<'b>(bytes: &'b [u8], at: &mut usize, count: usize) -> Option<&'b [u8]> {
        let piece = bytes.get(*at..at.checked_add(count)?)?;
        *at += count;
        Some(piece)
    }
    fn number(bytes: &[u8], at: &mut usize) -> Option<u32> {
        Some(u32::from_be_bytes(take(bytes, at, 4)?.try_into().ok()?))
    }
    let tag = *take(bytes, at, 1)?.first()?;
    match tag {
        0 => return Some(Datum::Null),
        1 => return Some(Datum::Bool(take(bytes, at, 1)? != [0])),
        17 => {
            let element = Oid(number(bytes, at)?);
            let dimensions = *take(bytes, at, 1)?.first()?;
            let dimensions = (0..dimensions)
                .map(|_| {
                    let length = number(bytes, at)? as usize;
                    Some(Dimension { length, lower_bound: number(bytes, at)? as i32 })
                })
                .collect::<Option<Vec<_>>>()?;
            let count = number(bytes, at)?;
            let mut values = (0..count).map(|_| read_generic(bytes, at)).collect::<Option<Vec<_>>>()?;
            match element {
                Oid::JSONB => values.iter_mut().for_each(as_jsonb),
                Oid::BPCHAR => values.iter_mut().for_each(as_bpchar),
                _ => {}
            }
            return Some(Datum::Array(Arc::new(Array { element, dimensions, values })));
        }
        18 | 21 | 22 => {
            let descriptor = match tag {
                18 => None,
                21 => Some(Arc::new(RecordDescriptor::Named(Oid(number(bytes, at)?)))),
                _ => {
                    let count = number(bytes, at)?;
                    let field = |_| {
                        let length = number(bytes, at)? as usize;
                        let name = text_of(take(bytes, at, length)?);
                        let oid = Oid(number(bytes, at)?);
                        Some((name, Type { oid, typmod: number(bytes, at)? as i32 }))
                    };
                    Some(RecordDescriptor::of((0..count).map(field).collect::<Option<Vec<_>>>()?))
                }
            };
            let count = number(bytes, at)?;
            let fields = (0..count).map(|_| read_generic(bytes, at)).collect::<Option<Vec<_>>>()?;
            return Some(Datum::Record(Record::new(fields, descriptor)));
        }
        _ => {}
    }
    let length = number(bytes, at)? as usize;
    let piece = take(bytes, at, length)?;
    Some(match tag {
        2 => Datum::Int2(i16::from_be_bytes(piece.try_into().ok()?)),
        3 => Datum::Int4(i32::from_be_bytes(piece.try_into().ok()?)),
        4 => Datum::Int8(i64::from_be_bytes(piece.try_into().ok()?)),
        5 => Datum::Float4(f32::from_be_bytes(piece.try_into().ok()?)),
        6 => Datum::Float8(f64::from_be_bytes(piece.try_into().ok()?)),
        7 => Datum::Numeric(decode_numeric(piece)),
        8 => Datum::Text(text_of(piece)),
        23 => Datum::Bpchar(text_of(piece)),
        19 => Datum::Jsonb(text_of(piece)),
        9 => Datum::Bytea(Arc::from(piece)),
        24 => Datum::Bits(decode_bits(piece)),
        10 => Datum::Date(i32::from_be_bytes(piece.try_into().ok()?)),
        11 => Datum::Time(i64::from_be_bytes(piece.try_into().ok()?)),
        12 => Datum::Timestamp(i64::from_be_bytes(piece.try_into().ok()?)),
        13 => Datum::TimestampTz(i64::from_be_bytes(piece.try_into().ok()?)),
        14 => Datum::Interval(Arc::new(Interval {
            months: i32::from_be_bytes(piece.get(..4)?.try_into().ok()?),
            days: i32::from_be_bytes(piece.get(4..8)?.try_into().ok()?),
            microseconds: i64::from_be_bytes(piece.get(8..16)?.try_into().ok()?),
        })),
        15 => Datum::Uuid(Box::new(piece.try_into().ok()?)),
        25 => Datum::Inet(decode_inet(piece)),
        26 => Datum::MacAddress(MacAddress(piece.try_into().ok()?)),
        27 => Datum::MacAddress8(MacAddress8(piece.try_into().ok()?)),
        16 => Datum::Oid(Oid(u32::from_be_bytes(piece.try_into().ok()?))),
        20 => Datum::TimeTz(TimeTz::from_packed(i64::from_be_bytes(piece.try_into().ok()?))),
        _ => return None,
    })
}
