//! Assignment to a part of a jsonb value by subscripts (jsonb_set_element): what the path lacks is
//! made, and places before a new element are filled with null.

use std::borrow::Cow;

use crate::error::{Result, SqlError, SqlState};
use crate::function::length::check_value;
use crate::{interrupt, stack};

use super::change::{array, object};
use super::key_order::key_order;
use super::{DEPTH_MAX, Kind, Node, position};

/// A value with another at the end of a path.
pub fn assigned(node: &Node<'_>, path: &[&str], value: &str) -> Result<String> {
    at_level(node, path, 0, value)
}

fn at_level(node: &Node<'_>, path: &[&str], level: usize, value: &str) -> Result<String> {
    let Some(step) = path.get(level) else { return Ok(value.to_owned()) };
    match &node.kind {
        Kind::Object(fields) => {
            let mut parts: Vec<(&str, Cow<'_, str>)> =
                fields.iter().map(|(key, node)| (key.as_ref(), Cow::Borrowed(node.text))).collect();
            match fields.iter().position(|(key, _)| key == step) {
                Some(place) => parts[place].1 = at_level(&fields[place].1, path, level + 1, value)?.into(),
                None => {
                    parts.push((step, chain(&path[level + 1..], value)?.into()));
                    parts.sort_by(|one, other| key_order(one.0, other.0));
                }
            }
            object(parts.iter().map(|(key, text)| (*key, text.as_ref())))
        }
        Kind::Array(items) => {
            let index = place_of(step).ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    format!("path element at position {} is not an integer: \"{step}\"", level + 1),
                )
            })?;
            let mut parts: Vec<Cow<'_, str>> = items.iter().map(|item| item.text.into()).collect();
            match (position(index.into(), items.len()), usize::try_from(index)) {
                (Some(place), _) => parts[place] = at_level(&items[place], path, level + 1, value)?.into(),
                (None, Ok(place)) => {
                    let last = filled(place - items.len(), &chain(&path[level + 1..], value)?)?;
                    parts.push(last.into());
                }
                (None, Err(_)) => {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("path element at position {} is out of range: {index}", level + 1),
                    ));
                }
            }
            array(parts.iter().map(AsRef::as_ref))
        }
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "cannot replace existing key")
            .with_detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

/// A number of an element, as PostgreSQL reads one.
fn place_of(step: &str) -> Option<i32> {
    step.trim_start().parse().ok()
}

/// Objects and arrays, each inside of the one before it, around a value (push_path).
fn chain(path: &[&str], value: &str) -> Result<String> {
    let Some((step, rest)) = path.split_first() else { return Ok(value.to_owned()) };
    if path.len() > DEPTH_MAX as usize {
        return Err(stack::too_deep());
    }
    let inside = chain(rest, value)?;
    match place_of(step) {
        Some(place) => {
            let items = filled(usize::try_from(place).unwrap_or(0), &inside)?;
            array(std::iter::once(items.as_str()))
        }
        None => object(std::iter::once((*step, inside.as_str()))),
    }
}

/// So many elements fit into an array (JSONB_MAX_ELEMS).
const ELEMENTS_MAX: usize = 33_554_431;

/// Elements of an array: nulls, and a value after them.
fn filled(nulls: usize, value: &str) -> Result<String> {
    if nulls >= ELEMENTS_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})"),
        ));
    }
    const NULL: &str = "null, ";
    let length = nulls * NULL.len() + value.len();
    check_value(length)?;
    interrupt::steps(length)?;
    let mut out = String::with_capacity(length);
    out.extend(std::iter::repeat_n(NULL, nulls));
    out.push_str(value);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(json: &str, path: &[&str], value: &str) -> Result<String> {
        assigned(&Node::parse(json)?, path, value)
    }

    #[test]
    fn what_a_path_lacks_is_made() {
        assert_eq!(set("{}", &["a", "1", "b"], "5").unwrap(), r#"{"a": [null, {"b": 5}]}"#);
        assert_eq!(set("[1]", &["3"], "4").unwrap(), "[1, null, null, 4]");
        assert_eq!(set("[1, 2]", &["-1"], "9").unwrap(), "[1, 9]");
    }

    #[test]
    fn a_scalar_has_no_parts_and_an_array_nothing_before_its_first() {
        assert_eq!(set("1", &["a"], "2").unwrap_err().message(), "cannot replace existing key");
        assert_eq!(
            set("[1]", &["-2"], "2").unwrap_err().message(),
            "path element at position 1 is out of range: -2"
        );
        assert!(set("[1]", &["a"], "2").is_err());
        assert!(set("{}", &["a", "2147483647"], "2").is_err());
    }
}
