//! The columns whose values a definition computes ([`super::row_values`]), and from what.

use std::sync::Arc;

use archipel_engine::table::SequenceDef;
use archipel_planner::ddl::FieldWay;
use archipel_planner::native::CompiledStatement;
use archipel_sql::error::SqlError;
use archipel_sql::types::{Oid, Type};

/// One column of the operation beside it.
pub struct ComputedRun {
    pub column: usize,
    pub ty: Type,
    pub not_null: Option<SqlError>,
    /// Whether one value is for all rows, and is computed even if there are none.
    pub once: bool,
    pub value: ValueRun,
}

pub enum ValueRun {
    /// Over a row's columns, which are of these types, as parameters.
    Query {
        query: Box<CompiledStatement>,
        types: Vec<Type>,
        /// Whether that is the row as it was before all operations.
        of_original: bool,
    },
    /// The old value of a column without a field of the rows in it.
    WithoutField {
        types: Vec<Type>,
        column: usize,
        way: FieldWay,
    },
    /// The old value of a column with other numbers for the labels of an enum.
    Relabelled {
        column: usize,
        ty: Type,
        labels: Arc<[(Oid, Oid)]>,
    },
    Sequence(SequenceDef),
}
