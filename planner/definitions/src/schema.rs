//! Schemas, renaming across kinds, comments.

use std::sync::Arc;

use archipel_sql::ast::{
    AlterTableAction, Comment, CommentObject, CreateSchema, QualifiedName, Rename, RenameAction,
    RenamedObject, Statement,
};
use archipel_sql::catalog::authority::{must_be_owner, undefined_role};
use archipel_sql::catalog::names::{undefined_column, undefined_relation, undefined_schema};
use archipel_sql::catalog::{
    ARCHIPEL, Comments, INFORMATION_SCHEMA, Object, ObjectKind, PG_CATALOG, PUBLIC, Privileges, Relation,
    Routine, RoutineKind, RoutineRef, Schema, SequenceRef, SessionRoles, Table, TableKind,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Oid;

use crate::access::owner;
use crate::expression::rename::follow_routine_name;
use crate::function::{extension_object, routine};
use crate::namespace::check_move;
use crate::relation::{policy, trigger};
use crate::work::{Work, change, is_system_schema};
use crate::{DdlEnv, DdlPlan};

/// The name of a new schema and its owner.
fn name_and_owner(create: &CreateSchema, work: &Work<'_>) -> Result<(String, Oid)> {
    let owner = match &create.authorization {
        Some(role) => work.role(role)?,
        None => work.env.roles.current,
    };
    match (&create.name, &create.authorization) {
        (Some(name), _) => Ok((name.clone(), owner)),
        (None, Some(_)) => Ok((work.role_name(owner), owner)),
        (None, None) => Err(SqlError::internal("CREATE SCHEMA without a name")),
    }
}

/// CREATE SCHEMA with definitions: its owner makes them, and names are looked up in it first.
pub(super) fn plan_with_elements(create: &CreateSchema, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    const TAG: &str = "CREATE SCHEMA";
    let (name, owner) = name_and_owner(create, &Work::new(env, TAG))?;
    let elements = elements_in_order(&create.elements, &name)?;
    let search_path: Vec<String> = std::iter::once(&name)
        .chain(env.search_path.iter().filter(|known| **known != name))
        .cloned()
        .collect();
    let inside = DdlEnv {
        catalog: env.catalog,
        search_path: &search_path,
        context: env.context,
        system: env.system,
        temporary_schema: env.temporary_schema,
        copies: env.copies,
        numbers: env.numbers,
        roles: SessionRoles { current: owner, ..env.roles },
        others: env.others,
    };
    let mut work = Work::new(env, TAG);
    create_schema(create, &mut work)?;
    work.env = &inside;
    for element in &elements {
        work.plan_part(element)?;
    }
    work.check_expressions()?;
    work.finish()
}

/// The definitions within CREATE SCHEMA, each in the new schema, in the order in which they can refer to
/// each other: `transformCreateSchemaStmt`.
fn elements_in_order(elements: &[Statement], schema: &str) -> Result<Vec<Statement>> {
    let mut ordered = Vec::with_capacity(elements.len());
    for element in elements {
        let mut element = element.clone();
        let (rank, name) = match &mut element {
            Statement::CreateSequence(create) => (0, Some(&mut create.name)),
            Statement::CreateTable(create) => (1, Some(&mut create.name)),
            Statement::CreateView(create) => (2, Some(&mut create.name)),
            Statement::CreateIndex(create) => (3, Some(&mut create.table)),
            Statement::CreateTrigger(create) => (4, Some(&mut create.table)),
            _ => (5, None),
        };
        if let Some(name) = name {
            if let Some(other) = name.schema.as_deref().filter(|said| *said != schema) {
                return Err(SqlError::new(
                    SqlState::INVALID_SCHEMA_DEFINITION,
                    format!(
                        "CREATE specifies a schema ({other}) different from the one being created ({schema})"
                    ),
                ));
            }
            name.schema = Some(schema.to_owned());
        }
        ordered.push((rank, element));
    }
    // Stable: within a kind they are made as written.
    ordered.sort_by_key(|(rank, _)| *rank);
    Ok(ordered.into_iter().map(|(_, element)| element).collect())
}

pub(super) fn create_schema(create: &CreateSchema, work: &mut Work<'_>) -> Result<()> {
    let (name, owner) = name_and_owner(create, work)?;
    // A migration writes the rows of the schemas that are there before any row is.
    if let Some(schema) = work.catalog.schema(&name).filter(|_| work.env.system) {
        work.put(Object::Schema((*schema).clone()));
        return Ok(());
    }
    work.require_in_database(Privileges::CREATE)?;
    work.authority().require_member(owner)?;
    if work.catalog.schema_exists(&name) {
        let message = format!("schema \"{name}\" already exists");
        if create.if_not_exists {
            work.notice_as(SqlState::DUPLICATE_SCHEMA, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_SCHEMA, message));
    }
    if name.starts_with("pg_") && !work.env.system {
        return Err(reserved_schema(&name));
    }
    // The schemas every database has keep their oids.
    let oid = match name.as_str() {
        "pg_catalog" => PG_CATALOG,
        "information_schema" => INFORMATION_SCHEMA,
        "archipel" => ARCHIPEL,
        "public" if work.catalog.schema_by_oid(PUBLIC).is_none() => PUBLIC,
        _ => work.oids(1),
    };
    work.put(Object::Schema(Schema { oid, name }));
    if owner != work.env.roles.current {
        let mut access = work.catalog.access_of(oid);
        access.change_owner(owner);
        work.put_access(access);
    }
    Ok(())
}

fn reserved_schema(name: &str) -> SqlError {
    SqlError::new(SqlState::RESERVED_NAME, format!("unacceptable schema name \"{name}\""))
        .with_detail("The prefix \"pg_\" is reserved for system schemas.")
}

pub(super) fn rename(rename: &Rename, work: &mut Work<'_>) -> Result<()> {
    match &rename.object {
        RenamedObject::Schema(name) => rename_schema(name, &rename.action, work),
        RenamedObject::Routine(word, signature) => {
            let found = routine::find(&work.catalog, signature, *word, work.search_path())?;
            if let Err(error) = work.require_owner(found.oid) {
                // Here PostgreSQL names an aggregate as the function that it is.
                let is_aggregate = found.kind == RoutineKind::Aggregate;
                return Err(if is_aggregate { must_be_owner("function", &found.name) } else { error });
            }
            let mut changed = (*found).clone();
            match &rename.action {
                RenameAction::OwnerTo(role) => {
                    return owner::change(found.oid, Some(&found.schema), role, work);
                }
                RenameAction::Clauses(_) if found.kind == RoutineKind::Aggregate => {
                    return Err(routine::is_aggregate(&found));
                }
                RenameAction::Clauses(clauses) => {
                    routine::check_leakproof(clauses, work)?;
                    routine::apply_clauses(&mut changed, clauses, work.env.context.session)?;
                    changed.version += 1;
                    let changed = Arc::new(changed);
                    work.plan.routines.push(changed.clone());
                    work.put(Object::Routine(changed));
                    return Ok(());
                }
                RenameAction::RenameTo(name) => {
                    changed.name = name.clone();
                    follow_routine_name(&found, &mut changed, work)?;
                }
                RenameAction::SetSchema(schema) => {
                    check_move(&found.schema, schema, work)?;
                    changed.schema = schema.clone();
                }
            }
            replace_routine(changed, work)
        }
    }
}

/// Puts a renamed routine.
fn replace_routine(mut changed: Routine, work: &mut Work<'_>) -> Result<()> {
    let types = changed.input_types();
    if work.catalog.routine_in(&changed.schema, &changed.name, &types).is_some() {
        let types: Vec<String> = types.into_iter().map(|ty| work.type_name(ty)).collect();
        let message = format!(
            "function {}({}) already exists in schema \"{}\"",
            changed.name,
            types.join(", "),
            changed.schema
        );
        return Err(SqlError::new(SqlState::DUPLICATE_FUNCTION, message));
    }
    changed.version += 1;
    work.put(Object::Routine(Arc::new(changed)));
    Ok(())
}

/// A routine into another schema.
pub(super) fn move_routine(found: &RoutineRef, schema: &str, work: &mut Work<'_>) -> Result<()> {
    let mut changed = (**found).clone();
    changed.schema = schema.to_owned();
    replace_routine(changed, work)
}

fn rename_schema(name: &str, action: &RenameAction, work: &mut Work<'_>) -> Result<()> {
    let schema = work.catalog.schema(name).ok_or_else(|| undefined_schema(name))?;
    work.require_owner(schema.oid)?;
    let to = match action {
        RenameAction::OwnerTo(role) => return owner::change(schema.oid, None, role, work),
        RenameAction::Clauses(_) => return Err(SqlError::internal("clauses of a routine for a schema")),
        RenameAction::SetSchema(_) => return Err(SqlError::unsupported("ALTER SCHEMA … SET SCHEMA")),
        RenameAction::RenameTo(to) => to,
    };
    if is_system_schema(name) {
        return Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to rename system schema \"{name}\""),
        ));
    }
    if work.catalog.schema_exists(to) {
        return Err(SqlError::new(SqlState::DUPLICATE_SCHEMA, format!("schema \"{to}\" already exists")));
    }
    if to.starts_with("pg_") {
        return Err(reserved_schema(to));
    }
    let types: Vec<_> = work.catalog.user_types().filter(|ty| ty.schema == name).cloned().collect();
    for ty in types {
        let mut changed = (*ty).clone();
        changed.schema = to.clone();
        work.put(Object::Type(Arc::new(changed)));
    }
    let tables: Vec<_> = work.catalog.tables().filter(|table| table.schema == name).cloned().collect();
    let sequences: Vec<_> = work.catalog.sequences().filter(|seq| seq.schema == name).cloned().collect();
    let routines: Vec<_> = work.catalog.routines_all().filter(|r| r.schema == name).cloned().collect();
    work.put(Object::Schema(Schema { oid: schema.oid, name: to.clone() }));
    for table in tables {
        let mut changed = (*table).clone();
        changed.schema = to.clone();
        work.put_table(changed);
    }
    for sequence in sequences {
        let mut changed = (*sequence).clone();
        changed.schema = to.clone();
        work.put_sequence(changed);
    }
    for found in routines {
        let mut changed = (*found).clone();
        changed.schema = to.clone();
        changed.version += 1;
        work.put(Object::Routine(Arc::new(changed)));
    }
    let classes: Vec<_> = work.catalog.operator_classes().filter(|c| c.schema == name).cloned().collect();
    for class in classes {
        let mut changed = (*class).clone();
        changed.schema = to.clone();
        work.put(Object::OperatorClass(Arc::new(changed)));
    }
    let families: Vec<_> = work.catalog.operator_families().filter(|f| f.schema == name).cloned().collect();
    for family in families {
        let mut changed = (*family).clone();
        changed.schema = to.clone();
        work.put(Object::OperatorFamily(Arc::new(changed)));
    }
    Ok(())
}

/// 42809 for an action of ALTER TABLE on a relation of a kind that it is not for.
pub(super) fn misplaced(action: &str, relation: &str, kind: &str) -> SqlError {
    let message = format!("ALTER action {action} cannot be performed on relation \"{relation}\"");
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .with_detail(format!("This operation is not supported for {kind}."))
}

/// ALTER SEQUENCE … RENAME TO, SET SCHEMA, OWNER TO, SET { LOGGED | UNLOGGED }.
pub(super) fn alter_sequence_name(
    sequence: &SequenceRef,
    action: &AlterTableAction,
    work: &mut Work<'_>,
) -> Result<()> {
    let mut changed = (**sequence).clone();
    match action {
        AlterTableAction::OwnerTo(role) => {
            return owner::change(sequence.oid, Some(&sequence.schema), role, work);
        }
        AlterTableAction::RenameTo(name) => changed.name = name.clone(),
        AlterTableAction::SetPersistence(persistence) => {
            change::check_persistent(&sequence.name, sequence.persistence)?;
            changed.persistence = *persistence;
            work.put_sequence(changed);
            return Ok(());
        }
        AlterTableAction::SetTablespace(_) => {
            return Err(misplaced("SET TABLESPACE", &sequence.name, "sequences"));
        }
        AlterTableAction::SetAccessMethod(_) => {
            return Err(misplaced("SET ACCESS METHOD", &sequence.name, "sequences"));
        }
        AlterTableAction::SetSchema(schema) => {
            check_move(&sequence.schema, schema, work)?;
            if sequence.owned_by.is_some() {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot move an owned sequence into another schema",
                ));
            }
            changed.schema = schema.clone();
        }
        _ => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table", sequence.name),
            ));
        }
    }
    if work.catalog.is_relation(&changed.schema, &changed.name) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{}\" already exists", changed.name),
        ));
    }
    work.put_sequence(changed);
    Ok(())
}

/// ALTER TABLE … SET SCHEMA: the table with its indexes and owned sequences.
pub(super) fn move_table(mut table: Table, schema: &str, work: &mut Work<'_>) -> Result<()> {
    check_move(&table.schema, schema, work)?;
    if table.schema == schema {
        return Ok(());
    }
    let mut names = vec![table.name.clone()];
    names.extend(table.primary_key.iter().map(|key| key.name.clone()));
    names.extend(table.indexes.iter().map(|index| index.name.clone()));
    names.extend(table.nominal.indexes.iter().map(|nominal| nominal.index.name.clone()));
    let owned = work.catalog.owned_sequences(table.oid);
    names.extend(owned.iter().map(|sequence| sequence.name.clone()));
    if let Some(taken) = names.iter().find(|name| work.catalog.is_relation(schema, name)) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{taken}\" already exists in schema \"{schema}\""),
        ));
    }
    table.schema = schema.to_string();
    let oid = table.oid;
    work.put_table(table);
    for sequence in owned {
        let mut changed = (*sequence).clone();
        changed.schema = schema.to_string();
        work.put_sequence(changed);
    }
    change::touch(oid, work);
    Ok(())
}

pub(super) fn comment(comment: &Comment, work: &mut Work<'_>) -> Result<()> {
    let target = comment_target(&comment.object, work);
    // A dump that is restored under another name speaks of the database it came from.
    if let (CommentObject::Database(_), Err(undefined)) = (&comment.object, &target) {
        work.notice_as(undefined.state(), undefined.message());
        return Ok(());
    }
    let (oid, column) = target?;
    check_commenter(&comment.object, oid, work)?;
    let is_shared = is_of_shared(&comment.object);
    let known = if is_shared { work.catalog.shared_comments(oid) } else { work.catalog.comments(oid) };
    let is_known = known.is_some();
    let mut comments =
        known.map_or_else(|| Comments { object: oid, texts: Vec::new() }, |comments| (*comments).clone());
    comments.texts.retain(|(at, _)| *at != column);
    if let Some(text) = comment.text.as_ref().filter(|text| !text.is_empty()) {
        comments.texts.push((column, text.clone()));
    }
    if comments.texts.is_empty() {
        if is_known {
            let kind = if is_shared { ObjectKind::SharedComments } else { ObjectKind::Comments };
            work.drop(kind, oid);
        }
    } else {
        work.put(if is_shared { Object::SharedComments(comments) } else { Object::Comments(comments) });
    }
    Ok(())
}

/// Whether a comment is kept with what all databases share.
fn is_of_shared(object: &CommentObject) -> bool {
    matches!(object, CommentObject::Role(_) | CommentObject::Database(_))
}

/// Whoever owns an object may speak of it.
fn check_commenter(object: &CommentObject, oid: Oid, work: &Work<'_>) -> Result<()> {
    match object {
        CommentObject::Constraint { table, .. }
        | CommentObject::Trigger { table, .. }
        | CommentObject::Policy { table, .. } => {
            let table = work.catalog.require_table(table, work.search_path())?;
            work.require_owner_of_part(&table)
        }
        CommentObject::DomainConstraint { domain, .. } => {
            let domain = work.catalog.require_user_type(domain, work.search_path())?;
            work.require_owner(domain.oid)
        }
        CommentObject::Index(name) => {
            let index = work.catalog.require_relation(name, work.search_path())?;
            work.require_relation_owner(&index)
        }
        // PostgreSQL names the kind of a column's or a constraint's relation no closer.
        CommentObject::Column(..)
            if work.catalog.table_of_row_type(Oid::row_type_of(oid)).is_some_and(|of| {
                let owned = if of.kind == TableKind::Composite { of.row_type() } else { of.oid };
                work.authority().owns(owned)
            }) =>
        {
            Ok(())
        }
        CommentObject::Column(name, _) if !work.env.system && !work.authority().owns(oid) => {
            Err(must_be_owner("relation", &name.name))
        }
        CommentObject::Extension(name) => {
            extension_object::require_owner(extension_object::require(name, work)?, work)
        }
        CommentObject::Role(_) => require_role_maker(oid, work),
        _ => work.require_owner(oid),
    }
}

/// 42501 unless the role in force may say something of a role: of superusers they alone may.
fn require_role_maker(role: Oid, work: &Work<'_>) -> Result<()> {
    let denied = |told: &str| Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, told));
    let is_superusers = work.catalog.role_by_oid(role).is_some_and(|role| role.superuser);
    match work.authority() {
        authority if is_superusers && !authority.is_superuser() => denied("must be superuser"),
        authority if !authority.creates_roles() => denied("must have CREATEROLE privilege"),
        _ => Ok(()),
    }
}

/// The object of a comment and, for a column, its one-based number.
fn comment_target(object: &CommentObject, work: &Work<'_>) -> Result<(Oid, u16)> {
    let relation = |name: &QualifiedName| work.catalog.require_relation(name, work.search_path());
    let wrong = |name: &QualifiedName, what: &str| {
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {what}", name.name))
    };
    match object {
        CommentObject::Table(name) => match relation(name)? {
            Relation::Table(table) if table.kind != TableKind::View => Ok((table.oid, 0)),
            _ => Err(wrong(name, "a table")),
        },
        CommentObject::View(name) => match relation(name)? {
            Relation::Table(table) if table.kind == TableKind::View => Ok((table.oid, 0)),
            _ => Err(wrong(name, "a view")),
        },
        CommentObject::Index(name) => match relation(name)? {
            found @ (Relation::Index(..) | Relation::PrimaryKey(_) | Relation::Nominal(..)) => {
                Ok((found.oid(), 0))
            }
            _ => Err(wrong(name, "an index")),
        },
        CommentObject::Sequence(name) => match relation(name)? {
            Relation::Sequence(sequence) => Ok((sequence.oid, 0)),
            _ => Err(wrong(name, "a sequence")),
        },
        CommentObject::Type(name) => {
            work.catalog.require_user_type(name, work.search_path()).map(|ty| (ty.oid, 0))
        }
        CommentObject::Column(name, column)
            if work.catalog.relation(name.schema.as_deref(), &name.name, work.search_path()).is_none()
                && work
                    .catalog
                    .user_type(name.schema.as_deref(), &name.name, work.search_path())
                    .is_some() =>
        {
            let ty = work.catalog.require_user_type(name, work.search_path())?;
            let Some(relation) = ty.relation() else { return Err(undefined_relation(name)) };
            let place = relation.column_index(column).ok_or_else(|| undefined_column(column, &ty.name))?;
            Ok((relation.oid, place + 1))
        }
        CommentObject::Column(name, column) => {
            let table = work.catalog.require_table(name, work.search_path())?;
            let place = table.column_index(column).ok_or_else(|| undefined_column(column, &table.name))?;
            Ok((table.oid, place + 1))
        }
        CommentObject::Constraint { name, table } => {
            let table = work.catalog.require_table(table, work.search_path())?;
            constraint_oid(&table, name).map(|oid| (oid, 0)).ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
                )
            })
        }
        CommentObject::Trigger { name, table } => {
            let table = work.catalog.require_table(table, work.search_path())?;
            let trigger = table.trigger(name).map(|trigger| (trigger.oid, 0));
            trigger.ok_or_else(|| trigger::undefined_trigger(name, &table))
        }
        CommentObject::Policy { name, table } => {
            let table = work.catalog.require_table(table, work.search_path())?;
            let policy = table.policy(name).map(|policy| (policy.oid, 0));
            policy.ok_or_else(|| policy::undefined_policy(name, &table))
        }
        CommentObject::DomainConstraint { name, domain } => {
            let ty = work.catalog.require_user_type(domain, work.search_path())?;
            let mut checks = ty.domain.iter().flat_map(|domain| &domain.checks);
            let found = checks.find(|check| check.name == *name).map(|check| (check.oid, 0));
            found.ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("constraint \"{name}\" for domain {domain} does not exist"),
                )
            })
        }
        CommentObject::Schema(name) => {
            work.catalog.schema(name).map(|schema| (schema.oid, 0)).ok_or_else(|| undefined_schema(name))
        }
        CommentObject::Extension(name) => extension_object::require(name, work).map(|known| (known.oid, 0)),
        CommentObject::Role(name) => {
            work.catalog.role(name).map(|role| (role.oid, 0)).ok_or_else(|| undefined_role(name))
        }
        CommentObject::Database(name) => work.database(name).map(|database| (database, 0)),
        CommentObject::Routine(word, signature) => {
            routine::find(&work.catalog, signature, *word, work.search_path()).map(|routine| (routine.oid, 0))
        }
    }
}

fn constraint_oid(table: &Table, name: &str) -> Option<Oid> {
    let keys = table.primary_key.iter().filter(|key| key.name == name).map(|key| key.constraint_oid());
    let uniques =
        table.indexes.iter().filter(|index| index.name == name).filter_map(|index| index.constraint_oid());
    let checks = table.checks.iter().filter(|check| check.name == name).map(|check| check.oid);
    let foreign = table.foreign_keys.iter().filter(|key| key.name == name).map(|key| key.oid);
    keys.chain(uniques).chain(checks).chain(foreign).next()
}
