//! pg_inherits, pg_partitioned_table, and the functions about partitions.

use super::index_view::{indexes, operator_class};
use crate::catalog::partition::partition_condition::{bound_text, partition_key_text};
use crate::catalog::stored_name::with_names;
use crate::catalog::{Catalog, PartitionKeyPart, Relation, Table};
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::definition::expressions::expression_text;
use crate::system::shape::{Sheet, array, text, vector};
use crate::type_table::type_info;
use crate::types::Oid;

/// Fills the relation if it is one of this file's.
pub(in crate::system) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    match name {
        "pg_inherits" => inherits(source, sheet),
        "pg_partitioned_table" => partitioned(source, sheet),
        _ => return false,
    }
    true
}

fn inherits(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let tables = sheet.tables(source);
    let mut add = |relation: Oid, parent: Oid, place: usize| {
        sheet.add(&[
            ("inhrelid", Datum::Oid(relation)),
            ("inhparent", Datum::Oid(parent)),
            ("inhseqno", Datum::Int4(place as i32 + 1)),
            ("inhdetachpending", Datum::Bool(false)),
        ]);
    };
    for table in tables {
        for (place, parent) in table.inherits.iter().enumerate() {
            add(table.oid, *parent, place);
        }
        for index in indexes(table) {
            if let Some(parent) = index.parent {
                add(index.oid, parent, 0);
            }
        }
    }
}

fn partitioned(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source) {
        let Some(key) = &table.partitioned_by else { continue };
        let numbers = key.parts.iter().map(|part| match part {
            PartitionKeyPart::Column(column) => Datum::Int2(*column as i16 + 1),
            PartitionKeyPart::Expression { .. } => Datum::Int2(0),
        });
        let types = key.types(table);
        let classes = types
            .iter()
            .enumerate()
            .map(|(place, ty)| Datum::Oid(key.class(place).unwrap_or_else(|| operator_class(ty.oid))));
        let collation = |oid: Oid| type_info(oid).map_or(Oid(0), |info| info.collation);
        let expressions: Vec<String> = key
            .parts
            .iter()
            .filter_map(|part| match part {
                PartitionKeyPart::Expression { text, .. } => Some(expression_text(source, table, text)),
                PartitionKeyPart::Column(_) => None,
            })
            .collect();
        let default = source.catalog().default_partition(table.oid).map_or(Oid(0), |table| table.oid);
        sheet.add(&[
            ("partrelid", Datum::Oid(table.oid)),
            ("partstrat", text(key.strategy.letter())),
            ("partnatts", Datum::Int2(key.parts.len() as i16)),
            ("partdefid", Datum::Oid(default)),
            ("partattrs", vector(Oid::INT2, numbers.collect())),
            ("partclass", vector(Oid::OID, classes.collect())),
            (
                "partcollation",
                vector(Oid::OID, types.iter().map(|ty| Datum::Oid(collation(ty.oid))).collect()),
            ),
            ("partexprs", if expressions.is_empty() { Datum::Null } else { text(expressions.join(", ")) }),
        ]);
    }
}

/// pg_class.relpartbound, which pg_get_expr shows as it is.
pub(super) fn bound_of(source: &dyn SystemSource, table: &Table) -> Datum {
    let catalog = source.catalog();
    let Some(bound) = &table.bound else { return Datum::Null };
    let parent = table.partition_of().and_then(|oid| catalog.table_by_oid(oid));
    let types = parent.and_then(|parent| parent.partitioned_by.as_ref().map(|key| key.types(&parent)));
    text(bound_text(bound, &types.unwrap_or_default(), &source.context()))
}

/// pg_get_partkeydef.
pub(in crate::system) fn key_definition(source: &dyn SystemSource, oid: Oid) -> Datum {
    let catalog = source.catalog();
    let Some(table) = catalog.table_in_place(oid) else { return Datum::Null };
    table.partitioned_by.as_ref().map_or(Datum::Null, |key| {
        text(partition_key_text((catalog, source.search_path()), table, key, source.quoting()))
    })
}

/// pg_get_partition_constraintdef.
pub(in crate::system) fn constraint_of(source: &dyn SystemSource, oid: Oid) -> Datum {
    let catalog = source.catalog();
    let Some(table) = catalog.table_in_place(oid).filter(|table| table.bound.is_some()) else {
        return Datum::Null;
    };
    match catalog.shown_partition_condition(table, &source.context()) {
        Ok(Some(condition)) => {
            text(with_names(&condition, catalog, source.search_path()).unwrap_or(condition))
        }
        _ => Datum::Null,
    }
}

/// What the functions about trees of partitions walk: partitioned tables and their indexes.
enum Node {
    Table(Oid),
    Index(Oid),
}

fn node(catalog: &Catalog, oid: Oid) -> Option<Node> {
    match catalog.relation_by_oid(oid)? {
        Relation::Table(table) => {
            (table.is_partitioned() || table.bound.is_some()).then_some(Node::Table(oid))
        }
        Relation::Index(table, _) | Relation::PrimaryKey(table) => {
            (table.is_partitioned() || index_parent(&table, oid).is_some()).then_some(Node::Index(oid))
        }
        Relation::Sequence(_) | Relation::Nominal(..) => None,
    }
}

fn index_parent(table: &Table, oid: Oid) -> Option<Oid> {
    indexes(table).find(|index| index.oid == oid)?.parent
}

fn parent_of(catalog: &Catalog, node: &Node) -> Option<Oid> {
    match node {
        Node::Table(oid) => catalog.table_in_place(*oid)?.partition_of(),
        Node::Index(oid) => match catalog.relation_by_oid(*oid)? {
            Relation::Index(table, _) | Relation::PrimaryKey(table) => index_parent(&table, *oid),
            _ => None,
        },
    }
}

/// pg_partition_ancestors: the relation itself, then those it is part of.
pub(in crate::system) fn ancestors(catalog: &Catalog, oid: Oid) -> Datum {
    let mut found = Vec::new();
    let mut next = node(catalog, oid).map(|_| oid);
    while let Some(oid) = next {
        found.push(Datum::Oid(oid));
        next = node(catalog, oid).and_then(|node| parent_of(catalog, &node));
    }
    array(Oid::OID, found)
}

/// pg_partition_root.
pub(in crate::system) fn root(catalog: &Catalog, oid: Oid) -> Datum {
    match ancestors(catalog, oid) {
        Datum::Array(found) => found.values.last().cloned().unwrap_or(Datum::Null),
        _ => Datum::Null,
    }
}

/// pg_partition_tree, as an array of its rows' cells one after the other: relation, parent,
/// whether it is a leaf, level.
pub(in crate::system) fn tree(catalog: &Catalog, oid: Oid) -> Datum {
    let mut rows = Vec::new();
    if node(catalog, oid).is_some() {
        // One generation after the other, as find_all_inheritors lists them.
        let mut level = vec![(oid, Datum::Null)];
        let mut depth = 0;
        while !level.is_empty() {
            let mut below = Vec::new();
            for (oid, parent) in level {
                let children = children_of(catalog, oid);
                let leaf = match catalog.relation_by_oid(oid) {
                    Some(
                        Relation::Table(table) | Relation::Index(table, _) | Relation::PrimaryKey(table),
                    ) => !table.is_partitioned(),
                    _ => true,
                };
                // NULL where the one asked for is the root: its parent is beyond the answer.
                let parent = match (depth, node(catalog, oid)) {
                    (0, Some(node)) => parent_of(catalog, &node).map_or(Datum::Null, Datum::Oid),
                    _ => parent,
                };
                rows.push(Datum::Record(
                    [Datum::Oid(oid), parent, Datum::Bool(leaf), Datum::Int4(depth)].into(),
                ));
                below.extend(children.into_iter().map(|child| (child, Datum::Oid(oid))));
            }
            level = below;
            depth += 1;
        }
    }
    array(Oid::RECORD, rows)
}

fn children_of(catalog: &Catalog, oid: Oid) -> Vec<Oid> {
    match catalog.relation_by_oid(oid) {
        Some(Relation::Table(table)) if table.is_partitioned() => {
            catalog.heirs(oid).iter().map(|heir| heir.oid).collect()
        }
        Some(Relation::Index(table, _) | Relation::PrimaryKey(table)) => {
            let heirs = catalog.heirs(table.oid);
            let own =
                |heir: &Table| indexes(heir).find(|index| index.parent == Some(oid)).map(|index| index.oid);
            let mut found: Vec<Oid> = heirs.iter().filter_map(|heir| own(heir)).collect();
            found.sort_unstable();
            found
        }
        _ => Vec::new(),
    }
}

/// Whether each partition of an index's table has its part of the index (pg_index.indisvalid).
pub(super) fn is_complete(catalog: &Catalog, table: &Table, index: Oid) -> bool {
    !table.is_partitioned()
        || catalog.heirs(table.oid).iter().all(|heir| {
            let own = indexes(heir).find(|own| own.parent == Some(index)).map(|own| own.oid);
            own.is_some_and(|own| is_complete(catalog, heir, own))
        })
}
