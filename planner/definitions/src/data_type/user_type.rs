//! CREATE, ALTER and DROP TYPE.

use std::sync::Arc;

use archipel_engine::txn::{ColumnSource, DdlOp, OwnedCell};
use archipel_sql::ast::{AlterType, CreateType, CreatedType, Drop, ObjectWord, TypeAction};
use archipel_sql::catalog::dependency::{Dependent, routine_signature, still_depended_on};
use archipel_sql::catalog::names::{quote_identifier, undefined_schema};
use archipel_sql::catalog::user_type::{Domain, EnumLabel, LABEL_BYTES_MAX, UserType, label_oid};
use archipel_sql::catalog::{
    Object, ObjectKind, PartitionStrategy, RoutineRef, TableKind, TableRef, UserTypeRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::stack;
use archipel_sql::type_kind::{NUMBERS_END, TypeKind};
use archipel_sql::types::{Oid, Type};

use super::composite;
use super::type_name::{check_free, check_movable};
use crate::access::owner;
use crate::alter::drop_column;
use crate::drop::{cascade, dependency, relation};
use crate::expression::relabel::relabel;
use crate::expression::rename::FieldRenaming;
use crate::function::{operator_class, routine_drop};
use crate::namespace;
use crate::relation::{partition, view_query};
use crate::row::table_def;
use crate::work::rewrite::{Computed, ComputedValue};
use crate::work::{Work, change, column_source};

pub(crate) fn create_type(create: &CreateType, work: &mut Work<'_>) -> Result<()> {
    let schema = work.any_target(&create.name)?;
    let name = &create.name.name;
    check_free(&schema, name, work)?;
    let (oid, labels, attributes) = match &create.kind {
        CreatedType::Enum(labels) => {
            let labels = new_labels(labels, work)?;
            (TypeKind::Enum.numbered(work.oids(1)), labels, None)
        }
        CreatedType::Composite(definitions) => {
            // The relation that stands for it shares a namespace with tables and indexes.
            if work.catalog.relation_in(&schema, name).is_some() {
                let message = format!("relation \"{name}\" already exists");
                return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
            }
            let attributes = composite::attributes(definitions, work)?;
            (Oid::row_type_of(work.oids(1)), Vec::new(), Some(attributes))
        }
    };
    let ty = UserType { oid, schema, name: name.clone(), labels, domain: None, attributes };
    work.put(Object::Type(UserTypeRef::new(ty)));
    Ok(())
}

fn new_labels(written: &[String], work: &mut Work<'_>) -> Result<Vec<EnumLabel>> {
    let mut labels: Vec<EnumLabel> = Vec::with_capacity(written.len());
    for label in written {
        check_label(label)?;
        if labels.iter().any(|known| known.name == *label) {
            return Err(SqlError::new(
                SqlState::UNIQUE_VIOLATION,
                "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
            ));
        }
        labels.push(EnumLabel { oid: Oid(0), name: label.clone(), order: None });
    }
    let numbers = rising_labels(&vec![LABEL_SPACE; labels.len()], work);
    labels.iter_mut().zip(numbers).for_each(|(label, number)| label.oid = number);
    Ok(labels)
}

fn check_label(label: &str) -> Result<()> {
    if label.len() > LABEL_BYTES_MAX {
        return Err(SqlError::new(SqlState::INVALID_NAME, format!("invalid enum label \"{label}\""))
            .with_detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less.")));
    }
    Ok(())
}

/// Labels sort by their numbers, since values are compared where no catalog is at hand: each draws so many, for
/// others to come between without new numbers for all, which rewrites the rows that hold them.
const LABEL_SPACE: u32 = 256;

/// What is made of the room for labels where there is not so much in a row any more: a part of it.
const LABEL_SPACE_SHIFTS: [u32; 3] = [0, 4, u32::BITS - 1];

/// Around a label for which there was no more room: others will come there.
const CROWDED_SPACE: u32 = 1 << 14;

/// The place of a label in the room that it has: with so much behind it as in front of it, but for what more it
/// has there.
fn place_in(room: u32) -> u32 {
    room - (room.min(LABEL_SPACE) / 2).max(1)
}

/// Rising numbers for labels, with this much room for each; with less where oids are scattered.
fn rising_labels(rooms: &[u32], work: &mut Work<'_>) -> Vec<Oid> {
    if rooms.is_empty() {
        return Vec::new();
    }
    for shift in LABEL_SPACE_SHIFTS {
        let rooms = rooms.iter().map(|room| (room >> shift).max(1));
        let all = rooms.clone().fold(0u32, u32::saturating_add);
        let Some(first) = work.try_oids(0, all) else { continue };
        let mut at = label_oid(first).0;
        let place = |room: u32| {
            let number = Oid(at + place_in(room));
            at += room;
            number
        };
        return rooms.map(place).collect();
    }
    // The plan as a whole is refused.
    vec![label_oid(work.oids(NUMBERS_END)); rooms.len()]
}

/// The number of a label behind all others; `None` if there is no room behind the last.
fn label_behind(labels: &[EnumLabel], work: &mut Work<'_>) -> Option<Oid> {
    let from = labels.last().map_or(0, |last| last.oid.0.saturating_sub(Oid::ENUM_LABELS) + 1);
    LABEL_SPACE_SHIFTS.iter().find_map(|shift| {
        let room = (LABEL_SPACE >> shift).max(1);
        let first = work.try_oids(from, room)?;
        Some(Oid(label_oid(first).0 + place_in(room)))
    })
}

/// The number of a label that comes to stand at a place among others; `None` where there is no more room
/// between its neighbours.
fn label_number(labels: &[EnumLabel], at: usize, after: bool, work: &mut Work<'_>) -> Option<Oid> {
    let Some(next) = labels.get(at) else { return label_behind(labels, work) };
    let end = next.oid.0;
    let start = match at.checked_sub(1) {
        Some(before) => labels[before].oid.0,
        None => (end - LABEL_SPACE / 2).max(Oid::ENUM_LABELS),
    };
    // One label after another is put before the same one, or after: there room is left.
    let step = ((end - start) / 16).max(1);
    let candidates = start + 1..end;
    let taken = |oid: &u32, work: &Work<'_>| work.catalog.enum_label(Oid(*oid)).is_some();
    let far = step as usize - 1;
    let first: Box<dyn Iterator<Item = u32>> = match after {
        false => Box::new(candidates.clone().skip(far).chain(candidates)),
        true => Box::new(candidates.clone().rev().skip(far).chain(candidates)),
    };
    // Somebody else may have drawn it for a label that is not committed yet.
    let number = |oid: u32| oid.saturating_sub(Oid::ENUM_LABELS);
    let beside = [number(start), number(end)];
    let free = |oid: &u32| !taken(oid, work) && work.claim(number(*oid), beside);
    first.take(CROWDED_SPACE as usize).find(free).map(Oid)
}

/// Gives all labels of an enum numbers with room between them (RenumberEnumType), most of it around the
/// one at a place, and the rows that hold some the new ones.
///
/// Errors: 0A000 where rows lie in partitions by what their labels hash to.
fn renumber(changed: &mut UserType, at: usize, work: &mut Work<'_>) -> Result<()> {
    let hashed = work.catalog.tables().find(|table| {
        let key = table.partitioned_by.as_ref().filter(|key| key.strategy == PartitionStrategy::Hash);
        key.is_some_and(|key| key.types(table).iter().any(|ty| holds_labels(ty.oid, changed, work)))
    });
    if let Some(table) = hashed {
        return Err(SqlError::unsupported(format_args!(
            "one more label between two of enum \"{}\", by which table \"{}\" is hashed",
            changed.name, table.name
        )));
    }
    let is_crowded = |place: usize| place == at || place == at + 1;
    let room = |place| if is_crowded(place) { LABEL_SPACE + CROWDED_SPACE } else { LABEL_SPACE };
    let rooms: Vec<u32> = (0..changed.labels.len()).map(room).collect();
    let mut moved: Vec<(Oid, Oid)> = Vec::with_capacity(changed.labels.len());
    for (label, number) in changed.labels.iter_mut().zip(rising_labels(&rooms, work)) {
        moved.push((std::mem::replace(&mut label.oid, number), number));
    }
    let labels: Arc<[(Oid, Oid)]> = moved.clone().into();
    relabel(&moved, work);
    work.plan.relabelled = moved;
    let tables: Vec<_> = work.catalog.tables().filter(|table| table.is_stored()).cloned().collect();
    for table in tables {
        let visible = table.columns.iter().enumerate().map(|(place, column)| (place, column.ty));
        // What rows hold of the expressions of indexes, too.
        let of_indexes = table.index_expressions().filter_map(|(index, expression)| {
            Some((usize::from(table.stored_place(index.oid, expression.place)?), expression.ty))
        });
        let places: Vec<(usize, Type)> =
            visible.chain(of_indexes).filter(|(_, ty)| holds_labels(ty.oid, changed, work)).collect();
        if places.is_empty() {
            continue;
        }
        let table = work.put_table((*table).clone());
        let mut columns = column_source::sources(&table, &table, column_source::all_kept(&table));
        for (column, ty) in places {
            columns[column] = ColumnSource::Constant(OwnedCell::Null);
            let value = ComputedValue::Relabelled { column, ty, labels: labels.clone() };
            work.compute(Computed { column, ty, not_null: None, once: false, value });
        }
        work.operation(DdlOp::AlterTable { def: table_def(&table), columns });
    }
    Ok(())
}

/// Whether values of a type hold labels of an enum, in whatever depth.
fn holds_labels(ty: Oid, of: &UserType, work: &Work<'_>) -> bool {
    composite::holds(&work.catalog, ty, &|oid| oid == of.oid || oid == of.array_type())
}

pub(crate) fn alter_type(alter: &AlterType, work: &mut Work<'_>) -> Result<()> {
    let known = work.catalog.require_user_type(&alter.name, work.search_path())?;
    work.require_owner(known.oid)?;
    let (mut changed, mut renaming) = ((*known).clone(), None);
    if (known.domain.is_some() || known.attributes.is_some())
        && matches!(alter.action, TypeAction::AddValue { .. } | TypeAction::RenameValue { .. })
    {
        let message = format!("{} is not an enum", known.name);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    match &alter.action {
        TypeAction::AddValue { label, if_not_exists, place } => {
            check_label(label)?;
            if known.label(label).is_some() {
                let message = format!("enum label \"{label}\" already exists");
                if *if_not_exists {
                    work.notice_as(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
                    return Ok(());
                }
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
            }
            add_label(&mut changed, label, place.as_ref(), work)?;
        }
        TypeAction::RenameValue { from, to } => {
            rename_label(&mut changed, from, to)?;
        }
        TypeAction::RenameTo(name) => {
            // The relation that stands for a composite type gets the name first.
            if known.attributes.is_some() && work.catalog.is_relation(&known.schema, name) {
                return Err(change::already_exists(name));
            }
            check_free(&known.schema, name, work)?;
            changed.name = name.clone();
        }
        TypeAction::SetSchema(schema) => {
            namespace::check_move(&known.schema, schema, work)?;
            check_movable(&known, schema, work)?;
            changed.schema = schema.clone();
        }
        TypeAction::OwnerTo(role) => {
            return owner::change(known.oid, Some(&known.schema), role, work);
        }
        TypeAction::Attributes(actions) => {
            let changed = composite::alter(&known, actions, work)?;
            composite::finish(changed, work);
            return composite::check_conditions(&known, actions, work);
        }
        TypeAction::RenameAttribute { from, to } => {
            changed = composite::rename(&known, from, to)?;
            renaming = Some(FieldRenaming { from, to, of_table: false });
        }
    }
    let before = work.catalog.clone();
    if changed.attributes.is_some() {
        composite::finish(changed, work);
    } else {
        work.put(Object::Type(UserTypeRef::new(changed)));
    }
    if let TypeAction::RenameValue { from, to } = &alter.action {
        partition::rename_label(known.oid, from, to, work);
    }
    renaming.map_or(Ok(()), |renaming: FieldRenaming<'_>| renaming.follow(&before, work))
}

/// ADD VALUE: a new label of an enum at its end, or BEFORE or AFTER (true) another one.
fn add_label(
    changed: &mut UserType,
    label: &str,
    place: Option<&(bool, String)>,
    work: &mut Work<'_>,
) -> Result<()> {
    let at = match place {
        None => changed.labels.len(),
        Some((after, neighbour)) => {
            let at = changed.labels.iter().position(|other| other.name == *neighbour);
            at.ok_or_else(|| missing_label(neighbour))? + usize::from(*after)
        }
    };
    let after = matches!(place, Some((true, _)));
    let number = label_number(&changed.labels, at, after, work);
    changed.insert_label(at, number.unwrap_or(Oid(0)), label.to_owned());
    if number.is_none() {
        renumber(changed, at, work)?;
    }
    work.plan.added_labels.push(changed.labels[at].oid);
    Ok(())
}

/// RENAME VALUE.
fn rename_label(changed: &mut UserType, from: &str, to: &str) -> Result<()> {
    check_label(to)?;
    let is_taken = changed.label(to).is_some();
    let label = changed.labels.iter_mut().find(|label| label.name == from);
    let label = label.ok_or_else(|| missing_label(from))?;
    if is_taken {
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, format!("enum label \"{to}\" already exists")));
    }
    label.name = to.to_owned();
    Ok(())
}

fn missing_label(label: &str) -> SqlError {
    let message = format!("\"{label}\" is not an existing enum label");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn drop_types(statement: &Drop, work: &mut Work<'_>) -> Result<()> {
    for name in &statement.names {
        let Some(known) = work.catalog.user_type(name.schema.as_deref(), &name.name, work.search_path())
        else {
            if let Some(schema) = name.schema.as_deref().filter(|schema| !work.catalog.schema_exists(schema))
                && !statement.if_exists
            {
                return Err(undefined_schema(schema));
            }
            if let Some(table) = work.catalog.table(name.schema.as_deref(), &name.name, work.search_path()) {
                let (word, name) =
                    (if table.kind == TableKind::View { "view" } else { "table" }, &table.name);
                return Err(SqlError::new(
                    SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                    format!("cannot drop type {name} because {word} {name} requires it"),
                )
                .with_hint(format!("You can drop {word} {name} instead.")));
            }
            let message = format!("type \"{name}\" does not exist");
            if statement.if_exists {
                work.notice(format!("{message}, skipping"));
                continue;
            }
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        };
        if statement.kind == ObjectWord::Domain && known.domain.is_none() {
            let message = format!("\"{}\" is not a domain", known.name);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        work.require_dropper(known.oid, &known.schema)?;
        drop_type(&known, statement.cascade, work)?;
    }
    Ok(())
}

/// Drops a type; with CASCADE the columns and routines that use it go along.
fn drop_type(known: &UserTypeRef, cascade: bool, work: &mut Work<'_>) -> Result<()> {
    stack::check()?;
    let oids = [known.oid, known.array_type()];
    let uses = |oid: Oid| oids.contains(&oid);
    let (mut dependents, columns) = columns_of(&oids, work);
    let routines = routines_of(&oids, work);
    dependents.extend(routines.iter().cloned().map(Dependent::Routine));
    let domains = domains_over(&oids, work);
    dependents.extend(domains.iter().cloned().map(Dependent::Domain));
    let attributes = composite::attributes_of_type(&oids, known.oid, work);
    dependents.extend(attributes.iter().cloned());
    // Definitions over the columns go with those.
    let mut definitions = dependency::users(ObjectKind::Type, known.oid, work);
    definitions.retain(|user| match user {
        Dependent::View(view) => !view.columns.iter().any(|column| uses(column.declared().oid)),
        Dependent::Domain(of) | Dependent::DomainCheck(of, _) => !domains.iter().any(|ty| ty.oid == of.oid),
        Dependent::Routine(of) => !routines.iter().any(|routine| routine.oid == of.oid),
        user => !dependency::is_over(user, &columns),
    });
    dependents.extend(definitions.iter().cloned());
    let classes = operator_class::users_of_type(&uses, work);
    dependents.extend(classes.iter().cloned());
    let callers = callers_of(&routines, &dependents, &columns, work);
    let staying = work.staying(&dependents);
    if !staying.is_empty() && !cascade {
        return Err(still_used(known, &staying, &callers, work));
    }
    let mark = work.plan.notices.len();
    dependents.extend(callers.into_iter().map(|(user, _)| user));
    cascade::cascade_notice(&dependents, work);
    drop_columns(&columns, work)?;
    work.drop_users(&definitions)?;
    work.drop_users(&attributes)?;
    work.drop_users(&classes)?;
    let views = views_of(&oids, work);
    relation::drop_tables(&views, true, work)?;
    for routine in routines {
        routine_drop::drop_one(&routine, work)?;
    }
    if !domains.is_empty() {
        for domain in domains {
            if work.catalog.user_type_by_oid(domain.oid).is_some() {
                drop_type(&domain, true, work)?;
            }
        }
        // What goes with the domains is told with them.
        let lines = cascade::taken_along(mark, work);
        cascade::notice_of_lines(&lines, work);
    }
    // Comments on attributes are on the relation that stands for a composite type.
    let relation = known.oid.relation_of_row_type();
    if let Some(relation) = relation.filter(|relation| work.catalog.comments(*relation).is_some()) {
        work.drop(ObjectKind::Comments, relation);
    }
    work.drop(ObjectKind::Type, known.oid);
    Ok(())
}

/// The columns of some types, and the views that have some.
fn columns_of(types: &[Oid], work: &Work<'_>) -> (Vec<Dependent>, Vec<(Oid, String)>) {
    let (mut dependents, mut columns) = (Vec::new(), Vec::new());
    for table in work.catalog.tables_saying(types).filter(|table| table.kind != TableKind::System) {
        for (place, column) in table.columns.iter().enumerate() {
            if !types.contains(&column.declared().oid) {
                continue;
            }
            if table.kind == TableKind::View {
                dependents.push(Dependent::View(table.clone()));
                break;
            }
            dependents.push(Dependent::Column(table.clone(), place as u16));
            columns.push((table.oid, column.name.clone()));
        }
    }
    (dependents, columns)
}

/// The routines that take, answer or keep values of some types.
fn routines_of(types: &[Oid], work: &Work<'_>) -> Vec<RoutineRef> {
    let uses = |oid: Oid| types.contains(&oid);
    let is_over = |routine: &&RoutineRef| {
        uses(routine.declared_result().oid)
            || routine.args.iter().any(|arg| uses(arg.declared().oid))
            || routine.aggregate.iter().flat_map(|aggregate| aggregate.states()).any(|ty| uses(ty.oid))
    };
    work.catalog.routines_saying(types).filter(is_over).cloned().collect()
}

/// The domains over some types.
fn domains_over(types: &[Oid], work: &Work<'_>) -> Vec<UserTypeRef> {
    let uses = |oid: Oid| types.contains(&oid);
    let based = |domain: &Domain| uses(domain.base.oid) || domain.parent.is_some_and(uses);
    work.catalog.types_saying(types).filter(|ty| ty.domain.as_ref().is_some_and(based)).cloned().collect()
}

/// The views that have columns of some types.
fn views_of(types: &[Oid], work: &Work<'_>) -> Vec<TableRef> {
    let views = work.catalog.tables_saying(types).filter(|table| table.kind == TableKind::View);
    let has = |view: &&TableRef| view.columns.iter().any(|column| types.contains(&column.declared().oid));
    views.filter(has).cloned().collect()
}

/// The error for a type that is used: what uses it, then what calls the routines among that.
fn still_used(
    known: &UserTypeRef,
    dependents: &[Dependent],
    callers: &[(Dependent, String)],
    work: &Work<'_>,
) -> SqlError {
    let ty = format!("type {}", quote_identifier(&known.name));
    let error = still_depended_on(&ty, dependents, work);
    if callers.is_empty() {
        return error;
    }
    let of_type = dependents.iter().map(|user| format!("{} depends on {ty}", user.describe(work)));
    let of_routines =
        callers.iter().map(|(user, routine)| format!("{} depends on {routine}", user.describe(work)));
    let lines: Vec<String> = of_type.chain(of_routines).collect();
    error.with_detail(lines.join("\n"))
}

/// Drops the columns of a type that goes, and the views that use them.
fn drop_columns(columns: &[(Oid, String)], work: &mut Work<'_>) -> Result<()> {
    for (table, column) in columns {
        let Some(table) = work.catalog.table_by_oid(*table) else { continue };
        if let Some(place) = table.column_index(column) {
            for user in view_query::users_of_column(&table, place, work) {
                work.drop(ObjectKind::Table, user.oid);
            }
        }
        // Policies of its own may have gone with the views.
        let Some(table) = work.catalog.table_by_oid(table.oid) else { continue };
        drop_column::drop_column_of(&table, column, work)?;
    }
    Ok(())
}

/// What calls the routines that go with a type and does not go with the type itself, beside the routine it
/// calls.
fn callers_of(
    routines: &[RoutineRef],
    known: &[Dependent],
    columns: &[(Oid, String)],
    work: &Work<'_>,
) -> Vec<(Dependent, String)> {
    let mut found: Vec<(Dependent, String)> = Vec::new();
    for routine in routines {
        let mut users = dependency::callers(routine, work);
        users.extend(dependency::users(ObjectKind::Routine, routine.oid, work));
        for user in users {
            let is_known = known
                .iter()
                .chain(found.iter().map(|(user, _)| user))
                .any(|other| dependency::is_one(other, &user) && other.object() == user.object());
            if !is_known && !dependency::is_over(&user, columns) {
                found.push((user, format!("function {}", routine_signature(routine, work))));
            }
        }
    }
    found
}

impl Work<'_> {
    /// DROP TYPE and DROP DOMAIN.
    pub(crate) fn drop_types(&mut self, statement: &Drop) -> Result<()> {
        drop_types(statement, self)
    }

    /// Drops a type; with CASCADE the columns and routines that use it go along.
    pub(crate) fn drop_type(&mut self, known: &UserTypeRef, cascade: bool) -> Result<()> {
        drop_type(known, cascade, self)
    }
}
