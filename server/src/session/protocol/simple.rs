//! The simple query protocol: one text, any number of statements.
//!
//! Several statements in one text are one transaction, unless they say otherwise (PostgreSQL
//! 15, chapter 55.2.2.1). A text with one statement, and the last statement of a text that
//! wrote nothing before it, is a one-shot.

use std::rc::Rc;
use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::parser::missing_parameter;
use archipel_sql::parser::shape::shape_of;

use super::script::Script;
use crate::encode::Formats;
use crate::session::Session;
use crate::session::copy::state::CopySent;
use crate::session::execute::RECOMPILES_MAX;
use crate::statement::{Body, Prepared, cache};
use crate::wire::output::Severity;

impl Session {
    pub(super) async fn simple_query(&mut self, text: &str) {
        self.unnamed_statement = None;
        self.drop_unnamed_portal();
        let text: Arc<str> = text.into();
        self.begin_statement(&text);
        self.message_start = Some(crate::clock::now());
        if let Err(error) = self.run_text(text).await {
            self.fail(&error).await;
        }
        if self.copy_in.is_none() {
            self.end_script().await;
        } else {
            self.flush().await;
        }
        self.message_start = None;
    }

    /// After the last statement: the implicit transaction commits, and the client may go on.
    pub(in crate::session) async fn end_script(&mut self) {
        if let Err(error) = self.commit_implicit().await {
            self.fail(&error).await;
        }
        self.end_of_transaction_portals();
        self.finish_query().await;
    }

    async fn run_text(&mut self, text: Arc<str>) -> Result<(), SqlError> {
        let text = self.standard_text(&text).await?;
        self.count(|counters| &counters.statements_sought, 1);
        let short = text.len() <= cache::TEXT_BYTES_MAX;
        let shape = if short { shape_of(&text) } else { None };
        let shape = shape.map(|shape| (self.cache_key(&shape.text.as_str().into(), &[]), shape));
        if let Some((key, shape)) = &shape
            && let Some((prepared, params)) = self.found_by_shape(&text, shape, key)
        {
            self.count(|counters| &counters.found_by_shape, 1);
            return self.run_simple(&text, prepared, params, true).await;
        }
        let key = self.cache_key(&text, &[]);
        if let Some(prepared) = self.cached(&key) {
            self.count(|counters| &counters.found_by_text, 1);
            return self.run_simple(&text, prepared, Vec::new(), true).await;
        }
        let whole = !self.tell_truncations(&text).await?;
        let statements = self.read(&text).await?;
        match statements.len() {
            0 => {
                self.output.empty_query_response();
                Ok(())
            }
            1 => {
                let prepared = self.prepare_settled(&text, statements, &[]).await?;
                // What is known is not read again, and would not be told again.
                if whole {
                    let found = match shape {
                        Some((key, shape)) => self.note_shape(&text, &shape, key, &prepared).await,
                        None => false,
                    };
                    if !found {
                        self.remember(key, &prepared);
                    }
                }
                self.run_simple(&text, prepared, Vec::new(), true).await
            }
            _ => self.run_script(Script { text, counted: (0, 0), statements: statements.into() }).await,
        }
    }

    /// Tells which identifiers of a text are cut; whether there are any.
    pub(super) async fn tell_truncations(&mut self, text: &Arc<str>) -> Result<bool, SqlError> {
        let notices = self.truncations(text).await?;
        for notice in &notices {
            self.notice(Severity::Notice, notice);
        }
        Ok(!notices.is_empty())
    }

    /// Runs statements until they end, one fails or one asks the client for COPY data.
    pub(in crate::session) async fn run_script(&mut self, script: Script) -> Result<(), SqlError> {
        self.in_script = true;
        let ran = self.run_statements(script).await;
        self.in_script = false;
        ran
    }

    async fn run_statements(&mut self, mut script: Script) -> Result<(), SqlError> {
        while let Some(statement) = script.statements.pop_front() {
            let last = script.statements.is_empty();
            let text: Arc<str> = script.text[statement.range.clone()].into();
            let (from, before) = script.counted;
            let offset = before + script.text[from..statement.range.start].chars().count() as u32;
            script.counted = (statement.range.start, offset);
            let shift = |mut error: SqlError| {
                if let Some(position) = &mut error.fields_mut().position {
                    *position += offset;
                }
                error
            };
            // Positions are counted in the whole text; statements parsed alone count from
            // their own start.
            let reparsed = self.read(&text).await.map_err(shift)?;
            let prepared = self.prepare_settled(&text, reparsed, &[]).await.map_err(shift)?;
            // A text of several statements is a block.
            if let Body::Utility(statement) = &prepared.body {
                self.require_outside_of_block(statement)?;
            }
            self.run_simple(&text, prepared, Vec::new(), last).await.map_err(shift)?;
            if let Some(copy) = &mut self.copy_in {
                copy.sent = CopySent::Script(script);
                return Ok(());
            }
            self.flush_early().await;
            // `statement_timeout` is for each of them.
            self.start_timer();
        }
        Ok(())
    }

    /// Runs a statement of this text. Its parameters, if it has any, are the literals of the text. One
    /// that finds, when it has waited for its tables, that it answers other columns now, is described
    /// and run as if it had come then.
    async fn run_simple(
        &mut self,
        text: &Arc<str>,
        prepared: Arc<Prepared>,
        params: Vec<Datum>,
        last: bool,
    ) -> Result<(), SqlError> {
        let (start, flushes) = (self.output.len(), self.flushes);
        let mut ran = self.run_described(prepared, params, last).await;
        for _ in 0..RECOMPILES_MAX {
            let reshaped = std::mem::take(&mut self.reshaped);
            if ran.is_ok() || !reshaped || self.flushes != flushes {
                break;
            }
            self.output.truncate(start);
            let statements = self.read(text).await?;
            let prepared = self.prepare_settled(text, statements, &[]).await?;
            ran = self.run_described(prepared, Vec::new(), last).await;
        }
        ran
    }

    /// RowDescription, and the statement's answer.
    async fn run_described(
        &mut self,
        prepared: Arc<Prepared>,
        params: Vec<Datum>,
        last: bool,
    ) -> Result<(), SqlError> {
        self.allowed_now(&prepared)?;
        prepared.allowed()?;
        if prepared.params.len() > params.len() && !matches!(prepared.body, Body::Utility(_)) {
            // A simple query brings no values.
            return Err(missing_parameter(&prepared.text, params.len()));
        }
        let formats = Formats::All { binary: self.fetches_binary(&prepared) };
        prepared.planned()?;
        let (start, flushes) = (self.output.len(), self.flushes);
        self.late_notices = 0;
        if let Some(columns) = &prepared.columns {
            let columns = columns.clone();
            self.describe_columns(&columns, &formats)?;
        }
        if let Err(error) = self.execute(&prepared, params, &formats, last).await {
            if self.flushes == flushes && prepared.collects() {
                self.output.take_back_rows(start);
            }
            return Err(error);
        }
        let rows = prepared.columns.is_some() && prepared.collects();
        if rows && self.told_notice && self.flushes == flushes {
            self.output.put_notices_first(start, self.late_notices);
        }
        self.mark_copy_simple();
        Ok(())
    }

    pub(crate) fn cache_key(&self, text: &Arc<str>, declared: &[archipel_sql::types::Oid]) -> cache::Key {
        cache::Key {
            database: self.database.oid,
            text: text.clone(),
            declared: Rc::from(declared),
            search_path: self.settings.effective().search_path.clone(),
            role: self.roles().current,
            conflict: self.settings.effective().variable_conflict,
            strings: self.settings.effective().strings,
        }
    }
}
