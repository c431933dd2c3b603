//! DROP OWNED and REASSIGN OWNED (pg_shdepend.c).
//!
//! ```text
//! DROP OWNED BY a, b    1  for each role: what it was given is revoked, policies forget it
//!                       2  what all of them own goes together: what hangs on one of these objects and is
//!                          itself one of them is in nobody's way, and nobody is told of it
//! ```
//!
//! Both are about the objects of the database that one is in, and about the databases themselves, which are
//! everybody's: they change their owner, and rights on them are revoked, but they are not dropped.
//!
//! PostgreSQL revokes in the name of the role in force, as REVOKE does: what another grantor gave stays.
//! What a role says of its new objects goes with it. PostgreSQL 15 stumbles (XX000) where two of the roles
//! speak of each other there; this one does not.

use archipel_sql::ast::OwnedObjects;
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{
    FIRST_OID, ObjectClass, ObjectKind, RoutineRef, SequenceRef, TableKind, TableRef, UserTypeRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::{grant, owner, policy_role};
use crate::drop::cascade::{notice_of_lines, taken_along};
use crate::drop::relation;
use crate::function::routine_drop;
use crate::relation::trigger;
use crate::work::Work;

/// REASSIGN OWNED and DROP OWNED.
pub(crate) fn owned_objects(owned: &OwnedObjects, work: &mut Work<'_>) -> Result<()> {
    let roles = owned.roles.iter().map(|role| work.role(role)).collect::<Result<Vec<Oid>>>()?;
    let verb = if owned.to.is_some() { "reassign" } else { "drop" };
    let denied = || {
        let message = format!("permission denied to {verb} objects");
        SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
    };
    if roles.iter().any(|role| !work.authority().acts_as(*role)) {
        return Err(denied());
    }
    let to = owned.to.as_ref().map(|to| work.role(to)).transpose()?;
    if to.is_some_and(|to| !work.authority().acts_as(to)) {
        return Err(denied());
    }
    if let Some(role) = roles.iter().find(|role| role.0 < FIRST_OID) {
        let what = if to.is_some() { "reassign ownership of" } else { "drop" };
        let message = format!(
            "cannot {what} objects owned by role {} because they are required by the database system",
            work.role_name(*role)
        );
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
    }
    match to {
        Some(to) => reassign(&roles, to, work),
        None => drop_owned(&roles, owned.cascade, work),
    }
}

/// Gives what roles own to another. Tables, sequences and types change hands without a look at the new owner's
/// rights; schemas, routines and databases as by ALTER … OWNER TO.
fn reassign(roles: &[Oid], to: Oid, work: &mut Work<'_>) -> Result<()> {
    let objects = work.catalog.access_all().filter(|access| roles.contains(&access.owner));
    let mut objects: Vec<Oid> = objects.map(|access| access.object).collect();
    objects.sort_unstable();
    for object in objects {
        if work.catalog.owner(object) == to {
            continue;
        }
        match work.catalog.class_of(object) {
            Some(ObjectClass::Schema) => owner::require_change(object, None, to, work)?,
            Some(ObjectClass::Routine) => {
                let schema = work.catalog.routine_by_oid(object).map(|routine| routine.schema.clone());
                owner::require_change(object, schema.as_deref(), to, work)?;
            }
            Some(ObjectClass::Database) => work.authority().require_member(to)?,
            _ => {}
        }
        work.set_owner(object, to);
    }
    Ok(())
}

/// Something that goes with its owner.
enum Belonging {
    Table(TableRef),
    Sequence(SequenceRef),
    Routine(RoutineRef),
    Type(UserTypeRef),
    /// By its name.
    Schema(Oid, String),
}

impl Belonging {
    fn oid(&self) -> Oid {
        match self {
            Belonging::Table(table) => table.oid,
            Belonging::Sequence(sequence) => sequence.oid,
            Belonging::Routine(routine) => routine.oid,
            Belonging::Type(ty) => ty.oid,
            Belonging::Schema(oid, _) => *oid,
        }
    }

    /// In which order kinds go: tables before what their columns are made of, schemas last.
    fn rank(&self) -> u8 {
        match self {
            Belonging::Table(_) => 0,
            Belonging::Sequence(_) => 1,
            Belonging::Routine(_) => 2,
            Belonging::Type(_) => 3,
            Belonging::Schema(..) => 4,
        }
    }

    /// Drops it, if it has not gone with another one.
    fn drop(&self, cascade: bool, work: &mut Work<'_>) -> Result<()> {
        match self {
            Belonging::Table(table) => match work.catalog.table_by_oid(table.oid) {
                Some(table) => relation::drop_tables(&[table], cascade, work),
                None => Ok(()),
            },
            Belonging::Sequence(sequence) => match work.catalog.sequence_by_oid(sequence.oid) {
                Some(sequence) => relation::drop_sequences(&[sequence], cascade, work),
                None => Ok(()),
            },
            Belonging::Routine(routine) => match work.catalog.routine_by_oid(routine.oid) {
                Some(routine) => {
                    trigger::check_callers(&routine, &[], cascade, work)?;
                    routine_drop::drop_one(&routine, work)
                }
                None => Ok(()),
            },
            Belonging::Type(ty) => match work.catalog.user_type_by_oid(ty.oid) {
                Some(ty) => work.drop_type(&ty, cascade),
                None => Ok(()),
            },
            Belonging::Schema(_, name) => relation::drop_schema(name, cascade, work),
        }
    }
}

/// What roles own in the database, in the order in which it is dropped: the newest of a kind first, as that
/// depends on older ones.
fn belongings(roles: &[Oid], work: &Work<'_>) -> Vec<Belonging> {
    let catalog = &work.catalog;
    let mut found = Vec::new();
    for access in catalog.access_all().filter(|access| roles.contains(&access.owner)) {
        let oid = access.object;
        if let Some(table) = catalog.table_by_oid(oid).filter(|table| table.kind != TableKind::System) {
            found.push(Belonging::Table(table));
        } else if let Some(sequence) = catalog.sequence_by_oid(oid) {
            found.push(Belonging::Sequence(sequence));
        } else if let Some(routine) = catalog.routine_by_oid(oid) {
            found.push(Belonging::Routine(routine));
        } else if let Some(ty) = catalog.user_type_by_oid(oid) {
            found.push(Belonging::Type(ty));
        } else if let Some(schema) = catalog.schema_by_oid(oid)
            && !is_temporary_schema(&schema.name)
        {
            found.push(Belonging::Schema(oid, schema.name.clone()));
        }
    }
    found.sort_by_key(|belonging| (belonging.rank(), std::cmp::Reverse(belonging.oid())));
    found
}

fn drop_owned(roles: &[Oid], cascade: bool, work: &mut Work<'_>) -> Result<()> {
    let mut others = 0;
    for role in roles {
        grant::revoke_everything(*role, work)?;
        others += policy_role::forget_role(*role, work);
    }
    for role in roles {
        let entries: Vec<Oid> = work.catalog.default_access_of(*role).map(|entry| entry.oid).collect();
        others += entries.len();
        for entry in entries {
            work.drop(ObjectKind::DefaultAccess, entry);
        }
    }
    let found = belongings(roles, work);
    let count = found.len() + others;
    drop_together(&found, count, cascade, work)
}

/// Drops objects of which none is in another's way. `count` of them are named in PostgreSQL's terms.
fn drop_together(found: &[Belonging], count: usize, cascade: bool, work: &mut Work<'_>) -> Result<()> {
    work.going = found.iter().map(Belonging::oid).collect();
    let mark = work.plan.notices.len();
    let mut along: Vec<(Oid, Vec<String>)> = Vec::new();
    let mut in_the_way: Vec<(Oid, SqlError)> = Vec::new();
    for belonging in found {
        // A column's sequence goes with its table.
        if let Belonging::Sequence(sequence) = belonging
            && sequence.owned_by.is_some_and(|(table, _)| work.going.contains(&table))
        {
            continue;
        }
        match belonging.drop(cascade, work) {
            Ok(()) => along.push((belonging.oid().drawn(), taken_along(mark, work))),
            Err(error) if error.state() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST && !cascade => {
                in_the_way.push((belonging.oid().drawn(), error));
            }
            Err(error) => return Err(error),
        }
    }
    work.going.clear();
    if !in_the_way.is_empty() {
        return Err(still_needed(in_the_way, count));
    }
    along.sort_by_key(|(oid, _)| *oid);
    let mut lines: Vec<String> = Vec::new();
    for line in along.into_iter().flat_map(|(_, lines)| lines) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    notice_of_lines(&lines, work);
    Ok(())
}

/// 2BP01 for objects, by their numbers, that others than these hang on: an error for each of them.
fn still_needed(mut refused: Vec<(Oid, SqlError)>, count: usize) -> SqlError {
    refused.sort_by_key(|(oid, _)| *oid);
    let mut lines: Vec<String> = Vec::new();
    for line in
        refused.iter().flat_map(|(_, error)| error.fields().detail.iter().flat_map(|text| text.lines()))
    {
        let what = |line: &str| line.split(" depends on ").next().unwrap_or_default().to_owned();
        // It is told of once, whatever else it hangs on.
        if !lines.iter().any(|known| what(known) == what(line)) {
            lines.push(line.to_owned());
        }
    }
    let message = match &refused[..] {
        [(_, only)] if count == 1 => only.message().to_owned(),
        _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_detail(lines.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}
