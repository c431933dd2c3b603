//! Bodies of SQL functions that are written without quotes, as PostgreSQL shows them
//! (print_function_sqlbody). A statement with a part that is not known here is shown as it was written.

use archipel_sql::ast::{Statement, StatementText};
use archipel_sql::catalog::Routine;
use archipel_sql::catalog::names::quote_qualified;
use archipel_sql::catalog::view::query_text;
use archipel_sql::system::qualified;

use super::query::Page;
use super::*;
use crate::bind::{VariableConflict, VariableScope};

/// The arguments of a routine, as its statements name them.
pub struct Arguments<'r> {
    routine: &'r str,
    inputs: Vec<(Option<&'r str>, Type)>,
}

impl Arguments<'_> {
    /// Those of a routine.
    pub fn of(routine: &Routine) -> Arguments<'_> {
        let inputs = routine.input_args().map(|arg| (arg.name.as_deref(), arg.ty)).collect();
        Arguments { routine: &routine.name, inputs }
    }

    fn value(&self, number: usize) -> BoundExpr {
        BoundExpr::new(ExprKind::Param(number as u16), self.inputs[number].1)
    }

    /// The one with this number, behind the routine's name if relations are in sight whose columns may
    /// get the same name one day.
    pub(super) fn shown(&self, number: u16, among_relations: bool) -> Option<String> {
        let (name, _) = self.inputs.get(usize::from(number))?;
        Some(match name {
            Some(name) if among_relations => quote_qualified(self.routine, name).to_string(),
            Some(name) => quote_identifier(name).to_string(),
            None => format!("${}", number + 1),
        })
    }
}

impl VariableScope for Arguments<'_> {
    fn resolve(&self, parts: &[&str]) -> Option<BoundExpr> {
        let name = match parts {
            [name] => name,
            [routine, name] if *routine == self.routine => name,
            _ => return None,
        };
        let number = self.inputs.iter().position(|(own, _)| own.as_ref() == Some(name))?;
        Some(self.value(number))
    }

    fn parameter(&self, number: u16) -> Option<BoundExpr> {
        let number = usize::from(number);
        (number < self.inputs.len()).then(|| self.value(number))
    }

    fn conflict(&self) -> VariableConflict {
        VariableConflict::Column
    }
}

/// The body of a routine as it is shown to a session with this search path; `None` for one that is kept
/// as it stands between quotes.
pub fn shown_body(
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
        let mut shower = Shower {
            arguments: Some(&arguments),
            names_relations: true,
            in_lines: !stored.returns,
            ..Shower::new(binder, Clause::Select, catalog, search_path)
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
        let text = query_text(written, &stored.references, catalog, search_path)
            .unwrap_or_else(|_| written.to_owned());
        qualified(&text, catalog, &stored.search_path, search_path).unwrap_or(text)
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
