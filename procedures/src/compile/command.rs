//! Statements of a body that are the session's: definitions, SET, LOCK TABLE and the like.

use std::sync::Arc;

use archipel_planner::native::notify::Notification;
use archipel_sql::ast::Statement;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Type;

use super::{Compiler, unknown_access, unsupported};
use crate::plpgsql::ast::Fragment;
use crate::run::context;
use crate::run::operation::OperationKind;
use crate::run::pause::Command;

/// Whether the session can run a statement for a routine.
pub(super) fn is_command(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Call(_)
            | Statement::Copy(_)
            | Statement::Transaction(_)
            | Statement::SetTransaction(_)
            | Statement::Show(_)
            | Statement::AlterSystem(_)
            | Statement::Prepare(_)
            | Statement::Execute(_)
            | Statement::Deallocate(_)
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

/// Why a statement of a body is refused.
pub(super) fn refused(statement: &Statement) -> SqlError {
    match statement {
        Statement::Transaction(_) => {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")
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
        [only] if is_command(&only.statement) => only.statement.tag(),
        [_] => return None,
        several => {
            let ends = |statement: &Statement| matches!(statement, Statement::Transaction(_));
            if several.iter().any(|text| ends(&text.statement)) {
                return None;
            }
            "several statements"
        }
    };
    let params = types.iter().map(|ty| ty.oid).zip(params.iter().cloned()).collect();
    Some((Command { text: text.clone(), params }, tag))
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
        Ok(OperationKind::Command { text: text.text.as_str().into(), tag })
    }
}
