//! Statements that neither read nor write rows: settings, transactions, prepared statements,
//! maintenance; and the way to those that do, through EXECUTE and EXPLAIN.

use std::sync::Arc;

use archipel_planner::bound::OutputColumn;
use archipel_planner::native::cursor::OpenCursor;
use archipel_sql::ast::{
    AlterSystem, DiscardTarget, Execute, ExplainFormat, Prepare, Reset, RowSource, Set, SetTransaction,
    SetValue, Show, Statement,
};
use archipel_sql::catalog::Privileges;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};

use super::{Session, role_setting};
use crate::encode::{Formats, RowEncoder};
use crate::settings::session::TRANSACTION_MODES;
use crate::settings::table::SETTINGS;
use crate::settings::{SessionSettings, foreign, setting_name};
use crate::statement::{Body, Prepared, same_columns};
use crate::system::visibility::examine_setting;
use crate::wire::output::Severity;

fn text_column(name: &str) -> OutputColumn {
    OutputColumn { name: name.to_owned(), ty: Type::TEXT, source: None }
}

/// An error about a part of a text as one about the whole: this stands before the part.
pub(super) fn in_whole(mut error: SqlError, before: &str) -> SqlError {
    if let Some(position) = &mut error.fields_mut().position {
        *position += before.chars().count() as u32;
    }
    error
}

impl Session {
    /// The result columns of a utility statement, if it answers rows.
    pub(crate) fn utility_columns(&mut self, statement: &Statement) -> Result<Option<Vec<OutputColumn>>> {
        Ok(match statement {
            Statement::Show(Show::Name(name)) => {
                let name = setting_name(name);
                if self.settings.effective().show(&name).is_none() {
                    return Err(unknown_setting(&name));
                }
                Some(vec![text_column(&name)])
            }
            Statement::Show(Show::All) => {
                Some(["name", "setting", "description"].into_iter().map(text_column).collect())
            }
            Statement::Explain(explain) => {
                let ty = if explain.options.format == ExplainFormat::Json { Type::JSON } else { Type::TEXT };
                Some(vec![OutputColumn { ty, ..text_column("QUERY PLAN") }])
            }
            Statement::Fetch(fetch) => self.cursor_columns(fetch),
            // One that is still to come has no columns yet; running it tells that it is missing.
            Statement::Execute(execute) => match self.statement(&execute.name) {
                Ok(prepared) => prepared.columns.as_ref().map(|columns| columns.to_vec()),
                Err(_) => None,
            },
            _ => None,
        })
    }

    /// Parameter types of a utility statement with this text: those declared, or those of the query
    /// inside of it.
    pub(crate) async fn utility_parameters(
        &mut self,
        statement: &Statement,
        text: &str,
        declared: &[Oid],
    ) -> Result<Arc<[Type]>> {
        let query = match statement {
            Statement::DeclareCursor(declare) => Some(declare.text.as_str()),
            Statement::Explain(explain) => text.get(explain.statement.range.clone()),
            Statement::CreateTableAs(create) => match &create.source {
                RowSource::Query { text, .. } => Some(text.as_str()),
                RowSource::Execute(_) => None,
            },
            _ => None,
        };
        let Some(query) = query.filter(|query| query.contains('$')) else {
            return Ok(declared.iter().map(|oid| Type::of(*oid)).collect());
        };
        let before = text.find(query).map_or("", |start| &text[..start]);
        let shift = |error: SqlError| in_whole(error, before);
        let query: Arc<str> = query.into();
        let statements = self.read(&query).await.map_err(shift)?;
        let prepared = self.prepare_parsed(&query, statements, declared).await.map_err(shift)?;
        Ok(prepared.params.clone())
    }

    pub(crate) fn in_failed_transaction(&self) -> bool {
        self.transaction.is_failed()
    }

    /// Runs a utility statement to its completion message.
    pub(super) async fn utility(
        &mut self,
        statement: &Arc<Statement>,
        prepared: &Arc<Prepared>,
        params: Vec<Datum>,
        formats: &Formats,
        alone: bool,
    ) -> Result<()> {
        if sees_database(statement) {
            self.note_query();
        }
        match &**statement {
            Statement::Transaction(transaction) => {
                if self.transaction.is_open() {
                    self.require_outside_of_block(statement)?;
                }
                let tag = self.transaction_statement(transaction).await?;
                self.output.command_complete(tag);
            }
            Statement::Copy(copy) => return self.copy(copy, prepared, alone).await,
            Statement::Execute(execute) => {
                let columns = prepared.columns.as_deref();
                return self.execute_prepared(execute, columns, formats, alone).await;
            }
            Statement::Positioned(positioned) => {
                let (at_row, params) = self.at_row(positioned, prepared, params, alone).await?;
                return Box::pin(self.execute(&at_row, params, formats, alone)).await;
            }
            Statement::Show(_) | Statement::Explain(_) => {
                let rows = self.utility_rows(statement, prepared, params, alone).await?;
                if let Some(columns) = &prepared.columns {
                    let (columns, formats) = (columns.clone(), formats.clone());
                    let encoder = RowEncoder { columns, formats, encoding: self.encoding() };
                    self.send_rows(&encoder, &rows)?;
                }
                self.output.command_complete(prepared.tag);
            }
            Statement::Prepare(prepare) => {
                self.prepare_statement(prepare, &prepared.text).await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::Deallocate(name) => {
                self.deallocate(name.as_deref())?;
                self.output.command_complete(prepared.tag);
            }
            Statement::Do(block) => {
                self.run_block(block, &prepared.text, alone).await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::DeclareCursor(declare) => {
                self.declare_cursor(declare, prepared, params, alone).await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::Fetch(fetch) => {
                Box::pin(self.open_named(&fetch.cursor, alone)).await?;
                let count = self.fetch(fetch, formats).await?;
                self.output.command_complete_count(prepared.tag, count);
            }
            Statement::Lock(lock) => {
                self.lock_tables(lock, alone).await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::BaseBackup => {
                self.require_superuser("must be superuser or replication role to start walsender")?;
                self.base_backup().await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::Checkpoint => {
                self.require_checkpoint_rights()?;
                self.checkpoint().await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::SetConstraints(set) => {
                self.set_constraints(set).await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::Discard(target) => {
                self.discard(*target)?;
                if matches!(target, DiscardTarget::All | DiscardTarget::Temporary) {
                    self.drop_temporary().await?;
                }
                self.output.command_complete(prepared.tag);
            }
            Statement::AlterSystem(change) => {
                self.alter_system(change).await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::LargeObject(about) => {
                self.large_object_statement(about, alone).await?;
                self.output.command_complete(prepared.tag);
            }
            Statement::OwnedObjects(owned) => {
                let alone = self.large_objects_of_roles(owned, alone).await?;
                let tag = self.define(statement, prepared, params, alone).await?;
                self.output.command_complete(&tag);
            }
            Statement::DropRole(drop) => {
                self.require_no_large_objects(drop).await?;
                let tag = self.define(statement, prepared, params, alone).await?;
                self.output.command_complete(&tag);
            }
            other if self.session_statement(other, alone)? => self.output.command_complete(prepared.tag),
            _ => {
                let tag = self.define(statement, prepared, params, alone).await?;
                self.output.command_complete(&tag);
            }
        }
        Ok(())
    }

    /// DEALLOCATE of one prepared statement, or of all.
    fn deallocate(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            Some(name) => {
                self.statement(name)?;
                self.forget_statement(name);
            }
            None => self.forget_statements(),
        }
        Ok(())
    }

    fn require_checkpoint_rights(&mut self) -> Result<()> {
        if !self.host().rights().acts_as(archipel_sql::catalog::role::CHECKPOINT) {
            let message = "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT";
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        Ok(())
    }

    /// Statements that only change the session; `false` if it is none of them.
    fn session_statement(&mut self, statement: &Statement, alone: bool) -> Result<bool> {
        match statement {
            Statement::Set(set) => self.set(set, alone)?,
            Statement::SetTransaction(set) => self.set_transaction(set, alone)?,
            Statement::Reset(Reset::All) => self.change_settings(|all| {
                all.reset_all();
                Ok(())
            })?,
            Statement::Reset(Reset::Name(name)) if role_setting::is_role_setting(&setting_name(name)) => {
                self.set_role(&setting_name(name), None, false)?;
            }
            Statement::Reset(Reset::Name(name)) => {
                self.change_setting(&setting_name(name), None, false)?;
            }
            Statement::Listen(_) | Statement::Notify { .. } | Statement::Unlisten(_) => {
                self.note_notification(statement)?;
            }
            Statement::CloseCursor(name) => self.close_cursor(name.as_deref())?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The rows of a utility statement that answers some of its own.
    pub(super) async fn utility_rows(
        &mut self,
        statement: &Statement,
        prepared: &Prepared,
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<Vec<Vec<Datum>>> {
        Ok(match statement {
            Statement::Show(Show::Name(name)) => {
                let name = setting_name(name);
                let value = self.shown(&name).ok_or_else(|| unknown_setting(&name))?;
                examine_setting(&self.host(), &name)?;
                vec![vec![Datum::text(&value)]]
            }
            Statement::Show(Show::All) => {
                let own = SETTINGS.iter().map(|setting| (setting.name, setting.description));
                let others = foreign::all().iter().map(|known| (known.name, known.description));
                let host = self.host();
                let seen = |(name, _): &(&str, &str)| examine_setting(&host, name).is_ok();
                let mut all: Vec<(&str, &str)> = own.chain(others).filter(seen).collect();
                all.sort_by_key(|(name, _)| name.to_ascii_lowercase());
                let row = |(name, description): (&str, &str)| {
                    let value = self.shown(name).unwrap_or_default();
                    vec![Datum::text(name), Datum::text(&value), Datum::text(description)]
                };
                all.into_iter().map(row).collect()
            }
            Statement::Explain(explain) => {
                let lines = self.explain(explain, prepared, params, alone).await?;
                lines.iter().map(|line| vec![Datum::text(line)]).collect()
            }
            other => return Err(SqlError::internal(format!("{} answers no rows", other.tag()))),
        })
    }

    /// Appends rows that are at hand.
    pub(super) fn send_rows(&mut self, encoder: &RowEncoder, rows: &[Vec<Datum>]) -> Result<()> {
        let host = self.host();
        let context = host.context();
        let mut out = self.output.take();
        let encoded = rows.iter().try_for_each(|row| encoder.encode(row, &context, &mut out));
        self.output.restore(out);
        encoded
    }

    /// Appends the rows at these places of a cursor.
    pub(super) fn send_places(
        &mut self,
        encoder: &RowEncoder,
        cursor: &OpenCursor,
        places: &[usize],
    ) -> Result<()> {
        let host = self.host();
        let context = host.context();
        let visible = encoder.columns.len();
        let mut out = self.output.take();
        let encoded = places
            .iter()
            .try_for_each(|place| encoder.encode(&cursor.row(*place)[..visible], &context, &mut out));
        self.output.restore(out);
        encoded
    }

    /// What SHOW answers.
    fn shown(&self, name: &str) -> Option<String> {
        self.server.live.show(name).or_else(|| self.settings.effective().show(name))
    }

    /// ALTER SYSTEM: written for the next reload or restart.
    async fn alter_system(&mut self, change: &AlterSystem) -> Result<()> {
        if self.transaction.is_block() {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "ALTER SYSTEM cannot run inside a transaction block",
            ));
        }
        let what = match change {
            AlterSystem::Set(set) => Some(&set.name),
            AlterSystem::Reset(Reset::Name(name)) => Some(name),
            AlterSystem::Reset(Reset::All) => None,
        };
        let granted = what.is_some_and(|name| self.has_parameter_right(name, Privileges::ALTER_SYSTEM));
        if !granted {
            self.require_superuser(match what {
                Some(name) => format!("permission denied to set parameter \"{}\"", setting_name(name)),
                None => "permission denied to perform ALTER SYSTEM RESET ALL".to_owned(),
            })?;
        }
        let altered = match change {
            AlterSystem::Set(set) => {
                let name = setting_name(&set.name);
                let text = setting_text(&name, &set.value)?;
                Some((name, text))
            }
            AlterSystem::Reset(Reset::Name(name)) => Some((setting_name(name), None)),
            AlterSystem::Reset(Reset::All) => None,
        };
        let server = self.server.clone();
        // It waits for the disk, and others run on this thread.
        let written = self.server.waiting.begin(move || {
            let (live, config) = (&server.live, &server.config);
            let starts = |values: &toml::Table| {
                let altered = config.with_altered(values).map_err(|error| error.to_string())?;
                crate::server::check_config(&altered).map_err(|error| error.to_string())
            };
            let directory = &config.data_directory;
            match altered {
                Some((name, text)) => live.alter(directory, &name, text.as_deref(), &starts),
                None => live.reset_all(directory),
            }
        })?;
        written.await.unwrap_or_else(|_| Err(SqlError::internal("a change of the settings was not written")))
    }

    fn set(&mut self, set: &Set, alone: bool) -> Result<()> {
        let name = setting_name(&set.name);
        let text = setting_text(&name, &set.value)?;
        if set.local && !self.joins_transaction(alone) {
            let warning = SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            );
            self.notice(Severity::Warning, &warning);
            if role_setting::is_role_setting(&name) || TRANSACTION_MODES.iter().any(|(mode, _)| name == *mode)
            {
                return Ok(());
            }
            // A wrong value is told of all the same.
            let granted = self.is_granted(&name);
            return self.change_settings(|all| {
                let before = all.mark();
                let set = |all: &mut SessionSettings| all.set(&name, text.as_deref(), true);
                let set = if granted { all.trusting(set) } else { set(all) };
                all.rollback_to(before);
                set
            });
        }
        if role_setting::is_role_setting(&name) {
            return self.set_role(&name, text.as_deref(), set.local);
        }
        if TRANSACTION_MODES.iter().any(|(mode, _)| name == *mode) {
            // With LOCAL or without, it is about the transaction that the statement is part of.
            self.joins_transaction(alone);
            return match text {
                Some(text) => self.set_transaction_setting(&name, &text),
                None => Ok(()),
            };
        }
        if TRANSACTION_MODES.iter().any(|(_, default)| name == *default) {
            self.pin_transaction_modes()?;
        }
        self.change_setting(&name, text.as_deref(), set.local)
    }

    fn set_transaction(&mut self, set: &SetTransaction, alone: bool) -> Result<()> {
        if set.session {
            self.pin_transaction_modes()?;
            let word = |on: bool| if on { "on" } else { "off" };
            let values = [
                ("default_transaction_isolation", set.modes.isolation.map(|isolation| isolation.as_str())),
                ("default_transaction_read_only", set.modes.read_only.map(word)),
                ("default_transaction_deferrable", set.modes.deferrable.map(word)),
            ];
            for (name, value) in values {
                if value.is_some() {
                    self.change_settings(|all| all.set(name, value, false))?;
                }
            }
            return Ok(());
        }
        if !self.joins_transaction(alone) {
            let warning = SqlError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            );
            self.notice(Severity::Warning, &warning);
            // Its transaction is this statement, which may see no other's snapshot all the same.
            return set.snapshot.as_ref().map_or(Ok(()), |name| self.exported_snapshot(name).map(drop));
        }
        if let Some(name) = &set.snapshot {
            return self.adopt_snapshot(name);
        }
        self.set_transaction_modes(&set.modes)
    }

    fn discard(&mut self, target: DiscardTarget) -> Result<()> {
        if target == DiscardTarget::All {
            if self.transaction.is_block() {
                return Err(SqlError::new(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "DISCARD ALL cannot run inside a transaction block",
                ));
            }
            self.portals.clear();
            self.cursors.clear();
            self.forget_statements();
            self.unlisten_all();
            // Outside of transactions these are the session's advisory locks.
            self.entry().engine.release();
            self.set_role(role_setting::SESSION_AUTHORIZATION, None, false)?;
            self.change_settings(|all| {
                all.reset_all();
                Ok(())
            })?;
        }
        if matches!(target, DiscardTarget::All | DiscardTarget::Plans) {
            self.executor.statements.borrow_mut().clear();
            self.executor.shapes.borrow_mut().clear();
            self.memory.literals.lock().clear();
            self.outdate_statements();
        }
        if matches!(target, DiscardTarget::All | DiscardTarget::Sequences) {
            self.memory.sequence_values.lock().clear();
            self.memory.cached_numbers.lock().clear();
            *self.memory.last_sequence.lock() = None;
        }
        Ok(())
    }

    async fn prepare_statement(&mut self, prepare: &Prepare, outer: &Arc<str>) -> Result<()> {
        if self.statements.contains_key(&prepare.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{}\" already exists", prepare.name),
            ));
        }
        let catalog = self.host().catalog.clone();
        let path = self.search_path();
        let declared = prepare
            .types
            .iter()
            .map(|ty| {
                self.require_schema_of(&ty.name)?;
                let (plain, domain) = catalog.catalog.resolve_declared(ty, &path)?;
                Ok(domain.unwrap_or(plain.oid))
            })
            .collect::<Result<Vec<Oid>>>()?;
        archipel_sql::memory::require(outer.len(), "CachedPlanSource")?;
        let text: Arc<str> = outer[prepare.statement.range.clone()].into();
        let before = &outer[..prepare.statement.range.start];
        let shift = |error: SqlError| in_whole(error, before);
        let statements = self.read(&text).await.map_err(shift)?;
        let prepared = self.prepare_parsed(&text, statements, &declared).await.map_err(shift)?;
        self.keep_statement(&prepare.name, prepared, outer.clone(), true);
        Ok(())
    }

    /// EXECUTE name(arguments), which was prepared when the statement of that name had these columns.
    async fn execute_prepared(
        &mut self,
        execute: &Execute,
        columns: Option<&[OutputColumn]>,
        formats: &Formats,
        alone: bool,
    ) -> Result<()> {
        let (prepared, params) = self.prepared_with_arguments(execute).await?;
        if columns.is_some() && !same_columns(columns, prepared.columns.as_deref()) {
            // The client has been told those of another statement of this name.
            return Err(SqlError::changed_result_type());
        }
        Box::pin(self.execute(&prepared, params, formats, alone)).await
    }
}

/// Whether PostgreSQL takes a snapshot for a utility statement, after which the isolation of
/// its transaction is settled.
pub(super) fn sees_database(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Transaction(_)
            | Statement::Set(_)
            | Statement::SetTransaction(_)
            | Statement::Reset(_)
            | Statement::Show(_)
            | Statement::Prepare(_)
            | Statement::Deallocate(_)
            | Statement::Fetch(_)
            | Statement::CloseCursor(_)
            | Statement::Discard(_)
            | Statement::SetConstraints(_)
            | Statement::Lock(_)
            | Statement::Checkpoint
            | Statement::Listen(_)
            | Statement::Unlisten(_)
    )
}

fn unknown_setting(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

fn quoted_if_needed(name: &str) -> String {
    // An item that is a list already ('a, b') keeps PostgreSQL's meaning: one quoted name.
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

impl Prepared {
    /// Whether the statement is a utility.
    pub fn is_utility(&self) -> bool {
        matches!(self.body, Body::Utility(_))
    }
}

/// The text of a value of SET; `None` is DEFAULT.
pub(super) fn setting_text(name: &str, value: &SetValue) -> Result<Option<String>> {
    Ok(match value {
        SetValue::Default => None,
        SetValue::Current => return Err(SqlError::unsupported("SET … FROM CURRENT outside a routine")),
        SetValue::List(items) if name.eq_ignore_ascii_case("search_path") => {
            Some(items.iter().map(|item| quoted_if_needed(item)).collect::<Vec<_>>().join(", "))
        }
        SetValue::List(items) if items.len() > 1 && !name.eq_ignore_ascii_case("datestyle") => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("SET {name} takes only one argument"),
            ));
        }
        SetValue::List(items) => Some(items.join(", ")),
    })
}
