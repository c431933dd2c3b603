//! Which settings there are by name: those of [`SETTINGS`](super::super::table::SETTINGS), PostgreSQL's that
//! have no effect, and applications' own.

use archipel_sql::error::{Result, SqlError, SqlState};

use super::super::foreign;
use super::super::table::{Context, SettingId, find};

/// The setting of that name; `None` for a custom one. One that cannot change must not.
pub(in crate::settings) fn known_setting(
    name: &str,
    changes: impl Fn(SettingId) -> bool,
) -> Result<Option<SettingId>> {
    match find(name) {
        Some(id) => {
            let setting = id.setting();
            if !matches!(setting.context, Context::User | Context::Superuser) && changes(id) {
                return Err(unchangeable(setting.name, setting.context.as_str()));
            }
            Ok(Some(id))
        }
        None if foreign::find(name).is_some() => Ok(None),
        None if name.contains('.') && !name.starts_with("archipel.") && !name.starts_with("plpgsql.") => {
            Ok(None)
        }
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
    }
}

/// The setting of that name, as [`known_setting`], if a session may be given it as it begins
/// (set_config_option). PostgreSQL refuses the others even where nothing would change. `privileged`: by a
/// superuser, or by a definition that was checked when it was made.
pub(super) fn startup_setting(name: &str, privileged: bool) -> Result<Option<SettingId>> {
    let known = match (find(name), foreign::find(name)) {
        (Some(id), _) => Some((id.setting().name, id.setting().context.as_str())),
        (None, Some(known)) => Some((known.name, known.context)),
        (None, None) => None,
    };
    match known {
        Some((name, context @ ("internal" | "postmaster" | "sighup"))) => Err(unchangeable(name, context)),
        Some((name, "superuser" | "superuser-backend")) if !privileged => {
            let message = format!("permission denied to set parameter \"{name}\"");
            Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
        }
        _ => known_setting(name, |_| false),
    }
}

/// The error of a setting that no session may set, or none any more.
fn unchangeable(name: &str, context: &str) -> SqlError {
    let how = match context {
        "internal" => "cannot be changed",
        "sighup" => "cannot be changed now",
        "postmaster" => "cannot be changed without restarting the server",
        _ => "cannot be set after connection start",
    };
    SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, format!("parameter \"{name}\" {how}"))
}

/// What is kept of a value that such a setting begins with.
pub(super) fn custom_value_at_startup(name: &str, text: &str) -> Result<String> {
    foreign::find(name).map_or_else(|| Ok(text.to_owned()), |known| known.kept(text))
}

/// What is kept of a value of a setting that is none of [`SETTINGS`](super::super::table::SETTINGS).
pub(super) fn custom_value(name: &str, text: &str, superuser: bool) -> Result<String> {
    match foreign::find(name) {
        Some(known) => known.canonical(text, superuser),
        None => Ok(text.to_owned()),
    }
}

/// Whether a setting is there once somebody has named it: an application's own. PostgreSQL's always are.
pub(super) fn named_for_good(name: &str) -> bool {
    foreign::find(name).is_none()
}
