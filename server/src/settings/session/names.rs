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
                let message = match setting.context {
                    Context::Internal => format!("parameter \"{}\" cannot be changed", setting.name),
                    Context::Reload => format!("parameter \"{}\" cannot be changed now", setting.name),
                    _ => format!(
                        "parameter \"{}\" cannot be changed without restarting the server",
                        setting.name
                    ),
                };
                return Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
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
