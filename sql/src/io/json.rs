//! JSON as text: validity for `json`, and `jsonb`'s canonical form (keys sorted by length and
//! bytes, the last duplicate wins, `", "` and `": "` between).

use std::fmt::Write;

use crate::error::{Result, SqlError, SqlState};

fn invalid(error: &serde_json::Error) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
        .with_detail(error.to_string())
}

/// Refuses what is not JSON.
pub fn validate_json(text: &str) -> Result<()> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map(|_| ()).map_err(|error| invalid(&error))
}

/// Rewrites JSON as jsonb shows it.
pub fn jsonb_text(text: &str) -> Result<String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| invalid(&error))?;
    let mut out = String::with_capacity(text.len() + 8);
    write_jsonb(&value, &mut out);
    Ok(out)
}

fn write_jsonb(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_jsonb(item, out);
            }
            out.push(']');
        }
        serde_json::Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.len().cmp(&b.0.len()).then_with(|| a.0.cmp(b.0)));
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                let _ = write!(out, "{}: ", serde_json::Value::String(key.clone()));
                write_jsonb(item, out);
            }
            out.push('}');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}
