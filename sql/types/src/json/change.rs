//! jsonb values made from others. Texts of the parts are canonical, so a new value is put
//! together from them.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::error::{Result, SqlError, SqlState};
use crate::function::length::check_value;
use crate::interrupt;

use super::key_order::key_order;
use super::order::equal;
use super::write::string;
use super::{Kind, Node, STEPS_PER_VALUE, position};

/// So many values are looked for one by one.
const FEW: usize = 8;

/// Room for what parts of such lengths make, or why there is none.
fn room(lengths: impl Iterator<Item = usize>) -> Result<String> {
    let length = lengths.fold(2, |sum: usize, length| sum.saturating_add(length));
    check_value(length)?;
    interrupt::steps(length)?;
    Ok(String::with_capacity(length))
}

/// The text of an array.
pub fn array<'n>(items: impl Iterator<Item = &'n str> + Clone) -> Result<String> {
    let mut out = room(items.clone().map(|item| item.len() + 2))?;
    out.push('[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        out.push_str(item);
    }
    out.push(']');
    Ok(out)
}

/// The text of an object; the fields are in jsonb's order.
pub fn object<'n>(fields: impl Iterator<Item = (&'n str, &'n str)> + Clone) -> Result<String> {
    let mut out = room(fields.clone().map(|(key, value)| key.len() + value.len() + 6))?;
    out.push('{');
    for (place, (key, value)) in fields.enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        string(key, &mut out);
        out.push_str(": ");
        out.push_str(value);
    }
    out.push('}');
    Ok(out)
}

fn fields_of<'n>(fields: &'n [(Cow<'_, str>, Node<'_>)]) -> impl Iterator<Item = (&'n str, &'n str)> + Clone {
    fields.iter().map(|(key, node)| (key.as_ref(), node.text))
}

fn items_of<'n>(items: &'n [Node<'_>]) -> impl Iterator<Item = &'n str> + Clone {
    items.iter().map(|node| node.text)
}

/// `a || b`.
pub fn concatenate(a: &Node<'_>, b: &Node<'_>) -> Result<String> {
    match (&a.kind, &b.kind) {
        (Kind::Object(left), Kind::Object(right)) => {
            let mut all: Vec<(&str, &str)> = Vec::new();
            interrupt::steps(left.len() + right.len())?;
            all.extend(fields_of(left).filter(|(key, _)| b.binary_field(key).is_none()));
            all.extend(fields_of(right));
            all.sort_by(|x, y| key_order(x.0, y.0));
            object(all.into_iter())
        }
        (Kind::Array(left), Kind::Array(right)) => array(items_of(left).chain(items_of(right))),
        (Kind::Array(left), _) => array(items_of(left).chain([b.text])),
        (_, Kind::Array(right)) => array([a.text].into_iter().chain(items_of(right))),
        _ => array([a.text, b.text].into_iter()),
    }
}

/// `value - key`: without these keys, or these strings of an array.
pub fn without_keys(node: &Node<'_>, keys: &[&str]) -> Result<String> {
    match &node.kind {
        Kind::Object(fields) => {
            let mut kept = Vec::new();
            for (key, value) in fields_of(fields) {
                interrupt::steps(1 + keys.len())?;
                if !keys.contains(&key) {
                    kept.push((key, value));
                }
            }
            object(kept.into_iter())
        }
        Kind::Array(items) => {
            let mut kept = Vec::new();
            for item in items {
                interrupt::steps(1 + keys.len())?;
                if !matches!(&item.kind, Kind::String(value) if keys.contains(&value.as_ref())) {
                    kept.push(item.text);
                }
            }
            array(kept.into_iter())
        }
        _ => Err(invalid("cannot delete from scalar")),
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// `value - index`.
pub fn without_element(node: &Node<'_>, index: i64) -> Result<String> {
    match &node.kind {
        Kind::Array(items) => {
            let gone = position(index, items.len());
            let kept = items.iter().enumerate().filter(|(place, _)| Some(*place) != gone);
            array(kept.map(|(_, item)| item.text))
        }
        Kind::Object(_) => Err(invalid("cannot delete from object using integer index")),
        _ => Err(invalid("cannot delete from scalar")),
    }
}

/// What happens at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change<'v> {
    Delete,
    /// `create`: also where nothing is yet.
    Set {
        value: &'v str,
        create: bool,
    },
    Insert {
        value: &'v str,
        after: bool,
    },
}

/// Follows a path and makes the change there; steps before the last must exist.
pub fn at_path(node: &Node<'_>, path: &[&str], level: usize, change: Change<'_>) -> Result<String> {
    let Some((step, rest)) = path[level..].split_first() else { return Ok(node.text.to_owned()) };
    let last = rest.is_empty();
    match &node.kind {
        Kind::Object(fields) => {
            let place = fields.iter().position(|(key, _)| key == step);
            let mut parts: Vec<(&str, Cow<'_, str>)> =
                fields.iter().map(|(key, node)| (key.as_ref(), Cow::Borrowed(node.text))).collect();
            match (place, change) {
                (Some(place), _) if !last => {
                    parts[place].1 = at_path(&fields[place].1, path, level + 1, change)?.into();
                }
                (Some(place), Change::Delete) => {
                    parts.remove(place);
                }
                (Some(place), Change::Set { value, .. }) => parts[place].1 = value.into(),
                (Some(_), Change::Insert { .. }) => {
                    return Err(invalid("cannot replace existing key")
                        .with_hint("Try using the function jsonb_set to replace key value."));
                }
                (None, Change::Set { value, create: true } | Change::Insert { value, .. }) if last => {
                    parts.push((step, value.into()));
                    parts.sort_by(|a, b| key_order(a.0, b.0));
                }
                (None, _) => {}
            }
            object(parts.iter().map(|(key, text)| (*key, text.as_ref())))
        }
        Kind::Array(items) => {
            let index: i64 = step.trim().parse().map_err(|_| {
                SqlError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    format!("path element at position {} is not an integer: \"{step}\"", level + 1),
                )
            })?;
            let place = position(index, items.len());
            let mut parts: Vec<Cow<'_, str>> = items.iter().map(|item| item.text.into()).collect();
            match (place, change) {
                (Some(place), _) if !last => {
                    parts[place] = at_path(&items[place], path, level + 1, change)?.into();
                }
                (Some(place), Change::Delete) => {
                    parts.remove(place);
                }
                (Some(place), Change::Set { value, .. }) => parts[place] = value.into(),
                (Some(place), Change::Insert { value, after }) => {
                    parts.insert(place + usize::from(after), value.into());
                }
                (None, Change::Set { value, create: true } | Change::Insert { value, .. }) if last => {
                    parts.insert(if index < 0 { 0 } else { parts.len() }, value.into());
                }
                (None, _) => {}
            }
            array(parts.iter().map(AsRef::as_ref))
        }
        _ if level == 0 => Err(invalid(match change {
            Change::Delete => "cannot delete path in scalar",
            _ => "cannot set path in scalar",
        })),
        _ => Ok(node.text.to_owned()),
    }
}

/// Without fields that are null; blanks as `json` (`compact`) or `jsonb` has them.
pub fn strip_nulls(node: &Node<'_>, compact: bool, out: &mut String) {
    let (comma, colon) = if compact { (",", ":") } else { (", ", ": ") };
    match &node.kind {
        Kind::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push_str(comma);
                }
                strip_nulls(item, compact, out);
            }
            out.push(']');
        }
        Kind::Object(fields) => {
            out.push('{');
            let kept = fields.iter().filter(|(_, value)| !matches!(value.kind, Kind::Null));
            for (place, (key, value)) in kept.enumerate() {
                if place > 0 {
                    out.push_str(comma);
                }
                string(key, out);
                out.push_str(colon);
                strip_nulls(value, compact, out);
            }
            out.push('}');
        }
        _ => out.push_str(node.text),
    }
}

/// `a @> b`.
pub fn contains(a: &Node<'_>, b: &Node<'_>) -> Result<bool> {
    match (&a.kind, &b.kind) {
        (Kind::Object(_), Kind::Object(wanted)) => {
            for (key, value) in wanted {
                interrupt::steps(STEPS_PER_VALUE)?;
                match a.binary_field(key) {
                    Some(found) if inside(found, value)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Kind::Array(items), Kind::Array(wanted)) => {
            // What is written alike is equal; whether there is what is written otherwise takes a look at all.
            let alike: HashSet<&str> = match wanted.len() > FEW {
                true => items.iter().filter(|item| !item.is_container()).map(|item| item.text).collect(),
                false => HashSet::new(),
            };
            for value in wanted {
                interrupt::steps(STEPS_PER_VALUE)?;
                if !alike.contains(value.text) && !any_inside(items, value)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        // An array contains a scalar that is one of its elements: only at the top.
        (Kind::Array(items), _) if !b.is_container() => Ok(items.iter().any(|item| equal(item, b))),
        _ => Ok(!a.is_container() && !b.is_container() && equal(a, b)),
    }
}

fn any_inside(items: &[Node<'_>], value: &Node<'_>) -> Result<bool> {
    for item in items {
        interrupt::steps(STEPS_PER_VALUE)?;
        if inside(item, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn inside(a: &Node<'_>, b: &Node<'_>) -> Result<bool> {
    match (a.is_container(), b.is_container()) {
        (true, true) if std::mem::discriminant(&a.kind) == std::mem::discriminant(&b.kind) => contains(a, b),
        (false, false) => Ok(equal(a, b)),
        _ => Ok(false),
    }
}
