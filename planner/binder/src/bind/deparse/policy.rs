//! Expressions of policies as PostgreSQL shows them: columns of the policy's own table by their names alone, but in
//! queries within.

use archipel_sql::catalog::View;
use sqlparser::ast::SetExpr;

use super::*;

/// A policy's expression, which is kept as a query, as it is shown to a session with this search path; `None` for
/// one that is shown as it was written.
pub fn deparse_policy(
    stored: &View,
    catalog: &Catalog,
    search_path: &[String],
    context: &FunctionContext<'_>,
) -> Option<String> {
    let query = archipel_sql::parser::parse_query(&stored.query).ok()?;
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let mut env = BindEnv::new(catalog, &stored.search_path, context);
    env.references = &stored.references;
    (env.params_fixed, env.is_settled) = (true, true);
    let binder = Binder::new(&mut env);
    let mut shower = Deparser::new(binder, Clause::Select, catalog, search_path);
    shower.over(&select.from, |shower| shower.first_target(select))
}
