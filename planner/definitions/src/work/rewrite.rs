//! Columns of an altered table whose values are computed for each row when the plan runs.

use std::sync::Arc;

use archipel_engine::table::SequenceDef;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{Catalog, Table};
use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::SqlError;
use archipel_sql::types::{Oid, Type};

use crate::bind::stored_expression::DEFINITION_PATH;

/// One such column of the operation that follows.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its place in the new row.
    pub column: usize,
    pub ty: Type,
    /// The error of a NULL, if the column takes none.
    pub not_null: Option<SqlError>,
    /// Whether one value is for all rows, and is computed even if there are none.
    pub once: bool,
    pub value: ComputedValue,
}

#[derive(Clone, Debug)]
pub enum ComputedValue {
    /// A query over a row's columns as `$1`, `$2`, …, which answers one row of one column.
    Query {
        text: String,
        types: Vec<Type>,
        /// Whether they are those of the row as it was before the plan, and not as the operations so far
        /// leave it.
        of_original: bool,
        /// Where its names are looked up, if not where the session looks.
        search_path: Option<&'static [String]>,
    },
    /// The old value of a column, with a field of rows in it left out.
    WithoutField { types: Vec<Type>, column: usize, way: FieldWay },
    /// The old value of a column with other numbers for the labels of an enum.
    Relabelled { column: usize, ty: Type, labels: Arc<[(Oid, Oid)]> },
    /// The values of a sequence made by the same plan, which goes on after them.
    Sequence(SequenceDef),
}

/// A value with these labels of enums in it, in whatever depth, in the place of those.
pub fn relabelled(value: &Datum, labels: &[(Oid, Oid)]) -> Datum {
    let within = |values: &[Datum]| values.iter().map(|value| relabelled(value, labels)).collect::<Vec<_>>();
    match value {
        Datum::Oid(oid) if oid.is_enum_label() => {
            let found = labels.iter().find(|(before, _)| before == oid);
            Datum::Oid(found.map_or(*oid, |(_, now)| *now))
        }
        Datum::Array(array) => {
            let (element, dimensions) = (array.element, array.dimensions.clone());
            Datum::Array(Arc::new(Array { element, dimensions, values: within(&array.values) }))
        }
        Datum::Record(fields) => Datum::Record(within(fields).into()),
        other => other.clone(),
    }
}

/// The way to a field that the rows in a value lose.
#[derive(Clone, Debug)]
pub enum FieldWay {
    /// The value is such a row, and this the field's place.
    Here(usize),
    Elements(Box<FieldWay>),
    /// Such rows are in these fields.
    Fields(Vec<(usize, FieldWay)>),
}

impl FieldWay {
    /// A value without the field.
    pub fn without(&self, value: &Datum) -> Datum {
        match (self, value) {
            (FieldWay::Elements(way), Datum::Array(array)) => {
                let values = array.values.iter().map(|value| way.without(value)).collect();
                let (element, dimensions) = (array.element, array.dimensions.clone());
                Datum::Array(Arc::new(Array { element, dimensions, values }))
            }
            (FieldWay::Here(place), Datum::Record(fields)) => {
                let fields = fields.iter().enumerate().filter(|(at, _)| at != place);
                Datum::Record(fields.map(|(_, field)| field.clone()).collect())
            }
            (FieldWay::Fields(ways), Datum::Record(fields)) => {
                let mut fields = fields.to_vec();
                for (place, way) in ways {
                    if let Some(field) = fields.get_mut(*place) {
                        *field = way.without(field);
                    }
                }
                Datum::Record(fields.into())
            }
            (_, other) => other.clone(),
        }
    }
}

impl ComputedValue {
    /// An expression over a table's row, as a value of a type. The type's modifier is left to
    /// whoever assigns it.
    pub fn of_row(catalog: &Catalog, table: &Table, expression: &str, ty: Type) -> ComputedValue {
        let columns: Vec<String> = table
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| format!("${} AS {}", place + 1, quote_identifier(&column.name)))
            .collect();
        let from = if columns.is_empty() {
            String::new()
        } else {
            format!(" FROM (SELECT {}) AS {}", columns.join(", "), quote_identifier(&table.name))
        };
        let written = archipel_sql::system::type_as_written(catalog, Type::of(ty.oid));
        let text = format!("SELECT CAST(({expression}) AS {written}){from}");
        let types = table.columns.iter().map(|column| column.ty).collect();
        ComputedValue::Query { text, types, of_original: false, search_path: None }
    }

    /// As [`ComputedValue::of_row`], for an expression that is part of the table's definition.
    pub fn of_definition(catalog: &Catalog, table: &Table, expression: &str, ty: Type) -> ComputedValue {
        let mut value = ComputedValue::of_row(catalog, table, expression, ty);
        if let ComputedValue::Query { search_path, .. } = &mut value {
            *search_path = Some(DEFINITION_PATH);
        }
        value
    }
}
