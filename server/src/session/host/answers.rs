//! What the host answers: functions and system views, by the traits that SQL knows of its session.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use archipel_planner::native::SystemRows;
use archipel_sql::catalog::authority::planned_for_another;
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{ObjectClass, Privileges, Required, Requirement, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CachedNumbers, ExtraChecks, PreparedText, SessionHost, Style};
use archipel_sql::record::RowType;
use archipel_sql::system::Sought;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Oid;

use super::{Host, PendingSetting};
use crate::session::role_setting;
use crate::settings::setting_name;

/// Literals that a session remembers; beyond that it forgets all, and reads them anew.
const LITERALS_MAX: usize = 4096;

impl SessionHost for Host {
    fn type_names(&self) -> &dyn TypeNames {
        self
    }

    fn literal(&self, number: i64) -> Option<Arc<str>> {
        self.memory.literals.lock().get(&number).cloned()
    }

    fn keep_literal(&self, number: i64, read: &str) {
        let mut literals = self.memory.literals.lock();
        if literals.len() >= LITERALS_MAX {
            literals.clear();
        }
        literals.insert(number, read.into());
    }

    fn check_label(&self, label: Oid) -> Result<()> {
        self.catalog.check_labels([&Datum::Oid(label)])
    }

    fn database_oid(&self) -> Result<Oid> {
        Ok(self.database.oid)
    }

    fn style(&self) -> &Style {
        &self.settings.style
    }

    fn is_replica(&self) -> bool {
        self.settings.replica
    }

    fn clock(&self) -> Option<i64> {
        Some(crate::clock::now())
    }

    fn interrupted(&self) -> bool {
        self.is_cancelled() || self.given_up.load(Ordering::Relaxed)
    }

    fn interruption(&self) -> Option<SqlError> {
        if self.is_cancelled() {
            return self.entry.interruption();
        }
        let message = "canceling statement due to user request";
        let given_up = self.given_up.load(Ordering::Relaxed);
        given_up.then(|| SqlError::new(SqlState::QUERY_CANCELED, message))
    }

    fn cancellation(&self) -> Option<SqlError> {
        let error = self.is_cancelled().then(|| self.entry.cancel_error());
        error.filter(|error| error.state() == SqlState::QUERY_CANCELED)
    }

    fn forget_cancellation(&self) {
        self.entry.forget_cancellation();
    }

    fn setting(&self, name: &str) -> Option<String> {
        let is_named = |pending: &&PendingSetting| pending.name.eq_ignore_ascii_case(name);
        self.asked
            .look(|asked| asked.settings.iter().rev().find(is_named).map(|pending| pending.value.clone()))
            .or_else(|| self.server.live.show(name))
            .or_else(|| self.settings.show(name))
    }

    fn setting_name(&self, name: &str) -> String {
        setting_name(name)
    }

    fn may_give_setting(&self, name: &str) -> bool {
        role_setting::require_giver(name, &self.rights()).is_ok()
    }

    fn examined_setting(&self, name: &str) -> Result<Option<String>> {
        let value = self.setting(name);
        if value.is_some() {
            crate::system::visibility::examine_setting(self, name)?;
        }
        Ok(value)
    }

    fn prepared_statement(&self, name: &str) -> Option<PreparedText> {
        let prepared = self.memory.prepared.lock();
        let statement = prepared.get(name)?;
        Some(PreparedText { text: statement.text.clone(), types: statement.types.clone() })
    }

    fn has_settings_to_take(&self) -> bool {
        // Those of applications change nothing in how statements are understood.
        let changes = |pending: &PendingSetting| {
            !pending.name.contains('.') && self.settings.show(&pending.name).as_ref() != Some(&pending.value)
        };
        self.asked.look(|asked| asked.settings.iter().any(changes))
    }

    fn extra_checks(&self) -> ExtraChecks {
        self.settings.extra_checks
    }

    fn with_settings(&self, settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        self.changed(settings, None)
    }

    fn as_owner_of(&self, routine: Oid, settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        let owner = self.catalog.catalog.owner(routine);
        let same = owner == self.roles().current;
        if same && settings.is_empty() { Ok(None) } else { self.changed(settings, Some(owner)) }
    }

    fn changed_settings(&self) -> usize {
        self.asked.look(|asked| asked.settings.len())
    }

    fn undo_settings(&self, kept: usize) {
        self.asked.undo_settings(kept);
    }

    fn authority(&self) -> u64 {
        // The catalogs of transactions are numbered apart from the others.
        let version = self.catalog.version;
        let version = (version & 0x3fff_ffff) | (version >> 63 << 31);
        let row_security = u64::from(self.settings.row_security) << 30;
        u64::from(self.roles().current.0) << 32 | row_security | version
    }

    fn policy_reader(&self) -> Option<(Oid, bool)> {
        Some(self.reader())
    }

    fn require(&self, needed: &[Requirement]) -> Result<()> {
        let row_security = self.settings.row_security;
        let is_for_others = |needed: &Requirement| matches!(needed.what, Required::RowSecurity { on, .. } if on != row_security);
        if needed.iter().any(is_for_others) {
            return Err(planned_for_another());
        }
        self.rights().require_all(needed)
    }

    fn relation_name(&self, relation: Oid) -> Option<String> {
        self.catalog.catalog.relation_by_oid(relation).map(|relation| relation.name().to_owned())
    }

    fn is_temporary(&self, relation: Oid) -> bool {
        let relation = self.catalog.catalog.sequence_by_oid(relation);
        relation.is_some_and(|sequence| is_temporary_schema(&sequence.schema))
    }

    fn sequence_cache(&self, sequence: Oid) -> i64 {
        self.catalog.catalog.sequence_by_oid(sequence).map_or(1, |sequence| sequence.cache)
    }

    fn take_cached(&self, sequence: Oid, incarnation: u64) -> Option<i64> {
        let mut cached = self.memory.cached_numbers.lock();
        let numbers = cached.remove(&sequence.0)?;
        if numbers.incarnation != incarnation || numbers.cache != self.sequence_cache(sequence) {
            return None;
        }
        let (value, left) = numbers.taken();
        if let Some(left) = left {
            cached.insert(sequence.0, left);
        }
        Some(value)
    }

    fn keep_cached(&self, sequence: Oid, numbers: Option<CachedNumbers>) {
        let mut cached = self.memory.cached_numbers.lock();
        match numbers {
            Some(numbers) => drop(cached.insert(sequence.0, numbers)),
            None => drop(cached.remove(&sequence.0)),
        }
    }

    fn sequence_file(&self, sequence: Oid) -> Option<u32> {
        self.catalog.catalog.sequence_file(sequence)
    }

    fn require_sequence(&self, sequence: Oid, one_of: Privileges) -> Result<()> {
        let catalog = &self.catalog.catalog;
        if catalog.sequence_by_oid(sequence).is_none()
            && let Some(other) = catalog.relation_by_oid(sequence)
        {
            let message = format!("\"{}\" is not a sequence", other.name());
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let asked = (sequence.0, one_of.0);
        let rights = self.rights();
        let is_sessions = rights.role == self.settings.roles.current;
        // Owners can take rights from themselves.
        let granted = self.catalog.catalog.access(sequence).is_some_and(|access| access.acl.is_some());
        if (!granted && rights.role == self.catalog.catalog.owner(sequence))
            || (is_sessions && self.allowed_sequences.lock().contains(&asked))
        {
            return Ok(());
        }
        rights.require_any(sequence, ObjectClass::Sequence, one_of)?;
        if is_sessions {
            self.allowed_sequences.lock().insert(asked);
        }
        Ok(())
    }

    fn current_catalog(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        Some(&self.catalog.catalog)
    }

    fn row_type(&self, ty: Oid) -> Option<Arc<dyn RowType>> {
        self.catalog.catalog.table_of_row_type(ty).map(|table| table as Arc<dyn RowType>)
    }

    fn random(&self) -> f64 {
        self.memory.random.draw()
    }

    fn call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        crate::functions::call(self, name, args)
    }
}

impl SystemRows for Host {
    fn rows(&self, table: &Table) -> Result<Vec<Vec<Datum>>> {
        self.rows_sought(table, &Sought::EVERYTHING)
    }

    fn rows_sought(&self, table: &Table, sought: &Sought) -> Result<Vec<Vec<Datum>>> {
        crate::system::rows(self, table, sought)
    }

    fn leads(&self, table: &Table, sought: &Sought) -> bool {
        archipel_sql::system::leads(table, sought, &crate::system::Source(self))
    }
}
