//! pg_depend: what indexes, sequences and constraints depend on.

use super::SystemSource;
use super::relations::{IndexView, PG_CLASS, PG_CONSTRAINT, indexes, is_identity};
use super::shape::{Sheet, text};
use crate::catalog::{ForeignKey, Table};
use crate::datum::Datum;
use crate::types::Oid;

pub(super) fn dependencies(source: &dyn SystemSource, sheet: &mut Sheet) {
    for sequence in source.catalog().sequences() {
        let Some((table, column)) = sequence.owned_by else { continue };
        sheet.add(&[
            ("classid", Datum::Oid(PG_CLASS)),
            ("objid", Datum::Oid(sequence.oid)),
            ("refclassid", Datum::Oid(PG_CLASS)),
            ("refobjid", Datum::Oid(table)),
            ("refobjsubid", Datum::Int4(i32::from(column) + 1)),
            ("deptype", text(if is_identity(source, sequence) { "i" } else { "a" })),
        ]);
    }
    for table in source.catalog().tables() {
        for index in indexes(table) {
            let (class, object, kind) = match index.constraint {
                Some(constraint) => (PG_CONSTRAINT, constraint, "i"),
                None => (PG_CLASS, table.oid, "a"),
            };
            sheet.add(&[
                ("classid", Datum::Oid(PG_CLASS)),
                ("objid", Datum::Oid(index.oid)),
                ("refclassid", Datum::Oid(class)),
                ("refobjid", Datum::Oid(object)),
                ("deptype", text(kind)),
            ]);
        }
        constraint_dependencies(source, table, sheet);
    }
}

/// What the constraints of a table depend on: its columns, and those that foreign keys point at, with
/// the index that finds these.
fn constraint_dependencies(source: &dyn SystemSource, table: &Table, sheet: &mut Sheet) {
    let mut depends = |constraint: Oid, relation: Oid, column: Option<u16>, kind: &str| {
        sheet.add(&[
            ("classid", Datum::Oid(PG_CONSTRAINT)),
            ("objid", Datum::Oid(constraint)),
            ("refclassid", Datum::Oid(PG_CLASS)),
            ("refobjid", Datum::Oid(relation)),
            ("refobjsubid", Datum::Int4(column.map_or(0, |column| i32::from(column) + 1))),
            ("deptype", text(kind)),
        ]);
    };
    for index in indexes(table) {
        for (column, ..) in index.columns.iter().filter(|_| index.constraint.is_some()) {
            depends(index.constraint.unwrap_or(Oid(0)), table.oid, Some(*column), "a");
        }
    }
    for check in &table.checks {
        depends(check.oid, table.oid, None, "a");
    }
    for key in &table.foreign_keys {
        key.columns.iter().for_each(|column| depends(key.oid, table.oid, Some(*column), "a"));
        key.referenced_columns.iter().for_each(|column| depends(key.oid, key.references, Some(*column), "n"));
        if let Some(index) = referenced_index(source, key) {
            depends(key.oid, index, None, "n");
        }
    }
}

/// The index that finds the rows that a foreign key points at.
pub(super) fn referenced_index(source: &dyn SystemSource, key: &ForeignKey) -> Option<Oid> {
    let target = source.catalog().table_by_oid(key.references)?;
    let columns =
        |index: &IndexView<'_>| index.columns.iter().map(|(column, ..)| *column).collect::<Vec<_>>();
    let index = indexes(&target).find(|index| index.unique && columns(index) == key.referenced_columns)?;
    Some(index.oid)
}
