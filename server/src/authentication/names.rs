//! Who a client says it is.

use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::io::parse_bool;
use archipel_sql::parser::truncate_identifier;

/// Who a client says it is, and the database that it asks for: what it says last counts, and names are cut
/// as those of roles and databases are.
pub fn names_of(parameters: &[(String, String)]) -> Result<(String, String), SqlError> {
    let parameter =
        |name: &str| parameters.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    if let Some(value) = parameter("replication") {
        match parse_bool(value) {
            Some(false) => {}
            None if value != "database" => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid value for parameter \"replication\": \"{value}\""),
                )
                .with_hint("Valid values are: \"false\", 0, \"true\", 1, \"database\"."));
            }
            _ => return Err(SqlError::unsupported("replication")),
        }
    }
    let mut user = parameter("user").filter(|user| !user.is_empty()).map(str::to_owned).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "no PostgreSQL user name specified in startup packet",
        )
    })?;
    let database = parameter("database").filter(|name| !name.is_empty());
    let mut database = database.map_or_else(|| user.clone(), str::to_owned);
    truncate_identifier(&mut user);
    truncate_identifier(&mut database);
    Ok((user, database))
}
