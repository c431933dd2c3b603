//! JSON as text.

use std::fmt::Write;

use crate::error::{Result, SqlError, SqlState};
use crate::function::length::check_buffer;
use crate::interrupt;
use crate::memory::LARGE_BYTES;
use crate::numeric::Numeric;

use super::key_order::key_order;
use super::{Kind, Node, STEPS_PER_VALUE};

/// A string literal (escape_json).
pub fn string(value: &str, out: &mut String) {
    out.push('"');
    for character in value.chars() {
        match character {
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if u32::from(control) < 0x20 => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The same of a value that may be long: what escapes make of it may be six times as much.
pub fn quoted(value: &str, out: &mut String) -> Result<()> {
    interrupt::steps(value.len())?;
    if value.len() >= LARGE_BYTES {
        let length = value.bytes().fold(2_usize, |sum, byte| match byte {
            0..0x20 => sum + 6,
            b'"' | b'\\' => sum + 2,
            _ => sum + 1,
        });
        check_buffer(out.len(), length)?;
    }
    string(value, out);
    Ok(())
}

/// A number as jsonb keeps it: a numeric.
pub fn number(text: &str, out: &mut String) -> Result<()> {
    let plain = !text.starts_with('-') && text.len() < 18 && text.bytes().all(|b| b.is_ascii_digit());
    if plain {
        out.push_str(text);
        return Ok(());
    }
    let number: Numeric = text.parse()?;
    let _ = write!(out, "{number}");
    Ok(())
}

/// Keys of an object in jsonb's order, the last of equal ones.
fn sorted<'n, 't>(fields: &'n [(std::borrow::Cow<'t, str>, Node<'t>)]) -> Vec<(&'n str, &'n Node<'t>)> {
    let mut entries: Vec<(usize, &str, &Node<'t>)> =
        fields.iter().enumerate().map(|(place, (key, node))| (place, key.as_ref(), node)).collect();
    entries.sort_by(|a, b| key_order(a.1, b.1).then(b.0.cmp(&a.0)));
    entries.dedup_by(|later, kept| later.1 == kept.1);
    entries.into_iter().map(|(_, key, node)| (key, node)).collect()
}

/// 22P05 for a zero character, which text cannot hold.
pub fn without_zero(value: &str) -> Result<()> {
    if value.contains('\0') {
        return Err(SqlError::new(SqlState(*b"22P05"), "unsupported Unicode escape sequence")
            .with_detail("\\u0000 cannot be converted to text."));
    }
    Ok(())
}

/// The canonical text: sorted keys, one space after `:` and `,`.
pub fn canonical(node: &Node<'_>, out: &mut String) -> Result<()> {
    interrupt::steps(STEPS_PER_VALUE)?;
    match &node.kind {
        Kind::Null | Kind::Bool(_) => out.push_str(node.text),
        Kind::Number => number(node.text, out)?,
        Kind::String(value) => {
            without_zero(value)?;
            quoted(value, out)?;
        }
        Kind::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                canonical(item, out)?;
            }
            out.push(']');
        }
        Kind::Object(fields) => {
            out.push('{');
            for (place, (key, value)) in sorted(fields).into_iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                without_zero(key)?;
                quoted(key, out)?;
                out.push_str(": ");
                canonical(value, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// jsonb_pretty: four blanks a level.
pub fn pretty(node: &Node<'_>, level: usize, out: &mut String) -> Result<()> {
    interrupt::steps(STEPS_PER_VALUE + level)?;
    let line = |level: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"    ".repeat(level));
    };
    match &node.kind {
        Kind::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(level + 1, out);
                pretty(item, level + 1, out)?;
            }
            line(level, out);
            out.push(']');
        }
        Kind::Object(fields) => {
            out.push('{');
            for (place, (key, value)) in fields.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(level + 1, out);
                string(key, out);
                out.push_str(": ");
                pretty(value, level + 1, out)?;
            }
            line(level, out);
            out.push('}');
        }
        _ => out.push_str(node.text),
    }
    Ok(())
}
