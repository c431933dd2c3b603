//! Array functions and operators.

use std::sync::Arc;

use crate::compare::{compare, equal};
use crate::datum::{Array, Datum, Dimension};
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::FunctionContext;
use crate::function::args::*;
use crate::function::length::{push, written};
use crate::interrupt::{self, gather};
use crate::io::{natural_type, text_out};
use crate::types::Oid;

/// What an element that is copied or compared counts as ([`interrupt::steps`]).
const STEPS_PER_VALUE: usize = 4;

/// The same of a row of a set.
const STEPS_PER_ROW: usize = 16;

/// A one-dimensional array counting from 1; empty arrays have no dimensions.
pub fn from_values(element: Oid, values: Vec<Datum>) -> Datum {
    let dimensions =
        if values.is_empty() { Vec::new() } else { vec![Dimension { length: values.len(), lower_bound: 1 }] };
    Datum::Array(Arc::new(Array { element, dimensions, values }))
}

/// The element type a value suggests, for building an array where only values are known.
fn element_type(value: &Datum, fallback: Oid) -> Oid {
    match natural_type(value).oid {
        Oid::UNKNOWN => fallback,
        oid => oid,
    }
}

fn one_dimensional(array: &Array, message: &str, state: SqlState) -> Result<()> {
    if array.dimensions.len() > 1 { Err(SqlError::new(state, message)) } else { Ok(()) }
}

fn dimension(array: &Array, n: i32) -> Option<&Dimension> {
    usize::try_from(n).ok().and_then(|n| n.checked_sub(1)).and_then(|n| array.dimensions.get(n))
}

fn upper(d: &Dimension) -> i32 {
    d.lower_bound + d.length as i32 - 1
}

/// `array || array`, `array || element`, `element || array`, by shape.
fn cat(a: &Arc<Array>, b: &Arc<Array>) -> Result<Datum> {
    if a.values.is_empty() {
        return Ok(Datum::Array(Arc::clone(b)));
    }
    if b.values.is_empty() {
        return Ok(Datum::Array(Arc::clone(a)));
    }
    let incompatible = |detail: &str| {
        SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays")
            .with_detail(detail)
    };
    let lengths = |d: &[Dimension]| d.iter().map(|d| d.length).collect::<Vec<_>>();
    let (da, db) = (&a.dimensions, &b.dimensions);
    let dimensions = if da.len() == db.len() {
        if lengths(&da[1..]) != lengths(&db[1..]) {
            return Err(incompatible(
                "Arrays with differing element dimensions are not compatible for concatenation.",
            ));
        }
        let mut joined = da.clone();
        joined[0].length += db[0].length;
        joined
    } else if da.len() == db.len() + 1 && lengths(&da[1..]) == lengths(db) {
        let mut joined = da.clone();
        joined[0].length += 1;
        joined
    } else if db.len() == da.len() + 1 && lengths(&db[1..]) == lengths(da) {
        let mut joined = db.clone();
        joined[0].length += 1;
        joined
    } else if da.len().abs_diff(db.len()) > 1 {
        return Err(incompatible(&format!(
            "Arrays of {} and {} dimensions are not compatible for concatenation.",
            da.len(),
            db.len()
        )));
    } else {
        return Err(incompatible("Arrays with differing dimensions are not compatible for concatenation."));
    };
    let values = gather(a.values.iter().chain(&b.values).cloned(), STEPS_PER_VALUE)?;
    Ok(Datum::Array(Arc::new(Array { element: a.element, dimensions, values })))
}

fn append(v: &[Datum]) -> Result<Datum> {
    let (base, value) = (any(v, 0)?, any(v, 1)?);
    if base.is_null() {
        return Ok(from_values(element_type(value, Oid::TEXT), vec![value.clone()]));
    }
    let base = array(v, 0)?;
    one_dimensional(base, "argument must be empty or one-dimensional array", SqlState::DATA_EXCEPTION)?;
    let mut grown = (**base).clone();
    grown.values.push(value.clone());
    match grown.dimensions.first_mut() {
        Some(d) => d.length += 1,
        None => grown.dimensions.push(Dimension { length: 1, lower_bound: 1 }),
    }
    Ok(Datum::Array(Arc::new(grown)))
}

fn prepend(v: &[Datum]) -> Result<Datum> {
    let (value, base) = (any(v, 0)?, any(v, 1)?);
    if base.is_null() {
        return Ok(from_values(element_type(value, Oid::TEXT), vec![value.clone()]));
    }
    let base = array(v, 1)?;
    one_dimensional(base, "argument must be empty or one-dimensional array", SqlState::DATA_EXCEPTION)?;
    let mut grown = (**base).clone();
    grown.values.insert(0, value.clone());
    match grown.dimensions.first_mut() {
        Some(d) => d.length += 1,
        None => grown.dimensions.push(Dimension { length: 1, lower_bound: 1 }),
    }
    Ok(Datum::Array(Arc::new(grown)))
}

fn position(v: &[Datum], start: Option<i32>) -> Result<Datum> {
    if any(v, 0)?.is_null() {
        return Ok(Datum::Null);
    }
    let base = array(v, 0)?;
    one_dimensional(
        base,
        "searching for elements in multidimensional arrays is not supported",
        SqlState::FEATURE_NOT_SUPPORTED,
    )?;
    let lower = base.dimensions.first().map_or(1, |d| d.lower_bound);
    let skip = start.map_or(0, |s| (i64::from(s) - i64::from(lower)).max(0) as usize);
    let wanted = any(v, 1)?;
    for (i, value) in base.values.iter().enumerate().skip(skip) {
        interrupt::steps(STEPS_PER_VALUE)?;
        if equal(value, wanted) {
            return Ok(Datum::Int4(lower + i as i32));
        }
    }
    Ok(Datum::Null)
}

fn positions(v: &[Datum]) -> Result<Datum> {
    if any(v, 0)?.is_null() {
        return Ok(Datum::Null);
    }
    let base = array(v, 0)?;
    one_dimensional(
        base,
        "searching for elements in multidimensional arrays is not supported",
        SqlState::FEATURE_NOT_SUPPORTED,
    )?;
    let lower = base.dimensions.first().map_or(1, |d| d.lower_bound);
    let wanted = any(v, 1)?;
    let mut found = Vec::new();
    for (i, value) in base.values.iter().enumerate() {
        interrupt::steps(STEPS_PER_VALUE)?;
        if equal(value, wanted) {
            found.push(Datum::Int4(lower + i as i32));
        }
    }
    Ok(from_values(Oid::INT4, found))
}

fn remove(v: &[Datum]) -> Result<Datum> {
    if any(v, 0)?.is_null() {
        return Ok(Datum::Null);
    }
    let base = array(v, 0)?;
    if base.dimensions.len() > 1 {
        return Err(SqlError::unsupported("removing elements from multidimensional arrays"));
    }
    let unwanted = any(v, 1)?;
    let mut values = Vec::new();
    for value in &base.values {
        interrupt::steps(STEPS_PER_VALUE)?;
        if !equal(value, unwanted) {
            values.push(value.clone());
        }
    }
    let mut dimensions = base.dimensions.clone();
    match dimensions.first_mut() {
        Some(d) if !values.is_empty() => d.length = values.len(),
        _ => dimensions.clear(),
    }
    Ok(Datum::Array(Arc::new(Array { element: base.element, dimensions, values })))
}

fn replace(v: &[Datum]) -> Result<Datum> {
    if any(v, 0)?.is_null() {
        return Ok(Datum::Null);
    }
    let (old, new) = (any(v, 1)?, any(v, 2)?);
    let mut changed = (**array(v, 0)?).clone();
    for value in &mut changed.values {
        interrupt::steps(STEPS_PER_VALUE)?;
        if equal(value, old) {
            *value = new.clone();
        }
    }
    Ok(Datum::Array(Arc::new(changed)))
}

/// Whether every element of `inner` is among those of `outer`; NULL is contained in nothing.
fn contains(outer: &Array, inner: &Array) -> Result<bool> {
    for wanted in &inner.values {
        if !holds(outer, wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn overlap(a: &Array, b: &Array) -> Result<bool> {
    for wanted in &a.values {
        if holds(b, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a value is one of an array's; NULL is none.
fn holds(array: &Array, wanted: &Datum) -> Result<bool> {
    if wanted.is_null() {
        return Ok(false);
    }
    for value in &array.values {
        interrupt::steps(STEPS_PER_VALUE)?;
        if !value.is_null() && equal(value, wanted) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `array_to_string`: NULLs are left out, or shown as a given text.
fn to_text(ctx: &FunctionContext<'_>, base: &Array, separator: &str, null: Option<&str>) -> Result<String> {
    let mut out = String::new();
    let mut first = true;
    for value in &base.values {
        if value.is_null() && null.is_none() {
            continue;
        }
        if !first {
            push(&mut out, separator)?;
        }
        first = false;
        match (value, null) {
            (Datum::Null, Some(null)) => push(&mut out, null)?,
            _ => written(&mut out, |out| text_out(value, crate::types::Type::of(base.element), ctx, out))?,
        }
    }
    Ok(out)
}

/// `string_to_array`: a NULL separator splits into characters, an empty one not at all.
pub(super) fn split_text(v: &[Datum]) -> Result<Option<Vec<Datum>>> {
    if any(v, 0)?.is_null() {
        return Ok(None);
    }
    let source = text(v, 0)?;
    let null = match v.get(2) {
        Some(Datum::Text(null)) => Some(null.as_str()),
        _ => None,
    };
    let piece = |part: &str| if null == Some(part) { Datum::Null } else { Datum::text(part) };
    if source.is_empty() {
        return Ok(Some(Vec::new()));
    }
    Ok(Some(match any(v, 1)? {
        Datum::Null => gather(source.chars().map(|c| piece(c.encode_utf8(&mut [0; 4]))), STEPS_PER_VALUE)?,
        _ if text(v, 1)?.is_empty() => vec![piece(source)],
        _ => gather(source.split(text(v, 1)?).map(piece), STEPS_PER_VALUE)?,
    }))
}

fn fill(v: &[Datum]) -> Result<Datum> {
    let bounds = |index: usize| -> Result<Vec<i32>> {
        if any(v, index)?.is_null() {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "dimension array or low bound array cannot be null",
            ));
        }
        if array(v, index)?.dimensions.len() > 1 {
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
                .with_detail("Dimension array must be one dimensional."));
        }
        array(v, index)?
            .values
            .iter()
            .map(|value| match value {
                Datum::Int4(n) => Ok(*n),
                _ => Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null")),
            })
            .collect()
    };
    let lengths = bounds(1)?;
    let lowers = if v.len() > 2 { bounds(2)? } else { vec![1; lengths.len()] };
    if lowers.len() != lengths.len() {
        return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
            .with_detail("Low bound array has different size than dimensions array."));
    }
    let total = lengths
        .iter()
        .try_fold(1usize, |total, n| total.checked_mul(usize::try_from(*n).ok()?))
        .filter(|n| *n < 1 << 27);
    let Some(total) = total else {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "array size exceeds the maximum allowed (134217727)",
        ));
    };
    let value = any(v, 0)?;
    let dimensions = if total == 0 || lengths.is_empty() {
        Vec::new()
    } else {
        lengths
            .iter()
            .zip(&lowers)
            .map(|(n, low)| Dimension { length: *n as usize, lower_bound: *low })
            .collect()
    };
    let count = if lengths.is_empty() { 0 } else { total };
    let apart = match value {
        Datum::Text(text) | Datum::Bpchar(text) if text.is_heap_allocated() => text.len(),
        _ => 0,
    };
    crate::memory::check(count.saturating_mul(size_of::<Datum>() + apart))?;
    Ok(Datum::Array(Arc::new(Array {
        element: element_type(value, Oid::TEXT),
        dimensions,
        values: gather(std::iter::repeat_n(value.clone(), count), STEPS_PER_VALUE)?,
    })))
}

fn trim(base: &Array, n: i32) -> Result<Datum> {
    let length = base.dimensions.first().map_or(0, |d| d.length);
    let cut = usize::try_from(n).ok().filter(|n| *n <= length).ok_or_else(|| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("number of elements to trim must be between 0 and {length}"),
        )
    })?;
    let mut trimmed = base.clone();
    let row = base.values.len().checked_div(length).unwrap_or(0);
    trimmed.values.truncate((length - cut) * row);
    match trimmed.dimensions.first_mut() {
        Some(d) if length > cut => {
            d.length = length - cut;
            // The result is a slice, and slices count from 1.
            trimmed.dimensions.iter_mut().for_each(|d| d.lower_bound = 1);
        }
        _ => trimmed.dimensions.clear(),
    }
    Ok(Datum::Array(Arc::new(trimmed)))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("array_length", |_, v| {
        Ok(dimension(array(v, 0)?, int4(v, 1)?).map_or(Datum::Null, |d| Datum::Int4(d.length as i32)))
    }),
    ("array_lower", |_, v| {
        Ok(dimension(array(v, 0)?, int4(v, 1)?).map_or(Datum::Null, |d| Datum::Int4(d.lower_bound)))
    }),
    ("array_upper", |_, v| {
        Ok(dimension(array(v, 0)?, int4(v, 1)?).map_or(Datum::Null, |d| Datum::Int4(upper(d))))
    }),
    ("array_ndims", |_, v| match array(v, 0)?.dimensions.len() {
        0 => Ok(Datum::Null),
        n => Ok(Datum::Int4(n as i32)),
    }),
    ("array_cardinality", |_, v| Ok(Datum::Int4(array(v, 0)?.values.len() as i32))),
    ("array_dims", |_, v| {
        let dimensions = &array(v, 0)?.dimensions;
        if dimensions.is_empty() {
            return Ok(Datum::Null);
        }
        Ok(text_datum(
            dimensions.iter().map(|d| format!("[{}:{}]", d.lower_bound, upper(d))).collect::<String>(),
        ))
    }),
    ("array_append", |_, v| append(v)),
    ("array_prepend", |_, v| prepend(v)),
    ("array_cat", |_, v| match (any(v, 0)?, any(v, 1)?) {
        (Datum::Null, other) | (other, Datum::Null) => Ok(other.clone()),
        _ => cat(array(v, 0)?, array(v, 1)?),
    }),
    ("array_position", |_, v| position(v, None)),
    ("array_position_start", |_, v| position(v, Some(int4(v, 2)?))),
    ("array_positions", |_, v| positions(v)),
    ("array_remove", |_, v| remove(v)),
    ("array_replace", |_, v| replace(v)),
    ("arraycontains", |_, v| Ok(Datum::Bool(contains(array(v, 0)?, array(v, 1)?)?))),
    ("arraycontained", |_, v| Ok(Datum::Bool(contains(array(v, 1)?, array(v, 0)?)?))),
    ("arrayoverlap", |_, v| Ok(Datum::Bool(overlap(array(v, 0)?, array(v, 1)?)?))),
    ("array_to_text", |c, v| Ok(made_text(to_text(c, array(v, 0)?, text(v, 1)?, None)?))),
    ("array_to_text_null", |c, v| {
        if any(v, 0)?.is_null() || any(v, 1)?.is_null() {
            return Ok(Datum::Null);
        }
        let null = match v.get(2) {
            Some(Datum::Text(null)) => Some(null.as_str()),
            _ => None,
        };
        Ok(made_text(to_text(c, array(v, 0)?, text(v, 1)?, null)?))
    }),
    ("text_to_array", |_, v| Ok(split_text(v)?.map_or(Datum::Null, |parts| from_values(Oid::TEXT, parts)))),
    ("text_to_array_null", |_, v| {
        Ok(split_text(v)?.map_or(Datum::Null, |parts| from_values(Oid::TEXT, parts)))
    }),
    ("array_fill", |_, v| fill(v)),
    ("array_fill_with_lower_bounds", |_, v| fill(v)),
    ("trim_array", |_, v| trim(array(v, 0)?, int4(v, 1)?)),
    ("width_bucket_array", |_, v| {
        let (wanted, bounds) = (any(v, 0)?, array(v, 1)?);
        if bounds.dimensions.len() > 1 {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "thresholds must be one-dimensional array",
            ));
        }
        if bounds.values.iter().any(Datum::is_null) {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "thresholds array must not contain NULLs",
            ));
        }
        Ok(Datum::Int4(bounds.values.partition_point(|bound| compare(bound, wanted).is_le()) as i32))
    }),
    ("satisfies_hash_partition", |_, v| {
        let (Datum::Int4(modulus), Datum::Int4(remainder)) = (any(v, 1)?, any(v, 2)?) else {
            return Ok(Datum::Bool(false));
        };
        if any(v, 0)?.is_null() {
            return Ok(Datum::Bool(false));
        }
        let refused = |what: &str| {
            let message = format!("{what} for hash partition must be ");
            let message = match (what, *remainder < 0) {
                ("modulus", _) => message + "an integer value greater than zero",
                (_, true) => message + "an integer value greater than or equal to zero",
                (_, false) => message + "less than modulus",
            };
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        if *modulus <= 0 {
            return Err(refused("modulus"));
        }
        if !(0..*modulus).contains(remainder) {
            return Err(refused("remainder"));
        }
        let hash = crate::partition_hash::partition_hash(v.get(3..).unwrap_or_default())?;
        Ok(Datum::Bool(hash % *modulus as u64 == *remainder as u64))
    }),
    ("pg_num_nulls", |_, v| Ok(Datum::Int4(v.iter().filter(|d| d.is_null()).count() as i32))),
    ("pg_num_nonnulls", |_, v| Ok(Datum::Int4(v.iter().filter(|d| !d.is_null()).count() as i32))),
];

pub(in crate::function) const SETS: &[(&str, crate::function::SetEval)] = &[
    // information_schema's, which drivers ask for the columns of an index.
    ("expandarray", |_, v| {
        let numbered = array(v, 0)?.values.iter().zip(1..);
        gather(numbered.map(|(value, number)| vec![value.clone(), Datum::Int4(number)]), STEPS_PER_ROW)
    }),
    ("array_unnest", |_, v| {
        gather(array(v, 0)?.values.iter().map(|value| vec![value.clone()]), STEPS_PER_ROW)
    }),
    // Names become roles in the catalog.
    ("aclexplode", |c, v| match c.session.call("aclexplode", v)? {
        Datum::Array(rows) => Ok(rows
            .values
            .iter()
            .map(|row| match row {
                Datum::Record(fields) => fields.to_vec(),
                other => vec![other.clone()],
            })
            .collect()),
        _ => Ok(Vec::new()),
    }),
    ("text_to_table", |_, v| {
        gather(split_text(v)?.unwrap_or_default().into_iter().map(|value| vec![value]), STEPS_PER_ROW)
    }),
    ("text_to_table_null", |_, v| {
        gather(split_text(v)?.unwrap_or_default().into_iter().map(|value| vec![value]), STEPS_PER_ROW)
    }),
    ("generate_subscripts_nodir", |_, v| subscripts(dimension(array(v, 0)?, int4(v, 1)?), false)),
    ("generate_subscripts", |_, v| subscripts(dimension(array(v, 0)?, int4(v, 1)?), boolean(v, 2)?)),
];

fn subscripts(d: Option<&Dimension>, reverse: bool) -> Result<Vec<Vec<Datum>>> {
    let Some(d) = d else { return Ok(Vec::new()) };
    let mut rows = gather((d.lower_bound..=upper(d)).map(|n| vec![Datum::Int4(n)]), STEPS_PER_ROW)?;
    if reverse {
        rows.reverse();
    }
    Ok(rows)
}
