//! Bodies of SQL functions that are written without quotes, as PostgreSQL shows them
//! (print_function_sqlbody). A statement with a part that is not known here is shown as it was written.

use archipel_sql::ast::{Statement, StatementText};
use archipel_sql::catalog::Routine;
use archipel_sql::catalog::view::query_text;

use super::name::Arguments;
use super::query::Page;
use super::*;

/// The body of a routine as it is shown to a session with this search path; `None` for one that is kept
/// as it stands between quotes.
pub fn deparse_body(
    routine: &Routine,
    catalog: &Catalog,
    search_path: &[String],
    context: &FunctionContext<'_>,
) -> Option<String> {
    let stored = routine.traits.stored.as_deref()?;
    let statements = archipel_sql::parser::parse_stored(&stored.text).ok()?;
    let arguments = Arguments::of(routine);
    let shown = |statement: &StatementText| {
        let Statement::Query(query) = &statement.statement else { return None };
        let mut env = BindEnv::new(catalog, &stored.search_path, context);
        env.references = &stored.references;
        env.params_fixed = true;
        env.is_settled = true;
        env.variables = Some(&arguments);
        let binder = Binder::new(&mut env);
        let mut shower = Deparser {
            arguments: Some(&arguments),
            names_relations: true,
            in_lines: !stored.returns,
            columns_visible: false,
            ..Deparser::new(binder, Clause::Select, catalog, search_path)
        };
        let mut page = Page::default();
        if stored.returns {
            return shower.only_target(query);
        }
        page.indent = 1;
        shower.query(query, None, &mut page)?;
        Some(page.text)
    };
    let as_written = |statement: &StatementText| {
        let written = &stored.text[statement.range.clone()];
        query_text(written, &stored.references, catalog, search_path).unwrap_or_else(|_| written.to_owned())
    };
    if stored.returns {
        let only = statements.first()?;
        return Some(match shown(only) {
            Some(text) => format!("RETURN {text}"),
            None => {
                let written = as_written(only);
                format!("RETURN {}", written.strip_prefix("SELECT ").unwrap_or(&written))
            }
        });
    }
    let mut body = "BEGIN ATOMIC\n".to_owned();
    for statement in &statements {
        body.push_str(&shown(statement).unwrap_or_else(|| format!(" {}", as_written(statement))));
        body.push_str(";\n");
    }
    Some(body + "END")
}
