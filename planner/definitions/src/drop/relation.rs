//! DROP TABLE, SEQUENCE, SCHEMA (and INDEX by name), and TRUNCATE.

use std::mem::{Discriminant, discriminant};

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::ast::{Drop, ObjectWord, QualifiedName, Truncate};
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::names::{quote_identifier, undefined_schema};
use archipel_sql::catalog::{
    Catalog, ObjectClass, ObjectKind, Privileges, Relation, SequenceRef, Table, TableKind, TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::stack;
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use super::cascade::{cascade_notice, drop_foreign_keys, notice_of_lines, taken_along};
use super::dependency;
use crate::function::routine_drop;
use crate::relation::{index, sequence, trigger};
use crate::work::{Work, change, is_system_schema};

pub(crate) fn drop_objects(drop: &Drop, work: &mut Work<'_>) -> Result<()> {
    if matches!(drop.kind, ObjectWord::Type | ObjectWord::Domain) {
        return work.drop_types(drop);
    }
    if drop.kind == ObjectWord::Schema {
        return drop_schemas(drop, work);
    }
    let mut tables: Vec<TableRef> = Vec::new();
    let mut sequences: Vec<SequenceRef> = Vec::new();
    let mut named: FxHashSet<Oid> = FxHashSet::default();
    for name in &drop.names {
        let Some(relation) = find(name, drop, work)? else {
            continue;
        };
        check_dropper(drop.kind, &relation, work)?;
        match (drop.kind, &relation) {
            (ObjectWord::Table | ObjectWord::View, Relation::Table(table))
                if (table.kind == TableKind::View) == (drop.kind == ObjectWord::View) =>
            {
                if table.kind != TableKind::View {
                    work.check_changeable(table)?;
                }
                if named.insert(table.oid) {
                    tables.push(table.clone());
                }
            }
            (ObjectWord::Sequence, Relation::Sequence(sequence)) => sequences.push(sequence.clone()),
            (ObjectWord::Index, relation) => index::drop_index(name, relation, drop, work)?,
            (wanted, other) => return Err(wrong_kind(name, wanted, other)),
        }
    }
    drop_tables(&tables, drop.cascade, work)?;
    drop_sequences(&sequences, drop.cascade, work)
}

/// Whoever owns a relation, or the schema it is in, may drop it.
fn check_dropper(word: ObjectWord, relation: &Relation, work: &Work<'_>) -> Result<()> {
    let fits = match relation {
        Relation::Table(table) if table.kind == TableKind::View => word == ObjectWord::View,
        Relation::Table(_) => word == ObjectWord::Table,
        Relation::Sequence(_) => word == ObjectWord::Sequence,
        Relation::Index(..) | Relation::PrimaryKey(_) | Relation::Nominal(..) => word == ObjectWord::Index,
    };
    let of_schema = work.catalog.schema(relation.schema()).is_some_and(|s| work.authority().owns(s.oid));
    // One of another kind is refused for that.
    if !fits || of_schema { Ok(()) } else { work.require_relation_owner(relation) }
}

/// The relation of a name; `None` with a notice if it may be missing and is.
fn find(name: &QualifiedName, drop: &Drop, work: &mut Work<'_>) -> Result<Option<Relation>> {
    if let Some(relation) = work.catalog.relation(name.schema.as_deref(), &name.name, work.search_path()) {
        return Ok(Some(relation));
    }
    let missing_schema = name.schema.as_deref().filter(|schema| !work.catalog.schema_exists(schema));
    if drop.if_exists {
        match missing_schema {
            Some(schema) => work.notice(format!("schema \"{schema}\" does not exist, skipping")),
            None => work.notice(format!("{} \"{}\" does not exist, skipping", drop.kind.as_str(), name.name)),
        }
        return Ok(None);
    }
    if let Some(schema) = missing_schema {
        return Err(undefined_schema(schema));
    }
    let state =
        if drop.kind == ObjectWord::Index { SqlState::UNDEFINED_OBJECT } else { SqlState::UNDEFINED_TABLE };
    Err(SqlError::new(state, format!("{} \"{}\" does not exist", drop.kind.as_str(), name.name)))
}

fn wrong_kind(name: &QualifiedName, wanted: ObjectWord, found: &Relation) -> SqlError {
    let (article, kind) = match wanted {
        ObjectWord::Index => ("an", "index"),
        other => ("a", other.as_str()),
    };
    let is = match found {
        Relation::Table(table) if table.kind == TableKind::View => ("VIEW", "a view"),
        Relation::Table(_) => ("TABLE", "a table"),
        Relation::Sequence(_) => ("SEQUENCE", "a sequence"),
        Relation::Index(..) | Relation::PrimaryKey(_) | Relation::Nominal(..) => ("INDEX", "an index"),
    };
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {article} {kind}", name.name))
        .with_hint(format!("Use DROP {} to remove {}.", is.0, is.1))
}

/// Tables with their partitions, and with CASCADE those that inherit from them.
fn with_heirs(tables: &[TableRef], cascade: bool, work: &Work<'_>) -> Vec<TableRef> {
    let mut found: Vec<TableRef> = Vec::with_capacity(tables.len());
    let mut known: FxHashSet<Oid> = FxHashSet::default();
    let mut left: Vec<TableRef> = tables.iter().rev().cloned().collect();
    while let Some(next) = left.pop() {
        if !known.insert(next.oid) {
            continue;
        }
        let heirs = work.catalog.heirs(next.oid).into_iter().rev();
        let goes = |heir: &TableRef| heir.bound.is_some() || work.going.contains(&heir.oid);
        left.extend(heirs.filter(|heir| cascade || goes(heir)));
        found.push(next);
    }
    found
}

/// Drops tables with what is theirs, and with CASCADE what points at them.
pub(crate) fn drop_tables(tables: &[TableRef], cascade: bool, work: &mut Work<'_>) -> Result<()> {
    stack::check()?;
    let named = tables;
    let all = with_heirs(tables, cascade, work);
    let dropped: FxHashSet<Oid> = all.iter().map(|table| table.oid).collect();
    let among_named: FxHashSet<Oid> = named.iter().map(|table| table.oid).collect();
    let parents: Vec<Oid> = named.iter().flat_map(|table| table.inherits.iter().copied()).collect();
    // What else goes, or would go, by itself.
    let family: FxHashSet<Oid> = with_heirs(tables, true, work).iter().map(|table| table.oid).collect();
    let mut dependents: Vec<Dependent> = Vec::new();
    let mut shared: FxHashSet<Shared> = FxHashSet::default();
    for table in &all {
        let over = if among_named.contains(&table.oid) {
            work.catalog.keys_over_partition(table, &dropped)
        } else {
            Vec::new()
        };
        let others: Vec<Dependent> = over
            .into_iter()
            .chain(work.catalog.dependents_of_table(table))
            .filter(|dependent| {
                !matches!(
                    dependent,
                    Dependent::ForeignKey(other, _)
                        | Dependent::View(other)
                        | Dependent::Policy(other, _)
                        | Dependent::Column(other, _)
                        if dropped.contains(&other.oid)
                )
            })
            .filter(|dependent| match dependent {
                Dependent::Heir(heir) => !among_named.contains(&heir.oid),
                _ => true,
            })
            .filter(|dependent| shared_of(dependent).is_none_or(|known| !shared.contains(&known)))
            .chain(users_of_sequences(table, &family, work))
            .collect();
        let staying = work.staying(&others);
        if !staying.is_empty() && !cascade {
            return Err(still_needed(named, dependency_lines(table, &staying, &others, work)));
        }
        shared.extend(others.iter().filter_map(shared_of));
        dependents.extend(others);
    }
    cascade_notice(&dependents, work);
    drop_foreign_keys(&dependents, &dropped, work);
    // Policies go before the views that they read.
    let is_policy = |dependent: &&Dependent| matches!(dependent, Dependent::Policy(..));
    let policies: Vec<Dependent> = dependents.iter().filter(is_policy).cloned().collect();
    work.drop_users(&policies)?;
    for dependent in &dependents {
        match dependent {
            Dependent::Routine(routine) => routine_drop::drop_one(routine, work)?,
            Dependent::View(view) if work.catalog.table_by_oid(view.oid).is_some() => {
                work.drop(ObjectKind::Table, view.oid);
            }
            Dependent::View(_) | Dependent::Policy(..) | Dependent::ForeignKey(..) | Dependent::Heir(_) => {}
            other => work.drop_users(std::slice::from_ref(other))?,
        }
    }
    for table in &all {
        drop_table(table, &dropped, work);
    }
    for parent in parents.into_iter().filter(|parent| !dropped.contains(parent)) {
        change::reshape(parent, work);
    }
    Ok(())
}

/// The error of dropping what others depend on, as `detail` says.
fn still_needed(named: &[TableRef], detail: String) -> SqlError {
    let (object, them) = match named {
        [only] => (format!("{} {}", word_of(only), only.name), "it"),
        _ => ("desired object(s)".to_owned(), "them"),
    };
    let message = format!("cannot drop {object} because other objects depend on {them}");
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_detail(detail)
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// What calls the sequences that go with a table, elsewhere.
fn users_of_sequences(table: &TableRef, dropped: &FxHashSet<Oid>, work: &Work<'_>) -> Vec<Dependent> {
    let owned = work.catalog.owned_sequences(table.oid);
    let goes = |user: &Dependent| match user {
        Dependent::Default(table, _) | Dependent::Generated(table, _) => dropped.contains(&table.oid),
        Dependent::Check(table, _)
        | Dependent::Index(table, _)
        | Dependent::Trigger(table, _)
        | Dependent::Policy(table, _) => dropped.contains(&table.oid),
        Dependent::View(view) => dropped.contains(&view.oid),
        _ => false,
    };
    owned.iter().flat_map(|sequence| users_of_sequence(sequence, work)).filter(|user| !goes(user)).collect()
}

fn users_of_sequence(sequence: &SequenceRef, work: &Work<'_>) -> Vec<Dependent> {
    let mut users = work.catalog.dependents_of_sequence(sequence);
    for user in dependency::users(ObjectKind::Sequence, sequence.oid, work) {
        if !users.iter().any(|known| dependency::is_one(known, &user)) {
            users.push(user);
        }
    }
    users
}

fn word_of(table: &Table) -> &'static str {
    if table.kind == TableKind::View { "view" } else { "table" }
}

/// What tells one of what several tables may have in common from others: its kind, the table that it is or is
/// of, and its place there.
type Shared = (Discriminant<Dependent>, Oid, usize);

fn shared_of(dependent: &Dependent) -> Option<Shared> {
    let (of, place) = match dependent {
        Dependent::View(view) | Dependent::Heir(view) => (view.oid, 0),
        Dependent::ForeignKey(table, place) | Dependent::Policy(table, place) => (table.oid, *place),
        _ => return None,
    };
    Some((discriminant(dependent), of, place))
}

/// "… depends on …", a line for each of the dependents: a view over a view, which is among `all` of them, depends
/// on that one.
fn dependency_lines(
    table: &TableRef,
    dependents: &[Dependent],
    all: &[Dependent],
    work: &Work<'_>,
) -> String {
    let below = |reads: &dyn Fn(Oid) -> bool| -> String {
        if reads(table.oid) {
            return format!("{} {}", word_of(table), table.name);
        }
        let between = all.iter().find_map(|dependent| match dependent {
            Dependent::View(other) if reads(other.oid) => Some(format!("view {}", other.name)),
            _ => None,
        });
        between.unwrap_or_else(|| format!("{} {}", word_of(table), table.name))
    };
    let lines: Vec<String> = dependents
        .iter()
        .map(|dependent| {
            let on = match dependent {
                Dependent::View(view) => below(&|oid| view.view.as_ref().is_some_and(|view| view.reads(oid))),
                Dependent::Policy(of, place) => below(&|oid| of.row_security.policies[*place].reads(oid)),
                Dependent::Column(..)
                | Dependent::Attribute(..)
                | Dependent::Routine(_)
                | Dependent::SchemaRoutine(_) => format!("type {}", table.name),
                _ => format!("{} {}", word_of(table), table.name),
            };
            let line = format!("{} depends on {on}", dependent.describe(work));
            // What inherits from an heir depends on that.
            match dependent {
                Dependent::Heir(heir) => {
                    let below = work.catalog.heirs(heir.oid).into_iter().map(Dependent::Heir);
                    let below: Vec<Dependent> = below.collect();
                    match dependency_lines(heir, &below, &below, work) {
                        lines if lines.is_empty() => line,
                        lines => format!("{line}\n{lines}"),
                    }
                }
                _ => line,
            }
        })
        .collect();
    lines.join("\n")
}

fn drop_table(table: &TableRef, dropped: &FxHashSet<Oid>, work: &mut Work<'_>) {
    if table.kind == TableKind::View {
        // It may have gone with another one that was dropped.
        if work.catalog.table_by_oid(table.oid).is_some() {
            work.drop(ObjectKind::Table, table.oid);
        }
        return;
    }
    for owned in work.catalog.owned_sequences(table.oid) {
        work.operation(DdlOp::DropSequence(sequence::id(&owned)));
        work.drop(ObjectKind::Sequence, owned.oid);
    }
    work.operation(DdlOp::DropTable(TreeId(table.tree)));
    work.drop(ObjectKind::Table, table.oid);
    // Deletes from a table this one pointed at need not look here any more.
    let referenced: Vec<Oid> = table.foreign_keys.iter().map(|key| key.references).collect();
    for oid in referenced {
        if !dropped.contains(&oid) {
            change::touch(oid, work);
        }
    }
}

pub(crate) fn drop_sequences(sequences: &[SequenceRef], cascade: bool, work: &mut Work<'_>) -> Result<()> {
    for sequence in sequences {
        let dependents = users_of_sequence(sequence, work);
        let identity = dependents.iter().find_map(|dependent| match dependent {
            Dependent::Default(table, place) if table.columns[usize::from(*place)].identity.is_some() => {
                Some((table.clone(), *place))
            }
            _ => None,
        });
        if let Some((table, place)) = identity {
            let column = &table.columns[usize::from(place)].name;
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!(
                    "cannot drop sequence {} because column {column} of table {} requires it",
                    sequence.name, table.name
                ),
            )
            .with_hint(format!("You can drop column {column} of table {} instead.", table.name)));
        }
        let staying = work.staying(&dependents);
        if !staying.is_empty() && !cascade {
            return Err(still_depended_on(&format!("sequence {}", sequence.name), &staying, work));
        }
        cascade_notice(&dependents, work);
        work.drop_users(&dependents)?;
        work.operation(DdlOp::DropSequence(sequence::id(sequence)));
        work.drop(ObjectKind::Sequence, sequence.oid);
    }
    Ok(())
}

fn drop_schemas(drop: &Drop, work: &mut Work<'_>) -> Result<()> {
    for name in &drop.names {
        let Some(schema) = work.catalog.schema(&name.name) else {
            if drop.if_exists {
                work.notice(format!("schema \"{}\" does not exist, skipping", name.name));
                continue;
            }
            return Err(undefined_schema(&name.name));
        };
        // One of temporary relations, too: the server drops a session's own.
        work.require_owner(schema.oid)?;
        if is_system_schema(&schema.name) {
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop schema {} because it is required by the database system", schema.name),
            ));
        }
        drop_schema(&schema.name, drop.cascade, work)?;
    }
    Ok(())
}

/// Drops a schema, and with CASCADE all that is in it.
pub(crate) fn drop_schema(name: &str, cascade: bool, work: &mut Work<'_>) -> Result<()> {
    let schema = work.catalog.schema(name).ok_or_else(|| undefined_schema(name))?;
    {
        let dependents = work.catalog.dependents_of_schema(&schema.name);
        let staying = work.staying(&dependents);
        if !staying.is_empty() && !cascade {
            return Err(still_depended_on(&format!("schema {}", schema.name), &staying, work));
        }
        let mark = work.plan.notices.len();
        let tables: Vec<TableRef> = dependents
            .iter()
            .filter_map(|dependent| match dependent {
                Dependent::Table(table) => Some(table.clone()),
                _ => None,
            })
            .collect();
        let of_schema: FxHashSet<Oid> = tables.iter().map(|table| table.oid).collect();
        let goes = |dependent: &Dependent| match dependent {
            Dependent::ForeignKey(other, _)
            | Dependent::Policy(other, _)
            | Dependent::View(other)
            | Dependent::Heir(other) => other.schema != schema.name,
            Dependent::Routine(other) => other.schema != schema.name,
            _ => true,
        };
        let below = |table: &TableRef| work.catalog.dependents_of_table(table).into_iter().filter(goes);
        let of_tables: Vec<Vec<String>> = tables
            .iter()
            .map(|table| {
                let below = work.staying(&below(table).collect::<Vec<_>>());
                below.iter().map(|dependent| dependent.describe(work)).collect()
            })
            .collect();
        drop_tables(&tables, true, work)?;
        taken_along(mark, work);
        // Each object of the schema, and what goes along with it elsewhere. Where the session looks
        // for names the schema's goes without saying.
        let on_path = work.catalog.effective_path(work.search_path()).contains(&schema.name.as_str());
        let qualifier = format!("{}.", quote_identifier(&schema.name));
        let mut of_tables = of_tables.into_iter();
        let mut lines: Vec<String> = Vec::new();
        let mut told: FxHashSet<String> = FxHashSet::default();
        for dependent in &dependents {
            let line = dependent.describe(work);
            // A partition goes with what it is part of, without a word.
            let parent = match dependent {
                Dependent::Table(table) => table.partition_of(),
                _ => None,
            };
            let goes = parent.is_some_and(|parent| of_schema.contains(&parent));
            if !goes && !work.going.contains(&dependent.object().1) {
                let line = if on_path { line.replacen(&qualifier, "", 1) } else { line };
                told.insert(line.clone());
                lines.push(line);
            }
            if matches!(dependent, Dependent::Table(_)) {
                lines.extend(of_tables.next().into_iter().flatten().filter(|line| told.insert(line.clone())));
            }
            drop_member(dependent, work)?;
            let along = taken_along(mark, work);
            told.extend(along.iter().cloned());
            lines.extend(along);
        }
        notice_of_lines(&lines, work);
        work.drop(ObjectKind::Schema, schema.oid);
    }
    Ok(())
}

/// Drops what else is in a schema than tables, where it has not gone along with them.
fn drop_member(member: &Dependent, work: &mut Work<'_>) -> Result<()> {
    match member {
        Dependent::Sequence(sequence) if work.catalog.sequence_by_oid(sequence.oid).is_some() => {
            drop_sequences(std::slice::from_ref(sequence), true, work)
        }
        Dependent::SchemaType(found) if work.catalog.user_type_by_oid(found.oid).is_some() => {
            work.drop_type(found, true)
        }
        Dependent::SchemaRoutine(found) if work.catalog.routine_by_oid(found.oid).is_some() => {
            trigger::check_callers(found, &[], true, work)?;
            routine_drop::drop_one(found, work)
        }
        Dependent::OperatorFamily(_) => work.drop_users(std::slice::from_ref(member)),
        Dependent::OperatorClass(found) if work.catalog.operator_class_by_oid(found.oid).is_some() => {
            work.drop_users(std::slice::from_ref(member))
        }
        _ => Ok(()),
    }
}

/// The tables that TRUNCATE of some tables empties: these, then what CASCADE reaches. Without it
/// none of them may be referenced by a table that keeps its rows.
pub fn truncated_tables(catalog: &Catalog, named: &[TableRef], cascade: bool) -> Result<Vec<TableRef>> {
    let mut tables: Vec<TableRef> = Vec::with_capacity(named.len());
    let mut listed: FxHashSet<Oid> = FxHashSet::default();
    tables.extend(named.iter().filter(|table| listed.insert(table.oid)).cloned());
    let mut next = 0;
    while next < tables.len() {
        let table = tables[next].clone();
        next += 1;
        // What references a partitioned table references its partitions.
        let mut referenced = vec![table.oid];
        referenced.extend(catalog.partition_ancestors(table.oid).iter().map(|above| above.oid));
        let pointing: Vec<TableRef> = catalog
            .tables_saying(&referenced)
            .filter(|other| other.foreign_keys.iter().any(|key| referenced.contains(&key.references)))
            .filter(|other| !listed.contains(&other.oid))
            .cloned()
            .collect();
        if let (Some(other), false) = (pointing.first(), cascade) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot truncate a table referenced in a foreign key constraint",
            )
            .with_detail(format!("Table \"{}\" references \"{}\".", other.name, table.name))
            .with_hint(format!(
                "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                other.name
            )));
        }
        listed.extend(pointing.iter().map(|table| table.oid));
        tables.extend(pointing);
    }
    Ok(tables)
}

/// The tables that TRUNCATE names, each with its heirs but for ONLY.
pub fn named_for_truncate(catalog: &Catalog, found: Vec<TableRef>, only: &[bool]) -> Result<Vec<TableRef>> {
    let mut named: Vec<TableRef> = Vec::with_capacity(found.len());
    let mut known: FxHashSet<Oid> = FxHashSet::default();
    for (place, table) in found.into_iter().enumerate() {
        let alone = only.get(place).copied().unwrap_or(false);
        if alone && table.is_partitioned() {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "cannot truncate only a partitioned table",
            )
            .with_hint("Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly."));
        }
        let heirs = if alone { Vec::new() } else { catalog.descendants(table.oid) };
        for table in std::iter::once(table).chain(heirs) {
            if known.insert(table.oid) {
                named.push(table);
            }
        }
    }
    Ok(named)
}

pub(crate) fn truncate(truncate: &Truncate, work: &mut Work<'_>) -> Result<()> {
    let found = truncate.tables.iter().map(|name| work.user_table(name)).collect::<Result<Vec<_>>>()?;
    for table in &found {
        work.require(table.oid, ObjectClass::Relation, Privileges::TRUNCATE)?;
    }
    // Whoever may empty a table may empty its heirs.
    let named = named_for_truncate(&work.catalog, found, &truncate.only)?;
    let tables = truncated_tables(&work.catalog, &named, truncate.cascade)?;
    for table in tables.iter().filter(|table| !named.iter().any(|named| named.oid == table.oid)) {
        work.require(table.oid, ObjectClass::Relation, Privileges::TRUNCATE)?;
    }
    for reached in tables.iter().filter(|table| !named.iter().any(|named| named.oid == table.oid)) {
        work.notice(format!("truncate cascades to table \"{}\"", reached.name));
    }
    for table in &tables {
        work.operation(DdlOp::Truncate(TreeId(table.tree)));
        if truncate.restart_identity {
            for owned in work.catalog.owned_sequences(table.oid) {
                work.require_owner(owned.oid)?;
                sequence::alter((*owned).clone(), Some(owned.start), work);
            }
        }
    }
    Ok(())
}
