//! Statements of a body that are the session's: definitions, SET, LOCK TABLE and the like.

use std::cell::RefCell;
use std::sync::Arc;

use archipel_planner::bind::{VariableConflict, VariableScope, bind_statement};
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::ast::{RowSource, Statement};
use archipel_sql::catalog::Language;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::parse_statement;
use archipel_sql::types::Oid;

use super::command_text::{CREATE_TABLE_AS, notification};
use crate::compile::compiler::Compiler;
use crate::compile::environment::{bind_env, no_session};
use crate::compile::scope::Scope;
use crate::compile::unknown_access;
use crate::plpgsql::ast::{Conflict, Fragment, NamesId};
use crate::plpgsql::lexer::{self, Token};
use crate::run::context;
use crate::run::operation::OperationKind;

fn register_of(value: &BoundExpr) -> Option<(Oid, u32)> {
    match value.kind {
        ExprKind::Variable(register) => Some((value.ty.oid, register)),
        _ => None,
    }
}

/// Whether a name of these parts stands here, and is not a function's.
fn is_name(tokens: &[Token], parts: &[String]) -> bool {
    let dotted = parts.iter().enumerate().all(|(place, part)| {
        let word = tokens.get(2 * place).and_then(Token::word) == Some(part.as_str());
        word && (place == 0 || tokens[2 * place - 1].is_symbol('.'))
    });
    let next = tokens.get(2 * parts.len() - 1);
    dotted && !next.is_some_and(|token| token.is_symbol('.') || token.is_symbol('('))
}

/// A name as it was written, and the type and place of the variable that it is.
type Heard = (Vec<String>, (Oid, u32));

/// Notes the variables that names turn out to be.
struct Listening<'c, 'a> {
    scope: Scope<'c, 'a>,
    heard: RefCell<Vec<Heard>>,
}

impl VariableScope for Listening<'_, '_> {
    fn resolve(&self, parts: &[&str]) -> Option<BoundExpr> {
        let value = self.scope.resolve(parts)?;
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_string()).collect();
        let mut heard = self.heard.borrow_mut();
        if let Some(variable) = register_of(&value)
            && !heard.iter().any(|(known, _)| *known == parts)
        {
            heard.push((parts, variable));
        }
        Some(value)
    }

    fn parameter(&self, number: u16) -> Option<BoundExpr> {
        self.scope.parameter(number)
    }

    fn conflict(&self) -> VariableConflict {
        self.scope.conflict()
    }
}

impl Compiler<'_> {
    /// NOTIFY: its errors are found when it runs, as PostgreSQL's are.
    pub(in crate::compile) fn notify(
        &self,
        statement: &Statement,
        text: &Fragment,
    ) -> Option<Result<OperationKind>> {
        let notification = notification(statement)?;
        if self.routine.volatility != 'v' {
            let message = "NOTIFY is not allowed in a non-volatile function";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Some(Err(context::of_statement(error, &text.text)));
        }
        let text: Box<str> = text.text.as_str().into();
        Some(match notification {
            Ok(notification) => Ok(OperationKind::Notify { notification, text }),
            Err(error) => Err(context::of_statement(error, &text)),
        })
    }

    pub(in crate::compile) fn command(
        &mut self,
        text: &Fragment,
        tag: &'static str,
    ) -> Result<OperationKind> {
        self.note(unknown_access("a command", "the session runs it"));
        let written: Arc<str> = text.text.as_str().into();
        // Queries are no commands: one with the tag of a query is a table of its rows.
        let tag = if tag == "SELECT" { CREATE_TABLE_AS } else { tag };
        let (text, params) = match tag {
            CREATE_TABLE_AS => self.with_parameters(text),
            _ => (written.clone(), Vec::new()),
        };
        Ok(OperationKind::Command { text, written, tag, params: params.into(), begins: self.begins })
    }

    /// What `$1` and so on are; nothing where one of them is a row.
    fn numbered(&self, names: NamesId) -> Vec<(Oid, u32)> {
        let scope = Scope { compiler: self, names, error: RefCell::default() };
        let values: Vec<BoundExpr> = (0..).map_while(|number| scope.parameter(number)).collect();
        values.iter().map(register_of).collect::<Option<_>>().unwrap_or_default()
    }

    /// CREATE TABLE AS with `$n` in the place of variables, and what they are. A name that is a
    /// variable's in one place of the query is in none a column's: that would be ambiguous.
    fn with_parameters(&self, text: &Fragment) -> (Arc<str>, Vec<(Oid, u32)>) {
        let mut params = self.numbered(text.names);
        let named = |params: &mut Vec<(Oid, u32)>| {
            let Statement::CreateTableAs(create) = parse_statement(&text.text).ok()? else { return None };
            // The arguments of an EXECUTE know no variables, in PostgreSQL either.
            let RowSource::Query { text: query, .. } = &create.source else { return None };
            let start = text.text.rfind(query)?;
            let used = self.variables_of(query, text.names)?;
            let mut written = String::new();
            let mut copied = 0;
            let tokens = lexer::scan(query).ok()?;
            let mut at = 0;
            while at < tokens.len() {
                let length = |(parts, _): &&(Vec<String>, (Oid, u32))| is_name(&tokens[at..], parts);
                let preceded = at > 0 && (tokens[at - 1].is_symbol('.') || tokens[at - 1].is_word("as"));
                let Some((parts, variable)) = used.iter().find(length).filter(|_| !preceded) else {
                    at += 1;
                    continue;
                };
                params.push(*variable);
                written.push_str(&query[copied..tokens[at].start]);
                written.push_str(&format!("${}", params.len()));
                at += 2 * parts.len() - 1;
                copied = tokens[at - 1].end;
            }
            written.push_str(&query[copied..]);
            let (before, after) = (&text.text[..start], &text.text[start + query.len()..]);
            Some(Arc::from(format!("{before}{written}{after}")))
        };
        let plpgsql = self.routine.language == Language::PlPgSql;
        let exact = plpgsql && self.conflict() == Conflict::Error;
        let replaced = if exact { named(&mut params) } else { None };
        (replaced.unwrap_or_else(|| text.text.as_str().into()), params)
    }

    /// The variables that a query reads, by name; `None` if it cannot be bound.
    fn variables_of(&self, query: &str, names: NamesId) -> Option<Vec<Heard>> {
        let statement = parse_statement(query).ok()?;
        let scope = Listening {
            scope: Scope { compiler: self, names, error: RefCell::default() },
            heard: RefCell::default(),
        };
        let names = self.environment.type_names();
        let context = no_session(&names);
        let mut env = bind_env(self.environment, &context, query);
        env.variables = Some(&scope);
        bind_statement(&statement, &mut env).ok()?;
        Some(scope.heard.into_inner())
    }
}
