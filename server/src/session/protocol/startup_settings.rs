//! The settings a session begins with: what its database and its role say, and what its client asks for.

use archipel_sql::catalog::Role;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::database::Database;
use crate::session::role_setting;
use crate::settings::SessionSettings;

/// ALTER ROLE ALL … SET, ALTER DATABASE … SET, ALTER ROLE … SET and ALTER ROLE … IN DATABASE … SET: what sessions
/// of a role begin with, where the last of these has the last word (process_settings). Who said so was allowed to. What cannot be set any more is told to
/// the log, and the session begins all the same.
pub(super) fn set_as_said(settings: &mut SessionSettings, role: &Role, database: &Database) {
    let state = database.catalog.current();
    let row = state.catalog.database(database.oid);
    let of = |whose: Option<Oid>| {
        let row = row.as_ref()?;
        row.settings.iter().find(|of| of.role == whose).map(|of| &of.settings)
    };
    let of_all = &state.catalog.parameters().settings;
    let all = [Some(of_all), of(None), Some(&role.settings), of(Some(role.oid))];
    for (name, value) in all.into_iter().flatten().flatten() {
        let set = |settings: &mut SessionSettings| start_with(settings, role, database, name, value);
        if let Err(error) = settings.trusting(set) {
            let whose = &role.name;
            tracing::warn!("setting \"{name}\" for role \"{whose}\" was not applied: {error}");
        }
    }
}

/// A setting that a session of `role` begins with.
pub(super) fn start_with(
    settings: &mut SessionSettings,
    role: &Role,
    database: &Database,
    name: &str,
    value: &str,
) -> Result<(), SqlError> {
    if !role_setting::is_role_setting(name) {
        return settings.set_at_startup(name, value);
    }
    let state = database.catalog.current();
    let roles = settings.effective().roles;
    let chosen = role_setting::check_role(&state.catalog, roles, role.oid, &name.to_lowercase(), value)?;
    settings.start_as(name, chosen);
    Ok(())
}

/// `options=-c name=value --name=value`, as libpq's PGOPTIONS sends it.
pub(super) fn startup_options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut options = Vec::new();
    let mut words: Vec<String> = vec![String::new()];
    let mut escaped = false;
    for character in text.chars() {
        match character {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            ' ' if !escaped => words.push(String::new()),
            other => {
                if let Some(word) = words.last_mut() {
                    word.push(other);
                }
            }
        }
        escaped = false;
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let assignment = match word.as_str() {
            "-c" => words.next().unwrap_or_default(),
            word if word.starts_with("-c") || word.starts_with("--") => word[2..].to_owned(),
            other => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("invalid command-line argument for server process: {other}"),
                ));
            }
        };
        let (name, value) = assignment.split_once('=').ok_or_else(|| {
            SqlError::new(SqlState::SYNTAX_ERROR, format!("-c {assignment} requires a value"))
        })?;
        options.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(options)
}
