//! Operators and functions of json and jsonb.
//!
//! - `jsonpath` functions and operators of jsonpath

pub(super) mod jsonpath;

use std::borrow::Cow;

use super::SetEval;
use super::args::*;
use super::{Eval, FunctionContext, length};
use crate::datum::{Array, Datum};
use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;
use crate::io::record::Fields;
use crate::json::assign::assigned;
use crate::json::change::{self, Change};
use crate::json::populate::row_in;
use crate::json::{Kind, Node, STEPS_PER_VALUE, binary_field_text, order, shape, write};
use crate::memory;
use crate::numeric::Numeric;
use crate::record::Record;
use crate::types::Oid;

fn parsed(args: &[Datum], index: usize) -> Result<Node<'_>> {
    Node::parse(text(args, index)?)
}

fn shown(node: Option<&Node<'_>>) -> Result<Datum> {
    Ok(node.map_or(Datum::Null, |node| Datum::text(node.text)))
}

/// As [`shown`], of a jsonb value.
fn shown_binary(node: Option<&Node<'_>>) -> Result<Datum> {
    Ok(node.map_or(Datum::Null, |node| Datum::jsonb(node.text)))
}

fn shown_text(node: Option<&Node<'_>>) -> Result<Datum> {
    let Some(text) = node.and_then(Node::as_text) else { return Ok(Datum::Null) };
    write::without_zero(text)?;
    Ok(Datum::text(text))
}

/// The texts of an array argument; `None` if one is NULL.
fn texts(array: &Array) -> Option<Vec<&str>> {
    array
        .values
        .iter()
        .map(|value| match value {
            Datum::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn at_path<'n, 't>(node: &'n Node<'t>, path: &Array) -> Option<&'n Node<'t>> {
    texts(path)?.into_iter().try_fold(node, |node, step| node.step(step))
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn length(args: &[Datum]) -> Result<Datum> {
    match parsed(args, 0)?.kind {
        Kind::Array(items) => Ok(Datum::Int4(items.len() as i32)),
        Kind::Object(_) => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

fn path_of(args: &[Datum], index: usize) -> Result<Vec<&str>> {
    let path = array(args, index)?;
    texts(path).ok_or_else(|| {
        let place = path.values.iter().position(Datum::is_null).unwrap_or(0);
        SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            format!("path element at position {} is null", place + 1),
        )
    })
}

fn number(args: &[Datum], target: &str) -> Result<Numeric> {
    let node = parsed(args, 0)?;
    match node.kind {
        Kind::Number => node.text.parse(),
        _ => Err(cannot_cast(&node, target)),
    }
}

fn cannot_cast(node: &Node<'_>, target: &str) -> SqlError {
    let what = match node.kind {
        Kind::Array(_) => "array",
        Kind::Object(_) => "object",
        Kind::String(_) => "string",
        Kind::Number => "numeric",
        Kind::Bool(_) => "boolean",
        Kind::Null => "null",
    };
    invalid(format!("cannot cast jsonb {what} to type {target}"))
}

/// The text of a key made of a value in JSON.
fn key_text(json: &Datum) -> Result<String> {
    let Some(json) = json.json_text() else {
        return Err(invalid("key must not be null"));
    };
    let node = Node::parse(json)?;
    match &node.kind {
        Kind::String(text) => Ok(text.to_string()),
        Kind::Array(_) | Kind::Object(_) => {
            Err(invalid("key value must be scalar, not array, composite, or json"))
        }
        _ => Ok(node.text.to_owned()),
    }
}

fn json_text(value: &Datum) -> &str {
    value.json_text().unwrap_or("null")
}

fn build_object(args: &[Datum], binary: bool) -> Result<Datum> {
    if !args.len().is_multiple_of(2) {
        return Err(invalid("argument list must have even number of elements").with_hint(format!(
            "The arguments of {}() must consist of alternating keys and values.",
            if binary { "jsonb_build_object" } else { "json_build_object" }
        )));
    }
    let mut out = String::from("{");
    for (place, pair) in args.chunks(2).enumerate() {
        if pair[0].is_null() {
            return Err(if binary {
                invalid(format!("argument {}: key must not be null", 2 * place + 1))
            } else {
                invalid(format!("argument {} cannot be null", 2 * place + 1))
                    .with_hint("Object keys should be text.")
            });
        }
        if place > 0 {
            out.push_str(", ");
        }
        write::quoted(&key_text(&pair[0])?, &mut out)?;
        out.push_str(" : ");
        length::push(&mut out, json_text(&pair[1]))?;
    }
    out.push('}');
    finish(out, binary)
}

fn build_array(args: &[Datum], binary: bool) -> Result<Datum> {
    finish(change::array(args.iter().map(json_text))?, binary)
}

fn finish(out: String, binary: bool) -> Result<Datum> {
    if !binary {
        return Ok(made_text(out));
    }
    Ok(Datum::Jsonb(crate::io::jsonb_text(&out)?.into()))
}

fn pairs_object(args: &[Datum], binary: bool) -> Result<Datum> {
    let texts_of = |index: usize| -> Result<Vec<&Datum>> { Ok(array(args, index)?.values.iter().collect()) };
    let first = array(args, 0)?;
    let pairs: Vec<(&Datum, &Datum)> = if args.len() == 2 {
        let dimensions = (first.dimensions.len(), array(args, 1)?.dimensions.len());
        if dimensions.0 > 1 || dimensions.0 != dimensions.1 {
            let message = "wrong number of array subscripts";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        let (keys, values) = (texts_of(0)?, texts_of(1)?);
        if keys.len() != values.len() {
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "mismatched array dimensions"));
        }
        keys.into_iter().zip(values).collect()
    } else {
        let bad = |message| SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message);
        match &first.dimensions[..] {
            [] => Vec::new(),
            [one] if one.length.is_multiple_of(2) => {
                first.values.chunks(2).map(|pair| (&pair[0], &pair[1])).collect()
            }
            [_] => return Err(bad("array must have even number of elements")),
            [_, two] if two.length == 2 => first.values.chunks(2).map(|pair| (&pair[0], &pair[1])).collect(),
            [_, _] => return Err(bad("array must have two columns")),
            _ => return Err(bad("wrong number of array subscripts")),
        }
    };
    let mut out = String::from("{");
    for (place, (key, value)) in pairs.into_iter().enumerate() {
        let Datum::Text(key) = key else {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "null value not allowed for object key",
            ));
        };
        if place > 0 {
            out.push_str(", ");
        }
        write::quoted(key, &mut out)?;
        out.push_str(" : ");
        match value {
            Datum::Text(value) => write::quoted(value, &mut out)?,
            _ => out.push_str("null"),
        }
    }
    out.push('}');
    finish(out, binary)
}

fn set(args: &[Datum], create: bool) -> Result<Datum> {
    let node = parsed(args, 0)?;
    let path = path_of(args, 1)?;
    let value = text(args, 2)?;
    if !node.is_container() {
        return Err(invalid("cannot set path in scalar"));
    }
    if !create && is_empty(&node) {
        return Ok(any(args, 0)?.clone());
    }
    change::at_path(&node, &path, 0, Change::Set { value, create }).map(|text| Datum::jsonb(&text))
}

fn keys_exist(args: &[Datum], all: bool) -> Result<Datum> {
    let node = parsed(args, 0)?;
    for value in &array(args, 1)?.values[..] {
        if let Datum::Text(key) = value
            && exists(&node, key)? != all
        {
            return Ok(Datum::Bool(!all));
        }
    }
    Ok(Datum::Bool(all))
}

/// `value ? key`: a field, or a string among the elements, or the string itself.
fn exists(node: &Node<'_>, key: &str) -> Result<bool> {
    Ok(match &node.kind {
        Kind::Object(_) => node.binary_field(key).is_some(),
        Kind::Array(items) => {
            interrupt::steps(items.len())?;
            items.iter().any(|item| matches!(&item.kind, Kind::String(value) if value == key))
        }
        Kind::String(value) => value == key,
        _ => false,
    })
}

fn compared(args: &[Datum]) -> Result<std::cmp::Ordering> {
    Ok(order::compare(&parsed(args, 0)?, &parsed(args, 1)?, true))
}

/// A subscript of jsonb as a step of a path.
fn step(subscript: &Datum) -> Result<Cow<'_, str>> {
    match subscript {
        Datum::Int4(index) => Ok(index.to_string().into()),
        Datum::Text(key) => Ok(key.as_str().into()),
        _ => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "jsonb subscript in assignment must not be null",
        )),
    }
}

/// `(value, subscript, …)`.
fn element(args: &[Datum]) -> Result<Datum> {
    let node = parsed(args, 0)?;
    let mut found = Some(&node);
    for subscript in &args[1..] {
        let step = step(subscript)?;
        found = found.and_then(|node| node.step(&step));
    }
    shown_binary(found)
}

/// `(value, new, subscript, …)`: NULL for the new one is JSON's null, and the first subscript says
/// what becomes of a NULL that is changed.
pub(super) fn assign(args: &[Datum]) -> Result<Datum> {
    let steps: Vec<Cow<'_, str>> = args.iter().skip(2).map(step).collect::<Result<_>>()?;
    let path: Vec<&str> = steps.iter().map(AsRef::as_ref).collect();
    let base = match (any(args, 0)?, args.get(2)) {
        (Datum::Null, Some(Datum::Int4(_))) => Node::parse("[]")?,
        (Datum::Null, _) => Node::parse("{}")?,
        _ => parsed(args, 0)?,
    };
    assigned(&base, &path, json_text(any(args, 1)?)).map(|text| Datum::jsonb(&text))
}

/// The last two arguments say what becomes of an SQL NULL.
fn set_lax(args: &[Datum]) -> Result<Datum> {
    if [0, 1, 3].iter().any(|at| args.get(*at).is_none_or(Datum::is_null)) {
        return Ok(Datum::Null);
    }
    let treatment = match args.get(4) {
        Some(Datum::Text(treatment)) => treatment.as_str(),
        _ => "",
    };
    if !any(args, 2)?.is_null() {
        return set(args, boolean(args, 3)?);
    }
    match treatment {
        "raise_exception" => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "JSON value must not be null",
        )
        .with_detail("Exception was raised because null_value_treatment is \"raise_exception\".")
        .with_hint(
            "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
        )),
        "use_json_null" => {
            let mut args = args.to_vec();
            args[2] = Datum::jsonb("null");
            set(&args, boolean(&args, 3)?)
        }
        "delete_key" => delete_path(args),
        "return_target" => Ok(any(args, 0)?.clone()),
        _ => Err(invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

fn delete_path(args: &[Datum]) -> Result<Datum> {
    let (node, path) = (parsed(args, 0)?, path_of(args, 1)?);
    if is_empty(&node) {
        return Ok(any(args, 0)?.clone());
    }
    change::at_path(&node, &path, 0, Change::Delete).map(|text| Datum::jsonb(&text))
}

/// A row or an array with its parts on a line each, if that is asked for.
fn in_lines(args: &[Datum]) -> Result<Datum> {
    if !boolean(args, 1)? {
        return Ok(any(args, 0)?.clone());
    }
    let mut out = String::new();
    match &parsed(args, 0)?.kind {
        Kind::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { ",\n " } else { "[" });
                out.push_str(item.text);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Kind::Object(fields) => {
            for (place, (name, value)) in fields.iter().enumerate() {
                out.push_str(if place > 0 { ",\n " } else { "{" });
                write::string(name, &mut out);
                out.push(':');
                out.push_str(value.text);
            }
            out.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        _ => out.push_str(text(args, 0)?),
    }
    Ok(made_text(out))
}

/// An empty array or object: there is nothing that a path could miss.
fn is_empty(node: &Node<'_>) -> bool {
    match &node.kind {
        Kind::Array(items) => items.is_empty(),
        Kind::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("archipel_json_element", |_, v| element(v)),
    ("archipel_json_assign", |_, v| assign(v)),
    ("archipel_json_of", |ctx, v| {
        let mut out = String::new();
        shape::value_out(any(v, 0)?, shape::type_of(text(v, 1)?)?, ctx, &mut out)?;
        Ok(made_text(out))
    }),
    ("to_json", |_, v| Ok(any(v, 0)?.clone())),
    ("row_to_json", |_, v| Ok(any(v, 0)?.clone())),
    ("row_to_json_pretty", |_, v| in_lines(v)),
    ("array_to_json", |_, v| Ok(any(v, 0)?.clone())),
    ("array_to_json_pretty", |_, v| in_lines(v)),
    ("to_jsonb", |_, v| finish(text(v, 0)?.to_owned(), true)),
    ("json_build_object", |_, v| build_object(v, false)),
    ("jsonb_build_object", |_, v| build_object(v, true)),
    ("json_build_object_noargs", |_, _| Ok(Datum::text("{}"))),
    ("jsonb_build_object_noargs", |_, _| Ok(Datum::jsonb("{}"))),
    ("json_build_array", |_, v| build_array(v, false)),
    ("jsonb_build_array", |_, v| build_array(v, true)),
    ("json_build_array_noargs", |_, _| Ok(Datum::text("[]"))),
    ("jsonb_build_array_noargs", |_, _| Ok(Datum::jsonb("[]"))),
    ("json_object", |_, v| pairs_object(v, false)),
    ("json_object_two_arg", |_, v| pairs_object(v, false)),
    ("jsonb_object", |_, v| pairs_object(v, true)),
    ("jsonb_object_two_arg", |_, v| pairs_object(v, true)),
    ("json_typeof", |_, v| Ok(Datum::text(parsed(v, 0)?.type_name()))),
    ("jsonb_typeof", |_, v| Ok(Datum::text(parsed(v, 0)?.type_name()))),
    ("json_array_length", |_, v| length(v)),
    ("jsonb_array_length", |_, v| length(v)),
    ("json_object_field", |_, v| shown(parsed(v, 0)?.field(text(v, 1)?))),
    ("jsonb_object_field", |_, v| {
        let found = binary_field_text(text(v, 0)?, text(v, 1)?)?;
        Ok(found.map_or(Datum::Null, Datum::jsonb))
    }),
    ("json_object_field_text", |_, v| shown_text(parsed(v, 0)?.field(text(v, 1)?))),
    ("jsonb_object_field_text", |_, v| match binary_field_text(text(v, 0)?, text(v, 1)?)? {
        Some(value) => shown_text(Some(&Node::parse(value)?)),
        None => Ok(Datum::Null),
    }),
    ("json_array_element", |_, v| shown(parsed(v, 0)?.element(int4(v, 1)?.into()))),
    ("jsonb_array_element", |_, v| shown_binary(parsed(v, 0)?.binary_element(int4(v, 1)?.into()))),
    ("json_array_element_text", |_, v| shown_text(parsed(v, 0)?.element(int4(v, 1)?.into()))),
    ("jsonb_array_element_text", |_, v| shown_text(parsed(v, 0)?.binary_element(int4(v, 1)?.into()))),
    ("json_extract_path", |_, v| shown(at_path(&parsed(v, 0)?, array(v, 1)?))),
    ("jsonb_extract_path", |_, v| shown_binary(at_path(&parsed(v, 0)?, array(v, 1)?))),
    ("json_extract_path_text", |_, v| shown_text(at_path(&parsed(v, 0)?, array(v, 1)?))),
    ("jsonb_extract_path_text", |_, v| shown_text(at_path(&parsed(v, 0)?, array(v, 1)?))),
    ("json_strip_nulls", |_, v| {
        let mut out = String::new();
        change::strip_nulls(&parsed(v, 0)?, true, &mut out);
        Ok(made_text(out))
    }),
    ("jsonb_strip_nulls", |_, v| {
        let mut out = String::new();
        change::strip_nulls(&parsed(v, 0)?, false, &mut out);
        Ok(Datum::jsonb(&out))
    }),
    ("jsonb_pretty", |_, v| {
        let mut out = String::new();
        write::pretty(&parsed(v, 0)?, 0, &mut out)?;
        Ok(made_text(out))
    }),
    ("jsonb_concat", |_, v| Ok(Datum::jsonb(&change::concatenate(&parsed(v, 0)?, &parsed(v, 1)?)?))),
    ("jsonb_delete", |_, v| {
        change::without_keys(&parsed(v, 0)?, &[text(v, 1)?]).map(|text| Datum::jsonb(&text))
    }),
    ("jsonb_delete_array", |_, v| {
        let keys: Vec<&str> = array(v, 1)?
            .values
            .iter()
            .filter_map(|key| match key {
                Datum::Text(key) => Some(key.as_str()),
                _ => None,
            })
            .collect();
        change::without_keys(&parsed(v, 0)?, &keys).map(|text| Datum::jsonb(&text))
    }),
    ("jsonb_delete_idx", |_, v| {
        change::without_element(&parsed(v, 0)?, int4(v, 1)?.into()).map(|text| Datum::jsonb(&text))
    }),
    ("jsonb_delete_path", |_, v| delete_path(v)),
    ("jsonb_set", |_, v| set(v, boolean(v, 3)?)),
    ("jsonb_set_lax", |_, v| set_lax(v)),
    ("jsonb_insert", |_, v| {
        let (node, path) = (parsed(v, 0)?, path_of(v, 1)?);
        let insert = Change::Insert { value: text(v, 2)?, after: boolean(v, 3)? };
        change::at_path(&node, &path, 0, insert).map(|text| Datum::jsonb(&text))
    }),
    ("jsonb_contains", |_, v| Ok(Datum::Bool(change::contains(&parsed(v, 0)?, &parsed(v, 1)?)?))),
    ("jsonb_contained", |_, v| Ok(Datum::Bool(change::contains(&parsed(v, 1)?, &parsed(v, 0)?)?))),
    ("jsonb_exists", |_, v| Ok(Datum::Bool(exists(&parsed(v, 0)?, text(v, 1)?)?))),
    ("jsonb_exists_any", |_, v| keys_exist(v, false)),
    ("jsonb_exists_all", |_, v| keys_exist(v, true)),
    ("jsonb_eq", |_, v| Ok(Datum::Bool(compared(v)?.is_eq()))),
    ("jsonb_ne", |_, v| Ok(Datum::Bool(compared(v)?.is_ne()))),
    ("jsonb_lt", |_, v| Ok(Datum::Bool(compared(v)?.is_lt()))),
    ("jsonb_le", |_, v| Ok(Datum::Bool(compared(v)?.is_le()))),
    ("jsonb_gt", |_, v| Ok(Datum::Bool(compared(v)?.is_gt()))),
    ("jsonb_ge", |_, v| Ok(Datum::Bool(compared(v)?.is_ge()))),
    ("jsonb_bool", |_, v| {
        let node = parsed(v, 0)?;
        match node.kind {
            Kind::Bool(value) => Ok(Datum::Bool(value)),
            _ => Err(cannot_cast(&node, "boolean")),
        }
    }),
    ("jsonb_numeric", |_, v| number(v, "numeric").map(Datum::Numeric)),
    ("jsonb_int2", |_, v| number(v, "smallint")?.to_i16().map(Datum::Int2)),
    ("jsonb_int4", |_, v| number(v, "integer")?.to_i32().map(Datum::Int4)),
    ("jsonb_int8", |_, v| number(v, "bigint")?.to_i64().map(Datum::Int8)),
    ("jsonb_float4", |_, v| Ok(Datum::Float4(number(v, "real")?.to_f64() as f32))),
    ("jsonb_float8", |_, v| Ok(Datum::Float8(number(v, "double precision")?.to_f64()))),
    ("json_to_record", to_record),
    ("jsonb_to_record", to_record),
    ("json_populate_record", |ctx, v| populate_record(ctx, v, "json_populate_record")),
    ("jsonb_populate_record", |ctx, v| populate_record(ctx, v, "jsonb_populate_record")),
];

/// The last argument of `…_populate_record` and `…_populate_recordset` is the target's shape, which
/// the binder adds where it knows it; else the row given says what it is.
fn populated<'a>(ctx: &FunctionContext<'_>, args: &'a [Datum], function: &str) -> Result<Cow<'a, str>> {
    let declared = args.len() > 2 && matches!(args.last(), Some(Datum::Text(_)));
    if let (false, Some(Datum::Record(base))) = (declared, args.first())
        && let Some(fields) = Fields::of(base, Oid::RECORD, ctx).named()
    {
        return Ok(shape::target(fields.iter().map(|(name, ty)| (name.as_str(), *ty))).into());
    }
    match args.last() {
        Some(Datum::Text(target)) if args.len() > 2 => match target.strip_prefix(shape::MISMATCH) {
            None => Ok(target.as_str().into()),
            Some(detail) => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "function return row and query-specified return row do not match",
            )
            .with_detail(detail.to_owned())),
        },
        _ => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("could not determine row type for result of {function}"),
        )
        .with_hint(
            "Provide a non-null record argument, or call the function in the FROM clause using a column definition list.",
        )),
    }
}

fn populate_record(ctx: &FunctionContext<'_>, args: &[Datum], function: &str) -> Result<Datum> {
    if any(args, 1)?.is_null() {
        return Ok(any(args, 0)?.clone());
    }
    let target = populated(ctx, args, function)?;
    let row = row_in(&parsed(args, 1)?, &target, any(args, 0)?, ctx)?;
    Ok(Datum::Record(row_like(any(args, 0)?, row)))
}

/// Fields as a row of the kind that another is.
fn row_like(base: &Datum, fields: Vec<Datum>) -> Record {
    match base {
        Datum::Record(base) => base.with_fields(fields),
        _ => fields.into(),
    }
}

/// A part of a JSON value as a function shows it: as text, or of the type that the function reads.
fn part_shown(part: &Node<'_>, function: &str, as_text: bool) -> Result<Datum> {
    match as_text {
        true => shown_text(Some(part)),
        false if function.starts_with("jsonb") => shown_binary(Some(part)),
        false => shown(Some(part)),
    }
}

/// A row for each part of a value, as long as there is memory for them.
fn rows_for<P>(
    parts: impl Iterator<Item = P>,
    mut row: impl FnMut(P) -> Result<Vec<Datum>>,
) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    for part in parts {
        interrupt::steps(STEPS_PER_VALUE)?;
        memory::push(&mut rows, row(part)?)?;
    }
    Ok(rows)
}

fn elements(args: &[Datum], function: &str, as_text: bool) -> Result<Vec<Vec<Datum>>> {
    let node = parsed(args, 0)?;
    let Kind::Array(items) = &node.kind else {
        return Err(invalid(match node.kind {
            Kind::Object(_) if function.starts_with("jsonb") => {
                "cannot extract elements from an object".to_owned()
            }
            _ if function.starts_with("jsonb") => "cannot extract elements from a scalar".to_owned(),
            Kind::Object(_) => format!("cannot call {function} on a non-array"),
            _ => format!("cannot call {function} on a scalar"),
        }));
    };
    rows_for(items.iter(), |item| Ok(vec![part_shown(item, function, as_text)?]))
}

fn each(args: &[Datum], function: &str, as_text: bool) -> Result<Vec<Vec<Datum>>> {
    let node = parsed(args, 0)?;
    let Kind::Object(fields) = &node.kind else {
        return Err(invalid(match node.kind {
            _ if function.starts_with("jsonb") => format!("cannot call {function} on a non-object"),
            Kind::Array(_) => "cannot deconstruct an array as an object".to_owned(),
            _ => "cannot deconstruct a scalar".to_owned(),
        }));
    };
    rows_for(fields.iter(), |(key, value)| {
        let value = part_shown(value, function, as_text)?;
        write::without_zero(key)?;
        Ok(vec![Datum::text(key), value])
    })
}

fn object_keys(args: &[Datum], function: &str) -> Result<Vec<Vec<Datum>>> {
    let node = parsed(args, 0)?;
    match &node.kind {
        Kind::Object(fields) => rows_for(fields.iter(), |(key, _)| {
            write::without_zero(key)?;
            Ok(vec![Datum::text(key)])
        }),
        Kind::Array(_) => Err(invalid(format!("cannot call {function} on an array"))),
        _ => Err(invalid(format!("cannot call {function} on a scalar"))),
    }
}

/// `…_to_record`: the last argument is the target's shape.
fn to_record(ctx: &FunctionContext<'_>, args: &[Datum]) -> Result<Datum> {
    let row = row_in(&parsed(args, 0)?, text(args, args.len() - 1)?, &Datum::Null, ctx)?;
    Ok(Datum::Record(row.into()))
}

fn rows_of(
    ctx: &FunctionContext<'_>,
    json: &Datum,
    base: &Datum,
    target: &str,
    function: &str,
) -> Result<Vec<Vec<Datum>>> {
    let Some(json) = json.json_text() else { return Ok(Vec::new()) };
    let node = Node::parse(json)?;
    let Kind::Array(items) = &node.kind else {
        return Err(invalid(match node.kind {
            Kind::Object(_) => format!("cannot call {function} on an object"),
            _ => format!("cannot call {function} on a scalar"),
        }));
    };
    rows_for(items.iter(), |item| {
        if !matches!(item.kind, Kind::Object(_)) {
            return Err(invalid(format!("argument of {function} must be an array of objects")));
        }
        row_in(item, target, base, ctx)
    })
}

fn recordset(ctx: &FunctionContext<'_>, args: &[Datum], function: &str) -> Result<Vec<Vec<Datum>>> {
    rows_of(ctx, any(args, 0)?, &Datum::Null, text(args, args.len() - 1)?, function)
}

fn populate_recordset(ctx: &FunctionContext<'_>, args: &[Datum], function: &str) -> Result<Vec<Vec<Datum>>> {
    let base = any(args, 0)?;
    let rows = rows_of(ctx, any(args, 1)?, base, &populated(ctx, args, function)?, function)?;
    Ok(rows.into_iter().map(|row| vec![Datum::Record(row_like(base, row))]).collect())
}

pub(super) const SETS: &[(&str, SetEval)] = &[
    ("json_array_elements", |_, v| elements(v, "json_array_elements", false)),
    ("jsonb_array_elements", |_, v| elements(v, "jsonb_array_elements", false)),
    ("json_array_elements_text", |_, v| elements(v, "json_array_elements_text", true)),
    ("jsonb_array_elements_text", |_, v| elements(v, "jsonb_array_elements_text", true)),
    ("json_each", |_, v| each(v, "json_each", false)),
    ("jsonb_each", |_, v| each(v, "jsonb_each", false)),
    ("json_each_text", |_, v| each(v, "json_each_text", true)),
    ("jsonb_each_text", |_, v| each(v, "jsonb_each_text", true)),
    ("json_object_keys", |_, v| object_keys(v, "json_object_keys")),
    ("jsonb_object_keys", |_, v| object_keys(v, "jsonb_object_keys")),
    ("json_to_recordset", |ctx, v| recordset(ctx, v, "json_to_recordset")),
    ("jsonb_to_recordset", |ctx, v| recordset(ctx, v, "jsonb_to_recordset")),
    ("json_populate_recordset", |ctx, v| populate_recordset(ctx, v, "json_populate_recordset")),
    ("jsonb_populate_recordset", |ctx, v| populate_recordset(ctx, v, "jsonb_populate_recordset")),
];
