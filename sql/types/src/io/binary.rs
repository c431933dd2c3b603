//! The wire's binary form of values: send and receive functions.

use std::borrow::Cow;
use std::sync::Arc;

use super::label::label_in;
use super::message::{end_of_value, fixed, leading, next_byte, placed, too_long, too_short};
use super::network;
use crate::bit_string::{self, BITS_MAX, BitString};
use crate::datetime::TimeTz;
use crate::datum::{Array, Datum, Dimension, Interval};
use crate::error::{Result, SqlError, SqlState};
use crate::function::length::{check_elements, too_many_elements};
use crate::function::{FunctionContext, Snapshot};
use crate::interrupt;
use crate::numeric::Numeric;
use crate::type_kind::TypeKind;
use crate::type_table::{TypeNames, element_of};
use crate::types::{Oid, Type};

/// A time of day: midnight at the end of the day is one.
fn clock(micros: i64) -> Result<i64> {
    if (0..=crate::datetime::MICROS_PER_DAY).contains(&micros) {
        Ok(micros)
    } else {
        Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "time out of range"))
    }
}

/// A value of one byte.
fn byte(bytes: &[u8]) -> Result<u8> {
    let (byte, rest) = next_byte(bytes)?;
    end_of_value(rest)?;
    Ok(byte)
}

/// The next word of a value that has several.
fn word(bytes: &[u8], at: &mut usize) -> Result<i32> {
    let chunk = bytes.get(*at..*at + 4).ok_or_else(too_short)?;
    *at += 4;
    Ok(i32::from_be_bytes(fixed(chunk)?))
}

/// A string as the client has sent it (pq_getmsgtext).
fn client_text<'b>(bytes: &'b [u8], ctx: &FunctionContext<'_>) -> Result<Cow<'b, str>> {
    ctx.style().encoding.decode(bytes)
}

/// Appends a string as the client shall get it (pq_sendtext).
fn put_text(text: &str, ctx: &FunctionContext<'_>, out: &mut Vec<u8>) -> Result<()> {
    ctx.style().encoding.encode(text, out)
}

/// Reads a value of type `ty` from its binary form.
pub fn binary_in(bytes: &[u8], ty: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    Ok(match ty.oid {
        Oid::INT4 => Datum::Int4(i32::from_be_bytes(fixed(bytes)?)),
        Oid::INT8 | Oid::XID8 => Datum::Int8(i64::from_be_bytes(fixed(bytes)?)),
        Oid::PG_LSN => Datum::Int8(crate::function::lsn_value(u64::from_be_bytes(fixed(bytes)?))),
        Oid::TID => {
            let [a, b, c, d, offset @ ..]: [u8; 6] = fixed(bytes)?;
            let block = u32::from_be_bytes([a, b, c, d]);
            Datum::Int8(crate::function::tid_value(block, u16::from_be_bytes(offset)))
        }
        Oid::POINT => {
            let both: [u8; 16] = fixed(bytes)?;
            let half = |at: usize| f64::from_be_bytes(std::array::from_fn(|i| both[at + i]));
            crate::function::point_value(half(0), half(8))
        }
        Oid::INT2 => Datum::Int2(i16::from_be_bytes(fixed(bytes)?)),
        Oid::BOOL => Datum::Bool(byte(bytes)? != 0),
        Oid::FLOAT8 => Datum::Float8(f64::from_be_bytes(fixed(bytes)?)),
        Oid::FLOAT4 => Datum::Float4(f32::from_be_bytes(fixed(bytes)?)),
        Oid::NUMERIC => Datum::Numeric(Numeric::read_binary(bytes)?.with_typmod(ty.typmod)?),
        Oid::BYTEA => Datum::Bytea(bytes.into()),
        Oid::BIT | Oid::VARBIT => Datum::Bits(bits_recv(bytes, ty)?),
        Oid::CHAR => super::byte_value(byte(bytes)?),
        Oid::DATE => {
            let (days, rest) = leading(bytes)?;
            let days = match i32::from_be_bytes(days) {
                infinite @ (i32::MIN | i32::MAX) => infinite,
                days => crate::datetime::check_date(days.into())?,
            };
            end_of_value(rest)?;
            Datum::Date(days)
        }
        Oid::TIME => {
            let (micros, rest) = leading(bytes)?;
            let value = clock(i64::from_be_bytes(micros))?;
            end_of_value(rest)?;
            crate::typmod::coerce_typmod(Datum::Time(value), ty, false)?
        }
        Oid::TIMETZ => {
            let (micros, rest) = leading(bytes)?;
            let value = clock(i64::from_be_bytes(micros))?;
            let (west, rest) = leading(rest)?;
            let west = i32::from_be_bytes(west);
            // TZDISP_LIMIT: what text can say.
            let value = match west {
                -57_599..=57_599 => TimeTz::new(value, west)?,
                _ => return Err(crate::datetime::displacement_out_of_range()),
            };
            end_of_value(rest)?;
            crate::typmod::coerce_typmod(Datum::TimeTz(value), ty, false)?
        }
        Oid::TIMESTAMP | Oid::TIMESTAMPTZ => {
            let (micros, rest) = leading(bytes)?;
            let value = i64::from_be_bytes(micros);
            if !crate::datetime::is_infinite(value) && !crate::datetime::in_range(value) {
                return Err(crate::datetime::timestamp_out_of_range());
            }
            end_of_value(rest)?;
            let value =
                if ty.oid == Oid::TIMESTAMP { Datum::Timestamp(value) } else { Datum::TimestampTz(value) };
            crate::typmod::coerce_typmod(value, ty, false)?
        }
        Oid::INTERVAL => {
            let wide: [u8; 16] = fixed(bytes)?;
            let part = |from: usize| [wide[from], wide[from + 1], wide[from + 2], wide[from + 3]];
            let (head, _) = wide.split_first_chunk::<8>().ok_or_else(too_short)?;
            Datum::Interval(Arc::new(Interval {
                microseconds: i64::from_be_bytes(*head),
                days: i32::from_be_bytes(part(8)),
                months: i32::from_be_bytes(part(12)),
            }))
        }
        Oid::UUID => Datum::Uuid(Box::new(fixed(bytes)?)),
        Oid::INET | Oid::CIDR => Datum::Inet(network::inet_recv(bytes, ty.oid == Oid::CIDR)?),
        Oid::MACADDR => Datum::MacAddress(network::mac_recv(bytes)?),
        Oid::MACADDR8 => Datum::MacAddress8(network::mac8_recv(bytes)?),
        Oid::OID
        | Oid::XID
        | Oid::CID
        | Oid::REGCLASS
        | Oid::REGPROC
        | Oid::REGPROCEDURE
        | Oid::REGOPER
        | Oid::REGOPERATOR
        | Oid::REGTYPE
        | Oid::REGROLE
        | Oid::REGNAMESPACE => Datum::Oid(Oid(u32::from_be_bytes(fixed(bytes)?))),
        Oid::JSONB | Oid::JSONPATH => {
            let (version, rest) = bytes.split_first().ok_or_else(too_short)?;
            if *version != 1 {
                let colon = if ty.oid == Oid::JSONPATH { ":" } else { "" };
                return Err(SqlError::internal(format!(
                    "unsupported {} version number{colon} {version}",
                    ctx.format_type(ty)
                )));
            }
            super::text_in(&client_text(rest, ctx)?, ty, ctx)?
        }
        Oid::PG_SNAPSHOT | Oid::TXID_SNAPSHOT => Datum::text(&snapshot_recv(bytes)?.to_string()),
        Oid::VOID => Datum::text(""),
        Oid::RECORD => return Err(super::record::anonymous_input()),
        _ => match (ty.oid.kind(), element_of(ty.oid)) {
            (Some(TypeKind::Enum), _) => label_in(&client_text(bytes, ctx)?, ty, ctx)?,
            (Some(TypeKind::Composite), _) => record_recv(bytes, ty, ctx)?,
            (None, Some(element)) => array_recv(bytes, ty, element, ctx)?,
            // Strings of every kind: their text.
            (None, None) => super::text_in(&client_text(bytes, ctx)?, ty, ctx)?,
        },
    })
}

/// So many transactions under way a snapshot may list (PG_SNAPSHOT_MAX_NXIP).
const UNDER_WAY_MAX: usize = 134_217_724;

/// Reads what pg_snapshot_send writes (pg_snapshot_recv).
fn snapshot_recv(bytes: &[u8]) -> Result<Snapshot> {
    let wrong = || {
        let message = "invalid external pg_snapshot data";
        SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
    };
    let (count, rest) = leading(bytes)?;
    let count = usize::try_from(i32::from_be_bytes(count)).map_err(|_| wrong())?;
    if count > UNDER_WAY_MAX {
        return Err(wrong());
    }
    let (xmin, rest) = leading(rest)?;
    let (xmax, mut rest) = leading(rest)?;
    let (xmin, xmax) = (i64::from_be_bytes(xmin), i64::from_be_bytes(xmax));
    Snapshot { xmin, xmax, under_way: Vec::new() }.checked().ok_or_else(wrong)?;
    let mut under_way = Vec::new();
    for _ in 0..count {
        let (id, behind) = leading(rest)?;
        under_way.push(i64::from_be_bytes(id));
        rest = behind;
    }
    let snapshot = Snapshot { xmin, xmax, under_way }.checked().ok_or_else(wrong)?;
    end_of_value(rest)?;
    Ok(snapshot)
}

/// A length in bits, and the bytes that have them; what is behind the last bit counts for nothing
/// (bit_recv, varbit_recv).
fn bits_recv(bytes: &[u8], ty: Type) -> Result<BitString> {
    let (length, rest) = leading(bytes)?;
    let length = usize::try_from(i32::from_be_bytes(length)).ok().filter(|length| *length <= BITS_MAX);
    let length = length.ok_or_else(|| {
        let message = "invalid length in external bit string";
        SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
    })?;
    bit_string::check_length(length, ty)?;
    let (held, rest) = rest.split_at_checked(bit_string::bytes_of(length)).ok_or_else(too_short)?;
    end_of_value(rest)?;
    Ok(BitString::new(held.to_vec(), length))
}

fn array_recv(bytes: &[u8], ty: Type, element: Oid, ctx: &FunctionContext<'_>) -> Result<Datum> {
    let mut at = 0;
    let count = word(bytes, &mut at)?;
    if !(0..=DIMENSIONS_MAX).contains(&count) {
        return Err(match count {
            ..0 => invalid_array(format!("invalid number of dimensions: {count}")),
            _ => SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
                ),
            ),
        });
    }
    if !(0..=1).contains(&word(bytes, &mut at)?) {
        return Err(invalid_array("invalid array flags".to_owned()));
    }
    let sent = Oid(word(bytes, &mut at)? as u32);
    if differ(sent, element) {
        let message = format!(
            "binary data has array element type {sent} ({}) instead of expected {element} ({})",
            ctx.type_name(sent),
            ctx.type_name(element)
        );
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let mut dimensions = Vec::new();
    let mut total = usize::from(count > 0);
    for _ in 0..count {
        let (length, lower_bound) = (word(bytes, &mut at)?, word(bytes, &mut at)?);
        let length = usize::try_from(length).map_err(|_| too_many_elements())?;
        total = total.saturating_mul(length);
        dimensions.push(Dimension { length, lower_bound });
    }
    check_elements(total)?;
    // The last subscript is an integer, too.
    let beyond = |of: &&Dimension| of.lower_bound.checked_add(of.length as i32).is_none();
    if let Some(Dimension { lower_bound, .. }) = dimensions.iter().find(beyond) {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("array lower bound is too large: {lower_bound}"),
        ));
    }
    // Each element has a length word: no more can follow than there are bytes for.
    if total > bytes.len() / 4 {
        return Err(too_short());
    }
    let mut values = Vec::with_capacity(total);
    for place in 1..=total {
        interrupt::step()?;
        let length = word(bytes, &mut at)?;
        if length == -1 {
            values.push(Datum::Null);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| too_short_value())?;
        let chunk = bytes.get(at..at + length).ok_or_else(too_short_value)?;
        let value = binary_in(chunk, Type { oid: element, typmod: ty.typmod }, ctx);
        values.push(
            value.map_err(|error| {
                placed(error, || format!("improper binary format in array element {place}"))
            })?,
        );
        at += length;
    }
    if at != bytes.len() {
        return Err(too_long());
    }
    if values.is_empty() {
        dimensions.clear();
    }
    if matches!(ty.oid, Oid::INT2VECTOR | Oid::OIDVECTOR) {
        let whole = matches!(&dimensions[..], [Dimension { lower_bound: 0, .. }]);
        if !whole || values.contains(&Datum::Null) {
            let name = ctx.type_name(ty.oid);
            let message = format!("invalid {name} data");
            return Err(SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message));
        }
    }
    Ok(Datum::Array(Arc::new(Array { element, dimensions, values })))
}

/// So many dimensions an array may have (MAXDIM).
const DIMENSIONS_MAX: i32 = 6;

fn invalid_array(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
}

/// An element or field that does not come, which array_recv and record_recv find themselves.
fn too_short_value() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "insufficient data left in message")
}

/// Whether a type that is sent cannot be the one that is wanted: only the numbers of built-in types are
/// the same everywhere.
fn differ(sent: Oid, wanted: Oid) -> bool {
    const FIRST_OF_USERS: u32 = 10_000;
    sent != wanted && sent.0 < FIRST_OF_USERS && wanted.0 < FIRST_OF_USERS
}

/// As PostgreSQL's record_recv: the number of fields, then each one's type, length and bytes.
fn record_recv(bytes: &[u8], ty: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    let relation = super::record::relation_of(ty.oid, ctx).ok_or_else(too_long)?;
    let width = relation.width();
    let mut at = 0;
    let sent = word(bytes, &mut at)?;
    if usize::try_from(sent) != Ok(width) {
        let message = format!("wrong number of columns: {sent}, expected {width}");
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let mut values = Vec::with_capacity(width);
    for place in 0..width {
        let known = relation.ty(place).zip(relation.declared(place));
        let (field, declared) = known.ok_or_else(too_long)?;
        let oid = Oid(word(bytes, &mut at)? as u32);
        if differ(oid, declared.oid) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "binary data has type {oid} ({}) instead of expected {} ({}) in record column {}",
                    ctx.type_name(oid),
                    field.oid,
                    ctx.type_name(field.oid),
                    place + 1
                ),
            ));
        }
        let length = word(bytes, &mut at)?;
        if length == -1 {
            values.push(Datum::Null);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| too_short_value())?;
        let chunk = bytes.get(at..at + length).ok_or_else(too_short_value)?;
        let value = binary_in(chunk, field, ctx);
        values.push(value.map_err(|error| {
            placed(error, || format!("improper binary format in record column {}", place + 1))
        })?);
        at += length;
    }
    if at != bytes.len() {
        return Err(too_long());
    }
    Ok(Datum::Record(values.into()))
}

/// Appends a value's binary form (without its length), its strings in the client's encoding. NULL appends
/// nothing.
///
/// Errors: 22P05 for a character that the client's encoding does not have; what was appended is not whole.
pub fn binary_out(value: &Datum, ty: Type, ctx: &FunctionContext<'_>, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => {}
        Datum::Bool(b) => out.push(u8::from(*b)),
        Datum::Int2(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Int4(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Int8(n) if ty.oid == Oid::PG_LSN => {
            out.extend_from_slice(&crate::function::lsn_place(*n).to_be_bytes());
        }
        Datum::Int8(n) if ty.oid == Oid::TID => {
            let (block, offset) = crate::function::tid_place(*n);
            out.extend_from_slice(&block.to_be_bytes());
            out.extend_from_slice(&offset.to_be_bytes());
        }
        Datum::Int8(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Float4(x) => out.extend_from_slice(&x.to_be_bytes()),
        Datum::Float8(x) => out.extend_from_slice(&x.to_be_bytes()),
        Datum::Numeric(n) => n.write_binary(out),
        Datum::Jsonb(text) => {
            out.push(1);
            put_text(text, ctx, out)?;
        }
        Datum::Text(text) if matches!(ty.oid, Oid::PG_SNAPSHOT | Oid::TXID_SNAPSHOT) => {
            if let Ok(snapshot) = crate::function::Snapshot::parse(text) {
                snapshot.write_binary(out);
            }
        }
        Datum::Text(text) if ty.oid == Oid::CHAR => out.push(super::byte_of(text)),
        Datum::Text(text) | Datum::Bpchar(text) => {
            if ty.oid == Oid::JSONPATH {
                out.push(1);
            }
            put_text(text, ctx, out)?;
            // What was stored of a `char(n)` within another value may lack its blanks.
            if let Some(length) = crate::typmod::padded_length(ty) {
                let missing = length.saturating_sub(text.chars().count());
                out.extend(std::iter::repeat_n(b' ', missing));
            }
        }
        Datum::Bytea(bytes) => out.extend_from_slice(bytes),
        Datum::Bits(bits) => {
            out.extend_from_slice(&(bits.len() as i32).to_be_bytes());
            out.extend_from_slice(bits.bytes());
        }
        Datum::Date(days) => out.extend_from_slice(&days.to_be_bytes()),
        Datum::Time(t) | Datum::Timestamp(t) | Datum::TimestampTz(t) => {
            out.extend_from_slice(&t.to_be_bytes())
        }
        Datum::TimeTz(at) => {
            out.extend_from_slice(&at.microseconds().to_be_bytes());
            out.extend_from_slice(&at.west().to_be_bytes());
        }
        Datum::Interval(interval) => {
            out.extend_from_slice(&interval.microseconds.to_be_bytes());
            out.extend_from_slice(&interval.days.to_be_bytes());
            out.extend_from_slice(&interval.months.to_be_bytes());
        }
        Datum::Uuid(bytes) => out.extend_from_slice(&bytes[..]),
        Datum::Inet(inet) => network::inet_send(inet, ty.oid == Oid::CIDR, out),
        Datum::MacAddress(address) => out.extend_from_slice(&address.0),
        Datum::MacAddress8(address) => out.extend_from_slice(&address.0),
        Datum::Oid(_) if ty.oid.has_labels() => {
            put_text(&super::to_text(value, ty, ctx), ctx, out)?;
        }
        Datum::Oid(oid) => out.extend_from_slice(&oid.0.to_be_bytes()),
        Datum::Array(array) => array_send(array, ty, ctx, out)?,
        Datum::Record(_) if ty.oid == Oid::POINT => {
            if let Some((x, y)) = crate::function::point_of(value) {
                out.extend_from_slice(&x.to_be_bytes());
                out.extend_from_slice(&y.to_be_bytes());
            }
        }
        Datum::Record(record) => {
            let fields = super::record::Fields::of(record, ty.oid, ctx);
            out.extend_from_slice(&(fields.width() as i32).to_be_bytes());
            for place in 0..fields.width() {
                let field = record.get(place).unwrap_or(&Datum::Null);
                out.extend_from_slice(&fields.declared(place, field).oid.0.to_be_bytes());
                with_length(field, fields.ty(place, field), ctx, out)?;
            }
        }
    }
    Ok(())
}

fn with_length(value: &Datum, ty: Type, ctx: &FunctionContext<'_>, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    binary_out(value, ty, ctx, out)?;
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// What an element counts as ([`interrupt::steps`]).
const STEPS_PER_VALUE: usize = 8;

fn array_send(array: &Array, ty: Type, ctx: &FunctionContext<'_>, out: &mut Vec<u8>) -> Result<()> {
    let has_nulls = array.values.iter().any(Datum::is_null);
    // An array made of NULLs alone does not know itself what they are.
    let element = element_of(ty.oid).unwrap_or(array.element);
    out.extend_from_slice(&(array.dimensions.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_nulls).to_be_bytes());
    out.extend_from_slice(&element.0.to_be_bytes());
    for dimension in &array.dimensions {
        out.extend_from_slice(&(dimension.length as i32).to_be_bytes());
        out.extend_from_slice(&dimension.lower_bound.to_be_bytes());
    }
    for value in &array.values {
        // Whoever sends it finds out.
        if interrupt::steps(STEPS_PER_VALUE).is_err() {
            return Ok(());
        }
        with_length(value, Type { oid: element, typmod: ty.typmod }, ctx, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_strings_come_with_their_length() {
        let bits = BitString::parse("1010000010", Type::VARBIT).unwrap();
        let mut sent = Vec::new();
        binary_out(&Datum::Bits(bits.clone()), Type::VARBIT, &FunctionContext::detached(), &mut sent)
            .unwrap();
        assert_eq!(sent, [0, 0, 0, 10, 0b1010_0000, 0b1000_0000]);
        assert_eq!(bits_recv(&sent, Type::VARBIT).unwrap(), bits);
        // What is sent behind the last bit is none.
        assert_eq!(bits_recv(&[0, 0, 0, 10, 0b1010_0000, 0xbf], Type::VARBIT).unwrap(), bits);
        let refused = |bytes: &[u8], ty| bits_recv(bytes, ty).unwrap_err().state();
        assert_eq!(refused(&sent[..5], Type::VARBIT), SqlState::PROTOCOL_VIOLATION);
        assert_eq!(
            refused(&[sent.clone(), vec![0]].concat(), Type::VARBIT),
            SqlState::INVALID_BINARY_REPRESENTATION
        );
        assert_eq!(refused(&[0xff; 4], Type::VARBIT), SqlState::INVALID_BINARY_REPRESENTATION);
        assert_eq!(refused(&[0x7f, 0xff, 0xff, 0xff], Type::VARBIT), SqlState::INVALID_BINARY_REPRESENTATION);
        assert_eq!(refused(&sent, Type { oid: Oid::BIT, typmod: 9 }), SqlState::STRING_DATA_LENGTH_MISMATCH);
        assert_eq!(
            refused(&sent, Type { oid: Oid::VARBIT, typmod: 9 }),
            SqlState::STRING_DATA_RIGHT_TRUNCATION
        );
    }

    #[test]
    fn a_snapshot_survives_the_wire() {
        let snapshot = Snapshot { xmin: 12, xmax: 20, under_way: vec![13, 18] };
        let mut bytes = Vec::new();
        snapshot.write_binary(&mut bytes);
        assert_eq!(snapshot_recv(&bytes).ok(), Some(snapshot));
        for length in 0..bytes.len() {
            let error = snapshot_recv(&bytes[..length]).unwrap_err();
            assert_eq!(error.state(), SqlState::PROTOCOL_VIOLATION, "{length}");
        }
        bytes.push(0);
        assert_eq!(snapshot_recv(&bytes).unwrap_err().message(), too_long().message());
    }
}
