//! ATTACH and DETACH PARTITION, INHERIT and NO INHERIT: tables that get a parent, or lose one.

use archipel_sql::ast::{BoundSpec, QualifiedName};
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::{
    Check, Index, KeyConstraint, PartitionBound, Persistence, Relation, Table, TableKind, TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::bind::Clause;
use crate::relation::inheritance::{carried, check_plain_parent, same_condition, same_type};
use crate::relation::{constraint, distribution, partition, partition_keys};
use crate::work::Work;
use crate::work::change::{drop_cloned_triggers, finish, reshape, touch};
use crate::{FaultyKey, KeyFault};

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}

fn mismatch(message: String) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

fn not_partitioned(parent: &Table) -> SqlError {
    let message = format!("table \"{}\" is not partitioned", parent.name);
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// ATTACH PARTITION.
pub(super) fn attach(
    parent: &TableRef,
    name: &QualifiedName,
    spec: &BoundSpec,
    work: &mut Work<'_>,
) -> Result<()> {
    if !parent.is_partitioned() {
        return Err(not_partitioned(parent));
    }
    let bound = partition::make_bound(spec, parent, work)?;
    let child = work.catalog.require_table(name, work.search_path())?;
    work.require_owner(child.oid)?;
    if child.kind != TableKind::Table {
        return Err(wrong(format!(
            "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
            child.name
        ))
        .with_detail("This operation is not supported for views."));
    }
    if child.bound.is_some() {
        return Err(wrong(format!("\"{}\" is already a partition", child.name)));
    }
    if !child.inherits.is_empty() {
        return Err(wrong("cannot attach inheritance child as partition"));
    }
    if !child.is_partitioned() && work.catalog.has_heirs(child.oid) {
        return Err(wrong("cannot attach inheritance parent as partition"));
    }
    check_circle(parent, &child, work)?;
    let temporary = |table: &Table| table.persistence == Persistence::Temporary;
    if temporary(parent) != temporary(&child) {
        let (one, other) =
            if temporary(parent) { ("permanent", "temporary") } else { ("temporary", "permanent") };
        return Err(wrong(format!(
            "cannot attach a {one} relation as partition of {other} relation \"{}\"",
            parent.name
        )));
    }
    for column in &child.columns {
        if parent.column_index(&column.name).is_none() {
            return Err(mismatch(format!(
                "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
                child.name, column.name, parent.name
            ))
            .with_detail("The new partition may contain only the columns present in parent."));
        }
    }
    check_transitions(&child, "partition")?;
    partition::check_new_bound(&child.name, &bound, spec, parent, work)?;
    let mut table = (*child).clone();
    become_heir(parent, &mut table, true, work)?;
    partition::check_rows(&child, parent, &bound, work)?;
    partition::check_default_rows(parent, &bound, work)?;
    check_not_referenced(parent, &child, work)?;
    table.inherits = vec![parent.oid];
    table.bound = Some(bound);
    finish(table, work);
    partition_keys::ensure(parent.oid, child.oid, None, work)?;
    distribution::join_siblings(child.oid, work);
    reshape(parent.oid, work);
    Ok(())
}

/// The new partition is not what the table's own foreign keys, which become its own, point at.
fn check_not_referenced(parent: &Table, child: &Table, work: &Work<'_>) -> Result<()> {
    let below = work.catalog.descendants(child.oid);
    for key in &parent.foreign_keys {
        if key.references == child.oid {
            let message = format!(
                "cannot attach table \"{}\" as a partition because it is referenced by foreign key \"{}\"",
                child.name, key.name
            );
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        // PostgreSQL has no word of its own for this one.
        if let Some(used) = below.iter().find(|table| table.oid == key.references) {
            let message = format!(
                "cannot ALTER TABLE \"{}\" because it is being used by active queries in this session",
                used.name
            );
            return Err(SqlError::new(SqlState::OBJECT_IN_USE, message));
        }
    }
    Ok(())
}

/// A row trigger with transition tables sees the rows of its table alone.
fn check_transitions(child: &Table, what: &str) -> Result<()> {
    let with = |trigger: &&archipel_sql::catalog::Trigger| {
        trigger.row && (trigger.old_table.is_some() || trigger.new_table.is_some())
    };
    let Some(trigger) = child.triggers.iter().find(with) else { return Ok(()) };
    let (article, plural) = match what {
        "partition" => ("a partition", "partitions"),
        _ => ("an inheritance child", "inheritance children"),
    };
    let prevents =
        format!("trigger \"{}\" prevents table \"{}\" from becoming {article}", trigger.name, child.name);
    let state = match what {
        "partition" => SqlState::FEATURE_NOT_SUPPORTED,
        _ => SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    };
    Err(SqlError::new(state, prevents)
        .with_detail(format!("ROW triggers with transition tables are not supported on {plural}.")))
}

fn check_circle(parent: &Table, child: &Table, work: &Work<'_>) -> Result<()> {
    let below = work.catalog.descendants(child.oid);
    if parent.oid != child.oid && !below.iter().any(|table| table.oid == parent.oid) {
        return Ok(());
    }
    Err(SqlError::new(SqlState::DUPLICATE_TABLE, "circular inheritance not allowed")
        .with_detail(format!("\"{}\" is already a child of \"{}\".", parent.name, child.name)))
}

/// Checks that a table has what its new parent has, and marks that as inherited
/// (MergeAttributesIntoExisting, MergeConstraintsIntoExisting).
fn become_heir(parent: &TableRef, child: &mut Table, partition: bool, work: &Work<'_>) -> Result<()> {
    for column in &parent.columns {
        let name = &column.name;
        let place = child
            .column_index(name)
            .ok_or_else(|| mismatch(format!("child table is missing column \"{name}\"")))?;
        let own = &mut child.columns[usize::from(place)];
        if !same_type(own, column) {
            return Err(mismatch(format!(
                "child table \"{}\" has different type for column \"{name}\"",
                child.name
            )));
        }
        if column.not_null && !own.not_null {
            return Err(mismatch(format!("column \"{name}\" in child table must be marked NOT NULL")));
        }
        if column.generated.is_some() && own.generated.is_none() {
            return Err(mismatch(format!("column \"{name}\" in child table must be a generated column")));
        }
        if partition && column.generated.is_none() && own.generated.is_some() {
            return Err(mismatch(format!("column \"{name}\" in child table must not be a generated column")));
        }
        own.inherited |= partition;
    }
    for check in parent.checks.iter().filter(|check| !check.no_inherit) {
        let name = &check.name;
        let place = child
            .checks
            .iter()
            .position(|own| own.name == *name)
            .ok_or_else(|| mismatch(format!("child table is missing constraint \"{name}\"")))?;
        let wanted = carried(&check.condition, parent, &child.name, Clause::Check)?;
        let own: &Check = &child.checks[place];
        if !same_condition(&own.condition, &wanted, child, work) {
            return Err(mismatch(format!(
                "child table \"{}\" has different definition for check constraint \"{name}\"",
                child.name
            )));
        }
        for (conflicts, what) in [(own.no_inherit, "non-inherited"), (own.not_valid, "NOT VALID")] {
            if conflicts {
                return Err(SqlError::new(
                    SqlState::INVALID_OBJECT_DEFINITION,
                    format!(
                        "constraint \"{name}\" conflicts with {what} constraint on child table \"{}\"",
                        child.name
                    ),
                ));
            }
        }
        child.checks[place].inherited |= partition;
    }
    Ok(())
}

/// DETACH PARTITION. Nobody sees half of it, CONCURRENTLY or not.
pub(super) fn detach(
    parent: &TableRef,
    name: &QualifiedName,
    concurrently: bool,
    finalize: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    if !parent.is_partitioned() {
        return Err(not_partitioned(parent));
    }
    let child = work.catalog.require_table(name, work.search_path())?;
    if concurrently && work.catalog.default_partition(parent.oid).is_some() {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot detach partitions concurrently when a default partition exists",
        ));
    }
    if child.partition_of() != Some(parent.oid) {
        return Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{}\" is not a partition of relation \"{}\"", child.name, parent.name),
        ));
    }
    if finalize {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot complete detaching partition \"{}\"", child.name),
        )
        .with_detail("There's no pending concurrent detach."));
    }
    check_unreferenced(parent, &child, work);
    let condition = match concurrently {
        true => work.catalog.bound_condition(
            parent,
            child.bound.as_ref().unwrap_or(&PartitionBound::Default),
            Some(child.oid),
        )?,
        false => Vec::new(),
    };
    let mut table = (*child).clone();
    table.inherits.clear();
    table.bound = None;
    table.columns.iter_mut().for_each(|column| column.inherited = false);
    table.checks.iter_mut().for_each(|check| check.inherited = false);
    if !condition.is_empty() {
        // What was known of its rows goes on to hold (DetachAddConstraintIfNeeded).
        let name = work.free_constraint_name(
            &table.schema,
            [&table.name, &first_key_column(parent), "check"],
            &constraint::own_names(&table),
        );
        let oid = work.oids(1);
        let condition = condition.join(" AND ");
        table.checks.push(Check {
            oid,
            name,
            condition,
            not_valid: false,
            no_inherit: false,
            inherited: false,
        });
    }
    let released: Vec<Oid> = released_triggers(&table);
    partition_keys::release(&mut table);
    finish(table, work);
    drop_cloned_triggers(&child, &released, work);
    // Keys of its partitions remain parts of its own.
    reshape(parent.oid, work);
    Ok(())
}

fn first_key_column(parent: &Table) -> String {
    use archipel_sql::catalog::PartitionKeyPart;
    let parts = parent.partitioned_by.iter().flat_map(|key| &key.parts);
    let names: Vec<String> = parts
        .filter_map(|part| match part {
            PartitionKeyPart::Column(place) => Some(parent.columns[usize::from(*place)].name.clone()),
            PartitionKeyPart::Expression { .. } => None,
        })
        .collect();
    match &names[..] {
        [only] => only.clone(),
        _ => String::new(),
    }
}

fn released_triggers(table: &Table) -> Vec<Oid> {
    table.triggers.iter().filter(|trigger| trigger.parent.is_some()).map(|trigger| trigger.oid).collect()
}

/// Rows that go from a partitioned table are none that a foreign key points at.
fn check_unreferenced(parent: &TableRef, child: &TableRef, work: &mut Work<'_>) {
    let mut above: Vec<Oid> = vec![parent.oid];
    above.extend(work.catalog.partition_ancestors(parent.oid).iter().map(|table| table.oid));
    let tables: Vec<TableRef> = work.catalog.tables().filter(|table| table.is_stored()).cloned().collect();
    for table in &tables {
        for key in table.foreign_keys.iter().filter(|key| above.contains(&key.references)) {
            let Some(referenced) = work.catalog.table_by_oid(key.references) else { continue };
            for leaf in partition::stored(child, work) {
                let joined: Vec<String> = key
                    .columns
                    .iter()
                    .zip(&key.referenced_columns)
                    .map(|(own, other)| {
                        let own = quote_identifier(&table.columns[usize::from(*own)].name);
                        let other = quote_identifier(&referenced.columns[usize::from(*other)].name);
                        format!("r.{other} = t.{own}")
                    })
                    .collect();
                let columns = key.columns.iter().map(|own| table.columns[usize::from(*own)].name.clone());
                let columns: Vec<String> = columns.collect();
                let values = columns.iter().map(|name| format!("CAST(t.{} AS text)", quote_identifier(name)));
                let query = format!(
                    "SELECT {} FROM {} t, {} r WHERE {} LIMIT 1",
                    values.collect::<Vec<_>>().join(", "),
                    quote_qualified(&table.schema, &table.name),
                    quote_qualified(&leaf.schema, &leaf.name),
                    joined.join(" AND ")
                );
                let message = format!(
                    "removing partition \"{}\" violates foreign key constraint \"{}\"",
                    child.name, key.name
                );
                let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message);
                let fault = KeyFault::Referenced(table.name.clone());
                let hidden = work.hides_rows(child, work.env.roles.current);
                work.validate_key(query, error, FaultyKey { columns, fault, hidden });
            }
        }
    }
}

/// ALTER TABLE … INHERIT.
pub(super) fn inherit(child: &TableRef, name: &QualifiedName, work: &mut Work<'_>) -> Result<()> {
    if child.is_partitioned() {
        return Err(wrong("cannot change inheritance of partitioned table"));
    }
    if child.bound.is_some() {
        return Err(wrong("cannot change inheritance of a partition"));
    }
    let parent = work.user_table(name)?;
    work.require_owner(parent.oid)?;
    if parent.bound.is_some() && !parent.is_partitioned() {
        return Err(wrong("cannot inherit from a partition"));
    }
    check_plain_parent(&parent, child.persistence)?;
    if child.inherits.contains(&parent.oid) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{}\" would be inherited from more than once", parent.name),
        ));
    }
    check_circle(&parent, child, work)?;
    check_transitions(child, "inheritance child")?;
    let mut table = (**child).clone();
    become_heir(&parent, &mut table, false, work)?;
    table.inherits.push(parent.oid);
    finish(table, work);
    touch(parent.oid, work);
    Ok(())
}

/// ALTER TABLE … NO INHERIT.
pub(super) fn no_inherit(child: &TableRef, name: &QualifiedName, work: &mut Work<'_>) -> Result<()> {
    if child.bound.is_some() {
        return Err(wrong("cannot change inheritance of a partition"));
    }
    let parent = work.user_table(name)?;
    if !child.inherits.contains(&parent.oid) {
        return Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{}\" is not a parent of relation \"{}\"", parent.name, child.name),
        ));
    }
    let mut table = (**child).clone();
    table.inherits.retain(|known| *known != parent.oid);
    let left = table.clone();
    for column in &mut table.columns {
        column.inherited &= super::alter_inheritance::column_parents(&left, &column.name, work) > 0;
    }
    for check in &mut table.checks {
        check.inherited &= super::alter_inheritance::check_parents(&left, &check.name, work) > 0;
    }
    finish(table, work);
    touch(parent.oid, work);
    Ok(())
}

/// An index of a table, as keys and others have it in common.
struct Known {
    oid: Oid,
    parent: Option<Oid>,
    constraint: bool,
    index: Index,
}

fn known_index(table: &Table, oid: Oid) -> Option<Known> {
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.oid == oid) {
        return Some(Known { oid, parent: key.parent, constraint: true, index: as_index(key) });
    }
    let index = table.indexes.iter().find(|index| index.oid == oid)?;
    Some(Known { oid, parent: index.parent, constraint: index.constraint, index: index.clone() })
}

fn as_index(key: &KeyConstraint) -> Index {
    let part = |column: &u16| archipel_sql::catalog::IndexColumn {
        column: *column,
        descending: false,
        nulls_first: false,
        collation: None,
    };
    Index {
        oid: key.oid,
        name: key.name.clone(),
        columns: key.columns.iter().map(part).collect(),
        unique: true,
        nulls_equal: false,
        constraint: true,
        tree: 0,
        global_group: None,
        include: key.include.clone(),
        predicate: None,
        expressions: Vec::new(),
        hash: false,
        classes: Vec::new(),
        options: key.options.clone(),
        parent: key.parent,
    }
}

/// ALTER INDEX … ATTACH PARTITION.
pub(super) fn attach_index(relation: &Relation, name: &QualifiedName, work: &mut Work<'_>) -> Result<()> {
    let (Relation::Index(parent, _) | Relation::PrimaryKey(parent)) = relation else { return Ok(()) };
    let found = work.catalog.require_relation(name, work.search_path())?;
    work.require_relation_owner(&found)?;
    let (Relation::Index(child, _) | Relation::PrimaryKey(child)) = &found else {
        return Err(wrong(format!("\"{}\" is not an index", found.name())));
    };
    let refused = |detail: String| {
        Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                found.name(),
                relation.name()
            ),
        )
        .with_detail(detail))
    };
    let (Some(above), Some(own)) = (known_index(parent, relation.oid()), known_index(child, found.oid()))
    else {
        return Ok(());
    };
    if own.parent == Some(above.oid) {
        return Ok(());
    }
    let of_above = |oid: Option<Oid>| oid == Some(above.oid);
    let taken = child.indexes.iter().any(|index| of_above(index.parent))
        || child.primary_key.as_ref().is_some_and(|key| of_above(key.parent));
    if taken {
        return refused(format!("Another index is already attached for partition \"{}\".", child.name));
    }
    if own.parent.is_some() {
        return refused(format!("Index \"{}\" is already attached to another index.", found.name()));
    }
    if child.partition_of() != Some(parent.oid) {
        return refused(format!(
            "Index \"{}\" is not an index on any partition of table \"{}\".",
            found.name(),
            parent.name
        ));
    }
    if !partition_keys::fits(parent, &above.index, child, &own.index, work)? {
        return refused("The index definitions do not match.".to_owned());
    }
    if above.constraint && !own.constraint {
        return refused(format!(
            "The index \"{}\" belongs to a constraint in table \"{}\" but no constraint exists for index \"{}\".",
            relation.name(),
            parent.name,
            found.name()
        ));
    }
    let mut changed = (**child).clone();
    match &mut changed.primary_key {
        Some(key) if key.oid == own.oid => key.parent = Some(above.oid),
        _ => {
            if let Some(index) = changed.indexes.iter_mut().find(|index| index.oid == own.oid) {
                index.parent = Some(above.oid);
            }
        }
    }
    distribution::place_indexes(&mut changed, work);
    finish(changed, work);
    Ok(())
}
