//! Whether a condition holds; variables that refuse NULL.

use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};

pub(crate) fn is_true(value: &Datum) -> bool {
    matches!(value, Datum::Bool(true))
}

pub(crate) fn null_refused(name: &str) -> SqlError {
    SqlError::new(
        SqlState::NULL_VALUE_NOT_ALLOWED,
        format!("null value cannot be assigned to variable \"{name}\" declared NOT NULL"),
    )
}
