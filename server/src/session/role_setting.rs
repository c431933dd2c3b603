//! The settings that are roles, and who may take which value; who may set what only superusers may.

use archipel_sql::catalog::authority::undefined_role;
use archipel_sql::catalog::{Authority, Catalog, Privileges, Role, SessionRoles};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::settings::{Context, RoleValue, find, foreign, require_setting};

/// The settings that are roles.
pub(crate) const ROLE: &str = "role";

pub(crate) const SESSION_AUTHORIZATION: &str = "session_authorization";

/// A role as settings keep it.
pub(crate) fn role_value(role: &Role) -> RoleValue {
    RoleValue { oid: role.oid, name: role.name.clone(), superuser: role.superuser }
}

/// Checks that a session of `roles`, whose client connected as `authenticated`, may take the value;
/// `None`: NONE.
pub(crate) fn check_role(
    catalog: &Catalog,
    roles: SessionRoles,
    authenticated: Oid,
    setting: &str,
    name: &str,
) -> Result<Option<RoleValue>> {
    if setting == ROLE && name == "none" {
        return Ok(None);
    }
    let Some(role) = catalog.role(name) else {
        let mut error = undefined_role(name);
        error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error.message());
        return Err(error);
    };
    let (allowed, what) = if setting == ROLE {
        let session = Authority { catalog, role: roles.session };
        (session.belongs_to(role.oid), format!("permission denied to set role \"{name}\""))
    } else {
        let client = Authority { catalog, role: authenticated };
        let allowed = role.oid == authenticated || client.is_superuser();
        (allowed, format!("permission denied to set session authorization \"{name}\""))
    };
    if !allowed {
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, what));
    }
    Ok(Some(role_value(&role)))
}

/// A setting and its value.
type Chosen = (String, String);

/// Whom SET ROLE among a routine's clauses makes the role in force, in a session of `roles`; and the others.
///
/// # Errors
/// 22023 for no role, 42501 for one that the session does not belong to.
pub(crate) fn role_clause(
    catalog: &Catalog,
    roles: SessionRoles,
    settings: &[Chosen],
) -> Result<(Option<RoleValue>, Vec<Chosen>)> {
    let is_role = |(name, _): &Chosen| name.eq_ignore_ascii_case(ROLE);
    let others = settings.iter().filter(|setting| !is_role(setting)).cloned().collect();
    let Some((_, name)) = settings.iter().rfind(|setting| is_role(setting)) else {
        return Ok((None, others));
    };
    let chosen = check_role(catalog, roles, roles.session, ROLE, name)?;
    let session = || catalog.role_by_oid(roles.session).map(|role| role_value(&role));
    Ok((chosen.or_else(session), others))
}

/// Whether a setting is one of a role.
pub(crate) fn is_role_setting(name: &str) -> bool {
    name.eq_ignore_ascii_case(ROLE) || name.eq_ignore_ascii_case(SESSION_AUTHORIZATION)
}

/// 42501 unless a role may set a setting: what is the superuser's also where it was granted (GRANT SET ON
/// PARAMETER).
pub(crate) fn require_right(name: &str, rights: &Authority<'_>) -> Result<()> {
    let (name, is_free) = match (find(name).map(|id| id.setting()), foreign::find(name)) {
        (Some(known), _) => (known.name, known.context != Context::Superuser),
        (None, Some(known)) => (known.name, known.context != "superuser"),
        (None, None) => (name, true),
    };
    if is_free || rights.may_change_parameter(name, Privileges::SET) { Ok(()) } else { Err(denied(name)) }
}

/// As [`require_right`], for a setting that others are to begin with: those that an application makes for itself
/// are the superuser's, too (validate_option_array_item). 42704 for a name that is none.
pub(crate) fn require_giver(name: &str, rights: &Authority<'_>) -> Result<()> {
    if is_role_setting(name) {
        return Ok(());
    }
    require_setting(name)?;
    let is_known = find(name).is_some() || foreign::find(name).is_some();
    if !is_known && !rights.may_change_parameter(name, Privileges::SET) {
        return Err(denied(name));
    }
    require_right(name, rights)
}

/// 42602 for a parameter that rights cannot be on, as there is none of its name.
pub(crate) fn require_parameter(name: &str) -> Result<()> {
    require_setting(name).map_err(|_| {
        let message = format!("invalid parameter name \"{name}\"");
        SqlError::new(SqlState::INVALID_NAME, message)
    })
}

fn denied(name: &str) -> SqlError {
    let message = format!("permission denied to set parameter \"{name}\"");
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}
