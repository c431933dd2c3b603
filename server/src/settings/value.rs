//! Setting values: types, units, parsing and display (PostgreSQL 15, chapter 20.1.1).

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

/// The unit a number is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    None,
    Milliseconds,
    Seconds,
    Minutes,
    Bytes,
    Kilobytes,
    /// Of 8 kB.
    Pages,
    Megabytes,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Bool,
    Integer {
        min: i64,
        max: i64,
        unit: Unit,
    },
    Real {
        min: f64,
        max: f64,
    },
    /// From -1 to 1; nobody is shown which.
    Seed,
    /// Accepted spellings, as they are shown, in any letters.
    Enum(&'static [&'static str]),
    /// The one tablespace that may be named, or none.
    Tablespace,
    TableAccessMethod,
    Text,
}

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
    /// `role` and `session_authorization`.
    Role(RoleValue),
}

/// A role as it was when it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleValue {
    pub oid: Oid,
    pub name: String,
    pub superuser: bool,
}

const TIME_UNITS: &[(&str, i64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
const MEMORY_UNITS: &[(&str, i64)] =
    &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

impl Unit {
    /// Larger to smaller units of the same dimension, and this unit's size among them.
    fn scale(self) -> Option<(&'static [(&'static str, i64)], i64)> {
        match self {
            Unit::None => None,
            Unit::Milliseconds => Some((TIME_UNITS, 1)),
            Unit::Seconds => Some((TIME_UNITS, 1_000)),
            Unit::Minutes => Some((TIME_UNITS, 60_000)),
            Unit::Bytes => Some((MEMORY_UNITS, 1)),
            Unit::Kilobytes => Some((MEMORY_UNITS, 1 << 10)),
            Unit::Pages => Some((MEMORY_UNITS, 8 << 10)),
            Unit::Megabytes => Some((MEMORY_UNITS, 1 << 20)),
        }
    }

    /// As `pg_settings.unit` shows it.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Milliseconds => Some("ms"),
            Unit::Seconds => Some("s"),
            Unit::Minutes => Some("min"),
            Unit::Bytes => Some("B"),
            Unit::Kilobytes => Some("kB"),
            Unit::Pages => Some("8kB"),
            Unit::Megabytes => Some("MB"),
        }
    }
}

/// PostgreSQL's spellings of a boolean, unique prefixes included.
pub fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let prefix_of = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if text == "1" || prefix_of("true", 1) || prefix_of("yes", 1) || prefix_of("on", 2) {
        Some(true)
    } else if text == "0" || prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) {
        Some(false)
    } else {
        None
    }
}

impl Kind {
    /// Parses `text` as a value of the setting `name`.
    pub fn parse(self, name: &str, text: &str) -> Result<Value> {
        let invalid = || {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"{name}\": \"{text}\""),
            )
        };
        match self {
            Kind::Bool => parse_bool(text).map(Value::Bool).ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("parameter \"{name}\" requires a Boolean value"),
                )
            }),
            Kind::Integer { min, max, unit } => {
                // A number of something else: what is none at all has no unit to be told about.
                let counts = text.trim_start().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
                let value = parse_number(text, unit).ok_or_else(|| match unit.scale() {
                    _ if !counts => invalid(),
                    Some((TIME_UNITS, _)) => invalid().with_hint(
                        "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
                    ),
                    Some(_) => invalid().with_hint(
                        "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
                    ),
                    None => invalid(),
                })?;
                let value = value.round();
                if value < min as f64 || value > max as f64 {
                    let unit = unit.name().map(|unit| format!(" {unit}")).unwrap_or_default();
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!(
                            "{value}{unit} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                        ),
                    ));
                }
                Ok(Value::Integer(value as i64))
            }
            Kind::Seed => Kind::Real { min: -1.0, max: 1.0 }.parse(name, text),
            Kind::Real { min, max } => {
                let value: f64 = text.trim().parse().map_err(|_| invalid())?;
                if !(min..=max).contains(&value) {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!(
                            "{value} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                        ),
                    ));
                }
                Ok(Value::Real(value))
            }
            Kind::Enum(choices) => {
                let lower = text.trim().to_ascii_lowercase();
                // Enumerations that include on and off take the other spellings of a boolean.
                let spelled = match parse_bool(&lower) {
                    Some(true) if choices.contains(&"on") => "on",
                    Some(false) if choices.contains(&"off") => "off",
                    _ => &lower,
                };
                match choices.iter().find(|choice| choice.eq_ignore_ascii_case(spelled)) {
                    Some(choice) => Ok(Value::Text((*choice).to_owned())),
                    None => Err(invalid().with_hint(format!("Available values: {}.", choices.join(", ")))),
                }
            }
            Kind::Tablespace => tablespace(text).map_err(|detail| invalid().with_detail(detail)),
            Kind::TableAccessMethod => table_access_method(text).map_err(|why| invalid().with_detail(why)),
            Kind::Text => Ok(Value::Text(text.to_owned())),
        }
    }

    /// The value as SHOW prints it: the largest unit that divides it.
    pub fn show(self, value: &Value) -> String {
        match (self, value) {
            (Kind::Integer { unit, .. }, Value::Integer(number)) => match unit.scale() {
                Some((units, base)) if *number > 0 => {
                    let total = number.saturating_mul(base);
                    // Pages are no unit to show anything in.
                    let base = if unit == Unit::Pages { 1 << 10 } else { base };
                    let (name, size) =
                        units.iter().find(|(_, size)| total % size == 0 && *size >= base).unwrap_or(&("", 1));
                    if name.is_empty() { number.to_string() } else { format!("{}{name}", total / size) }
                }
                _ => number.to_string(),
            },
            _ => self.plain(value),
        }
    }

    /// The value in the setting's own unit, as `pg_settings.setting` shows it.
    pub fn plain(self, value: &Value) -> String {
        match value {
            _ if self == Kind::Seed => "unavailable".into(),
            Value::Bool(true) => "on".into(),
            Value::Bool(false) => "off".into(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            Value::Role(role) => role.name.clone(),
        }
    }

    /// As `pg_settings.vartype` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Integer { .. } => "integer",
            Kind::Real { .. } | Kind::Seed => "real",
            Kind::Enum(_) => "enum",
            Kind::Tablespace | Kind::TableAccessMethod | Kind::Text => "string",
        }
    }
}

/// The access method of tables, or why another one may not be named.
fn table_access_method(text: &str) -> std::result::Result<Value, String> {
    match text {
        "heap" => Ok(Value::Text(text.to_owned())),
        "" => Err("default_table_access_method cannot be empty.".to_owned()),
        _ => Err(format!("Table access method \"{text}\" does not exist.")),
    }
}

/// A tablespace that may be named, or why it may not.
fn tablespace(text: &str) -> std::result::Result<Value, String> {
    match text {
        "" | "pg_default" => Ok(Value::Text(text.to_owned())),
        "pg_global" => Err("Only shared relations can be placed in pg_global tablespace.".to_owned()),
        _ => Err(format!("Tablespace \"{text}\" does not exist.")),
    }
}

/// A number with an optional unit, in the setting's unit.
fn parse_number(text: &str, unit: Unit) -> Option<f64> {
    let text = text.trim();
    let digits =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let suffix = suffix.trim();
    if suffix.is_empty() {
        return Some(number);
    }
    let (units, base) = unit.scale()?;
    if suffix == "us" && units == TIME_UNITS {
        return Some(number / 1_000.0 / base as f64);
    }
    let (_, size) = units.iter().find(|(name, _)| *name == suffix)?;
    Some(number * *size as f64 / base as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Kind = Kind::Integer { min: 0, max: i32::MAX as i64, unit: Unit::Milliseconds };
    const MEMORY: Kind = Kind::Integer { min: 64, max: i64::MAX, unit: Unit::Kilobytes };

    #[test]
    fn units_are_read_and_shown_as_postgres_does() {
        for (kind, text, shown) in [
            (TIME, "0", "0"),
            (TIME, "1500", "1500ms"),
            (TIME, "2s", "2s"),
            (TIME, "90s", "90s"),
            (TIME, "2min", "2min"),
            (TIME, "1.5s", "1500ms"),
            (MEMORY, "4MB", "4MB"),
            (MEMORY, "65536", "64MB"),
        ] {
            let value = kind.parse("x", text).unwrap();
            assert_eq!(kind.show(&value), shown, "{text}");
        }
    }

    #[test]
    fn bad_values_are_22023() {
        for (kind, text) in [(TIME, "abc"), (TIME, "-1"), (TIME, "1MB"), (Kind::Bool, "maybe")] {
            assert_eq!(kind.parse("x", text).unwrap_err().state(), SqlState::INVALID_PARAMETER_VALUE);
        }
        assert_eq!(Kind::Bool.parse("x", "of").unwrap(), Value::Bool(false));
        assert!(Kind::Bool.parse("x", "o").is_err());
    }
}
