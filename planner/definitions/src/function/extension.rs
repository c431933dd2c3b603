//! Extensions: their functions, made and dropped together.

use archipel_sql::ast::{
    AlterExtension, AlterExtensionAction, CreateExtension, DropExtension, RoutineSignature, RoutineWord,
};
use archipel_sql::catalog::dependency::routine_signature;
use archipel_sql::catalog::extension::{Extension, find};
use archipel_sql::catalog::names::undefined_schema;
use archipel_sql::catalog::{Comments, Object, ObjectKind, Privileges, RoutineKind, RoutineRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::extension_object::{require, require_owner};
use super::{routine, routine_drop};
use crate::drop::{cascade, dependency};
use crate::work::Work;
use crate::{namespace, schema};

pub(crate) fn create(create: &CreateExtension, work: &mut Work<'_>) -> Result<()> {
    let name = &create.name;
    let known = find(name);
    if known.is_some_and(|known| work.catalog.extension_schema(known).is_some()) {
        let message = format!("extension \"{name}\" already exists");
        if create.if_not_exists {
            work.notice_as(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    let Some(extension) = known else {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("extension \"{name}\" is not available"),
        )
        .with_detail(format!(
            "Could not open extension control file \"/usr/share/postgresql/15/extension/{name}.control\": No such file or directory."
        ))
        .with_hint("The extension must first be installed on the system where PostgreSQL is running."));
    };
    if let Some(version) = create.version.as_deref().filter(|version| *version != extension.version) {
        return Err(no_version(name, version));
    }
    let denied = work.require_in_database(Privileges::CREATE).is_err();
    if denied && !work.env.system {
        let message = format!("permission denied to create extension \"{name}\"");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .with_hint("Must have CREATE privilege on current database to create this extension."));
    }
    let schema = match &create.schema {
        Some(schema) if !work.catalog.schema_exists(schema) => return Err(undefined_schema(schema)),
        Some(schema) => schema.clone(),
        None => work.catalog.creation_schema(work.search_path())?,
    };
    work.extension = Some(name.clone());
    for statement in archipel_sql::parser::parse(&extension.script(&schema))? {
        work.plan_part(&statement.statement)?;
    }
    work.extension = None;
    let texts = vec![(0, extension.comment.to_owned())];
    work.put(Object::Comments(Comments { object: extension.oid, texts }));
    Ok(())
}

fn no_version(name: &str, version: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("extension \"{name}\" has no installation script nor update path for version \"{version}\""),
    )
}

pub(crate) fn alter(alter: &AlterExtension, work: &mut Work<'_>) -> Result<()> {
    let extension = require(&alter.name, work)?;
    require_owner(extension, work)?;
    let version = match &alter.action {
        AlterExtensionAction::Update(version) => version,
        AlterExtensionAction::SetSchema(schema) => return set_schema(extension, schema, work),
        AlterExtensionAction::Add(word, signature) => return add(extension, (*word, signature), work),
        AlterExtensionAction::Drop(word, signature) => return take_out(extension, (*word, signature), work),
    };
    if let Some(version) = version.as_deref().filter(|version| *version != extension.version) {
        let (name, from) = (extension.name, extension.version);
        let message = format!(
            "extension \"{name}\" has no update path from version \"{from}\" to version \"{version}\""
        );
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    work.notice(format!(
        "version \"{}\" of extension \"{}\" is already installed",
        extension.version, extension.name
    ));
    Ok(())
}

/// Moves all that belongs to it.
fn set_schema(extension: &Extension, schema: &str, work: &mut Work<'_>) -> Result<()> {
    if !work.catalog.schema_exists(schema) {
        return Err(undefined_schema(schema));
    }
    if extension.is_built_in() {
        let message = format!("extension \"{}\" does not support SET SCHEMA", extension.name);
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    namespace::check_target(schema, work)?;
    if work.catalog.extension_schema(extension).as_deref() == Some(schema) {
        return Ok(());
    }
    for member in work.catalog.extension_members(extension.name) {
        if member.schema != schema {
            schema::move_routine(&member, schema, work)?;
        }
    }
    Ok(())
}

/// 55000.
fn not_as_it_is(message: String) -> SqlError {
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

/// The routine that ALTER EXTENSION … ADD or DROP names, and how messages call it.
fn named_routine(
    (word, signature): (RoutineWord, &RoutineSignature),
    work: &Work<'_>,
) -> Result<(RoutineRef, String)> {
    let found = routine::find(&work.catalog, signature, word, work.search_path())?;
    work.require_owner(found.oid)?;
    let kind = if found.kind == RoutineKind::Procedure { "procedure" } else { "function" };
    let called = format!("{kind} {}", routine_signature(&found, work));
    Ok((found, called))
}

fn add(extension: &Extension, named: (RoutineWord, &RoutineSignature), work: &mut Work<'_>) -> Result<()> {
    let (found, called) = named_routine(named, work)?;
    if let Some(of) = &found.traits.extension {
        return Err(not_as_it_is(format!("{called} is already a member of extension \"{of}\"")));
    }
    if extension.is_built_in() {
        return Err(SqlError::unsupported(format_args!("ALTER EXTENSION {} ADD", extension.name)));
    }
    belongs_to(&found, Some(extension.name), work);
    Ok(())
}

fn take_out(
    extension: &Extension,
    named: (RoutineWord, &RoutineSignature),
    work: &mut Work<'_>,
) -> Result<()> {
    let (found, called) = named_routine(named, work)?;
    if found.traits.extension.as_deref() != Some(extension.name) {
        return Err(not_as_it_is(format!("{called} is not a member of extension \"{}\"", extension.name)));
    }
    // It is there while one of its functions is.
    if work.catalog.extension_members(extension.name).len() == 1 {
        return Err(SqlError::unsupported(format_args!(
            "ALTER EXTENSION {} DROP of its last function",
            extension.name
        )));
    }
    belongs_to(&found, None, work);
    Ok(())
}

fn belongs_to(routine: &RoutineRef, extension: Option<&str>, work: &mut Work<'_>) {
    let mut changed = (**routine).clone();
    changed.traits.extension = extension.map(str::to_owned);
    changed.version += 1;
    work.put(Object::Routine(changed.into()));
}

pub(crate) fn drop_extensions(statement: &DropExtension, work: &mut Work<'_>) -> Result<()> {
    for name in &statement.names {
        match require(name, work) {
            Ok(extension) => drop_one(extension, statement.cascade, work)?,
            Err(_) if statement.if_exists => {
                work.notice(format!("extension \"{name}\" does not exist, skipping"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn drop_one(extension: &Extension, cascade: bool, work: &mut Work<'_>) -> Result<()> {
    require_owner(extension, work)?;
    if extension.is_built_in() {
        return Err(SqlError::unsupported(format_args!("DROP EXTENSION {}", extension.name)));
    }
    let members = work.catalog.extension_members(extension.name);
    let is_member = |oid: Oid| members.iter().any(|member| member.oid == oid);
    let mut users = Vec::new();
    let mut lines = Vec::new();
    for member in &members {
        let mut of_member = dependency::callers(member, work);
        of_member.extend(dependency::users(ObjectKind::Routine, member.oid, work));
        for user in of_member.into_iter().filter(|user| !is_member(user.object().1)) {
            lines.push(format!(
                "{} depends on function {}",
                user.describe(work),
                routine_signature(member, work)
            ));
            users.push(user);
        }
    }
    if !users.is_empty() && !cascade {
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop extension {} because other objects depend on it", extension.name),
        )
        .with_detail(lines.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    if !users.is_empty() {
        cascade::cascade_notice(&users, work);
    }
    for member in &members {
        let known: Option<RoutineRef> = work.catalog.routine_by_oid(member.oid);
        if let Some(member) = known {
            routine_drop::drop_one(&member, work)?;
        }
    }
    if work.catalog.comments(extension.oid).is_some() {
        work.drop(ObjectKind::Comments, extension.oid);
    }
    Ok(())
}
