//! CREATE, ALTER and DROP OPERATOR FAMILY (opclasscmds.c).

use std::sync::Arc;

use archipel_sql::ast::{
    AlterOperatorFamily, ClassItem, CreateOperatorFamily, DropOperatorClass, FamilyAction, FamilyMember,
    RenameAction,
};
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::operator_class::{OperatorClass, OperatorFamily, OperatorFamilyRef};
use archipel_sql::catalog::{Object, ObjectKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};

use super::access_method::method_named;
use super::create_operator_class::{add_item, drop_one as drop_class, pair_of};
use super::family_lookup::{check_owner, classes, require};
use super::operator_class::users;
use crate::drop::cascade::cascade_notice;
use crate::namespace;
use crate::work::Work;

pub(crate) fn create_operator_family(create: &CreateOperatorFamily, work: &mut Work<'_>) -> Result<()> {
    let schema = work.target_schema(&create.name)?;
    let method = method_named(&create.method)?.name;
    if !work.env.system && !work.authority().is_superuser() {
        let message = "must be superuser to create an operator family";
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    let name = &create.name.name;
    if work.catalog.operator_family(Some(&schema), name, method, &[]).is_some() {
        let message = format!("operator family \"{name}\" for access method \"{method}\" already exists");
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    let family = OperatorFamily {
        oid: work.oids(1),
        schema,
        name: name.clone(),
        method: method.to_owned(),
        operators: Vec::new(),
        functions: Vec::new(),
    };
    work.put(Object::OperatorFamily(Arc::new(family)));
    Ok(())
}

/// Families are superusers'.
fn require_owner(family: &OperatorFamily, work: &Work<'_>) -> Result<()> {
    if work.env.system || work.authority().is_superuser() {
        return Ok(());
    }
    let message = format!("must be owner of operator family {}.{}", family.method, family.name);
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

pub(crate) fn alter_operator_family(alter: &AlterOperatorFamily, work: &mut Work<'_>) -> Result<()> {
    let family = require(&alter.name, &alter.method, work)?;
    require_owner(&family, work)?;
    match &alter.action {
        FamilyAction::Add(items) => add(&family, items, work),
        FamilyAction::Drop(members) => take_out(&family, members, work),
        FamilyAction::Change(action) => change(&family, action, work),
    }
}

fn add(family: &OperatorFamilyRef, items: &[ClassItem], work: &mut Work<'_>) -> Result<()> {
    let method = method_named(&family.method)?;
    let syntax = |message: &str| Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    // The rules are those of a class that has no type.
    let mut added = OperatorClass {
        oid: Oid(0),
        schema: family.schema.clone(),
        name: family.name.clone(),
        method: family.method.clone(),
        input: Type::of(Oid(0)),
        default: false,
        operators: Vec::new(),
        functions: Vec::new(),
        in_family: Some(family.oid),
    };
    for item in items {
        match item {
            ClassItem::Storage(_) => return syntax("STORAGE cannot be specified in ALTER OPERATOR FAMILY"),
            ClassItem::Operator { types, .. } if types.is_empty() => {
                return syntax("operator argument types must be specified in ALTER OPERATOR FAMILY");
            }
            item => add_item(item, method, &mut added, work)?,
        }
    }
    let others = classes(family.oid, work);
    let exists = |what: &str, (number, left, right): (i16, Oid, Oid)| {
        let (left, right) = (work.type_name(left), work.type_name(right));
        let name = &family.name;
        let message = format!("{what} {number}({left},{right}) already exists in operator family \"{name}\"");
        Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message))
    };
    for of in &added.operators {
        let own = (of.strategy, of.left, of.right);
        let mut all = others.iter().flat_map(|other| &other.operators).chain(&family.operators);
        if all.any(|other| (other.strategy, other.left, other.right) == own) {
            return exists("operator", own);
        }
    }
    for of in &added.functions {
        let own = (of.number, of.left, of.right);
        let mut all = others.iter().flat_map(|other| &other.functions).chain(&family.functions);
        if all.any(|other| (other.number, other.left, other.right) == own) {
            return exists("function", own);
        }
    }
    let mut changed = (**family).clone();
    changed.operators.append(&mut added.operators);
    changed.functions.append(&mut added.functions);
    work.put(Object::OperatorFamily(Arc::new(changed)));
    Ok(())
}

fn take_out(family: &OperatorFamilyRef, members: &[FamilyMember], work: &mut Work<'_>) -> Result<()> {
    let mut changed = (**family).clone();
    for FamilyMember { function, number, types } in members {
        let (left, right) = pair_of(types, Type::of(Oid(0)), work)?;
        let found = match function {
            true => {
                let place = changed
                    .functions
                    .iter()
                    .position(|of| (i64::from(of.number), of.left, of.right) == (*number, left, right));
                place.map(|place| drop_member(&mut changed.functions, place))
            }
            false => {
                let place = changed
                    .operators
                    .iter()
                    .position(|of| (i64::from(of.strategy), of.left, of.right) == (*number, left, right));
                place.map(|place| drop_member(&mut changed.operators, place))
            }
        };
        if found.is_some() {
            continue;
        }
        let what = if *function { "function" } else { "operator" };
        let of_class = classes(family.oid, work).into_iter().find(|class| match function {
            true => class
                .functions
                .iter()
                .any(|of| (i64::from(of.number), of.left, of.right) == (*number, left, right)),
            false => class
                .operators
                .iter()
                .any(|of| (i64::from(of.strategy), of.left, of.right) == (*number, left, right)),
        });
        if let Some(class) = of_class {
            let what = format_args!("dropping {what} {number} of operator class {}", class.name);
            return Err(SqlError::unsupported(what));
        }
        let (left, right) = (work.type_name(left), work.type_name(right));
        let name = &family.name;
        let message = format!("{what} {number}({left},{right}) does not exist in operator family \"{name}\"");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    }
    // A partition's rows lie where the functions say.
    let mut users_of_it = Vec::new();
    for class in classes(family.oid, work) {
        if changed.functions.len() < family.functions.len() {
            users_of_it.extend(users(&class, work));
        }
    }
    if !users_of_it.is_empty() {
        return Err(SqlError::unsupported("dropping a function of an operator family that partitions use"));
    }
    work.put(Object::OperatorFamily(Arc::new(changed)));
    Ok(())
}

fn drop_member<T>(members: &mut Vec<T>, place: usize) {
    members.remove(place);
}

fn change(family: &OperatorFamilyRef, action: &RenameAction, work: &mut Work<'_>) -> Result<()> {
    let mut changed = (**family).clone();
    match action {
        RenameAction::RenameTo(name) => changed.name = name.clone(),
        RenameAction::SetSchema(schema) => {
            namespace::check_move(&family.schema, schema, work)?;
            changed.schema = schema.clone();
            if changed.schema == family.schema {
                return Ok(());
            }
        }
        RenameAction::OwnerTo(role) => return check_owner(role, "FAMILY", work),
        RenameAction::Clauses(_) => return Err(SqlError::internal("clauses of an operator family")),
    }
    let (schema, name, method) = (&changed.schema, &changed.name, &changed.method);
    if work.catalog.operator_family(Some(schema), name, method, &[]).is_some() {
        let message = format!(
            "operator family \"{name}\" for access method \"{method}\" already exists in schema \"{schema}\""
        );
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    work.put(Object::OperatorFamily(Arc::new(changed)));
    Ok(())
}

pub(crate) fn drop_operator_family(statement: &DropOperatorClass, work: &mut Work<'_>) -> Result<()> {
    let family = match require(&statement.name, &statement.method, work) {
        Ok(family) => family,
        Err(error) if statement.if_exists && method_named(&statement.method).is_ok() => {
            work.notice(format!("{}, skipping", error.message()));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    require_owner(&family, work)?;
    // Its classes go with it, but not what uses them.
    let mut cascaded: Vec<Dependent> = Vec::new();
    for class in classes(family.oid, work) {
        let users = users(&class, work);
        if !users.is_empty() && !statement.cascade {
            let mut error = still_depended_on(&family.describe(), &users, work);
            if let Some(detail) = &mut error.fields_mut().detail {
                *detail = detail.replace(&family.describe(), &class.describe());
            }
            return Err(error);
        }
        cascaded.extend(users);
    }
    if !cascaded.is_empty() {
        cascade_notice(&cascaded, work);
    }
    drop_one(&family, work)
}

/// Drops a family, its classes, and the tables whose partitions those tell.
pub(crate) fn drop_one(family: &OperatorFamilyRef, work: &mut Work<'_>) -> Result<()> {
    for class in classes(family.oid, work) {
        drop_class(&class, work)?;
    }
    work.drop(ObjectKind::OperatorFamily, family.oid);
    Ok(())
}
