//! Texts letter by letter: their case, under the C locale that knows ASCII letters only, and their order.

use crate::error::Result;
use crate::{interrupt, memory};

/// A text in another case, in pieces between which the statement can be ended.
pub(super) fn in_case(text: &str, change: fn(&str) -> String) -> Result<String> {
    if text.len() <= interrupt::PIECE {
        interrupt::steps(text.len())?;
        return Ok(change(text));
    }
    memory::check(text.len())?;
    let mut out = String::with_capacity(text.len());
    interrupt::in_text_pieces(text, |piece| out.push_str(&change(piece)))?;
    Ok(out)
}

/// Each word with a capital first.
pub(super) fn initcap(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        interrupt::step()?;
        out.push(if inside { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() });
        inside = c.is_ascii_alphanumeric();
    }
    Ok(out)
}

/// From the last character to the first.
pub(in crate::function) fn reverse(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().rev() {
        interrupt::step()?;
        out.push(c);
    }
    Ok(out)
}
