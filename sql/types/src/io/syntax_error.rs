//! 22P02: a text that is none of a type's.

use crate::error::{SqlError, SqlState};

/// The error every input function raises.
pub fn invalid_syntax(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}
