//! Settings of PostgreSQL's that have no effect here: tools read them by name, and some set them. They
//! are read from `postgresql.tsv`, which `record.sh` beside it makes from PostgreSQL 15, and a session's
//! own values are kept beside those of applications' settings.
//!
//! Invariant: what PostgreSQL does by one and this server does not can only be set to what is true here.

use std::sync::OnceLock;

use archipel_sql::error::{Result, SqlError, SqlState};

use super::value::{Kind, Unit};

/// See the module's head. Texts are PostgreSQL's.
#[derive(Debug)]
pub struct Foreign {
    pub name: &'static str,
    pub kind: Kind,
    /// As pg_settings shows it.
    pub unit: Option<&'static str>,
    /// The type as PostgreSQL has it.
    pub vartype: &'static str,
    pub default: &'static str,
    pub category: &'static str,
    pub description: &'static str,
    pub extra: &'static str,
    pub context: &'static str,
}

/// Those whose other values would promise something, with the one that is true here.
const FIXED: [(&str, &str); 8] = [
    ("allow_system_table_mods", "off"),
    ("array_nulls", "on"),
    ("dynamic_library_path", "$libdir"),
    ("exit_on_error", "off"),
    ("local_preload_libraries", ""),
    ("session_preload_libraries", ""),
    ("temp_tablespaces", ""),
    ("transform_null_equals", "off"),
];

/// All of them, by name.
pub fn all() -> &'static [Foreign] {
    static ALL: OnceLock<Vec<Foreign>> = OnceLock::new();
    ALL.get_or_init(|| include_str!("postgresql.tsv").lines().filter_map(read).collect())
}

/// The one of this name, in any letter case.
pub fn find(name: &str) -> Option<&'static Foreign> {
    all().iter().find(|known| known.name.eq_ignore_ascii_case(name))
}

fn read(line: &'static str) -> Option<Foreign> {
    let fields: Vec<&'static str> = line.split('\t').collect();
    let [name, default, unit, category, description, extra, context, vartype, min, max, choices] = fields[..]
    else {
        return None;
    };
    let shown_unit = if unit.is_empty() { None } else { Some(unit) };
    let unit = match unit {
        "ms" => Unit::Milliseconds,
        "s" => Unit::Seconds,
        "min" => Unit::Minutes,
        "B" => Unit::Bytes,
        "kB" => Unit::Kilobytes,
        "8kB" => Unit::Pages,
        "MB" => Unit::Megabytes,
        _ => Unit::None,
    };
    let fixed = FIXED.iter().find(|(of, _)| *of == name);
    let kind = match (fixed, vartype) {
        (Some((_, only)), _) => Kind::Enum(vec![*only].leak()),
        (None, "bool") => Kind::Bool,
        // Modes of files are numbers in octal, and shown so.
        (None, "integer") if default.starts_with("0") && default.len() == 4 => Kind::Text,
        (None, "integer") => Kind::Integer { min: min.parse().ok()?, max: max.parse().ok()?, unit },
        (None, "real") => Kind::Real { min: min.parse().ok()?, max: max.parse().ok()? },
        // PostgreSQL compares without regard to the case, and shows it.
        (None, "enum") if choices.bytes().any(|byte| byte.is_ascii_uppercase()) => Kind::Text,
        (None, "enum") => Kind::Enum(choices.split(',').collect::<Vec<_>>().leak()),
        _ => Kind::Text,
    };
    Some(Foreign { name, kind, unit: shown_unit, vartype, default, category, description, extra, context })
}

impl Foreign {
    /// What is kept of a value; an error if it is none.
    pub fn kept(&self, text: &str) -> Result<String> {
        let value = self.kind.parse(self.name, text).map_err(|mut error| {
            // Numbers with a fraction have units here alone.
            if let (Kind::Real { .. }, Some(unit)) = (&self.kind, self.unit) {
                let message = &mut error.fields_mut().message;
                *message = message.replacen(" is outside", &format!(" {unit} is outside"), 1);
            }
            error
        })?;
        Ok(self.kind.plain(&value))
    }

    /// What is kept of a value that SET gives it; an error if it may not be set, or not so.
    pub fn canonical(&self, text: &str, superuser: bool) -> Result<String> {
        let refused = |state, message: String| Err(SqlError::new(state, message));
        let (name, change) = (self.name, SqlState::CANT_CHANGE_RUNTIME_PARAM);
        let value = self.kept(text);
        match self.context {
            "user" => value,
            "superuser" if superuser => value,
            "superuser" => {
                let message = format!("permission denied to set parameter \"{name}\"");
                refused(SqlState::INSUFFICIENT_PRIVILEGE, message)
            }
            _ if value.as_ref().is_ok_and(|value| value == self.default) => value,
            "internal" => refused(change, format!("parameter \"{name}\" cannot be changed")),
            "sighup" => refused(change, format!("parameter \"{name}\" cannot be changed now")),
            "postmaster" => {
                let message = format!("parameter \"{name}\" cannot be changed without restarting the server");
                refused(change, message)
            }
            _ => refused(change, format!("parameter \"{name}\" cannot be set after connection start")),
        }
    }

    /// A value as SHOW prints it; `None` is the default.
    pub fn show(&self, kept: Option<&str>) -> String {
        let text = kept.unwrap_or(self.default);
        self.kind.parse(self.name, text).map_or_else(|_| text.to_owned(), |value| self.kind.show(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table::SETTINGS;

    #[test]
    fn every_default_is_a_valid_value() {
        assert_eq!(all().len(), include_str!("postgresql.tsv").lines().count());
        for known in all() {
            let value = known.kind.parse(known.name, known.default).unwrap();
            assert_eq!(known.kind.plain(&value), known.default, "{}", known.name);
        }
    }

    #[test]
    fn none_is_one_of_ours() {
        for setting in SETTINGS {
            assert!(find(setting.name).is_none(), "{}", setting.name);
        }
        for (name, _) in FIXED {
            assert!(find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn values_are_shown_with_their_units() {
        let show = |name: &str| find(name).map(|known| known.show(None));
        assert_eq!(show("shared_buffers").as_deref(), Some("128MB"));
        assert_eq!(show("checkpoint_timeout").as_deref(), Some("5min"));
        assert_eq!(show("log_rotation_age").as_deref(), Some("1d"));
        assert_eq!(show("min_wal_size").as_deref(), Some("80MB"));
        assert_eq!(show("MAX_PREPARED_TRANSACTIONS").as_deref(), Some("0"));
    }

    #[test]
    fn what_would_promise_something_is_refused() {
        let set = |name: &str, text: &str| find(name).unwrap().canonical(text, true);
        assert_eq!(set("log_lock_waits", "true").as_deref(), Ok("on"));
        assert!(set("transform_null_equals", "on").is_err());
        assert!(set("transform_null_equals", "off").is_ok());
        assert!(set("shared_buffers", "1GB").is_err());
    }
}
