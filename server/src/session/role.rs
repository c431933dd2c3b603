//! In whose name a session works: who may connect, SET ROLE, SET SESSION AUTHORIZATION.

use std::sync::Arc;

use archipel_sql::ast::QualifiedName;
use archipel_sql::catalog::names::is_own_temporary_schema;
use archipel_sql::catalog::{Authority, ObjectClass, Privileges, Role, SessionRoles};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::Session;
use super::role_setting::{ROLE, check_role};
use crate::database::Database;
use crate::server::Server;
use crate::settings::cut_notice;
use crate::wire::output::Severity;

/// Whoever connects must be a role that may log in.
pub(super) fn admit(server: &Server, user: &str) -> Result<Arc<Role>> {
    let state = server.databases.catalog_of_roles();
    let refused = |message: String| SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message);
    let role = state.and_then(|state| state.catalog.role(user));
    let role = role.ok_or_else(|| refused(format!("role \"{user}\" does not exist")))?;
    if !role.login {
        return Err(refused(format!("role \"{user}\" is not permitted to log in")));
    }
    Ok(role)
}

/// And may use the database, which must take sessions.
pub(super) fn require_connect(database: &Database, role: &Role) -> Result<()> {
    let state = database.catalog.current();
    if state.catalog.database(database.oid).is_some_and(|known| !known.allow_connections) {
        let message = format!("database \"{}\" is not currently accepting connections", database.name());
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    let authority = Authority { catalog: &state.catalog, role: role.oid };
    let held = authority.privileges(database.oid, ObjectClass::Database);
    if !held.contains(Privileges::CONNECT) {
        let message = format!("permission denied for database \"{}\"", database.name());
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .with_detail("User does not have CONNECT privilege."));
    }
    Ok(())
}

impl Session {
    /// Whose rights count.
    pub(crate) fn roles(&self) -> SessionRoles {
        self.settings.effective().roles
    }

    /// The path that names are looked up along.
    pub(crate) fn search_path(&mut self) -> Arc<[String]> {
        self.host().search_path.clone()
    }

    /// 42501 unless the role in force has one of these rights on a relation.
    pub(super) fn require_one_of(&mut self, relation: Oid, privileges: Privileges) -> Result<()> {
        let state = self.catalog_state();
        let authority = Authority { catalog: &state.catalog, role: self.roles().current };
        authority.require_any(relation, ObjectClass::Relation, privileges)
    }

    /// 42501 for a name in a schema that the role in force may not look into, whether it is there or not
    /// (LookupExplicitNamespace).
    pub(in crate::session) fn require_schema_of(&mut self, name: &QualifiedName) -> Result<()> {
        let path = self.search_path();
        let Some(schema) = name.schema.as_deref().filter(|schema| !is_own_temporary_schema(schema, &path))
        else {
            return Ok(());
        };
        let state = self.catalog_state();
        let authority = Authority { catalog: &state.catalog, role: self.roles().current };
        authority.require_schema(schema, Privileges::USAGE)
    }

    pub(super) fn is_superuser(&self) -> bool {
        let state = self.catalog_state();
        Authority { catalog: &state.catalog, role: self.roles().current }.is_superuser()
    }

    /// Whether the role in force was granted a right on a parameter. Nobody is asked for where there are none.
    pub(super) fn has_parameter_right(&self, name: &str, privilege: Privileges) -> bool {
        let state = self.catalog_state();
        let rights = Authority { catalog: &state.catalog, role: self.roles().current };
        !state.catalog.parameters().access.is_empty() && rights.may_change_parameter(name, privilege)
    }

    /// Whether it may set what only superusers may.
    pub(super) fn is_granted(&self, name: &str) -> bool {
        self.has_parameter_right(name, Privileges::SET)
    }

    /// SET and SET LOCAL of a setting, or RESET, as the role in force may.
    pub(super) fn change_setting(&mut self, name: &str, text: Option<&str>, local: bool) -> Result<()> {
        let granted = self.is_granted(name);
        self.change_settings(|all| match granted {
            true => all.trusting(|all| all.set(name, text, local)),
            false => all.set(name, text, local),
        })?;
        if let Some(Ok(seed)) =
            text.filter(|_| name.eq_ignore_ascii_case("seed")).map(|text| text.trim().parse())
        {
            self.memory.random.begin(seed);
        }
        if let Some(notice) = text.and_then(|text| cut_notice(name, text)) {
            self.notice(Severity::Notice, &notice);
        }
        Ok(())
    }

    /// 42501 with this message but for superusers.
    pub(super) fn require_superuser(&self, message: impl Into<String>) -> Result<()> {
        if self.is_superuser() {
            return Ok(());
        }
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
    }

    /// SET ROLE and SET SESSION AUTHORIZATION; `None`: what the client connected as.
    pub(super) fn set_role(&mut self, setting: &str, name: Option<&str>, local: bool) -> Result<()> {
        let authenticated = self.settings.authenticated();
        let value = match name {
            None if setting.eq_ignore_ascii_case(ROLE) => {
                // RESET goes back to what ALTER ROLE … SET said, or to NONE.
                self.change_settings(|all| all.set(ROLE, None, local))?;
                return Ok(());
            }
            None => authenticated,
            Some(name) => {
                let client = authenticated.map_or(self.roles().session, |role| role.oid);
                let state = self.catalog_state();
                check_role(&state.catalog, self.roles(), client, &setting.to_lowercase(), name)?
            }
        };
        self.change_settings(|all| {
            all.set_role(setting, value, local);
            if !setting.eq_ignore_ascii_case(ROLE) {
                all.set_role(ROLE, None, local);
            }
            Ok(())
        })
    }
}
