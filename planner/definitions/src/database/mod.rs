//! Databases, as far as statements about them need no other database's catalog.
//!
//! - [`options`] what CREATE and ALTER DATABASE ask for
//! - [`locale`]  which encodings, locales and tablespaces a database may have
//! - this file   ALTER DATABASE and the settings of roles in databases, which change the catalog alone and may
//!   be part of a transaction block
//!
//! CREATE and DROP DATABASE are the session's: they wait for others and run outside of any block.
//!
//! The checks come in PostgreSQL's order (dbcommands.c): options, the owner, rights, the template, its locale,
//! the tablespace, the name.

mod locale;
mod options;

#[cfg(test)]
mod tests;

use archipel_sql::ast::{AlterDatabase, AlterRoleSetting, DatabaseAction, RoleName, SettingChange};
use archipel_sql::catalog::authority::undefined_role;
use archipel_sql::catalog::{Authority, DATABASE, SUPERUSER_NAME};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::access::role;
use crate::work::Work;
pub use options::{AlteredDatabaseOptions, DatabaseOptions};

/// 3D000.
pub fn undefined_database(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
}

/// The database of this name: there is one so far.
pub fn require_database(name: &str) -> Result<Oid> {
    if name == SUPERUSER_NAME { Ok(DATABASE) } else { Err(undefined_database(name)) }
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

/// 42P04 for a name that a database has.
pub fn require_free(name: &str) -> Result<()> {
    if require_database(name).is_err() {
        return Ok(());
    }
    let message = format!("database \"{name}\" already exists");
    Err(SqlError::new(SqlState::DUPLICATE_DATABASE, message))
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
    let database = require_database(&alter.name)?;
    if owner == Some(work.catalog.owner(database)) {
        return Ok(());
    }
    work.require_owner(database)?;
    let is_own = database == DATABASE;
    match &alter.action {
        DatabaseAction::Options(_) | DatabaseAction::SetTablespace(_) => {
            require_options(&options, is_own, work)?;
            if options == AlteredDatabaseOptions::default() {
                return Ok(());
            }
        }
        DatabaseAction::RenameTo(name) => {
            require_databases(&work.authority(), "rename database")?;
            require_free(name)?;
            if is_own {
                let message = "current database cannot be renamed";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        }
        DatabaseAction::OwnerTo(_) => {
            owner.map_or(Ok(()), |owner| work.authority().require_member(owner))?;
            require_databases(&work.authority(), "change owner of database")?;
        }
        DatabaseAction::RefreshCollationVersion => {
            // The locale C has none.
            work.notice("version has not changed");
            return Ok(());
        }
        DatabaseAction::Setting(_) => {}
    }
    change_database(alter, &options, work)
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

/// What ALTER DATABASE changes of the catalog.
fn change_database(
    _alter: &AlterDatabase,
    _options: &AlteredDatabaseOptions,
    _work: &mut Work<'_>,
) -> Result<()> {
    Err(SqlError::unsupported("ALTER DATABASE"))
}

/// ALTER ROLE … IN DATABASE and ALTER ROLE ALL.
pub(crate) fn alter_role_setting(alter: &AlterRoleSetting, work: &mut Work<'_>) -> Result<()> {
    let role = alter.role.as_ref().map(|name| settable_role(name, work)).transpose()?;
    let database = alter.database.as_deref().map(require_database).transpose()?;
    match (role, database) {
        (None, Some(database)) => work.require_owner(database)?,
        (None, None) if !work.authority().is_superuser() => {
            let message = "must be superuser to alter settings globally";
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        _ => {}
    }
    change_role_setting(role, database, &alter.change, work)
}

/// The role whose settings change, if the role in force may change them.
fn settable_role(name: &RoleName, work: &Work<'_>) -> Result<Oid> {
    let role = work.role_object(work.role(name)?)?;
    role::require_alterable(&role)?;
    role::require_setter(&role, work)?;
    Ok(role.oid)
}

/// What the statement changes of the settings that sessions of a role (`None`: of every one) in a database
/// (`None`: in every one) begin with.
fn change_role_setting(
    _role: Option<Oid>,
    database: Option<Oid>,
    _change: &SettingChange,
    _work: &mut Work<'_>,
) -> Result<()> {
    let what = if database.is_some() { "ALTER ROLE … IN DATABASE" } else { "ALTER ROLE ALL" };
    Err(SqlError::unsupported(what))
}
