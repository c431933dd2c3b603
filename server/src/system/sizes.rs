//! How large tables were found to be when they were vacuumed or analyzed last: `reltuples` and
//! `relpages` of `pg_class`. Kept while the server runs; before that they are unknown, as
//! PostgreSQL's are of a table that was never vacuumed.

use archipel_sql::catalog::{Catalog, Table};
use archipel_sql::type_table::type_info;
use archipel_sql::types::{Oid, Type};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The bytes of a page of PostgreSQL's, for tools that know no other measure.
const PAGE_BYTES: i64 = 8_192;
/// What a row takes there besides its values: a header and a line pointer.
const ROW_OVERHEAD_BYTES: i64 = 28;
/// The width PostgreSQL assumes of values of any length.
const VARIABLE_BYTES: i64 = 32;

/// What a value of a type takes, as far as the type tells.
pub(super) fn type_bytes(ty: Type) -> i64 {
    match type_info(ty.oid) {
        Some(info) if info.length > 0 => i64::from(info.length),
        _ => VARIABLE_BYTES,
    }
}

/// What a row takes, as far as types tell.
pub(super) fn row_bytes(table: &Table) -> i64 {
    ROW_OVERHEAD_BYTES + table.columns.iter().map(|column| type_bytes(column.ty)).sum::<i64>()
}

/// A table as it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub rows: f32,
    /// What PostgreSQL would need, as far as types tell.
    pub pages: i32,
}

/// See the module's head.
#[derive(Default)]
pub struct Sizes(Mutex<FxHashMap<u32, Size>>);

impl Sizes {
    /// Notes how many rows a table has. Those of tables that are not in `catalog` any more are
    /// forgotten as often as there is no room left.
    pub fn note(&self, catalog: &Catalog, table: &Table, rows: i64) {
        let row = row_bytes(table);
        let pages = rows.saturating_mul(row).saturating_add(PAGE_BYTES - 1) / PAGE_BYTES;
        let size = Size { rows: rows as f32, pages: i32::try_from(pages).unwrap_or(i32::MAX) };
        let mut sizes = self.0.lock();
        if sizes.len() == sizes.capacity() {
            sizes.retain(|oid, _| catalog.table_by_oid(Oid(*oid)).is_some());
        }
        sizes.insert(table.oid.0, size);
    }

    /// What was noted last.
    pub fn of(&self, table: &Table) -> Option<Size> {
        self.0.lock().get(&table.oid.0).copied()
    }
}
