//! SQL values made of JSON (populate_record_field): rows from objects, arrays from arrays, and the
//! rest through their texts.

use crate::datum::{Array, Datum, Dimension};
use crate::error::{Result, SqlError, SqlState};
use crate::function::FunctionContext;
use crate::io::record::fields_of;
use crate::io::text_in;
use crate::type_kind::Held;
use crate::type_table::element_of;
use crate::types::{Oid, Type};
use crate::{interrupt, memory};

use super::shape::{damaged, field};
use super::{Kind, Node, STEPS_PER_VALUE, write};

/// Reads an object into the fields of a target (see `shape::target`); what it lacks comes from
/// `base`.
pub fn row_in(node: &Node<'_>, target: &str, base: &Datum, ctx: &FunctionContext<'_>) -> Result<Vec<Datum>> {
    if !matches!(node.kind, Kind::Object(_)) {
        return Err(not_composite(node));
    }
    let mut row = Vec::new();
    let mut rest = target;
    while !rest.is_empty() {
        let (name, after) = field(rest)?;
        let (ty, after) = after.split_once(';').ok_or_else(damaged)?;
        let (oid, typmod) = ty.split_once(',').ok_or_else(damaged)?;
        let ty = Type {
            oid: Oid(oid.parse().map_err(|_| damaged())?),
            typmod: typmod.parse().map_err(|_| damaged())?,
        };
        rest = after;
        row.push(field_in(node, name, ty, field_of(base, row.len()), ctx)?);
    }
    Ok(row)
}

fn field_of(base: &Datum, place: usize) -> &Datum {
    match base {
        Datum::Record(fields) => fields.get(place).unwrap_or(&Datum::Null),
        _ => &Datum::Null,
    }
}

fn field_in(
    object: &Node<'_>,
    name: &str,
    ty: Type,
    base: &Datum,
    ctx: &FunctionContext<'_>,
) -> Result<Datum> {
    if let Kind::Object(fields) = &object.kind {
        // It is looked for among all.
        interrupt::steps(fields.len())?;
    }
    match object.field(name) {
        Some(value) => value_in(value, ty, base, Some(name), ctx),
        None => Ok(base.clone()),
    }
}

fn not_composite(node: &Node<'_>) -> SqlError {
    let what = if matches!(node.kind, Kind::Array(_)) { "an array" } else { "a scalar" };
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("cannot call populate_composite on {what}"))
}

/// A JSON value as one of a SQL type; `key` is where it stands.
fn value_in(
    node: &Node<'_>,
    ty: Type,
    base: &Datum,
    key: Option<&str>,
    ctx: &FunctionContext<'_>,
) -> Result<Datum> {
    if matches!(node.kind, Kind::Null) {
        return Ok(Datum::Null);
    }
    if matches!(ty.oid, Oid::JSON | Oid::JSONB) {
        return text_in(node.text, ty, ctx);
    }
    // A string is read by the type itself, whatever that is.
    let string = matches!(node.kind, Kind::String(_));
    if let Some(element) = element_of(ty.oid).filter(|_| !string) {
        let mut reader = ArrayReader::new(Type { oid: element, typmod: ty.typmod }, key, ctx);
        reader.dimension(node, 1)?;
        return Ok(reader.finish());
    }
    if ty.oid.held() == Some(Held::Fields) && !string {
        if !matches!(node.kind, Kind::Object(_)) {
            return Err(not_composite(node));
        }
        let fields = fields_of(ty.oid, ctx).unwrap_or_default();
        let fields = fields.iter().enumerate();
        let row = fields.map(|(place, (name, ty))| field_in(node, name, *ty, field_of(base, place), ctx));
        return Ok(Datum::Record(row.collect::<Result<Vec<Datum>>>()?.into()));
    }
    let text = node.as_text().unwrap_or_default();
    write::without_zero(text)?;
    let value = text_in(text, Type::of(ty.oid), ctx)?;
    crate::typmod::coerce_typmod(value, ty, false)
}

/// An array in the making (populate_array_dim_jsonb).
struct ArrayReader<'a> {
    element: Type,
    key: Option<&'a str>,
    ctx: &'a FunctionContext<'a>,
    /// How long each dimension is; `None` until one of its arrays has ended. Empty until the first
    /// element says how many there are.
    lengths: Vec<Option<usize>>,
    /// The elements seen in each dimension's current array.
    seen: Vec<usize>,
    values: Vec<Datum>,
}

impl<'a> ArrayReader<'a> {
    fn new(element: Type, key: Option<&'a str>, ctx: &'a FunctionContext<'a>) -> ArrayReader<'a> {
        ArrayReader { element, key, ctx, lengths: Vec::new(), seen: vec![0], values: Vec::new() }
    }

    /// Reads an array that lies `depth` deep, from one.
    fn dimension(&mut self, node: &Node<'_>, depth: usize) -> Result<()> {
        let Kind::Array(items) = &node.kind else { return Err(self.array_expected(depth - 1)) };
        let nested = items.first().is_some_and(|item| matches!(item.kind, Kind::Array(_)));
        if self.lengths.is_empty() && !nested {
            self.lengths = vec![None; depth];
        }
        self.seen.resize(self.seen.len().max(depth + 1), 0);
        for item in items {
            if !self.lengths.is_empty() && depth >= self.lengths.len() {
                let value = value_in(item, self.element, &Datum::Null, None, self.ctx)?;
                interrupt::steps(STEPS_PER_VALUE)?;
                memory::push(&mut self.values, value)?;
                self.seen[depth - 1] += 1;
            } else {
                self.dimension(item, depth + 1)?;
                self.check_length(depth)?;
            }
        }
        Ok(())
    }

    /// An array of the dimension `place` has ended.
    fn check_length(&mut self, place: usize) -> Result<()> {
        let seen = std::mem::take(&mut self.seen[place]);
        if *self.lengths[place].get_or_insert(seen) != seen {
            return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
                .with_detail("Multidimensional arrays must have sub-arrays with matching dimensions."));
        }
        self.seen[place - 1] += 1;
        Ok(())
    }

    fn array_expected(&self, depth: usize) -> SqlError {
        let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
        let place: String = self.seen[..depth].iter().map(|seen| format!("[{seen}]")).collect();
        match (self.key, depth) {
            (None, 0) => error,
            (Some(key), 0) => error.with_hint(format!("See the value of key \"{key}\".")),
            (Some(key), _) => error.with_hint(format!("See the array element {place} of key \"{key}\".")),
            (None, _) => error.with_hint(format!("See the array element {place}.")),
        }
    }

    fn finish(self) -> Datum {
        let lengths = self.lengths.iter().enumerate();
        let lengths = lengths.map(|(place, length)| length.unwrap_or(self.seen[place]));
        let mut dimensions: Vec<Dimension> =
            lengths.map(|length| Dimension { length, lower_bound: 1 }).collect();
        if self.values.is_empty() {
            dimensions.clear();
        }
        Datum::Array(Array { element: self.element.oid, dimensions, values: self.values }.into())
    }
}
