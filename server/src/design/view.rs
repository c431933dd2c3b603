//! `archipel.design_advice`: what deployed routines show of where tables belong, what follows
//! from it, and whether it was done; and which indexes should be elsewhere, by what they were used for.

use archipel_procedures::advice::{Advice, Kind};
use archipel_procedures::evidence::Evidence;
use archipel_sql::catalog::{Catalog, Distribution};
use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::types::{Oid, Type};

use super::index_placement::{PlacementAdvice, placement_advice, recent_uses};
use super::relocation::is_on;
use super::{Counted, design_of};
use crate::session::host::Host;
use crate::system::cells::text_array;
use crate::system::visibility::Sight;

/// Its columns.
pub const COLUMNS: &[(&str, Type)] = &[
    ("kind", Type::TEXT),
    ("schema", Type::TEXT),
    ("routine", Type::TEXT),
    ("argument", Type::TEXT),
    ("tables", Type::TEXT_ARRAY),
    ("groups", Type::of(Oid::INT4_ARRAY)),
    ("calls", Type::INT8),
    ("applied", Type::BOOL),
    ("reason", Type::TEXT),
    ("statements", Type::TEXT),
    ("claims_saved_per_hour", Type::INT8),
];

/// A row for what one routine shows of some tables, and one for each index that should be elsewhere.
pub fn rows(host: &Host) -> Vec<Vec<Datum>> {
    let environment = host.environment();
    let (evidence, design) = design_of(&host.server, &host.database, &environment);
    let sight = Sight::of(host);
    let is_seen = |advice: &&Advice| {
        sight.routine(evidence[advice.evidence].routine)
            && advice.tables.iter().all(|(table, _)| sight.table(*table))
    };
    let seen = design.advice.iter().filter(is_seen);
    let of_routines = seen.map(|advice| row(host, &evidence[advice.evidence], advice));
    let recent = recent_uses(&host.server, &host.database);
    let sizes = Counted::of(&host.server, &host.database);
    let placement = placement_advice(&host.catalog.catalog, &evidence, &recent, &sizes);
    let of_indexes = placement.iter().filter(|advice| sight.table(advice.table));
    of_routines.chain(of_indexes.map(|advice| index_row(host, advice))).collect()
}

fn index_row(host: &Host, advice: &PlacementAdvice) -> Vec<Datum> {
    let catalog = &host.catalog.catalog;
    let rows_of = [(advice.table, Some(advice.column))];
    vec![
        Datum::text("placement"),
        Datum::text(&advice.schema),
        Datum::Null,
        Datum::Null,
        text_array(&[&table_text(catalog, advice.table, Some(advice.column))]),
        groups(catalog, &rows_of),
        Datum::Null,
        Datum::Bool(false),
        Datum::text(&advice.reason),
        Datum::text(&advice.statement),
        Datum::Int8(i64::try_from(advice.saved_per_hour).unwrap_or(i64::MAX)),
    ]
}

fn row(host: &Host, evidence: &Evidence, advice: &Advice) -> Vec<Datum> {
    let catalog = &host.catalog.catalog;
    let calls = host.database.calls.sum(evidence.routine).calls;
    let tables: Vec<String> =
        advice.tables.iter().map(|(oid, column)| table_text(catalog, *oid, *column)).collect();
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let argument = (!advice.argument.is_empty()).then_some(advice.argument.as_str());
    vec![
        Datum::text(advice.kind.name()),
        Datum::text(&evidence.schema),
        Datum::text(&evidence.signature),
        argument.map_or(Datum::Null, Datum::text),
        text_array(&tables),
        groups(catalog, &advice.tables),
        Datum::Int8(calls as i64),
        Datum::Bool(advice.applied),
        Datum::text(&reason(host, advice)),
        if advice.statements.is_empty() { Datum::Null } else { Datum::text(&advice.statements.join("\n")) },
        Datum::Null,
    ]
}

fn table_text(catalog: &Catalog, oid: Oid, column: Option<u16>) -> String {
    let Some(table) = catalog.table_by_oid(oid) else { return oid.to_string() };
    let name = if table.schema == "public" {
        table.name.clone()
    } else {
        format!("{}.{}", table.schema, table.name)
    };
    match column.and_then(|column| table.columns.get(usize::from(column))) {
        Some(column) => format!("{name}({})", column.name),
        None => name,
    }
}

/// The groups of the tables, beside them; 0 is that of reference tables.
fn groups(catalog: &Catalog, tables: &[(Oid, Option<u16>)]) -> Datum {
    let group = |oid: &Oid| match catalog.table_by_oid(*oid).map(|table| table.distribution) {
        Some(Distribution::Column { group, .. } | Distribution::HiddenId { group }) => {
            Datum::Int4(group as i32)
        }
        Some(Distribution::Reference) => Datum::Int4(0),
        Some(Distribution::None) | None => Datum::Null,
    };
    let values: Vec<Datum> = tables.iter().map(|(oid, _)| group(oid)).collect();
    let dimensions = vec![Dimension { length: values.len(), lower_bound: 1 }];
    Datum::Array(std::sync::Arc::new(Array { element: Oid::INT4, dimensions, values }))
}

fn reason(host: &Host, advice: &Advice) -> String {
    let why = match advice.kind {
        Kind::Colocate => "reached through the same argument",
        Kind::Reference => "read by a value of its own, and written by no routine",
        Kind::Distribute => "written by a routine",
        Kind::Route => "reached by one argument on this column, and by none or several on the present one",
        Kind::Join => "joined by another column than the one that distributes it, all partitions being read",
    };
    match &advice.refused {
        Some(refused) => format!("{why}; not done: {refused}"),
        None if advice.applied => why.to_owned(),
        None if advice.tables.iter().any(|(table, _)| host.database.designer.gave_up(*table)) => {
            format!("{why}; not done: rows are deleted, or always being read, while they are copied")
        }
        None if !is_on(&host.server) => format!("{why}; not done: archipel.colocate is off"),
        None => format!("{why}; to be done when nobody uses the tables in an open transaction"),
    }
}
