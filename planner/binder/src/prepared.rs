//! What an EXECUTE gives to a prepared statement.

use archipel_sql::ast::{Execute, Statement};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Type;
use sqlparser::ast::{Expr, SelectItem, SetExpr};

use crate::bind::binder::Binder;
use crate::bind::level::{Level, LevelKind};
use crate::bind::{BindEnv, Clause, has_subquery};
use crate::bound::{BoundExpr, BoundQuery, BoundStatement, OutputColumn, Rel};

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

/// Binds the query that computes arguments of an EXECUTE, `SELECT` and each of them, so that it answers them
/// assigned to the types of their parameters, of which the first is the one of this number. Domains are told
/// by their own numbers.
///
/// # Errors
/// 42804 where no assignment makes an argument of its parameter's type, 42P02 for a parameter in an argument,
/// and whatever the arguments have for themselves.
pub fn bind_arguments(
    query: &Statement,
    (first, types): (usize, &[Type]),
    env: &mut BindEnv<'_>,
) -> Result<BoundStatement> {
    env.params_fixed = true;
    let arguments = written_in(query);
    if arguments.len() != types.len() {
        return Err(SqlError::internal("the arguments of an EXECUTE are no plain list"));
    }
    let exprs = arguments
        .into_iter()
        .zip(types)
        .enumerate()
        .map(|(place, (argument, wanted))| bind_argument(argument, first + place, *wanted, env))
        .collect::<Result<Vec<_>>>()?;
    let column = |expr: &BoundExpr| OutputColumn { name: String::new(), ty: expr.ty, source: None };
    let columns = exprs.iter().map(column).collect();
    let rel = Rel::Project { input: Box::new(Rel::Unit), exprs };
    Ok(BoundStatement::Query(BoundQuery { rel, columns }))
}

/// The expressions of a SELECT that has nothing else.
fn written_in(query: &Statement) -> Vec<&Expr> {
    let Statement::Query(query) = query else { return Vec::new() };
    let SetExpr::Select(select) = &*query.body else { return Vec::new() };
    let expressions = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) => Some(expr),
        _ => None,
    });
    expressions.collect()
}

fn bind_argument(argument: &Expr, number: usize, wanted: Type, env: &mut BindEnv<'_>) -> Result<BoundExpr> {
    let mut binder = Binder::new(env);
    binder.levels.push(Level::new(LevelKind::Plain, Vec::new()));
    let value = binder.clause_expr(argument, Clause::ExecuteParameter)?;
    let given = value.declared();
    let (plain, domain) = binder.plain_type(wanted);
    let Some(value) = binder.coerce(value, plain, CastContext::Assignment)? else {
        let (given, wanted) = (binder.type_name(given.oid), binder.type_name(wanted.oid));
        let message =
            format!("parameter ${number} of type {given} cannot be coerced to the expected type {wanted}");
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            .with_hint("You will need to rewrite or cast the expression.")
            .at(binder.start(argument)));
    };
    binder.coerce_domain(value, domain)
}
