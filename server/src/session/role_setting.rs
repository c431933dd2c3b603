//! The settings that are roles, and who may take which value.

use archipel_sql::catalog::authority::undefined_role;
use archipel_sql::catalog::{Authority, Catalog, Role, SessionRoles};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::settings::RoleValue;

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

/// Whether a setting is one of a role.
pub(crate) fn is_role_setting(name: &str) -> bool {
    name.eq_ignore_ascii_case(ROLE) || name.eq_ignore_ascii_case(SESSION_AUTHORIZATION)
}
