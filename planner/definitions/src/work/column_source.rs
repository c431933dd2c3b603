//! Where the columns of an altered table's stored rows come from. After the visible ones a row may
//! hold its hidden number, and what indexes on expressions are over.

use archipel_engine::txn::{ColumnSource, OwnedCell};
use archipel_sql::catalog::Table;

/// The visible columns as they were.
pub(crate) fn all_kept(before: &Table) -> Vec<ColumnSource> {
    (0..before.columns.len() as u16).map(ColumnSource::Kept).collect()
}

/// All columns of the rows, of which the visible ones are given. What is new is NULL: it is to be
/// computed.
pub(crate) fn sources(before: &Table, after: &Table, visible: Vec<ColumnSource>) -> Vec<ColumnSource> {
    let mut columns = visible;
    if after.has_hidden_id() {
        columns.push(if before.has_hidden_id() {
            ColumnSource::Kept(before.columns.len() as u16)
        } else {
            ColumnSource::HiddenRowId
        });
    }
    columns.extend(after.index_expressions().map(|(index, expression)| {
        match before.stored_place(index.oid, expression.place) {
            Some(place) => ColumnSource::Kept(place),
            None => ColumnSource::Constant(OwnedCell::Null),
        }
    }));
    columns
}
