//! SHOW as a query: what a routine reads its row from.

use archipel_sql::ast::{Show, Statement};
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::quote_literal;
use archipel_sql::parser::parse_statement;
use sqlparser::ast::Query;

/// Names of settings that are shown with capitals, and phrases for them.
const SPELLED: [(&str, &str); 6] = [
    ("time zone", "TimeZone"),
    ("timezone", "TimeZone"),
    ("datestyle", "DateStyle"),
    ("intervalstyle", "IntervalStyle"),
    ("transaction isolation level", "transaction_isolation"),
    ("session authorization", "session_authorization"),
];

/// The query that answers what SHOW does.
pub(crate) fn query_of(show: &Show) -> Result<Box<Query>> {
    let text = match show {
        Show::All => "SELECT name, pg_catalog.current_setting(name) AS setting, short_desc AS description \
            FROM pg_catalog.pg_settings"
            .to_owned(),
        Show::Name(name) => {
            let lower = name.to_lowercase();
            let spelled = SPELLED.iter().find(|(written, _)| *written == lower);
            let name = spelled.map_or(lower.as_str(), |(_, name)| *name);
            let (literal, label) = (quote_literal(name), quote_identifier(name));
            format!("SELECT pg_catalog.current_setting({literal}) AS {label}")
        }
    };
    match parse_statement(&text)? {
        Statement::Query(query) => Ok(query),
        other => Err(SqlError::internal(format!("SHOW became {}", other.tag()))),
    }
}
