//! How many bytes relations have: `pg_relation_size` and its kin.
//!
//! Partitions are counted, with all that lies in them: a table and the indexes beside its rows have shares of
//! these bytes, by what types tell of the width of rows and entries. An index in partitions of its own has
//! those. A primary key is the order of its table's rows and takes nothing besides. Tables that lie together
//! have each other's bytes, an upper bound. Reference tables lie in no partition.

use archipel_engine::id::TreeId;
use archipel_sql::catalog::{EntryPlacement, Index, Relation, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};

use super::sizes::{row_bytes, type_bytes};
use crate::session::host::Host;

/// What an entry of an index takes besides its key.
const ENTRY_OVERHEAD_BYTES: i64 = 16;
/// What a part of a key takes that is no column, and the key of rows that have none.
const OTHER_KEY_BYTES: i64 = 8;

/// The forks of PostgreSQL's relations: here the first one has all.
const FORKS: [&str; 4] = ["main", "fsm", "vm", "init"];

/// What a table takes, and what each of its indexes does, in their order.
struct Shares {
    table: i64,
    indexes: Vec<i64>,
}

/// What an entry of an index takes, about: its key, and that of the row.
fn entry_bytes(table: &Table, index: &Index) -> i64 {
    let width = |column: &u16| {
        table.columns.get(usize::from(*column)).map_or(OTHER_KEY_BYTES, |column| type_bytes(column.ty))
    };
    let led_by = match table.entry_placement(index) {
        EntryPlacement::LedBy(column) if !index.has_column(column) => width(&column),
        _ => 0,
    };
    let own = index.columns.iter().map(|part| &part.column).chain(&index.include).map(width);
    let key = match &table.primary_key {
        Some(key) => key.columns.iter().map(width).sum(),
        None => OTHER_KEY_BYTES,
    };
    ENTRY_OVERHEAD_BYTES + led_by + own.sum::<i64>() + key
}

fn shares(host: &Host, table: &Table) -> Shares {
    let engine = &host.server.engine;
    let mut shares = Shares { table: 0, indexes: vec![0; table.indexes.len()] };
    let Some(meta) = engine.table(TreeId(table.tree)) else { return shares };
    let of_group = |group| i64::try_from(engine.group_bytes(group)).unwrap_or(i64::MAX);
    let (whole, of_row) = (of_group(meta.group()), row_bytes(table));
    let mut beside: Vec<(usize, i64)> = Vec::new();
    for (place, index) in table.indexes.iter().enumerate() {
        match meta.index(TreeId(index.tree)).map(|known| known.group()) {
            Some(group) if group == meta.group() => beside.push((place, entry_bytes(table, index))),
            Some(group) => shares.indexes[place] = of_group(group),
            None => {}
        }
    }
    let all = beside.iter().map(|(_, bytes)| bytes).fold(of_row, |sum, bytes| sum.saturating_add(*bytes));
    shares.table = whole;
    for (place, bytes) in beside {
        let share = i128::from(whole) * i128::from(bytes) / i128::from(all.max(1));
        shares.indexes[place] = i64::try_from(share).unwrap_or(0);
        shares.table -= shares.indexes[place];
    }
    shares
}

/// `pg_relation_size`, `pg_table_size`, `pg_indexes_size` and `pg_total_relation_size`: NULL for what is no
/// relation.
///
/// Errors: 22023 for a fork that there is not.
pub fn relation_size(host: &Host, function: &str, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Oid(oid)) = args.first() else { return Ok(Datum::Null) };
    if let Some(Datum::Text(fork)) = args.get(1)
        && fork.as_str() != FORKS[0]
    {
        if FORKS.contains(&fork.as_str()) {
            return Ok(Datum::Int8(0));
        }
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name")
            .with_hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."));
    }
    let Some(relation) = host.catalog.catalog.relation_by_oid(*oid) else { return Ok(Datum::Null) };
    let (own, of_indexes) = match &relation {
        Relation::Table(table) => {
            let shares = shares(host, table);
            (shares.table, shares.indexes.iter().fold(0, |sum: i64, bytes| sum.saturating_add(*bytes)))
        }
        Relation::Index(table, place) => (shares(host, table).indexes.get(*place).copied().unwrap_or(0), 0),
        Relation::PrimaryKey(_) | Relation::Nominal(..) | Relation::Sequence(_) => (0, 0),
    };
    Ok(Datum::Int8(match function {
        "pg_indexes_size" => of_indexes,
        "pg_total_relation_size" => own.saturating_add(of_indexes),
        _ => own,
    }))
}
