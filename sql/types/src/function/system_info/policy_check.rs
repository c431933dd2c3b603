//! What statements call for rows that policies must allow and do not, and for parameters with which they do not mean
//! what they were bound to: no condition alone can fail.

use crate::datum::Datum;
use crate::error::{SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::text;

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    // 42501 with the message, unless the condition holds.
    ("archipel_policy_check", |_, v| match v.first() {
        Some(Datum::Bool(true)) => Ok(Datum::Bool(true)),
        _ => Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, text(v, 1)?.to_string())),
    }),
    // 42P10 with the message, unless the condition holds.
    ("archipel_inference_check", |_, v| match v.first() {
        Some(Datum::Bool(true)) => Ok(Datum::Bool(true)),
        _ => Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, text(v, 1)?.to_string())),
    }),
];
