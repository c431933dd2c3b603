//! The binder: from syntax to the typed bound tree, as PostgreSQL's analyser does it.
//!
//! Binding settles everything that depends on names and types, so that nothing below asks
//! again: which column, which overload, which casts, which output name. A statement passes
//! through in this order:
//!
//! - `binder`      the state of binding; `clause` where an expression stands; `level` what is in scope
//! - `projected`   SELECT lists that call functions that answer rows
//! - `cte`         WITH; `recursion` and `search_cycle` what a recursive query may be
//! - [`query`]     set operations, ORDER BY and LIMIT of a whole query
//! - [`lock`]      row locks
//! - [`from`], `from_function`, `join` tables, subqueries, functions and joins: the row a query reads
//! - [`select`]    SELECT lists, grouping and ordering; assembles the operators of one SELECT; `target_list` what
//!   a SELECT says
//! - [`grouping`]  GROUP BY and the rule that everything else must be grouped
//! - [`window`]    OVER and WINDOW
//! - `insert`, [`modify`] INSERT; UPDATE, DELETE, CALL; `mutable` what may change by itself
//! - `target`      what those change: tables, and views that are simple enough; `element` parts of their columns
//! - [`scope`]     names in scope
//! - [`expr`], `column`, [`literal`], `constant`, [`forms`], [`compare`], [`call`] expressions
//! - `disjunction` conditions with OR, as they are best served
//! - `missing`     what is said of names that nothing answers to
//! - `record`      rows as values; `row_value` expressions that are some
//! - `overload`    which function a call means, by its `argument`s; `gather` aggregates and sets on their way to a query
//! - `aggregate`   aggregates that users defined; `support` functions that definitions name
//! - [`resolve`]   the choice among signatures
//! - [`coerce`]    casts and common types
//! - `span`        where syntax begins and ends
//! - `kept`        texts that the catalog keeps
//! - `parameter`   parameters that have no type yet
//! - `domain`      what values of a domain must meet
//! - [`name`]      identifiers, positions, output column names
//! - `view`        views in FROM; `show` SHOW as a query
//! - `merge`       MERGE
//! - `reference`   what foreign keys run
//! - `rights`      what whoever runs it must be allowed
//! - `json`        what JSON functions must know of types; `json_subscript` subscripts of jsonb
//! - `coordinate`  subscripts of points and names
//! - [`instance`]  statements that differ in their literals alone
//! - [`visit`]     walks over the bound tree
//! - [`display`]   the bound tree as compact text, for tests and EXPLAIN
//!
//! Every field of the syntax tree is looked at; what nobody consumes is refused with 0A000,
//! never ignored.

pub(crate) mod aggregate;
pub mod argument;
pub(crate) mod binder;
pub mod call;
pub(crate) mod clause;
pub mod coerce;
pub mod column;
pub mod compare;
mod constant;
mod coordinate;
pub(crate) mod cte;
mod disjunction;
pub mod display;
pub mod domain;
mod element;
pub mod expr;
pub mod forms;
pub mod from;
pub(crate) mod from_function;
pub(crate) mod gather;
pub mod grouping;
pub mod insert;
pub mod instance;
mod join;
pub(crate) mod json;
mod json_subscript;
pub mod kept;
pub(crate) mod level;
pub mod literal;
mod lock;
mod merge;
mod missing;
pub mod modify;
mod mutable;
pub mod name;
pub mod once;
pub(crate) mod overload;
mod parameter;
pub mod plpgsql;
mod postpone;
mod projected;
mod query;
mod record;
mod recursion;
pub mod reference;
pub mod resolve;
mod rights;
mod row_value;
mod rows_from;
pub mod scope;
mod search_cycle;
pub mod select;
mod show;
pub mod shown;
pub(crate) mod span;
mod subquery;
pub mod support;
pub mod target;
mod target_list;
mod view;
pub mod visit;
pub mod window;

#[cfg(test)]
mod tests;

use archipel_sql::ast;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::{Oid, Type};

use crate::bound::{BoundExpr, BoundStatement};
pub use argument::answers_fields;
pub use binder::{BindEnv, VariableConflict, VariableScope};
use binder::{Binder, RowNumbers};
pub use clause::Clause;
pub use element::{PartWay, assign_part, part_declared};
pub use json_subscript::assign_json_part;
pub use kept::definition_path;
use level::{Level, LevelKind};
pub use plpgsql::{bind_equality, coerce_plpgsql};
pub use record::field_name;
pub use subquery::has_subquery;
pub use target::changeable;

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

/// Binds; and once more with the numbers of rows beside their columns if it failed for want of those.
fn with_numbers_if_asked<T>(
    env: &mut BindEnv<'_>,
    bind: impl Fn(&mut Binder<'_, '_>) -> Result<T>,
) -> Result<T> {
    let mut binder = Binder::new(env);
    let bound = bind(&mut binder);
    if bound.is_ok() || binder.row_numbers != RowNumbers::Missed {
        return bound;
    }
    // What a definition keeps outlives the numbers: a table may get a primary key.
    if binder.env.is_kept {
        return Err(SqlError::unsupported(format_args!("{ROW_PLACE} in a definition")));
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
