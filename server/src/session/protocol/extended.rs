//! The extended query protocol: Parse, Bind, Describe, Execute, Close, Sync.
//!
//! Everything up to Sync is one transaction. A single Execute directly before Sync is the
//! common case, and a one-shot: whether it is, shows in the messages already received. Several may
//! wait for Sync and be one together: [`super::pipeline`].

use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};
use archipel_sql::{interrupt, memory};

use crate::clock::now;
use crate::encode::{Formats, decode_parameter};
use crate::session::Session;
use crate::session::cursor::portal_state::{Portal, PortalState};
use crate::session::host::PreparedByName;
use crate::statement::planning::Planning;
use crate::statement::prepare::failed_transaction;
use crate::statement::{Body, Prepared};
use crate::wire::message::{Bind, Message, Target};

/// The parameters of a Bind message, by their types.
fn decode_all<'b>(
    values: impl Iterator<Item = (Option<&'b [u8]>, bool)>,
    types: &[Type],
    context: &FunctionContext<'_>,
) -> Result<Vec<Datum>, SqlError> {
    let mut params: Vec<Datum> = Vec::with_capacity(types.len());
    for (index, ((value, binary), ty)) in values.zip(types).enumerate() {
        params.push(decode_parameter(value, binary, *ty, context, index)?);
    }
    Ok(params)
}

impl Session {
    pub(in crate::session) async fn extended(
        &mut self,
        message: Message<'_>,
        rest: &[u8],
    ) -> Result<(), SqlError> {
        let executes = matches!(message, Message::Execute { .. });
        self.begin_work();
        let done = self.one_message(message, rest).await;
        // What comes behind it has a time of its own; a COPY goes on.
        if (executes || done.is_err()) && self.copy_in.is_none() {
            self.timer = None;
        }
        done
    }

    async fn one_message(&mut self, message: Message<'_>, rest: &[u8]) -> Result<(), SqlError> {
        match message {
            Message::Parse { name, query, types } => self.parse(name, query, &types).await,
            Message::Bind(bind) => self.bind(&bind).await,
            Message::Describe { target: Target::Statement, name } => self.describe_statement(name).await,
            Message::Describe { target: Target::Portal, name } => self.describe_portal(name),
            Message::Execute { portal, rows_max } => {
                let last = nothing_but_sync_follows(rest);
                self.execute_portal(portal, rows_max, last, rest).await
            }
            Message::Close { target, name } => {
                match (target, name) {
                    (Target::Statement, "") => self.unnamed_statement = None,
                    (Target::Statement, name) => self.forget_statement(name),
                    (Target::Portal, name) => self.close_portal(name),
                }
                self.output.close_complete();
                Ok(())
            }
            other => Err(SqlError::internal(format!("message {other:?} is not of the extended protocol"))),
        }
    }

    async fn parse(&mut self, name: &str, query: &str, types: &[Oid]) -> Result<(), SqlError> {
        if !name.is_empty() {
            // What stays is asked for, however small: there may be many.
            memory::require(name.len() + query.len(), "CachedPlanSource")?;
        }
        let text: Arc<str> = query.into();
        self.show_activity(&text);
        let standard = self.standard_text(&text).await?;
        self.tell_truncations(&standard).await?;
        let prepared = self.prepare_text(&standard, types).await?;
        if name.is_empty() {
            self.unnamed_statement = Some(prepared);
        } else if self.statements.contains_key(name) {
            // What is wrong with the text comes first.
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        } else {
            // Routines that execute it read it by this text.
            let text = prepared.text.clone();
            self.keep_statement(name, prepared, text, false);
        }
        self.output.parse_complete();
        Ok(())
    }

    /// Keeps a statement under a name; `text` is what the client sent to have it so, as all read it.
    pub(in crate::session) fn keep_statement(
        &mut self,
        name: &str,
        prepared: Arc<Prepared>,
        text: Arc<str>,
        from_sql: bool,
    ) {
        let shown = PreparedByName { text, at: now(), types: prepared.told_params().clone(), from_sql };
        self.memory.prepared.lock().insert(name.to_owned(), shown);
        self.statements.insert(name.to_owned(), prepared);
    }

    /// Puts a statement in the place of the one prepared under a name.
    pub(crate) fn replace_statement(&mut self, name: &str, prepared: &Arc<Prepared>) {
        let kept = match name {
            "" => self.unnamed_statement.as_mut(),
            name => self.statements.get_mut(name),
        };
        if let Some(kept) = kept {
            *kept = prepared.clone();
        }
    }

    /// All that are prepared, under names or without one.
    pub(crate) fn named_statements(&mut self) -> impl Iterator<Item = &mut Arc<Prepared>> {
        self.statements.values_mut().chain(&mut self.unnamed_statement)
    }

    pub(in crate::session) fn forget_statement(&mut self, name: &str) {
        if self.statements.remove(name).is_some() {
            self.memory.prepared.lock().remove(name);
        }
    }

    pub(in crate::session) fn forget_statements(&mut self) {
        self.statements.clear();
        self.memory.prepared.lock().clear();
    }

    pub(crate) fn statement(&self, name: &str) -> Result<Arc<Prepared>, SqlError> {
        let found = if name.is_empty() { self.unnamed_statement.as_ref() } else { self.statements.get(name) };
        found.cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    async fn bind(&mut self, bind: &Bind<'_>) -> Result<(), SqlError> {
        let prepared = self.current(bind.statement).await?;
        bind.head.clone()?;
        if bind.parameter_count() != prepared.params.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                    bind.parameter_count(),
                    bind.statement,
                    prepared.params.len()
                ),
            ));
        }
        self.allowed_now(&prepared)?;
        if matches!(prepared.body, Body::Empty) && self.in_failed_transaction() {
            return Err(failed_transaction());
        }
        let is_taken = self.portals.contains_key(bind.portal) || self.cursors.has(bind.portal);
        if !bind.portal.is_empty() && is_taken {
            return Err(SqlError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{}\" already exists", bind.portal),
            ));
        }
        bind.values.clone()?;
        let host = self.host();
        // Only texts may say `now`, whose time is asked for.
        let says = bind.parameters().any(|(value, binary)| value.is_some() && !binary);
        let context = if says { self.context(&host) } else { FunctionContext { now: 0, session: &*host } };
        let values = bind.parameters();
        let read = || decode_all(values, &prepared.params, &context);
        let params = match interrupt::within(self.server.engine.one_shot_budget(), read) {
            Some(params) => params?,
            None => self.decode_apart(bind, prepared.params.clone()).await?,
        };
        prepared.planned()?;
        let columns = self.columns_now(&prepared)?;
        // What answers no rows has no use for formats, however many there are.
        let formats = match &columns {
            Some(columns) => Formats::new(&bind.result_formats, columns.len())?,
            None => Formats::TEXT,
        };
        let state = PortalState::Ready(params);
        let mut portal = Portal { prepared, columns, formats, state, at: 0, number: 0 };
        if bind.portal.is_empty() {
            self.drop_unnamed_portal();
            self.unnamed_portal = Some(portal);
        } else {
            memory::require(size_of::<Portal>() + bind.portal.len(), "PortalContext")?;
            (portal.at, portal.number) = (now(), self.cursors.number());
            self.portals.insert(bind.portal.to_owned(), portal);
        }
        self.output.bind_complete();
        Ok(())
    }

    /// Reads values that take long to read where that keeps nobody: a document of many megabytes.
    async fn decode_apart(&mut self, bind: &Bind<'_>, types: Arc<[Type]>) -> Result<Vec<Datum>, SqlError> {
        let values = bind.parameters().map(|(value, binary)| (value.map(<[u8]>::to_vec), binary));
        let values: Vec<(Option<Vec<u8>>, bool)> = values.collect();
        let planning = self.planning();
        let read = move |planning: &Planning| -> Result<Vec<Datum>, SqlError> {
            let values = values.iter().map(|(value, binary)| (value.as_deref(), *binary));
            decode_all(values, &types, &planning.context())
        };
        self.plan_apart(&planning, read).await
    }

    async fn describe_statement(&mut self, name: &str) -> Result<(), SqlError> {
        let known = self.statement(name)?;
        if known.columns.is_some() && self.in_failed_transaction() {
            return Err(failed_transaction());
        }
        // What it takes stays what it was, whatever has become of what it answers.
        self.output.parameter_description(known.told_params().iter().map(|ty| ty.oid.0));
        let prepared = self.current(name).await?;
        match &prepared.columns {
            Some(columns) => self.describe_columns(columns, &Formats::TEXT)?,
            None => self.output.no_data(),
        }
        Ok(())
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), SqlError> {
        let (columns, formats) = self.portal_columns(name)?;
        match columns {
            Some(_) if self.in_failed_transaction() => return Err(failed_transaction()),
            Some(columns) => self.describe_columns(&columns, &formats)?,
            None => self.output.no_data(),
        }
        Ok(())
    }

    /// Sync: the end of an implicit transaction.
    pub(in crate::session) async fn sync(&mut self) {
        if self.has_put_off()
            && let Err(error) = self.run_together().await
        {
            self.fail(&error).await;
        }
        self.end_pipeline();
        if let Err(error) = self.commit_implicit().await {
            self.fail(&error).await;
        }
        self.end_of_transaction_portals();
        self.finish_query().await;
    }

    /// Portals live as long as their transaction.
    pub(super) fn end_of_transaction_portals(&mut self) {
        if !self.transaction.is_open() {
            self.unnamed_portal = None;
            if !self.portals.is_empty() {
                self.portals.clear();
            }
            self.cursors.end_transaction();
        }
    }
}

/// Whether the messages received next lead to Sync without another Parse, Bind or Execute.
fn nothing_but_sync_follows(mut rest: &[u8]) -> bool {
    loop {
        let Some((&kind, tail)) = rest.split_first() else { return false };
        match kind {
            b'S' => return true,
            b'C' | b'D' | b'H' => {
                let Some(length) = tail.first_chunk::<4>() else { return false };
                let Some(next) = tail.get(u32::from_be_bytes(*length) as usize..) else { return false };
                rest = next;
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::nothing_but_sync_follows;

    #[test]
    fn only_a_sync_that_has_arrived_counts() {
        let sync = [b'S', 0, 0, 0, 4];
        let close = [b'C', 0, 0, 0, 6, b'P', 0];
        assert!(nothing_but_sync_follows(&sync));
        assert!(nothing_but_sync_follows(&[&close[..], &sync].concat()));
        assert!(!nothing_but_sync_follows(&close));
        assert!(!nothing_but_sync_follows(&[]));
        assert!(!nothing_but_sync_follows(&[b'B', 0, 0, 0, 4]));
        assert!(!nothing_but_sync_follows(&[b'C', 255, 255, 255, 255, 0]));
    }
}
