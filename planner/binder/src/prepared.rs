//! What an EXECUTE gives to a prepared statement.

use archipel_sql::ast::Execute;
use archipel_sql::cast;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{Expr, UnaryOperator, Value};

use crate::bind::expr::unnest;
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

/// Refuses the `number`th argument, of the type `given`, where no assignment makes it of the type that its
/// parameter has; `names` are those of both types.
///
/// # Errors
/// 42804.
pub fn check_argument_type(number: usize, given: Oid, wanted: Oid, names: (String, String)) -> Result<()> {
    // What a row lacks for a type tells the cast itself.
    let is_row = given == Oid::RECORD && wanted.is_composite();
    if is_row || cast::find(given, wanted, CastContext::Assignment).is_some() {
        return Ok(());
    }
    let (given, wanted) = names;
    let message =
        format!("parameter ${number} of type {given} cannot be coerced to the expected type {wanted}");
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression."))
}

/// Whether an argument is a literal that can be assigned to a type, which needs no binding to be known.
pub fn is_fitting_literal(argument: &Expr, wanted: Type) -> bool {
    let (value, is_negated) = match unnest(argument) {
        Expr::Value(value) => (&value.value, false),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match unnest(expr) {
            Expr::Value(value) => (&value.value, true),
            _ => return false,
        },
        _ => return false,
    };
    let given = match value {
        Value::Number(digits, _) => match (digits.parse::<i32>(), digits.parse::<i64>()) {
            (Ok(_), _) => Oid::INT4,
            (_, Ok(_)) => Oid::INT8,
            _ => Oid::NUMERIC,
        },
        Value::SingleQuotedString(_) | Value::Null if !is_negated => return true,
        Value::Boolean(_) if !is_negated => Oid::BOOL,
        _ => return false,
    };
    cast::find(given, wanted.oid, CastContext::Assignment).is_some()
}
