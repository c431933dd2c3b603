//! RAISE, ASSERT and GET DIAGNOSTICS.

use archipel_planner::native::{ExecContext, ExecError, ExecResult, Notice};
use archipel_sql::datum::Datum;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::memory;

use super::condition::is_true;
use super::invocation::Invocation;
use super::operation::expression::Compiled;
use super::operation::site::Site;
use super::operation::*;
use crate::plpgsql::ast::{Diagnostic, Level, RaiseOption};
use crate::plpgsql::conditions;

/// STACKED DIAGNOSTICS ACCESSED WITHOUT ACTIVE HANDLER.
const NO_HANDLER: SqlState = SqlState(*b"0Z002");

fn text_of(value: Datum) -> Option<String> {
    match value {
        Datum::Text(text) => Some(text.into_string()),
        _ => None,
    }
}

impl Invocation<'_, '_> {
    pub(super) fn raise(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        raise: &RaisePlan,
        site: Site,
    ) -> ExecResult<()> {
        if raise.again {
            return match self.errors.last() {
                // As it was, its context included.
                Some(error) => Err(ExecError::Sql(error.clone())),
                None => {
                    let error = SqlError::new(
                        NO_HANDLER,
                        "RAISE without parameters cannot be used outside an exception handler",
                    );
                    Err(self.at(error.into(), site))
                }
            };
        }
        let error = self.raised(ctx, raise).map_err(|e| self.at(e, site))?;
        let error = self.program.add_context(error, Some(site));
        let severity = match raise.level {
            Level::Exception => return Err(ExecError::Sql(error)),
            Level::Debug => "DEBUG",
            Level::Log => "LOG",
            Level::Info => "INFO",
            Level::Notice => "NOTICE",
            Level::Warning => "WARNING",
        };
        let encoding = ctx.functions.style().encoding;
        if !encoding.is_servers() && is_heard(ctx, severity) {
            // What cannot be sent fails here, where PostgreSQL sends it.
            require_encodable(encoding, &error)?;
        }
        if !ctx.borrows || is_heard(ctx, severity) {
            ctx.notice(severity, error, ctx.depth - 1);
            if let Some(notice) = ctx.notices.last_mut() {
                notice.heard = ctx.borrows;
            }
            require_room(&ctx.notices)?;
        }
        Ok(())
    }

    /// The message, code and fields that RAISE asks for.
    fn raised(&mut self, ctx: &mut ExecContext<'_, '_>, raise: &RaisePlan) -> ExecResult<SqlError> {
        let mut message = None;
        if let Some(format) = &raise.format {
            let mut text = String::new();
            for (index, part) in format.iter().enumerate() {
                if index > 0 {
                    let value = (raise.params[index - 1])(ctx)?;
                    text.push_str(text_of(value).as_deref().unwrap_or("<NULL>"));
                }
                text.push_str(part);
            }
            message = Some(text);
        }
        let mut condition = raise.condition.clone();
        let mut fields: Vec<(RaiseOption, String)> = Vec::new();
        for (option, value) in &raise.options {
            let Some(text) = text_of(value(ctx)?) else {
                return Err(ExecError::Sql(SqlError::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    "RAISE statement option cannot be null",
                )));
            };
            let twice = match option {
                RaiseOption::Errcode => condition.is_some(),
                RaiseOption::Message => message.is_some(),
                other => fields.iter().any(|(known, _)| known == other),
            };
            if twice {
                return Err(ExecError::Sql(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("RAISE option already specified: {}", option_name(*option)),
                )));
            }
            match option {
                RaiseOption::Errcode => condition = Some(errcode(&text)?),
                RaiseOption::Message => message = Some(text),
                other => fields.push((*other, text)),
            }
        }
        let default = if raise.level == Level::Exception {
            SqlState::RAISE_EXCEPTION
        } else if raise.level == Level::Warning {
            SqlState::WARNING
        } else {
            SqlState::SUCCESSFUL_COMPLETION
        };
        // Nothing fails successfully.
        let success = |code: SqlState| code == SqlState::SUCCESSFUL_COMPLETION;
        let code =
            condition.as_ref().map_or(default, |(_, code)| if success(*code) { default } else { *code });
        let message = message.unwrap_or_else(|| match condition {
            Some((name, _)) => name,
            None => code.as_str().to_string(),
        });
        let mut error = SqlError::new(code, message);
        let set = error.fields_mut();
        for (option, text) in fields {
            let field = match option {
                RaiseOption::Detail => &mut set.detail,
                RaiseOption::Hint => &mut set.hint,
                RaiseOption::Column => &mut set.column,
                RaiseOption::Constraint => &mut set.constraint,
                RaiseOption::Datatype => &mut set.data_type,
                RaiseOption::Table => &mut set.table,
                RaiseOption::Schema => &mut set.schema,
                RaiseOption::Errcode | RaiseOption::Message => continue,
            };
            *field = Some(text);
        }
        Ok(error)
    }

    pub(super) fn assert(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        condition: &Compiled,
        message: Option<&Compiled>,
        site: Site,
    ) -> ExecResult<()> {
        let holds = condition(ctx).map(|value| is_true(&value));
        let session = ctx.functions.session;
        if matches!(holds, Ok(true)) || session.setting("plpgsql.check_asserts").as_deref() == Some("off") {
            return Ok(());
        }
        holds.map_err(|e| self.at(e, site))?;
        let text = match message {
            Some(message) => text_of(message(ctx).map_err(|e| self.at(e, site))?),
            None => None,
        };
        let error =
            SqlError::new(SqlState::ASSERT_FAILURE, text.unwrap_or_else(|| "assertion failed".to_string()));
        Err(self.at(error.into(), site))
    }

    pub(super) fn get_diagnostics(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        items: &[(DiagnosticTarget, Diagnostic)],
        stacked: bool,
        site: Site,
    ) -> ExecResult<()> {
        if stacked && self.errors.is_empty() {
            let error = SqlError::new(
                NO_HANDLER,
                "GET STACKED DIAGNOSTICS cannot be used outside an exception handler",
            );
            return Err(self.at(error.into(), site));
        }
        for (target, item) in items {
            let value = match item {
                Diagnostic::RowCount => Datum::Int8(self.row_count as i64),
                Diagnostic::Context => {
                    let own = self.program.context_line(Some(site)).unwrap_or_default();
                    Datum::text(&format!("{own}{}", self.callers_context(ctx)))
                }
                other => {
                    let Some(error) = self.errors.last() else { continue };
                    let fields = error.fields();
                    let whole;
                    let text = match other {
                        Diagnostic::ErrorContext => {
                            let own = fields.context.as_deref().unwrap_or_default();
                            whole = format!("{own}{}", self.callers_context(ctx));
                            Some(whole.as_str())
                        }
                        Diagnostic::ErrorDetail => fields.detail.as_deref(),
                        Diagnostic::ErrorHint => fields.hint.as_deref(),
                        Diagnostic::ReturnedSqlstate => Some(fields.state.as_str()),
                        Diagnostic::ColumnName => fields.column.as_deref(),
                        Diagnostic::ConstraintName => fields.constraint.as_deref(),
                        Diagnostic::DatatypeName => fields.data_type.as_deref(),
                        Diagnostic::MessageText => Some(fields.message.as_str()),
                        Diagnostic::TableName => fields.table.as_deref(),
                        Diagnostic::SchemaName => fields.schema.as_deref(),
                        Diagnostic::RowCount | Diagnostic::Context => None,
                    };
                    Datum::text(text.unwrap_or_default())
                }
            };
            ctx.variables[target.scratch as usize] = value;
            let value = (target.cast)(ctx).map_err(|e| self.at(e, site))?;
            ctx.variables[target.register as usize] = value;
        }
        Ok(())
    }
}

fn option_name(option: RaiseOption) -> &'static str {
    match option {
        RaiseOption::Errcode => "ERRCODE",
        RaiseOption::Message => "MESSAGE",
        RaiseOption::Detail => "DETAIL",
        RaiseOption::Hint => "HINT",
        RaiseOption::Column => "COLUMN",
        RaiseOption::Constraint => "CONSTRAINT",
        RaiseOption::Datatype => "DATATYPE",
        RaiseOption::Table => "TABLE",
        RaiseOption::Schema => "SCHEMA",
    }
}

/// Refuses a message that the client's encoding does not have.
#[cold]
fn require_encodable(encoding: Encoding, error: &SqlError) -> ExecResult<()> {
    let fields = error.fields();
    let texts = [&fields.detail, &fields.hint, &fields.schema, &fields.table, &fields.column];
    let texts = texts.into_iter().chain([&fields.data_type, &fields.constraint]).flatten();
    let mut encoded = Vec::new();
    for text in std::iter::once(&fields.message).chain(texts) {
        encoded.clear();
        encoding.encode(text, &mut encoded)?;
    }
    Ok(())
}

/// A message of as many bytes is large by itself.
const LARGE_BYTES: usize = 1 << 20;

/// Refuses messages that would not fit into memory once more, as they are sent: what is said stays here until
/// nothing that has said it can begin anew. Asked each time that there are twice as many.
fn require_room(notices: &[Notice]) -> ExecResult<()> {
    let bytes_of = |notice: &Notice| {
        let fields = notice.error.fields();
        let texts = [&fields.detail, &fields.hint, &fields.context];
        notice.error.message().len() + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
    };
    let is_large = notices.last().is_some_and(|last| bytes_of(last) >= LARGE_BYTES);
    if !is_large && (notices.len() < 1 << 10 || !notices.len().is_power_of_two()) {
        return Ok(());
    }
    let bytes: usize = notices.iter().map(bytes_of).sum();
    // Written, and copied once to where there is more room.
    memory::require(bytes.saturating_mul(3), "MessageContext")?;
    Ok(())
}

/// Whether a message reaches the client where a routine around has settings of its own: those of the
/// session are asked later, and of other messages.
#[cold]
fn is_heard(ctx: &ExecContext<'_, '_>, severity: &str) -> bool {
    const LEVELS: [&str; 6] = ["debug", "log", "info", "notice", "warning", "error"];
    let rank = |level: &str| LEVELS.iter().position(|known| level.starts_with(known));
    let least = ctx.functions.session.setting("client_min_messages");
    let least = least.and_then(|level| rank(&level.to_ascii_lowercase()));
    severity == "INFO" || rank(&severity.to_ascii_lowercase()) >= least
}

/// ERRCODE takes a code or a condition's name.
fn errcode(text: &str) -> ExecResult<(String, SqlState)> {
    let valid = text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    if let (Some(bytes), 5, true) = (text.as_bytes().first_chunk::<5>(), text.len(), valid) {
        return Ok((text.to_string(), SqlState(*bytes)));
    }
    match conditions::codes_of(text).first() {
        Some(code) => Ok((text.to_string(), *code)),
        None => Err(ExecError::Sql(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized exception condition \"{text}\""),
        ))),
    }
}
