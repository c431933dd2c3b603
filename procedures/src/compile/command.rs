//! Statements of a body that are the session's: definitions, SET, LOCK TABLE and the like.

use std::cell::RefCell;
use std::sync::Arc;

use archipel_planner::bind::{VariableConflict, VariableScope, bind_statement};
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::native::notify::Notification;
use archipel_sql::ast::{RowSource, Statement};
use archipel_sql::catalog::Language;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::parse_statement;
use archipel_sql::types::{Oid, Type};

use super::scope::Scope;
use super::{Compiler, bind_env, no_session, unknown_access, unsupported};
use crate::plpgsql::ast::{Conflict, Fragment, NamesId};
use crate::plpgsql::lexer::{self, Token};
use crate::run::context;
use crate::run::operation::{Operation, OperationKind};
use crate::run::pause::Command;

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

/// The tag of the one command that has parameters.
const CREATE_TABLE_AS: &str = "CREATE TABLE AS";

/// Whether the session can run a statement for a routine.
pub(super) fn is_command(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Positioned(_)
            | Statement::Merge(_)
            | Statement::Call(_)
            | Statement::Copy(_)
            | Statement::Transaction(_)
            | Statement::Show(_)
            | Statement::AlterSystem(_)
            | Statement::Explain(_)
            | Statement::DeclareCursor(_)
            | Statement::Fetch(_)
            | Statement::CloseCursor(_)
            | Statement::Discard(_)
            | Statement::Notify { .. }
            | Statement::Vacuum(_)
            | Statement::BaseBackup
            | Statement::Checkpoint
            | Statement::Unsupported { .. }
    )
}

/// The same for the text of an EXECUTE, which refuses SELECT … INTO itself.
pub(super) fn is_plain_command(statement: &Statement) -> bool {
    is_command(statement) && !matches!(statement, Statement::CreateTableAs(create) if create.select_into)
}

/// A statement; where its text may change settings, the session takes these over before the next one.
pub(super) fn taking_settings(operation: Operation, text: &Fragment) -> Operation {
    if !text.text.to_lowercase().contains("set_config") {
        return operation;
    }
    let site = operation.site;
    let taking = Operation { site, rights: None, kind: OperationKind::TakeSettings };
    Operation { site, rights: None, kind: OperationKind::Sequence(vec![operation, taking]) }
}

/// Why a statement of a body is refused.
pub(super) fn refused(statement: &Statement) -> SqlError {
    match statement {
        Statement::Transaction(_) => {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")
        }
        Statement::Copy(copy) if copy.is_of_client() => {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL")
        }
        other => unsupported(&format!("{} in a routine", other.tag())),
    }
}

/// Why the text of an EXECUTE is refused.
pub(super) fn refused_text(statement: &Statement) -> SqlError {
    match statement {
        Statement::Transaction(_) => SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "EXECUTE of transaction commands is not implemented",
        ),
        Statement::CreateTableAs(create) if create.select_into => {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "EXECUTE of SELECT ... INTO is not implemented")
                .with_hint("You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.")
        }
        other => SqlError::unsupported(format_args!("{} by EXECUTE", other.tag())),
    }
}

/// What the session has to run for an EXECUTE of this text: one command, a CALL, or several
/// statements.
pub(super) fn of_text(text: &Arc<str>, types: &[Type], params: &[Datum]) -> Option<(Command, &'static str)> {
    let statements = archipel_sql::parser::parse(text).ok()?;
    let tag = match &statements[..] {
        [] => "",
        [only] if matches!(only.statement, Statement::Call(_)) => "CALL",
        [only] if is_plain_command(&only.statement) => only.statement.tag(),
        [_] => return None,
        several => {
            let ends = |statement: &Statement| matches!(statement, Statement::Transaction(_));
            if several.iter().any(|text| ends(&text.statement)) {
                return None;
            }
            let sets = |statement: &Statement| matches!(statement, Statement::Set(_));
            let set = several.iter().find(|text| sets(&text.statement));
            set.map_or("several statements", |set| set.statement.tag())
        }
    };
    let params = types.iter().map(|ty| ty.oid).zip(params.iter().cloned()).collect();
    let (text, written) = (text.clone(), text.clone());
    Some((Command { text, written, params, within: Vec::new(), begins: false }, tag))
}

/// What a text tells listeners, if it is a NOTIFY.
pub(super) fn notification_of(text: &str) -> Option<Result<Notification>> {
    match &archipel_sql::parser::parse(text).ok()?[..] {
        [only] => notification(&only.statement),
        _ => None,
    }
}

fn notification(statement: &Statement) -> Option<Result<Notification>> {
    let Statement::Notify { channel, payload } = statement else { return None };
    Some(Notification::new(channel, payload.as_deref().unwrap_or_default()))
}

impl Compiler<'_> {
    /// NOTIFY: its errors are found when it runs, as PostgreSQL's are.
    pub(super) fn notify(&self, statement: &Statement, text: &Fragment) -> Option<Result<OperationKind>> {
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

    pub(super) fn command(&mut self, text: &Fragment, tag: &'static str) -> Result<OperationKind> {
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
