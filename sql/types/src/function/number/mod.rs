//! Functions of numbers.
//!
//! - `integer`, `float`, `decimal`  arithmetic and mathematics; `degrees` sind, cosd …
//! - `number_format`  to_char and to_number; `series` generate_series
//! - `transition`     transition functions of aggregates over floating-point numbers

pub(super) mod decimal;
mod degrees;
pub(super) mod float;
pub(super) mod integer;
pub(super) mod number_format;
pub(super) mod series;
pub(super) mod transition;
