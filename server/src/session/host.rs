//! What SQL functions and system views may ask of the session and the server.
//!
//! A host is made when a session's settings or its catalog change, and shared by the programs
//! it submits, which may run on other threads. Effects on the session (`set_config`) are kept
//! until the statement is over and take hold only if it succeeded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use archipel_engine::Repartition;
use archipel_planner::ddl::DistributionCall;
use archipel_planner::native::SystemRows;
use archipel_procedures::Environment;
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::catalog::{
    Authority, LookupRecorder, ObjectClass, Privileges, Requirement, Table, TypesAlong,
};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CachedNumbers, ExtraChecks, FunctionContext, PreparedText, SessionHost, Style};
use archipel_sql::record::RowType;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::role;
use crate::catalog::CatalogState;
use crate::server::Server;
use crate::sessions::SessionEntry;
use crate::settings::session::Effective;
use crate::transaction_ids::OwnTransaction;

/// What functions keep for a session from one statement to the next.
#[derive(Default)]
pub struct Memory {
    /// `currval`, by sequence.
    pub sequence_values: Mutex<FxHashMap<u32, i64>>,
    /// Numbers drawn ahead, by sequence (CACHE).
    pub cached_numbers: Mutex<FxHashMap<u32, CachedNumbers>>,
    /// `lastval`: the sequence used last.
    pub last_sequence: Mutex<Option<u32>>,
    /// The id of the transaction under way, and its snapshot.
    pub transaction: OwnTransaction,
    /// What the session listens to, in the order it began to.
    pub listening: Mutex<Vec<Arc<str>>>,
    /// The statements that it has prepared under names, for `pg_prepared_statements`.
    pub prepared: Mutex<BTreeMap<String, PreparedByName>>,
    /// What literals of routines were read as, by their numbers: as long as PostgreSQL keeps plans.
    pub literals: Mutex<FxHashMap<i64, Arc<str>>>,
    /// The cursors that were open when the statement under way began, for `pg_cursors`.
    pub cursors: Mutex<Vec<CursorShown>>,
}

/// What `pg_cursors` shows of a cursor.
pub struct CursorShown {
    pub name: String,
    pub text: Arc<str>,
    pub hold: bool,
    pub binary: bool,
    pub scroll: bool,
    /// Microseconds since 2000-01-01 UTC.
    pub at: i64,
}

/// What `pg_prepared_statements` shows of a statement.
pub struct PreparedByName {
    /// As the client wrote it: for PREPARE, with that word.
    pub text: Arc<str>,
    /// Microseconds since 2000-01-01 UTC.
    pub at: i64,
    pub types: Arc<[Type]>,
    /// Made by PREPARE, not by a message of the protocol.
    pub from_sql: bool,
}

/// A change of a setting asked for by a function.
#[derive(Clone, Debug)]
pub struct PendingSetting {
    pub name: String,
    pub value: String,
    pub local: bool,
}

/// See the module's head.
pub struct Host {
    pub server: Arc<Server>,
    pub entry: Arc<SessionEntry>,
    pub settings: Arc<Effective>,
    pub catalog: Arc<CatalogState>,
    /// Where names are looked up: as the settings say, without what the role may not look into.
    pub search_path: Arc<[String]>,
    /// Sequences the role was found to have a right on: the sequence and the rights asked for.
    allowed_sequences: Mutex<FxHashSet<(u32, u16)>>,
    pub memory: Arc<Memory>,
    pub pending: Arc<Mutex<Vec<PendingSetting>>>,
    /// Distribution functions the statement called, to be run as definitions after it.
    pub pending_definitions: Arc<Mutex<Vec<DistributionCall>>>,
    /// Changes of partitions the statement asked for, likewise.
    pub pending_repartitions: Arc<Mutex<Vec<Repartition>>>,
    /// The statement asked for the configuration to be read again.
    pub pending_reload: Arc<AtomicBool>,
    /// This host as routines with SET clauses see it.
    pub with_settings: OnceLock<Box<WithSettings>>,
    /// Nobody waits any longer for the query that this host was made for; never set where it
    /// serves a session.
    given_up: Arc<AtomicBool>,
    /// Whether that query outlives the statement which began it: who asks a statement to stop does not
    /// mean the query.
    outlives: bool,
}

/// A host with some settings changed, or in another's name, and the next such: a list that only
/// grows, one entry for each combination of SET clauses and owners that was called.
pub struct WithSettings {
    acting: Option<Oid>,
    settings: Vec<(String, String)>,
    host: Host,
    next: OnceLock<Box<WithSettings>>,
}

impl Host {
    /// The host of a session's settings and catalog.
    pub fn new(
        (server, entry): (Arc<Server>, Arc<SessionEntry>),
        settings: Arc<Effective>,
        catalog: Arc<CatalogState>,
        memory: Arc<Memory>,
    ) -> Host {
        let authority = Authority { catalog: &catalog.catalog, role: settings.roles.current };
        let search_path = authority.path(&settings.written_path);
        Host {
            server,
            entry,
            settings,
            catalog,
            search_path,
            allowed_sequences: Mutex::default(),
            memory,
            pending: Default::default(),
            pending_definitions: Default::default(),
            pending_repartitions: Default::default(),
            pending_reload: Default::default(),
            with_settings: Default::default(),
            given_up: Default::default(),
            outlives: false,
        }
    }

    /// This host for one query that goes on beside the session, until `given_up` says that nobody
    /// waits for it any longer: by then the session may run another statement.
    pub fn beside(&self, given_up: Arc<AtomicBool>) -> Host {
        Host { given_up, ..self.with(self.settings.clone()) }
    }

    /// The same for the query of a cursor, which goes on between the statements that fetch its rows.
    pub fn between_statements(&self, given_up: Arc<AtomicBool>) -> Host {
        Host { outlives: true, ..self.beside(given_up) }
    }

    /// Whether somebody has asked the statement to stop that this host serves.
    fn is_cancelled(&self) -> bool {
        !self.outlives && self.entry.is_cancelled()
    }

    /// A host with other settings that asks the same session.
    fn with(&self, settings: Arc<Effective>) -> Host {
        Host {
            pending: self.pending.clone(),
            pending_definitions: self.pending_definitions.clone(),
            pending_repartitions: self.pending_repartitions.clone(),
            pending_reload: self.pending_reload.clone(),
            given_up: self.given_up.clone(),
            outlives: self.outlives,
            ..Host::new(
                (self.server.clone(), self.entry.clone()),
                settings,
                self.catalog.clone(),
                self.memory.clone(),
            )
        }
    }

    /// This host with what is looked up in its catalog written down: what is bound with it depends on
    /// that.
    pub fn noting(&self) -> (Host, Arc<LookupRecorder>) {
        let (catalog, asked) = self.catalog.catalog.noting();
        let added_labels = self.catalog.added_labels.clone();
        let catalog = Arc::new(CatalogState { catalog, version: self.catalog.version, added_labels });
        let host = Host {
            server: self.server.clone(),
            entry: self.entry.clone(),
            settings: self.settings.clone(),
            catalog,
            search_path: self.search_path.clone(),
            allowed_sequences: Mutex::default(),
            memory: self.memory.clone(),
            pending: self.pending.clone(),
            pending_definitions: self.pending_definitions.clone(),
            pending_repartitions: self.pending_repartitions.clone(),
            pending_reload: self.pending_reload.clone(),
            with_settings: Default::default(),
            given_up: self.given_up.clone(),
            outlives: self.outlives,
        };
        (host, asked)
    }

    /// What the role in force may do.
    pub fn rights(&self) -> Authority<'_> {
        Authority { catalog: &self.catalog.catalog, role: self.settings.roles.current }
    }

    /// What routines are compiled against.
    pub fn environment(&self) -> Environment {
        let environment = Environment::new(
            self.catalog.catalog.clone(),
            Arc::new(self.server.engine.clone()),
            self.settings.written_path.clone(),
            self.settings.roles.current,
        );
        Environment { conflict: self.settings.variable_conflict, ..environment }
    }

    /// This host with other settings, in the name of another role if one is given.
    fn changed(
        &self,
        settings: &[(String, String)],
        acting: Option<Oid>,
    ) -> Result<Option<&dyn SessionHost>> {
        let mut place = &self.with_settings;
        loop {
            if let Some(known) = place.get() {
                if known.settings == settings && known.acting == acting {
                    return Ok(Some(&known.host));
                }
                place = &known.next;
                continue;
            }
            let role = acting.and_then(|role| self.catalog.catalog.role_by_oid(role));
            let changed = self.settings.with(settings, role.map(|role| role::role_value(&role)))?;
            let host = self.with(Arc::new(changed));
            // Whoever was faster made the same or another; the list is looked through from here.
            let next = WithSettings { acting, settings: settings.to_vec(), host, next: OnceLock::new() };
            let _ = place.set(Box::new(next));
        }
    }

    /// A program starts (again): what an undone run asked for is forgotten.
    pub fn begin_run(&self) {
        let mut pending = self.pending.lock();
        if !pending.is_empty() {
            pending.clear();
        }
        drop(pending);
        self.pending_definitions.lock().clear();
        self.pending_repartitions.lock().clear();
        self.pending_reload.store(false, Ordering::Relaxed);
    }

    /// Whether the run has asked for something to be done after it.
    pub fn is_asked_for_something(&self) -> bool {
        !self.pending.lock().is_empty()
            || !self.pending_definitions.lock().is_empty()
            || !self.pending_repartitions.lock().is_empty()
            || self.pending_reload.load(Ordering::Relaxed)
    }

    /// A context for work outside any transaction: literals, parameters, constant folding.
    pub fn context(&self) -> FunctionContext<'_> {
        FunctionContext { now: crate::server::now(), session: self }
    }
}

/// Literals that a session remembers; beyond that it forgets all, and reads them anew.
const LITERALS_MAX: usize = 4096;

impl TypeNames for Host {
    fn user_type(&self, ty: Type) -> Option<String> {
        TypesAlong { catalog: &self.catalog.catalog, search_path: &self.search_path }.user_type(ty)
    }
}

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

    fn style(&self) -> &Style {
        &self.settings.style
    }

    fn clock(&self) -> Option<i64> {
        Some(crate::server::now())
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
        self.pending
            .lock()
            .iter()
            .rev()
            .find(|pending| pending.name.eq_ignore_ascii_case(name))
            .map(|pending| pending.value.clone())
            .or_else(|| self.server.live.show(name))
            .or_else(|| self.settings.show(name))
    }

    fn examined_setting(&self, name: &str) -> Result<Option<String>> {
        let value = self.setting(name);
        if value.is_some() {
            crate::system::sight::examine_setting(self, name)?;
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
        self.pending.lock().iter().any(changes)
    }

    fn extra_checks(&self) -> ExtraChecks {
        self.settings.extra_checks
    }

    fn with_settings(&self, settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        self.changed(settings, None)
    }

    fn as_owner_of(&self, routine: Oid, settings: &[(String, String)]) -> Result<Option<&dyn SessionHost>> {
        let owner = self.catalog.catalog.owner(routine);
        let same = owner == self.settings.roles.current;
        if same && settings.is_empty() { Ok(None) } else { self.changed(settings, Some(owner)) }
    }

    fn changed_settings(&self) -> usize {
        self.pending.lock().len()
    }

    fn undo_settings(&self, kept: usize) {
        self.pending.lock().truncate(kept);
    }

    fn authority(&self) -> u64 {
        // The catalogs of transactions are numbered apart from the others.
        let version = self.catalog.version;
        let version = (version & 0x7fff_ffff) | (version >> 63 << 31);
        u64::from(self.settings.roles.current.0) << 32 | version
    }

    fn require(&self, needed: &[Requirement]) -> Result<()> {
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

    fn sequence_file(&self, sequence: Oid) -> u32 {
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
        // Owners can take rights from themselves.
        let granted = self.catalog.catalog.access(sequence).is_some_and(|access| access.acl.is_some());
        if (!granted && rights.role == self.catalog.catalog.owner(sequence))
            || self.allowed_sequences.lock().contains(&asked)
        {
            return Ok(());
        }
        rights.require_any(sequence, ObjectClass::Sequence, one_of)?;
        self.allowed_sequences.lock().insert(asked);
        Ok(())
    }

    fn current_catalog(&self) -> Option<&(dyn std::any::Any + Send + Sync)> {
        Some(&self.catalog.catalog)
    }

    fn row_type(&self, ty: Oid) -> Option<Arc<dyn RowType>> {
        self.catalog.catalog.table_of_row_type(ty).map(|table| table as Arc<dyn RowType>)
    }

    fn random(&self) -> f64 {
        fastrand::f64()
    }

    fn call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        crate::functions::call(self, name, args)
    }
}

impl SystemRows for Host {
    fn rows(&self, table: &Table) -> Result<Vec<Vec<Datum>>> {
        crate::system::rows(self, table)
    }
}
