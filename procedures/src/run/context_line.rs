//! Lines of CONTEXT.

use archipel_sql::error::SqlError;

/// Appends a line to an error's context.
pub(crate) fn add_line(mut error: SqlError, line: &str) -> SqlError {
    match &mut error.fields_mut().context {
        Some(text) => {
            text.push('\n');
            text.push_str(line);
        }
        context => *context = Some(line.to_string()),
    }
    error
}

/// How CONTEXT lines name a statement.
pub(crate) fn statement_line(text: &str) -> String {
    format!("SQL statement \"{text}\"")
}
