//! How many bytes a database has, and all of them: `pg_database_size`, `pg_tablespace_size`.

use archipel_engine::Engine;
use archipel_engine::id::{GroupId, TreeId};
use archipel_sql::catalog::role::READ_ALL_STATS;
use archipel_sql::catalog::{Catalog, ObjectClass, Privileges};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use crate::session::host::Host;

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

/// `pg_tablespace_size`, of a tablespace by number or by name: all databases are in `pg_default`.
pub fn tablespace_size(host: &Host, args: &[Datum]) -> Result<Datum> {
    let tablespace = match args {
        [Datum::Oid(oid)] => TABLESPACES.iter().find(|(known, _)| known == oid),
        [Datum::Text(name)] => {
            let known = TABLESPACES.iter().find(|(_, known)| *known == name.as_str());
            Some(known.ok_or_else(|| {
                let message = format!("tablespace \"{name}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            })?)
        }
        _ => None,
    };
    let Some((oid, _)) = tablespace else { return Ok(Datum::Null) };
    if *oid != DEFAULT_TABLESPACE {
        return Ok(Datum::Int8(0));
    }
    let databases = host.server.databases.all();
    let sizes =
        databases.iter().map(|database| bytes_of(&database.catalog.current().catalog, &host.server.engine));
    Ok(Datum::Int8(sizes.fold(0, i64::saturating_add)))
}

const DEFAULT_TABLESPACE: Oid = Oid(1663);
/// pg_tablespace.
const TABLESPACES: [(Oid, &str); 2] = [(DEFAULT_TABLESPACE, "pg_default"), (Oid(1664), "pg_global")];

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
