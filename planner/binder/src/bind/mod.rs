//! The binder: from syntax to the typed bound tree, as PostgreSQL's analyser does it.
//!
//! Binding settles everything that depends on names and types, so that nothing below asks
//! again: which column, which overload, which casts, which output name.
//!
//! - [`binder`]  the state of binding; [`clause`] where an expression stands
//! - [`level`]   what is in scope; [`scope`] how a name finds it; [`system_column`] what those of no
//!   column may mean; [`undefined`] what is said of names that find nothing
//! - [`query`]   whole queries, SELECT, GROUP BY, WITH
//! - [`from`]    tables, subqueries, functions, views and joins: the row a query reads; row locks
//! - [`expression`] scalar expressions, casts, domains
//! - [`function`] calls, overloads, aggregates, window functions
//! - [`change`]  INSERT, UPDATE, DELETE and MERGE; what foreign keys run
//! - [`stored_expression`] texts that the catalog keeps; [`deparse`] as PostgreSQL shows them
//! - [`meaning`] what the names of a text mean, for those who keep it
//! - [`rights`]  what whoever runs a statement must be allowed; [`row_security`] which rows it
//!   may see and write, [`policy_reader`] who that is
//! - [`plpgsql`] what PL/pgSQL asks beyond SQL
//! - [`generic_plan`] statements that differ in their literals alone
//! - [`name`]    identifiers, output column names; [`span`] where syntax begins and ends
//! - [`visit`]   walks over the bound tree; [`display`] the bound tree as compact text, for tests and EXPLAIN
//!
//! Every field of the syntax tree is looked at; what nobody consumes is refused with 0A000,
//! never ignored.

pub(crate) mod binder;
pub(crate) mod change;
pub(crate) mod clause;
pub mod deparse;
pub mod display;
pub(crate) mod expression;
pub mod from;
pub(crate) mod function;
pub mod generic_plan;
pub(crate) mod level;
pub mod meaning;
pub mod name;
pub mod plpgsql;
pub mod policy_reader;
pub(crate) mod query;
mod rights;
pub(crate) mod row_security;
pub mod scope;
pub(crate) mod span;
pub mod stored_expression;
pub mod system_column;
pub(crate) mod undefined;
pub mod visit;

#[cfg(test)]
mod tests;

use archipel_sql::ast;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::{Oid, Type};

use crate::bound::{BoundExpr, BoundStatement};
pub use binder::{BindEnv, VariableConflict, VariableScope};
use binder::{Binder, RowNumbers};
pub use change::element::{PartWay, assign_part, part_declared};
pub use change::target::changeable;
pub use change::{arbiter, insert, modify, reference, table_expressions, target};
pub use clause::Clause;
pub use expression::json_subscript::assign_json_part;
pub use expression::record::field_name;
pub use expression::subquery::has_subquery;
pub use expression::{case_operand, coerce, domain};
pub use function::argument::answers_fields;
pub use function::{argument, support_function};
use level::{Level, LevelKind};
pub use plpgsql::{bind_equality, coerce_plpgsql};
use query::show;
pub use stored_expression::DEFINITION_PATH;

/// Binds a statement that reads or writes rows. Utilities are refused: they stay syntax.
pub fn bind_statement(statement: &ast::Statement, env: &mut BindEnv<'_>) -> Result<BoundStatement> {
    with_numbers_if_asked(env, |binder| {
        let bound = match statement {
            ast::Statement::Query(query) => binder.statement_query(query),
            ast::Statement::Insert(insert) => binder.insert(insert).map(BoundStatement::Insert),
            ast::Statement::Update(update) => binder.update(update).map(BoundStatement::Update),
            ast::Statement::Delete(delete) => binder.delete(delete).map(BoundStatement::Delete),
            ast::Statement::Call(call) => binder.call_statement(call).map(BoundStatement::Call),
            ast::Statement::Merge(merge) => binder.merge(merge).map(BoundStatement::Merge),
            ast::Statement::Show(show) => binder.statement_query(&*show::query_of(show)?),
            other => Err(SqlError::internal(format!("{} is not a statement over rows", other.tag()))),
        }?;
        binder.check_parameters(&bound)?;
        Ok(bound)
    })
}

/// Binds; and once more with the numbers of rows beside their columns if those were missed, whatever else the name
/// was found to mean without them.
fn with_numbers_if_asked<T>(
    env: &mut BindEnv<'_>,
    bind: impl Fn(&mut Binder<'_, '_>) -> Result<T>,
) -> Result<T> {
    let mut binder = Binder::new(env);
    let bound = bind(&mut binder);
    if binder.row_numbers != RowNumbers::Missed {
        return bound;
    }
    let mut binder = Binder::new(env);
    binder.row_numbers = RowNumbers::BehindColumns;
    bind(&mut binder)
}

/// Binds one expression over variables and parameters; with a target, which may be a domain, as by
/// assignment to it.
pub fn bind_expression(
    expr: &sqlparser::ast::Expr,
    env: &mut BindEnv<'_>,
    target: Option<Type>,
) -> Result<BoundExpr> {
    with_numbers_if_asked(env, |binder| {
        binder.levels.push(Level::new(LevelKind::Plain, Vec::new()));
        let bound = binder.clause_expr(expr, Clause::Expression)?;
        match target {
            Some(declared) => {
                let from = bound.ty;
                let (target, domain) = binder.plain_type(declared);
                let value = binder
                    .coerce(bound, target, archipel_sql::function::CastContext::Assignment)?
                    .ok_or_else(|| coerce::cannot_cast(from, target, binder))?;
                binder.coerce_domain(value, domain)
            }
            None => binder.resolve_unknown(bound),
        }
    })
}

/// Binds a value of a partition's bound; `None` if it cannot be assigned to the type.
pub fn bind_bound_value(
    expr: &sqlparser::ast::Expr,
    env: &mut BindEnv<'_>,
    target: Type,
    domain: Option<Oid>,
) -> Result<Option<BoundExpr>> {
    let mut binder = Binder::new(env);
    binder.levels.push(Level::new(LevelKind::Plain, Vec::new()));
    let bound = binder.clause_expr(expr, Clause::PartitionBound)?;
    let value = binder.coerce(bound, target, archipel_sql::function::CastContext::Assignment)?;
    value.map(|value| binder.coerce_domain(value, domain)).transpose()
}
