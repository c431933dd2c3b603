//! Comparison operators of every type, and the mixed-type ones.

use std::cmp::Ordering;

use super::args::*;
use super::container::record_image::by_image;
use super::intrinsic::{Comparison, Intrinsic, Operands};
use super::{Eval, FunctionContext};
use crate::compare::{compare, compare_floats};
use crate::datetime::{MICROS_PER_DAY, zone};
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::io::record::Fields;
use crate::record::Record;
use crate::type_table::TypeNames;
use crate::types::Oid;
use crate::typmod::without_blanks;

/// Six operators from one order, and what they compare where their order is one that others know. The
/// order sees the context and both arguments.
macro_rules! comparisons {
    ($($eq:literal $ne:literal $lt:literal $le:literal $gt:literal $ge:literal = $order:ident $(: $operands:ident)?;)*) => {
        pub(super) const OPERATORS: &[(&str, Eval)] = &[$(
            ($eq, |c, v| Ok(Datum::Bool($order(c, v)? == Ordering::Equal))),
            ($ne, |c, v| Ok(Datum::Bool($order(c, v)? != Ordering::Equal))),
            ($lt, |c, v| Ok(Datum::Bool($order(c, v)? == Ordering::Less))),
            ($le, |c, v| Ok(Datum::Bool($order(c, v)? != Ordering::Greater))),
            ($gt, |c, v| Ok(Datum::Bool($order(c, v)? == Ordering::Greater))),
            ($ge, |c, v| Ok(Datum::Bool($order(c, v)? != Ordering::Less))),
        )*];
        pub(super) const INTRINSICS: &[(&str, Intrinsic)] = &[$($(
            ($eq, Intrinsic::Compare(Comparison::Eq, Operands::$operands)),
            ($ne, Intrinsic::Compare(Comparison::Ne, Operands::$operands)),
            ($lt, Intrinsic::Compare(Comparison::Lt, Operands::$operands)),
            ($le, Intrinsic::Compare(Comparison::Le, Operands::$operands)),
            ($gt, Intrinsic::Compare(Comparison::Gt, Operands::$operands)),
            ($ge, Intrinsic::Compare(Comparison::Ge, Operands::$operands)),
        )?)*];
    };
}

type Order = Result<Ordering>;

#[inline]
fn generic(_: &FunctionContext<'_>, v: &[Datum]) -> Order {
    Ok(compare(any(v, 0)?, any(v, 1)?))
}

#[inline]
fn by_int4(_: &FunctionContext<'_>, v: &[Datum]) -> Order {
    Ok(int4(v, 0)?.cmp(&int4(v, 1)?))
}

#[inline]
fn by_int8(_: &FunctionContext<'_>, v: &[Datum]) -> Order {
    Ok(int8(v, 0)?.cmp(&int8(v, 1)?))
}

#[inline]
fn by_text(_: &FunctionContext<'_>, v: &[Datum]) -> Order {
    Ok(text(v, 0)?.as_bytes().cmp(text(v, 1)?.as_bytes()))
}

#[inline]
fn by_numeric(_: &FunctionContext<'_>, v: &[Datum]) -> Order {
    Ok(numeric(v, 0)?.cmp(numeric(v, 1)?))
}

fn by_float(_: &FunctionContext<'_>, v: &[Datum]) -> Order {
    let wide = |i: usize| match &v[i] {
        Datum::Float4(x) => Ok(f64::from(*x)),
        _ => float8(v, i),
    };
    Ok(compare_floats(wide(0)?, wide(1)?))
}

/// Texts without the blanks at their ends.
fn by_bpchar(_: &FunctionContext<'_>, v: &[Datum]) -> Order {
    Ok(without_blanks(text(v, 0)?).as_bytes().cmp(without_blanks(text(v, 1)?).as_bytes()))
}

/// Whether two values may be of one type, as far as they tell: fields of `char(n)` were stored as texts
/// once.
fn may_be_alike(left: &Datum, right: &Datum) -> bool {
    let is_string = |value: &Datum| matches!(value, Datum::Text(_) | Datum::Bpchar(_));
    left.is_null()
        || right.is_null()
        || std::mem::discriminant(left) == std::mem::discriminant(right)
        || is_string(left) && is_string(right)
}

/// Rows, field by field; the first fields that differ decide, and must be of one type.
fn by_record(ctx: &FunctionContext<'_>, v: &[Datum]) -> Order {
    let (Datum::Record(left), Datum::Record(right)) = (any(v, 0)?, any(v, 1)?) else {
        return Ok(compare(any(v, 0)?, any(v, 1)?));
    };
    let told = |record: &Record| record.descriptor().is_some();
    let types = (told(left) && told(right))
        .then(|| (Fields::of(left, Oid::RECORD, ctx), Fields::of(right, Oid::RECORD, ctx)));
    for place in 0..left.len().max(right.len()) {
        // Fields that a type got after a value was made are NULL.
        let field = |of: &'_ [Datum]| of.get(place).cloned().unwrap_or(Datum::Null);
        let beyond = place >= left.len().min(right.len());
        let (left, right) = (field(left), field(right));
        if beyond && !(left.is_null() && right.is_null()) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "cannot compare record types with different numbers of columns",
            ));
        }
        let known = types.as_ref().and_then(|(left, right)| Some((left.known(place)?, right.known(place)?)));
        let alike = match known {
            Some((left, right)) => left.oid == right.oid,
            None => may_be_alike(&left, &right),
        };
        if !alike {
            let (left, right) =
                known.unwrap_or_else(|| (crate::io::natural_type(&left), crate::io::natural_type(&right)));
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot compare dissimilar column types {} and {} at record column {}",
                    ctx.type_name(left.oid),
                    ctx.type_name(right.oid),
                    place + 1
                ),
            ));
        }
        let order = compare(&left, &right);
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// A date, timestamp or timestamptz as an instant-like number: dates and timestamps without a
/// zone are read in the session's zone when the other side has one.
fn moment(ctx: &FunctionContext<'_>, value: &Datum, zoned: bool) -> i128 {
    let local = match value {
        Datum::Date(i32::MAX) => return i128::MAX,
        Datum::Date(i32::MIN) => return i128::MIN,
        Datum::Date(days) => i128::from(*days) * i128::from(MICROS_PER_DAY),
        Datum::Timestamp(i64::MAX) | Datum::TimestampTz(i64::MAX) => return i128::MAX,
        Datum::Timestamp(i64::MIN) | Datum::TimestampTz(i64::MIN) => return i128::MIN,
        Datum::TimestampTz(t) => return i128::from(*t),
        Datum::Timestamp(t) => i128::from(*t),
        _ => 0,
    };
    match i64::try_from(local) {
        Ok(local) if zoned => i128::from(zone::to_instant(&ctx.style().time_zone, local)),
        _ => local,
    }
}

fn by_moment(ctx: &FunctionContext<'_>, v: &[Datum]) -> Order {
    let zoned = v.iter().any(|value| matches!(value, Datum::TimestampTz(_)));
    Ok(moment(ctx, any(v, 0)?, zoned).cmp(&moment(ctx, any(v, 1)?, zoned)))
}

comparisons! {
    "int4eq" "int4ne" "int4lt" "int4le" "int4gt" "int4ge" = by_int4: Integers;
    "int8eq" "int8ne" "int8lt" "int8le" "int8gt" "int8ge" = by_int8: Integers;
    "pg_lsn_eq" "pg_lsn_ne" "pg_lsn_lt" "pg_lsn_le" "pg_lsn_gt" "pg_lsn_ge" = by_int8: Alike;
    "tideq" "tidne" "tidlt" "tidle" "tidgt" "tidge" = by_int8: Alike;
    "xid8eq" "xid8ne" "xid8lt" "xid8le" "xid8gt" "xid8ge" = by_int8: Alike;
    "int2eq" "int2ne" "int2lt" "int2le" "int2gt" "int2ge" = generic: Integers;
    "int24eq" "int24ne" "int24lt" "int24le" "int24gt" "int24ge" = generic: Integers;
    "int42eq" "int42ne" "int42lt" "int42le" "int42gt" "int42ge" = generic: Integers;
    "int28eq" "int28ne" "int28lt" "int28le" "int28gt" "int28ge" = generic: Integers;
    "int82eq" "int82ne" "int82lt" "int82le" "int82gt" "int82ge" = generic: Integers;
    "int48eq" "int48ne" "int48lt" "int48le" "int48gt" "int48ge" = generic: Integers;
    "int84eq" "int84ne" "int84lt" "int84le" "int84gt" "int84ge" = generic: Integers;
    "float4eq" "float4ne" "float4lt" "float4le" "float4gt" "float4ge" = by_float: Alike;
    "float8eq" "float8ne" "float8lt" "float8le" "float8gt" "float8ge" = by_float: Alike;
    "float48eq" "float48ne" "float48lt" "float48le" "float48gt" "float48ge" = by_float;
    "float84eq" "float84ne" "float84lt" "float84le" "float84gt" "float84ge" = by_float;
    "numeric_eq" "numeric_ne" "numeric_lt" "numeric_le" "numeric_gt" "numeric_ge" = by_numeric: Alike;
    "texteq" "textne" "text_lt" "text_le" "text_gt" "text_ge" = by_text: Alike;
    "bpchareq" "bpcharne" "bpcharlt" "bpcharle" "bpchargt" "bpcharge" = by_bpchar: Alike;
    "nameeq" "namene" "namelt" "namele" "namegt" "namege" = by_text: Alike;
    "nameeqtext" "namenetext" "namelttext" "nameletext" "namegttext" "namegetext" = by_text: Alike;
    "texteqname" "textnename" "textltname" "textlename" "textgtname" "textgename" = by_text: Alike;
    "chareq" "charne" "charlt" "charle" "chargt" "charge" = by_text: Alike;
    "booleq" "boolne" "boollt" "boolle" "boolgt" "boolge" = generic: Alike;
    "byteaeq" "byteane" "bytealt" "byteale" "byteagt" "byteage" = generic: Alike;
    "biteq" "bitne" "bitlt" "bitle" "bitgt" "bitge" = generic: Alike;
    "date_eq" "date_ne" "date_lt" "date_le" "date_gt" "date_ge" = generic: Alike;
    "time_eq" "time_ne" "time_lt" "time_le" "time_gt" "time_ge" = generic: Alike;
    "timetz_eq" "timetz_ne" "timetz_lt" "timetz_le" "timetz_gt" "timetz_ge" = generic: Alike;
    "timestamp_eq" "timestamp_ne" "timestamp_lt" "timestamp_le" "timestamp_gt" "timestamp_ge" = generic: Alike;
    "interval_eq" "interval_ne" "interval_lt" "interval_le" "interval_gt" "interval_ge" = generic: Alike;
    "uuid_eq" "uuid_ne" "uuid_lt" "uuid_le" "uuid_gt" "uuid_ge" = generic: Alike;
    "network_eq" "network_ne" "network_lt" "network_le" "network_gt" "network_ge" = generic: Alike;
    "macaddr_eq" "macaddr_ne" "macaddr_lt" "macaddr_le" "macaddr_gt" "macaddr_ge" = generic: Alike;
    "macaddr8_eq" "macaddr8_ne" "macaddr8_lt" "macaddr8_le" "macaddr8_gt" "macaddr8_ge" = generic: Alike;
    "oideq" "oidne" "oidlt" "oidle" "oidgt" "oidge" = generic: Alike;
    "oidvectoreq" "oidvectorne" "oidvectorlt" "oidvectorle" "oidvectorgt" "oidvectorge" = generic;
    "array_eq" "array_ne" "array_lt" "array_le" "array_gt" "array_ge" = generic: Alike;
    "record_eq" "record_ne" "record_lt" "record_le" "record_gt" "record_ge" = by_record;
    "date_eq_timestamp" "date_ne_timestamp" "date_lt_timestamp" "date_le_timestamp" "date_gt_timestamp" "date_ge_timestamp" = by_moment: Moments;
    "timestamp_eq_date" "timestamp_ne_date" "timestamp_lt_date" "timestamp_le_date" "timestamp_gt_date" "timestamp_ge_date" = by_moment: Moments;
    "date_eq_timestamptz" "date_ne_timestamptz" "date_lt_timestamptz" "date_le_timestamptz" "date_gt_timestamptz" "date_ge_timestamptz" = by_moment: Moments;
    "timestamptz_eq_date" "timestamptz_ne_date" "timestamptz_lt_date" "timestamptz_le_date" "timestamptz_gt_date" "timestamptz_ge_date" = by_moment: Moments;
    "timestamp_eq_timestamptz" "timestamp_ne_timestamptz" "timestamp_lt_timestamptz" "timestamp_le_timestamptz" "timestamp_gt_timestamptz" "timestamp_ge_timestamptz" = by_moment: Moments;
    "timestamptz_eq_timestamp" "timestamptz_ne_timestamp" "timestamptz_lt_timestamp" "timestamptz_le_timestamp" "timestamptz_gt_timestamp" "timestamptz_ge_timestamp" = by_moment: Moments;
    "record_image_eq" "record_image_ne" "record_image_lt" "record_image_le" "record_image_gt" "record_image_ge" = by_image: Images;
    "texteq" "textne" "text_pattern_lt" "text_pattern_le" "text_pattern_gt" "text_pattern_ge" = by_text;
    "bpchareq" "bpcharne" "bpchar_pattern_lt" "bpchar_pattern_le" "bpchar_pattern_gt" "bpchar_pattern_ge" = by_bpchar;
}

fn sign(_: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(compare(any(v, 0)?, any(v, 1)?) as i32))
}

fn sign_of_moments(ctx: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(by_moment(ctx, v)? as i32))
}

fn larger(_: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(if compare(any(v, 0)?, any(v, 1)?) == Ordering::Greater { v[0].clone() } else { v[1].clone() })
}

fn smaller(_: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(if compare(any(v, 0)?, any(v, 1)?) == Ordering::Less { v[0].clone() } else { v[1].clone() })
}

/// Three-way comparisons (the btree support functions), and the transition functions of MIN
/// and MAX, which are callable too.
pub(super) const SUPPORT: &[(&str, Eval)] = &[
    ("btint2cmp", sign),
    ("btint4cmp", sign),
    ("btint8cmp", sign),
    ("xid8cmp", sign),
    ("pg_lsn_cmp", sign),
    ("bttidcmp", sign),
    ("btfloat4cmp", sign),
    ("btfloat8cmp", sign),
    ("btoidcmp", sign),
    ("btnamecmp", sign),
    ("bttextcmp", sign),
    ("bpcharcmp", |c, v| Ok(Datum::Int4(by_bpchar(c, v)? as i32))),
    ("btboolcmp", sign),
    ("btarraycmp", sign),
    ("btrecordcmp", |c, v| Ok(Datum::Int4(by_record(c, v)? as i32))),
    ("btrecordimagecmp", |ctx, v| Ok(Datum::Int4(by_image(ctx, v)? as i32))),
    ("byteacmp", sign),
    ("bitcmp", sign),
    ("date_cmp", sign),
    ("time_cmp", sign),
    ("timetz_cmp", sign),
    ("timestamp_cmp", sign),
    ("interval_cmp", sign),
    ("uuid_cmp", sign),
    ("network_cmp", sign),
    ("macaddr_cmp", sign),
    ("macaddr8_cmp", sign),
    ("date_cmp_timestamp", sign_of_moments),
    ("date_cmp_timestamptz", sign_of_moments),
    ("timestamp_cmp_date", sign_of_moments),
    ("timestamptz_cmp_date", sign_of_moments),
    ("timestamp_cmp_timestamptz", sign_of_moments),
    ("timestamptz_cmp_timestamp", sign_of_moments),
    ("numeric_cmp", sign),
    ("int2larger", larger),
    ("int4larger", larger),
    ("int8larger", larger),
    ("xid8_larger", larger),
    ("pg_lsn_larger", larger),
    ("tidlarger", larger),
    ("float4larger", larger),
    ("float8larger", larger),
    ("numeric_larger", larger),
    ("text_larger", larger),
    ("bpchar_larger", |c, v| {
        Ok(if by_bpchar(c, v)? == Ordering::Less { v[1].clone() } else { v[0].clone() })
    }),
    ("date_larger", larger),
    ("time_larger", larger),
    ("timetz_larger", larger),
    ("timestamp_larger", larger),
    ("interval_larger", larger),
    ("oidlarger", larger),
    ("network_larger", larger),
    ("array_larger", larger),
    ("int2smaller", smaller),
    ("int4smaller", smaller),
    ("int8smaller", smaller),
    ("xid8_smaller", smaller),
    ("pg_lsn_smaller", smaller),
    ("tidsmaller", smaller),
    ("float4smaller", smaller),
    ("float8smaller", smaller),
    ("numeric_smaller", smaller),
    ("text_smaller", smaller),
    ("bpchar_smaller", |c, v| {
        Ok(if by_bpchar(c, v)? == Ordering::Greater { v[1].clone() } else { v[0].clone() })
    }),
    ("date_smaller", smaller),
    ("time_smaller", smaller),
    ("timetz_smaller", smaller),
    ("timestamp_smaller", smaller),
    ("interval_smaller", smaller),
    ("oidsmaller", smaller),
    ("network_smaller", smaller),
    ("array_smaller", smaller),
];
