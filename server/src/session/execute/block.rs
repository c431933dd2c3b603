//! DO: a block that is no routine.

use std::sync::Arc;

use archipel_procedures::plpgsql::lexer::long_names;
use archipel_procedures::{Environment, Program};
use archipel_sql::ast::Do;
use archipel_sql::catalog::{Language, ObjectClass, Privileges};
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::encode::RowsTo;
use crate::run::call::CallPlan;
use crate::session::Session;
use crate::session::definition::source::in_script;
use crate::session::host::Host;
use crate::statement::planning::Planning;
use crate::statement::prepare::empty_query;
use crate::statement::{Body, Code, Origin, Prepared};
use crate::wire::output::Severity;

impl Session {
    /// DO: a block compiled for this one run.
    pub(in crate::session) async fn run_block(
        &mut self,
        block: &Do,
        script: &str,
        alone: bool,
    ) -> Result<()> {
        if block.language != "plpgsql" {
            let message = match block.language.as_str() {
                "sql" => "language \"sql\" does not support inline code execution".to_owned(),
                other => format!("language \"{other}\" does not exist"),
            };
            let state = if block.language == "sql" {
                SqlState::FEATURE_NOT_SUPPORTED
            } else {
                SqlState::UNDEFINED_OBJECT
            };
            return Err(SqlError::new(state, message));
        }
        let host = self.host();
        host.rights().require(Language::PlPgSql.object(), ObjectClass::Language, Privileges::USAGE)?;
        self.enter_transaction(alone);
        let prepared = self.prepare_block(&block.body, false).await;
        let prepared = prepared.map_err(|error| in_script(error, script, block.offset))?;
        for long in long_names(&block.body, "inline_code_block") {
            self.notice(Severity::Notice, &long);
        }
        let Body::Rows(plan) = &prepared.body else {
            return Err(SqlError::internal("a block that is no program"));
        };
        let mut run = self.statement_run(plan.clone(), Vec::new(), RowsTo::Nowhere);
        run.may_end = self.may_end();
        self.run_to_end(&prepared, run).await.map(|_| ())
    }

    /// Compiles the body of a block, in the form that stops for the session if it is to run `in_pieces`.
    pub(crate) async fn prepare_block(&mut self, text: &str, in_pieces: bool) -> Result<Arc<Prepared>> {
        let routines = self.database.routines.clone();
        let body: Arc<str> = text.into();
        let compile = move |planning: &Planning| -> Result<Arc<Program>> {
            let environment = Environment { in_pieces, ..planning.host.environment() };
            routines.block(&body, &environment)
        };
        // What a block depends on is not written down.
        let never = |_: Arc<Program>, _: &Host| -> Option<Arc<Program>> { None };
        let (program, _) = self.plan(text, compile, never).await?;
        Ok(self.prepared_code(Origin::Block, text, empty_query(), Code::Call(CallPlan::of_block(program))))
    }
}
