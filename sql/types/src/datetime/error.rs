//! What goes wrong with the text of a date or time.

use crate::error::{SqlError, SqlState};

/// What went wrong, before the type's name is known.
pub(super) enum Trouble {
    Syntax,
    Range,
    /// A month or a day that another order of the fields would make good.
    MonthOrDay,
    Zone(String),
    Displacement,
}

impl Trouble {
    pub(super) fn error(self, text: &str, type_name: &str) -> SqlError {
        let out_of_range = || {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            )
        };
        match self {
            Trouble::Syntax => SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            Trouble::Range => out_of_range(),
            Trouble::MonthOrDay => {
                out_of_range().with_hint("Perhaps you need a different \"datestyle\" setting.")
            }
            Trouble::Zone(name) => SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("time zone \"{name}\" not recognized"),
            ),
            Trouble::Displacement => SqlError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                format!("time zone displacement out of range: \"{text}\""),
            ),
        }
    }
}
