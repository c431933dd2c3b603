//! The error of a key that is there already.

use archipel_engine::id::TreeId;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{Index, IndexColumn, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::io;
use archipel_sql::types::{Oid, Type};

use super::detail::{may_read, of_table, with_detail};

/// The error of a duplicate key: `tree` is the index it was found in, `None` the primary key.
pub(crate) fn duplicate_key(
    table: &Table,
    tree: Option<TreeId>,
    row: &[Datum],
    functions: &FunctionContext<'_>,
) -> SqlError {
    let index = tree.and_then(|tree| table.indexes.iter().find(|index| index.tree == tree.0));
    let (name, places): (&str, Vec<usize>) = match (index, &table.primary_key) {
        (Some(index), _) => (&index.name, key_places(table, index)),
        (None, Some(primary)) => (&primary.name, primary.columns.iter().map(|at| usize::from(*at)).collect()),
        (None, None) => (&table.name, Vec::new()),
    };
    let parts: Vec<(String, String)> = places
        .iter()
        .map(|place| {
            let (name, ty) = key_part(table, *place, functions);
            let value = row.get(*place).unwrap_or(&Datum::Null);
            (name, if value.is_null() { "null".to_owned() } else { io::to_text(value, ty, functions) })
        })
        .collect();
    let (names, values): (Vec<String>, Vec<String>) = parts.into_iter().unzip();
    let message = format!("duplicate key value violates unique constraint \"{name}\"");
    // Of a key that is computed, only whoever may read all there is may know.
    let columns = table.columns.len();
    let told = match places.iter().all(|place| *place < columns) {
        true => may_read(table, places.iter().map(|place| *place as u16), functions),
        false => may_read(table, 0..columns as u16, functions),
    };
    let detail = told.then(|| format!("Key ({})=({}) already exists.", names.join(", "), values.join(", ")));
    of_table(with_detail(SqlError::new(SqlState::UNIQUE_VIOLATION, message), detail), table, Some(name))
}

/// Where the values of an index's key are in a row: its columns, then what it stores for indexes.
fn key_places(table: &Table, index: &Index) -> Vec<usize> {
    let expressions: Vec<(Oid, u16)> =
        table.index_expressions().map(|(of, part)| (of.oid, part.place)).collect();
    let place = |(place, column): (usize, &IndexColumn)| {
        let stored = expressions.iter().position(|known| *known == (index.oid, place as u16));
        stored.map_or(usize::from(column.column), |at| table.columns.len() + at)
    };
    index.columns.iter().enumerate().map(place).collect()
}

/// The name and type of a place in a row, as the index is defined over it.
fn key_part(table: &Table, place: usize, functions: &FunctionContext<'_>) -> (String, Type) {
    if let Some(column) = table.columns.get(place) {
        return (quote_identifier(&column.name), column.ty);
    }
    let Some((index, part)) = table.index_expressions().nth(place - table.columns.len()) else {
        return (String::new(), Type::TEXT);
    };
    let asked = [Datum::Oid(index.oid), Datum::Int4(i32::from(part.place) + 1), Datum::Bool(true)];
    let name = match functions.session.call("pg_get_indexdef_ext", &asked) {
        Ok(Datum::Text(shown)) => shown.to_string(),
        _ => part.text.clone(),
    };
    (name, part.ty)
}
