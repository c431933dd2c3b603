//! CREATE and ALTER DOMAIN.
//!
//! Values do not know that they are of a domain: its conditions are part of the plans that make
//! such values. So whoever changes them gives the tables a new layout version and the routines a
//! new version, and both are compiled anew.

use std::sync::Arc;

use archipel_sql::ast::{AlterDomain, ColumnConstraintKind, CreateDomain, DomainAction, Expression};
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::user_type::Domain;
use archipel_sql::catalog::{Check, Object, Table, TableKind, UserType, UserTypeRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};

use super::composite;
use super::domain_form::{compile_anew, forms, is_one};
use super::type_name::{check_free, check_movable};
use crate::access::owner;
use crate::bind::domain::check_domain_condition;
use crate::bind::modify::check_domain_default;
use crate::bind::stored_expression::About;
use crate::bind::{BindEnv, Clause};
use crate::expression::{check, stored_expression};
use crate::relation::collation::check_collatable;
use crate::relation::table::{check_collation, column_collation};
use crate::work::Work;
use crate::{namespace, work};

pub(crate) fn create_domain(create: &CreateDomain, work: &mut Work<'_>) -> Result<()> {
    let schema = work.any_target(&create.name)?;
    let name = &create.name.name;
    check_free(&schema, name, work)?;
    work.require_lookup(&create.ty)?;
    // PostgreSQL tells no place in this statement.
    let (base, parent) =
        work.catalog.resolve_declared(&create.ty, work.search_path()).map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })?;
    let stored = base.oid.innermost_kind().is_some() || base.oid.0 < archipel_sql::catalog::FIRST_OID;
    if !stored
        || create.ty.setof
        || archipel_sql::type_table::type_info(base.oid).is_some_and(|t| t.kind == b'p')
    {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("\"{}\" is not a valid base type for a domain", create.ty),
        )
        .at(create.ty.name.at()));
    }
    work.require_type(base, parent)?;
    let placeless = |mut error: SqlError| {
        error.fields_mut().position = None;
        error
    };
    check_collation(create.collation.as_ref()).map_err(placeless)?;
    if create.collation.is_some() {
        check_collatable(base, work)?;
    }
    let mut domain = Domain {
        base,
        parent,
        not_null: false,
        default: None,
        checks: Vec::new(),
        owns_default: true,
        collation: column_collation(create.collation.as_ref(), parent, work),
    };
    let (mut said_null, mut said_default) = (None, false);
    let twice = |message: &str| Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    for constraint in &create.constraints {
        match &constraint.kind {
            ColumnConstraintKind::NotNull | ColumnConstraintKind::Null => {
                let not_null = constraint.kind == ColumnConstraintKind::NotNull;
                if said_null.is_some_and(|said| said != not_null) {
                    return twice("conflicting NULL/NOT NULL constraints");
                }
                said_null = Some(not_null);
                domain.not_null = not_null;
            }
            ColumnConstraintKind::Default(default) => {
                if said_default {
                    return twice("multiple default expressions");
                }
                said_default = true;
                domain.default = Some(checked_default(default, base, work)?);
            }
            ColumnConstraintKind::Check(condition) => {
                let check = make_check(name, &domain, constraint.name.as_deref(), condition, work)?;
                domain.checks.push(check);
            }
            _ => return Err(SqlError::internal("a constraint that no domain has")),
        }
    }
    if !said_default {
        domain.default = default_of_parent(parent, work);
    }
    domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
    let oid = work.oids(2);
    let ty = UserType {
        oid,
        schema,
        name: name.clone(),
        labels: Vec::new(),
        domain: Some(domain),
        attributes: None,
    };
    work.put(Object::Type(UserTypeRef::new(ty)));
    Ok(())
}

/// The default that a domain takes from the one it is over.
fn default_of_parent(parent: Option<Oid>, work: &Work<'_>) -> Option<String> {
    work.catalog.domain_default(parent?)
}

fn checked_default(default: &Expression, base: Type, work: &Work<'_>) -> Result<String> {
    // PostgreSQL does not say where.
    check::check_default(default).map_err(|mut error| {
        error.fields_mut().position = None;
        error
    })?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    let text =
        stored_expression::settled_text(&default.text, &About::Nothing, Clause::Default, Some(base), work)?;
    check_domain_default(&text, base, &mut env)?;
    Ok(text)
}

fn make_check(
    domain_name: &str,
    domain: &Domain,
    name: Option<&str>,
    condition: &Expression,
    work: &mut Work<'_>,
) -> Result<Check> {
    check::check_domain_condition(condition)?;
    let about = About::Value(domain.base);
    let condition =
        stored_expression::settled_text(&condition.text, &about, Clause::DomainCheck, None, work)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    check_domain_condition(&condition, domain.base, &mut env)?;
    let taken = |name: &str| domain.checks.iter().any(|check| check.name == name);
    let name = match name {
        Some(name) if taken(name) => {
            let message = format!("constraint \"{name}\" for domain \"{domain_name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
        }
        Some(name) => name.to_owned(),
        None => work::free_name([domain_name, "", "check"], taken),
    };
    Ok(Check { oid: work.oids(1), name, condition, not_valid: false, no_inherit: false, inherited: false })
}

pub(crate) fn alter_domain(alter: &AlterDomain, work: &mut Work<'_>) -> Result<()> {
    let known = work.catalog.require_user_type(&alter.name, work.search_path())?;
    work.require_owner(known.oid)?;
    let mut changed = (*known).clone();
    let Some(domain) = &mut changed.domain else {
        let message = format!("{} is not a domain", alter.name);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    let missing = |name: &str| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{name}\" of domain \"{}\" does not exist", known.name),
        )
    };
    match &alter.action {
        DomainAction::SetDefault(default) => {
            domain.owns_default = true;
            domain.default = match default {
                Some(default) => Some(checked_default(default, domain.base, work)?),
                None => None,
            };
        }
        DomainAction::SetNotNull(not_null) => {
            if *not_null && !domain.not_null {
                validate(&known, "value IS NOT NULL", "contains null values", work)?;
            }
            domain.not_null = *not_null;
        }
        DomainAction::AddCheck { name, condition, not_valid } => {
            let mut check = make_check(&known.name, domain, name.as_deref(), condition, work)?;
            check.not_valid = *not_valid;
            if !not_valid {
                validate(&known, &check.condition, VIOLATES, work)?;
            }
            domain.checks.push(check);
            domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
        }
        DomainAction::DropConstraint { name, if_exists } => {
            let before = domain.checks.len();
            domain.checks.retain(|check| check.name != *name);
            if domain.checks.len() == before {
                if !if_exists {
                    return Err(missing(name));
                }
                work.notice(format!(
                    "constraint \"{name}\" of domain \"{}\" does not exist, skipping",
                    known.name
                ));
                return Ok(());
            }
        }
        DomainAction::RenameConstraint { from, to } => {
            if domain.checks.iter().any(|check| check.name == *to) {
                let message = format!("constraint \"{to}\" for domain {} already exists", known.name);
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
            }
            let check =
                domain.checks.iter_mut().find(|check| check.name == *from).ok_or_else(|| missing(from))?;
            check.name.clone_from(to);
            domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
        }
        DomainAction::ValidateConstraint(name) => {
            let check =
                domain.checks.iter_mut().find(|check| check.name == *name).ok_or_else(|| missing(name))?;
            if std::mem::take(&mut check.not_valid) {
                let condition = check.condition.clone();
                validate(&known, &condition, VIOLATES, work)?;
            }
        }
        DomainAction::RenameTo(name) => {
            check_free(&known.schema, name, work)?;
            changed.name.clone_from(name);
        }
        DomainAction::SetSchema(schema) => {
            namespace::check_move(&known.schema, schema, work)?;
            check_movable(&known, schema, work)?;
            changed.schema.clone_from(schema);
        }
        DomainAction::OwnerTo(role) => {
            return owner::change(known.oid, Some(&known.schema), role, work);
        }
    }
    work.put(Object::Type(UserTypeRef::new(changed)));
    compile_anew(&known, work);
    Ok(())
}

const VIOLATES: &str = "contains values that violate the new constraint";

/// The rows that are there keep a new condition over VALUE.
fn validate(domain: &UserType, condition: &str, what: &str, work: &mut Work<'_>) -> Result<()> {
    let forms = forms(domain, work);
    let tables: Vec<Arc<Table>> =
        work.catalog.tables().filter(|table| table.kind == TableKind::Table).cloned().collect();
    for table in tables {
        for column in &table.columns {
            let own = forms.iter().find(|(oid, _)| column.domain == Some(*oid));
            let within = || composite::holds_domain(&work.catalog, column.ty.oid, &|oid| is_one(&forms, oid));
            let array = match own {
                Some((_, array)) => *array,
                None if within() => true,
                None => continue,
            };
            // Values inside of others are not looked at, as in PostgreSQL.
            if array {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!(
                        "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                        domain.name, table.name, column.name
                    ),
                ));
            }
            let (values, rows) =
                (quote_identifier(&column.name), quote_qualified(&table.schema, &table.name));
            let query = format!(
                "SELECT 1 FROM (SELECT {values} AS value FROM {rows}) v WHERE NOT ({condition}) LIMIT 1"
            );
            let message = format!("column \"{}\" of table \"{}\" {what}", column.name, table.name);
            let state =
                if what == VIOLATES { SqlState::CHECK_VIOLATION } else { SqlState::NOT_NULL_VIOLATION };
            work.validate(query, SqlError::new(state, message));
        }
    }
    Ok(())
}
