//! EXECUTE of a text that is an EXECUTE of SQL: the statement that its session has prepared, with the
//! values of the arguments in place of the parameters.

use archipel_planner::prepared::check_arguments;
use archipel_sql::ast::{Execute, Statement};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::SessionHost;
use archipel_sql::parser::parse_statement;

use super::{TextBinder, bind_arguments_text};
use crate::plpgsql::lexer::{self, TokenKind};
use crate::run::operation::{PreparedArguments, PreparedStatement};

impl TextBinder {
    /// What the session has prepared under the name that an EXECUTE gives.
    pub(super) fn prepared_statement(
        &self,
        execute: &Execute,
        session: &dyn SessionHost,
    ) -> Result<PreparedStatement> {
        let name = &execute.name;
        let Some(prepared) = session.prepared_statement(name) else {
            let message = format!("prepared statement \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message));
        };
        let text = match parse_statement(&prepared.text)? {
            Statement::Prepare(prepare) => &prepared.text[prepare.statement.range],
            _ => &prepared.text,
        };
        let types = prepared.types.clone();
        // Without parameters, PostgreSQL does not look at the arguments.
        if types.is_empty() {
            return Ok(PreparedStatement { text: text.into(), params: Vec::new(), arguments: None });
        }
        check_arguments(execute, types.len())?;
        let params = lexer::scan(text)?.into_iter().filter_map(|token| match token.kind {
            TokenKind::Parameter(number) => Some((token.start..token.end, usize::from(number) - 1)),
            _ => None,
        });
        let params = params.collect();
        let within = self.within(session);
        let (query, places) = query_of(execute);
        let compiled = bind_arguments_text(within.parts().0, &query, &types, self.transitions.as_ref())
            .and_then(|(bound, needed)| within.compiled(&bound, needed)?.checked(session));
        let compiled = compiled.map_err(|error| at_its_place(error, &places))?;
        let arguments = Some(PreparedArguments { compiled, types });
        Ok(PreparedStatement { text: text.into(), params, arguments })
    }
}

/// The query of the arguments' values; and where in it each argument begins, with the place where the
/// EXECUTE has it, in characters from one.
fn query_of(execute: &Execute) -> (String, Vec<(u32, u32)>) {
    let (mut query, mut places) = ("SELECT ".to_owned(), Vec::new());
    for argument in &execute.args {
        query.push_str(if places.is_empty() { "(" } else { ", (" });
        places.push((query.chars().count() as u32 + 1, argument.position));
        query.push_str(&argument.text);
        query.push(')');
    }
    (query, places)
}

/// An error of that query as one of the EXECUTE.
fn at_its_place(mut error: SqlError, places: &[(u32, u32)]) -> SqlError {
    if let Some(position) = &mut error.fields_mut().position
        && let Some((start, own)) = places.iter().rev().find(|(start, _)| start <= position)
    {
        *position = *position - start + own;
    }
    error
}
