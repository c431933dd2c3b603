//! What an EXECUTE gives to a prepared statement.

use archipel_sql::ast::Execute;
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::bind::has_subquery;

/// Refuses arguments that cannot be those of a statement with so many parameters
/// (EvaluateParams).
///
/// # Errors
/// 42601 for another number of them, 0A000 for a query among them.
pub fn check_arguments(execute: &Execute, parameters: usize) -> Result<()> {
    let Execute { name, args } = execute;
    if args.len() != parameters {
        let message = format!("wrong number of parameters for prepared statement \"{name}\"");
        let detail = format!("Expected {parameters} parameters but got {}.", args.len());
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).with_detail(detail));
    }
    match args.iter().find(|argument| has_subquery(&argument.expr)) {
        Some(query) => {
            let message = "cannot use subquery in EXECUTE parameter";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            Err(error.at((query.position > 0).then_some(query.position)))
        }
        None => Ok(()),
    }
}
