//! Storage parameters (PostgreSQL's reloptions.c). They speak of pages and of vacuuming, which do not exist here:
//! they are checked as PostgreSQL checks them and kept for those who ask. One of indexes is ours and followed:
//! where their entries are to be ([`PLACEMENT`]).

use archipel_sql::catalog::{PLACEMENT, PlacementOption};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::io::parse_bool;
use rustc_hash::FxHashSet;

/// Parameters as they are written: a name without a value says true.
pub(crate) type Written = [(String, Option<String>)];

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// What a parameter of an index takes.
enum Takes {
    Bool,
    Integer(i32, i32),
    Buffering,
    Placement,
}

/// The parameters of an access method's indexes.
fn parameter(method: &str, name: &str) -> Option<Takes> {
    Some(match (method, name) {
        ("btree" | "hash" | "gist" | "spgist", "fillfactor") => Takes::Integer(10, 100),
        ("btree", "deduplicate_items") | ("gin", "fastupdate") | ("brin", "autosummarize") => Takes::Bool,
        ("gin", "gin_pending_list_limit") => Takes::Integer(64, i32::MAX),
        ("brin", "pages_per_range") => Takes::Integer(1, 131_072),
        ("gist", "buffering") => Takes::Buffering,
        ("btree" | "hash", PLACEMENT) => Takes::Placement,
        _ => return None,
    })
}

/// An integer as parse_int reads it: a fraction is rounded.
fn integer(value: &str) -> Option<i32> {
    let value = value.trim();
    if let Ok(number) = value.parse() {
        return Some(number);
    }
    let number = value.parse::<f64>().ok()?.round_ties_even();
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number).then_some(number as i32)
}

/// Refuses an integer beyond its bounds, or what is none.
fn check_integer(name: &str, value: &str, (least, most): (i32, i32)) -> Result<()> {
    let Some(number) = integer(value) else {
        return Err(invalid(format!("invalid value for integer option \"{name}\": {value}")));
    };
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(invalid(format!("value {value} out of bounds for option \"{name}\""))
        .with_detail(format!("Valid values are between \"{least}\" and \"{most}\".")))
}

/// Refuses to set a parameter twice at once.
pub(crate) fn check_said_once(options: &Written) -> Result<()> {
    let mut said = FxHashSet::default();
    for (name, _) in options {
        if !said.insert(name.as_str()) {
            return Err(said_twice(name.strip_prefix("toast.").unwrap_or(name)));
        }
    }
    Ok(())
}

fn said_twice(name: &str) -> SqlError {
    invalid(format!("parameter \"{name}\" specified more than once"))
}

/// Refuses values where parameters go back to their defaults.
pub(crate) fn check_reset(options: &Written) -> Result<()> {
    match options.iter().any(|(_, value)| value.is_some()) {
        true => Err(SqlError::new(SqlState::SYNTAX_ERROR, "RESET must not include values for parameters")),
        false => Ok(()),
    }
}

/// The parameters of an index by a method, as they are kept.
pub(crate) fn index_options(method: &str, written: &Written) -> Result<Vec<(String, String)>> {
    let namespace = |name: &str| name.split_once('.').map(|(namespace, _)| namespace.to_owned());
    if let Some(namespace) = written.iter().find_map(|(name, _)| namespace(name)) {
        return Err(invalid(format!("unrecognized parameter namespace \"{namespace}\"")));
    }
    let mut options: Vec<(String, String)> = Vec::with_capacity(written.len());
    for (name, value) in written {
        let mut value = value.clone().unwrap_or_else(|| "true".to_owned());
        match parameter(method, name) {
            None => return Err(invalid(format!("unrecognized parameter \"{name}\""))),
            Some(_) if options.iter().any(|(known, _)| known == name) => return Err(said_twice(name)),
            Some(Takes::Integer(least, most)) => check_integer(name, &value, (least, most))?,
            Some(Takes::Bool) if parse_bool(&value).is_none() => {
                return Err(invalid(format!("invalid value for boolean option \"{name}\": {value}")));
            }
            Some(Takes::Buffering) if value != "auto" && parse_bool(&value).is_none() => {
                return Err(invalid(format!("invalid value for enum option \"{name}\": {value}"))
                    .with_detail("Valid values are \"on\", \"off\", and \"auto\"."));
            }
            Some(Takes::Bool | Takes::Buffering) => {}
            Some(Takes::Placement) => value = placement(&value)?.word().to_owned(),
        }
        options.push((name.clone(), value));
    }
    Ok(options)
}

/// What a placement's word means, in whichever case.
fn placement(value: &str) -> Result<PlacementOption> {
    let word = value.to_ascii_lowercase();
    if word == "local" {
        return Err(SqlError::unsupported("placement \"local\"").with_hint(
            "Entries are placed with their rows by placement = prefixed, or by themselves by global.",
        ));
    }
    PlacementOption::of_word(&word).ok_or_else(|| {
        invalid(format!("invalid value for enum option \"{PLACEMENT}\": {value}"))
            .with_detail("Valid values are \"prefixed\" and \"global\".")
    })
}

/// The parameters of a primary key, as they are kept. Its entries are the rows.
pub(crate) fn primary_key_options(written: &Written) -> Result<Vec<(String, String)>> {
    match written.iter().any(|(name, _)| name == PLACEMENT) {
        true => Err(invalid("a primary key has no placement of its own")
            .with_hint("Its entries are the rows, which are placed by create_distributed_table().")),
        false => index_options("btree", written),
    }
}

/// The parameters that are a table's own, as they are kept.
pub(crate) fn kept_options(written: &Written) -> Vec<(String, String)> {
    let own = written.iter().filter(|(name, _)| name != "oids" && !name.contains('.'));
    own.map(|(name, value)| (name.clone(), value.clone().unwrap_or_else(|| "true".to_owned()))).collect()
}

/// A partitioned table has no pages to speak of: its partitions do.
pub(crate) fn check_no_options(options: &Written) -> Result<()> {
    match options.first() {
        Some((name, _)) => Err(invalid(format!("unrecognized parameter \"{name}\""))),
        None => Ok(()),
    }
}

/// Refuses parameters of a table that PostgreSQL does not have, or not with such a value.
pub(crate) fn check_table_options(options: &Written) -> Result<()> {
    for (name, value) in options {
        let bare = name.strip_prefix("toast.").unwrap_or(name);
        let known = matches!(
            bare,
            "fillfactor"
                | "parallel_workers"
                | "user_catalog_table"
                | "toast_tuple_target"
                | "vacuum_index_cleanup"
                | "vacuum_truncate"
                | "log_autovacuum_min_duration"
                | "oids"
        ) || bare.starts_with("autovacuum_");
        if !known {
            return Err(invalid(format!("unrecognized parameter \"{name}\"")));
        }
        if bare == "oids" && !matches!(value.as_deref(), Some("false" | "off" | "0")) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "tables declared WITH OIDS are not supported",
            ));
        }
        if bare == "fillfactor" {
            check_integer(bare, value.as_deref().unwrap_or("true"), (10, 100))?;
        }
    }
    Ok(())
}
