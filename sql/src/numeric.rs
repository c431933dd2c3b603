//! Exact decimal numbers to PostgreSQL's limits.
/// placeholder
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric(i64);
