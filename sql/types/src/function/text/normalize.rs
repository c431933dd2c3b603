//! The normal forms of Unicode: `normalize`, `IS NORMALIZED`.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::text;

/// A text in one of the forms.
fn normalized<'t>(text: &'t str, form: &str) -> Result<Cow<'t, str>> {
    // Without other characters it is in all of them.
    let is_plain = text.is_ascii();
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" | "NFD" | "NFKC" | "NFKD" if is_plain => text.into(),
        "NFC" => text.nfc().collect::<String>().into(),
        "NFD" => text.nfd().collect::<String>().into(),
        "NFKC" => text.nfkc().collect::<String>().into(),
        "NFKD" => text.nfkd().collect::<String>().into(),
        _ => {
            let message = format!("invalid normalization form: {form}");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    })
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("unicode_normalize_func", |_, v| Ok(Datum::text(&normalized(text(v, 0)?, text(v, 1)?)?))),
    ("unicode_is_normalized", |_, v| {
        let own = text(v, 0)?;
        Ok(Datum::Bool(normalized(own, text(v, 1)?)? == own))
    }),
];
