//! EXECUTE, and loops and cursors over it: statements whose text is known only when they run.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use archipel_planner::native::notify::Notification;
use archipel_planner::native::{CompiledStatement, ExecContext, ExecResult};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{FunctionContext, SessionHost, quote_literal};
use archipel_sql::io;
use archipel_sql::type_table::{format_type, type_info};
use archipel_sql::types::Type;

use super::Invocation;
use super::operation::{Compiled, CursorQuery, IntoPlan, Program, Site};
use super::pause::Command;
use super::rows::FirstRow;

/// EXECUTE: bound when it runs, kept by text.
pub struct DynamicPlan {
    pub text: Compiled,
    /// What `$1` and so on are.
    pub using: Vec<Compiled>,
    pub into: Option<IntoPlan>,
    /// RETURN QUERY EXECUTE: its rows are the function's.
    pub returns: bool,
    /// A loop goes over the rows: what fails in it is not said of the text.
    pub looped: bool,
    pub binder: Arc<dyn DynamicBinder>,
}

/// Turns the text of EXECUTE into a statement over parameters.
pub trait DynamicBinder: Send + Sync {
    /// Binds a text, which the session must be allowed to run.
    fn bind(&self, text: &str, session: &dyn SessionHost) -> ExecResult<Arc<CompiledStatement>>;

    /// The prepared statement that this text runs, if it is an EXECUTE of SQL.
    fn prepared(&self, text: &str, session: &dyn SessionHost) -> Option<Result<PreparedStatement>>;

    /// Binds each statement of a text that has several, if none of them is the session's: what the
    /// last one answers is what the EXECUTE does.
    fn several(
        &self,
        text: &str,
        session: &dyn SessionHost,
    ) -> Option<ExecResult<Vec<Arc<CompiledStatement>>>>;

    /// A text that calls routines, in the form that can stop where they do; `None` if there is none.
    fn pieces(&self, text: &str) -> ExecResult<Option<Arc<Pieces>>>;

    /// What the session has to run, if this text is such a statement, or several.
    fn command(&self, text: &Arc<str>, params: &[Datum]) -> Option<(Command, &'static str)>;

    /// What this text tells listeners, if it is a NOTIFY.
    fn notification(&self, text: &str) -> Option<Result<Notification>>;

    /// The same for OPEN.
    fn bind_cursor(&self, text: &str, session: &dyn SessionHost) -> Result<Arc<CursorQuery>>;
}

/// A query as a routine whose arguments are its parameters.
pub struct Pieces {
    pub program: Arc<Program>,
    /// Columns of its rows.
    pub width: usize,
}

/// A statement that a session has prepared, and what an EXECUTE gives it.
pub struct PreparedStatement {
    pub text: Box<str>,
    /// Where it has parameters, in bytes, and which.
    pub params: Vec<(Range<usize>, usize)>,
    pub arguments: Option<PreparedArguments>,
}

/// Answers the values of the arguments, and what types those have.
pub struct PreparedArguments {
    pub compiled: Arc<CompiledStatement>,
    pub types: Arc<[Type]>,
}

impl PreparedStatement {
    /// The statement with values in place of its parameters.
    fn with(&self, values: &[Datum], types: &[Type], context: &FunctionContext<'_>) -> String {
        let mut written = String::new();
        let mut copied = 0;
        for (at, number) in &self.params {
            written.push_str(&self.text[copied..at.start]);
            let ty = types.get(*number).copied().unwrap_or(Type::UNKNOWN);
            // As the session would have it shown, a value may lose digits; types of users' own are
            // known to the session alone.
            let built_in = type_info(ty.oid).is_some();
            let plain = FunctionContext::detached();
            let value = match values.get(*number) {
                None | Some(Datum::Null) => "NULL".to_owned(),
                Some(value) => {
                    quote_literal(&io::to_text(value, ty, if built_in { &plain } else { context }))
                }
            };
            let _ = write!(written, "({value}::{})", format_type(ty));
            copied = at.end;
        }
        written.push_str(&self.text[copied..]);
        written
    }
}

impl Invocation<'_, '_> {
    /// What the text of an EXECUTE runs, and with which parameters: of a text that executes a prepared
    /// statement, that statement.
    pub(super) fn text_of(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        plan: &DynamicPlan,
        (text, params): (Arc<str>, Vec<Datum>),
        site: Site,
    ) -> ExecResult<(Arc<str>, Vec<Datum>)> {
        let Some(prepared) = plan.binder.prepared(&text, ctx.functions.session) else {
            return Ok((text, params));
        };
        let prepared = prepared.map_err(|error| self.in_statement(error.into(), Some(&text), site))?;
        let Some(arguments) = &prepared.arguments else {
            return Ok((prepared.text.as_ref().into(), Vec::new()));
        };
        // They know none of the parameters of this EXECUTE.
        let mut first = FirstRow::new(1, Vec::new());
        let _ = self.query(ctx, Some(&text), site, |ctx| arguments.compiled.run(ctx, &mut first))?;
        let written = prepared.with(&first.row, &arguments.types, &ctx.functions);
        Ok((written.into(), Vec::new()))
    }
}
