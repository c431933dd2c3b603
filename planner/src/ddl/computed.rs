//! Columns of an altered table whose values are computed for each row when the plan runs.

use archipel_engine::table::SequenceDef;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{Catalog, Table};
use archipel_sql::error::SqlError;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use crate::bind::kept::definition_path;

/// One such column of the operation that follows.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its place in the new row.
    pub column: usize,
    pub ty: Type,
    /// The error of a NULL, if the column takes none.
    pub not_null: Option<SqlError>,
    pub value: ComputedValue,
}

#[derive(Clone, Debug)]
pub enum ComputedValue {
    /// A query over the old row's columns as `$1`, `$2`, …, which answers one row of one column.
    Query {
        text: String,
        types: Vec<Type>,
        /// Where its names are looked up, if not where the session looks.
        search_path: Option<[String; 2]>,
    },
    /// The values of a sequence made by the same plan, which goes on after them.
    Sequence(SequenceDef),
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
        let written = match catalog.user_type_of(ty.oid) {
            Some(user) => format!(
                "{}.{}{}",
                quote_identifier(&user.schema),
                quote_identifier(&user.name),
                if ty.oid == user.array_type() { "[]" } else { "" }
            ),
            None => match catalog.table_of_row_type(element_of(ty.oid).unwrap_or(ty.oid)) {
                Some(rows) => format!(
                    "{}.{}{}",
                    quote_identifier(&rows.schema),
                    quote_identifier(&rows.name),
                    if ty.oid == rows.row_array_type() { "[]" } else { "" }
                ),
                None => archipel_sql::type_table::format_type(Type::of(ty.oid)),
            },
        };
        let cast = if ty.oid == Oid::BPCHAR { "text".to_owned() } else { written };
        let text = format!("SELECT CAST(({expression}) AS {cast}){from}");
        let types = table.columns.iter().map(|column| column.ty).collect();
        ComputedValue::Query { text, types, search_path: None }
    }

    /// As [`ComputedValue::of_row`], for an expression that is part of the table's definition.
    pub fn of_definition(catalog: &Catalog, table: &Table, expression: &str, ty: Type) -> ComputedValue {
        let mut value = ComputedValue::of_row(catalog, table, expression, ty);
        if let ComputedValue::Query { search_path, .. } = &mut value {
            *search_path = Some(definition_path(&table.schema));
        }
        value
    }
}
