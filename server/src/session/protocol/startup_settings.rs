//! The settings a session begins with: what its database and its role say, and what its client asks for.

use archipel_sql::catalog::{Authority, Privileges, Role};
use archipel_sql::error::SqlError;
use archipel_sql::types::Oid;

use super::command_line;
use crate::database::Database;
use crate::session::role_setting;
use crate::settings::{SessionSettings, cut_notice};

/// ALTER ROLE ALL … SET, ALTER DATABASE … SET, ALTER ROLE … SET and ALTER ROLE … IN DATABASE … SET: what sessions
/// of a role begin with, where the last of these has the last word (process_settings). What cannot be set any
/// more is told to the log, and the session begins all the same. Whether whoever said it could was asked when
/// it was said. `cut` takes the notices of names that are too long.
pub(super) fn set_as_said(
    settings: &mut SessionSettings,
    role: &Role,
    database: &Database,
    cut: &mut Vec<SqlError>,
) {
    let state = database.catalog.current();
    let row = state.catalog.database(database.oid);
    let of = |whose: Option<Oid>| {
        let row = row.as_ref()?;
        row.settings.iter().find(|of| of.role == whose).map(|of| &of.settings)
    };
    let of_all = &state.catalog.parameters().settings;
    let all = [Some(of_all), of(None), Some(&role.settings), of(Some(role.oid))];
    for (name, value) in all.into_iter().flatten().flatten() {
        cut.extend(cut_notice(name, value));
        if let Err(error) = start_with(settings, role, database, (name.as_str(), value.as_str()), true) {
            let whose = &role.name;
            tracing::warn!("setting \"{name}\" for role \"{whose}\" was not applied: {error}");
        }
    }
}

/// What the startup packet asks for: its options first, of which the last ones count, and then its other
/// parameters (process_startup_options). `cut` takes the notices of names that are too long.
pub(super) fn set_as_asked(
    settings: &mut SessionSettings,
    role: &Role,
    database: &Database,
    parameters: &[(String, String)],
    cut: &mut Vec<SqlError>,
) -> Result<(), SqlError> {
    let state = database.catalog.current();
    let rights = Authority { catalog: &state.catalog, role: role.oid };
    // GRANT SET ON PARAMETER; seldom is there any.
    let is_granted = |name: &str| {
        !state.catalog.parameters().access.is_empty() && rights.may_change_parameter(name, Privileges::SET)
    };
    let mut set = |name: &str, value: &str| {
        cut.extend(cut_notice(name, value));
        let privileged = role.superuser || is_granted(name);
        start_with(settings, role, database, (name, value), privileged)
    };
    if let Some((_, options)) = parameters.iter().rev().find(|(name, _)| name == "options") {
        command_line::read(options, &mut set)?;
    }
    for (name, value) in parameters {
        let is_no_setting = matches!(name.as_str(), "user" | "database" | "replication" | "options");
        // Of options of the protocol it has been told before that they are not known.
        if !is_no_setting && !name.starts_with("_pq_.") {
            set(name, value)?;
        }
    }
    Ok(())
}

/// A setting that a session of `role` begins with. `privileged`: a superuser asks for it, or it was checked when
/// it was defined.
fn start_with(
    settings: &mut SessionSettings,
    role: &Role,
    database: &Database,
    (name, value): (&str, &str),
    privileged: bool,
) -> Result<(), SqlError> {
    if !role_setting::is_role_setting(name) {
        return settings.set_at_startup(name, value, privileged);
    }
    let state = database.catalog.current();
    let roles = settings.effective().roles;
    let chosen = role_setting::check_role(&state.catalog, roles, role.oid, &name.to_lowercase(), value)?;
    settings.start_as(name, chosen);
    Ok(())
}
