//! Rows compared by their images: the bytes that PostgreSQL keeps their values in, on a machine whose
//! numbers begin with the lowest byte (record_image_cmp in rowtypes.c, heaptuple.c, arrayfuncs.c).
//!
//! So numbers of other scales differ, and the order is none that anybody asks for, but total. The image of
//! jsonb is taken to be its canonical text, which tells the same values apart.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::datum::{Array, Datum, Dimension};
use crate::error::{Result, SqlError, SqlState};
use crate::function::args::any;
use crate::function::{FunctionContext, lsn_place, point_of};
use crate::io::{byte_of, natural_type, record};
use crate::numeric::Numeric;
use crate::type_table::{TypeNames, element_of, layout, type_info};
use crate::types::{Oid, Type};
use crate::typmod::{padded, padded_length};

/// What alignment of data in arrays and rows goes by at most (MAXALIGN).
const ALIGNMENT_MAX: usize = 8;

/// The types of a row's columns as a further argument: of each the oid and the modifier. An empty array
/// stands for what is not known.
pub fn column_types(types: &[Type]) -> Datum {
    let numbers = |ty: &Type| [Datum::Int4(ty.oid.0 as i32), Datum::Int4(ty.typmod)];
    let values: Vec<Datum> = types.iter().flat_map(numbers).collect();
    let dimension = Dimension { length: values.len(), lower_bound: 1 };
    let dimensions = if values.is_empty() { Vec::new() } else { vec![dimension] };
    Datum::Array(Arc::new(Array { element: Oid::INT4, dimensions, values }))
}

/// What [`column_types`] made.
fn told(types: Option<&Datum>) -> Vec<Type> {
    let Some(Datum::Array(array)) = types else { return Vec::new() };
    let types = array.values.chunks(2).filter_map(|pair| match pair {
        [Datum::Int4(oid), Datum::Int4(typmod)] => Some(Type { oid: Oid(*oid as u32), typmod: *typmod }),
        _ => None,
    });
    types.collect()
}

/// The order of two rows. The binder puts the types of their columns behind them, since values do not tell
/// theirs.
pub(in crate::function) fn by_image(ctx: &FunctionContext<'_>, v: &[Datum]) -> Result<Ordering> {
    let (Datum::Record(left), Datum::Record(right)) = (any(v, 0)?, any(v, 1)?) else {
        return Err(SqlError::internal("a row that is none"));
    };
    let (left_types, right_types) = (told(v.get(2)), told(v.get(3)));
    let width = |row: &[Datum], types: &[Type]| if types.is_empty() { row.len() } else { types.len() };
    let (left_width, right_width) = (width(left, &left_types), width(right, &right_types));
    for place in 0..left_width.min(right_width) {
        // Fields that a type got after a value was made are NULL.
        let one = Field::of(left, &left_types, place);
        let other = Field::of(right, &right_types, place);
        check_alike(&one, &other, place, ctx)?;
        let order = match (one.value.is_null(), other.value.is_null()) {
            (false, false) => order(&one, &other, ctx),
            (one, other) => one.cmp(&other),
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    if left_width != right_width {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "cannot compare record types with different numbers of columns",
        ));
    }
    Ok(Ordering::Equal)
}

/// A field of a row, and its type if that is known.
struct Field<'r> {
    value: &'r Datum,
    ty: Option<Type>,
}

impl<'r> Field<'r> {
    fn of(row: &'r [Datum], types: &[Type], place: usize) -> Field<'r> {
        Field { value: row.get(place).unwrap_or(&Datum::Null), ty: types.get(place).copied() }
    }

    fn ty(&self) -> Type {
        self.ty.unwrap_or_else(|| natural_type(self.value))
    }
}

fn check_alike(one: &Field<'_>, other: &Field<'_>, place: usize, ctx: &FunctionContext<'_>) -> Result<()> {
    let alike = match (one.ty, other.ty) {
        (Some(one), Some(other)) => one.oid == other.oid,
        // As far as values tell.
        _ => {
            one.value.is_null()
                || other.value.is_null()
                || std::mem::discriminant(one.value) == std::mem::discriminant(other.value)
        }
    };
    if alike {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "cannot compare dissimilar column types {} and {} at record column {}",
            ctx.type_name(one.ty().oid),
            ctx.type_name(other.ty().oid),
            place + 1
        ),
    ))
}

fn order(one: &Field<'_>, other: &Field<'_>, ctx: &FunctionContext<'_>) -> Ordering {
    match (word(one.value, one.ty()), word(other.value, other.ty())) {
        (Some((one, _)), Some((other, _))) => one.cmp(&other),
        _ => image(one.value, one.ty(), ctx).cmp(&image(other.value, other.ty(), ctx)),
    }
}

/// A value of a type that is passed by value: as PostgreSQL passes it, where signs fill what is left of the
/// word, and how many bytes of it are kept.
fn word(value: &Datum, ty: Type) -> Option<(u64, usize)> {
    let narrow = |value: i64, length: usize| Some((value as u64, length));
    match value {
        Datum::Bool(value) => Some((u64::from(*value), 1)),
        Datum::Text(text) if ty.oid == Oid::CHAR => narrow(i64::from(byte_of(text) as i8), 1),
        Datum::Int2(value) => narrow(i64::from(*value), 2),
        Datum::Int4(value) | Datum::Date(value) => narrow(i64::from(*value), 4),
        Datum::Float4(value) => narrow(i64::from(value.to_bits() as i32), 4),
        Datum::Oid(value) => narrow(i64::from(value.0 as i32), 4),
        Datum::Int8(value) if ty.oid == Oid::PG_LSN => Some((lsn_place(*value), 8)),
        Datum::Int8(value) | Datum::Time(value) | Datum::Timestamp(value) | Datum::TimestampTz(value) => {
            narrow(*value, 8)
        }
        Datum::Float8(value) => Some((value.to_bits(), 8)),
        _ => None,
    }
}

/// The bytes of a value of a type that is passed by reference, without its length.
fn image(value: &Datum, ty: Type, ctx: &FunctionContext<'_>) -> Vec<u8> {
    match value {
        // What was stored of a `char(n)` within another value may lack its blanks.
        Datum::Text(text) | Datum::Bpchar(text) => match padded_length(ty) {
            Some(length) => padded(text.clone(), length).as_bytes().to_vec(),
            None => text.as_bytes().to_vec(),
        },
        Datum::Jsonb(text) => text.as_bytes().to_vec(),
        Datum::Numeric(number) => numeric(number),
        Datum::Bytea(bytes) => bytes.to_vec(),
        Datum::Bits(bits) => [&(bits.len() as i32).to_le_bytes()[..], bits.bytes()].concat(),
        Datum::Uuid(bytes) => bytes.to_vec(),
        Datum::Inet(inet) => inet.stored(),
        Datum::MacAddress(address) => address.0.to_vec(),
        Datum::MacAddress8(address) => address.0.to_vec(),
        Datum::TimeTz(at) => [&at.microseconds().to_le_bytes()[..], &at.west().to_le_bytes()].concat(),
        Datum::Interval(interval) => {
            let (days, months) = (interval.days.to_le_bytes(), interval.months.to_le_bytes());
            [&interval.microseconds.to_le_bytes()[..], &days, &months].concat()
        }
        Datum::Array(elements) => array(elements, ty, ctx),
        Datum::Record(_) if ty.oid == Oid::POINT => {
            let (x, y) = point_of(value).unwrap_or_default();
            [x.to_le_bytes(), y.to_le_bytes()].concat()
        }
        Datum::Record(fields) => row(fields, ty, ctx),
        plain => {
            word(plain, ty).map_or_else(Vec::new, |(word, length)| word.to_le_bytes()[..length].to_vec())
        }
    }
}

/// A number: a header of one word or two with sign, scale and weight, and its digits to the base of 10000.
fn numeric(number: &Numeric) -> Vec<u8> {
    let mut sent = Vec::new();
    number.write_binary(&mut sent);
    let words: Vec<u16> = sent.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let [_, weight, sign, scale, digits @ ..] = &words[..] else { return sent };
    let (weight, special) = (*weight as i16, *sign & 0xC000 == 0xC000);
    let header = if special {
        vec![*sign]
    } else if *scale <= 0x3F && (-0x40..=0x3F).contains(&weight) {
        let negative = if *sign == 0 { 0 } else { 0x2000 };
        let below = if weight < 0 { 0x40 } else { 0 };
        vec![0x8000 | negative | (*scale << 7) | below | (weight as u16 & 0x3F)]
    } else {
        vec![*sign | *scale, weight as u16]
    };
    header.iter().chain(digits).flat_map(|word| word.to_le_bytes()).collect()
}

fn align(bytes: &mut Vec<u8>, alignment: usize) {
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
}

/// What values of a type are aligned to (pg_type.typalign).
fn alignment(ty: Oid) -> usize {
    match layout(ty).map(|layout| layout.align) {
        Some(b'c') => 1,
        Some(b's') => 2,
        Some(b'i') => 4,
        _ => ALIGNMENT_MAX,
    }
}

/// Appends a value to the data of an array or a row; a row keeps lengths that fit it in one byte.
fn store(value: &Datum, ty: Type, short: bool, ctx: &FunctionContext<'_>, data: &mut Vec<u8>) {
    if let Some((word, length)) = word(value, ty) {
        align(data, length);
        data.extend_from_slice(&word.to_le_bytes()[..length]);
        return;
    }
    let bytes = image(value, ty, ctx);
    let fixed = type_info(ty.oid).and_then(|info| usize::try_from(info.length).ok());
    if let Some(length) = fixed {
        align(data, alignment(ty.oid));
        let end = data.len() + length;
        data.extend_from_slice(&bytes);
        data.resize(end, 0);
    } else if short && bytes.len() < 0x7F {
        data.push((((bytes.len() + 1) << 1) | 1) as u8);
        data.extend_from_slice(&bytes);
    } else {
        align(data, alignment(ty.oid));
        data.extend_from_slice(&(((bytes.len() + 4) << 2) as u32).to_le_bytes());
        data.extend_from_slice(&bytes);
    }
}

/// A bit for each value that is not NULL.
fn bitmap(values: &[Datum]) -> Vec<u8> {
    let byte = |chunk: &[Datum]| {
        chunk.iter().enumerate().fold(0u8, |byte, (bit, value)| byte | (u8::from(!value.is_null()) << bit))
    };
    values.chunks(8).map(byte).collect()
}

/// An array: its dimensions, the type of its elements, which of them are NULL, and the others.
fn array(array: &Array, ty: Type, ctx: &FunctionContext<'_>) -> Vec<u8> {
    let element = Type { oid: element_of(ty.oid).unwrap_or(array.element), typmod: ty.typmod };
    // The length comes first, and counts for what is aligned.
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&(array.dimensions.len() as u32).to_le_bytes());
    let has_nulls = array.values.iter().any(Datum::is_null);
    let nulls = if has_nulls { bitmap(&array.values) } else { Vec::new() };
    let header = 16 + 8 * array.dimensions.len() + nulls.len();
    let begin = if has_nulls { header.next_multiple_of(ALIGNMENT_MAX) } else { 0 };
    bytes.extend_from_slice(&(begin as u32).to_le_bytes());
    bytes.extend_from_slice(&element.oid.0.to_le_bytes());
    bytes.extend(array.dimensions.iter().flat_map(|dimension| (dimension.length as u32).to_le_bytes()));
    bytes.extend(array.dimensions.iter().flat_map(|dimension| dimension.lower_bound.to_le_bytes()));
    bytes.extend_from_slice(&nulls);
    align(&mut bytes, ALIGNMENT_MAX);
    for value in array.values.iter().filter(|value| !value.is_null()) {
        store(value, element, false, ctx, &mut bytes);
        align(&mut bytes, alignment(element.oid));
    }
    bytes.split_off(4)
}

/// A row in a row: the header of a tuple, and its fields.
fn row(fields: &[Datum], ty: Type, ctx: &FunctionContext<'_>) -> Vec<u8> {
    let known = record::field_types(ty.oid, ctx);
    let mut fields = fields.to_vec();
    if let Some(types) = &known {
        fields.resize(types.len(), Datum::Null);
    }
    let has_nulls = fields.iter().any(Datum::is_null);
    let (mut data, mut varies) = (Vec::new(), false);
    for (place, value) in fields.iter().enumerate().filter(|(_, value)| !value.is_null()) {
        let ty = known.as_ref().and_then(|types| types.get(place)).copied();
        let ty = ty.unwrap_or_else(|| natural_type(value));
        varies |= word(value, ty).is_none() && type_info(ty.oid).is_none_or(|info| info.length < 0);
        store(value, ty, true, ctx, &mut data);
    }
    let mut bytes = vec![0; 4];
    // The modifier tells rows of no named type apart; here they are told apart by their fields.
    let typmod: i32 = if ty.oid == Oid::RECORD { 0 } else { -1 };
    bytes.extend_from_slice(&typmod.to_le_bytes());
    bytes.extend_from_slice(&ty.oid.0.to_le_bytes());
    // It is at no place.
    bytes.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
    bytes.extend_from_slice(&(fields.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&(u16::from(has_nulls) | (u16::from(varies) << 1)).to_le_bytes());
    let nulls = if has_nulls { bitmap(&fields) } else { Vec::new() };
    bytes.push((bytes.len() + 1 + nulls.len()).next_multiple_of(ALIGNMENT_MAX) as u8);
    bytes.extend_from_slice(&nulls);
    align(&mut bytes, ALIGNMENT_MAX);
    bytes.extend_from_slice(&data);
    bytes.split_off(4)
}
