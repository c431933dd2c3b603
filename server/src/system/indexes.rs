//! `archipel.indexes`: where the entries of indexes were asked to be (`placement`), where they are, and what they
//! were used for of late, in counts that halve each hour ([`crate::design::recent_uses`]).

use archipel_engine::id::TreeId;
use archipel_engine::index_uses::UseCounts;
use archipel_sql::catalog::{Distribution, Index, Table, TableKind};
use archipel_sql::datum::Datum;
use archipel_sql::types::Type;

use super::cells::{big, optional, text};
use crate::design::index_placement::recent_uses;
use crate::design::recent_uses::Recent;
use crate::session::host::Host;

/// `said` is NULL where nobody has said anything, and `placement` where there are no entries: of a
/// partitioned table those of its partitions have them. `distribution_column` leads the entries of what is
/// prefixed, `group_id` is the group whose partitions hold them; 0 is that of reference tables.
/// Uses are bound if conditions give the distribution column. Those unbound ones are narrow that found fewer rows
/// than there are partitions; uses of both kinds are missed if only another placement would have served them.
pub(super) const COLUMNS: &[(&str, Type)] = &[
    ("schemaname", Type::NAME),
    ("tablename", Type::NAME),
    ("indexname", Type::NAME),
    ("said", Type::TEXT),
    ("placement", Type::TEXT),
    ("distribution_column", Type::NAME),
    ("group_id", Type::INT4),
    ("writes", Type::INT8),
    ("bound_uses", Type::INT8),
    ("unbound_uses", Type::INT8),
    ("narrow_uses", Type::INT8),
    ("missed_uses", Type::INT8),
];

/// All indexes of users' tables but those of primary keys, whose entries are the rows.
pub(super) fn rows(host: &Host) -> Vec<Vec<Datum>> {
    let tables = host.catalog.catalog.tables();
    let of_users = tables.filter(|table| table.kind == TableKind::Table && table.schema != "pg_catalog");
    let uses = recent_uses(&host.server, &host.database);
    let rows_of = |table: &Table| -> Vec<Vec<Datum>> {
        table.indexes.iter().map(|index| row(table, index, uses.get(&TreeId(index.tree)))).collect()
    };
    of_users.flat_map(|table| rows_of(table)).collect()
}

fn row(table: &Table, index: &Index, uses: Option<&Recent>) -> Vec<Datum> {
    let column = match table.distribution {
        Distribution::Column { column, .. } => table.columns.get(usize::from(column)),
        _ => None,
    };
    // As the engine has it: a definition of before may have left an index where it was.
    let beside = index.global_group.is_none();
    let (placement, column, group) = match (&table.distribution, beside) {
        (Distribution::None, _) => (None, None, None),
        (Distribution::Reference, _) => (Some("reference"), None, Some(0)),
        (_, true) => (Some("prefixed"), column, table.group()),
        (_, false) => (Some("global"), None, index.global_group),
    };
    let count = |of: fn(&UseCounts) -> u64| uses.map_or(Datum::Null, |uses| big(of(&uses.counts)));
    vec![
        text(&table.schema),
        text(&table.name),
        text(&index.name),
        optional(index.placement().map(|said| said.word())),
        optional(placement),
        optional(column.map(|column| &column.name)),
        group.map_or(Datum::Null, |group| Datum::Int4(i32::try_from(group).unwrap_or(i32::MAX))),
        count(|counts| counts.writes),
        count(|counts| counts.bound),
        count(|counts| counts.unbound),
        count(|counts| counts.narrow),
        count(|counts| counts.missed),
    ]
}
