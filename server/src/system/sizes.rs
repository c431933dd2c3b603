//! How large tables were found to be when they were vacuumed or analyzed last: `reltuples` and
//! `relpages` of `pg_class`. Kept while the server runs; before that they are unknown, as
//! PostgreSQL's are of a table that was never vacuumed. And how many bytes a database has:
//! `pg_database_size`.

use archipel_engine::Engine;
use archipel_engine::id::{GroupId, TreeId};
use archipel_sql::catalog::role::READ_ALL_STATS;
use archipel_sql::catalog::{Catalog, ObjectClass, Privileges, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::session::host::Host;

/// The bytes of a page of PostgreSQL's, for tools that know no other measure.
const PAGE_BYTES: i64 = 8_192;
/// What a row takes there besides its values: a header and a line pointer.
const ROW_OVERHEAD_BYTES: i64 = 28;
/// The width PostgreSQL assumes of values of any length.
const VARIABLE_BYTES: i64 = 32;

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
        let width = |ty: archipel_sql::types::Type| match archipel_sql::type_table::type_info(ty.oid) {
            Some(info) if info.length > 0 => i64::from(info.length),
            _ => VARIABLE_BYTES,
        };
        let row = ROW_OVERHEAD_BYTES + table.columns.iter().map(|column| width(column.ty)).sum::<i64>();
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

/// `pg_database_size`, of a database by number or by name.
pub fn database_size(host: &Host, args: &[Datum]) -> Result<Datum> {
    let databases = &host.server.databases;
    let database = match args {
        [Datum::Oid(oid)] => match databases.numbered(*oid) {
            Some(database) => database,
            None => return Ok(Datum::Null),
        },
        [Datum::Text(name)] => databases.named(name.as_str()).ok_or_else(|| {
            let message = format!("database \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_CATALOG_NAME, message)
        })?,
        _ => return Ok(Datum::Null),
    };
    let rights = host.rights();
    let held = rights.privileges(database.oid, ObjectClass::Database);
    if !held.contains(Privileges::CONNECT) && !rights.acts_as(READ_ALL_STATS) {
        let message = format!("permission denied for database {}", database.name());
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    let state =
        if database.oid == host.database.oid { host.catalog.clone() } else { database.catalog.current() };
    Ok(Datum::Int8(bytes_of(&state.catalog, &host.server.engine)))
}

/// Bytes of the groups that the tables of a catalog and their indexes are in: an upper bound where they
/// share one with others', as reference tables do, since only partitions are counted.
fn bytes_of(catalog: &Catalog, engine: &Engine) -> i64 {
    let stored = catalog.tables().filter(|table| table.is_stored());
    let known = stored.filter_map(|table| engine.table(TreeId(table.tree)));
    let groups: FxHashSet<GroupId> = known
        .flat_map(|meta| {
            let indexes: Vec<GroupId> = meta.indexes.iter().map(|index| index.group()).collect();
            indexes.into_iter().chain([meta.group()])
        })
        .collect();
    let partitions = engine.partitions().into_iter();
    let bytes =
        partitions.filter(|partition| groups.contains(&partition.group)).map(|partition| partition.bytes);
    i64::try_from(bytes.sum::<u64>()).unwrap_or(i64::MAX)
}
