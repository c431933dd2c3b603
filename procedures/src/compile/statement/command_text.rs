//! Which statements, and texts of an EXECUTE, are left to the session ([`super::command`]).

use std::sync::Arc;

use archipel_planner::native::notify::Notification;
use archipel_sql::ast::Statement;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Type;

use crate::compile::environment::unsupported;
use crate::plpgsql::ast::Fragment;
use crate::run::operation::{Operation, OperationKind};
use crate::run::pause::Command;

/// The tag of the one command that has parameters.
pub(super) const CREATE_TABLE_AS: &str = "CREATE TABLE AS";

/// Whether the session can run a statement for a routine.
pub(in crate::compile) fn is_command(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Positioned(_)
            | Statement::Merge(_)
            | Statement::Call(_)
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
    ) && !is_copy_of_client(statement)
}

/// Whether it is a COPY whose rows come from the client or go there, who is waiting for other answers.
fn is_copy_of_client(statement: &Statement) -> bool {
    matches!(statement, Statement::Copy(copy) if copy.is_of_client())
}

fn copy_of_client() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL")
}

/// The same for the text of an EXECUTE, which refuses SELECT … INTO itself.
pub(in crate::compile) fn is_plain_command(statement: &Statement) -> bool {
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
pub(in crate::compile) fn refused(statement: &Statement) -> SqlError {
    match statement {
        Statement::Transaction(_) => {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")
        }
        copy if is_copy_of_client(copy) => copy_of_client(),
        other => unsupported(&format!("{} in a routine", other.tag())),
    }
}

/// Why the text of an EXECUTE is refused.
pub(in crate::compile) fn refused_text(statement: &Statement) -> SqlError {
    match statement {
        Statement::Transaction(_) => SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "EXECUTE of transaction commands is not implemented",
        ),
        Statement::CreateTableAs(create) if create.select_into => {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "EXECUTE of SELECT ... INTO is not implemented")
                .with_hint("You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.")
        }
        copy if is_copy_of_client(copy) => copy_of_client(),
        other => SqlError::unsupported(format_args!("{} by EXECUTE", other.tag())),
    }
}

/// What the session has to run for an EXECUTE of this text: one command, a CALL, or several
/// statements.
pub(in crate::compile) fn of_text(
    text: &Arc<str>,
    types: &[Type],
    params: &[Datum],
) -> Option<(Command, &'static str)> {
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
pub(in crate::compile) fn notification_of(text: &str) -> Option<Result<Notification>> {
    match &archipel_sql::parser::parse(text).ok()?[..] {
        [only] => notification(&only.statement),
        _ => None,
    }
}

pub(super) fn notification(statement: &Statement) -> Option<Result<Notification>> {
    let Statement::Notify { channel, payload } = statement else { return None };
    Some(Notification::new(channel, payload.as_deref().unwrap_or_default()))
}
