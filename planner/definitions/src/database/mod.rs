//! Databases: what statements about them ask for, who may, and what they change of the rows that all databases
//! share.
//!
//! - [`options`] what CREATE and ALTER DATABASE ask for
//! - [`locale`]  which encodings, locales and tablespaces a database may have
//! - this file   ALTER DATABASE and the settings of roles in databases, which change the catalog alone and may
//!   be part of a transaction block
//!
//! CREATE and DROP DATABASE are the session's: they wait for others and run outside of any block. So is the
//! wait of ALTER DATABASE … RENAME for whoever is in the database.
//!
//! The checks come in PostgreSQL's order (dbcommands.c): options, the owner, rights, the template, its locale,
//! the tablespace, the name.

mod locale;
mod options;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use archipel_sql::ast::{AlterDatabase, AlterRoleSetting, DatabaseAction, RoleName, SettingChange};
use archipel_sql::catalog::authority::{must_be_owner, undefined_role};
use archipel_sql::catalog::{Authority, Catalog, Database, DatabaseSettings, Object};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::access::role;
use crate::access::setting_list::change_list;
use crate::work::Work;
pub use options::{AlteredDatabaseOptions, DatabaseOptions};

/// 3D000.
pub fn undefined_database(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
}

/// The database of this name.
pub fn require_database(name: &str, catalog: &Catalog) -> Result<Arc<Database>> {
    catalog.database_named(name).ok_or_else(|| undefined_database(name))
}

/// 42501 unless the role owns the database.
pub fn require_database_owner(database: &Database, authority: &Authority<'_>) -> Result<()> {
    if authority.owns_database(database.oid) {
        return Ok(());
    }
    Err(must_be_owner("database", &database.name))
}

/// 42501 unless the role may make databases; `what` is refused.
fn require_databases(authority: &Authority<'_>, what: &str) -> Result<()> {
    let own = authority.catalog.role_by_oid(authority.role);
    if own.is_some_and(|role| role.superuser || role.create_database) {
        return Ok(());
    }
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("permission denied to {what}")))
}

/// The owner of a new database: 42704 and 42501, as CREATE DATABASE says them before it looks at any database.
pub fn require_creator(options: &DatabaseOptions, authority: &Authority<'_>) -> Result<Oid> {
    let owner = match &options.owner {
        Some(name) => authority.catalog.role(name).ok_or_else(|| undefined_role(name))?.oid,
        None => authority.role,
    };
    require_databases(authority, "create database")?;
    authority.require_member(owner)?;
    Ok(owner)
}

/// The database that a new one is made of. Whose it is may copy it, and everybody who makes databases if it is
/// a template.
pub fn require_template(options: &DatabaseOptions, authority: &Authority<'_>) -> Result<Arc<Database>> {
    let name = &options.template;
    let Some(template) = authority.catalog.database_named(name) else {
        let message = format!("template database \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message));
    };
    if !template.is_template && !authority.owns_database(template.oid) {
        let message = format!("permission denied to copy database \"{name}\"");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    Ok(template)
}

/// 42P04 for a name that a database has.
pub fn require_free(name: &str, catalog: &Catalog) -> Result<()> {
    if catalog.database_named(name).is_none() {
        return Ok(());
    }
    let message = format!("database \"{name}\" already exists");
    Err(SqlError::new(SqlState::DUPLICATE_DATABASE, message))
}

/// 22023 for a number that a database has.
pub fn require_free_oid(options: &DatabaseOptions, catalog: &Catalog) -> Result<()> {
    let Some((oid, name)) = options.oid.and_then(|oid| Some((oid, catalog.name_of_database(oid)?))) else {
        return Ok(());
    };
    let message = format!("database OID {oid} is already in use by database \"{name}\"");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

/// The database that DROP DATABASE takes away, and neither the own one nor a template. 3D000 if there is none.
pub fn require_droppable(name: &str, authority: &Authority<'_>) -> Result<Arc<Database>> {
    let database = require_database(name, authority.catalog)?;
    require_database_owner(&database, authority)?;
    if database.is_template {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot drop a template database"));
    }
    if database.oid == authority.catalog.database_oid() {
        return Err(SqlError::new(SqlState::OBJECT_IN_USE, "cannot drop the currently open database"));
    }
    Ok(database)
}

/// ALTER DATABASE: what PostgreSQL checks, then what the statement changes.
pub(crate) fn alter_database(alter: &AlterDatabase, work: &mut Work<'_>) -> Result<()> {
    // Both are read before anybody looks for the database.
    let options = match &alter.action {
        DatabaseAction::Options(options) => AlteredDatabaseOptions::read(options)?,
        DatabaseAction::SetTablespace(name) => {
            AlteredDatabaseOptions { tablespace: Some(name.clone()), ..AlteredDatabaseOptions::default() }
        }
        _ => AlteredDatabaseOptions::default(),
    };
    let owner = match &alter.action {
        DatabaseAction::OwnerTo(owner) => Some(work.role(owner)?),
        _ => None,
    };
    let database = require_database(&alter.name, &work.catalog)?;
    if owner == Some(database.owner) {
        return Ok(());
    }
    require_database_owner(&database, &work.authority())?;
    let is_own = database.oid == work.catalog.database_oid();
    match &alter.action {
        DatabaseAction::Options(_) | DatabaseAction::SetTablespace(_) => {
            require_options(&options, is_own, work)?;
            change_options(&database, &options, work);
        }
        DatabaseAction::RenameTo(name) => {
            require_databases(&work.authority(), "rename database")?;
            require_free(name, &work.catalog)?;
            if is_own {
                let message = "current database cannot be renamed";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            work.put(Object::Database(Database { name: name.clone(), ..Database::clone(&database) }));
        }
        DatabaseAction::OwnerTo(_) => {
            let owner = owner.unwrap_or(database.owner);
            work.authority().require_member(owner)?;
            require_databases(&work.authority(), "change owner of database")?;
            work.set_owner(database.oid, owner);
        }
        // The locale C has none.
        DatabaseAction::RefreshCollationVersion => work.notice("version has not changed"),
        DatabaseAction::Setting(change) => change_settings(&database, None, change, work)?,
    }
    Ok(())
}

/// What may not be said of the database that one is in, and of the tablespace of another.
fn require_options(options: &AlteredDatabaseOptions, is_own: bool, work: &Work<'_>) -> Result<()> {
    if is_own && options.allow_connections == Some(false) {
        let message = "cannot disallow connections for current database";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    match &options.tablespace {
        Some(_) if is_own => {
            let message = "cannot change the tablespace of the currently open database";
            Err(SqlError::new(SqlState::OBJECT_IN_USE, message))
        }
        Some(tablespace) => locale::require_tablespace(tablespace, &work.authority()),
        None => Ok(()),
    }
}

/// Changes what options say. The one tablespace is where every database is.
fn change_options(database: &Database, options: &AlteredDatabaseOptions, work: &mut Work<'_>) {
    let changed = Database {
        is_template: options.is_template.unwrap_or(database.is_template),
        allow_connections: options.allow_connections.unwrap_or(database.allow_connections),
        connection_limit: options.connection_limit.unwrap_or(database.connection_limit),
        ..database.clone()
    };
    if changed != *database {
        work.put(Object::Database(changed));
    }
}

/// ALTER ROLE … IN DATABASE and ALTER ROLE ALL.
pub(crate) fn alter_role_setting(alter: &AlterRoleSetting, work: &mut Work<'_>) -> Result<()> {
    let role = alter.role.as_ref().map(|name| settable_role(name, work)).transpose()?;
    let database = alter.database.as_deref().map(|name| require_database(name, &work.catalog)).transpose()?;
    let Some(database) = database else {
        if !work.authority().is_superuser() {
            let message = "must be superuser to alter settings globally";
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        let mut parameters = work.catalog.parameters().clone();
        change_list(&mut parameters.settings, &alter.change, work)?;
        work.put_parameters(parameters);
        return Ok(());
    };
    if role.is_none() {
        require_database_owner(&database, &work.authority())?;
    }
    change_settings(&database, role, &alter.change, work)
}

/// The role whose settings change, if the role in force may change them.
fn settable_role(name: &RoleName, work: &Work<'_>) -> Result<Oid> {
    let role = work.role_object(work.role(name)?)?;
    role::require_alterable(&role)?;
    role::require_setter(&role, work)?;
    Ok(role.oid)
}

/// Changes what sessions of a role (`None`: of every one) in a database begin with.
fn change_settings(
    database: &Database,
    role: Option<Oid>,
    change: &SettingChange,
    work: &mut Work<'_>,
) -> Result<()> {
    let mut changed = database.clone();
    let known = changed.settings.iter().position(|of| of.role == role);
    let mut settings = known.map_or_else(Vec::new, |at| changed.settings.remove(at).settings);
    change_list(&mut settings, change, work)?;
    if !settings.is_empty() {
        changed.settings.push(DatabaseSettings { role, settings });
    }
    if changed != *database {
        work.put(Object::Database(changed));
    }
    Ok(())
}
