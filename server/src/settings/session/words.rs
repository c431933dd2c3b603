//! Values of settings that are more than a number or a word of a list.

use archipel_sql::encoding::Encoding;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::stack::DEPTH_MAX_KB;

use super::super::table::Setting;
use super::super::value::Value;
use crate::settings::identifiers::split_identifiers;

/// A value of `max_stack_depth`: no more than the stack of a thread is made for.
pub(super) fn stack_depth(setting: &Setting, text: &str) -> Result<Value> {
    let kb = match setting.kind.parse(setting.name, text)? {
        Value::Integer(kb) if kb > i64::from(DEPTH_MAX_KB) => kb,
        value => return Ok(value),
    };
    let name = setting.name;
    let message = format!("invalid value for parameter \"{name}\": {kb}");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        .with_detail(format!("\"{name}\" must not exceed {DEPTH_MAX_KB}kB."))
        .with_hint("Increase the platform's stack depth limit via \"ulimit -s\" or local equivalent."))
}

/// A value of DateStyle; a word that is missing stays as it is.
pub(super) fn date_style(text: &str, current: &str) -> Option<String> {
    let (mut format, mut order) = current.split_once(", ")?;
    let (mut formats, mut orders) = (Vec::new(), Vec::new());
    for word in split_identifiers(text)? {
        match word.as_str() {
            "iso" => formats.push("ISO"),
            "sql" => formats.push("SQL"),
            "german" => formats.push("German"),
            word if word.starts_with("postgres") => formats.push("Postgres"),
            "mdy" | "us" | "noneuro" | "noneuropean" => orders.push("MDY"),
            "dmy" | "euro" | "european" => orders.push("DMY"),
            "ymd" => orders.push("YMD"),
            "default" => (format, order) = DATE_STYLE_DEFAULT.split_once(", ")?,
            _ => return None,
        }
    }
    formats.dedup();
    orders.dedup();
    if formats == ["German"] && orders.is_empty() {
        order = "DMY";
    }
    if formats.len() > 1 || orders.len() > 1 {
        return None;
    }
    format = formats.first().unwrap_or(&format);
    order = orders.first().unwrap_or(&order);
    Some(format!("{format}, {order}"))
}

/// What DateStyle is unless somebody says otherwise.
pub(super) const DATE_STYLE_DEFAULT: &str = "ISO, MDY";

pub(super) fn time_zone(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('\'');
    if text.eq_ignore_ascii_case("default") || text.eq_ignore_ascii_case("local") {
        return Some("UTC".into());
    }
    archipel_sql::datetime::time_zone_name(text)
}

/// A value of `client_encoding`, as its character set is named. `UNICODE` stays, for drivers that look for it
/// (check_client_encoding).
///
/// Errors: `invalid` for what is no name of one, 0A000 for one that text is not converted to.
pub(super) fn client_encoding(text: &str, invalid: impl Fn() -> SqlError) -> Result<Value> {
    let encoding = Encoding::named(text).ok_or_else(&invalid)?;
    if !encoding.is_servers() && !encoding.is_converted() {
        let (wanted, own) = (encoding.name(), Encoding::UTF8.name());
        let message = invalid().message().to_owned();
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_detail(format!("Conversion between {wanted} and {own} is not supported.")));
    }
    Ok(Value::Text(if text == "UNICODE" { text.to_owned() } else { encoding.name().to_owned() }))
}
