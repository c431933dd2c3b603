//! The rows and keys that errors of constraints show.

use archipel_sql::catalog::{Privileges, Required, Requirement, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::FunctionContext;
use archipel_sql::io;
use archipel_sql::types::Type;

/// A column's value as error details show it; long ones are cut as PostgreSQL cuts them.
pub(crate) fn shown(value: &Datum, ty: Type, functions: &FunctionContext<'_>) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    if value.is_null() {
        return "null".to_owned();
    }
    let mut text = io::to_text(value, ty, functions);
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Whether policies count for whoever runs the statement: then nothing is told of rows it may not see.
pub(crate) fn is_under_row_security(table: &Table, functions: &FunctionContext<'_>) -> bool {
    let active = || functions.session.call("row_security_active", &[Datum::Oid(table.oid)]);
    table.row_security.enabled && !matches!(active(), Ok(Datum::Bool(false)))
}

/// Whether whoever runs the statement may read these columns: errors tell nobody more than that.
pub(crate) fn may_read(
    table: &Table,
    columns: impl Iterator<Item = u16>,
    functions: &FunctionContext<'_>,
) -> bool {
    if is_under_row_security(table, functions) {
        return false;
    }
    let what = Required::Table {
        table: table.oid,
        privileges: Privileges::SELECT,
        selected: columns.map(|column| column + 1).collect(),
        inserted: Vec::new(),
        updated: Vec::new(),
    };
    functions.session.require(&[Requirement { acting: None, what }]).is_ok()
}

/// `Failing row contains (…).`, with the names of the columns where they are not all of them
/// (ExecBuildSlotValueDescription).
pub(crate) fn failing_row(
    table: &Table,
    row: &[Datum],
    given: &[u16],
    functions: &FunctionContext<'_>,
) -> Option<String> {
    if is_under_row_security(table, functions) {
        return None;
    }
    let whole = may_read(table, 0..table.columns.len() as u16, functions);
    let tells =
        |place: u16| whole || given.contains(&place) || may_read(table, std::iter::once(place), functions);
    let told = row.iter().zip(&table.columns).zip(0..).filter(|(_, place)| tells(*place));
    let (names, values): (Vec<&str>, Vec<String>) =
        told.map(|((value, column), _)| (column.name.as_str(), shown(value, column.ty, functions))).unzip();
    match whole {
        true => Some(format!("Failing row contains ({}).", values.join(", "))),
        false if names.is_empty() => None,
        false => Some(format!("Failing row contains ({}) = ({}).", names.join(", "), values.join(", "))),
    }
}

/// An error with a detail, if there is one to tell.
pub(crate) fn with_detail(error: SqlError, detail: Option<String>) -> SqlError {
    match detail {
        Some(detail) => error.with_detail(detail),
        None => error,
    }
}

/// `Key (a, b)=(1, 2)`.
pub(crate) fn key_text(
    table: &Table,
    columns: &[u16],
    values: &[Datum],
    functions: &FunctionContext<'_>,
) -> String {
    let names: Vec<&str> =
        columns.iter().filter_map(|c| Some(table.columns.get(usize::from(*c))?.name.as_str())).collect();
    let values: Vec<String> = columns
        .iter()
        .zip(values)
        .filter_map(|(c, value)| {
            let ty = table.columns.get(usize::from(*c))?.ty;
            Some(if value.is_null() { "null".to_owned() } else { io::to_text(value, ty, functions) })
        })
        .collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

pub(crate) fn of_table(mut error: SqlError, table: &Table, constraint: Option<&str>) -> SqlError {
    let fields = error.fields_mut();
    fields.schema = Some(table.schema.clone());
    fields.table = Some(table.name.clone());
    fields.constraint = constraint.map(str::to_owned);
    error
}
