//! What a path is applied to and what it finds.

use std::rc::Rc;

use super::super::write;
use super::super::{Kind, Node, STEPS_PER_VALUE};
use super::datetime;
use crate::datetime::standard_template::Moment;
use crate::error::Result;
use crate::interrupt;
use crate::numeric::Numeric;

/// A value of JSON; parts are shared. Fields are in jsonb's order.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Numeric),
    String(Rc<str>),
    Array(Rc<[Value]>),
    Object(Rc<[(Rc<str>, Value)]>),
    /// What `.datetime()` makes; a string for everybody else.
    Datetime(Moment),
}

impl Value {
    /// A jsonb value.
    pub fn of(node: &Node<'_>) -> Result<Value> {
        interrupt::steps(STEPS_PER_VALUE)?;
        Ok(match &node.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number => Value::Number(node.text.parse()?),
            Kind::String(text) => Value::String(Rc::from(text.as_ref())),
            Kind::Array(items) => Value::Array(items.iter().map(Value::of).collect::<Result<_>>()?),
            Kind::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, value)| Ok((Rc::from(key.as_ref()), Value::of(value)?)))
                    .collect::<Result<_>>()?,
            ),
        })
    }

    /// Appends its jsonb text.
    pub fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&number.to_string()),
            Value::String(text) => write::string(text, out),
            Value::Datetime(moment) => write::string(&datetime::text_of(moment), out),
            Value::Array(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Value::Object(fields) => {
                out.push('{');
                for (place, (key, value)) in fields.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    write::string(key, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Datetime(moment) => datetime::type_name(moment),
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// The values inside.
    pub(super) fn children(&self) -> Vec<Value> {
        match self {
            Value::Array(items) => items.to_vec(),
            Value::Object(fields) => fields.iter().map(|(_, value)| value.clone()).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn is_container(&self) -> bool {
        matches!(self, Value::Array(_) | Value::Object(_))
    }

    /// Whether both are the same part of one value.
    fn is(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Array(one), Value::Array(two)) => Rc::ptr_eq(one, two),
            (Value::Object(one), Value::Object(two)) => Rc::ptr_eq(one, two),
            _ => false,
        }
    }

    /// How far from its start PostgreSQL's binary form of this value has a part; `keyvalue()`
    /// numbers objects by it.
    pub(super) fn offset_of(&self, part: &Value) -> Option<usize> {
        if self.is(part) {
            return Some(0);
        }
        let mut at = self.header_size();
        if let Value::Object(fields) = self {
            at += fields.iter().map(|(key, _)| key.len()).sum::<usize>();
        }
        for child in self.children() {
            let start = if child.is_aligned() { at.next_multiple_of(4) } else { at };
            if let Some(inside) = child.offset_of(part) {
                return Some(start + inside);
            }
            at = start + child.binary_size();
        }
        None
    }

    fn is_aligned(&self) -> bool {
        self.is_container() || matches!(self, Value::Number(_))
    }

    fn header_size(&self) -> usize {
        match self {
            Value::Array(items) => 4 + 4 * items.len(),
            Value::Object(fields) => 4 + 8 * fields.len(),
            _ => 0,
        }
    }

    fn binary_size(&self) -> usize {
        match self {
            Value::Null | Value::Bool(_) => 0,
            Value::String(text) => text.len(),
            Value::Datetime(moment) => datetime::text_of(moment).len(),
            Value::Number(number) => numeric_size(number),
            Value::Array(_) | Value::Object(_) => {
                let mut at = self.header_size();
                if let Value::Object(fields) = self {
                    at += fields.iter().map(|(key, _)| key.len()).sum::<usize>();
                }
                for child in self.children() {
                    let start = if child.is_aligned() { at.next_multiple_of(4) } else { at };
                    at = start + child.binary_size();
                }
                at
            }
        }
    }
}

/// The bytes of a numeric: a length, a header, and two bytes for each four digits.
fn numeric_size(number: &Numeric) -> usize {
    let text = number.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = format!("{:0>width$}", whole, width = whole.len().next_multiple_of(4));
    let fraction = format!("{:0<width$}", fraction, width = fraction.len().next_multiple_of(4));
    let digits = format!("{whole}{fraction}");
    let groups: Vec<&str> = (0..digits.len()).step_by(4).map(|at| &digits[at..at + 4]).collect();
    let used = |group: &&str| *group != "0000";
    let first = groups.iter().position(used);
    let last = groups.iter().rposition(used);
    let count = match (first, last) {
        (Some(first), Some(last)) => last - first + 1,
        _ => 0,
    };
    let short = number.scale() <= 63 && whole.len() / 4 <= 64;
    4 + if short { 2 } else { 4 } + 2 * count
}
